//! Log compaction files: when they are used, and when they must be ignored. Protocol: "Log Compaction Files".

use deltalog::engine::log::name::LogFileName;
use deltalog::{ErrorKind, Snapshot, Storage};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::common::oracle::{Table, name_of};
use crate::common::store::Op;
use crate::common::{add_line, empty, live, paths, write_commit, write_log};
use crate::histories::{contents, expected, history, write_history};

/// Returns the newest action for each key of the commits from `start` to `end`, as a compaction contains it.
fn reconciled(storage: &Storage, start: u64, end: u64) -> Vec<String> {
    let mut keys = std::collections::BTreeSet::new();
    let mut kept = Vec::new();
    for version in (start..=end).rev() {
        let bytes = storage.read(&LogFileName::Commit(version).path()).unwrap();
        for line in std::str::from_utf8(&bytes).unwrap().lines().rev() {
            let value: Value = serde_json::from_str(line).unwrap();
            let (action, fields) = value.as_object().unwrap().iter().next().unwrap();
            let key = match action.as_str() {
                "add" | "remove" => {
                    format!("file {} {}", name_of(fields["path"].as_str().unwrap()), fields["deletionVector"])
                }
                "txn" => format!("txn {}", fields["appId"]),
                "domainMetadata" => format!("domain {}", fields["domain"]),
                "commitInfo" | "cdc" => continue,
                other => other.to_owned(),
            };
            if keys.insert(key) {
                kept.push(line.to_owned());
            }
        }
    }
    kept
}

fn compact(storage: &Storage, start: u64, end: u64, lines: &[String]) {
    let mut text = lines.join("\n");
    if !lines.is_empty() {
        text.push('\n');
    }
    storage.put(&LogFileName::Compaction { start, end }.path(), text.into()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// With any compactions, every version agrees with the naive replay.
    #[test]
    fn compactions_change_nothing(
        history in history(), ranges in vec((0..10u64, 1..6u64), 0..5), torn in any::<prop::sample::Index>(),
    ) {
        let storage = write_history(&history);
        let versions = history.len() as u64;
        for (index, (start, length)) in ranges.iter().enumerate() {
            let end = start + length;
            if end < versions {
                let mut lines = reconciled(&storage, *start, end);
                if torn.index(ranges.len()) == index && let Some(last) = lines.last_mut() {
                    last.truncate(last.len() / 2);
                }
                compact(&storage, *start, end, &lines);
            }
        }
        for version in 0..versions {
            let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
            prop_assert_eq!(contents(&snapshot), expected(&Table::at(&storage, version)));
        }
        let newest = Snapshot::open(&storage, Some(versions / 2)).unwrap();
        write_commit(&storage, versions, &[r#"{"commitInfo":{}}"#.to_owned()]);
        prop_assert_eq!(contents(&newest.refresh().unwrap()), expected(&Table::at(&storage, versions)));
    }
}

#[test]
fn commits_covered_by_a_compaction_are_not_read() {
    let (store, storage) = empty();
    write_log(&storage, 30);
    compact(
        &storage,
        2,
        26,
        &(2..27).map(|version| add_line(&format!("{version}.parquet"))).collect::<Vec<_>>(),
    );
    // Longer compactions are preferred; this one lies within the other.
    compact(
        &storage,
        4,
        8,
        &(4..9).map(|version| add_line(&format!("{version}.parquet"))).collect::<Vec<_>>(),
    );
    store.take_calls();
    let snapshot = Snapshot::open(&storage, None).unwrap();
    assert_eq!(live(&snapshot).unwrap().len(), 29);
    let calls = store.take_calls();
    // The hint, commits 0, 1, 27, 28, 29, and the compaction.
    assert_eq!(calls.iter().filter(|call| call.op == Op::Get).count(), 7, "{calls:?}");
    assert_eq!(
        Snapshot::open(&storage, Some(10)).unwrap().segment().compactions.len(),
        1,
        "the longer compaction extends beyond the version"
    );
    write_commit(&storage, 30, &[add_line("30.parquet")]);
    store.take_calls();
    snapshot.refresh().unwrap();
    assert_eq!(store.take_calls().len(), 2, "a refresh does not read the compaction again");
}

/// Some writers concatenate the lines of several commits, newest first, without reconciling them.
#[test]
fn compactions_that_are_not_reconciled_are_ignored() {
    let remove = |path: &str| format!(r#"{{"remove":{{"path":"{path}","dataChange":true}}}}"#);
    let wrong = [
        vec![remove("2.parquet"), add_line("2.parquet")],
        vec![add_line("2.parquet"), remove("2.parquet")],
        vec![add_line("2.parquet"), add_line("./2.parquet")],
        vec![
            r#"{"txn":{"appId":"a","version":1}}"#.to_owned(),
            r#"{"txn":{"appId":"a","version":2}}"#.to_owned(),
        ],
        vec!["{".to_owned()],
        vec![],
    ];
    for lines in wrong {
        let (_, storage) = empty();
        write_log(&storage, 8);
        // Test the lines also together with actions for other files.
        let mut padded = lines.clone();
        padded.extend((2..6).map(|version| add_line(&format!("wrong-{version}.parquet"))).take(2));
        for lines in [&lines, &padded].into_iter().take(if lines.is_empty() { 1 } else { 2 }) {
            compact(&storage, 2, 6, lines);
            let found = paths(&Snapshot::open(&storage, None).unwrap());
            assert!(
                found.len() == 7 && found.iter().all(|path| !path.starts_with("wrong")),
                "{lines:?}: {found:?}"
            );
        }
    }
}

/// A missing commit is an error that names it, even if a compaction covers the commit.
#[test]
fn compactions_neither_hide_gaps_nor_add_versions() {
    let (_, storage) = empty();
    write_log(&storage, 8);
    compact(
        &storage,
        2,
        6,
        &(2..7).map(|version| add_line(&format!("{version}.parquet"))).collect::<Vec<_>>(),
    );
    compact(
        &storage,
        6,
        12,
        &(6..13).map(|version| add_line(&format!("{version}.parquet"))).collect::<Vec<_>>(),
    );
    assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 7);
    storage.delete(&LogFileName::Commit(4).path()).unwrap();
    let error = Snapshot::open(&storage, None).map(|snapshot| snapshot.version()).unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::CorruptLog, Some(4)));
}
