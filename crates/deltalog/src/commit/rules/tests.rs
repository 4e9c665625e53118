//! The truth table of the rules: every kind of transaction against every kind of winner, at every isolation level.
//! (The JVM implementation's documentation, "Concurrency control", "Write conflicts".)

use std::fs;

use serde_json::{Value, json};

use super::*;
use crate::commit::{Operation, RowsRead, Transaction};
use crate::expression::predicate::{ParseMode, parse};
use crate::protocol::{DomainMetadata, Protocol, TableFeature};
use crate::runtime::environment::Environment;
use crate::storage::Storage;

/// Creates a table with the partition column `p` and the column `id`: `a.parquet` has `p = 'a'` and ids 1 to 9,
/// `b.parquet` has `p = 'b'` and ids 11 to 19.
fn table() -> (tempfile::TempDir, Snapshot) {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("_delta_log")).unwrap();
    let field = |name: &str, data_type: &str| {
        let metadata = json!({});
        json!({"name": name, "type": data_type, "nullable": true, "metadata": metadata})
    };
    let schema = json!({"type": "struct", "fields": [field("p", "string"), field("id", "long")]});
    let metadata = json!({"metaData": {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.to_string(),
        "partitionColumns": ["p"],
        "configuration": {},
    }});
    let protocol = json!({"protocol": {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["appendOnly", "invariants", "domainMetadata"],
    }});
    let lines =
        [protocol, metadata, add("a.parquet", "a", Some((1, 9))), add("b.parquet", "b", Some((11, 19)))];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(directory.path().join("_delta_log/00000000000000000000.json"), text).unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let snapshot = Snapshot::open(&storage, None).unwrap();
    (directory, snapshot)
}

fn add(path: &str, partition: &str, ids: Option<(i64, i64)>) -> Value {
    let stats = ids.map(|(min, max)| {
        json!({"numRecords": 9, "minValues": {"id": min}, "maxValues": {"id": max}, "nullCount": {"id": 0}})
            .to_string()
    });
    json!({"add": {
        "path": path,
        "partitionValues": {"p": partition},
        "size": 1,
        "modificationTime": 1,
        "dataChange": true,
        "stats": stats,
    }})
}

fn remove(path: &str) -> Value {
    json!({"remove": {"path": path, "dataChange": true}})
}

/// Returns the same action, as a compaction would write it (with `dataChange` false).
fn moved(mut action: Value) -> Value {
    for action in action.as_object_mut().unwrap().values_mut() {
        action["dataChange"] = false.into();
    }
    action
}

fn commit(lines: &[Value]) -> Commit {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Commit::parse(text.as_bytes(), 1, 0).unwrap()
}

fn info(is_blind: bool) -> Value {
    json!({"commitInfo": {"isBlindAppend": is_blind}})
}

/// The kinds of winning commits, by name.
fn winners() -> Vec<(&'static str, Commit)> {
    let (a, b) = (add("new.parquet", "a", Some((1, 3))), add("new.parquet", "b", Some((11, 13))));
    let far = add("new.parquet", "a", Some((7, 8)));
    vec![
        ("blind append of a", commit(&[info(true), a.clone()])),
        ("append of a", commit(&[info(false), a.clone()])),
        ("append of a, far", commit(&[info(false), far])),
        ("append of b", commit(&[info(false), b])),
        ("append of a without statistics", commit(&[info(false), add("new.parquet", "a", None)])),
        ("delete of a", commit(&[info(false), remove("a.parquet")])),
        ("delete of b", commit(&[info(false), remove("b.parquet")])),
        ("update of a", commit(&[info(false), remove("a.parquet"), a.clone()])),
        ("compaction of a", commit(&[info(false), moved(remove("a.parquet")), moved(a)])),
        ("progress", commit(&[json!({"txn": {"appId": "app", "version": 1}})])),
        ("other progress", commit(&[json!({"txn": {"appId": "other", "version": 1}})])),
        (
            "domain",
            commit(&[json!({"domainMetadata": {"domain": "d", "configuration": "", "removed": false}})]),
        ),
    ]
}

fn mine(base: &Snapshot, kind: &str) -> Transaction {
    let mut mine = Transaction::new(base, Operation::new("TEST"), &Environment::system()).unwrap();
    let added = commit(&[add("mine.parquet", "a", Some((1, 9)))]);
    let removed_a = commit(&[remove("a.parquet")]);
    let read = |mine: &mut Transaction, text: &str| {
        mine.read_predicate(parse(text, "UTC", ParseMode::Strict).unwrap());
    };
    match kind {
        "blind append" => mine.add_batch(added.adds),
        "update where p = 'a' and id < 5" => {
            read(&mut mine, "p = 'a' AND id < 5");
            mine.read_files(&commit(&[add("a.parquet", "a", None)]).adds).unwrap();
            mine.remove_batch(removed_a.removes);
            mine.add_batch(added.adds);
        }
        "insert from a query of p = 'b'" => {
            read(&mut mine, "p = 'b'");
            mine.read_files(&commit(&[add("b.parquet", "b", None)]).adds).unwrap();
            mine.add_batch(added.adds);
        }
        "computed from a with id < 5" | "computed from b" => {
            let text = if kind == "computed from b" { "p = 'b'" } else { "p = 'a' AND id < 5" };
            let predicate = parse(text, "UTC", ParseMode::Strict).unwrap();
            mine.read_rows(RowsRead::Matching(vec![predicate]));
            mine.add_batch(added.adds);
        }
        "computed from all" => {
            mine.read_rows(RowsRead::All);
            mine.add_batch(added.adds);
        }
        "whole table" => {
            mine.read_whole_table();
            mine.add_batch(added.adds);
        }
        "compaction of a" => {
            mine.read_files(&commit(&[add("a.parquet", "a", None)]).adds).unwrap();
            mine.remove_batch(commit(&[moved(remove("a.parquet"))]).removes);
            mine.add_batch(commit(&[moved(add("mine.parquet", "a", None))]).adds);
        }
        "progress" => mine.record_progress("app", 1),
        "domain" => {
            mine.set_domain(DomainMetadata { domain: "d".to_owned(), ..DomainMetadata::default() }).unwrap()
        }
        other => panic!("{other}"),
    }
    mine
}

/// Returns the reason why `transaction` conflicts with `winner`, if the table's isolation level is `level`.
fn reason(
    base: &Snapshot,
    transaction: &Transaction,
    level: IsolationLevel,
    winner: &Commit,
) -> Option<ConflictReason> {
    let mut metadata = base.metadata().clone();
    metadata.configuration.insert("delta.isolationLevel".to_owned(), level.name().to_owned());
    let Transaction { reads, changes, .. } = transaction;
    let removed = changes.check(base.protocol(), base.metadata(), base.metadata(), base.resolver()).unwrap();
    let isolation = IsolationLevel::of(None, &metadata, changes);
    let mine = Mine { base, reads, changes, removed: &removed, isolation, source_isolation: isolation };
    let winner = Winner { commit: winner, appended: &winner.adds };
    conflict(&mine, &winner).unwrap().map(|conflict| conflict.reason)
}

/// Returns the names of the winning commits that conflict with each kind of transaction, with the name of the reason.
fn conflicts(kind: &str, level: IsolationLevel) -> Vec<(&'static str, &'static str)> {
    let (_directory, base) = table();
    let mine = mine(&base, kind);
    let reason = |winner: &Commit| Some(reason(&base, &mine, level, winner)?.name());
    winners().into_iter().filter_map(|(name, winner)| Some((name, reason(&winner)?))).collect()
}

const APPEND: &str = "concurrent_append";
const READ: &str = "concurrent_delete_read";

#[test]
fn blind_appends_do_not_conflict_with_changes_of_files() {
    for level in [IsolationLevel::Serializable, IsolationLevel::WriteSerializable] {
        assert_eq!(conflicts("blind append", level), []);
    }
}

#[test]
fn updates_conflict_with_matching_rows_and_removed_files() {
    let removed = [("delete of a", READ), ("update of a", APPEND), ("compaction of a", READ)];
    let appended = [("append of a", APPEND), ("append of a without statistics", APPEND)];
    let kind = "update where p = 'a' and id < 5";
    let expected: Vec<_> = appended.into_iter().chain(removed).collect();
    assert_eq!(conflicts(kind, IsolationLevel::WriteSerializable), expected);
    let expected: Vec<_> = [("blind append of a", APPEND)].into_iter().chain(expected).collect();
    assert_eq!(conflicts(kind, IsolationLevel::Serializable), expected);
}

#[test]
fn inserts_conflict_with_changes_of_what_their_query_has_read() {
    let expected = [("append of b", APPEND), ("delete of b", READ)];
    assert_eq!(conflicts("insert from a query of p = 'b'", IsolationLevel::WriteSerializable), expected);
}

#[test]
fn writes_conflict_with_changes_of_the_rows_they_were_computed_from() {
    let changed = [("delete of a", READ), ("update of a", APPEND), ("compaction of a", READ)];
    let appended = [("append of a", APPEND), ("append of a without statistics", APPEND)];
    let all: Vec<_> = appended.into_iter().chain(changed).collect();
    let kind = "computed from a with id < 5";
    assert_eq!(conflicts(kind, IsolationLevel::WriteSerializable), all);
    let all: Vec<_> = [("blind append of a", APPEND)].into_iter().chain(all).collect();
    assert_eq!(conflicts(kind, IsolationLevel::Serializable), all);
    for level in [IsolationLevel::Serializable, IsolationLevel::WriteSerializable] {
        let expected = [("append of b", APPEND), ("delete of b", READ)];
        assert_eq!(conflicts("computed from b", level), expected);
        assert_eq!(conflicts("computed from all", level), conflicts("whole table", level));
    }
}

#[test]
fn the_whole_table_conflicts_with_every_change_of_files() {
    let all = [
        ("append of a", APPEND),
        ("append of a, far", APPEND),
        ("append of b", APPEND),
        ("append of a without statistics", APPEND),
        ("delete of a", READ),
        ("delete of b", READ),
        ("update of a", APPEND),
        ("compaction of a", READ),
    ];
    assert_eq!(conflicts("whole table", IsolationLevel::WriteSerializable), all);
    let blind = [("blind append of a", APPEND)];
    let expected: Vec<_> = blind.into_iter().chain(all).collect();
    assert_eq!(conflicts("whole table", IsolationLevel::Serializable), expected);
}

/// Rows that are only moved are not read, so files that other writers add do not matter at any isolation level.
#[test]
fn compactions_conflict_with_the_removal_of_their_files_only() {
    let expected = [("delete of a", READ), ("update of a", READ), ("compaction of a", READ)];
    for level in [IsolationLevel::Serializable, IsolationLevel::WriteSerializable] {
        assert_eq!(conflicts("compaction of a", level), expected);
    }
}

#[test]
fn transactions_conflict_about_the_same_application_or_domain() {
    let level = IsolationLevel::WriteSerializable;
    assert_eq!(conflicts("progress", level), [("progress", "app_transaction")]);
    assert_eq!(conflicts("domain", level), [("domain", "domain_changed")]);
}

/// "Clustered Table": files that were written before have no statistics of the new clustering columns, and metadata
/// that was read before may lack these columns.
#[test]
fn files_and_metadata_conflict_with_a_change_of_the_clustering_columns() {
    let (_directory, base) = table();
    let domain = |name: &str| {
        commit(&[json!({"domainMetadata": {"domain": name, "configuration": "{}", "removed": false}})])
    };
    let new = || Transaction::new(&base, Operation::new("TEST"), &Environment::system()).unwrap();
    let mut appends = new();
    appends.add_batch(commit(&[add("new.parquet", "a", None)]).adds);
    let mut removes = new();
    removes.remove_batch(commit(&[remove("a.parquet")]).removes);
    let level = IsolationLevel::WriteSerializable;
    let expected = ConflictReason::DomainChanged("delta.clustering".to_owned());
    let mut alters = new();
    alters.set_metadata(base.metadata().clone());
    for mine in [&appends, &alters] {
        assert_eq!(reason(&base, mine, level, &domain("delta.clustering")), Some(expected.clone()));
        assert_eq!(reason(&base, mine, level, &domain("other")), None);
    }
    assert_eq!(reason(&base, &removes, level, &domain("delta.clustering")), None);
}

/// "Domain Metadata": a table without the feature must have no domains. Row tracking keeps its own domain.
#[test]
fn dropped_features_conflict_with_a_change_of_any_domain() {
    let (_directory, base) = table();
    let domain = |name: &str| {
        commit(&[json!({"domainMetadata": {"domain": name, "configuration": "{}", "removed": false}})])
    };
    let level = IsolationLevel::WriteSerializable;
    let reason = |protocol: Protocol, winner: &str| {
        let mut mine = Transaction::new(&base, Operation::new("TEST"), &Environment::system()).unwrap();
        mine.set_protocol(protocol);
        reason(&base, &mine, level, &domain(winner))
    };
    let drops = || base.protocol().without(&TableFeature::DomainMetadata);
    let adds = || base.protocol().supporting(&[TableFeature::CheckConstraints]);
    assert_eq!(reason(drops(), "d"), Some(ConflictReason::DomainChanged("d".to_owned())));
    assert_eq!(reason(drops(), "delta.rowTracking"), None);
    assert_eq!(reason(adds(), "d"), None);
}

/// Two transactions that have read nothing conflict if they remove the same file.
#[test]
fn two_commits_do_not_remove_the_same_file() {
    let (_directory, base) = table();
    let mut transaction = Transaction::new(&base, Operation::new("TEST"), &Environment::system()).unwrap();
    transaction.remove_batch(commit(&[remove("./a.parquet")]).removes);
    let reason = |winner: &Commit| reason(&base, &transaction, IsolationLevel::Serializable, winner);
    let expected = ConflictReason::ConcurrentDeleteDelete { file: "a.parquet".to_owned() };
    assert_eq!(reason(&commit(&[remove("a.parquet")])), Some(expected));
    assert_eq!(reason(&commit(&[remove("b.parquet")])), None);
}

#[test]
fn an_equal_protocol_is_not_a_change() {
    let (_directory, base) = table();
    let transaction = mine(&base, "blind append");
    let level = IsolationLevel::WriteSerializable;
    let reason = |winner: &Commit| Some(reason(&base, &transaction, level, winner)?.name());
    let same = json!({"protocol": serde_json::to_value(base.protocol()).unwrap()});
    assert_eq!(reason(&commit(&[same])), None);
    let other = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}});
    assert_eq!(reason(&commit(&[other])), Some("protocol_changed"));
    let metadata = |name: &str, column: &str| {
        let mut metadata = base.metadata().clone();
        metadata.name = Some(name.to_owned());
        metadata.schema_string = metadata.schema_string.replace("id", column);
        json!({"metaData": serde_json::to_value(metadata).unwrap()})
    };
    assert_eq!(reason(&commit(&[metadata("n", "id")])), None);
    assert_eq!(reason(&commit(&[metadata("n", "key")])), Some("metadata_changed"));
}
