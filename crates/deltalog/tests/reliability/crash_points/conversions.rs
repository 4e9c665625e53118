//! Conversions of directories to tables that fail at any request.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use deltalog::engine::storage::PutOutcome;
use deltalog::{ConvertRequest, Result, Storage, plan_conversion};
use parquet::arrow::ArrowWriter;

use super::{fail_at_each_request, hasty};
use crate::common::empty;
use crate::common::store::FaultyStore;

/// Puts three files into an empty store.
fn files() -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    for file in 0..3 {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![file]));
        let rows = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let put = storage.put_if_absent(&format!("p={file}/f.parquet"), bytes).unwrap();
        assert!(matches!(put, PutOutcome::Created));
    }
    store.take_calls();
    (store, storage)
}

/// The table exists with all files, or it does not exist.
#[test]
fn a_conversion_is_atomic() {
    let convert = |storage: &Storage| -> Result<()> {
        let plan = plan_conversion(storage, ConvertRequest::default(), &hasty())?.unwrap();
        plan.commit().map(drop)
    };
    fail_at_each_request(files, convert, true);
}
