//! Bloom filters in an object store: how many requests a look-up takes, and what happens if one fails. Parquet: "Bloom
//! Filter".

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use deltalog::{
    Environment, ErrorKind, Operation, ParseMode, PendingWrite, Result, SaveMode, Snapshot, Storage,
    TableScan, WriteRequest, parse_predicate,
};
use deltalog_testkit::store::{Fault, Op};

use crate::common::store::FaultyStore;
use crate::common::{empty, newest, schema};

/// Creates a table with this many even ids in one file, in an order that makes the bounds of pages useless.
fn table(rows: i64) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let mut request = WriteRequest::new(schema(), SaveMode::Append);
    request.configuration = [("deltalog.bloomFilterColumns".to_owned(), "id".to_owned())].into();
    let write = PendingWrite::begin(&storage, request, &Environment::system()).unwrap().unwrap();
    let ids = (0..rows).map(|row| row * 7919 % rows * 2);
    let ids = RecordBatch::try_new(
        Arc::clone(write.arrow_schema()),
        vec![Arc::new(Int64Array::from_iter_values(ids))],
    );
    let mut writer = write.writer().unwrap();
    writer.write(&ids.unwrap()).unwrap();
    write.commit(writer.finish().unwrap(), Operation::new("WRITE")).unwrap();
    (store, storage)
}

fn count(snapshot: &Snapshot, predicate: &str) -> Result<usize> {
    let predicate = parse_predicate(predicate, "UTC", ParseMode::Strict)?;
    TableScan::new(snapshot).predicate(predicate).read()?.map(|batch| Ok(batch?.num_rows())).sum()
}

/// Returns the number of requests for data files since the last call.
fn requests(store: &FaultyStore) -> usize {
    store.take_calls().iter().filter(|call| call.path.ends_with(".parquet")).count()
}

#[test]
fn a_look_up_of_an_absent_key_takes_two_requests() {
    for (rows, expected) in [(20_000, 1..=2), (300_000, 2..=2)] {
        let (store, storage) = table(rows);
        let snapshot = newest(&storage);
        store.take_calls();
        assert_eq!(count(&snapshot, "id = 7777").unwrap(), 0);
        let found = requests(&store);
        assert!(expected.contains(&found), "{rows} rows: {found} requests");
        assert_eq!(count(&snapshot, "id in (7776, 7777)").unwrap(), 1);
    }
}

/// If the filter cannot be read because the store does not answer, the scan fails. It does not treat the key as absent.
#[test]
fn a_filter_that_cannot_be_read_is_an_error() {
    let (store, storage) = table(300_000);
    let snapshot = newest(&storage);
    for at in 0..2 {
        let mut seen = 0;
        store.fail(move |_, call| {
            let is_data = call.op == Op::Get && call.path.ends_with(".parquet");
            seen += usize::from(is_data);
            (is_data && seen > at).then_some(Fault::Denied)
        });
        let error = count(&snapshot, "id in (7776, 7777)").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "request {at}: {error}");
        store.heal();
    }
}
