//! Writes and reads rows of tables in every store.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use deltalog::engine::protocol::StructType;
use deltalog::{
    Add, Committed, Environment, Operation, PendingWrite, SaveMode, Snapshot, Storage, TableScan,
    WriteRequest,
};

/// Returns rows with an id and a partition value that depends on it.
pub fn batch(ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    let parts = StringArray::from_iter_values(ids.iter().map(|id| part(*id)));
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from(ids)) as ArrayRef, true),
        ("part", Arc::new(parts) as ArrayRef, true),
    ])
    .unwrap()
}

/// Returns the partition value of a row. The name of its directory is escaped differently in the log and in the store.
pub fn part(id: i64) -> String {
    ["a b", "100%", "ä/ö"][id as usize % 3].to_owned()
}

/// Begins an append, which creates the table if there is none.
pub fn appending(storage: &Storage, properties: &[(&str, &str)]) -> PendingWrite {
    let schema = StructType::from_arrow(&batch([]).schema()).unwrap();
    let mut request = WriteRequest::new(schema, SaveMode::Append);
    request.partition_by = Some(vec!["part".to_owned()]);
    request.configuration =
        properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    PendingWrite::begin(storage, request, &Environment::system()).unwrap().unwrap()
}

pub fn files(write: &PendingWrite, ids: impl IntoIterator<Item = i64>) -> Vec<Add> {
    let mut writer = write.writer().unwrap();
    writer.write(&batch(ids)).unwrap();
    writer.finish().unwrap()
}

pub fn append(storage: &Storage, ids: impl IntoIterator<Item = i64>) -> Committed {
    let write = appending(storage, &[]);
    let files = files(&write, ids);
    write.commit_or_fail(files, Operation::new("WRITE")).unwrap()
}

pub fn newest(storage: &Storage) -> Snapshot {
    Snapshot::open(storage, None).unwrap()
}

/// Returns the ids of all rows, sorted. Each row must be in the partition of its id.
pub fn ids(snapshot: &Snapshot) -> Vec<i64> {
    let mut found = BTreeMap::new();
    let mut rows = 0;
    for batch in TableScan::new(snapshot).read().unwrap() {
        let batch = batch.unwrap();
        let ids = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec();
        let parts =
            arrow::compute::cast(batch.column_by_name("part").unwrap(), &arrow::datatypes::DataType::Utf8);
        let parts = parts.unwrap();
        rows += ids.len();
        found.extend(
            ids.into_iter().zip(parts.as_string::<i32>().iter().map(|text| text.unwrap().to_owned())),
        );
    }
    assert_eq!(found.len(), rows, "a row is there twice");
    for (id, part_of_row) in &found {
        assert_eq!(*part_of_row, part(*id));
    }
    found.into_keys().collect()
}
