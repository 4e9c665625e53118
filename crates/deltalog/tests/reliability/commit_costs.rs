//! The requests that a commit makes: one listing, one read for each commit of other writers since the snapshot, one
//! put of the commit, and one put of its checksum. Protocol: "Creation of New Log Entries", "Version Checksum File".

use std::collections::BTreeMap;

use deltalog::engine::commit::{Operation, Transaction};
use deltalog::engine::protocol::{Action, Add};
use deltalog::{Environment, Snapshot, Storage};
use deltalog_testkit::store::FaultyStore;

use crate::common::store::{Call, Op};
use crate::common::{add, append, empty, environment, metadata_line, newest, overwrite, table, write_commit};

/// Returns an environment with random ids, because ids must differ from the ids of earlier commits.
fn other_ids() -> Environment {
    Environment::system().with_sleep(|_| {})
}

/// Returns the requests as text, without the directory.
fn requests(calls: &[Call]) -> Vec<String> {
    let name =
        |call: &Call| call.path.rsplit('/').next().unwrap_or_default().trim_start_matches('0').to_owned();
    calls.iter().map(|call| format!("{:?} {}", call.op, name(call))).collect()
}

/// Checks that the newest version has a checksum, and that it agrees with the log.
fn verify(storage: &Storage) {
    let found = newest(storage).verify().unwrap();
    assert!(found.is_ok() && found.file.is_some(), "{found:?}");
}

/// Returns the requests of `commit`, and checks the checksum that it wrote.
fn requests_of(store: &FaultyStore, storage: &Storage, commit: impl FnOnce()) -> Vec<String> {
    store.take_calls();
    commit();
    let calls = requests(&store.take_calls());
    verify(storage);
    calls
}

/// Creates a table with ten files, opens its newest version, and reads the totals in the checksum.
fn opened() -> (FaultyStore, Storage, Snapshot) {
    let (store, storage) = table(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    let base = newest(&storage);
    base.totals().unwrap();
    (store, storage, base)
}

#[test]
fn an_append_lists_once_and_reads_nothing() {
    let (store, storage, base) = opened();
    let commit = || drop(append(&base, "new", &other_ids()).commit_or_fail().unwrap());
    let found = requests_of(&store, &storage, commit);
    assert_eq!(found, ["List _delta_log", "Create 11.json", "Create 11.crc"]);
}

#[test]
fn each_winner_is_read_once() {
    let (store, storage, base) = opened();
    for new in ["k", "l", "m"] {
        append(&newest(&storage), new, &other_ids()).commit_or_fail().unwrap();
    }
    let commit = || drop(append(&base, "new", &other_ids()).commit_or_fail().unwrap());
    let mut found = requests_of(&store, &storage, commit);
    assert_eq!((found.remove(0), found.len()), ("List _delta_log".to_owned(), 5));
    assert_eq!(found.split_off(3), ["Create 14.json", "Create 14.crc"]);
    found.sort();
    assert_eq!(found, ["Get 11.json", "Get 12.json", "Get 13.json"]);
}

/// A commit of a faster writer is read only once, even if it is discovered only when the put of the same version fails.
#[test]
fn the_winner_of_a_race_is_read_once() {
    let (store, storage, base) = opened();
    // The listing does not show the other writer's commit.
    append(&base, "k", &other_ids()).commit_or_fail().unwrap();
    store.hide("11.json");
    store.hide("11.crc");
    let commit = || drop(append(&base, "new", &other_ids()).commit_or_fail().unwrap());
    let found = requests_of(&store, &storage, commit);
    assert_eq!(
        found,
        [
            "List _delta_log",
            "Create 11.json",
            "Get 11.json",
            "Get 12.json",
            "Create 12.json",
            "Create 12.crc",
        ]
    );
}

#[test]
fn an_overwrite_reads_nothing_after_its_commit() {
    let (store, storage, base) = opened();
    let transaction = overwrite(&base, "new", &other_ids()).unwrap();
    let found = requests_of(&store, &storage, || drop(transaction.commit_or_fail().unwrap()));
    assert_eq!(found, ["List _delta_log", "Create 11.json", "Create 11.crc"]);
}

#[test]
fn a_creation_reads_nothing() {
    let (store, storage) = empty();
    let commit = || drop(crate::common::creation(&storage, &environment()).commit_or_fail().unwrap());
    let found = requests_of(&store, &storage, commit);
    assert_eq!(found.iter().filter(|call| call.starts_with("Get")).count(), 0, "{found:?}");
}

/// A faster writer has committed more file actions than are kept for the checksum. In that case no checksum is
/// written, and no file is read for it.
#[test]
fn a_checksum_is_left_out_after_a_winner_with_very_many_files() {
    let (store, storage, base) = opened();
    let mut large = Transaction::new(&base, Operation::new("WRITE"), &other_ids()).unwrap();
    large.add_files(&(0..100_001).map(|n| add(&format!("n{n}"))).collect::<Vec<_>>()).unwrap();
    large.commit_or_fail().unwrap();
    store.take_calls();
    append(&base, "new", &other_ids()).commit_or_fail().unwrap();
    let found = requests(&store.take_calls());
    assert_eq!(found, ["List _delta_log", "Get 11.json", "Create 12.json"]);
    assert!(newest(&storage).verify().unwrap().file.is_none());
}

/// Protocol: "Row Tracking". The file list in a checksum has the row ids that the commit assigned, even if the commit
/// lost a race for its version and was prepared again.
#[test]
fn a_checksum_has_the_row_ids_that_the_commit_gave_out() {
    let (_, storage) = empty();
    let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"#;
    let features = r#""writerFeatures":["rowTracking","domainMetadata"]}}"#;
    write_commit(&storage, 0, &[format!("{protocol}{features}"), metadata_line(&BTreeMap::new())]);
    let base = newest(&storage);
    for number in 0..3 {
        let mut file: Add = add(&format!("f{number}"));
        file.stats = Some(r#"{"numRecords":5}"#.to_owned());
        let mut transaction = Transaction::new(&base, Operation::new("WRITE"), &other_ids()).unwrap();
        transaction.add_files(&[file]).unwrap();
        transaction.commit_or_fail().unwrap();
        verify(&storage);
    }
    let text = storage.read("_delta_log/00000000000000000003.crc").unwrap();
    let checksum: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let ids: Vec<_> =
        checksum["allFiles"].as_array().unwrap().iter().map(|file| &file["baseRowId"]).collect();
    assert_eq!(ids, [0, 5, 10]);
    let commit = storage.read("_delta_log/00000000000000000003.json").unwrap();
    let lines = commit.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.filter_map(|line| Action::parse_line(line).unwrap());
    let adds: Vec<_> =
        lines.filter_map(|action| if let Action::Add(add) = action { Some(add) } else { None }).collect();
    assert_eq!(adds.iter().map(|add| add.base_row_id).collect::<Vec<_>>(), [Some(10)]);
}

/// The listing shows the sizes of commits. Commits that are too large for a log compaction are not read for one.
#[test]
fn commits_that_are_too_large_are_not_read_for_a_compaction() {
    for (size, is_read) in [(10, true), (17 << 20, false)] {
        let (store, storage) = empty();
        let properties = BTreeMap::from([("deltalog.logCompactionInterval".to_owned(), "2".to_owned())]);
        write_commit(&storage, 0, &crate::common::first_lines(&properties));
        let mut first = append(&newest(&storage), "a", &other_ids());
        first.record_progress("x".repeat(size), 1);
        first.commit_or_fail().unwrap();
        let base = newest(&storage);
        base.totals().unwrap();
        store.take_calls();
        append(&base, "b", &other_ids()).commit_or_fail().unwrap();
        let calls = store.take_calls();
        let gets = calls.iter().filter(|call| call.op == Op::Get && call.path.ends_with(".json")).count();
        // Two reads are for the commits to compact. The last one checks whether the commit of the base version still
        // exists.
        assert_eq!(gets, if is_read { 3 } else { 0 }, "{calls:?}");
    }
}
