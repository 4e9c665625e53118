//! Writes whose rows are computed from rows of the same table. Protocol: "Commit Provenance Information",
//! `isBlindAppend`.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use deltalog::{
    Environment, Error, ErrorKind, Operation, ParseMode, PartitionOverwrite, PendingWrite, ReplaceWhere,
    Result, RowsRead, SaveMode, Snapshot, Storage, TableChange, WriteRequest, alter_table, parse_predicate,
};

use crate::common::{empty, newest};

const LEVELS: [&str; 2] = ["Serializable", "WriteSerializable"];

/// Creates a table with the rows (1, 1) and (2, 2) of the columns `id` and `p`, partitioned by `p`.
fn table(level: &str) -> Storage {
    let (_, storage) = empty();
    let mut request = request(SaveMode::Append);
    request.partition_by = Some(vec!["p".to_owned()]);
    request.configuration = [("delta.isolationLevel".to_owned(), level.to_owned())].into();
    let write = PendingWrite::begin(&storage, request, &Environment::system()).unwrap().unwrap();
    commit(write, &[(1, 1), (2, 2)]).unwrap();
    storage
}

fn request(mode: SaveMode) -> WriteRequest {
    let field = |name: &str| deltalog::StructField::new(name, deltalog::PrimitiveType::Long, true);
    WriteRequest::new(deltalog::StructType::try_new(vec![field("id"), field("p")]).unwrap(), mode)
}

/// Returns a write request whose rows are computed from the rows for which `predicate` is true.
fn computed(mode: SaveMode, predicate: &str) -> WriteRequest {
    let mut request = request(mode);
    let predicate = parse_predicate(predicate, "UTC", ParseMode::Strict).unwrap();
    request.reads = RowsRead::Matching(vec![predicate]);
    request
}

fn write(read: &Snapshot, request: WriteRequest, rows: &[(i64, i64)]) -> Result<u64> {
    commit(PendingWrite::begin_on(read, request, &Environment::system())?.unwrap(), rows)
}

fn commit(write: PendingWrite, rows: &[(i64, i64)]) -> Result<u64> {
    let (ids, parts): (Vec<i64>, Vec<i64>) = rows.iter().copied().unzip();
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(ids)), Arc::new(Int64Array::from(parts))];
    let mut writer = write.writer()?;
    writer.write(&RecordBatch::try_new(Arc::clone(write.arrow_schema()), columns).unwrap())?;
    let files = writer.finish()?;
    Ok(write.commit_or_fail(files, Operation::new("WRITE"))?.version)
}

fn append(storage: &Storage, rows: &[(i64, i64)]) {
    write(&newest(storage), request(SaveMode::Append), rows).unwrap();
}

/// Replaces the rows of a partition.
fn replace(storage: &Storage, partition: i64) {
    let mut request = request(SaveMode::Overwrite);
    request.replace_where = Some(ReplaceWhere::new(format!("p = {partition}")));
    write(&newest(storage), request, &[(9, partition)]).unwrap();
}

fn reason(result: Result<u64>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
    error.reason().unwrap().to_owned()
}

fn is_blind(storage: &Storage) -> bool {
    let snapshot = newest(storage);
    let text = storage.get(&format!("_delta_log/{:020}.json", snapshot.version())).unwrap().unwrap();
    let line = text.split(|byte| *byte == b'\n').next().unwrap();
    let info: serde_json::Value = serde_json::from_slice(line).unwrap();
    info["commitInfo"]["isBlindAppend"].as_bool().unwrap()
}

/// These commits are recorded as blind appends, because they read no rows and remove no files. The JVM connector does
/// the same.
#[test]
fn new_tables_and_changes_of_metadata_are_blind() {
    let storage = table("Serializable");
    assert!(is_blind(&storage));
    let change = TableChange::SetProperties([("own".to_owned(), "x".to_owned())].into());
    alter_table(&newest(&storage), &change, Default::default(), &Environment::system()).unwrap();
    assert!(is_blind(&storage));
}

/// Returns overwrites of partition 1: by a predicate on the partition, by a predicate that is true for all its rows,
/// and by the partitions of the new rows.
fn overwrites() -> Vec<WriteRequest> {
    let mut by_predicate = computed(SaveMode::Overwrite, "p = 2");
    by_predicate.replace_where = Some(ReplaceWhere::new("p = 1"));
    let mut by_row = computed(SaveMode::Overwrite, "p = 2");
    by_row.replace_where = Some(ReplaceWhere::new("p = 1 AND id < 5"));
    let mut by_partition = computed(SaveMode::Overwrite, "p = 2");
    by_partition.partition_overwrite = PartitionOverwrite::Dynamic;
    vec![by_predicate, by_row, by_partition]
}

fn writes() -> Vec<WriteRequest> {
    std::iter::once(computed(SaveMode::Append, "p = 2")).chain(overwrites()).collect()
}

#[test]
fn a_commit_that_changes_the_rows_is_a_conflict() {
    for level in LEVELS {
        for request in writes() {
            let storage = table(level);
            let read = newest(&storage);
            replace(&storage, 2);
            let reason = reason(write(&read, request.clone(), &[(2, 1)]));
            assert!(["concurrent_append", "concurrent_delete_read"].contains(&reason.as_str()), "{reason}");
            assert_eq!(newest(&storage).version(), 1);
            assert_eq!(write(&newest(&storage), request, &[(2, 1)]).unwrap(), 2);
            assert!(!is_blind(&storage));
        }
    }
}

#[test]
fn a_commit_that_adds_such_rows_conflicts_according_to_the_isolation_level() {
    for level in LEVELS {
        for request in writes() {
            let storage = table(level);
            let read = newest(&storage);
            append(&storage, &[(3, 2)]);
            assert!(is_blind(&storage));
            let result = write(&read, request, &[(2, 1)]);
            match level {
                "Serializable" => assert_eq!(reason(result), "concurrent_append"),
                _ => assert_eq!(result.unwrap(), 2),
            }
        }
        let storage = table(level);
        let read = newest(&storage);
        // This append has read rows, so it is not blind.
        write(&read, computed(SaveMode::Append, "p = 1"), &[(3, 2)]).unwrap();
        assert_eq!(reason(write(&read, computed(SaveMode::Append, "p = 2"), &[(2, 1)])), "concurrent_append");
    }
}

#[test]
fn commits_of_other_rows_do_not_conflict() {
    for level in LEVELS {
        for request in writes() {
            let storage = table(level);
            let read = newest(&storage);
            append(&storage, &[(3, 3)]);
            replace(&storage, 3);
            assert_eq!(write(&read, request, &[(2, 1)]).unwrap(), 3);
        }
    }
}

#[test]
fn reading_all_rows_means_reading_every_file() {
    let storage = table("WriteSerializable");
    let read = newest(&storage);
    let mut request = request(SaveMode::Append);
    request.reads = RowsRead::All;
    append(&storage, &[(3, 3)]);
    assert_eq!(write(&read, request.clone(), &[(4, 4)]).unwrap(), 2);
    assert!(!is_blind(&storage));
    assert_eq!(reason(write(&read, request, &[(4, 4)])), "concurrent_append");
}

/// A write that has read rows must state their version. Otherwise later changes cannot be checked for conflicts.
#[test]
fn what_was_read_has_a_version() {
    let storage = table("WriteSerializable");
    let begun = PendingWrite::begin(&storage, computed(SaveMode::Append, "p = 2"), &Environment::system());
    assert_eq!(begun.map(drop).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// If the rows of an append were computed from a version, they are not appended to a different version.
#[test]
fn rows_that_were_computed_are_not_moved_to_another_version() {
    let storage = table("Serializable");
    let read = newest(&storage);
    let mut transaction = crate::common::append(&read, "new", &Environment::system());
    transaction.read_rows(RowsRead::All);
    append(&storage, &[(3, 3)]);
    let deltalog::engine::commit::Outcome::Conflict { transaction, .. } = transaction.commit().unwrap()
    else {
        panic!("no conflict")
    };
    let error: Error = transaction.onto(&newest(&storage)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}
