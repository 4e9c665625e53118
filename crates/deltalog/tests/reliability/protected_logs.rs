//! Clean-up of logs with protected checkpoints. Table feature `checkpointProtection`; proposed section of the
//! protocol: "Checkpoint Protection".

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{Environment, Snapshot, Storage, clean_up_log};
use serde_json::json;
use uuid::Uuid;

use crate::common::store::{FaultyStore, Op};
use crate::common::warnings::warnings;
use crate::common::{NOW_MS, append, empty, environment, metadata_line, storage_in, write_commit, write_log};

const PROTECTED: &str = "delta.requireCheckpointProtectionBeforeVersion";

fn at(time_ms: i64) -> Environment {
    Environment::new(move || time_ms, Uuid::new_v4)
}

/// Returns an environment whose clock advances each time it is read.
fn slow(step_ms: i64) -> Environment {
    let time = AtomicI64::new(NOW_MS);
    Environment::new(move || time.fetch_add(step_ms, Ordering::Relaxed), Uuid::new_v4)
}

fn protocol(features: &[&str]) -> String {
    json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}})
        .to_string()
}

fn protection(before: u64) -> [String; 2] {
    let properties = BTreeMap::from([(PROTECTED.to_owned(), before.to_string())]);
    [protocol(&["checkpointProtection"]), metadata_line(&properties)]
}

/// Creates a log with this many commits, all of them expired, and with checkpoints. The last commit protects the
/// history before the version `protected`.
fn log(versions: u64, checkpoints: &[u64], protected: u64) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    write_log(&storage, versions);
    for version in checkpoints {
        write_checkpoint(&Snapshot::open(&storage, Some(*version)).unwrap(), &environment()).unwrap();
    }
    if protected > 0 {
        write_commit(&storage, versions, &protection(protected));
    }
    for file in storage.list_after("_delta_log", "").unwrap() {
        store.objects().set_modified_ms(&format!("t/_delta_log/{}", file.name), 0);
    }
    store.take_calls();
    (store, storage)
}

fn oldest_commit(storage: &Storage) -> u64 {
    let exists = |version: &u64| storage.head(&LogFileName::Commit(*version).path()).unwrap().is_some();
    (0..10_000).find(exists).unwrap()
}

fn clean(storage: &Storage) -> usize {
    clean_up_log(&Snapshot::open(storage, None).unwrap(), &at(NOW_MS), false).unwrap().files.len()
}

/// The protocol of a version that cannot be read is unknown. Versions before it are deleted and the later ones are
/// kept, without an error.
#[test]
fn a_history_that_cannot_be_read_is_kept() {
    let damage = |store: &FaultyStore, storage: &Storage, name: &LogFileName| {
        storage.delete(&name.path()).unwrap();
        storage.put(&name.path(), "{".into()).unwrap();
        store.objects().set_modified_ms(&format!("t/{}", name.path()), 0);
    };
    let commit = LogFileName::Commit;
    for (first, damaged, expected) in [
        (0, commit(0), 0),
        (0, commit(3), 2),
        (0, commit(7), 6),
        // The log begins with version 0, so the protocols of all versions are known without a checkpoint.
        (0, LogFileName::ClassicCheckpoint(2), 6),
        (2, LogFileName::ClassicCheckpoint(2), 2),
    ] {
        let (store, storage) = log(20, &[2, 4, 6, 15], 15);
        (0..first).for_each(|version| storage.delete(&commit(version).path()).unwrap());
        // The checkpoint of version 15 has not expired, so only a part of the history before it could be deleted.
        (8..=20).for_each(|version| {
            let path = format!("t/{}", commit(version).path());
            store.objects().set_modified_ms(&path, NOW_MS - 1);
        });
        let newest = Snapshot::open(&storage, None).unwrap();
        damage(&store, &storage, &damaged);
        for is_first in [true, false] {
            let (logged, cleaned) = warnings(|| clean_up_log(&newest, &at(NOW_MS), false));
            cleaned.unwrap();
            assert_eq!(oldest_commit(&storage), expected, "{damaged:?}");
            let logged: Vec<_> = logged.iter().filter(|line| line.contains("protected_before")).collect();
            let has_doubt = expected < 6;
            assert_eq!(logged.len(), usize::from(is_first && has_doubt), "{damaged:?}: {logged:?}");
        }
    }
}

/// The clean-up that follows a commit takes at most two seconds. It deletes the files that it has checked by then, and
/// the next clean-up checks the rest.
#[test]
fn a_brief_clean_up_looks_at_a_part_of_the_history() {
    for (step_ms, most_reads, oldest) in [(1000, 8, 0), (200, 16, 4)] {
        let (store, storage) = log(69, &[4, 50], 69);
        let base = Snapshot::open(&storage, None).unwrap();
        store.take_calls();
        append(&base, "new", &slow(step_ms)).commit_or_fail().unwrap();
        let calls = store.take_calls();
        let is_history =
            |path: &str| (0..50).any(|version| path.ends_with(&LogFileName::Commit(version).path()));
        let deleted = calls.iter().filter(|call| call.op == Op::Delete && is_history(&call.path)).count();
        // A read of a file's metadata precedes each deletion. These reads do not count.
        let reads =
            calls.iter().filter(|call| call.op == Op::Get && is_history(&call.path)).count() - deleted;
        assert!(reads <= most_reads, "{step_ms} ms: {reads}");
        assert_eq!(oldest_commit(&storage), oldest, "{step_ms} ms");
        clean(&storage);
        assert_eq!(oldest_commit(&storage), 50);
    }
}

/// A clean-up leaves some files for the next one. If the table begins to protect its checkpoints in between, these
/// files are kept.
#[test]
fn a_protection_that_is_added_later_applies() {
    for (protected, expected) in [(0, [1, 1, 1, 1]), (8, [1, 0, 0, 0])] {
        let (store, storage) = log(10, &[5], 0);
        let mut base = Snapshot::open(&storage, None).unwrap();
        let mut deletions = Vec::new();
        for number in 0..4 {
            store.take_calls();
            append(&base, &format!("new {number}"), &slow(1000)).commit_or_fail().unwrap();
            let calls = store.take_calls();
            deletions.push(calls.iter().filter(|call| call.op == Op::Delete).count());
            if number == 0 && protected > 0 {
                write_commit(&storage, 11, &protection(protected));
            }
            base = base.refresh().unwrap();
        }
        assert_eq!(deletions, expected, "protected before {protected}");
    }
}

/// A clean-up that a user starts also checks the table's current protection, after every thousand files.
#[test]
fn a_long_clean_up_stops_at_a_protection() {
    let (store, storage) = log(1110, &[1100], 0);
    let other = storage_in(&store.reconnect());
    store.fail(move |_, call| {
        if call.op == Op::Delete && call.path.ends_with(&LogFileName::Commit(0).path()) {
            // This runs on another thread, because the current thread is in the middle of a request.
            let protect = || write_commit(&other, 1110, &protection(1105));
            std::thread::scope(|scope| scope.spawn(protect).join().unwrap());
        }
        None
    });
    assert_eq!(clean(&storage), 1000);
    assert_eq!(oldest_commit(&storage), 1000);
}
