//! A commit is prepared again for each attempt, so the parts that depend on earlier versions are correct even if other
//! writers were faster. Protocol: "In-Commit Timestamps", "Row Tracking", "Domain Metadata".

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use deltalog::engine::commit::{ConflictReason, IsolationLevel, Operation, Outcome, Transaction};
use deltalog::engine::protocol::Add;
use deltalog::engine::replay::{FileColumn, FileColumns};
use deltalog::{ErrorKind, Snapshot, Storage, TableDefinition};
use proptest::prelude::*;

use crate::common::store::FaultyStore;
use crate::common::{
    NOW_MS, add, append, creation, empty, environment, metadata_line, newest, overwrite, paths, schema,
    table, write_commit,
};

/// Creates a table with this property.
fn table_with(property: &str) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let mut definition = TableDefinition::new(schema());
    definition.configuration.insert(property.to_owned(), "true".to_owned());
    let table = definition.resolve(&environment()).unwrap();
    Transaction::create(&storage, table, Operation::new("CREATE TABLE"), &environment())
        .unwrap()
        .commit_or_fail()
        .unwrap();
    (store, storage)
}

fn with_rows(path: &str, rows: u64) -> Add {
    let mut add = add(path);
    add.stats = Some(format!("{{\"numRecords\":{rows}}}"));
    add
}

/// Protocol, "In-Commit Timestamps": the timestamp of each commit is later than the previous one, although the clock
/// stands still.
#[test]
fn in_commit_timestamps_increase_across_lost_versions() {
    let (_, storage) = table_with("delta.enableInCommitTimestamps");
    let base = newest(&storage);
    for name in ["a", "b", "c"] {
        append(&base, name, &environment()).commit_or_fail().unwrap();
    }
    overwrite(&newest(&storage), "d", &environment()).unwrap().commit_or_fail().unwrap();
    for version in 0..=4 {
        let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
        assert_eq!(snapshot.timestamp_ms().unwrap(), NOW_MS + i64::try_from(version).unwrap());
    }
    let text = storage.read("_delta_log/00000000000000000004.json").unwrap();
    assert!(text.starts_with(b"{\"commitInfo\":{"), "the commitInfo action is the first");
}

/// Returns the first row id, the number of rows and the commit version of each live file with rows.
fn row_ids(snapshot: &Snapshot) -> BTreeMap<i64, (i64, i64)> {
    let columns = [FileColumn::Stats, FileColumn::BaseRowId, FileColumn::DefaultRowCommitVersion];
    let mut ids = BTreeMap::new();
    for batch in snapshot.replay_files(FileColumns::of(&columns)).unwrap() {
        let batch = batch.unwrap();
        let long = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
        let (first, version) = (long("baseRowId"), long("defaultRowCommitVersion"));
        assert_eq!(first.null_count() + version.null_count(), 0);
        let stats = batch.column_by_name("stats").unwrap().as_string::<i32>();
        for row in 0..batch.num_rows() {
            let stats: serde_json::Value = serde_json::from_str(stats.value(row)).unwrap();
            let rows = stats["numRecords"].as_i64().unwrap();
            // A file without rows has the same first id as the next file.
            if rows > 0 {
                let file = (rows, version.value(row));
                assert_eq!(ids.insert(first.value(row), file), None, "an id is assigned twice");
            }
        }
    }
    ids
}

fn high_water_mark(snapshot: &Snapshot) -> i64 {
    let domains = snapshot.domain_metadata().unwrap();
    let domain = domains.iter().find(|domain| domain.domain == "delta.rowTracking").unwrap();
    serde_json::from_str::<serde_json::Value>(&domain.configuration).unwrap()["rowIdHighWaterMark"]
        .as_i64()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Protocol: "Writers must assign unique fresh Row IDs to all rows that they commit", no matter on which version
    /// they are based.
    #[test]
    fn row_ids_are_unique_no_matter_which_writer_wins(
        writes in prop::collection::vec(
            (prop::collection::vec(0..5u64, 1..4), any::<prop::sample::Index>(), any::<bool>()),
            1..14,
        ),
    ) {
        let (_, storage) = table_with("delta.enableRowTracking");
        let mut bases = vec![newest(&storage)];
        let mut rows = 0;
        for (number, (files, base, overwrites)) in writes.into_iter().enumerate() {
            let environment = environment();
            let operation = Operation::new("WRITE");
            let mut transaction = if overwrites {
                Transaction::overwrite(bases.last().unwrap(), operation, &environment).unwrap()
            } else {
                Transaction::new(&bases[base.index(bases.len())], operation, &environment).unwrap()
            };
            rows += i64::try_from(files.iter().sum::<u64>()).unwrap();
            let files: Vec<Add> =
                files.iter().enumerate().map(|(file, rows)| with_rows(&format!("{number}-{file}"), *rows)).collect();
            transaction.add_files(&files).unwrap();
            let version = transaction.commit_or_fail().unwrap().version;
            let snapshot = newest(&storage);
            prop_assert_eq!(snapshot.version(), version);
            let mut end = 0;
            for (first, (count, _)) in row_ids(&snapshot) {
                prop_assert!(first >= end, "row ids overlap");
                end = first + count;
            }
            prop_assert_eq!(high_water_mark(&snapshot), rows - 1);
            bases.push(snapshot);
        }
    }
}

/// Protocol: "Writers must set the `defaultRowCommitVersion` field in new `add` actions to the version number of the
/// log entry".
#[test]
fn row_commit_versions_equal_the_version_of_the_commit() {
    let (_, storage) = table_with("delta.enableRowTracking");
    let base = newest(&storage);
    for version in 1..4 {
        let mut transaction = Transaction::new(&base, Operation::new("WRITE"), &environment()).unwrap();
        transaction.add_files(&[with_rows(&format!("{version}"), 5)]).unwrap();
        let committed = transaction.commit_or_fail().unwrap();
        assert_eq!((committed.version, committed.rebased_over), (version, version - 1));
    }
    let expected = [(0, (5, 1)), (5, (5, 2)), (10, (5, 3))].into();
    assert_eq!(row_ids(&newest(&storage)), expected);
}

#[test]
fn row_tracking_needs_the_number_of_rows() {
    let (_, storage) = table_with("delta.enableRowTracking");
    let error = append(&newest(&storage), "a", &environment()).commit_or_fail().unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some("a")));
    assert_eq!(newest(&storage).version(), 0);
}

/// A conflict returns the transaction, so that it can be tried again on top of the other writer's version.
#[test]
fn a_transaction_that_lost_can_be_tried_again() {
    let (_, storage) = table(&["a"]);
    let base = newest(&storage);
    append(&base, "b", &environment()).commit_or_fail().unwrap();
    let outcome = overwrite(&base, "c", &environment()).unwrap().commit().unwrap();
    let Outcome::Conflict { conflict, transaction } = outcome else { panic!("no conflict") };
    assert_eq!(conflict.version, 2);
    let id = transaction.id().to_owned();
    let committed = transaction.onto(&newest(&storage)).unwrap().commit_or_fail().unwrap();
    assert_eq!((committed.version, committed.txn_id), (3, id));
    assert_eq!(paths(&newest(&storage)), ["c"]);
}

#[test]
fn what_was_read_is_not_moved_to_another_version() {
    let (_, storage) = table(&["a"]);
    let base = newest(&storage);
    let mut transaction = append(&base, "b", &environment()).with_isolation(IsolationLevel::Serializable);
    transaction.read_whole_table();
    append(&base, "c", &environment()).commit_or_fail().unwrap();
    let Outcome::Conflict { transaction, .. } = transaction.commit().unwrap() else { panic!("no conflict") };
    let error = transaction.onto(&newest(&storage)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// A transaction that removes files has chosen them in the version that it has read, so it is not moved to another
/// version.
#[test]
fn removals_are_not_moved_to_another_version() {
    let (_, storage) = table(&["a"]);
    let base = newest(&storage);
    let mut transaction = append(&base, "b", &environment());
    let remove = br#"{"remove":{"path":"a","dataChange":true}}"#;
    let removes = deltalog::engine::replay::Commit::parse(remove, 1, 0).unwrap().removes;
    transaction.remove_batch(removes);
    assert_eq!(transaction.onto(&base).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// If another writer has created the table with a constraint, the creation does not become an append, because its rows
/// were not checked against the constraint.
#[test]
fn a_creation_does_not_become_an_append_to_a_table_with_constraints() {
    let (_, storage) = empty();
    let mine = creation(&storage, &environment());
    let constraint = ("delta.constraints.positive".to_owned(), "id > 0".to_owned());
    let mut lines = crate::common::first_lines(&[constraint].into());
    lines[0] = lines[0].replace("\"minWriterVersion\":2", "\"minWriterVersion\":3");
    write_commit(&storage, 0, &lines);
    let error = mine.onto(&newest(&storage)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
}

/// A metadata change that does not affect the rows of writers is not a conflict for appends.
#[test]
fn appends_succeed_after_a_harmless_change_of_the_metadata() {
    for (property, expected) in [("owner", Ok(3)), ("delta.appendOnly", Err(ConflictReason::MetadataChanged))]
    {
        let (_, storage) = empty();
        write_commit(&storage, 0, &crate::common::first_lines(&BTreeMap::new()));
        let base = newest(&storage);
        write_commit(&storage, 1, &[metadata_line(&[(property.to_owned(), "true".to_owned())].into())]);
        write_commit(&storage, 2, &[crate::common::add_line("a")]);
        let found = match append(&base, "b", &environment()).commit().unwrap() {
            Outcome::Committed(committed) => Ok(committed.version),
            Outcome::Conflict { conflict, .. } => Err(conflict.reason),
            Outcome::AlreadyApplied(applied) => panic!("applied before: {applied:?}"),
        };
        assert_eq!(found, expected, "{property}");
    }
}

/// Actions that must not be in the same commit are refused before the commit is put.
#[test]
fn invariants_are_checked_before_the_put() {
    let (store, storage) = table(&["a"]);
    let base = newest(&storage);
    let begin = || Transaction::new(&base, Operation::new("WRITE"), &environment()).unwrap();
    let mut twice = begin();
    twice.add_files(&[add("b"), add("./b")]).unwrap();
    let mut same_app = begin();
    same_app.record_progress("app", 1);
    same_app.record_progress("app", 2);
    let mut domain = begin();
    let json = r#"{"domain":"d","configuration":"","removed":false}"#;
    domain.set_domain(serde_json::from_str(json).unwrap()).unwrap();
    let mut both = begin();
    both.add_files(&[add("b")]).unwrap();
    let removes =
        deltalog::engine::replay::Commit::parse(br#"{"remove":{"path":"b","dataChange":true}}"#, 1, 0)
            .unwrap()
            .removes;
    both.remove_batch(removes);
    store.take_calls();
    for (transaction, message) in [
        (twice, "adds the file './b' twice"),
        (same_app, "the application 'app' twice"),
        (domain, "the table feature 'domainMetadata'"),
        (both, "adds and removes the same file 'b'"),
    ] {
        let error = transaction.commit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(message), "{error}");
    }
    assert_eq!(store.take_calls(), []);
    let reserved = r#"{"domain":"delta.x","configuration":"","removed":false}"#;
    let error = begin().set_domain(serde_json::from_str(reserved).unwrap()).unwrap_err();
    assert!(error.to_string().contains("reserved"), "{error}");
}
