//! Computes missing or incomplete statistics of files, and commits them without rewriting the files. (Protocol:
//! "Per-file Statistics", "Add File and Remove File".)
//!
//! ```text
//!   files of the base ── poor ──► batches ── compute ──► the footer, and rows where it does not say enough
//!                                    │
//!                                    ▼ commit ──► a version each: `add` actions with new statistics
//!        another writer has changed or removed a file ──► it is left out, the rest is committed
//!        another writer has added a file again, with the same rows ──► its action, with the new statistics
//! ```
//!
//! - A file keeps its path, deletion vector, tags, row ids and clustering. "When an `add` action is encountered for a
//!   logical file that is already present in the table, statistics and other information from the latest version
//!   should replace that from any previous version." `dataChange` is false, so that readers of changes see no change.
//! - A file that another writer has removed must not return, and neither must an old deletion vector. A commit that
//!   removes one of the files or changes its deletion vector is therefore a conflict. The next attempt leaves this
//!   file out.
//! - The operation does not fail because of concurrent commits that add, delete or move rows. It fails if the
//!   protocol, the metadata or the clustering columns change.
//! - Statistics cover all indexed columns (`delta.dataSkippingStatsColumns`, `delta.dataSkippingNumIndexedCols`, and
//!   the clustering columns). Statistics of other columns are kept if they may still be valid.
//! - Some statistics cannot exist, such as the maximum of a column with NaN. So that they are not computed again and
//!   again, a tag records that the rows of the file were read. A second run therefore has nothing to do.
//! - The size of each commit is limited. If the operation fails later, earlier commits remain.
//!
//! | file | what it does |
//! | --- | --- |
//! | `poor` | finds the files whose statistics are incomplete |
//! | `compute` | computes the statistics of one file |
//! | `commit` | commits a batch of files, in spite of concurrent commits |
//!
//! The JVM implementation has a similar operation, `StatisticsCollection.recompute`, which changes all files in one
//! commit. The name of this operation in the log is specific to this crate.

mod commit;
mod compute;
mod poor;

use crate::commit::{Committed, Operation};
use crate::error::{Error, Result};
use crate::expression::predicate::{ParseMode, parse};
use crate::log::replay::add_at;
use crate::operations::rewrite::{ListedFile, PartitionChoice, visit_files};
use crate::runtime::environment::Environment;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;

use self::commit::Committer;
use self::compute::{Computer, Source};
use self::poor::Expected;

/// The maximum number of files in one commit.
const FILES_OF_A_COMMIT: usize = 10_000;

/// A request to compute statistics.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecomputeRequest {
    /// A SQL predicate on partition columns that selects partitions; `None` for all partitions. Times without a zone
    /// are in UTC.
    pub predicate: Option<String>,
    /// Whether to compute the statistics of all files, and not only of files whose statistics are missing or
    /// incomplete. This includes files with deletion vectors, whose bounds then become tight.
    pub all_files: bool,
    /// The maximum number of files per commit.
    pub files_of_a_commit: usize,
    /// Whether to only return the metrics, without reading or writing data.
    pub dry_run: bool,
    /// Additional fields of the commits, such as user metadata.
    pub operation: Operation,
}

impl Default for RecomputeRequest {
    fn default() -> Self {
        Self {
            predicate: None,
            all_files: false,
            files_of_a_commit: FILES_OF_A_COMMIT,
            dry_run: false,
            operation: Operation::default(),
        }
    }
}

/// The result of recomputing statistics.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recomputed {
    /// The commits, in order; empty if there was nothing to do.
    pub commits: Vec<Committed>,
    /// The metrics of the operation.
    pub metrics: RecomputeMetrics,
}

/// The numbers of files in a computation of statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecomputeMetrics {
    /// The number of files in the selected partitions.
    pub considered_files: u64,
    /// The number of files whose statistics are missing or incomplete, or the number of all files if all were
    /// requested.
    pub chosen_files: u64,
    /// The number of files with new statistics.
    pub updated_files: u64,
    /// The number of chosen files for which the footer sufficed.
    pub files_by_footer: u64,
    /// The number of chosen files whose rows were read.
    pub files_by_rows: u64,
    /// The number of chosen files that were left out, because other writers removed or changed them, or deleted rows
    /// in them.
    pub given_up_files: u64,
}

/// Computes the statistics of the files in `base` whose statistics are missing or incomplete.
///
/// # Errors
/// Returns `InvalidArgument` for a predicate that reads other columns than partition columns, and if the number of
/// files per commit is 0. Returns `Unsupported` for a table that cannot be written, and for files with encodings that
/// are not implemented. Returns `FileNotFound`, and `CorruptData` for a file that cannot be read, or whose number of
/// rows differs from the number on which row tracking relies. Returns `CommitConflict` if another writer has changed
/// the protocol or the metadata. Also returns `CommitStateUnknown`, `CorruptLog`, and errors from the store. Earlier
/// commits remain.
pub fn recompute_statistics(
    base: &Snapshot,
    request: RecomputeRequest,
    environment: &Environment,
) -> Result<Recomputed> {
    let located = |error: Error| base.located(error);
    crate::protocol::ensure_writable(base.protocol(), base.metadata()).map_err(located)?;
    if request.files_of_a_commit == 0 {
        return Err(located(
            Error::invalid_argument("a commit of 0 files changes nothing")
                .with_hint("leave the number of files out"),
        ));
    }
    let expected = Expected::of(base).map_err(located)?;
    let mut metrics = RecomputeMetrics::default();
    let chosen = choose(base, &request, &expected, &mut metrics)?;
    metrics.chosen_files = chosen.len() as u64;
    let mut commits = Vec::new();
    if request.dry_run || chosen.is_empty() {
        return Ok(Recomputed { commits, metrics });
    }
    let computer = Computer::of(base, expected.columns).map_err(located)?;
    let mut committer = Committer::new(base, &request, environment);
    for batch in chosen.chunks(request.files_of_a_commit) {
        let threads = base.storage().readers(batch.len());
        let computed = parallel::each(batch, threads, |file| computer.compute(file))?;
        let mut done = RecomputeMetrics::default();
        for file in &computed {
            match file.source {
                Source::Footer => done.files_by_footer += 1,
                Source::Rows => done.files_by_rows += 1,
            }
        }
        let new = computed.into_iter().filter(|file| file.stats != file.add.stats || file.is_newly_tagged());
        commits.extend(committer.commit(new.collect(), &mut done)?);
        metrics.files_by_footer += done.files_by_footer;
        metrics.files_by_rows += done.files_by_rows;
        metrics.updated_files += done.updated_files;
        metrics.given_up_files += done.given_up_files;
    }
    Ok(Recomputed { commits, metrics })
}

/// Returns the files whose statistics will be computed.
fn choose(
    base: &Snapshot,
    request: &RecomputeRequest,
    expected: &Expected,
    metrics: &mut RecomputeMetrics,
) -> Result<Vec<ListedFile>> {
    let located = |error: Error| base.located(error);
    let predicate = request.predicate.as_deref().map(|sql| parse(sql, "UTC", ParseMode::Strict));
    let predicate = predicate.transpose().map_err(located)?;
    let partitions = PartitionChoice::of(base, predicate.as_ref())?;
    let mut chosen = Vec::new();
    visit_files(base, predicate.as_ref(), |batch, files| {
        for (row, file) in files.into_iter().enumerate() {
            if !partitions.includes(&file)? {
                continue;
            }
            metrics.considered_files += 1;
            let add = add_at(batch, row)?;
            if request.all_files || expected.is_poor(&add) {
                chosen.push(ListedFile { add, file });
            }
        }
        Ok(())
    })?;
    Ok(chosen)
}
