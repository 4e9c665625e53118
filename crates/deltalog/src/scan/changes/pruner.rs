//! Skips files of the change feed that cannot contain a requested row. (PROTOCOL, "Per-file Statistics".)
//!
//! - All rows of a file have the same partition values and the same version and time of the commit. They also have
//!   the same change type, unless the writer recorded it per row.
//! - The statistics of an action describe the rows that its deletion vector does not delete. The rows that an `add`
//!   inserts are among them, and so are the rows that a `remove` deletes, even if a path has both actions.

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, StringArray};

use super::files::ChangeKind;
use super::schema::with_change_fields;
use super::values::values;
use crate::error::{Error, Result};
use crate::expression::predicate::{BoundPredicate, ColumnPath, Predicate, prune};
use crate::log::replay::FileColumn;
use crate::scan::{PartitionColumns, StatisticsColumns};
use crate::snapshot::Snapshot;
use crate::values::stats::{StatsBounds, leaf_columns};

/// A pruner for the files of commits.
#[derive(Debug)]
pub(crate) struct FeedPruner {
    predicate: BoundPredicate,
    partitions: PartitionColumns,
    /// The leaf columns whose statistics are relevant.
    stats: Option<StatisticsColumns>,
    no_stats: StatisticsColumns,
}

impl FeedPruner {
    /// Creates a pruner from the parts of `predicate` that are understood, for the feed with the schema of `last`.
    ///
    /// # Errors
    /// `CorruptLog` if a partition column is invalid; `Unsupported` if a column has the same name as a column of the
    /// feed.
    pub(crate) fn of(last: &Snapshot, predicate: &Predicate) -> Result<Self> {
        let schema = with_change_fields(last.arrow_schema())?;
        Self::new(last, predicate.bind_for_pruning(&schema))
    }

    /// Creates a pruner for `predicate`, which must be bound to the schema of the feed of `last`.
    ///
    /// # Errors
    /// `CorruptLog` if a partition column is invalid.
    pub(super) fn new(last: &Snapshot, predicate: BoundPredicate) -> Result<Self> {
        let partitions = PartitionColumns::of(last)?;
        let decides = |path: &ColumnPath| {
            let is_partition = matches!(path.parts(), [name] if partitions.fields().find(name).is_some());
            !is_partition && predicate.columns().iter().any(|column| column.path == *path)
        };
        let leaves = leaf_columns(last.arrow_schema()).into_iter().map(|(path, _)| path);
        let leaves: Vec<ColumnPath> = leaves.filter(decides).collect();
        let of = |columns: &[ColumnPath]| StatisticsColumns::new(last.mapped_schema(), columns);
        let stats = if leaves.is_empty() { None } else { Some(of(&leaves)?) };
        Ok(Self { stats, no_stats: of(&[])?, predicate, partitions })
    }

    /// Returns whether the pruner needs statistics.
    pub(crate) fn reads_statistics(&self) -> bool {
        self.stats.is_some()
    }

    /// Returns for each of `actions`, whose rows have a change of `kind` in `version`, whether it may contain
    /// requested rows. `None` means that all of them may. The actions must have the columns of partition values and
    /// statistics.
    ///
    /// # Errors
    /// Returns `CorruptLog` for partition values that do not have the type of their column.
    pub(super) fn keep(
        &self,
        actions: &RecordBatch,
        kind: ChangeKind,
        version: u64,
        timestamp_ms: i64,
    ) -> Result<Option<BooleanArray>> {
        let column = |column: FileColumn| actions.column_by_name(column.name());
        let map = column(FileColumn::PartitionValues).and_then(|map| map.as_map_opt());
        let map = map.ok_or_else(|| Error::corrupt_log("the column 'partitionValues' does not hold maps"))?;
        if map.null_count() > 0 && !self.partitions.is_empty() {
            return Ok(None);
        }
        let given = values(version, timestamp_ms, &self.partitions.parse(map)?, kind)?;
        let texts: Option<&StringArray> = column(FileColumn::Stats).and_then(|texts| texts.as_string_opt());
        let (stats, is_own) = match (&self.stats, texts) {
            (Some(stats), Some(texts)) => stats.decode_with_origin(texts)?,
            _ => self.no_stats.decode_with_origin((0..actions.num_rows()).map(|_| None))?,
        };
        prune(&self.predicate, &StatsBounds::new(stats, Some(given))?.with_origin(is_own)).map(Some)
    }
}
