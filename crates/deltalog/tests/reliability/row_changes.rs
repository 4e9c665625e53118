//! Commits of statements that change rows: DELETE, UPDATE and MERGE, no matter how the rows were found. Protocol:
//! "Deletion Vectors", "Add CDC File", "Commit Provenance Information".

use deltalog::engine::commit::{Committed, Operation, SaveMode};
use deltalog::engine::dml::{Request, RowChange, RowChangeOutcome, RowCounts, Statement, delete, update};
use deltalog::engine::protocol::{Action, AddCdcFile};
use deltalog::engine::replay::{FileColumn, FileColumns, adds_of};
use deltalog::{
    Add, ErrorKind, ParseMode, PendingWrite, Predicate, SetTransaction, Snapshot, Storage, WriteRequest,
    parse_predicate,
};
use serde_json::Value;

use crate::common::ids::{environment, files, ids, table};
use crate::common::{newest, schema};

fn appending(storage: &Storage) -> PendingWrite {
    let request = WriteRequest::new(schema(), SaveMode::Append);
    PendingWrite::begin(storage, request, &environment()).unwrap().unwrap()
}

fn new_files(storage: &Storage, ids: impl IntoIterator<Item = i64>) -> Vec<Add> {
    files(&appending(storage), ids)
}

fn append(storage: &Storage, ids: impl IntoIterator<Item = i64>) {
    let write = appending(storage);
    let files = files(&write, ids);
    write.commit(files, Operation::new("WRITE")).unwrap();
}

fn live(snapshot: &Snapshot) -> Vec<Add> {
    let batches = snapshot.replay_files(FileColumns::of(&FileColumn::ALL)).unwrap();
    batches.flat_map(|batch| adds_of(&batch.unwrap()).unwrap()).collect()
}

fn data_files(directory: &tempfile::TempDir) -> usize {
    let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| !name.to_str().unwrap().starts_with("_delta_log")).count()
}

fn predicate(text: &str) -> Predicate {
    parse_predicate(text, "UTC", ParseMode::Strict).unwrap()
}

fn delete_statement() -> Statement {
    Statement::Delete { predicate: Some("id = 1".to_owned()) }
}

/// Deletes rows of the only file of `base`.
fn deleting(base: &Snapshot, rows: &[u64], read: &str) -> RowChange {
    let mut change = RowChange::new(base, &environment()).unwrap();
    change.reads(Some(predicate(read)));
    change.delete_rows(live(base).remove(0), rows.iter().copied().collect());
    change
}

fn committed(change: RowChange, rows: &RowCounts) -> (Committed, Vec<(&'static str, u64)>) {
    match change.commit(&delete_statement(), Operation::default(), rows).unwrap() {
        RowChangeOutcome::Committed(committed, metrics) => (committed, metrics),
        outcome => panic!("not committed: {outcome:?}"),
    }
}

fn metric(metrics: &[(&'static str, u64)], name: &str) -> u64 {
    metrics.iter().find(|(found, _)| *found == name).unwrap().1
}

/// The commit has the name, the parameters and the metrics that the JVM connector would write.
#[test]
fn the_commit_says_what_was_done() {
    let (_directory, storage) = table(&[]);
    let base = newest(&storage);
    let counts = RowCounts { deleted: Some(2), ..RowCounts::default() };
    let (_, metrics) = committed(deleting(&base, &[1, 3], "id = 1"), &counts);
    assert_eq!(ids(&newest(&storage)), [0, 2, 4, 5, 6, 7, 8, 9]);
    let commit = storage.read("_delta_log/00000000000000000001.json").unwrap();
    let first = commit.split(|byte| *byte == b'\n').next().unwrap();
    let Some(Action::CommitInfo(info)) = Action::parse_line(first).unwrap() else { panic!("no commitInfo") };
    assert_eq!(info.operation.as_deref(), Some("DELETE"));
    assert_eq!(info.operation_parameters.unwrap()["predicate"], "[\"id = 1\"]");
    let recorded = info.operation_metrics.unwrap();
    assert_eq!(recorded.len(), metrics.len());
    for (name, value) in &metrics {
        assert_eq!(recorded[*name], Value::String(value.to_string()), "{name}");
    }
    let expected = [("numDeletedRows", 2), ("numDeletionVectorsAdded", 1), ("numDeletionVectorsRemoved", 0)];
    for (name, value) in expected {
        assert_eq!(metric(&metrics, name), value, "{name}");
    }

    // If a vector replaces another vector, one counts as added and one as removed.
    let (_, metrics) = committed(deleting(&newest(&storage), &[0], "id = 0"), &counts);
    for name in ["numDeletionVectorsAdded", "numDeletionVectorsRemoved", "numDeletionVectorsUpdated"] {
        assert_eq!(metric(&metrics, name), 1, "{name}");
    }
    // This deletes all remaining rows.
    let (_, metrics) = committed(deleting(&newest(&storage), &[2, 4, 5, 6, 7, 8, 9], "true"), &counts);
    for (name, value) in [("numRemovedFiles", 1), ("numDeletionVectorsAdded", 0)] {
        assert_eq!(metric(&metrics, name), value, "{name}");
    }
    assert!(live(&newest(&storage)).is_empty());
}

#[test]
fn a_statement_that_changes_nothing_commits_nothing() {
    let (_directory, storage) = table(&[]);
    let change = deleting(&newest(&storage), &[], "id = 77");
    let outcome = change.commit(&delete_statement(), Operation::default(), &RowCounts::default()).unwrap();
    assert!(matches!(outcome, RowChangeOutcome::Unchanged(_)), "{outcome:?}");
    assert_eq!(newest(&storage).version(), 0);

    // The commit records the application's progress, so that the statement is not repeated later, when there may be
    // matching rows.
    let mut change = deleting(&newest(&storage), &[], "id = 77");
    change.record([SetTransaction::new("job", 1)]);
    committed(change, &RowCounts::default());
    let mut change = deleting(&newest(&storage), &[1], "id = 1");
    change.record([SetTransaction::new("job", 1)]);
    let outcome = change.commit(&delete_statement(), Operation::default(), &RowCounts::default()).unwrap();
    assert!(matches!(outcome, RowChangeOutcome::AlreadyApplied(_)), "{outcome:?}");
    assert_eq!(ids(&newest(&storage)).len(), 10);
}

/// Two statements on one file both commit if their rows differ; otherwise the error of the second one names the row.
#[test]
fn statements_conflict_on_common_rows_only() {
    let (directory, storage) = table(&[]);
    let base = newest(&storage);
    let counts = RowCounts::default();
    let update = |rows: &[u64], ids: &[i64], read: &str| {
        let mut change = deleting(&base, rows, read);
        change.add_files(new_files(&storage, ids.iter().copied()));
        change
    };
    let (first, second) = (update(&[1], &[101], "id = 1"), update(&[2], &[102], "id = 2"));
    let third = update(&[2, 3], &[202, 203], "id IN (2, 3)");
    committed(first, &counts);
    assert_eq!(committed(second, &counts).0.rebased_over, 1);
    let files = data_files(&directory);
    let error = third.commit(&delete_statement(), Operation::default(), &counts).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict);
    assert_eq!(error.reason(), Some("concurrent_delete_delete"));
    assert!(error.to_string().contains("row 2"), "{error}");
    // The data file of the failed statement has been deleted. Deletion vectors are written only with a commit.
    assert_eq!(data_files(&directory), files - 1);
    assert_eq!(ids(&newest(&storage)), [0, 3, 4, 5, 6, 7, 8, 9, 101, 102]);
}

/// A blind append does not conflict with a statement, because the append may be ordered after the statement. Rows that
/// another statement adds do conflict.
#[test]
fn only_rows_that_a_statement_adds_concern_what_was_read() {
    let (_directory, storage) = table(&[]);
    let (base, counts) = (newest(&storage), RowCounts::default());
    let late = deleting(&base, &[2], "id >= 2");
    append(&storage, [50]);
    let mut other = deleting(&base, &[1], "id = 1");
    other.add_files(new_files(&storage, [0]));
    committed(other, &counts);
    committed(late, &counts);

    let late = deleting(&base, &[4], "id >= 2");
    let mut other = deleting(&base, &[5], "id = 5");
    other.add_files(new_files(&storage, [55]));
    committed(other, &counts);
    let error = late.commit(&delete_statement(), Operation::default(), &counts).unwrap_err();
    assert_eq!(error.reason(), Some("concurrent_append"));

    // There is a conflict if another commit deletes a row that the statement has read, even if the statement does not
    // change the row.
    let base = newest(&storage);
    let file = live(&base).into_iter().find(|file| file.deletion_vector.is_some()).unwrap();
    let mut reader = RowChange::new(&base, &environment()).unwrap();
    reader.read_files([file.clone()]);
    reader.add_files(new_files(&storage, [60]));
    let mut other = RowChange::new(&base, &environment()).unwrap();
    other.delete_rows(file, [6].into_iter().collect());
    committed(other, &counts);
    let error = reader.commit(&delete_statement(), Operation::default(), &counts).unwrap_err();
    assert_eq!(error.reason(), Some("concurrent_delete_read"));
}

/// "Deletion Vector Format": positions of rows also count rows that were deleted before.
#[test]
fn rows_after_deleted_rows_are_found() {
    let (_directory, storage) = table(&[]);
    let request = || Request::new(&environment());
    delete(&newest(&storage), Some("id IN (1, 2)"), request()).unwrap();
    let values = [("id".to_owned(), "id * 10".to_owned())];
    update(&newest(&storage), &values, Some("id % 5 = 0"), request()).unwrap();
    delete(&newest(&storage), Some("id > 7 AND id < 50"), request()).unwrap();
    assert_eq!(ids(&newest(&storage)), [0, 3, 4, 6, 7, 50]);
}

/// "Append-only Tables".
#[test]
fn rows_of_an_append_only_table_stay() {
    let (_directory, storage) = table(&[("delta.appendOnly", "true")]);
    let error = RowChange::new(&newest(&storage), &environment()).unwrap_err();
    assert!(error.to_string().contains("append-only"), "{error}");
}

/// "Add CDC File": change files are committed with the statement. If it fails, they are deleted.
#[test]
fn change_files_are_committed_or_deleted() {
    let (directory, storage) = table(&[("delta.enableChangeDataFeed", "true")]);
    let changes = || {
        let path = "_change_data/cdc-0.parquet";
        std::fs::create_dir_all(directory.path().join("_change_data")).unwrap();
        std::fs::write(directory.path().join(path), "rows").unwrap();
        AddCdcFile { path: path.to_owned(), size: 4, ..AddCdcFile::default() }
    };
    let is_there = || directory.path().join("_change_data/cdc-0.parquet").exists();
    let base = newest(&storage);
    let mut change = deleting(&base, &[1], "id = 1");
    change.add_changes([changes()]);
    let (version, metrics) = committed(change, &RowCounts::default());
    assert_eq!(metric(&metrics, "numAddedChangeFiles"), 1);
    let commit = storage.read(&format!("_delta_log/{:020}.json", version.version)).unwrap();
    let commit = String::from_utf8(commit.to_vec()).unwrap();
    let expected =
        r#"{"cdc":{"path":"_change_data/cdc-0.parquet","partitionValues":{},"size":4,"dataChange":false}}"#;
    assert!(commit.lines().any(|line| line == expected), "{commit}");

    // Committing the same statement again fails, but files that belong to a version are kept.
    let mut change = deleting(&base, &[1], "id = 1");
    change.add_changes([changes()]);
    change.commit(&delete_statement(), Operation::default(), &RowCounts::default()).unwrap_err();
    assert!(is_there());

    // A statement that is aborted deletes its change files.
    let mut change = deleting(&newest(&storage), &[1], "id = 1");
    change.add_changes([changes()]);
    change.abort();
    assert!(!is_there());

    let (_other, plain) = table(&[]);
    let mut change = deleting(&newest(&plain), &[1], "id = 1");
    change.add_changes([changes()]);
    let error = change.commit(&delete_statement(), Operation::default(), &RowCounts::default()).unwrap_err();
    assert!(error.to_string().contains("delta.enableChangeDataFeed"), "{error}");
}
