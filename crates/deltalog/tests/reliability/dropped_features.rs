//! Dropping a reader feature from a log that changes at the same time, or that has a gap. Protocol: "Supported
//! Features", "Metadata Cleanup"; the proposed section "Checkpoint Protection".

use std::collections::BTreeMap;
use std::ops::Range;

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::commit::{Operation, Transaction};
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{ErrorKind, Result, Snapshot, Storage, drop_feature};
use serde_json::json;

use crate::common::store::{FaultyStore, Op};
use crate::common::{
    NOW_MS, add_line, append, empty, environment, metadata_line, paths, storage_in, write_commit,
};

const PROTECTED: &str = "delta.requireCheckpointProtectionBeforeVersion";

/// Creates a log whose versions in `using` use the feature. The first commit of the range enables the feature, and the
/// commit after the range disables it; the other commits add files.
fn log(versions: u64, using: Range<u64>) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let protocol = concat!(
        r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"#,
        r#""readerFeatures":["typeWidening"],"writerFeatures":["typeWidening"]}}"#
    );
    let metadata = |is_used: bool| {
        let property = is_used.then(|| ("delta.enableTypeWidening".to_owned(), "true".to_owned()));
        metadata_line(&property.into_iter().collect())
    };
    write_commit(&storage, 0, &[protocol.to_owned(), metadata(false)]);
    for version in 1..versions {
        let line = match version {
            _ if version == using.start => metadata(true),
            _ if version == using.end => metadata(false),
            _ => add_line(&format!("{version}.parquet")),
        };
        write_commit(&storage, version, &[line]);
    }
    (store, storage)
}

fn checkpoint(storage: &Storage, version: u64) {
    write_checkpoint(&Snapshot::open(storage, Some(version)).unwrap(), &environment()).unwrap();
}

fn delete_commits(storage: &Storage, versions: impl IntoIterator<Item = u64>) {
    versions.into_iter().for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
}

/// Drops the feature. Returns the version without it, and the version before which checkpoints are protected.
fn dropped(base: &Snapshot) -> Result<(u64, Option<u64>)> {
    let committed = drop_feature(base, "typeWidening", false, Default::default(), &environment())?;
    let newest = base.refresh().unwrap();
    assert_eq!((newest.version(), newest.protocol().min_reader_version), (committed.version, 1));
    let protected = newest.metadata().property(PROTECTED).map(|version| version.parse().unwrap());
    let is_supported =
        newest.protocol().writer_features.iter().flatten().any(|name| name == "checkpointProtection");
    assert_eq!(is_supported, protected.is_some());
    Ok((committed.version, protected))
}

/// Does `work` in another process when the first request of kind `op` for the file `name` arrives.
fn meanwhile(
    store: &FaultyStore,
    op: Op,
    name: LogFileName,
    work: impl Fn(&Storage) + Send + Sync + 'static,
) {
    let (other, path) = (storage_in(&store.reconnect()), name.path());
    let mut is_done = false;
    store.fail(move |_, call| {
        if !is_done && call.op == op && call.path.ends_with(&path) {
            is_done = true;
            // This runs on another thread, because the current thread is in the middle of a request.
            std::thread::scope(|scope| scope.spawn(|| work(&other)).join().unwrap());
        }
        None
    });
}

/// If a clean-up deletes commits before they are read, their content is read from a checkpoint.
#[test]
fn a_concurrent_clean_up_hides_nothing() {
    let (store, storage) = log(5, 1..3);
    checkpoint(&storage, 2);
    let base = Snapshot::open(&storage, None).unwrap();
    meanwhile(&store, Op::Get, LogFileName::Commit(1), |other| delete_commits(other, 0..2));
    assert_eq!(dropped(&base).unwrap(), (8, Some(8)));
    assert!(storage.head(&LogFileName::Commit(1).path()).unwrap().is_none());
}

#[test]
fn what_was_cleaned_up_needs_no_protection() {
    let (_, storage) = log(5, 1..3);
    let base = Snapshot::open(&storage, None).unwrap();
    checkpoint(&storage, 4);
    delete_commits(&storage, 0..4);
    assert_eq!(dropped(&base).unwrap(), (5, None));
}

/// If commits after an old checkpoint are missing, their actions are found in the next checkpoint.
#[test]
fn a_gap_hides_nothing() {
    let (_, storage) = log(8, 3..5);
    checkpoint(&storage, 1);
    checkpoint(&storage, 4);
    delete_commits(&storage, [0, 2, 3]);
    assert_eq!(dropped(&Snapshot::open(&storage, None).unwrap()).unwrap(), (11, Some(11)));
}

/// Checkpoints that already exist are used to hide versions, so only the missing ones are written.
#[test]
fn only_missing_checkpoints_are_written() {
    let (_, storage) = log(8, 1..3);
    for version in [2, 4, 6] {
        checkpoint(&storage, version);
    }
    assert_eq!(dropped(&Snapshot::open(&storage, None).unwrap()).unwrap(), (9, Some(9)));
}

/// Checkpoints before the drop's commit are protected, even if another commit takes the version that was planned for
/// the drop.
#[test]
fn a_commit_that_concerns_no_drop_moves_the_boundary() {
    let (store, storage) = log(5, 1..3);
    let base = Snapshot::open(&storage, None).unwrap();
    meanwhile(&store, Op::Create, LogFileName::Commit(8), |other| {
        let newest = Snapshot::open(other, None).unwrap();
        let mut progress = Transaction::new(&newest, Operation::new("OTHER"), &others()).unwrap();
        progress.record_progress("theirs", 1);
        progress.commit_or_fail().unwrap();
    });
    assert_eq!(dropped(&base).unwrap(), (9, Some(9)));
}

/// Files that are added while the drop runs may need the feature: the drop examines them, and continues.
#[test]
fn a_drop_continues_if_rows_are_added() {
    let (store, storage) = log(5, 1..3);
    let base = Snapshot::open(&storage, None).unwrap();
    meanwhile(&store, Op::Create, LogFileName::Commit(8), |other| {
        append(&Snapshot::open(other, None).unwrap(), "theirs", &others()).commit_or_fail().unwrap();
    });
    assert_eq!(dropped(&base).unwrap(), (9, Some(9)));
    assert!(paths(&Snapshot::open(&storage, None).unwrap()).contains(&"theirs".to_owned()));
}

/// Versions that cannot be read may use the feature. The checkpoints that hide these versions are written once, even if
/// the drop starts over.
#[test]
fn versions_that_cannot_be_read_are_hidden_once() {
    let (store, storage) = log(1, 0..0);
    let metadata = metadata_line(&BTreeMap::new());
    let unknown = metadata.replace(r#"\"long\""#, r#"\"unknown\""#);
    assert_ne!(unknown, metadata);
    write_commit(&storage, 1, &[unknown]);
    write_commit(&storage, 2, &[metadata]);
    let base = Snapshot::open(&storage, None).unwrap();
    assert_eq!(Snapshot::open(&storage, Some(1)).unwrap_err().kind(), ErrorKind::Unsupported);
    meanwhile(&store, Op::Create, LogFileName::Commit(6), |other| {
        let theirs = BTreeMap::from([("theirs".to_owned(), "1".to_owned())]);
        write_commit(other, 6, &[metadata_line(&theirs)]);
    });
    assert_eq!(dropped(&base).unwrap(), (7, Some(7)));
}

fn others() -> deltalog::Environment {
    deltalog::Environment::system()
}

/// Creates a log whose versions 1 and 2 use deletion vectors: a file gets one, and is removed.
fn log_with_vectors() -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let protocol = concat!(
        r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"#,
        r#""readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}}"#
    );
    write_commit(&storage, 0, &[protocol.to_owned(), metadata_line(&BTreeMap::new())]);
    write_commit(&storage, 1, &[with_vector("add", "a.parquet")]);
    write_commit(&storage, 2, &[with_vector("remove", "a.parquet"), add_line("b.parquet")]);
    (store, storage)
}

/// Returns a file action with its own deletion vector, which deletes the rows 3, 4, 7, 11, 18 and 29.
fn with_vector(action: &str, path: &str) -> String {
    let vector = json!({
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 6,
    });
    let file = json!({
        "path": path,
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "deletionTimestamp": NOW_MS,
        "dataChange": true,
        "deletionVector": vector,
    });
    json!({ action: file }).to_string()
}

/// Protocol: "Deletion Vectors". If other writers add files with deletion vectors before the drop's last commit, there
/// is a conflict. There is also a conflict if they add a file again that was removed with a deletion vector: clients
/// that identify files by path alone would consider it removed.
#[test]
fn concurrently_added_vectors_are_noticed() {
    for line in [with_vector("add", "c.parquet"), add_line("a.parquet")] {
        let (store, storage) = log_with_vectors();
        let base = Snapshot::open(&storage, None).unwrap();
        // Three commits are empty, and the drop is the next one.
        meanwhile(&store, Op::Create, LogFileName::Commit(6), move |other| {
            write_commit(other, 6, std::slice::from_ref(&line));
        });
        let error = drop_feature(&base, "deletionVectors", false, Default::default(), &environment());
        // The drop reads the table again and would rewrite the file, but there is none.
        let error = error.map(|committed| committed.version).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileNotFound, "{error}");
        assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 6);
    }
}

/// The tombstone of a file with a deletion vector is a trace of the feature. If the file was restored without the
/// vector, checkpoints also contain the trace until the file is removed again, so they do not hide it.
#[test]
fn checkpoints_of_restored_files_hide_nothing() {
    let (_, storage) = log_with_vectors();
    write_commit(&storage, 3, &[add_line("a.parquet")]);
    (3..6).for_each(|version| {
        write_commit(&storage, version + 1, &[add_line(&format!("{version}.parquet"))]);
        checkpoint(&storage, version);
    });
    let remove = json!({"remove": {"path": "a.parquet", "deletionTimestamp": NOW_MS, "dataChange": true}});
    write_commit(&storage, 7, &[remove.to_string()]);
    let base = Snapshot::open(&storage, None).unwrap();
    let committed =
        drop_feature(&base, "deletionVectors", false, Default::default(), &environment()).unwrap();
    // Version 7 is the newest that uses the feature. The drop adds three empty commits with checkpoints, and then
    // version 11.
    assert_eq!(committed.version, 11);
}

/// A drop that must wait deletes nothing, even if a part of the history is old enough.
#[test]
fn a_drop_that_has_to_wait_deletes_nothing() {
    let (store, storage) = log(8, 3..5);
    checkpoint(&storage, 2);
    (0..3).for_each(|version| {
        store.objects().set_modified_ms(&format!("t/{}", LogFileName::Commit(version).path()), 0);
    });
    let files = || storage.list_after("_delta_log", "").unwrap().len();
    let (before, base) = (files(), Snapshot::open(&storage, None).unwrap());
    let drop = || drop_feature(&base, "typeWidening", true, Default::default(), &others()).map(|_| ());
    let error = drop().unwrap_err();
    assert!(error.to_string().contains("version 4 of the table"), "{error}");
    assert!(error.hint().unwrap().contains("drop the feature again at 20"), "{error}");
    assert!(files() > before && storage.head(&LogFileName::Commit(0).path()).unwrap().is_some());
    store.take_calls();
    let again = Snapshot::open(&storage, None).unwrap();
    drop_feature(&again, "typeWidening", true, Default::default(), &others()).unwrap_err();
    assert!(!store.take_calls().iter().any(|call| call.op == Op::Delete));
}
