//! Writes and reads the rows of data files. A row is a number, which determines its class.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use deltalog_testkit::judge::class_of;
use deltalog_testkit::store::Objects;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::place::ROOT;

/// Returns a batch of these rows, with the class of each.
pub fn batch(rows: &[i64]) -> RecordBatch {
    let classes: Int64Array = rows.iter().copied().map(class_of).collect();
    let ids: ArrayRef = Arc::new(Int64Array::from(rows.to_vec()));
    RecordBatch::try_from_iter([("id", ids), ("class", Arc::new(classes) as ArrayRef)]).unwrap()
}

/// Returns the rows of a data file in order, read without the crate; an empty list if it was never written.
pub fn rows_of(objects: &Objects, path: &str) -> Vec<i64> {
    let path = format!("{ROOT}/{path}");
    let found = objects.contents(&path).find(|(found, _)| *found == path);
    let Some(bytes) = found.and_then(|(_, contents)| contents.last()) else { return Vec::new() };
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).unwrap().build().unwrap();
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let ids = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>();
        rows.extend(ids.values().iter().copied());
    }
    rows
}
