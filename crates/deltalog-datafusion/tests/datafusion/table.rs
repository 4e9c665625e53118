//! Creates tables, and changes them as other writers would.

use std::sync::Arc;

use arrow::array::RecordBatch;
use deltalog::engine::dml::{Request, delete};
use deltalog::{Environment, Operation, PendingWrite, SaveMode, Snapshot, Storage, StructType, WriteRequest};
use deltalog_datafusion::DeltaTableProvider;
use tempfile::TempDir;

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
