//! Handles that follow a table for a long time. While they do, checkpoints are written for versions that they have
//! already passed, and the log before these checkpoints is cleaned up. Protocol: "Checkpoints", "Metadata Cleanup".

use std::ops::RangeInclusive;

use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{ErrorKind, Snapshot, Storage, write_checkpoint};
use deltalog_testkit::store::Op;

use crate::common::store::FaultyStore;
use crate::common::{add_line, empty, environment, newest, paths, write_commit, write_log};

/// Appends versions. Each adds a file whose name contains the version.
fn append(storage: &Storage, versions: RangeInclusive<u64>) {
    for version in versions {
        write_commit(storage, version, &[add_line(&version.to_string())]);
    }
}

fn checkpoint(storage: &Storage, version: u64) {
    write_checkpoint(&Snapshot::open(storage, Some(version)).unwrap(), &environment()).unwrap();
}

/// Deletes the commits and checkpoints before the checkpoint of `version`, as a clean-up does when they are old.
fn clean_up(storage: &Storage, version: u64) {
    for file in storage.list_directory_after("_delta_log", "").unwrap() {
        let found = LogFileName::parse(&file.name).and_then(|name| name.version());
        if found.is_some_and(|found| found < version) {
            storage.delete(&format!("_delta_log/{}", file.name)).unwrap();
        }
    }
}

fn has_checkpoint(snapshot: &Snapshot, version: u64) -> bool {
    let segment = snapshot.segment();
    let first = segment.commits.first().map(|commit| commit.version);
    segment.checkpoint.as_ref().map(|found| found.version) == Some(version)
        && first == (version < snapshot.version()).then_some(version + 1)
}

fn is_complete(snapshot: &Snapshot) -> bool {
    paths(snapshot).len() as u64 == snapshot.version()
}

/// Returns the number of listings and of other requests.
fn requests(store: &FaultyStore) -> (usize, usize) {
    let calls = store.take_calls();
    let lists = calls.iter().filter(|call| call.op == Op::List).count();
    (lists, calls.len() - lists)
}

#[test]
fn a_follower_finds_a_checkpoint_that_was_written_late() {
    for by_place in [false, true] {
        let (store, storage) = empty();
        write_log(&storage, 3);
        let mut follower = newest(&storage);
        let refreshed = |follower: &Snapshot| match by_place {
            true => follower.reopen().unwrap(),
            false => follower.refresh().unwrap(),
        };
        for (version, late) in [(12, 12), (15, 10), (19, 19), (40, 31), (90, 20)] {
            append(&storage, follower.version() + 1..=version);
            follower = refreshed(&follower);
            let before = follower.segment().checkpoint.as_ref().map_or(0, |found| found.version);
            checkpoint(&storage, late);
            store.take_calls();
            // There is no newer version.
            follower = refreshed(&follower);
            assert_eq!(requests(&store), (1, 0), "nothing is read");
            assert_eq!(follower.version(), version);
            assert!(has_checkpoint(&follower, late.max(before)), "{late}: {:?}", follower.segment());
            assert!(is_complete(&follower));
            assert!(refreshed(&follower).is_same(&follower));
        }
    }
}

/// The handle is only refreshed, never opened again, and always shows all files.
#[test]
fn a_follower_survives_clean_ups_below_it() {
    for every in [1, 7] {
        let (_, storage) = empty();
        write_log(&storage, 3);
        let mut follower = newest(&storage);
        for version in 3..60 {
            append(&storage, version..=version);
            if version % every == 0 {
                follower = follower.refresh().unwrap().without_open_files();
                assert!(is_complete(&follower));
            }
            if version % 5 == 4 {
                checkpoint(&storage, version - 2);
                clean_up(&storage, version - 2);
            }
            assert!(follower.segment().commits.len() < 20);
        }
        follower = follower.refresh().unwrap();
        assert!(has_checkpoint(&follower, 57) && is_complete(&follower));
    }
}

/// A clean-up deletes the checkpoint from which the handle starts, and the commits before a newer checkpoint. The
/// handle finds the newer checkpoint with the first refresh, or, in a long log, with the second.
#[test]
fn a_follower_whose_checkpoint_is_gone_finds_the_next_one() {
    for commits in [20, 150] {
        let (store, storage) = empty();
        write_log(&storage, 3);
        checkpoint(&storage, 2);
        append(&storage, 3..=2 + commits);
        let follower = newest(&storage).without_open_files();
        assert!(has_checkpoint(&follower, 2));
        checkpoint(&storage, 10);
        clean_up(&storage, 10);
        let refreshed = follower.refresh().unwrap();
        if commits < 100 {
            assert!(has_checkpoint(&refreshed, 10));
        }
        // To check all files of the log, a refresh would need many requests. It does so only after a file was missing.
        if !has_checkpoint(&refreshed, 10) {
            let kinds = [refreshed.totals().map(drop), crate::common::live(&refreshed).map(drop)];
            assert!(kinds.into_iter().all(|found| found.unwrap_err().kind() == ErrorKind::FileNotFound));
        }
        store.take_calls();
        let refreshed = refreshed.refresh().unwrap();
        assert_eq!(requests(&store).0, 1);
        assert!(has_checkpoint(&refreshed, 10) && is_complete(&refreshed));
    }
}

#[test]
fn without_checkpoints_a_refresh_lists_some_versions_only() {
    let (store, storage) = empty();
    write_log(&storage, 3);
    append(&storage, 3..=400);
    let mut follower = newest(&storage);
    for version in 401..=620 {
        append(&storage, version..=version);
        store.take_calls();
        follower = follower.refresh().unwrap();
        assert_eq!(requests(&store), (1, 1), "the requests are a listing and a read of the new commit");
    }
    assert!(is_complete(&follower));
    checkpoint(&storage, 30);
    for version in [800, 801] {
        append(&storage, follower.version() + 1..=version);
        follower = follower.refresh().unwrap();
    }
    assert!(has_checkpoint(&follower, 30) && is_complete(&follower));
}
