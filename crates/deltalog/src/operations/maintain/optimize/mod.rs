//! OPTIMIZE: rewrites files as fewer, larger files, or in another order, with the same rows.
//!
//! ```text
//!   files of the base ── plan ──► bins: small files of one partition, in the order in which they were added,
//!         │                             and files with many deleted rows; or all files of a partition
//!         ▼
//!   batches of bins ── rewrite ──► a new file for each bin, or as many as its rows need ── commit ──► a version each
//!                                                                 │
//!        another writer has deleted rows of a file ───────────────┤ vectors are carried over to the new files
//!        another writer has removed a file ───────────────────────┘ the bin is given up, the rest is committed
//! ```
//!
//! - Rows are moved and never changed: `dataChange` is false, so that readers of changes see no change (protocol,
//!   "Add File and Remove File"). Rows that deletion vectors delete are left out. With row tracking, all other rows
//!   keep their ids and commit versions (`row_copy`).
//! - A new file contains the rows of its bin, file after file, and the rows of each file keep their order. The
//!   position of a row in the new file can therefore be computed from its position in the old file ([`moved`]). Rows
//!   that other writers delete by deletion vectors, while files are being written, can thus be deleted in the new
//!   files as well.
//! - With Z-order, the rows of a partition are ordered along a curve through the values of some columns ([`ordered`]),
//!   so that scans can skip files by the statistics of each of these columns. This crate records the new order of the
//!   rows, or an engine reports it, so deletion vectors can be carried over in this case too. A second run rewrites
//!   all files again.
//! - The operation does not fail because of concurrent commits that add, delete or move rows. It fails if the
//!   protocol, the metadata or the clustering columns change.
//! - The size of each commit is limited. If the operation fails later, earlier commits remain.
//! - A file of three quarters of the target size is large enough. A smaller file is chosen only together with another
//!   file that fits into the same new file, or because of its deleted rows. A second run therefore usually has
//!   nothing to do, unless the new files became much smaller than the old files together.
//! - In a clustered table, the rows of unclustered files are ordered along a Hilbert curve through the clustering
//!   columns, together with the rows of some clustered files ([`clustered`]). Files that another implementation has
//!   clustered (`clusteringProvider`) are not rewritten, because mixing their rows would undo its work.
//! - An engine may write the files of a batch, and report how many rows of each old file it has copied ([`external`],
//!   [`reported`]).
//!
//! REORG … APPLY (PURGE) chooses the files to rewrite by other rules ([`OptimizeRequest::purges`]): files with
//! deletion vectors, and files whose footers contain columns that were dropped. A second run only reads footers and
//! finds nothing to do. Clustered files are rewritten one by one.

mod bins;
mod checked;
mod clustered;
mod commit;
mod cubes;
mod curve;
mod dropped_columns;
mod external;
mod metrics;
mod moved;
mod ordered;
mod plan;
mod ranks;
mod reported;
mod rewrite;
mod row_sum;
mod search;
mod small_files;
mod sorted;

use std::time::Duration;

use crate::commit::{Committed, Operation};
use crate::error::{Error, Result};
use crate::expression::predicate::{ColumnPath, ParseMode, parse};
use crate::runtime::environment::Environment;
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;
use crate::write::TableWriteSpec;

pub use curve::Curve;
pub use external::{BinOutput, EngineOrdering, OptimizePlan, OrderedByEngine};
pub use metrics::{ClusteringStats, FileCount, FileSizes, OptimizeMetrics};
pub use search::Locate;
pub(crate) use small_files::{SmallFiles, compact_small_files};

/// The share of deleted rows at which a file is rewritten, regardless of its size.
const MOST_DELETED: f64 = 0.05;

/// The size in bytes of the old files that one commit replaces.
const BYTES_OF_A_COMMIT: u64 = 16 << 30;

/// A request to merge small files into fewer, larger files, or to order the rows of files.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OptimizeRequest {
    /// A SQL predicate on partition columns that selects partitions; `None` for all partitions. Times without a zone
    /// are in UTC.
    pub predicate: Option<String>,
    /// The columns by which the rows of each partition are ordered along a curve. If there are none, rows keep their
    /// order. If there are columns, all files of the selected partitions are rewritten.
    pub z_order: Vec<ColumnPath>,
    /// The curve for ordering rows.
    pub curve: Curve,
    /// The maximum size of new files in bytes, estimated from the sizes of the old files. Files smaller than three
    /// quarters of it are chosen. With `None`, the table's setting applies (`delta.targetFileSize`, or 128 MiB).
    pub target_size: Option<u64>,
    /// Whether to cluster all files of a clustered table by its current columns, and not only new files (`OPTIMIZE …
    /// FULL`). Files of cubes that are already large enough are not rewritten.
    pub full: bool,
    /// The maximum size in bytes of the files of a clustered table that are ordered together as one cube. A cube is
    /// finished when it reaches two thirds of this size. With `None`, the size is 150 GiB, as in the JVM
    /// implementation. Rows of a cube that do not fit in memory are written to a temporary file.
    pub cube_size: Option<u64>,
    /// The share of deleted rows at which a file is rewritten, regardless of its size.
    pub most_deleted: f64,
    /// Whether to rewrite the files with data that is no longer part of the table: deleted rows, or columns that the
    /// schema no longer has. The sizes of the files do not matter. This is `REORG … APPLY (PURGE)`. It reads the
    /// footers of all files without deletion vectors.
    pub purges: bool,
    /// The size in bytes of the old files that one commit replaces.
    pub bytes_of_a_commit: u64,
    /// The minimum time between two commits.
    pub commit_interval: Option<Duration>,
    /// Whether to read the new files again, and compare them row by row with the old files, before they are
    /// committed.
    pub check_rows: bool,
    /// Whether to write nothing and only return the metrics, with estimated sizes.
    pub dry_run: bool,
    /// Additional fields of the commits, such as user metadata.
    pub operation: Operation,
    /// Whether a write has started the operation. The commits record this.
    pub(crate) is_automatic: bool,
}

impl Default for OptimizeRequest {
    fn default() -> Self {
        Self {
            predicate: None,
            z_order: Vec::new(),
            curve: Curve::default(),
            target_size: None,
            full: false,
            cube_size: None,
            most_deleted: MOST_DELETED,
            purges: false,
            bytes_of_a_commit: BYTES_OF_A_COMMIT,
            commit_interval: None,
            check_rows: false,
            dry_run: false,
            operation: Operation::default(),
            is_automatic: false,
        }
    }
}

/// The result of an OPTIMIZE.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Optimized {
    /// The commits, in order; empty if there was nothing to do.
    pub commits: Vec<Committed>,
    /// The metrics of the operation.
    pub metrics: OptimizeMetrics,
}

/// Merges small files of `base`, and files with many deleted rows, into fewer, larger files, or orders the rows of
/// all files of each partition by columns. In a clustered table, clusters the rows of new files; each commit then
/// contains at least one whole cube, regardless of its size.
///
/// # Errors
/// Returns `InvalidArgument` for a predicate that reads other columns than partition columns, for invalid sizes, and
/// for order columns that do not exist, are partition columns, or have no statistics. Also returns it for order
/// columns if the table is clustered, and for `full` if it is not. Returns `Unsupported` for a table that cannot be
/// written, and `CommitConflict` if another writer has changed the protocol, the metadata or the clustering columns.
/// Returns `Unavailable` or `PermissionDenied` if rows that do not fit in memory cannot be written to a temporary
/// file. Also returns `CommitStateUnknown`, `CorruptLog`, `CorruptData`, and errors from the store. Earlier commits
/// remain.
pub fn optimize(base: &Snapshot, request: OptimizeRequest, environment: &Environment) -> Result<Optimized> {
    plan_optimize(base, request, environment)?.execute()
}

/// Plans an OPTIMIZE without writing files. An engine may then write them.
///
/// # Errors
/// Returns the errors of [`optimize`] that concern the request and the table.
pub fn plan_optimize(
    base: &Snapshot,
    mut request: OptimizeRequest,
    environment: &Environment,
) -> Result<OptimizePlan> {
    let located = |error: Error| base.located(error);
    crate::protocol::ensure_writable(base.protocol(), base.metadata()).map_err(located)?;
    let spec = TableWriteSpec::of(base).map_err(located)?;
    let target = request.target_size.unwrap_or(spec.target_file_size());
    let cube_size = request.cube_size.unwrap_or(clustered::CUBE_SIZE);
    let sizes =
        [("target_size", target), ("cube_size", cube_size), ("bytes_of_a_commit", request.bytes_of_a_commit)];
    if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
        let error = Error::invalid_argument(format!("{name} is 0"));
        return Err(located(
            error.with_hint("pass a size of at least 1 byte, or leave it out to use the default"),
        ));
    }
    if !(0.0..=1.0).contains(&request.most_deleted) {
        let text = format!("most_deleted is {}, which is not between 0 and 1", request.most_deleted);
        return Err(located(Error::invalid_argument(text).with_hint("pass a share between 0 and 1")));
    }
    if request.purges && !request.z_order.is_empty() {
        return Err(located(
            Error::invalid_argument("a purge does not order rows").with_hint("order them in a separate run"),
        ));
    }
    let predicate = request.predicate.as_deref().map(|sql| parse(sql, "UTC", ParseMode::Strict));
    let predicate = predicate.transpose().map_err(located)?;
    let started_ms = environment.now_ms();
    let z_order = match request.z_order.as_slice() {
        [] => None,
        columns => Some(ordered::Ordering::of(base, columns, request.curve, target).map_err(located)?),
    };
    let clustering = clustering(base, &request, target, cube_size).map_err(located)?;
    let (plan, stats) = match (&clustering, &z_order) {
        (Some(clustering), _) => {
            clustering.describe(&mut request.operation);
            clustering.plan(base).map(|(plan, stats)| (plan, Some(stats)))?
        }
        (None, z_order) => {
            let choice = match (z_order, request.purges) {
                (Some(_), _) => plan::Choice::All,
                (None, true) => plan::Choice::Purged,
                (None, false) => plan::Choice::SmallOrDeleted(request.most_deleted),
            };
            (plan::Plan::of(base, predicate.as_ref(), target, &choice)?, None)
        }
    };
    let mut metrics = OptimizeMetrics::begun(started_ms, plan.considered_files, plan.bins.len());
    metrics.is_z_order = z_order.is_some();
    metrics.clustering = stats;
    let ordering = z_order.or(clustering.map(|of| ordered::Ordering::of_cubes(of.columns, target)));
    let batches = bins::batched(plan.bins, request.bytes_of_a_commit, plan::Bin::bytes);
    metrics.batches = batches.len() as u64;
    let (base, environment) = (base.clone(), environment.clone());
    Ok(OptimizePlan {
        base,
        request,
        environment,
        spec,
        target,
        ordering,
        batches,
        metrics,
        commits: Vec::new(),
    })
}

impl OptimizePlan {
    /// Writes and commits the files in this process.
    ///
    /// # Errors
    /// Returns the errors of [`optimize`].
    pub fn execute(mut self) -> Result<Optimized> {
        let (base, request, environment) = (&self.base, &self.request, &self.environment);
        if request.dry_run {
            let files = |bin: &plan::Bin| bin.new_files(self.target) as u64;
            self.batches.iter().flatten().for_each(|bin| self.metrics.plan(bin, files(bin)));
            return Ok(self.finish());
        }
        let bytes = self.batches.iter().flatten().map(plan::Bin::work).sum::<u64>();
        let progress = Progress::new("OPTIMIZE", base.storage().url(), bytes, "bytes");
        let checks_rows = request.check_rows;
        let rewriter =
            rewrite::BinRewriter::new(base, self.spec, self.ordering, checks_rows, progress, environment)?;
        let mut committer = commit::Committer::new(base, request, self.target, environment);
        for batch in self.batches {
            let begun_ms = environment.now_ms();
            let written = rewriter.rewrite(&batch)?;
            if let Some(rest) = request.commit_interval.filter(|_| !self.commits.is_empty()) {
                let passed = Duration::from_millis(environment.ms_since(begun_ms));
                environment.sleep(rest.saturating_sub(passed));
            }
            self.commits.extend(committer.commit(written, &mut self.metrics)?);
        }
        Ok(Optimized { commits: self.commits, metrics: self.metrics.ended(environment.now_ms()) })
    }
}

/// Returns the settings for clustering the files of `base`; `None` if the request does not cluster rows.
fn clustering(
    base: &Snapshot,
    request: &OptimizeRequest,
    target: u64,
    cube_size: u64,
) -> Result<Option<clustered::Clustering>> {
    let columns = clustered::columns_of(base)?;
    let is_other = request.purges || !request.z_order.is_empty();
    if request.full && (columns.is_empty() || is_other) {
        return Err(Error::invalid_argument(match is_other {
            true => "OPTIMIZE FULL clusters rows, which a purge or a Z-order does not do",
            false => "the table has no clustering columns, by which all files could be clustered",
        })
        .with_hint("run OPTIMIZE without FULL, or choose columns by ALTER TABLE … CLUSTER BY first"));
    }
    if columns.is_empty() || is_other {
        return Ok(None);
    }
    if request.predicate.is_some() {
        let message = "the table is clustered, so it has no partitions that a predicate could choose";
        return Err(Error::invalid_argument(message).with_hint("leave the predicate out"));
    }
    let OptimizeRequest { full: is_full, most_deleted, .. } = *request;
    Ok(Some(clustered::Clustering { columns, is_full, target, cube_size, most_deleted }))
}
