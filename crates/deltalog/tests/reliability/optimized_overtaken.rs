//! An OPTIMIZE commits while a DELETE or UPDATE runs. The statement finds its rows in the files to which they were
//! moved. Protocol: "Deletion Vectors", "Row Tracking".

use std::collections::BTreeSet;

use deltalog::engine::dml::{Request, RowChangeOutcome, delete, update};
use deltalog::{ErrorKind, optimize};
use proptest::prelude::*;

use crate::common::ids::{ROWS, delete_rows, environment, ids, meanwhile};
use crate::common::newest;
use crate::optimized::{adds, condition, request, row_ids, small_files, with};

/// A statement that deletes rows with vectors finds them in the new files if an OPTIMIZE commits before it.
#[test]
fn statements_that_are_overtaken_follow_the_rows() {
    let (_directory, storage) = small_files(4, &[]);
    delete_rows(&storage, "id = 3 or id = 12");
    let base = newest(&storage);
    let before = ids(&base);
    let overtaken = |ids_before| {
        let storage = storage.clone();
        meanwhile(
            move || {
                // One row is already deleted when the OPTIMIZE begins. Another row is deleted while the OPTIMIZE
                // writes files.
                let other = storage.clone();
                let environment = meanwhile(move || delete_rows(&other, "id = 5"), 1);
                let done = optimize(&newest(&storage), request(), &environment).unwrap();
                assert_eq!((done.commits.len(), done.metrics.carried_rows), (1, 1));
            },
            ids_before,
        )
    };
    let environment = overtaken(0);
    let request = Request::new(&environment);
    let deleted = delete(&base, Some("id = 2 or id = 7 or id = 12 or id = 15 or id = 39"), request).unwrap();
    assert!(matches!(deleted, RowChangeOutcome::Committed(..)), "{deleted:?}");
    let new = newest(&storage);
    assert_eq!(new.version(), base.version() + 3, "nothing was tried again");
    let expected: Vec<i64> = before.into_iter().filter(|id| ![2, 5, 7, 15, 39].contains(id)).collect();
    assert_eq!((ids(&new), new.totals().unwrap().files), (expected, 1));
    let [file] = adds(&new).try_into().unwrap();
    assert_eq!(file.deletion_vector.unwrap().cardinality, 5);
    assert!(new.verify().unwrap().is_ok());
}

/// A statement deletes all rows of a file, with or without reading them. When it commits, the rows have been moved to
/// a file that also has other rows.
#[test]
fn a_file_that_is_emptied_and_overtaken_is_followed() {
    for (condition, expected) in [("id < 10", 10..30_i64), ("id between 20 and 29", 0..20), ("id >= 0", 0..0)]
    {
        let (_directory, storage) = small_files(3, &[]);
        let base = newest(&storage);
        let other = storage.clone();
        let environment =
            meanwhile(move || drop(optimize(&newest(&other), request(), &environment()).unwrap()), 0);
        let deleted = delete(&base, Some(condition), Request::new(&environment)).unwrap();
        assert!(matches!(deleted, RowChangeOutcome::Committed(..)), "{condition}: {deleted:?}");
        let new = newest(&storage);
        assert_eq!(new.version(), base.version() + 2, "{condition}");
        assert_eq!(ids(&new), expected.clone().collect::<Vec<_>>(), "{condition}");
        assert_eq!(new.totals().unwrap().files, u64::from(!expected.is_empty()), "{condition}");
        assert!(new.verify().unwrap().is_ok());
    }
}

/// An UPDATE also finds rows that an OPTIMIZE has moved. The remaining rows keep their row ids, and the change feed
/// has each change once.
#[test]
fn an_update_that_is_overtaken_follows_the_rows() {
    let properties = [("delta.enableRowTracking", "true"), ("delta.enableChangeDataFeed", "true")];
    let (_directory, storage) = small_files(3, &properties);
    let base = newest(&storage);
    let (ids_before, other) = (row_ids(&base), storage.clone());
    let environment =
        meanwhile(move || drop(optimize(&newest(&other), request(), &environment()).unwrap()), 0);
    let values = [("id".to_owned(), "id + 100".to_owned())];
    update(&base, &values, Some("id = 4 or id = 25"), Request::new(&environment)).unwrap();
    let new = newest(&storage);
    assert_eq!(new.version(), base.version() + 2);
    let expected: Vec<i64> = (0..30).filter(|id| ![4, 25].contains(id)).chain([104, 125]).collect();
    assert_eq!(ids(&new), expected);
    let ids_now = row_ids(&new);
    for id in (0..30).filter(|id| ![4, 25].contains(id)) {
        assert_eq!(ids_now[&id], ids_before[&id], "{id}");
    }
    // An UPDATE keeps the ids of the rows that it changes.
    assert_eq!([ids_now[&104].0, ids_now[&125].0], [ids_before[&4].0, ids_before[&25].0]);
    assert!(new.verify().unwrap().is_ok());
}

/// Tags in the log say where rows were moved. Following a wrong tag would delete other rows, so a tag that does not
/// fit is a conflict.
#[test]
fn a_tag_that_cannot_be_right_is_not_followed() {
    let wrong: [(&str, &str, &str); 6] = [
        ("beyond the end", r#"\"start\":0"#, r#"\"start\":35"#),
        ("another file", r#"\"path\":\""#, r#"\"path\":\"not-"#),
        ("no path", r#"\"path\":\""#, r#"\"path\":\"../"#),
        ("too few rows", r#"\"rows\":10"#, r#"\"rows\":1"#),
        ("another form", r#"{\"parts\""#, r#"{\"order\":1,\"parts\""#),
        ("rows that change", r#""dataChange":false"#, r#""dataChange":true"#),
    ];
    for (what, right, changed) in wrong {
        let (_directory, storage) = small_files(4, &[]);
        let base = newest(&storage);
        let other = storage.clone();
        let environment = meanwhile(
            move || {
                optimize(&newest(&other), request(), &environment()).unwrap();
                let path = format!("_delta_log/{:020}.json", newest(&other).version());
                let text = String::from_utf8(other.read(&path).unwrap().to_vec()).unwrap();
                assert!(text.contains(right), "{text}");
                other.put(&path, text.replace(right, changed).into()).unwrap();
            },
            0,
        );
        let error = delete(&base, Some("id = 7 or id = 38"), Request::new(&environment)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitConflict, "{what}: {error}");
        assert_eq!(newest(&storage).version(), base.version() + 1, "{what}");
    }
}

/// If two statements delete the same row, they conflict, even if an OPTIMIZE moves the row in between.
#[test]
fn a_row_that_two_delete_is_a_conflict_after_it_was_moved() {
    let (_directory, storage) = small_files(4, &[]);
    let base = newest(&storage);
    let other = storage.clone();
    let environment = meanwhile(
        move || {
            optimize(&newest(&other), request(), &environment()).unwrap();
            delete_rows(&other, "id = 7");
        },
        0,
    );
    let request = Request::new(&environment);
    let error = delete(&base, Some("id = 7 or id = 8"), request).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
    assert!(ids(&newest(&storage)).contains(&8));
}

proptest! {
    /// If other writers delete and move rows while a DELETE runs, it deletes exactly its own rows, or none.
    #[test]
    fn an_overtaken_delete_deletes_its_own_rows(
        files in 2..5_i64,
        before in prop::collection::btree_set(0..40_i64, 0..8),
        rows in prop::collection::btree_set(0..40_i64, 1..8),
        whole in prop::option::of(0..4_i64),
        others in prop::collection::vec(
            prop::option::weighted(0.5, prop::collection::btree_set(0..40_i64, 1..6)), 1..5,
        ),
        per_bin in 1..5_u64,
    ) {
        let (_directory, storage) = small_files(files, &[]);
        if !before.is_empty() {
            delete_rows(&storage, &condition(&before));
        }
        let base = newest(&storage);
        // The deleted rows may include all rows of a file.
        let own: BTreeSet<i64> =
            rows.into_iter().chain(whole.into_iter().flat_map(|file| file * ROWS..(file + 1) * ROWS)).collect();
        let (live, size) = (ids(&base), u64::try_from(adds(&base)[0].size).unwrap());
        let request = with(|request| {
            (request.target_size, request.most_deleted) = (Some(size * per_bin + size / 2), 0.01);
        });
        let (other, steps) = (storage.clone(), others.clone());
        let environment = meanwhile(
            move || for step in steps {
                match step {
                    Some(ids) => delete_rows(&other, &condition(&ids)),
                    None => drop(optimize(&newest(&other), request.clone(), &environment()).unwrap()),
                }
            },
            0,
        );
        let outcome = delete(&base, Some(&condition(&own)), Request::new(&environment));
        let gone: BTreeSet<i64> = others.into_iter().flatten().flatten().collect();
        let is_ours = |id: &i64| live.contains(id) && own.contains(id);
        let is_done = match outcome {
            Ok(outcome) => {
                if matches!(outcome, RowChangeOutcome::Unchanged(_)) && newest(&storage).version() == base.version() {
                    // The other writers act when an id is drawn. None was drawn, so they have done nothing.
                    return Ok(());
                }
                true
            }
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::CommitConflict);
                // A conflict is correct only if two writers deleted the same row.
                prop_assert!(live.iter().any(|id| own.contains(id) && gone.contains(id)), "{error}");
                false
            }
        };
        let expected: Vec<i64> =
            live.iter().copied().filter(|id| !(gone.contains(id) || is_done && is_ours(id))).collect();
        prop_assert_eq!(ids(&newest(&storage)), expected);
        prop_assert!(newest(&storage).verify().unwrap().is_ok());
    }
}
