//! Drops of features while other writers commit to the table all the time. Protocol: "Supported Features".

use std::collections::BTreeSet;

use deltalog::Snapshot;
use deltalog::engine::protocol::log_name::LogFileName;

use super::{append_row, change, drop_from, files, ids, set, supports, using};
use crate::common::storage_in;
use crate::common::store::Op;

/// The number of requests of a drop between two appends of the other writer.
const REQUESTS_PER_APPEND: usize = 8;

/// Another process appends a row at every eighth request of the drop. There are more appends than the number of
/// conflicts after which a drop gives up.
#[test]
fn a_drop_continues_while_other_writers_append() {
    for feature in ["deletionVectors", "typeWidening", "columnMapping"] {
        let (store, storage) = using(feature);
        let base = Snapshot::open(&storage, None).unwrap();
        let old: BTreeSet<String> = files(&base).unwrap().into_iter().map(|file| file.path).collect();
        let other = storage_in(&store.reconnect());
        store.fail(move |number, _| {
            if number % REQUESTS_PER_APPEND == 0 {
                let id = 100 + (number / REQUESTS_PER_APPEND) as i64;
                std::thread::scope(|scope| scope.spawn(|| append_row(&other, id).unwrap()).join().unwrap());
            }
            None
        });
        drop_from(&base, feature).unwrap();
        let calls = store.take_calls();
        store.heal();
        let newest = Snapshot::open(&storage, None).unwrap();
        let appended = calls.len().div_ceil(REQUESTS_PER_APPEND) as i64;
        assert!(appended > 10, "{feature}: {appended}");
        let expected: Vec<i64> = [0, 2, 4].into_iter().chain(100..100 + appended).collect();
        assert_eq!(ids(&newest), expected, "{feature}");
        assert!(!supports(&newest, feature));
        for path in old {
            let reads = calls.iter().filter(|call| call.op == Op::Get && call.path.ends_with(&path)).count();
            // A file is read at most twice: its footer, to find the types of its columns, and its rows, to rewrite it.
            assert!(reads <= 2, "{feature}: {path} was read {reads} times");
        }
    }
}

/// To examine the history, each commit is read only once, no matter how often the drop starts over.
#[test]
fn a_drop_that_starts_over_reads_no_commit_again() {
    let (store, storage) = using("typeWidening");
    (10..20).for_each(|id| append_row(&storage, id).unwrap());
    let base = Snapshot::open(&storage, None).unwrap();
    let (other, mut changes, mut is_last_step) = (storage_in(&store.reconnect()), 0, false);
    store.fail(move |_, call| {
        is_last_step |= call.path.contains("_last_checkpoint");
        if call.op == Op::List && is_last_step && changes < 24 {
            changes += 1;
            let value = set("theirs", &changes.to_string());
            std::thread::scope(|scope| scope.spawn(|| change(&other, &value).unwrap()).join().unwrap());
        }
        None
    });
    drop_from(&base, "typeWidening").unwrap();
    let calls = store.take_calls();
    let newest = Snapshot::open(&storage, None).unwrap();
    assert_eq!(newest.metadata().property("theirs"), Some("24"));
    for version in 0..=base.version() {
        let name = LogFileName::Commit(version).path();
        let reads = calls.iter().filter(|call| call.op == Op::Get && call.path.ends_with(&name)).count();
        assert_eq!(reads, 1, "version {version}");
    }
}
