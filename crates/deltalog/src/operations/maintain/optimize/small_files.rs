//! Compacts the small files of some partitions, up to a maximum total size.
//! `crate::operations::maintain::auto_compaction` uses it.
//!
//! - Clustered files are not rewritten, whatever implementation clustered them.
//! - Partitions with the largest number of small files are compacted first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::and;
use arrow::datatypes::Int64Type;

use super::bins::packed;
use super::commit::Committer;
use super::plan::{Bin, BinOrder, live_bytes, sort};
use super::rewrite::BinRewriter;
use super::{OptimizeMetrics, OptimizeRequest, Optimized};
use crate::commit::{Operation, PartitionSet};
use crate::error::{Error, Result};
use crate::log::replay::{
    AddRequest, FileColumn, FileColumns, FileFilter, add_at, batches_of_adds, with_columns,
};
use crate::operations::rewrite::ListedFile;
use crate::protocol::{Add, PartitionValues};
use crate::runtime::environment::Environment;
use crate::runtime::progress::Progress;
use crate::scan::{PartitionColumns, data_files};
use crate::snapshot::Snapshot;
use crate::write::TableWriteSpec;

/// Which small files are compacted. Sizes are in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmallFiles {
    /// The size below which a file is small.
    pub(crate) small_size: u64,
    /// The maximum size of new files.
    pub(crate) target_size: u64,
    /// The minimum number of small files for which a partition is compacted.
    pub(crate) least_files: u64,
    /// The maximum number of partitions that are compacted.
    pub(crate) most_partitions: usize,
    /// The maximum total size of the compacted files. The files that become the first new file may exceed it.
    pub(crate) most_bytes: u64,
}

/// Compacts the small files of `base` in the partitions of the files `touched`, in one commit.
///
/// # Errors
/// Returns the errors of [`super::optimize`].
pub(crate) fn compact_small_files(
    base: &Snapshot,
    touched: &[Add],
    small: &SmallFiles,
    operation: Operation,
    environment: &Environment,
) -> Result<Optimized> {
    let started_ms = environment.now_ms();
    let (bins, considered_files) = plan(base, touched, small)?;
    let mut metrics = OptimizeMetrics::begun(started_ms, considered_files, bins.len());
    if bins.is_empty() {
        return Ok(Optimized { commits: Vec::new(), metrics: metrics.ended(environment.now_ms()) });
    }
    metrics.batches = 1;
    let request = OptimizeRequest { is_automatic: true, operation, ..OptimizeRequest::default() };
    let spec = TableWriteSpec::of(base).map_err(|error| base.located(error))?;
    let bytes = bins.iter().map(Bin::bytes).sum::<u64>();
    let progress = Progress::new("OPTIMIZE", base.storage().url(), bytes, "bytes");
    let written = BinRewriter::new(base, spec, None, false, progress, environment)?.rewrite(&bins)?;
    let committed =
        Committer::new(base, &request, small.target_size, environment).commit(written, &mut metrics)?;
    Ok(Optimized { commits: committed.into_iter().collect(), metrics: metrics.ended(environment.now_ms()) })
}

/// Returns the files to compact, grouped into bins that become one new file each, and the number of small files.
fn plan(base: &Snapshot, touched: &[Add], small: &SmallFiles) -> Result<(Vec<Bin>, u64)> {
    let by_partition = small_files(base, touched, small.small_size)?;
    let considered_files = by_partition.values().map(|files| files.len() as u64).sum();
    let mut chosen: Vec<Vec<ListedFile>> =
        by_partition.into_values().filter(|files| files.len() as u64 >= small.least_files).collect();
    chosen.sort_by_key(|files| Reverse(files.len()));
    chosen.truncate(small.most_partitions);
    let (mut bins, mut bytes) = (Vec::new(), 0_u64);
    for mut files in chosen {
        sort(&mut files);
        for files in packed(files, small.target_size, |file| live_bytes(&file.add)) {
            let bin = Bin { files, order: BinOrder::Kept };
            if bin.files.len() < 2 {
                continue;
            }
            bytes = bytes.saturating_add(bin.bytes());
            if bytes > small.most_bytes && !bins.is_empty() {
                return Ok((bins, considered_files));
            }
            bins.push(bin);
        }
    }
    Ok((bins, considered_files))
}

/// Returns the unclustered files of less than `small_size` bytes in the partitions of the files `touched`.
///
/// # Errors
/// `CorruptLog`, and errors from the store.
fn small_files(
    base: &Snapshot,
    touched: &[Add],
    small_size: u64,
) -> Result<BTreeMap<PartitionValues, Vec<ListedFile>>> {
    let located = |error: Error| base.located(error);
    let mut request = AddRequest::new(FileColumns::of(&FileColumn::ALL));
    request.filters.push(filter(base, touched, small_size).map_err(located)?);
    let partitions = PartitionColumns::of(base).map_err(located)?;
    let mut found: BTreeMap<PartitionValues, Vec<ListedFile>> = BTreeMap::new();
    for batch in base.replay(request)? {
        let batch = batch?;
        let files = data_files(&batch, base.resolver(), &partitions).map_err(located)?;
        for (row, file) in files.into_iter().enumerate() {
            let add = add_at(&batch, row).map_err(located)?;
            if add.clustering_provider.is_none() {
                found.entry(add.partition_values.clone()).or_default().push(ListedFile { add, file });
            }
        }
    }
    Ok(found)
}

/// Returns a filter for the small files in the partitions of the files `touched`.
fn filter(base: &Snapshot, touched: &[Add], small_size: u64) -> Result<FileFilter> {
    let partitions = match base.metadata().partition_columns.is_empty() {
        true => None,
        false => {
            let mut partitions = PartitionSet::of(base, None)?;
            batches_of_adds(touched)?.iter().try_for_each(|batch| partitions.insert(batch))?;
            Some(partitions)
        }
    };
    let keep = move |batch: &RecordBatch| {
        let sizes = with_columns(batch, vec![FileColumn::Size.field()])?;
        let sizes = sizes.column(0).as_primitive::<Int64Type>();
        let is_small = |size: i64| u64::try_from(size).is_ok_and(|size| size < small_size);
        let is_small: BooleanArray = sizes.iter().map(|size| Some(size.is_some_and(is_small))).collect();
        match &partitions {
            None => Ok(is_small),
            Some(partitions) => and(&is_small, &partitions.contains(batch)?)
                .map_err(|error| Error::corrupt_log("the files cannot be listed").with_source(error)),
        }
    };
    Ok(FileFilter {
        columns: FileColumns::of(&[FileColumn::Size, FileColumn::PartitionValues]),
        parsed_stats: None,
        prefers_text: false,
        keep: Arc::new(keep),
    })
}
