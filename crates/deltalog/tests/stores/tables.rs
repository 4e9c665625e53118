//! Creates, reads, changes and refreshes tables in every store.

use deltalog::engine::dml::{Request, RowChangeOutcome, delete};
use deltalog::{
    Environment, ErrorKind, Operation, ParseMode, Snapshot, Table, TableScan, clean_up_log, compact_log,
    parse_predicate, write_checkpoint,
};

use crate::places::Place;
use crate::rows::{append, appending, files, ids, newest};

on_every_store! { no_table, a_table, deletion_vectors, checkpoints, a_kept_table }

fn no_table(place: &Place) {
    let error = Snapshot::open(&place.open("nothing"), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotATable, "{error}");
}

fn a_table(place: &Place) {
    let storage = place.open("a table/of mine");
    for version in 0..4 {
        let committed = append(&storage, version * 10..version * 10 + 10);
        assert_eq!(committed.version, version as u64);
    }
    // Opens the table again, as another process would.
    let storage = place.open("a table/of mine");
    let snapshot = newest(&storage);
    assert_eq!((snapshot.version(), snapshot.totals().unwrap().files), (3, 12));
    assert_eq!(ids(&snapshot), (0..40).collect::<Vec<_>>());
    for version in 0..4 {
        let old = Snapshot::open(&storage, Some(version)).unwrap();
        assert_eq!(ids(&old), (0..10 * (version as i64 + 1)).collect::<Vec<_>>());
    }
    let predicate = parse_predicate("part = '100%' AND id < 15", "UTC", ParseMode::Strict).unwrap();
    let found: usize = TableScan::new(&snapshot)
        .predicate(predicate)
        .read()
        .unwrap()
        .map(|batch| batch.unwrap().num_rows())
        .sum();
    assert_eq!(found, 5);
}

fn deletion_vectors(place: &Place) {
    let storage = place.open("t");
    let write = appending(&storage, &[("delta.enableDeletionVectors", "true")]);
    let added = files(&write, 0..3_000);
    write.commit_or_fail(added, Operation::new("WRITE")).unwrap();
    // Every second row is deleted, which makes the deletion vectors large enough for files of their own.
    for predicate in ["id % 2 = 1", "id < 100"] {
        let outcome =
            delete(&newest(&storage), Some(predicate), Request::new(&Environment::system())).unwrap();
        assert!(matches!(outcome, RowChangeOutcome::Committed(..)), "{outcome:?}");
    }
    let storage = place.open("t");
    assert_eq!(ids(&newest(&storage)), (100..3_000).step_by(2).collect::<Vec<_>>());
    assert_eq!(ids(&Snapshot::open(&storage, Some(0)).unwrap()).len(), 3_000);
    let names = storage.list_after("", "").unwrap();
    assert!(names.iter().any(|file| file.name.contains("deletion_vector_")), "{names:?}");
}

fn checkpoints(place: &Place) {
    for (table, policy) in [("classic", "classic"), ("v2", "v2")] {
        let storage = place.open(table);
        let properties = [("delta.checkpointPolicy", policy), ("delta.checkpointInterval", "4")];
        let write = appending(&storage, &properties);
        let added = files(&write, 0..10);
        write.commit_or_fail(added, Operation::new("WRITE")).unwrap();
        for version in 1..10 {
            append(&storage, version * 10..version * 10 + 10);
        }
        let storage = place.open(table);
        let log = storage.list_after("_delta_log", "").unwrap();
        let count = |end: &str| log.iter().filter(|file| file.name.contains(end)).count();
        assert_eq!(count(".checkpoint."), 2, "{table}: {log:?}");
        assert!(storage.get("_delta_log/_last_checkpoint").unwrap().is_some());
        assert_eq!(ids(&newest(&storage)), (0..100).collect::<Vec<_>>(), "{table}");
        write_checkpoint(&newest(&storage), &Environment::system()).unwrap();
        assert!(compact_log(&newest(&storage), 5, 7).unwrap());
        assert_eq!(ids(&newest(&place.open(table))), (0..100).collect::<Vec<_>>(), "{table}");
        assert_eq!(ids(&Snapshot::open(&storage, Some(6)).unwrap()), (0..70).collect::<Vec<_>>(), "{table}");
        let later = Environment::new(|| Environment::system().now_ms() + 40 * 86_400_000, uuid::Uuid::new_v4);
        let cleaned = clean_up_log(&newest(&storage), &later, false).unwrap();
        assert!(!cleaned.files.is_empty(), "{cleaned:?}");
        assert_eq!(ids(&newest(&place.open(table))), (0..100).collect::<Vec<_>>(), "{table}");
    }
}

/// A handle is kept and refreshed while other writers commit.
fn a_kept_table(place: &Place) {
    append(&place.open("t"), 0..10);
    let table = Table::open(&place.open("t"), &Environment::system()).unwrap();
    assert_eq!(ids(&table.snapshot().unwrap()), (0..10).collect::<Vec<_>>());
    append(&place.open("t"), 10..20);
    assert_eq!(ids(&table.snapshot().unwrap()), (0..20).collect::<Vec<_>>());
    // The rest of the test replaces the table with another one. A coordinator still has the entries of the first table.
    if place.is_coordinated() {
        return;
    }
    let storage = place.open("t");
    for file in storage.list_after("", "").unwrap() {
        storage.delete(&file.name).unwrap();
    }
    append(&storage, 0..1);
    append(&storage, 1..2);
    assert_eq!(table.snapshot().unwrap_err().kind(), ErrorKind::TableReplaced);
}
