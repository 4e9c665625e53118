//! The metrics of an OPTIMIZE. Its commits record them under the names that the JVM connector uses.

use serde_json::Value;

use super::OptimizeRequest;
use super::plan::{Bin, deleted_rows, size};
use super::rewrite::Source;
use crate::commit::Operation;
use crate::protocol::Add;

/// The sizes of files in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSizes(Vec<u64>);

impl FileSizes {
    pub(super) fn push(&mut self, bytes: u64) {
        self.0.push(bytes);
    }

    fn extend(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    /// Returns the number of files.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the total size of the files in bytes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the size of the smallest file; 0 if there are no files.
    pub fn min(&self) -> u64 {
        self.0.iter().min().copied().unwrap_or_default()
    }

    /// Returns the size of the largest file; 0 if there are no files.
    pub fn max(&self) -> u64 {
        self.0.iter().max().copied().unwrap_or_default()
    }

    /// Returns the mean size; 0 if there are no files.
    pub fn mean(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.total() as f64 / self.count() as f64 }
    }

    /// Returns the size that `percent` percent of the files do not exceed; 0 if there are no files.
    fn percentile(&self, percent: usize) -> u64 {
        let mut sizes = self.0.clone();
        sizes.sort_unstable();
        let at = (sizes.len() * percent / 100).min(sizes.len().saturating_sub(1));
        sizes.get(at).copied().unwrap_or_default()
    }
}

/// A number of files and their total size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FileCount {
    /// The number of files.
    pub files: u64,
    /// The total size of the files in bytes.
    pub bytes: u64,
}

/// The cubes and files that an OPTIMIZE of a clustered table has found and planned. A cube is a set of files that
/// were clustered together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClusteringStats {
    /// The files that belong to cubes with the table's current clustering columns.
    pub input_cube_files: FileCount,
    /// All other files: not clustered, clustered by other columns, or clustered by other implementations.
    pub input_other_files: FileCount,
    /// The number of cubes with the table's current clustering columns.
    pub input_cubes: u64,
    /// The files that are rewritten into new cubes.
    pub merged_files: FileCount,
    /// The number of new cubes that the merged files are combined into.
    pub output_cubes: u64,
}

/// The metrics of an OPTIMIZE, or of a dry run.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct OptimizeMetrics {
    /// The new files.
    pub added: FileSizes,
    /// The old files.
    pub removed: FileSizes,
    /// Whether rows were ordered by the columns of the request ([`OptimizeRequest::z_order`]).
    pub is_z_order: bool,
    /// The metrics of clustering, if the table is clustered.
    pub clustering: Option<ClusteringStats>,
    /// The number of files in the selected partitions.
    pub considered_files: u64,
    /// The number of partitions that have new files.
    pub partitions: u64,
    /// The number of bins that were planned. A bin is a group of old files that are rewritten together. It becomes one
    /// new file, or several files if its rows are ordered.
    pub bins: u64,
    /// The number of commits that were planned.
    pub batches: u64,
    /// The number of bins that were given up because of changes that other writers made to their files.
    pub given_up: u64,
    /// The number of deletion vectors that the old files had.
    pub removed_vectors: u64,
    /// The number of rows that these deletion vectors marked as deleted.
    pub removed_vector_rows: u64,
    /// The number of rows that other writers deleted during the operation, and that are deleted in the new files as
    /// well.
    pub carried_rows: u64,
    /// The time at which the operation began, in milliseconds since the epoch.
    pub started_ms: i64,
    /// The time at which the operation ended, in milliseconds since the epoch.
    pub ended_ms: i64,
    /// The partitions that have new files.
    seen: std::collections::BTreeSet<String>,
}

impl OptimizeMetrics {
    pub(super) fn begun(started_ms: i64, considered_files: u64, bins: usize) -> Self {
        Self { started_ms, considered_files, bins: bins as u64, ..Self::default() }
    }

    pub(super) fn ended(mut self, now_ms: i64) -> Self {
        self.ended_ms = now_ms;
        self
    }

    /// Returns the number of considered files that are not rewritten.
    pub fn skipped_files(&self) -> u64 {
        self.considered_files.saturating_sub(self.removed.count())
    }

    fn note_partition(&mut self, add: &Add) {
        self.seen.insert(format!("{:?}", add.partition_values));
        self.partitions = self.seen.len() as u64;
    }

    fn note_removed(&mut self, add: &Add) {
        self.removed.push(size(add));
        if add.deletion_vector.is_some() {
            self.removed_vectors += 1;
            self.removed_vector_rows += deleted_rows(add);
        }
    }

    /// Counts a bin that is only planned, and the number of new files that it would become.
    pub(super) fn plan(&mut self, bin: &Bin, files: u64) {
        bin.files.iter().for_each(|file| self.note_removed(&file.add));
        if let Some(first) = bin.files.first() {
            self.note_partition(&first.add);
            (0..files).for_each(|_| self.added.push(bin.bytes() / files));
        }
    }

    /// Counts old files, which will be replaced by the files `new`.
    pub(super) fn note<'a>(&mut self, sources: &[Source], new: impl Iterator<Item = &'a Add>) {
        sources.iter().for_each(|source| self.note_removed(&source.add));
        if let Some(first) = sources.first() {
            self.note_partition(&first.add);
        }
        new.for_each(|new| self.added.push(size(new)));
    }

    /// Adds the results of one commit.
    pub(super) fn add(&mut self, other: Self) {
        self.added.extend(&other.added);
        self.removed.extend(&other.removed);
        self.removed_vectors += other.removed_vectors;
        self.removed_vector_rows += other.removed_vector_rows;
        self.carried_rows += other.carried_rows;
        self.seen.extend(other.seen);
        self.partitions = self.seen.len() as u64;
    }

    /// Returns the description of a commit with these metrics.
    pub(super) fn describe(&self, request: &OptimizeRequest, target: u64) -> Operation {
        let OptimizeRequest { predicate, z_order, .. } = request;
        let mut operation = request.operation.clone();
        let predicates: Vec<String> = predicate.iter().cloned().collect();
        let columns: Vec<String> = z_order.iter().map(|path| path.parts().join(".")).collect();
        let json = |texts: Vec<String>| Value::from(texts).to_string();
        let operation = if request.purges {
            "REORG".clone_into(&mut operation.name);
            operation.parameter("predicate", json(predicates)).parameter("applyPurge", true)
        } else {
            "OPTIMIZE".clone_into(&mut operation.name);
            operation
                .parameter("predicate", json(predicates))
                .parameter("zOrderBy", json(columns))
                .parameter("auto", request.is_automatic)
                .parameter("targetSize", target.to_string())
        };
        operation
            .metric("numAddedFiles", self.added.count())
            .metric("numAddedBytes", self.added.total())
            .metric("numRemovedFiles", self.removed.count())
            .metric("numRemovedBytes", self.removed.total())
            .metric("numDeletionVectorsRemoved", self.removed_vectors)
            .metric("minFileSize", self.added.min())
            .metric("p25FileSize", self.added.percentile(25))
            .metric("p50FileSize", self.added.percentile(50))
            .metric("p75FileSize", self.added.percentile(75))
            .metric("maxFileSize", self.added.max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let sizes = FileSizes(vec![30, 10, 20, 40]);
        assert_eq!((sizes.count(), sizes.total(), sizes.min(), sizes.max()), (4, 100, 10, 40));
        assert_eq!([25, 50, 75].map(|percent| sizes.percentile(percent)), [20, 30, 40]);
        assert_eq!((FileSizes::default().mean(), FileSizes::default().percentile(50)), (0.0, 0));
    }
}
