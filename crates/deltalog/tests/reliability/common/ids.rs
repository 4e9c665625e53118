//! Creates tables in a local directory whose rows have an `id`.

use std::sync::{Arc, Mutex};

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use deltalog::engine::commit::{Operation, SaveMode};
use deltalog::engine::dml::{Request, delete};
use deltalog::engine::protocol::Add;
use deltalog::{Environment, PendingWrite, Snapshot, Storage, TableScan, WriteRequest};
use tempfile::TempDir;
use uuid::Uuid;

use super::{newest, schema};

/// The number of rows of [`table`].
pub const ROWS: i64 = 10;

/// Returns an environment with the system's clock, whose pauses take no time.
pub fn environment() -> Environment {
    Environment::system().with_sleep(|_| {})
}

/// Returns an environment that runs `work` once, as soon as more than `ids_before` ids were drawn. Each new file draws
/// an id, so `work` can be made to run after the files were written and before they are committed.
pub fn meanwhile(work: impl FnOnce() + Send + 'static, ids_before: usize) -> Environment {
    let state = Mutex::new((Some(work), 0));
    let draw = move || {
        let mut state = state.lock().unwrap();
        state.1 += 1;
        if state.1 > ids_before
            && let Some(work) = state.0.take()
        {
            work();
        }
        Uuid::new_v4()
    };
    Environment::new(|| chrono::Utc::now().timestamp_millis(), draw).with_sleep(|_| {})
}

/// Creates a table with deletion vectors and these properties. It has one file, in which the id of a row is its
/// position.
pub fn table(properties: &[(&str, &str)]) -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let mut request = WriteRequest::new(schema(), SaveMode::Append);
    request.configuration = [("delta.enableDeletionVectors".to_owned(), "true".to_owned())].into();
    request.configuration.extend(properties.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    let write = PendingWrite::begin(&storage, request, &environment()).unwrap().unwrap();
    let files = files(&write, 0..ROWS);
    write.commit(files, Operation::new("WRITE")).unwrap();
    (directory, storage)
}

/// Writes a file with these ids, without committing it.
pub fn files(write: &PendingWrite, ids: impl IntoIterator<Item = i64>) -> Vec<Add> {
    let ids = Arc::new(Int64Array::from_iter_values(ids));
    let mut writer = write.writer().unwrap();
    writer.write(&RecordBatch::try_new(Arc::clone(write.arrow_schema()), vec![ids]).unwrap()).unwrap();
    writer.finish().unwrap()
}

/// Appends a file with these ids.
pub fn append(storage: &Storage, ids: impl IntoIterator<Item = i64>) {
    let request = WriteRequest::new(schema(), SaveMode::Append);
    let write = PendingWrite::begin(storage, request, &environment()).unwrap().unwrap();
    let files = files(&write, ids);
    write.commit(files, Operation::new("WRITE")).unwrap();
}

/// Deletes the rows for which `condition` is true.
pub fn delete_rows(storage: &Storage, condition: &str) {
    delete(&newest(storage), Some(condition), Request::new(&environment())).unwrap();
}

/// Returns the ids of all rows, sorted, as 64-bit integers. The ids are in the first column.
pub fn ids(snapshot: &Snapshot) -> Vec<i64> {
    let mut found = Vec::new();
    for batch in TableScan::new(snapshot).read().unwrap() {
        let column = cast(batch.unwrap().column(0), &DataType::Int64).unwrap();
        found.extend(column.as_primitive::<Int64Type>().values());
    }
    found.sort_unstable();
    found
}
