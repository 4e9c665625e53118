//! What a transaction has read from its base, and therefore depends on.
//!
//! | read | a later commit conflicts if it |
//! | --- | --- |
//! | nothing | — |
//! | a predicate | adds a file that may hold a row for which the predicate is true |
//! | a partition | adds a file of the partition |
//! | a file | removes the file |
//! | the whole table | adds or removes any file |
//! | the rows its new rows came from | adds or removes a file that may have such rows (see [`super::source`]) |
//! | that no file has some property | adds a file with that property (see [`super::objection`]) |
//!
//! Every transaction also depends on the protocol and on the metadata. See [`super::rules`].

use arrow::array::RecordBatch;

use super::objection::Objection;
use super::partitions::PartitionSet;
use super::source::Source;
use crate::error::Result;
use crate::expression::predicate::Predicate;
use crate::log::replay::FileSet;
use crate::protocol::PathResolver;

/// The part of the table that a transaction has read.
#[derive(Debug)]
pub struct ReadSet {
    pub(super) whole_table: bool,
    pub(super) predicates: Vec<Predicate>,
    pub(super) partitions: Option<PartitionSet>,
    pub(super) files: FileSet,
    pub(super) objection: Option<Objection>,
    /// Whether the transaction has read the metadata domains.
    pub(super) domains: bool,
    /// The rows from which the added rows were computed.
    pub(super) source: Source,
}

impl ReadSet {
    /// Returns a set that depends on no file. A blind append has such a set.
    pub(super) fn nothing(resolver: &PathResolver) -> Self {
        Self {
            whole_table: false,
            predicates: Vec::new(),
            partitions: None,
            files: FileSet::of_paths(resolver),
            objection: None,
            domains: false,
            source: Source::default(),
        }
    }

    /// Returns a set that depends on all files.
    pub(super) fn whole_table(resolver: &PathResolver) -> Self {
        Self { whole_table: true, ..Self::nothing(resolver) }
    }

    /// Adds all rows for which `predicate` is true, including rows that do not exist yet.
    pub fn add_predicate(&mut self, predicate: Predicate) {
        self.predicates.push(predicate);
    }

    /// Adds the files of `batch`, which has the log's columns.
    ///
    /// # Errors
    /// `CorruptLog` for a path that the table must not refer to.
    pub fn add_files(&mut self, batch: &RecordBatch) -> Result<()> {
        self.files.insert(batch).map(drop)
    }

    /// Returns whether nothing was read.
    pub(super) fn is_nothing(&self) -> bool {
        !self.whole_table
            && self.predicates.is_empty()
            && self.partitions.is_none()
            && self.files.is_empty()
            && self.objection.is_none()
            && !self.domains
            && self.source.rows.is_nothing()
    }

    /// Returns whether the statistics of added files are needed to detect conflicts.
    pub(super) fn needs_statistics(&self) -> bool {
        (!self.whole_table && !self.predicates.is_empty()) || !self.source.predicates().is_empty()
    }
}
