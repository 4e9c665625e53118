//! Selects files by a predicate on partition columns.

use super::candidates::{reads_partitions_only, truth_in_partition};
use super::finder::condition_of;
use crate::error::{Error, Result};
use crate::expression::predicate::{BoundPredicate, Predicate};
use crate::scan::DataFile;
use crate::snapshot::Snapshot;

/// The condition that selects files of a version; `None` for all files.
pub(crate) struct PartitionChoice(Option<BoundPredicate>);

impl PartitionChoice {
    /// Selects the files of the partitions for which `predicate` is true, or all files if it is `None`.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a predicate that reads other columns than partition columns, or that cannot be
    /// evaluated.
    pub(crate) fn of(base: &Snapshot, predicate: Option<&Predicate>) -> Result<Self> {
        let condition = predicate.map(|predicate| condition_of(base, predicate)).transpose();
        let condition = condition.map_err(|error| base.located(error))?;
        if condition.as_ref().is_some_and(|bound| !reads_partitions_only(bound, base.metadata())) {
            let error = Error::invalid_argument("the predicate reads columns that are not partition columns");
            return Err(base.located(error.with_hint(format!(
                "use a predicate on the partition columns ({}), or none",
                base.metadata().partition_columns.join(", ")
            ))));
        }
        Ok(Self(condition))
    }

    /// Returns whether a file is selected.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the predicate cannot be evaluated for the file's partition.
    pub(crate) fn includes(&self, file: &DataFile) -> Result<bool> {
        self.0.as_ref().map_or(Ok(true), |condition| truth_in_partition(condition, file))
    }
}
