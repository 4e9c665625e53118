//! Dropping a feature takes several commits. After a failure at any request, every version has the same rows as
//! before, and dropping the feature again completes the work.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use deltalog::engine::parallel::stay_alone;
use deltalog::{
    CreationMode, Environment, ErrorKind, Operation, PendingWrite, ReplaceWhere, Result, SaveMode, Snapshot,
    Storage, TableDefinition, WriteRequest, drop_feature,
};
use uuid::Uuid;

use super::{Failure, check_versions, other_ids, readable};
use crate::common::ids::ids;
use crate::common::store::{Crash, FaultyStore, Op};
use crate::common::{empty, first_of, schema, storage_in};

/// One of this many possible failures is tried. If `DELTALOG_ALL_CRASHES` is set, all are tried.
const STEP: usize = 37;

/// Creates a table with the rows 0 to 4 and a property.
fn table_with(property: (&str, &str)) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let mut definition = TableDefinition::new(schema());
    definition.configuration = BTreeMap::from([(property.0.to_owned(), property.1.to_owned())]);
    let mode = CreationMode::ErrorIfExists;
    let creation =
        PendingWrite::define(&storage, &definition, mode, Vec::new(), &other_ids()).unwrap().unwrap();
    let ids = Arc::new(Int64Array::from_iter_values(0..5));
    let batch = RecordBatch::try_new(Arc::clone(creation.arrow_schema()), vec![ids]).unwrap();
    let mut writer = creation.writer().unwrap();
    writer.write(&batch).unwrap();
    let files = writer.finish().unwrap();
    creation.commit_or_fail(files, Operation::new("CREATE TABLE AS SELECT")).unwrap();
    store.take_calls();
    (store, storage)
}

/// Creates a table with one file of five rows, where only the rows 0, 2 and 4 are not deleted.
fn table_with_deleted_rows() -> (FaultyStore, Storage) {
    let (store, storage) = table_with(("delta.enableDeletionVectors", "true"));
    let mut request = WriteRequest::new(schema(), SaveMode::Overwrite);
    request.replace_where = Some(ReplaceWhere::new("id = 1 or id = 3"));
    let delete = PendingWrite::begin(&storage, request, &other_ids()).unwrap().unwrap();
    delete.commit_or_fail(Vec::new(), Operation::new("DELETE")).unwrap();
    store.take_calls();
    (store, storage)
}

/// Returns an environment in which everything in the store is two days old.
fn two_days_later() -> Environment {
    let now_ms = || chrono::Utc::now().timestamp_millis() + 2 * 24 * 3_600_000;
    Environment::new(now_ms, Uuid::new_v4).with_sleep(|_| {})
}

#[test]
fn a_drop_that_fails_is_done_by_the_next_one() {
    let prepared = table_with_deleted_rows().0;
    fail_at_requests(&prepared, "deletionVectors", false, &[0, 2, 4]);
}

/// Protocol: "Column Mapping". All files are rewritten, together with the schema.
#[test]
fn a_drop_that_writes_all_files_again_is_done_by_the_next_one() {
    let prepared = table_with(("delta.columnMapping.mode", "name")).0;
    fail_at_requests(&prepared, "columnMapping", false, &[0, 1, 2, 3, 4]);
}

/// Protocol: "Metadata Cleanup". The history is deleted before the feature is dropped.
#[test]
fn a_drop_that_truncates_the_history_is_done_by_the_next_one() {
    let prepared = table_with_deleted_rows().0;
    fail_at_requests(&prepared, "deletionVectors", true, &[0, 2, 4]);
}

/// Drops `feature` with each failure of each request, and once more without failures.
fn fail_at_requests(prepared: &FaultyStore, feature: &str, truncates: bool, expected: &[i64]) {
    // All requests run on this thread, because a simulated crash unwinds the thread that makes the request.
    stay_alone();
    let dropped = |storage: &Storage| {
        let base = Snapshot::open(storage, None)?;
        drop_feature(&base, feature, truncates, Default::default(), &two_days_later()).map(drop)
    };
    let store = prepared.copy();
    store.take_calls();
    let done: Result<()> = dropped(&storage_in(&store));
    done.unwrap();
    let calls = store.take_calls();
    assert_eq!(calls.iter().any(|call| call.op == Op::Delete && call.path.ends_with(".json")), truncates);
    let step = if std::env::var_os("DELTALOG_ALL_CRASHES").is_some() { 1 } else { STEP };
    let failures = calls.iter().enumerate().flat_map(|(at, call)| Failure::all(at, call));
    for (turn, failure) in failures.enumerate().filter(|(turn, _)| turn % step == first_of(step)) {
        let store = prepared.copy();
        let storage = storage_in(&store);
        store.fail(move |number, _| failure.of(number));
        let result = catch_unwind(AssertUnwindSafe(|| dropped(&storage)));
        store.heal();
        let context = format!("{failure:?} at {:?}: {result:?}", calls[failure.at]);
        if let Err(panic) = result
            && !panic.is::<Crash>()
        {
            resume_unwind(panic);
        }
        check_versions(&store, &storage, &readable(&store, &storage), true, turn / step);
        assert_eq!(ids(&Snapshot::open(&storage, None).unwrap()), expected, "{context}");
        if let Err(error) = dropped(&storage) {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{context}: {error}");
            assert!(error.to_string().contains("does not support"), "{context}: {error}");
        }
        let newest = Snapshot::open(&storage, None).unwrap();
        assert_eq!((newest.protocol().min_reader_version, ids(&newest)), (1, expected.to_vec()), "{context}");
        check_versions(&store, &storage, &readable(&store, &storage), true, turn / step);
    }
}
