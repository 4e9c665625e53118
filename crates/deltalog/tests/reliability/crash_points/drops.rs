//! The drop of a feature, which makes several commits. After each failure the rows are the same at every version, and
//! dropping the feature once more does the rest.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use deltalog::engine::parallel::stay_alone;
use deltalog::{
    CreationMode, ErrorKind, Operation, PendingWrite, ReplaceWhere, Result, SaveMode, Snapshot, Storage,
    TableDefinition, TableScan, WriteRequest, drop_feature,
};

use super::{Failure, check_versions, hasty, other_ids, readable};
use crate::common::store::{Crash, FaultyStore};
use crate::common::{empty, schema, storage_in};

/// Of the failures of a drop, every so many are tried; all of them with `DELTALOG_ALL_CRASHES`.
const STEP: usize = 37;

/// Creates a table with the rows 0, 2 and 4 of a file with five rows.
fn table_with_deleted_rows() -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let mut definition = TableDefinition::new(schema());
    definition.configuration =
        BTreeMap::from([("delta.enableDeletionVectors".to_owned(), "true".to_owned())]);
    let mode = CreationMode::ErrorIfExists;
    let creation =
        PendingWrite::define(&storage, &definition, mode, Vec::new(), &other_ids()).unwrap().unwrap();
    let ids = Arc::new(Int64Array::from_iter_values(0..5));
    let batch = RecordBatch::try_new(Arc::clone(creation.arrow_schema()), vec![ids]).unwrap();
    let mut writer = creation.writer().unwrap();
    writer.write(&batch).unwrap();
    let files = writer.finish().unwrap();
    creation.commit_or_fail(files, Operation::new("CREATE TABLE AS SELECT")).unwrap();
    let mut request = WriteRequest::new(schema(), SaveMode::Overwrite);
    request.replace_where = Some(ReplaceWhere::new("id = 1 or id = 3"));
    let delete = PendingWrite::begin(&storage, request, &other_ids()).unwrap().unwrap();
    delete.commit_or_fail(Vec::new(), Operation::new("DELETE")).unwrap();
    store.take_calls();
    (store, storage)
}

fn drop_vectors(storage: &Storage) -> Result<()> {
    let base = Snapshot::open(storage, None)?;
    drop_feature(&base, "deletionVectors", false, Default::default(), &hasty()).map(drop)
}

fn ids(snapshot: &Snapshot) -> Vec<i64> {
    let mut found = Vec::new();
    for batch in TableScan::new(snapshot).read().unwrap() {
        found.extend(batch.unwrap().column(0).as_primitive::<Int64Type>().values());
    }
    found.sort_unstable();
    found
}

#[test]
fn a_drop_that_fails_is_done_by_the_next_one() {
    // A crash is to unwind this thread.
    stay_alone();
    let prepared = table_with_deleted_rows().0;
    let store = prepared.copy();
    store.take_calls();
    drop_vectors(&storage_in(&store)).unwrap();
    let calls = store.take_calls();
    let step = if std::env::var_os("DELTALOG_ALL_CRASHES").is_some() { 1 } else { STEP };
    let failures = calls.iter().enumerate().flat_map(|(at, call)| Failure::all(at, call));
    for (turn, failure) in failures.enumerate().filter(|(turn, _)| turn % step == 0) {
        let store = prepared.copy();
        let storage = storage_in(&store);
        store.fail(move |number, _| failure.of(number));
        let result = catch_unwind(AssertUnwindSafe(|| drop_vectors(&storage)));
        store.heal();
        let context = format!("{failure:?} at {:?}: {result:?}", calls[failure.at]);
        if let Err(panic) = result
            && !panic.is::<Crash>()
        {
            resume_unwind(panic);
        }
        check_versions(&store, &storage, &readable(&store, &storage), true, turn / step);
        assert_eq!(ids(&Snapshot::open(&storage, None).unwrap()), [0, 2, 4], "{context}");
        if let Err(error) = drop_vectors(&storage) {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{context}: {error}");
            assert!(error.to_string().contains("does not support"), "{context}: {error}");
        }
        let newest = Snapshot::open(&storage, None).unwrap();
        assert_eq!((newest.protocol().min_reader_version, ids(&newest)), (1, vec![0, 2, 4]), "{context}");
        check_versions(&store, &storage, &readable(&store, &storage), true, turn / step);
    }
}
