//! A commit or a refresh checks its base: the log continues without a gap from the version that was read, and the table
//! is still the same. Protocol: "Creation of New Log Entries", "Metadata Cleanup".

use std::collections::BTreeMap;

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::commit::{ConflictReason, Outcome, WhatWasRead};
use deltalog::engine::log::LOG_DIRECTORY;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{ErrorKind, Snapshot, Storage};

use crate::common::store::{FaultyStore, Op};
use crate::common::{
    add_line, append, empty, environment, metadata_line, newest, overwrite, paths, write_commit, write_log,
};

const CHECKPOINT: u64 = 8;

/// Creates a log of 12 versions with a checkpoint.
fn log() -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    write_log(&storage, 12);
    write_checkpoint(&Snapshot::open(&storage, Some(CHECKPOINT)).unwrap(), &environment()).unwrap();
    (store, storage)
}

fn delete_commits(storage: &Storage, versions: std::ops::RangeInclusive<u64>) {
    versions.for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
}

fn drop_table(storage: &Storage) {
    for file in storage.list_after(LOG_DIRECTORY, "").unwrap() {
        storage.delete(&format!("{LOG_DIRECTORY}/{}", file.name)).unwrap();
    }
}

fn open(storage: &Storage, version: u64) -> Snapshot {
    Snapshot::open(storage, Some(version)).unwrap()
}

fn reason(outcome: deltalog::Result<Outcome>) -> ConflictReason {
    match outcome.unwrap() {
        Outcome::Conflict { conflict, .. } => conflict.reason,
        outcome => panic!("no conflict: {outcome:?}"),
    }
}

/// After a clean-up the file names of old commits are free, but readers would ignore a commit before the checkpoint.
#[test]
fn commits_are_never_placed_before_a_checkpoint() {
    for base in [3, 7, 8, 9] {
        for first_kept in [base, base + 1, 6, 8, 9] {
            let (_, storage) = log();
            let snapshot = open(&storage, base);
            let (append, overwrite) = (
                append(&snapshot, "new", &environment()),
                overwrite(&snapshot, "new", &environment()).unwrap(),
            );
            delete_commits(&storage, 0..=(first_kept - 1).min(CHECKPOINT));
            let expected = if first_kept <= base + 1 || base >= CHECKPOINT {
                ConflictReason::ConcurrentAppend {
                    file: format!("{}.parquet", base + 1),
                    read: WhatWasRead::WholeTable,
                }
            } else {
                ConflictReason::LogCleanedUp
            };
            assert_eq!(reason(overwrite.commit()), expected, "{base}, {first_kept}");
            assert_eq!(newest(&storage).version(), 11);
            assert_eq!(append.commit_or_fail().unwrap().version, 12, "{base}, {first_kept}");
            assert!(paths(&newest(&storage)).contains(&"new".to_owned()), "{base}, {first_kept}");
        }
    }
}

/// Commits that a clean-up has removed may have changed the metadata. The checkpoint shows whether they did.
#[test]
fn appends_across_a_gap_detect_metadata_changes() {
    let (_, storage) = empty();
    write_log(&storage, 12);
    let properties = BTreeMap::from([("delta.appendOnly".to_owned(), "true".to_owned())]);
    write_commit(&storage, 5, &[metadata_line(&properties)]);
    write_checkpoint(&open(&storage, CHECKPOINT), &environment()).unwrap();
    let append = append(&open(&storage, 3), "new", &environment());
    delete_commits(&storage, 0..=CHECKPOINT);
    assert_eq!(reason(append.commit()), ConflictReason::MetadataChanged);
}

#[test]
fn progress_of_an_application_is_not_recorded_across_a_gap() {
    let (_, storage) = log();
    let mut append = append(&open(&storage, 3), "new", &environment());
    append.record_progress("app", 1);
    delete_commits(&storage, 0..=CHECKPOINT);
    assert_eq!(reason(append.commit()), ConflictReason::LogCleanedUp);
}

/// Returns tables, each with an open snapshot. The log of one table has only the checkpoint of the snapshot's version,
/// and not its commit.
fn bases() -> impl Iterator<Item = (Storage, Snapshot)> {
    [(3, false), (CHECKPOINT, false), (CHECKPOINT, true), (11, true)].into_iter().map(
        |(version, cleaned_up)| {
            let (_, storage) = log();
            if cleaned_up {
                delete_commits(&storage, 0..=CHECKPOINT);
            }
            let snapshot = open(&storage, version);
            (storage, snapshot)
        },
    )
}

#[test]
fn nothing_is_committed_to_a_dropped_table() {
    for (storage, base) in bases() {
        let (append, overwrite) =
            (append(&base, "new", &environment()), overwrite(&base, "new", &environment()).unwrap());
        drop_table(&storage);
        assert_eq!(reason(append.commit()), ConflictReason::TableReplaced);
        assert_eq!(overwrite.commit_or_fail().unwrap_err().kind(), ErrorKind::CommitConflict);
        assert_eq!(storage.list_after("", "").unwrap(), []);
        assert_eq!(base.refresh().unwrap_err().kind(), ErrorKind::NotATable);
    }
}

/// The new table has fewer versions, the same number, one more, or many more.
#[test]
fn nothing_is_committed_to_another_table_at_the_same_location() {
    for versions in [1, 4, 5, 8, 9, 10, 12, 13, 20] {
        for with_checkpoint in [false, true] {
            for (storage, base) in bases() {
                let (append, overwrite) =
                    (append(&base, "new", &environment()), overwrite(&base, "new", &environment()).unwrap());
                drop_table(&storage);
                write_log(&storage, versions);
                let metadata = metadata_line(&BTreeMap::new()).replace("00000000-", "11111111-");
                write_commit(
                    &storage,
                    0,
                    &[crate::common::first_lines(&BTreeMap::new()).remove(0), metadata],
                );
                if with_checkpoint {
                    write_checkpoint(&newest(&storage), &environment()).unwrap();
                }
                let context = format!("{versions} versions after {base:?}");
                assert_eq!(reason(append.commit()), ConflictReason::TableReplaced, "{context}");
                assert_eq!(reason(overwrite.commit()), ConflictReason::TableReplaced, "{context}");
                assert_eq!(newest(&storage).version(), versions - 1, "{context}");
                assert_eq!(base.refresh().unwrap_err().kind(), ErrorKind::TableReplaced, "{context}");
            }
        }
    }
}

#[test]
fn a_snapshot_refreshes_across_a_cleanup() {
    for first_kept in 3..=9 {
        for base in [1, 3, 8, 9] {
            let (_, storage) = log();
            let held = open(&storage, base);
            delete_commits(&storage, 0..=(first_kept - 1));
            let refreshed = held.refresh().unwrap();
            assert_eq!((refreshed.version(), paths(&refreshed).len()), (11, 11), "{base}, {first_kept}");
        }
    }
}

/// A listing that lags behind shows neither the version that was read nor the commits after it.
#[test]
fn a_lagging_listing_does_not_mean_a_dropped_table() {
    let (store, storage) = empty();
    write_log(&storage, 6);
    let base = newest(&storage);
    for hidden in ["5.json", "4.json", "3.json"] {
        store.hide(hidden);
        assert_eq!(base.refresh().unwrap().version(), 5, "{hidden}");
    }
    assert_eq!(append(&base, "new", &environment()).commit_or_fail().unwrap().version, 6);
    assert_eq!(newest(&storage).version(), 6);
}

/// The check that precedes the first put takes one listing.
#[test]
fn an_append_costs_a_listing_and_a_put() {
    let (store, storage) = log();
    let append = append(&newest(&storage), "new", &environment());
    store.take_calls();
    append.commit_or_fail().unwrap();
    let calls: Vec<Op> = store.take_calls().into_iter().map(|call| call.op).collect();
    assert_eq!(calls, [Op::List, Op::Create]);
}

/// Commits after the version that was read are read, and no put is tried for a version that is known to exist.
#[test]
fn an_append_reads_the_commits_after_its_base() {
    let (store, storage) = log();
    let base = newest(&storage);
    write_commit(&storage, 12, &[add_line("12.parquet")]);
    write_commit(&storage, 13, &[add_line("13.parquet")]);
    let append = append(&base, "new", &environment());
    store.take_calls();
    assert_eq!(append.commit_or_fail().unwrap().version, 14);
    let calls: Vec<Op> = store.take_calls().into_iter().map(|call| call.op).collect();
    assert_eq!(calls, [Op::List, Op::Get, Op::Get, Op::Create]);
}

/// A listing that lags behind may show the checkpoint of the newest version without its commit, and later neither of
/// them. This does not mean that the table was replaced.
#[test]
fn a_lagging_listing_does_not_mean_another_table() {
    let (store, storage) = log();
    write_checkpoint(&newest(&storage), &environment()).unwrap();
    store.hide("11.json");
    let handle = newest(&storage);
    let new = append(&handle, "new", &environment());
    store.hide("11.checkpoint.parquet");
    assert_eq!(handle.refresh().unwrap().version(), 11);
    assert_eq!(new.commit_or_fail().unwrap().version, 12);
}
