//! Log compaction files: their content, when they are used, and when they must be ignored. Protocol: "Log
//! Compaction Files".

use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{ErrorKind, Snapshot, Storage, compact_log};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::oracle::{Table, name_of};
use crate::common::store::{Fault, Op};
use crate::common::{
    add_line, append, empty, environment, first_lines, live, paths, replace_table, storage_in, write_commit,
    write_log,
};
use crate::histories::{contents, expected, history, write_history};

/// Returns, for each key, the newest action in the commits from `start` to `end`. A compaction has to contain the same
/// actions.
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

    /// No matter which compactions exist, every version agrees with a naive replay of the commits.
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

/// Returns the lines of a compaction, sorted.
fn lines_of(storage: &Storage, start: u64, end: u64) -> Option<Vec<String>> {
    let bytes = storage.get(&LogFileName::Compaction { start, end }.path()).unwrap()?;
    let mut lines: Vec<_> = std::str::from_utf8(&bytes).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    Some(lines)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Our compactions have the actions that a naive reconciliation keeps, and every version reads the same with them.
    /// To check that the compactions are read instead of the commits, the test damages the commits without changing
    /// their sizes.
    #[test]
    fn written_compactions_stand_for_their_commits(
        history in history(), start in any::<prop::sample::Index>(), length in 1..6u64,
    ) {
        let storage = write_history(&history);
        let versions = history.len() as u64;
        let start = start.index(history.len()) as u64;
        let end = (start + length).min(versions - 1);
        if start == end {
            return Ok(());
        }
        let newest = Snapshot::open(&storage, None).unwrap();
        let mut expected_lines = reconciled(&storage, start, end);
        let tables: Vec<_> = (0..versions).map(|version| Table::at(&storage, version)).collect();
        prop_assert_eq!(compact_log(&newest, start, end).unwrap(), !expected_lines.is_empty());
        prop_assert!(!compact_log(&newest, start, end).unwrap(), "the compaction exists or is not useful");
        expected_lines.sort();
        prop_assert_eq!(lines_of(&storage, start, end).unwrap_or_default(), expected_lines.clone());
        let is_used = !Snapshot::open(&storage, Some(end)).unwrap().segment().compactions.is_empty();
        for version in (start..=end).filter(|_| is_used) {
            let path = LogFileName::Commit(version).path();
            storage.put(&path, " ".repeat(storage.read(&path).unwrap().len()).into()).unwrap();
        }
        for version in (end..versions).filter(|_| !expected_lines.is_empty()) {
            let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
            prop_assert_eq!(contents(&snapshot), expected(&tables[version as usize]));
        }
    }
}

#[test]
fn only_whole_ranges_of_commits_are_compacted() {
    let (store, storage) = empty();
    write_log(&storage, 8);
    let snapshot = Snapshot::open(&storage, Some(6)).unwrap();
    for (start, end) in [(3, 3), (4, 3), (3, 7), (0, 100)] {
        assert_eq!(compact_log(&snapshot, start, end).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        store.fail(move |_, call| (call.op == Op::Create).then_some(fault));
        assert_eq!(compact_log(&snapshot, 2, 5).unwrap_err().kind(), ErrorKind::Unavailable);
        store.heal();
        assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()).len(), 7);
    }
    write_commit(&storage, 8, &[r#"{"actionOfTheFuture":{}}"#.to_owned()]);
    let newest = Snapshot::open(&storage, None).unwrap();
    assert_eq!(compact_log(&newest, 6, 8).unwrap_err().kind(), ErrorKind::Unsupported);
    storage.delete(&LogFileName::Commit(1).path()).unwrap();
    assert_eq!(compact_log(&newest, 0, 3).unwrap_err().kind(), ErrorKind::VersionNotFound);
}

/// A compaction is written after a number of commits if checkpoints are far apart, or if a table property requests it.
#[test]
fn commits_compact_the_log() {
    let written = |properties: &[(&str, &str)], versions: u64| -> Vec<String> {
        let (_, storage) = empty();
        let properties =
            properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        write_commit(&storage, 0, &first_lines(&properties));
        for version in 1..=versions {
            let base = Snapshot::open(&storage, None).unwrap();
            append(&base, &format!("{version}"), &environment()).commit_or_fail().unwrap();
        }
        let newest = Snapshot::open(&storage, None).unwrap();
        assert_eq!(paths(&newest).len() as u64, versions);
        let names = storage.list_after("_delta_log", "").unwrap().into_iter().map(|file| file.name);
        names.filter(|name| name.contains("compacted")).collect()
    };
    let range = |start, end| LogFileName::Compaction { start, end }.to_string();
    assert_eq!(written(&[], 21), Vec::<String>::new());
    let rare = ("delta.checkpointInterval", "30");
    assert_eq!(written(&[rare], 31), [range(1, 10), range(11, 20)]);
    assert_eq!(written(&[rare, ("deltalog.logCompactionInterval", "0")], 11), Vec::<String>::new());
    assert_eq!(
        written(&[("deltalog.logCompactionInterval", "3")], 10),
        [range(1, 3), range(4, 6), range(7, 9)]
    );
}

/// A compaction must keep removed domains and old tombstones, because they cancel entries of an earlier checkpoint.
#[test]
fn a_compaction_keeps_actions_that_cancel_older_ones() {
    let (_, storage) = empty();
    let domain = |removed: bool| {
        json!({"domainMetadata": {"domain": "d", "configuration": "", "removed": removed}}).to_string()
    };
    let mut first = first_lines(&std::collections::BTreeMap::new());
    first.extend([add_line("a"), add_line("b"), domain(false)]);
    write_commit(&storage, 0, &first);
    let old = r#"{"remove":{"path":"a","deletionTimestamp":1,"dataChange":true}}"#;
    write_commit(
        &storage,
        1,
        &[r#"{"commitInfo":{"operation":"X"}}"#.to_owned(), old.to_owned(), domain(true)],
    );
    write_commit(
        &storage,
        2,
        &[
            r#"{"cdc":{"path":"c","partitionValues":{},"size":1,"dataChange":false}}"#.to_owned(),
            add_line("c"),
        ],
    );
    let newest = Snapshot::open(&storage, None).unwrap();
    assert!(compact_log(&newest, 1, 2).unwrap());
    let mut expected = vec![old.to_owned(), domain(true), add_line("c")];
    expected.sort();
    assert_eq!(lines_of(&storage, 1, 2).unwrap(), expected);
    deltalog::write_checkpoint(&Snapshot::open(&storage, Some(0)).unwrap(), &environment()).unwrap();
    let opened = Snapshot::open(&storage, None).unwrap();
    assert_eq!(opened.segment().compactions.len(), 1);
    assert_eq!(paths(&opened), ["b", "c"]);
    assert!(opened.domain_metadata().unwrap().is_empty());
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
    // Longer compactions are preferred, so the compaction inside of the longer one is not read.
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
    // The files that are read are the hint, the commits 0, 1, 27, 28 and 29, and the compaction.
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
        // The lines are also tested together with actions for other files.
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

/// A table is dropped and another one created while the commits are read. Readers of the new table would mistake the
/// compaction for one of their table.
#[test]
fn commits_of_another_table_are_not_compacted() {
    let (store, storage) = empty();
    write_log(&storage, 4);
    let snapshot = Snapshot::open(&storage, None).unwrap();
    let other = storage_in(&store.reconnect());
    store.fail(move |_, call| {
        if call.op == Op::Get && call.path.ends_with(&LogFileName::Commit(2).path()) {
            // This runs on another thread, because the current thread is in the middle of a request.
            std::thread::scope(|scope| scope.spawn(|| replace_table(&other, 5)).join().unwrap());
        }
        None
    });
    assert_eq!(compact_log(&snapshot, 1, 3).unwrap_err().kind(), ErrorKind::TableReplaced);
    store.heal();
    assert_eq!(storage.get(&LogFileName::Compaction { start: 1, end: 3 }.path()).unwrap(), None);
}
