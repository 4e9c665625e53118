//! The clean-up that follows a commit: how much it deletes, when it begins, and when it stops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{Background, Environment, Snapshot, TableChange, alter_table};
use uuid::Uuid;

use super::{HOUR_MS, at, checkpoint, clean, commit_at, daily, readable, write_at};
use crate::common::forms::Form;
use crate::common::store::{FaultyStore, Op};
use crate::common::{NOW_MS, append, empty, first_lines, metadata_line, storage_in, write_commit, write_log};

/// Returns an environment whose clock advances by a second each time it is read.
fn slow() -> Environment {
    let time = AtomicI64::new(NOW_MS);
    Environment::new(move || time.fetch_add(1000, Ordering::Relaxed), Uuid::new_v4)
}

/// Returns the number of deletions since the last call.
fn take_deletions(store: &FaultyStore) -> usize {
    store.take_calls().iter().filter(|call| call.op == Op::Delete).count()
}

/// A commit that writes a checkpoint cleans up the log afterwards, unless a table property prevents it.
#[test]
fn a_commit_cleans_up_after_its_checkpoint() {
    let commit = |properties: &[(&str, &str)]| {
        let (store, storage) = daily(10, &[]);
        let properties: BTreeMap<_, _> =
            properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        write_commit(&storage, 0, &first_lines(&properties));
        commit_at(&store, 0, 0);
        checkpoint(&storage, 5, Form::Classic);
        let base = Snapshot::open(&storage, None).unwrap();
        append(&base, "new", &at(NOW_MS)).commit_or_fail().unwrap();
        readable(&storage, 11).len()
    };
    assert_eq!(commit(&[]), 6);
    assert_eq!(commit(&[("delta.enableExpiredLogCleanup", "true")]), 6);
    assert_eq!(commit(&[("delta.enableExpiredLogCleanup", "False")]), 11);
    assert_eq!(commit(&[("delta.logRetentionDuration", "interval 1 fortnight")]), 11);
    assert_eq!(commit(&[("delta.checkpointInterval", "7")]), 11);
}

/// The clean-up after a commit deletes a limited number of files, beginning with the oldest versions.
#[test]
fn a_commit_deletes_a_limited_number_of_files() {
    let (store, storage) = empty();
    write_log(&storage, 1110);
    (0..1110).for_each(|version| commit_at(&store, version, 0));
    checkpoint(&storage, 1100, Form::Classic);
    let base = Snapshot::open(&storage, None).unwrap();
    store.take_calls();
    append(&base, "new", &at(NOW_MS)).commit_or_fail().unwrap();
    assert_eq!(take_deletions(&store), 1000);
    assert_eq!(readable(&storage, 1111).len(), 1111 - 1100);
    assert!(storage.get(&LogFileName::Commit(1000).path()).unwrap().is_some());
    assert!(storage.get(&LogFileName::Commit(999).path()).unwrap().is_none());
    assert_eq!(clean(&storage, NOW_MS).unwrap().len(), 100);
}

/// Only one checkpoint per hour is followed by a clean-up, because listing a long log at every checkpoint would be too
/// expensive.
#[test]
fn only_the_first_checkpoint_of_an_hour_is_followed_by_a_clean_up() {
    let readable_after = |last_checkpoint_ms| {
        let (store, storage) = daily(10, &[(5, Form::Classic)]);
        write_at(&store, &LogFileName::ClassicCheckpoint(5).path(), last_checkpoint_ms);
        let base = Snapshot::open(&storage, None).unwrap();
        append(&base, "new", &at(NOW_MS)).commit_or_fail().unwrap();
        readable(&storage, 11).len()
    };
    let hour = NOW_MS / HOUR_MS * HOUR_MS;
    assert_eq!((readable_after(hour - 1), readable_after(hour), readable_after(NOW_MS)), (6, 11, 11));
}

/// The clean-up must not delay the commit of a user for long.
#[test]
fn a_long_clean_up_continues_after_the_next_commits() {
    let (store, storage) = daily(10, &[(5, Form::Classic)]);
    let slow = slow();
    let mut base = Snapshot::open(&storage, None).unwrap();
    for (number, expected) in [1, 1, 1, 1, 1, 0, 0].into_iter().enumerate() {
        store.take_calls();
        append(&base, &format!("new {number}"), &slow).commit_or_fail().unwrap();
        assert_eq!(take_deletions(&store), expected, "after commit {number}");
        base = base.refresh().unwrap();
    }
    assert_eq!(readable(&storage, 17).keys().copied().collect::<Vec<_>>(), (5..17).collect::<Vec<_>>());
}

/// The table's retention may have become longer since a clean-up began. In that case the clean-up must keep the files
/// that it has not deleted yet.
#[test]
fn files_left_by_a_clean_up_are_kept_if_the_retention_grows() {
    for (retention, expected) in [
        ("interval 10000 days", [1, 0, 0, 0]),
        ("interval 30 days", [1, 1, 1, 1]),
        ("interval 7 days", [1, 1, 1, 1]),
    ] {
        let (store, storage) = daily(10, &[(5, Form::Classic)]);
        let mut base = Snapshot::open(&storage, None).unwrap();
        let mut deletions = Vec::new();
        for number in 0..4 {
            store.take_calls();
            append(&base, &format!("new {number}"), &slow()).commit_or_fail().unwrap();
            deletions.push(take_deletions(&store));
            if number == 0 {
                let properties = [("delta.logRetentionDuration".to_owned(), retention.to_owned())];
                write_commit(&storage, 11, &[metadata_line(&BTreeMap::from(properties))]);
            }
            base = base.refresh().unwrap();
        }
        assert_eq!(deletions, expected, "{retention}");
    }
}

/// If the `Background` has ended, or the process is a forked child, a commit does the clean-up itself, but only for a
/// short time.
#[test]
fn a_commit_whose_work_is_given_back_cleans_up_for_a_short_time() {
    let (store, storage) = daily(10, &[(5, Form::Classic)]);
    let background = Background::new();
    background.close();
    let base = Snapshot::open(&storage, None).unwrap();
    store.take_calls();
    append(&base, "new", &slow().with_background(&background)).commit_or_fail().unwrap();
    assert_eq!(take_deletions(&store), 1);
}

/// A clean-up in the background may take hours. It respects changes of the table properties that a user makes while it
/// runs.
#[test]
fn a_clean_up_in_the_background_reads_the_table_properties_again() {
    for (property, value, expected) in [
        ("delta.enableExpiredLogCleanup", "false", 1),
        ("delta.logRetentionDuration", "interval 10000 days", 1),
        ("delta.logRetentionDuration", "interval 7 days", 5),
    ] {
        let (store, storage) = daily(10, &[(5, Form::Classic)]);
        let base = Snapshot::open(&storage, None).unwrap();
        let other = storage_in(&store.reconnect());
        let properties = BTreeMap::from([(property.to_owned(), value.to_owned())]);
        store.fail(move |_, call| {
            if call.op == Op::Delete && call.path.ends_with(&LogFileName::Commit(0).path()) {
                // This runs on another thread, because the current thread is in the middle of a request.
                let lines = [metadata_line(&properties)];
                std::thread::scope(|scope| scope.spawn(|| write_commit(&other, 11, &lines)).join().unwrap());
            }
            None
        });
        let background = Background::new();
        append(&base, "new", &slow().with_background(&background)).commit_or_fail().unwrap();
        assert!(background.wait(Duration::from_secs(60)));
        assert_eq!(take_deletions(&store), expected, "{property} = {value}");
    }
}

/// A commit of a table that keeps its log does not continue the clean-up of an earlier commit.
#[test]
fn a_commit_that_keeps_the_log_deletes_nothing() {
    let (store, storage) = daily(10, &[(5, Form::Classic)]);
    let base = Snapshot::open(&storage, None).unwrap();
    append(&base, "new", &slow()).commit_or_fail().unwrap();
    assert_eq!(take_deletions(&store), 1);
    let keep = BTreeMap::from([("delta.enableExpiredLogCleanup".to_owned(), "false".to_owned())]);
    let change = TableChange::SetProperties(keep);
    alter_table(&base.refresh().unwrap(), &change, Default::default(), &slow()).unwrap().unwrap();
    assert_eq!(take_deletions(&store), 0);
}
