//! Statistics of existing files are computed again while other writers commit. Protocol: "Add File and Remove File",
//! "Per-file Statistics", "Action Reconciliation".

use std::collections::BTreeMap;

use deltalog::engine::commit::Transaction;
use deltalog::engine::dml::{Request, RowChangeOutcome, delete};
use deltalog::engine::protocol::Add;
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    CheckLevel, Environment, ErrorKind, Operation, OptimizeRequest, RecomputeRequest, Recomputed, Result,
    Snapshot, Storage, TableChange, alter_table, check_files, optimize, recompute_statistics,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::ids::{ROWS, append, delete_rows, environment, ids, meanwhile, table};
use crate::common::newest;

fn adds(snapshot: &Snapshot) -> Vec<Add> {
    let mut adds: Vec<Add> = listed_files(snapshot, None).unwrap().into_iter().map(|file| file.add).collect();
    adds.sort_by(|a, b| a.path.cmp(&b.path));
    adds
}

/// Adds the files of the table again with the same data. `change` edits each `add` action.
fn add_again(storage: &Storage, change: impl Fn(&mut Add)) {
    let base = newest(storage);
    let mut files = adds(&base);
    for file in &mut files {
        file.data_change = false;
        change(file);
    }
    let mut transaction = Transaction::new(&base, Operation::new("OTHER"), &environment()).unwrap();
    transaction.add_files(&files).unwrap();
    transaction.commit_or_fail().unwrap();
}

/// Returns a table of three files of ten rows each, with consecutive ids and these statistics.
fn with_statistics(properties: &[(&str, &str)], stats: Option<&str>) -> (TempDir, Storage) {
    let (directory, storage) = table(properties);
    for file in 1..3 {
        append(&storage, file * ROWS..(file + 1) * ROWS);
    }
    add_again(&storage, |add| add.stats = stats.map(str::to_owned));
    (directory, storage)
}

fn run(
    storage: &Storage,
    set: impl FnOnce(&mut RecomputeRequest),
    environment: &Environment,
) -> Result<Recomputed> {
    let mut request = RecomputeRequest::default();
    set(&mut request);
    recompute_statistics(&newest(storage), request, environment)
}

fn all(request: &mut RecomputeRequest) {
    request.all_files = true;
}

/// Returns the minimum and maximum id and the number of rows in the statistics of each file, in ascending order.
fn bounds(storage: &Storage) -> Vec<(i64, i64, i64)> {
    let bounds = |add: Add| {
        let stats: Value = serde_json::from_str(add.stats.as_deref()?).unwrap();
        let least = stats["minValues"]["id"].as_i64()?;
        Some((least, stats["maxValues"]["id"].as_i64()?, stats["numRecords"].as_i64()?))
    };
    let mut found: Vec<_> = adds(&newest(storage)).into_iter().filter_map(bounds).collect();
    found.sort_unstable();
    found
}

fn commit(storage: &Storage, version: u64) -> Vec<Value> {
    let text = storage.read(&format!("_delta_log/{version:020}.json")).unwrap();
    let text = String::from_utf8(text.to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const EXPECTED: [(i64, i64, i64); 3] = [(0, 9, 10), (10, 19, 10), (20, 29, 10)];

#[test]
fn poor_statistics_become_exact_ones_and_nothing_else_changes() {
    for stats in [
        None,
        Some("[]"),
        Some(r#"{"numRecords":10}"#),
        Some(r#"{"numRecords":10,"minValues":{"id":-5},"maxValues":{"id":99},"nullCount":{}}"#),
        Some(r#"{"numRecords":10,"minValues":{"id":-5},"nullCount":{"id":0}}"#),
        Some(
            r#"{"numRecords":10,"minValues":{"id":-5},"maxValues":{"id":99},"nullCount":{"id":0},"tightBounds":false}"#,
        ),
    ] {
        let (_directory, storage) = with_statistics(&[("delta.enableChangeDataFeed", "true")], stats);
        add_again(&storage, |add| add.tags = Some([("mine".to_owned(), Some("1".to_owned()))].into()));
        let (before, rows) = (newest(&storage), ids(&newest(&storage)));
        let done = run(&storage, |_| {}, &environment()).unwrap();
        assert_eq!((done.commits.len(), done.metrics.updated_files, done.metrics.files_by_footer), (1, 3, 3));
        let after = newest(&storage);
        assert_eq!(
            (after.version(), ids(&after), bounds(&storage)),
            (before.version() + 1, rows, EXPECTED.to_vec())
        );
        for (old, new) in adds(&before).into_iter().zip(adds(&after)) {
            let mut expected = old;
            expected.stats.clone_from(&new.stats);
            assert_eq!(expected, new);
        }
        let actions = commit(&storage, after.version());
        assert_eq!(actions[0]["commitInfo"]["operation"], "COMPUTE STATS");
        assert_eq!(actions[0]["commitInfo"]["operationMetrics"]["numUpdatedFiles"], "3");
        assert_eq!(actions[0]["commitInfo"]["isBlindAppend"], false);
        assert!(actions[1..].iter().all(|action| action["add"]["dataChange"] == json!(false)), "{actions:?}");
        assert_eq!(after.totals().unwrap().files, 3);
        assert!(after.verify().unwrap().differences.is_empty());
        // Computing statistics again has nothing to do.
        let again = run(&storage, |_| {}, &environment()).unwrap();
        assert_eq!((again.commits.len(), again.metrics.chosen_files), (0, 0));
    }
}

#[test]
fn good_statistics_stay() {
    let (_directory, storage) = table(&[]);
    append(&storage, 10..20);
    delete_rows(&storage, "id = 3");
    let version = newest(&storage).version();
    let done = run(&storage, |_| {}, &environment()).unwrap();
    assert_eq!((done.metrics.considered_files, done.metrics.chosen_files), (2, 0));
    assert_eq!(newest(&storage).version(), version);
}

/// Protocol: "Per-file Statistics". Bounds become tight. The number of rows still counts all rows of the data file,
/// including deleted ones.
#[test]
fn statistics_of_a_file_with_deleted_rows_describe_the_remaining_rows() {
    let (_directory, storage) = table(&[]);
    delete_rows(&storage, "id < 3 or id = 9");
    let done = run(&storage, all, &environment()).unwrap();
    assert_eq!((done.metrics.files_by_rows, done.metrics.updated_files), (1, 1));
    assert_eq!(bounds(&storage), [(3, 8, 10)]);
    let [add] = adds(&newest(&storage)).try_into().unwrap();
    let stats: Value = serde_json::from_str(add.stats.as_deref().unwrap()).unwrap();
    assert_eq!((&stats["tightBounds"], &stats["nullCount"]["id"]), (&json!(true), &json!(0)));
    assert_eq!(ids(&newest(&storage)), [3, 4, 5, 6, 7, 8]);
    assert_eq!(check_files(&newest(&storage), CheckLevel::Rows).unwrap().batch().unwrap().num_rows(), 0);
    // If more rows are deleted afterwards, the bounds are wide again.
    delete_rows(&storage, "id = 8");
    let [add] = adds(&newest(&storage)).try_into().unwrap();
    assert!(add.stats.as_deref().unwrap().contains("\"tightBounds\":false"), "{:?}", add.stats);
    assert_eq!(run(&storage, |_| {}, &environment()).unwrap().metrics.chosen_files, 0);
}

#[test]
fn commits_are_of_bounded_size() {
    let (_directory, storage) = with_statistics(&[], None);
    let version = newest(&storage).version();
    let planned = run(&storage, |request| request.dry_run = true, &environment()).unwrap();
    assert_eq!((planned.commits.len(), planned.metrics.chosen_files), (0, 3));
    assert_eq!(newest(&storage).version(), version);
    let done = run(&storage, |request| request.files_of_a_commit = 2, &environment()).unwrap();
    assert_eq!((done.commits.len(), done.metrics.updated_files), (2, 3));
    assert_eq!(bounds(&storage), EXPECTED);
    let error = run(&storage, |request| request.files_of_a_commit = 0, &environment()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error =
        run(&storage, |request| request.predicate = Some("id = 1".into()), &environment()).unwrap_err();
    assert!(error.to_string().contains("columns that are not partition columns"), "{error}");
}

/// Protocol: "Action Reconciliation". Whatever other writers do after the files were read and before the new
/// statistics are committed, their changes of rows are preserved.
#[test]
fn concurrent_changes_are_preserved() {
    type Work = fn(&Storage);
    let cases: [(&str, Work, u64, u64); 8] = [
        ("an append", |storage| append(storage, 30..40), 3, 0),
        ("a removed file", |storage| delete_rows(storage, "id < 10"), 2, 1),
        ("a new vector", |storage| delete_rows(storage, "id in (3, 15)"), 1, 2),
        ("a vector and a removed file", |storage| delete_rows(storage, "id > 15"), 1, 2),
        ("all files removed", |storage| delete_rows(storage, "true"), 0, 3),
        (
            "an optimize",
            |storage| {
                optimize(&newest(storage), OptimizeRequest::default(), &environment()).unwrap();
            },
            0,
            3,
        ),
        (
            "tags",
            |storage| {
                add_again(storage, |add| add.tags = Some([("other".to_owned(), None)].into()));
            },
            3,
            0,
        ),
        (
            "the same",
            |storage| {
                run(storage, |_| {}, &environment()).unwrap();
            },
            3,
            0,
        ),
    ];
    for (name, work, updated, given_up) in cases {
        let numbered = r#"{"numRecords":10}"#;
        let (directory, storage) = with_statistics(&[], Some(numbered));
        let other = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        let done = run(&storage, |_| {}, &meanwhile(move || work(&other), 0)).unwrap();
        assert_eq!(
            (done.metrics.updated_files, done.metrics.given_up_files),
            (updated, given_up),
            "{name}: {done:?}"
        );
        // The rows are the same as without the new statistics.
        let (_alone, expected) = with_statistics(&[], Some(numbered));
        work(&expected);
        assert_eq!(ids(&newest(&storage)), ids(&newest(&expected)), "{name}");
        let vectors = |storage: &Storage| {
            let adds = adds(&newest(storage)).into_iter();
            adds.filter(|add| add.deletion_vector.is_some()).count()
        };
        assert_eq!(vectors(&storage), vectors(&expected), "{name}");
        if name == "tags" {
            let has_tag = |add: &Add| add.tags.as_ref().is_some_and(|tags| tags.contains_key("other"));
            assert!(adds(&newest(&storage)).iter().all(has_tag));
            assert_eq!(bounds(&storage), EXPECTED);
        }
        assert!(newest(&storage).verify().unwrap().differences.is_empty(), "{name}");
    }
}

/// A DELETE that began before the new statistics still deletes its rows, and a file that loses rows keeps the new
/// statistics.
#[test]
fn statements_that_are_overtaken_are_committed() {
    for (condition, left) in [("id in (3, 15)", 28), ("id < 10 or id = 15", 19), ("id >= 10", 10)] {
        let (directory, storage) = with_statistics(&[], Some(r#"{"numRecords":10}"#));
        let other = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        let work = move || {
            run(&other, |_| {}, &environment()).unwrap();
        };
        let outcome = delete(&newest(&storage), Some(condition), Request::new(&meanwhile(work, 0))).unwrap();
        assert!(matches!(outcome, RowChangeOutcome::Committed { .. }), "{outcome:?}");
        let new = newest(&storage);
        assert_eq!((ids(&new).len(), bounds(&storage).len() as u64), (left, new.totals().unwrap().files));
        let mut deleted = ids(&new);
        delete_rows(&storage, "false");
        deleted.sort_unstable();
        assert_eq!(ids(&newest(&storage)), deleted);
    }
}

/// Protocol: "Row Tracking". The ids of the rows do not change.
#[test]
fn row_ids_are_kept() {
    let (_directory, storage) = table(&[("delta.enableRowTracking", "true")]);
    append(&storage, 10..20);
    let tracked = |storage: &Storage| -> BTreeMap<String, (Option<i64>, Option<i64>)> {
        let adds = adds(&newest(storage)).into_iter();
        adds.map(|add| (add.path, (add.base_row_id, add.default_row_commit_version))).collect()
    };
    let before = tracked(&storage);
    add_again(&storage, |add| add.stats = Some(r#"{"numRecords":10}"#.to_owned()));
    run(&storage, |_| {}, &environment()).unwrap();
    assert_eq!(tracked(&storage), before);
    assert_eq!(bounds(&storage), EXPECTED[..2]);
    // If the statistics had a wrong number of rows, row ids would be wrong.
    add_again(&storage, |add| add.stats = Some(r#"{"numRecords":9}"#.to_owned()));
    let error = run(&storage, |_| {}, &environment()).unwrap_err();
    assert_eq!((error.kind(), error.path().is_some()), (ErrorKind::CorruptData, true), "{error}");
}

#[test]
fn a_change_of_the_table_is_a_conflict() {
    let (directory, storage) = with_statistics(&[], None);
    let other = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let work = move || {
        let set = TableChange::SetProperties([("delta.appendOnly".to_owned(), "true".to_owned())].into());
        alter_table(&newest(&other), &set, serde_json::Map::new(), &environment()).unwrap();
    };
    let error = run(&storage, |_| {}, &meanwhile(work, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
    // New statistics are also allowed in an append-only table, because no row is removed.
    assert_eq!(run(&storage, |_| {}, &environment()).unwrap().metrics.updated_files, 3);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let (_directory, storage) = with_statistics(&[], None);
    let path = adds(&newest(&storage))[1].path.clone();
    storage.delete(&path).unwrap();
    let error = run(&storage, |_| {}, &environment()).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::FileNotFound, Some(path.as_str())), "{error}");
}
