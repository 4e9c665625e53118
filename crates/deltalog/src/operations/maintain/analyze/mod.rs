//! Computes missing or poor statistics of files, and commits them without rewriting the files. Protocol: "Per-file
//! Statistics", "Add File and Remove File".
//!
//! ```text
//!   files of the base ── poor ──► batches ── compute ──► the footer, and rows where it does not say enough
//!                                    │
//!                                    ▼ commit ──► a version each: `add` actions with new statistics
//!        another writer has changed or removed a file ──► it is left out, the rest is committed
//!        another writer has added a file again, with the same rows ──► its action, with the new statistics
//! ```
//!
//! - A file stays the same file: its path, its deletion vector, tags, row ids and clustering. "When an `add` action is
//!   encountered for a logical file that is already present in the table, statistics and other information from the
//!   latest version should replace that from any previous version." `dataChange` is false, so that readers of changes
//!   see nothing.
//! - A file that another writer has removed must not come back, nor must an old deletion vector. Therefore a commit
//!   that removes one of the files is a conflict, which trying again does not resolve.
//! - Concurrent commits that add, delete or move rows do not make the operation fail. Changes of the protocol, of the
//!   metadata and of the clustering columns do.
//! - Statistics cover all indexed columns (`delta.dataSkippingStatsColumns`, `delta.dataSkippingNumIndexedCols`, and
//!   the columns of a clustered table). Statistics of other columns are kept if they can still be true.
//! - Statistics that a file cannot have, such as the maximum of a column with NaN, are not computed again and again: a
//!   tag records that the rows of the file were read. A second run therefore has nothing to do.
//! - The size of each commit is bounded. If something fails later, earlier commits remain.
//!
//! | file | what |
//! | --- | --- |
//! | `poor` | which files have poor statistics |
//! | `compute` | the statistics of one file |
//! | `commit` | a batch of files, on top of concurrent commits |
//!
//! The JVM implementation does the same with `StatisticsCollection.recompute`, but for all files in one commit. The
//! name of the operation in the log is specific to this crate.

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

/// The request to compute statistics.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecomputeRequest {
    /// A predicate on partition columns, in SQL, that chooses the partitions; all of them if `None`. Times without a
    /// zone are in UTC.
    pub predicate: Option<String>,
    /// Whether to compute the statistics of all files, not only of files with missing or poor ones. This includes files
    /// with deletion vectors, whose bounds then become tight.
    pub all_files: bool,
    /// The maximum number of files per commit.
    pub files_of_a_commit: usize,
    /// Whether to only return the metrics of what would be done, without reading or writing anything.
    pub dry_run: bool,
    /// More fields of the commits, such as user metadata.
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

/// The recomputed statistics.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Recomputed {
    /// The commits, in order; none if there was nothing to do.
    pub commits: Vec<Committed>,
    /// The metrics.
    pub metrics: RecomputeMetrics,
}

/// The number of affected files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecomputeMetrics {
    /// The number of files in the chosen partitions.
    pub considered_files: u64,
    /// The number of files without statistics or with poor ones; the number of all files if all were requested.
    pub chosen_files: u64,
    /// The number of files with new statistics.
    pub updated_files: u64,
    /// The number of chosen files for which the footer sufficed.
    pub files_by_footer: u64,
    /// The number of chosen files whose rows were read.
    pub files_by_rows: u64,
    /// The number of chosen files that were left out because other writers have removed or changed them, or deleted
    /// rows in them.
    pub given_up_files: u64,
}

/// Computes statistics for the files of `base` that have no statistics or poor ones.
///
/// # Errors
/// `InvalidArgument` for a predicate that reads columns other than partition columns, and if a commit may have no
/// files. `Unsupported` for a table that cannot be written, or for files with encodings that are not implemented.
/// `FileNotFound`, `CorruptData` for a file that cannot be read, or whose number of rows differs from the one that row
/// tracking relies on. `CommitConflict` if another writer has changed the protocol or the metadata;
/// `CommitStateUnknown`, `CorruptLog`, and errors of the store. Earlier commits are kept.
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

/// Returns the files whose statistics are to be computed.
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
