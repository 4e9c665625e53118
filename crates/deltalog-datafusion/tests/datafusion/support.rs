//! Creates tables, and plans that read them.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::TaskContext;
use datafusion_expr::Expr;
use datafusion_physical_plan::{ExecutionPlan, collect};
use datafusion_session::TableProvider;
use deltalog::engine::dml::{Request, delete};
use deltalog::{Environment, Operation, PendingWrite, SaveMode, Snapshot, Storage, StructType, WriteRequest};
use deltalog_datafusion::DeltaTableProvider;
use tempfile::TempDir;

use crate::session::Planner;

/// A table in its own temporary directory.
pub(crate) struct Table {
    directory: TempDir,
    pub(crate) storage: Storage,
}

impl Table {
    /// Returns a directory without a table.
    pub(crate) fn empty() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        Self { directory, storage }
    }

    /// Creates a table with these properties, and with one file for each batch.
    pub(crate) fn new(properties: &[(&str, &str)], partition_by: &[&str], batches: &[RecordBatch]) -> Self {
        let table = Self::empty();
        for batch in batches {
            let schema = StructType::from_arrow(&batch.schema()).unwrap();
            let mut request = WriteRequest::new(schema, SaveMode::Append);
            request.configuration =
                properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            request.partition_by = Some(partition_by.iter().map(|name| (*name).to_owned()).collect());
            table.write(request, batch);
        }
        table
    }

    pub(crate) fn write(&self, request: WriteRequest, batch: &RecordBatch) {
        let write = PendingWrite::begin(&self.storage, request, &Environment::system()).unwrap().unwrap();
        let mut writer = write.writer().unwrap();
        writer.write(batch).unwrap();
        write.commit_or_fail(writer.finish().unwrap(), Operation::new("WRITE")).unwrap();
    }

    /// Appends rows as another writer would.
    pub(crate) fn append(&self, batch: &RecordBatch) {
        let schema = StructType::from_arrow(&batch.schema()).unwrap();
        self.write(WriteRequest::new(schema, SaveMode::Append), batch);
    }

    /// Deletes rows as another writer would.
    pub(crate) fn delete(&self, condition: &str) {
        delete(&self.snapshot(), Some(condition), Request::new(&Environment::system())).unwrap();
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::open(&self.storage, None).unwrap()
    }

    pub(crate) fn provider(&self) -> Arc<DeltaTableProvider> {
        Arc::new(DeltaTableProvider::new(&self.snapshot()).unwrap())
    }

    /// Removes the directories of all partitions, including their files.
    pub(crate) fn remove_data_files(&self) {
        for name in self.files().iter().filter(|name| name.contains('=')) {
            std::fs::remove_dir_all(self.directory.path().join(name)).unwrap();
        }
    }

    /// Returns the names of all files in the directory of the table.
    pub(crate) fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.directory.path()).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Waits until no thread of this process has a name that begins with `name`. The kernel keeps only 15 bytes of a
/// name.
pub(crate) fn wait_for_threads(name: &str) {
    let name = &name[..name.len().min(15)];
    let is_one = |task: &std::fs::DirEntry| {
        // The thread may end while its name is read.
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim().starts_with(name))
    };
    while std::fs::read_dir("/proc/self/task").unwrap().any(|task| is_one(&task.unwrap())) {
        std::thread::yield_now();
    }
}

/// Plans a scan.
pub(crate) async fn scan(
    provider: &DeltaTableProvider,
    projection: Option<&[usize]>,
    filters: &[Expr],
    limit: Option<usize>,
) -> Arc<dyn ExecutionPlan> {
    let projection = projection.map(<[usize]>::to_vec);
    provider.scan(&Planner::new(), projection.as_ref(), filters, limit).await.unwrap()
}

pub(crate) async fn rows(plan: Arc<dyn ExecutionPlan>) -> Result<Vec<RecordBatch>> {
    collect(plan, Arc::new(TaskContext::default())).await
}

/// Returns the integers in the first column of batches, in ascending order.
pub(crate) fn integers(batches: &[RecordBatch]) -> Vec<i64> {
    let values = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    let mut found: Vec<i64> = batches.iter().flat_map(values).collect();
    found.sort_unstable();
    found
}

/// Returns the values of the first column of a table, in ascending order.
pub(crate) async fn ids(provider: &DeltaTableProvider) -> Vec<i64> {
    integers(&rows(scan(provider, Some(&[0]), &[], None).await).await.unwrap())
}

/// Returns the kind of deltalog's error that has caused `error`.
pub(crate) fn kind(error: &DataFusionError) -> deltalog::ErrorKind {
    match error.find_root() {
        DataFusionError::External(cause) => {
            cause.downcast_ref::<deltalog::Error>().expect("an error of deltalog").kind()
        }
        other => panic!("not an error of deltalog: {other}"),
    }
}
