//! Objections: a transaction that read only a part of the table can object to certain files that other writers add.
//!
//! For example, a transaction that drops a table feature has made sure that no file of its base uses the feature. Files
//! that other writers add in the meantime are checked one by one. If the files of a commit pass the check, the
//! transaction continues on top of that commit. The JVM implementation examines the commits in between in the same way.

use std::fmt;

use arrow::array::RecordBatch;

use super::Transaction;
use crate::error::Result;

type Check = dyn Fn(&RecordBatch) -> Result<Option<String>> + Send + Sync;

/// What a transaction requires of files that other writers add concurrently.
pub(crate) struct Objection {
    what: String,
    check: Box<Check>,
}

impl Objection {
    /// Creates an objection to certain files. `what` describes them, as in "make use of the feature 'x'". `check`
    /// returns the path of the first such file in a batch of `add` actions with the log's columns.
    pub(crate) fn new(
        what: String,
        check: impl Fn(&RecordBatch) -> Result<Option<String>> + Send + Sync + 'static,
    ) -> Self {
        Self { what, check: Box::new(check) }
    }

    /// Returns the description of the files that other writers must not add.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    /// Returns the path of the first file of `adds` that other writers must not add.
    pub(super) fn find(&self, adds: &RecordBatch) -> Result<Option<String>> {
        if adds.num_rows() == 0 { Ok(None) } else { (self.check)(adds) }
    }
}

impl fmt::Debug for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objection({})", self.what)
    }
}

impl Transaction {
    /// Adds `objection`. A concurrent commit that adds such files is then a conflict.
    pub(crate) fn object(&mut self, objection: Objection) {
        self.reads.objection = Some(objection);
    }
}
