//! Writes that are not committed yet: the version on which they are based, and the deletion of their files if they
//! fail.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use deltalog::engine::commit::{Operation, SaveMode};
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::engine::protocol::{SetTransaction, StructType};
use deltalog::engine::replay::{FileColumn, FileColumns};
use deltalog::{
    ColumnPath, CreationMode, Environment, ErrorKind, PendingWrite, Result, Snapshot, Storage,
    TableDefinition, WriteOutcome, WriteRequest,
};

use crate::common::store::{Fault, Op};
use crate::common::{creation, empty, environment, metadata_line, paths, schema, write_commit};

fn request(mode: SaveMode) -> WriteRequest {
    WriteRequest::new(schema(), mode)
}

fn begin(storage: &Storage, mode: SaveMode) -> PendingWrite {
    PendingWrite::begin(storage, request(mode), &Environment::system()).unwrap().unwrap()
}

fn begin_on(read: &Snapshot, mode: SaveMode) -> Result<PendingWrite> {
    Ok(PendingWrite::begin_on(read, request(mode), &Environment::system())?.unwrap())
}

/// Writes one row and commits it.
fn write_row(write: PendingWrite) -> Result<u64> {
    let files = files(&write);
    Ok(write.commit_or_fail(files, Operation::new("WRITE"))?.version)
}

fn files(write: &PendingWrite) -> Vec<deltalog::engine::protocol::Add> {
    let schema = Arc::clone(write.arrow_schema());
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|field| arrow::compute::cast(&Int64Array::from(vec![1]), field.data_type()).unwrap())
        .collect();
    let mut writer = write.writer().unwrap();
    writer.write(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
    writer.finish().unwrap()
}

fn data_files(storage: &Storage) -> usize {
    storage
        .list_after("", "")
        .unwrap()
        .iter()
        .filter(|file| file.name.ends_with(".parquet") && !file.name.contains("_delta_log"))
        .count()
}

#[test]
fn a_write_that_conflicts_deletes_its_files() {
    let (_, storage) = empty();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let loser = begin(&storage, SaveMode::Overwrite);
    let lost = files(&loser);
    let winner = begin(&storage, SaveMode::Append);
    let won = files(&winner);
    assert_eq!(data_files(&storage), 2);
    winner.commit(won, Operation::new("WRITE")).unwrap();
    let error = loser.commit(lost, Operation::new("WRITE")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict);
    assert_eq!(data_files(&storage), 1);
}

/// Some file systems round a file's time once the file is no longer cached.
#[test]
fn a_commit_whose_file_time_changed_is_still_the_same_commit() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let read = Snapshot::open(&storage, None).unwrap();
    let commit =
        std::fs::File::options().append(true).open(directory.path().join(LogFileName::Commit(0).path()));
    commit.unwrap().set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000)).unwrap();
    assert_eq!(read.refresh().unwrap().version(), 0);
    assert_eq!(begin_on(&read, SaveMode::Append).and_then(write_row).unwrap(), 1);
}

/// If the outcome of a commit is unknown, it may have succeeded, so its data files are kept.
#[test]
fn files_are_kept_while_the_state_is_unknown() {
    for fault in [Fault::LostBefore, Fault::ExistsAfter] {
        let (store, storage) = empty();
        creation(&storage, &environment()).commit_or_fail().unwrap();
        let write = begin(&storage, SaveMode::Append);
        let files = files(&write);
        store.fail(move |_, call| match call.op {
            Op::Create => Some(fault),
            Op::Get if call.path.ends_with("01.json") => Some(Fault::LostBefore),
            _ => None,
        });
        let error = write.commit(files, Operation::new("WRITE")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{fault:?}");
        store.heal();
        assert_eq!(data_files(&storage), 1, "{fault:?}");
    }
}

/// The rows of an overwrite were computed from the version that was read. Rows that were committed later must not
/// disappear.
#[test]
fn an_overwrite_of_an_older_version_conflicts() {
    let (_, storage) = empty();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let read = Snapshot::open(&storage, None).unwrap();
    write_row(begin(&storage, SaveMode::Append)).unwrap();
    let error = begin_on(&read, SaveMode::Overwrite).and_then(write_row).unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::CommitConflict, Some(1)), "{error}");
    assert_eq!(data_files(&storage), 1);
    // An overwrite of the current version succeeds.
    let read = read.refresh().unwrap();
    assert_eq!(begin_on(&read, SaveMode::Overwrite).and_then(write_row).unwrap(), 2);
    assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()).len(), 1);
}

/// An append reads no data, so it conflicts with nothing that was committed before it began. Even a change of the
/// metadata does not matter, because the rows are fitted to the newest schema.
#[test]
fn an_append_is_based_on_the_newest_version() {
    let (_, storage) = empty();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let read = Snapshot::open(&storage, None).unwrap();
    write_row(begin(&storage, SaveMode::Append)).unwrap();
    write_commit(&storage, 2, &[metadata_line(&[("a".to_owned(), "b".to_owned())].into())]);
    let write = begin_on(&read, SaveMode::Append).unwrap();
    assert_eq!(write.base().unwrap().version(), 2);
    assert_eq!(write_row(write).unwrap(), 3);
    assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()).len(), 2);
}

#[test]
fn ignore_and_error_apply_to_the_table_that_was_read() {
    let (_, storage) = empty();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let read = Snapshot::open(&storage, None).unwrap();
    assert!(PendingWrite::begin_on(&read, request(SaveMode::Ignore), &environment()).unwrap().is_none());
    let error = begin_on(&read, SaveMode::ErrorIfExists).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TableAlreadyExists);
}

/// Two writers append to a table that does not exist. One of them creates the table, and the other appends to it.
#[test]
fn an_append_does_not_conflict_with_the_creation_of_the_same_table() {
    let (_, storage) = empty();
    let (first, second) = (begin(&storage, SaveMode::Append), begin(&storage, SaveMode::Append));
    let other = begin(&storage, SaveMode::ErrorIfExists);
    let mut wider = request(SaveMode::Append);
    wider.schema = two_columns();
    let wider = PendingWrite::begin(&storage, wider, &Environment::system()).unwrap().unwrap();
    assert_eq!(write_row(first).unwrap(), 0);
    assert_eq!(write_row(second).unwrap(), 1);
    for write in [other, wider] {
        assert_eq!(write_row(write).unwrap_err().kind(), ErrorKind::TableAlreadyExists);
    }
    assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()).len(), 2);
    assert_eq!(data_files(&storage), 2);
}

#[test]
fn an_append_to_a_table_with_another_partitioning_is_refused() {
    let (_, storage) = empty();
    let begin = |columns: &[&str]| {
        let mut request = WriteRequest::new(two_columns(), SaveMode::Append);
        request.partition_by = Some(columns.iter().map(|column| (*column).to_owned()).collect());
        PendingWrite::begin(&storage, request, &Environment::system()).unwrap().unwrap()
    };
    let (first, same, other) = (begin(&["b"]), begin(&["b"]), begin(&[]));
    assert_eq!(write_row(first).unwrap(), 0);
    assert_eq!(write_row(same).unwrap(), 1);
    assert_eq!(write_row(other).unwrap_err().kind(), ErrorKind::TableAlreadyExists);
}

/// "Clustered Table": if two writers create a table, the table keeps the definition of the first one.
#[test]
fn an_append_keeps_the_clustering_columns_of_a_table_that_was_just_created() {
    for columns in [Some(vec![ColumnPath::new(["id"])]), None] {
        let (_, storage) = empty();
        let mut clusterable = request(SaveMode::Append);
        clusterable.configuration.insert("delta.feature.clustering".to_owned(), "supported".to_owned());
        let loser = PendingWrite::begin(&storage, clusterable, &Environment::system()).unwrap().unwrap();
        let mut definition = TableDefinition::new(schema());
        definition.clustering_columns.clone_from(&columns);
        let mode = CreationMode::ErrorIfExists;
        let winner = PendingWrite::define(&storage, &definition, mode, Vec::new(), &environment());
        assert_eq!(write_row(winner.unwrap().unwrap()).unwrap(), 0);
        assert_eq!(write_row(loser).unwrap(), 1);
        let found = Snapshot::open(&storage, None).unwrap().clustering_columns().unwrap();
        assert_eq!(found.len(), columns.map_or(0, |columns| columns.len()));
    }
}

/// With the mode `ignore`, an existing table is not changed, even if another writer has just created it.
#[test]
fn a_table_that_another_writer_has_just_created_is_ignored() {
    let (_, storage) = empty();
    let (first, second) = (begin(&storage, SaveMode::Ignore), begin(&storage, SaveMode::Ignore));
    assert_eq!(write_row(first).unwrap(), 0);
    let files = files(&second);
    let outcome = second.commit(files, Operation::new("WRITE")).unwrap();
    assert!(matches!(outcome, WriteOutcome::TableExists(_)), "{outcome:?}");
    assert_eq!((outcome.version(), Snapshot::open(&storage, None).unwrap().version()), (None, 0));
    assert_eq!(data_files(&storage), 1);
}

/// Protocol: "Transaction Identifiers". A job that runs twice at once must not write its rows a second time.
#[test]
fn an_application_that_created_the_table_does_not_write_the_same_version_again() {
    for mode in [SaveMode::Append, SaveMode::Overwrite, SaveMode::ErrorIfExists, SaveMode::Ignore] {
        let (_, storage) = empty();
        let (first, again) = (begin_as(&storage, mode, 1), begin_as(&storage, mode, 1));
        assert_eq!(write_row(first).unwrap(), 0);
        assert_eq!(applied(again), (1, 1, 0), "{mode:?}");
        assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()).len(), 1);
        assert_eq!(data_files(&storage), 1);
    }
}

/// Begins a write that the application `a` has numbered `version`.
fn begin_as(storage: &Storage, mode: SaveMode, version: i64) -> PendingWrite {
    let mut request = request(mode);
    request.app_transactions = vec![SetTransaction::new("a", version)];
    PendingWrite::begin(storage, request, &Environment::system()).unwrap().unwrap()
}

/// Commits a write that was done before, so it has no effect. Returns its number, the recorded number, and the version
/// of the table.
fn applied(write: PendingWrite) -> (i64, i64, u64) {
    let files = files(&write);
    match write.commit(files, Operation::new("WRITE")).unwrap() {
        WriteOutcome::AlreadyApplied(applied) => (applied.version, applied.recorded, applied.table_version),
        outcome => panic!("{outcome:?}"),
    }
}

/// Protocol: "Transaction Identifiers". In every mode, the record of an earlier write is found before a row is
/// written. If another process makes the same write after that, the commit finds its record. Neither the mode nor other
/// changes in the other process's commit matter.
#[test]
fn a_write_that_was_done_before_has_no_effect() {
    let (_, storage) = empty();
    let modes = [SaveMode::Append, SaveMode::Overwrite, SaveMode::ErrorIfExists];
    write_row(begin_as(&storage, SaveMode::ErrorIfExists, 5)).unwrap();
    for (mode, version) in modes.into_iter().flat_map(|mode| [(mode, 5), (mode, 4)]) {
        let again = begin_as(&storage, mode, version);
        let found = again.already_applied().map(|found| (found.recorded, found.table_version));
        assert_eq!(found, Some((5, 0)), "{mode:?} of {version}");
        assert_eq!(applied(again), (version, 5, 0), "{mode:?} of {version}");
        assert_eq!(data_files(&storage), 1);
    }
    for (number, mode) in [SaveMode::Append, SaveMode::Overwrite].into_iter().enumerate() {
        let version = 6 + i64::try_from(number).unwrap();
        let read = Snapshot::open(&storage, None).unwrap();
        let writes = [SaveMode::Overwrite, mode].map(|mode| begin_as(&storage, mode, version));
        assert!(writes.iter().all(|write| write.already_applied().is_none()));
        let [first, again] = writes;
        let won = write_row(first).unwrap();
        assert_eq!(applied(again), (version, version, won), "{mode:?}");
        let mut request = request(mode);
        request.app_transactions = vec![SetTransaction::new("a", version)];
        let late = PendingWrite::begin_on(&read, request, &Environment::system()).unwrap().unwrap();
        assert_eq!(
            applied(late),
            (version, version, won),
            "{mode:?} based on a snapshot that was read before"
        );
        assert_eq!(Snapshot::open(&storage, None).unwrap().version(), won);
        assert_eq!(data_files(&storage), number + 2, "the files of the writes without effect are deleted");
    }
    let error = {
        let again = begin_as(&storage, SaveMode::Append, 1);
        let files = files(&again);
        again.commit_or_fail(files, Operation::new("WRITE")).unwrap_err()
    };
    assert_eq!((error.kind(), error.reason()), (ErrorKind::CommitConflict, Some("app_transaction")));
    // If two instances of an application make different writes, they do conflict.
    let (older, newer) = (begin_as(&storage, SaveMode::Append, 8), begin_as(&storage, SaveMode::Append, 9));
    write_row(older).unwrap();
    let error = write_row(newer).unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::CommitConflict, Some("app_transaction")));
}

fn two_columns() -> StructType {
    let json = schema().to_json();
    let field = r#"{"name":"b","type":"long","nullable":true,"metadata":{}}]}"#;
    StructType::from_json(&json.replacen("]}", &format!(",{field}"), 1)).unwrap()
}

/// Protocol: "Checkpoints", `delta.checkpoint.writeStatsAsJson`: if a checkpoint has no statistics as JSON, they are
/// read from its struct.
#[test]
fn statistics_of_checkpoints_are_kept_as_text_or_as_structs() {
    for as_json in ["true", "false"] {
        let (_, storage) = empty();
        let mut creation = request(SaveMode::ErrorIfExists);
        creation.configuration = [
            ("delta.checkpointInterval", "2"),
            ("delta.checkpoint.writeStatsAsStruct", "true"),
            ("delta.checkpoint.writeStatsAsJson", as_json),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        write_row(PendingWrite::begin(&storage, creation, &Environment::system()).unwrap().unwrap()).unwrap();
        for _ in 0..2 {
            write_row(begin(&storage, SaveMode::Append)).unwrap();
        }
        (0..3u64).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
        let snapshot = Snapshot::open(&storage, None).unwrap();
        assert_eq!(snapshot.version(), 2);
        let stats = snapshot.replay_files(FileColumns::of(&[FileColumn::Stats])).unwrap();
        let non_null = |batch: RecordBatch| {
            let column = batch.column_by_name("stats").unwrap();
            column.len() - column.null_count()
        };
        assert_eq!(stats.map(|batch| non_null(batch.unwrap())).sum::<usize>(), 3, "{as_json}");
    }
}

/// A commit may have succeeded without its writer knowing it. If the writer repeats the commit with the same files,
/// they are not deleted.
#[test]
fn files_that_are_part_of_the_table_are_not_deleted_when_their_commit_is_repeated() {
    let (_, storage) = empty();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let rows = || paths(&Snapshot::open(&storage, None).unwrap()).len();
    let (first, again) = (begin_as(&storage, SaveMode::Append, 1), begin_as(&storage, SaveMode::Append, 1));
    let appended = files(&first);
    first.commit(appended.clone(), Operation::new("WRITE")).unwrap();
    for repeated in [again, begin_as(&storage, SaveMode::Append, 1)] {
        let outcome = repeated.commit(appended.clone(), Operation::new("WRITE")).unwrap();
        assert!(matches!(outcome, WriteOutcome::AlreadyApplied(_)));
        assert_eq!((data_files(&storage), rows()), (1, 1));
    }
    let (first, again) = (begin(&storage, SaveMode::Overwrite), begin(&storage, SaveMode::Overwrite));
    let (shared, own) = (files(&first), files(&again));
    first.commit(shared.clone(), Operation::new("WRITE")).unwrap();
    let error = again.commit([shared, own].concat(), Operation::new("WRITE")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict);
    // The appended file remains until a VACUUM. The file that only the second overwrite used has been deleted.
    assert_eq!((data_files(&storage), rows()), (2, 1));
    // The file belongs to the version of the append, although no longer to the newest version.
    let outcome = begin_as(&storage, SaveMode::Append, 1).commit(appended, Operation::new("WRITE")).unwrap();
    assert!(matches!(outcome, WriteOutcome::AlreadyApplied(_)));
    assert_eq!((data_files(&storage), rows()), (2, 1));
}

/// Engines leave out commits that contain no change, as the JVM connector does.
#[test]
fn a_write_that_changes_nothing_can_be_left_out() {
    let (_, storage) = empty();
    let commit = |write: PendingWrite, files: Vec<deltalog::engine::protocol::Add>| {
        let committed = write.commit_if_changed(files, Operation::new("WRITE")).unwrap();
        committed.map(|committed| committed.version)
    };
    // Creating a table is a change, even without rows.
    assert_eq!(commit(begin(&storage, SaveMode::Append), Vec::new()), Some(0));
    for mode in [SaveMode::Append, SaveMode::Overwrite] {
        assert_eq!(commit(begin(&storage, mode), Vec::new()), None);
    }
    let mut partly = request(SaveMode::Overwrite);
    partly.replace_where = Some(deltalog::ReplaceWhere::new("id = 5"));
    let begin_partly =
        || PendingWrite::begin(&storage, partly.clone(), &Environment::system()).unwrap().unwrap();
    assert_eq!(commit(begin_partly(), Vec::new()), None);
    assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 0);
    // The progress of an application, new rows, and removed rows are changes.
    assert_eq!(commit(begin_as(&storage, SaveMode::Append, 1), Vec::new()), Some(1));
    let write = begin(&storage, SaveMode::Append);
    let files = files(&write);
    assert_eq!(commit(write, files), Some(2));
    assert_eq!(commit(begin_partly(), Vec::new()), None);
    assert_eq!(commit(begin(&storage, SaveMode::Overwrite), Vec::new()), Some(3));
    let applied =
        begin_as(&storage, SaveMode::Append, 1).commit_if_changed(Vec::new(), Operation::new("WRITE"));
    assert_eq!(applied.unwrap_err().kind(), ErrorKind::CommitConflict);
    let skipping = || {
        let mut write = begin(&storage, SaveMode::Append);
        write.skip_if_empty();
        write
    };
    let skipped = skipping().commit(Vec::new(), Operation::new("WRITE")).unwrap();
    assert_eq!(skipped, WriteOutcome::Unchanged);
    let failed = skipping().commit_or_fail(Vec::new(), Operation::new("WRITE")).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::InvalidArgument);
    // By default, every write gets a commit, so that the history shows it.
    let write = begin(&storage, SaveMode::Append);
    assert_eq!(write.commit(Vec::new(), Operation::new("WRITE")).unwrap().version(), Some(4));
}
