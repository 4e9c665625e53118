//! OPTIMIZE, and REORG … APPLY (PURGE).

use std::time::Duration;

use deltalog::engine::commit::Operation;
use deltalog::{
    ClusteringStats, ColumnPath, Curve, Error, FileCount, FileSizes, OptimizeMetrics, OptimizeRequest,
    optimize as core_optimize,
};
use pyo3::prelude::*;

use crate::call::call_that_commits;
use crate::commit_arguments::CommitArguments;
use crate::snapshot::Snapshot;
use crate::upkeep::environment_with;

/// Statistics of file sizes, with the keys that the JVM implementation uses.
#[derive(IntoPyObject)]
pub(crate) struct Sizes {
    min: Option<u64>,
    max: Option<u64>,
    avg: f64,
    #[pyo3(item("totalFiles"))]
    total_files: u64,
    #[pyo3(item("totalSize"))]
    total_size: u64,
}

impl From<&FileSizes> for Sizes {
    fn from(sizes: &FileSizes) -> Self {
        let of_some = |bytes: u64| (sizes.count() > 0).then_some(bytes);
        Self {
            min: of_some(sizes.min()),
            max: of_some(sizes.max()),
            avg: sizes.mean(),
            total_files: sizes.count(),
            total_size: sizes.total(),
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct VectorStats {
    #[pyo3(item("numDeletionVectorsRemoved"))]
    vectors: u64,
    #[pyo3(item("numDeletionVectorRowsRemoved"))]
    rows: u64,
}

/// A number of files, and their total size.
#[derive(IntoPyObject, Default)]
pub(crate) struct FileStats {
    num: u64,
    size: u64,
}

/// A number of files and their total size, under the names that the metrics of clustering use.
#[derive(IntoPyObject)]
pub(crate) struct ClusteredFiles {
    #[pyo3(item("numFiles"))]
    files: u64,
    size: u64,
}

impl From<FileCount> for ClusteredFiles {
    fn from(count: FileCount) -> Self {
        Self { files: count.files, size: count.bytes }
    }
}

/// The metrics of clustering.
#[derive(IntoPyObject)]
pub(crate) struct Clustered {
    #[pyo3(item("inputZCubeFiles"))]
    cube_files: ClusteredFiles,
    #[pyo3(item("inputOtherFiles"))]
    other_files: ClusteredFiles,
    #[pyo3(item("inputNumZCubes"))]
    cubes: u64,
    #[pyo3(item("mergedFiles"))]
    merged_files: ClusteredFiles,
    #[pyo3(item("numOutputZCubes"))]
    output_cubes: u64,
}

impl From<&ClusteringStats> for Clustered {
    fn from(stats: &ClusteringStats) -> Self {
        Self {
            cube_files: stats.input_cube_files.into(),
            other_files: stats.input_other_files.into(),
            cubes: stats.input_cubes,
            merged_files: stats.merged_files.into(),
            output_cubes: stats.output_cubes,
        }
    }
}

/// The metrics of ordering rows along a curve. Parts of a curve ("cubes") are not distinguished, as in the JVM
/// implementation.
#[derive(IntoPyObject)]
pub(crate) struct ZOrderStats {
    #[pyo3(item("strategyName"))]
    strategy: &'static str,
    #[pyo3(item("inputCubeFiles"))]
    cube_files: FileStats,
    #[pyo3(item("inputOtherFiles"))]
    other_files: FileStats,
    #[pyo3(item("inputNumCubes"))]
    cubes: u64,
    #[pyo3(item("mergedFiles"))]
    merged_files: FileStats,
    #[pyo3(item("numOutputCubes"))]
    output_cubes: u64,
    #[pyo3(item("mergedNumCubes"))]
    merged_cubes: Option<u64>,
}

impl ZOrderStats {
    fn of(metrics: &OptimizeMetrics) -> Self {
        let removed = || FileStats { num: metrics.removed.count(), size: metrics.removed.total() };
        Self {
            strategy: "all",
            cube_files: FileStats::default(),
            other_files: removed(),
            cubes: 0,
            merged_files: removed(),
            output_cubes: metrics.partitions,
            merged_cubes: None,
        }
    }
}

/// The metrics of an OPTIMIZE, under the names of the JVM implementation.
#[derive(IntoPyObject)]
pub(crate) struct Metrics {
    #[pyo3(item("numFilesAdded"))]
    files_added: u64,
    #[pyo3(item("numFilesRemoved"))]
    files_removed: u64,
    #[pyo3(item("filesAdded"))]
    added: Sizes,
    #[pyo3(item("filesRemoved"))]
    removed: Sizes,
    #[pyo3(item("partitionsOptimized"))]
    partitions: u64,
    #[pyo3(item("zOrderStats"))]
    z_order: Option<ZOrderStats>,
    #[pyo3(item("clusteringStats"))]
    clustering: Option<Clustered>,
    #[pyo3(item("numBins"))]
    bins: u64,
    #[pyo3(item("numBatches"))]
    batches: u64,
    #[pyo3(item("totalConsideredFiles"))]
    considered_files: u64,
    #[pyo3(item("totalFilesSkipped"))]
    skipped_files: u64,
    #[pyo3(item("preserveInsertionOrder"))]
    keeps_order: bool,
    #[pyo3(item("deletionVectorStats"))]
    vectors: VectorStats,
    #[pyo3(item("numRowsCarriedOver"))]
    carried_rows: u64,
    #[pyo3(item("numBinsGivenUp"))]
    given_up: u64,
    #[pyo3(item("startTimeMs"))]
    started_ms: i64,
    #[pyo3(item("endTimeMs"))]
    ended_ms: i64,
}

impl From<&OptimizeMetrics> for Metrics {
    fn from(metrics: &OptimizeMetrics) -> Self {
        Self {
            files_added: metrics.added.count(),
            files_removed: metrics.removed.count(),
            added: Sizes::from(&metrics.added),
            removed: Sizes::from(&metrics.removed),
            partitions: metrics.partitions,
            z_order: metrics.is_z_order.then(|| ZOrderStats::of(metrics)),
            clustering: metrics.clustering.as_ref().map(Clustered::from),
            bins: metrics.bins,
            batches: metrics.batches,
            considered_files: metrics.considered_files,
            skipped_files: metrics.skipped_files(),
            keeps_order: !metrics.is_z_order && metrics.clustering.is_none(),
            vectors: VectorStats { vectors: metrics.removed_vectors, rows: metrics.removed_vector_rows },
            carried_rows: metrics.carried_rows,
            given_up: metrics.given_up,
            started_ms: metrics.started_ms,
            ended_ms: metrics.ended_ms,
        }
    }
}

/// How rows are ordered: the columns, and the name of the curve.
pub(crate) type ZOrder = (Vec<String>, String);

/// How a clustered table is clustered: whether all files are clustered by its current columns, and not only new files;
/// and the maximum size of a cube.
type Cluster = (bool, Option<u64>);

/// Merges small files into fewer, larger files, or purges files, clusters rows, or orders the rows of all files.
/// Returns the metrics, and the version of the last commit if anything was committed.
#[pyfunction]
#[pyo3(signature = (
    snapshot, predicate, target_size, commit_interval, purges, dry_run, commit, z_order = None, cluster = None,
    check_rows = false, file_format = None
))]
#[expect(clippy::too_many_arguments, reason = "arguments of Python")]
pub(crate) fn optimize(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    predicate: Option<String>,
    target_size: Option<u64>,
    commit_interval: Option<Duration>,
    purges: bool,
    dry_run: bool,
    commit: CommitArguments,
    z_order: Option<ZOrder>,
    cluster: Option<Cluster>,
    check_rows: bool,
    file_format: Option<String>,
) -> PyResult<(Metrics, Option<u64>)> {
    let snapshot = snapshot.get().0.clone();
    call_that_commits(py, || {
        let mut request = OptimizeRequest::default();
        request.predicate = predicate;
        request.target_size = target_size;
        request.commit_interval = commit_interval;
        request.purges = purges;
        (request.dry_run, request.check_rows) = (dry_run, check_rows);
        (request.full, request.cube_size) = cluster.unwrap_or_default();
        if let Some(z_order) = &z_order {
            along(&mut request, z_order)?;
        }
        request.operation = Operation::default().custom_metadata(commit.only_fields()?)?;
        let done = core_optimize(&snapshot, request, &environment_with(file_format.as_deref())?)?;
        Ok((Metrics::from(&done.metrics), done.commits.last().map(|committed| committed.version)))
    })
}

/// Adds the order of the rows to a request.
pub(crate) fn along(request: &mut OptimizeRequest, (columns, curve): &ZOrder) -> Result<(), Error> {
    request.z_order = columns.iter().map(|column| ColumnPath::parse(column)).collect();
    request.curve = curve_named(curve)?;
    Ok(())
}

fn curve_named(name: &str) -> Result<Curve, Error> {
    match name.to_lowercase().as_str() {
        "hilbert" => Ok(Curve::Hilbert),
        "zorder" => Ok(Curve::ZOrder),
        _ => Err(Error::invalid_argument(format!("there is no curve '{name}'"))
            .with_hint("choose hilbert or zorder")),
    }
}
