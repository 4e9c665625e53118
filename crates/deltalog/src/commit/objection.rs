//! Files that others must not add before a transaction, although it has not read the table as a whole.
//!
//! A transaction that ends the use of a feature has made sure that no file of its base uses it. Files that other
//! writers add in the meantime are checked one by one, so that the transaction is rebased over commits whose files
//! satisfy it. The JVM implementation looks at the commits in between in the same way.

use std::fmt;

use arrow::array::RecordBatch;

use super::Transaction;
use crate::error::Result;

type Check = dyn Fn(&RecordBatch) -> Result<Option<String>> + Send + Sync;

/// The requirements of a transaction for files that other writers add concurrently.
pub(crate) struct Objection {
    what: String,
    check: Box<Check>,
}

impl Objection {
    /// Returns the objection to files that `what` is said of, such as "make use of the feature 'x'". Of a batch of
    /// `add` actions in the form of the log, `check` returns the path of the first such file.
    pub(crate) fn new(
        what: String,
        check: impl Fn(&RecordBatch) -> Result<Option<String>> + Send + Sync + 'static,
    ) -> Self {
        Self { what, check: Box::new(check) }
    }

    /// Returns the description of the files.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    /// Returns the path of the first file of `adds` that it is said of.
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
    /// Adds `objection`: a concurrent commit that adds files against it is a conflict.
    pub(crate) fn object(&mut self, objection: Objection) {
        self.reads.objection = Some(objection);
    }
}
