//! The number of requests that it takes to open and to refresh a snapshot.

use std::collections::BTreeMap;

use deltalog::Snapshot;
use deltalog::engine::protocol::log_name::LogFileName;

use crate::common::store::{Call, Op};
use crate::common::{add_line, empty, environment, first_lines, live, write_commit, write_log};

fn summary(calls: &[Call]) -> (usize, usize) {
    let of = |op: Op| calls.iter().filter(|call| call.op == op).count();
    assert_eq!(of(Op::Put) + of(Op::Create), 0, "a reader writes nothing");
    let mut paths: Vec<_> = calls.iter().filter(|call| call.op == Op::Get).map(|call| &call.path).collect();
    paths.sort();
    assert!(paths.windows(2).all(|pair| pair[0] != pair[1]), "a file is read twice: {paths:?}");
    (of(Op::List), of(Op::Get))
}

#[test]
fn opening_lists_once_and_reads_the_hint_and_each_commit() {
    for versions in [1, 5, 40] {
        let (store, storage) = empty();
        write_log(&storage, versions);
        store.take_calls();
        let snapshot = Snapshot::open(&storage, None).unwrap();
        assert_eq!(summary(&store.take_calls()), (1, 1 + versions as usize));
        live(&snapshot).unwrap();
        assert_eq!(store.take_calls(), [], "the file list is already in memory");
    }
}

#[test]
fn only_the_commits_after_the_checkpoint_are_read() {
    let (store, storage) = empty();
    write_log(&storage, 8);
    deltalog::engine::checkpoint::write_checkpoint(
        &Snapshot::open(&storage, Some(5)).unwrap(),
        &environment(),
    )
    .unwrap();
    store.take_calls();
    Snapshot::open(&storage, None).unwrap();
    let calls = store.take_calls();
    let commits: Vec<_> = calls
        .iter()
        .filter(|call| call.op == Op::Get && call.path.ends_with("json"))
        .map(|call| &call.path)
        .collect();
    assert_eq!(commits, ["t/_delta_log/00000000000000000007.json", "t/_delta_log/00000000000000000006.json"]);
    assert_eq!(calls.iter().filter(|call| call.op == Op::List).count(), 1);
}

#[test]
fn refreshing_lists_once_and_reads_only_new_commits() {
    let (store, storage) = empty();
    write_log(&storage, 5);
    let snapshot = Snapshot::open(&storage, None).unwrap();
    store.take_calls();
    let same = snapshot.refresh().unwrap();
    assert_eq!(summary(&store.take_calls()), (1, 0));
    assert_eq!(same.version(), 4);
    write_commit(&storage, 5, &[add_line("5.parquet")]);
    store.take_calls();
    let newer = snapshot.refresh().unwrap();
    assert_eq!(summary(&store.take_calls()), (1, 1));
    assert_eq!(newer.version(), 5);
}

#[test]
fn opening_again_lists_once_and_reads_only_new_commits() {
    let (store, storage) = empty();
    write_log(&storage, 5);
    let mut snapshot = Snapshot::open(&storage, None).unwrap();
    for version in 5..25 {
        store.take_calls();
        assert_eq!(snapshot.reopen().unwrap().version(), version - 1);
        assert_eq!(summary(&store.take_calls()), (1, 0), "the list");
        write_commit(&storage, version, &[add_line(&format!("{version}.parquet"))]);
        store.take_calls();
        snapshot = snapshot.reopen().unwrap();
        assert_eq!(summary(&store.take_calls()), (1, 1), "the list and the commit");
        assert_eq!((snapshot.version(), live(&snapshot).unwrap().len() as u64), (version, version));
        if version % 10 == 0 {
            deltalog::engine::checkpoint::write_checkpoint(&snapshot, &environment()).unwrap();
            store.take_calls();
            snapshot = snapshot.reopen().unwrap();
            assert_eq!(
                summary(&store.take_calls()),
                (1, 0),
                "no part of the checkpoint is read before it is needed"
            );
            assert_eq!(snapshot.segment().commits.len(), 0);
        }
    }
}

#[test]
fn reopening_finds_a_table_that_replaced_the_old_one() {
    for versions in [5, 11, 12, 20] {
        let (_, storage) = empty();
        write_log(&storage, versions);
        let old = Snapshot::open(&storage, None).unwrap();
        for version in 11..versions {
            storage.delete(&LogFileName::Commit(version).path()).unwrap();
        }
        write_commit(&storage, 0, &first_lines(&BTreeMap::from([("other".to_owned(), "yes".to_owned())])));
        for version in 1..=10 {
            write_commit(&storage, version, &[add_line(&format!("other-{version}.parquet"))]);
        }
        let newest = Snapshot::open(&storage, None).unwrap();
        deltalog::engine::checkpoint::write_checkpoint(&newest, &environment()).unwrap();
        let found = old.reopen().unwrap();
        assert_eq!(found.version(), 10);
        assert_eq!(found.metadata().property("other"), Some("yes"));
        assert_eq!(live(&found).unwrap(), live(&newest).unwrap());
    }
}

/// The checkpoint of a version is written after its commit. A snapshot that is refreshed after each commit must still
/// find the checkpoint, or the number of commits in memory would grow without limit.
#[test]
fn a_snapshot_refreshed_after_each_commit_finds_the_checkpoints() {
    let (_, storage) = empty();
    write_log(&storage, 1);
    let mut snapshot = Snapshot::open(&storage, None).unwrap();
    for version in 1..50 {
        write_commit(&storage, version, &[add_line(&format!("{version}.parquet"))]);
        snapshot = snapshot.refresh().unwrap();
        assert_eq!(snapshot.version(), version);
        if version % 10 == 0 {
            deltalog::engine::checkpoint::write_checkpoint(&snapshot, &environment()).unwrap();
        }
        assert!(snapshot.segment().commits.len() <= 11, "{}", snapshot.segment().commits.len());
    }
}
