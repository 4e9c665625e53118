//! Drops of features while other writers work on the table. Protocol: "Supported Features", "Metadata Cleanup"; the
//! proposed section "Checkpoint Protection".
//!
//! Another writer completes an operation just before a request of the drop. This is tried for many requests, one at a
//! time. Whether or not the drop succeeds, each version has the rows that result from the writes, and repeating the
//! drop completes it. Afterwards the types in the files must match the schema, because readers no longer convert them
//! without the feature.

mod busy;
mod use_again;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use deltalog::engine::parallel::stay_alone;
use deltalog::engine::protocol::{Action, Remove};
use deltalog::engine::replay::{FileColumn, FileColumns, adds_of};
use deltalog::{
    Add, ColumnPath, CreationMode, Environment, Operation, PendingWrite, PrimitiveType, ReplaceWhere, Result,
    SaveMode, Snapshot, Storage, StructField, StructType, TableChange, TableDefinition, WriteRequest,
    alter_table, drop_feature,
};
use deltalog_testkit::judge::Log;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::ids::ids;
use crate::common::store::{Call, FaultyStore, Op};
use crate::common::{drop_table, empty, first_of, storage_in, write_commit};

/// One of this many requests of a drop is tried, and also each request that writes a data file. If `DELTALOG_ALL_RACES`
/// is set, all requests are tried.
const STEP: usize = 29;

/// An operation of another process on the table.
type Work = fn(&Storage) -> Result<()>;

fn others() -> Environment {
    Environment::system()
}

fn set(name: &str, value: &str) -> TableChange {
    TableChange::SetProperties([(name.to_owned(), value.to_owned())].into())
}

fn change(storage: &Storage, change: &TableChange) -> Result<()> {
    alter_table(&Snapshot::open(storage, None)?, change, Default::default(), &others()).map(drop)
}

fn long() -> StructType {
    schema_of(PrimitiveType::Long)
}

fn schema_of(column: PrimitiveType) -> StructType {
    StructType::try_new(vec![StructField::new("id", column, true)]).unwrap()
}

fn define(storage: &Storage, column: PrimitiveType, property: (&str, &str), mode: CreationMode, ids: &[i64]) {
    let mut definition = TableDefinition::new(schema_of(column));
    definition.configuration = BTreeMap::from([(property.0.to_owned(), property.1.to_owned())]);
    let creation = PendingWrite::define(storage, &definition, mode, Vec::new(), &others()).unwrap().unwrap();
    let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
    let arrow_schema = creation.arrow_schema();
    let ids = cast(&ids, arrow_schema.field(0).data_type()).unwrap();
    let mut writer = creation.writer().unwrap();
    writer.write(&RecordBatch::try_new(Arc::clone(arrow_schema), vec![ids]).unwrap()).unwrap();
    let files = writer.finish().unwrap();
    let operation = creation.definition_operation(true);
    creation.commit_or_fail(files, operation).unwrap();
}

fn append_row(storage: &Storage, id: i64) -> Result<()> {
    append_as(storage, PrimitiveType::Long, &DataType::Int64, id)
}

fn append_as(storage: &Storage, column: PrimitiveType, arrow_type: &DataType, id: i64) -> Result<()> {
    let request = WriteRequest::new(schema_of(column), SaveMode::Append);
    let write = PendingWrite::begin(storage, request, &others())?.unwrap();
    let mut writer = write.writer()?;
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![id]));
    let ids = cast(&ids, arrow_type).unwrap();
    writer.write(&RecordBatch::try_from_iter([("id", ids)]).unwrap())?;
    let files = writer.finish()?;
    write.commit_or_fail(files, Operation::new("WRITE")).map(drop)
}

fn delete(storage: &Storage, predicate: &str) -> Result<()> {
    let mut request = WriteRequest::new(long(), SaveMode::Overwrite);
    request.replace_where = Some(ReplaceWhere::new(predicate));
    let delete = PendingWrite::begin(storage, request, &others())?.unwrap();
    delete.commit_or_fail(Vec::new(), Operation::new("DELETE")).map(drop)
}

/// Creates a table that uses a feature. Its rows are 0, 2 and 4.
fn using(feature: &str) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let create = |column, property, ids: &[i64]| {
        define(&storage, column, property, CreationMode::ErrorIfExists, ids);
    };
    match feature {
        "deletionVectors" => {
            create(PrimitiveType::Long, ("delta.enableDeletionVectors", "true"), &[0, 1, 2, 3, 4]);
            delete(&storage, "id = 1 or id = 3").unwrap();
        }
        "typeWidening" => {
            create(PrimitiveType::Integer, ("delta.enableTypeWidening", "true"), &[0, 2, 4]);
            let (column, data_type) = (ColumnPath::new(["id"]), PrimitiveType::Long.into());
            change(&storage, &TableChange::WidenColumn { column, data_type }).unwrap();
        }
        "columnMapping" => {
            create(PrimitiveType::Long, ("delta.columnMapping.mode", "name"), &[0, 2, 4]);
        }
        "rowTracking" => create(PrimitiveType::Long, ("delta.enableRowTracking", "true"), &[0, 2, 4]),
        other => panic!("there is no table for {other}"),
    }
    store.take_calls();
    (store, storage)
}

fn dropped(storage: &Storage, feature: &str) -> Result<()> {
    drop_from(&Snapshot::open(storage, None)?, feature)
}

fn drop_from(base: &Snapshot, feature: &str) -> Result<()> {
    drop_feature(base, feature, false, Default::default(), &others().with_sleep(|_| {})).map(drop)
}

fn supports(snapshot: &Snapshot, feature: &str) -> bool {
    snapshot.protocol().writer_features.iter().flatten().any(|name| name == feature)
}

/// Checks that each version can be read, and has the rows `before` up to some version and `after` from there on.
fn check_versions(store: &FaultyStore, storage: &Storage, before: &[i64], after: &[i64], context: &str) {
    let log = Log::read(&store.objects(), "t").unwrap();
    let mut has_changed = false;
    // The first versions were written while the table was prepared.
    for version in 2..log.commits.len() as u64 {
        let found = ids(&Snapshot::open(storage, Some(version)).unwrap());
        has_changed |= found == after && before != after;
        assert_eq!(found, if has_changed { after } else { before }, "version {version}: {context}");
    }
    assert_eq!(ids(&Snapshot::open(storage, None).unwrap()), after, "{context}");
}

/// Does `work` before each request of a drop of `feature`, one at a time. `after` are the rows that result from `work`.
fn race(feature: &'static str, work: Work, after: &[i64]) {
    let writes = |call: &Call| call.op != Op::Get && call.path.ends_with("c000.snappy.parquet");
    let first = first_of(STEP);
    race_from(&using(feature).0, feature, work, after, |at, call| at % STEP == first || writes(call));
}

/// Does `work` before each of the requests in `tried` of a drop from the table in `prepared`, one at a time.
fn race_from(
    prepared: &FaultyStore,
    feature: &'static str,
    work: Work,
    after: &[i64],
    mut tried: impl FnMut(usize, &Call) -> bool,
) {
    stay_alone();
    let before = [0, 2, 4];
    let rehearsal = prepared.copy();
    dropped(&storage_in(&rehearsal), feature).unwrap();
    let calls = rehearsal.take_calls();
    let all = std::env::var_os("DELTALOG_ALL_RACES").is_some();
    for at in (0..calls.len()).filter(|at| all || tried(*at, &calls[*at])) {
        let store = prepared.copy();
        let storage = storage_in(&store);
        let done: Arc<Mutex<Option<Result<()>>>> = Arc::default();
        interfere(&store, at, work, &done);
        let result = dropped(&storage, feature);
        store.heal();
        let theirs = done.lock().unwrap().take().expect("the request is made");
        let context = format!("{feature}: work at {:?}: {theirs:?}, then the drop: {result:?}", calls[at]);
        let after = if theirs.is_ok() { after } else { &before };
        check_versions(&store, &storage, &before, after, &context);
        finish(&storage, feature, &context);
        check_versions(&store, &storage, &before, after, &context);
    }
}

/// Lets another process do `work` before request `at` of `store`.
fn interfere(store: &FaultyStore, at: usize, work: Work, done: &Arc<Mutex<Option<Result<()>>>>) {
    let (other, done) = (storage_in(&store.reconnect()), Arc::clone(done));
    store.fail(move |number, _| {
        if number == at {
            // This runs on another thread, because the current thread is in the middle of a request.
            let work = || {
                stay_alone();
                work(&other)
            };
            let theirs = std::thread::scope(|scope| scope.spawn(work).join().unwrap());
            *done.lock().unwrap() = Some(theirs);
        }
        None
    });
}

/// Drops the feature, unless it is already dropped.
fn finish(storage: &Storage, feature: &str, context: &str) {
    if let Err(error) = dropped(storage, feature) {
        assert!(error.to_string().contains("does not support"), "{context}: {error}");
    }
    let newest = Snapshot::open(storage, None).unwrap();
    assert!(!supports(&newest, feature), "{context}");
    assert_eq!(newest.verify().unwrap().differences, [], "{context}");
    let expected = newest.arrow_schema().field(0).data_type();
    for file in files(&newest).unwrap() {
        let bytes = storage.get(&file.path).unwrap().unwrap();
        let footer = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        assert_eq!(footer.schema().field(0).data_type(), expected, "{}: {context}", file.path);
    }
}

const FEATURES: [&str; 4] = ["deletionVectors", "typeWidening", "columnMapping", "rowTracking"];

#[test]
fn a_concurrent_append_is_kept() {
    for feature in FEATURES {
        race(feature, |storage| append_row(storage, 9), &[0, 2, 4, 9]);
    }
}

/// The other writer deletes rows, by a deletion vector or by rewriting the file.
#[test]
fn a_concurrent_delete_is_kept() {
    for feature in FEATURES {
        race(feature, |storage| delete(storage, "id = 2"), &[0, 4]);
    }
}

#[test]
fn a_concurrent_drop_does_no_harm() {
    race("deletionVectors", |storage| dropped(storage, "deletionVectors"), &[0, 2, 4]);
    race("columnMapping", |storage| dropped(storage, "columnMapping"), &[0, 2, 4]);
}

/// If another writer enables the feature again, the drop fails, and can be repeated later.
#[test]
fn a_feature_that_is_enabled_again_loses_nothing() {
    let enable = |storage: &Storage| {
        change(storage, &set("delta.enableDeletionVectors", "true"))?;
        delete(storage, "id = 2")
    };
    race("deletionVectors", enable, &[0, 4]);
    race("columnMapping", |storage| change(storage, &set("delta.columnMapping.mode", "name")), &[0, 2, 4]);
}

/// Protocol: "Add File and Remove File". A RESTORE brings back files that the drop has rewritten.
#[test]
fn a_concurrent_restore_is_kept() {
    let restore = |storage: &Storage| {
        let newest = Snapshot::open(storage, None)?;
        let old = Snapshot::open(storage, Some(0))?;
        restore(&newest, &old)
    };
    race("deletionVectors", restore, &[0, 1, 2, 3, 4]);
}

/// Commits that the files of `old` replace the files of `newest`, as a client that knows both would.
fn restore(newest: &Snapshot, old: &Snapshot) -> Result<()> {
    let (live, restored) = (files(newest)?, files(old)?);
    let differs = |file: &&Add, others: &[Add]| {
        !others.iter().any(|other| other.path == file.path && other.deletion_vector == file.deletion_vector)
    };
    let mut lines = vec![r#"{"commitInfo":{"operation":"RESTORE","txnId":"restored"}}"#.to_owned()];
    for add in live.iter().filter(|file| differs(file, &restored)) {
        let mut remove = Remove::default();
        (remove.path, remove.data_change) = (add.path.clone(), true);
        (remove.deletion_timestamp, remove.deletion_vector) = (Some(1), add.deletion_vector.clone());
        lines.push(Action::Remove(remove).to_json_line()?);
    }
    for add in restored.iter().filter(|file| differs(file, &live)) {
        lines.push(Action::Add(add.clone()).to_json_line()?);
    }
    write_commit(newest.storage(), newest.version() + 1, &lines);
    Ok(())
}

fn files(snapshot: &Snapshot) -> Result<Vec<Add>> {
    let mut files = Vec::new();
    for batch in snapshot.replay_files(FileColumns::of(&FileColumn::ALL))? {
        files.extend(adds_of(&batch?)?);
    }
    Ok(files)
}

/// Protocol: "Change Metadata". If the table was replaced, it is unknown what the drop would have to remove from the
/// new table.
#[test]
fn a_table_that_replaces_another_one_is_left_alone() {
    let replace = |storage: &Storage| {
        let property = ("delta.enableDeletionVectors", "true");
        define(storage, PrimitiveType::Long, property, CreationMode::CreateOrReplace, &[7, 8]);
        Ok(())
    };
    race("deletionVectors", replace, &[7, 8]);
}

/// If the table was dropped and created again, the log and the files belong to the new table, so the drop must not
/// change them.
#[test]
fn a_table_that_was_created_again_is_not_changed() {
    stay_alone();
    let prepared = using("deletionVectors").0;
    let rehearsal = prepared.copy();
    let base = Snapshot::open(&storage_in(&rehearsal), None).unwrap();
    rehearsal.take_calls();
    drop_from(&base, "deletionVectors").unwrap();
    let calls = rehearsal.take_calls();
    let create = |storage: &Storage| {
        drop_table(storage);
        let property = ("delta.enableDeletionVectors", "true");
        define(storage, PrimitiveType::Long, property, CreationMode::ErrorIfExists, &[7, 8]);
        Ok(())
    };
    // The drop cannot notice a change between reading the log and writing a file into it, so the change is made only
    // before listings.
    let looks = |at: &usize| matches!(calls[*at].op, Op::List);
    for at in (0..calls.len()).filter(looks) {
        let store = prepared.copy();
        let storage = storage_in(&store);
        let base = Snapshot::open(&storage, None).unwrap();
        interfere(&store, at, create, &Arc::default());
        let result = drop_from(&base, "deletionVectors");
        store.heal();
        let newest = Snapshot::open(&storage, None).unwrap();
        let context = format!("a new table at {:?}: {result:?}", calls[at]);
        assert_eq!((newest.version(), ids(&newest)), (0, vec![7, 8]), "{context}");
        assert_eq!(newest.verify().unwrap().differences, [], "{context}");
    }
}
