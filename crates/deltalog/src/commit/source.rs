//! The rows of a table that a query has read to compute new rows of the same table.
//!
//! An `INSERT` that selects from its own table depends on the rows that it has read, including rows that other writers
//! may add. The same is true of an overwrite of some partitions whose new rows are computed from other partitions. A
//! later commit conflicts if it
//!
//! - adds a file that may have such a row, depending on the table's isolation level (see [`super::rules`]), or
//! - removes a file that may have had such a row, even if its rows were only moved.

use std::sync::OnceLock;

use arrow::array::RecordBatch;

use crate::error::Result;
use crate::expression::predicate::Predicate;
use crate::log::replay::{AddRequest, FileColumn, FileColumns, FileSet, path_of};
use crate::scan::file_filters;
use crate::snapshot::Snapshot;

/// The rows of a table from which the data of a write was computed.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum RowsRead {
    /// No rows of the table.
    #[default]
    Nothing,
    /// The rows for which at least one of the predicates is true.
    Matching(Vec<Predicate>),
    /// All rows.
    All,
}

impl RowsRead {
    /// Returns whether no rows were read.
    pub fn is_nothing(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Matching(predicates) => predicates.is_empty(),
            Self::All => false,
        }
    }
}

/// The rows from which a transaction's new rows were computed, and the files that contain them.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) rows: RowsRead,
    /// The files that may contain the rows that were read. They are listed when a commit of another writer that removes
    /// files is checked for the first time.
    files: OnceLock<FileSet>,
}

impl Source {
    pub(super) fn new(rows: RowsRead) -> Self {
        Self { rows, files: OnceLock::new() }
    }

    /// Returns the predicates of the rows, unless all rows were read.
    pub(super) fn predicates(&self) -> &[Predicate] {
        match &self.rows {
            RowsRead::Matching(predicates) => predicates,
            RowsRead::Nothing | RowsRead::All => &[],
        }
    }

    /// Looks for a removed file that may have contained rows of the source in `base`. Returns its path, or `None` if
    /// there is no such file. `removes` is a batch with the log's columns.
    ///
    /// # Errors
    /// `CorruptLog` for file actions that cannot be understood; errors from the store.
    pub(super) fn find(&self, removes: &RecordBatch, base: &Snapshot) -> Result<Option<String>> {
        if removes.num_rows() == 0 || self.rows.is_nothing() {
            return Ok(None);
        }
        let RowsRead::Matching(predicates) = &self.rows else { return Ok(path_of(removes, 0)) };
        let files = match self.files.get() {
            Some(files) => files,
            None => {
                let listed = list(base, predicates)?;
                self.files.get_or_init(|| listed)
            }
        };
        files.find(removes)
    }
}

/// Returns the files of `base` that may have a row for which one of `predicates` is true.
fn list(base: &Snapshot, predicates: &[Predicate]) -> Result<FileSet> {
    let mut files = FileSet::of_paths(base.resolver());
    for predicate in predicates {
        let mut request = AddRequest::new(FileColumns::of(&[FileColumn::Path]));
        request.filters = file_filters(base, predicate)?;
        for batch in base.replay(request)? {
            files.insert(&batch?)?;
        }
    }
    Ok(files)
}
