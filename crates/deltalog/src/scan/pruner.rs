//! Prunes files by partition values and then, for the remaining files, by statistics.
//!
//! - Partition values are evaluated once for each combination of values in a batch, not once for each file.
//! - Statistics are decoded only for the remaining files, and only for the columns that the predicate reads.
//! - Row groups of a checkpoint are not read if their own statistics show that none of their files can match.
//! - If the predicate reads only partition columns, statistics are not needed at all.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StructArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::take;

use super::checkpoint_groups::row_group_filter;
use super::files::{partition_map, required};
use super::partition_groups::PartitionGroups;
use super::partitions::PartitionColumns;
use super::statistics::StatisticsColumns;
use crate::error::{Error, Result};
use crate::expression::predicate::{BoundPredicate, ColumnPath, FileBounds, Predicate, prune};
use crate::log::replay::{AddRequest, FileColumn, FileColumns, FileFilter, STATS_PARSED};
use crate::protocol::MappedSchema;
use crate::snapshot::Snapshot;
use crate::values::stats::{StatsBounds, is_own, leaf_columns, without_nan};

/// Returns filters that keep the files which may contain a row of `snapshot` for which `predicate` is true. Parts of
/// the predicate that are not understood count as possibly true. The batches to which the filters are applied must have
/// all columns of the log.
///
/// # Errors
/// `CorruptLog` if a partition column is not in the schema.
pub(crate) fn file_filters(snapshot: &Snapshot, predicate: &Predicate) -> Result<Vec<FileFilter>> {
    let bound = predicate.bind_for_pruning(snapshot.arrow_schema());
    let pruner = Pruner::new(bound, snapshot.mapped_schema(), &PartitionColumns::of(snapshot)?)?;
    Ok(pruner.filters())
}

/// Returns filters as [`file_filters`] does, but they use only statistics that this crate has computed.
///
/// # Errors
/// Returns the same errors as [`file_filters`].
pub(crate) fn certain_file_filters(snapshot: &Snapshot, predicate: &Predicate) -> Result<Vec<FileFilter>> {
    let certain = |filter: FileFilter| {
        if !filter.columns.contains(FileColumn::Stats) {
            return filter;
        }
        let keep = Arc::clone(&filter.keep);
        let keep_certainly = move |batch: &RecordBatch| {
            let texts = required(batch, FileColumn::Stats)?.as_string_opt::<i32>();
            let is_own =
                |row: usize| texts.is_some_and(|texts| texts.is_valid(row) && is_own(texts.value(row)));
            let kept = keep(batch)?;
            Ok((0..batch.num_rows()).map(|row| Some(kept.value(row) || !is_own(row))).collect())
        };
        // Only the JSON form of statistics shows which writer has computed them.
        FileFilter { parsed_stats: None, prefers_text: true, keep: Arc::new(keep_certainly), ..filter }
    };
    Ok(file_filters(snapshot, predicate)?.into_iter().map(certain).collect())
}

/// The pruner for the batches of one listing.
pub(super) struct Pruner {
    predicate: BoundPredicate,
    /// The leaf columns whose statistics are relevant.
    stats: StatisticsColumns,
    /// The partition columns whose values are relevant.
    partitions: PartitionColumns,
    /// Whether the predicate reads only partition columns.
    only_partitions: bool,
}

impl Pruner {
    /// Creates a pruner for `predicate`, which must be bound to `schema`. `partitions` are the table's partition
    /// columns.
    ///
    /// # Errors
    /// Never fails for columns of the schema.
    pub(super) fn new(
        predicate: BoundPredicate,
        schema: &MappedSchema,
        partitions: &PartitionColumns,
    ) -> Result<Self> {
        let reads = |path: &ColumnPath| predicate.columns().iter().any(|column| column.path == *path);
        let is_partition =
            |path: &ColumnPath| matches!(path.parts(), [name] if partitions.fields().find(name).is_some());
        let leaves = leaf_columns(schema.arrow()).into_iter().map(|(path, _)| path);
        let stats: Vec<ColumnPath> = leaves.filter(|path| reads(path) && !is_partition(path)).collect();
        let partitions = partitions.retain(|name| reads(&ColumnPath::new([name])));
        let only_partitions = stats.is_empty();
        Ok(Self { predicate, stats: StatisticsColumns::new(schema, &stats)?, partitions, only_partitions })
    }

    /// Returns a request for `columns` of the files, without files that cannot match.
    pub(super) fn request(self, schema: &MappedSchema, columns: FileColumns) -> AddRequest {
        let mut request = AddRequest::new(columns);
        request.row_groups =
            Some(row_group_filter(&self.predicate, schema, &self.partitions, Arc::clone(&request.looked_at)));
        request.filters = self.filters();
        request
    }

    /// Returns the filters for a replay, in the order in which they apply.
    pub(super) fn filters(self) -> Vec<FileFilter> {
        let mut filters = Vec::new();
        let pruner = Arc::new(self);
        let by_partitions = Arc::clone(&pruner);
        if pruner.only_partitions || !pruner.partitions.is_empty() {
            let columns = FileColumns::of(&[FileColumn::PartitionValues]);
            filters.push(FileFilter {
                columns,
                parsed_stats: None,
                prefers_text: false,
                keep: Arc::new(move |batch| by_partitions.by_partition_values(batch)),
            });
        }
        if !pruner.only_partitions {
            let mut columns = FileColumns::of(&[FileColumn::Stats]);
            if !pruner.partitions.is_empty() {
                columns = columns.with(FileColumn::PartitionValues);
            }
            let parsed_stats = Some(pruner.stats.physical_paths());
            // Only the JSON form of statistics shows which writer has computed them. The writer determines how the
            // maximum of a floating-point column is interpreted.
            let prefers_text = pruner.predicate.columns().iter().any(|column| column.data_type.is_floating());
            filters.push(FileFilter {
                columns,
                parsed_stats,
                prefers_text,
                keep: Arc::new(move |batch| pruner.by_statistics(batch)),
            });
        }
        filters
    }

    fn by_partition_values(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        if self.partitions.is_empty() {
            // The predicate reads no columns, so it has the same result for all files.
            let keep = prune(&self.predicate, &PartitionBounds(StructArray::new_empty_fields(1, None)))?;
            return Ok(vec![keep.value(0); batch.num_rows()].into());
        }
        let map = partition_map(batch)?;
        let groups = PartitionGroups::of(map)?;
        let failed = |error| Error::corrupt_log("the partition values cannot be parsed").with_source(error);
        let distinct = take(map, &groups.representatives, None).map_err(failed)?;
        let values = self.partitions.parse(distinct.as_map())?;
        let keep = prune(&self.predicate, &PartitionBounds(values))?;
        let is_kept =
            |file: usize| groups.group_of.get(file).is_some_and(|group| keep.value(*group as usize));
        Ok(BooleanArray::new(BooleanBuffer::collect_bool(batch.num_rows(), is_kept), None))
    }

    fn by_statistics(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let partitions = match self.partitions.is_empty() {
            true => None,
            false => Some(self.partitions.parse(partition_map(batch)?)?),
        };
        let bounds = match batch.column_by_name(STATS_PARSED).and_then(|parsed| parsed.as_struct_opt()) {
            Some(parsed) => StatsBounds::new(self.stats.normalize(parsed)?, partitions)?.of_structs(),
            None => {
                let texts = required(batch, FileColumn::Stats)?.as_string_opt::<i32>();
                let (stats, is_own) =
                    self.stats
                        .decode_with_origin(texts.ok_or_else(|| {
                            Error::corrupt_log("the column 'stats' does not hold strings")
                        })?)?;
                StatsBounds::new(stats, partitions)?.with_origin(is_own)
            }
        };
        prune(&self.predicate, &bounds)
    }
}

/// Combinations of partition values. Each is treated as a file with one row and no other statistics.
struct PartitionBounds(StructArray);

impl PartitionBounds {
    fn values(&self, column: &ColumnPath) -> Option<&ArrayRef> {
        match column.parts() {
            [name] => self.0.column_by_name(name),
            _ => None,
        }
    }
}

impl FileBounds for PartitionBounds {
    fn num_files(&self) -> usize {
        self.0.len()
    }

    fn num_records(&self) -> Option<Int64Array> {
        Some(vec![1; self.0.len()].into())
    }

    fn min(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.values(column).cloned()
    }

    fn max(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.values(column).cloned()
    }

    fn without_nan(&self, column: &ColumnPath) -> Option<BooleanArray> {
        without_nan(self.values(column)?)
    }

    fn null_count(&self, column: &ColumnPath) -> Option<Int64Array> {
        let values = self.values(column)?;
        Some((0..values.len()).map(|row| Some(i64::from(values.is_null(row)))).collect())
    }
}
