//! Several transactions delete rows by deletion vectors at the same time. Protocol: "Deletion Vectors".

use std::collections::BTreeSet;

use deltalog::engine::commit::{ConflictReason, IsolationLevel, Operation, Outcome, Transaction};
use deltalog::engine::deletion_vector::DeletionVector;
use deltalog::engine::protocol::{Action, Add};
use deltalog::{ErrorKind, ParseMode, Snapshot, parse_predicate};
use proptest::prelude::*;

use crate::common::ids::{ROWS, environment, ids, table};
use crate::common::{append, newest, overwrite};

/// Returns the last `add` action of the data file up to the version of `base`.
fn file(base: &Snapshot) -> Add {
    let find = |version: u64| {
        let text = base.storage().read(&format!("_delta_log/{version:020}.json")).unwrap();
        let actions = text.split(|byte| *byte == b'\n').filter_map(|line| Action::parse_line(line).ok()?);
        actions
            .filter_map(|action| if let Action::Add(add) = action { Some(add) } else { None })
            .fold(None, |_, add| Some(add))
    };
    (0..=base.version()).rev().find_map(find).unwrap()
}

fn delete(base: &Snapshot, rows: &[u64]) -> Transaction {
    let mut transaction = Transaction::new(base, Operation::new("DELETE"), &environment()).unwrap();
    transaction.delete_rows(file(base), rows.iter().copied().collect::<DeletionVector>());
    transaction
}

/// Returns the number of files of deletion vectors in the table's directory.
fn vector_files(directory: &tempfile::TempDir) -> usize {
    let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().ends_with(".bin")).count()
}

fn conflict(outcome: Outcome) -> ConflictReason {
    match outcome {
        Outcome::Conflict { conflict, .. } => conflict.reason,
        outcome => panic!("no conflict: {outcome:?}"),
    }
}

#[test]
fn deletes_of_different_rows_of_one_file_are_merged() {
    let (directory, storage) = table(&[]);
    let base = newest(&storage);
    for (rows, remaining) in [(vec![1, 2], 8), (vec![5], 7), (vec![0, 9], 5)] {
        let committed = delete(&base, &rows).commit_or_fail().unwrap();
        assert_eq!(ids(&newest(&storage)).len(), remaining, "{committed:?}");
    }
    assert_eq!(ids(&newest(&storage)), [3, 4, 6, 7, 8]);
    assert_eq!(ids(&Snapshot::open(&storage, Some(1)).unwrap()).len(), 8);
    assert_eq!(vector_files(&directory), 3);
}

#[test]
fn deletes_of_the_same_row_conflict_and_leave_no_vector() {
    let (directory, storage) = table(&[]);
    let base = newest(&storage);
    delete(&base, &[1, 2]).commit_or_fail().unwrap();
    let path = file(&base).path;
    let reason = conflict(delete(&base, &[2, 3]).commit().unwrap());
    assert_eq!(reason, ConflictReason::ConcurrentRowDelete { file: path, row: 2 });
    assert_eq!(vector_files(&directory), 1);
    // A transaction that is based on the version with the vector does not delete the same rows again.
    delete(&newest(&storage), &[2, 3]).commit_or_fail().unwrap();
    assert_eq!(ids(&newest(&storage)), [0, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn rows_that_are_deleted_already_change_nothing() {
    let (directory, storage) = table(&[]);
    delete(&newest(&storage), &[1, 2]).commit_or_fail().unwrap();
    let base = newest(&storage);
    let before = file(&base);
    let committed = delete(&base, &[2]).commit_or_fail().unwrap();
    let commit = storage.read(&format!("_delta_log/{:020}.json", committed.version)).unwrap();
    let commit = String::from_utf8(commit.to_vec()).unwrap();
    assert!(!commit.contains("\"add\"") && !commit.contains("\"remove\""), "{commit}");
    assert_eq!(file(&newest(&storage)), before);
    assert_eq!(vector_files(&directory), 1);
}

/// "Row Tracking": rows that had no ids get them, because the file is added again.
#[test]
fn a_file_from_before_row_tracking_gets_row_ids() {
    let (directory, storage) = table(&[]);
    let features = r#"["deletionVectors","rowTracking","domainMetadata"]"#;
    let protocol = format!(
        r#"{{"protocol":{{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],
        "writerFeatures":{features}}}}}"#
    );
    let base = newest(&storage);
    let path = format!("_delta_log/{:020}.json", base.version() + 1);
    std::fs::write(directory.path().join(path), protocol.replace('\n', "")).unwrap();
    let base = newest(&storage);
    assert_eq!(file(&base).base_row_id, None);
    let committed = delete(&base, &[1]).commit_or_fail().unwrap();
    let newest = newest(&storage);
    let add = file(&newest);
    assert_eq!(add.base_row_id, Some(0));
    assert_eq!(add.default_row_commit_version, i64::try_from(committed.version).ok());
    let domains = newest.domain_metadata().unwrap();
    assert!(
        domains.iter().any(|domain| domain.configuration == r#"{"rowIdHighWaterMark":9}"#),
        "{domains:?}"
    );
}

/// Another commit has replaced a deletion vector, and the old vector's file may be gone. In that case it is unknown
/// whether the commit has also brought rows back, so there is a conflict.
#[test]
fn an_unreadable_vector_of_another_writer_is_a_conflict() {
    let (directory, storage) = table(&[]);
    delete(&newest(&storage), &[1]).commit_or_fail().unwrap();
    let base = newest(&storage);
    let old = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let old: Vec<_> = old.filter(|path| path.extension().is_some_and(|kind| kind == "bin")).collect();
    let mut reader = Transaction::new(&base, Operation::new("UPDATE"), &environment())
        .unwrap()
        .with_isolation(IsolationLevel::Serializable);
    reader.read_predicate(parse_predicate("id = 5", "UTC", ParseMode::Strict).unwrap());
    delete(&base, &[2]).commit_or_fail().unwrap();
    for path in old {
        std::fs::remove_file(path).unwrap();
    }
    assert!(matches!(conflict(reader.commit().unwrap()), ConflictReason::ConcurrentAppend { .. }));
}

#[test]
fn a_file_without_rows_is_removed() {
    let (directory, storage) = table(&[]);
    let base = newest(&storage);
    delete(&base, &[0, 1, 2, 3, 4]).commit_or_fail().unwrap();
    delete(&base, &[5, 6, 7, 8, 9]).commit_or_fail().unwrap();
    assert_eq!(newest(&storage).totals().unwrap().files, 0);
    assert_eq!(vector_files(&directory), 1);
}

#[test]
fn a_delete_conflicts_with_the_removal_of_the_file() {
    let (_directory, storage) = table(&[]);
    let base = newest(&storage);
    overwrite(&base, "new", &environment()).unwrap().commit_or_fail().unwrap();
    let reason = conflict(delete(&base, &[1]).commit().unwrap());
    assert_eq!(reason, ConflictReason::ConcurrentDeleteRead { file: file(&base).path });
}

/// If another commit only deletes rows of a file, the file is added again but has no new rows. So a predicate that was
/// read would find no additional rows.
#[test]
fn a_predicate_that_was_read_is_not_changed_by_deletes() {
    let (_directory, storage) = table(&[]);
    let base = newest(&storage);
    delete(&base, &[1]).commit_or_fail().unwrap();
    let mut reader = append(&base, "new", &environment());
    reader.read_predicate(parse_predicate("id < 5", "UTC", ParseMode::Strict).unwrap());
    assert_eq!(reader.commit_or_fail().unwrap().version, 2);
}

/// A transaction cannot both remove a file and delete rows from it. Otherwise the rows of a removed file would
/// reappear.
#[test]
fn a_file_is_removed_or_loses_rows_but_not_both() {
    let (_directory, storage) = table(&[]);
    let base = newest(&storage);
    let mut transaction = Transaction::overwrite(&base, Operation::new("WRITE"), &environment()).unwrap();
    transaction.delete_rows(file(&base), [1].into_iter().collect());
    let error = transaction.commit().unwrap_err();
    assert!(error.to_string().contains("also adds or removes"), "{error}");
}

#[test]
fn what_cannot_be_deleted_by_a_vector_is_refused() {
    let (_directory, storage) = table(&[]);
    let base = newest(&storage);
    let refused = |file: Add, row: u64| {
        let mut transaction = Transaction::new(&base, Operation::new("DELETE"), &environment()).unwrap();
        transaction.delete_rows(file, [row].into_iter().collect());
        transaction.commit().unwrap_err()
    };
    assert_eq!(refused(file(&base), 10).kind(), ErrorKind::CorruptData);
    let mut without = file(&base);
    without.stats = None;
    assert!(refused(without, 1).to_string().contains("number of rows"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A delete is committed if and only if no commit since the version that it has read has deleted one of its rows.
    /// Once all rows are deleted, there is no file. Then a delete is committed only if its rows were already deleted in
    /// the version that it has read.
    #[test]
    fn exactly_the_committed_rows_are_deleted(
        deletes in prop::collection::vec(
            (prop::collection::btree_set(0..ROWS as u64, 1..4), any::<prop::sample::Index>()),
            1..8,
        ),
    ) {
        let (_directory, storage) = table(&[]);
        let mut bases = vec![(newest(&storage), BTreeSet::new())];
        for (rows, base) in deletes {
            let (base, deleted) = &bases[base.index(bases.len())];
            if base.totals().unwrap().files == 0 {
                continue;
            }
            let (_, newest_deleted) = bases.last().unwrap();
            let since: BTreeSet<u64> = newest_deleted.difference(deleted).copied().collect();
            let is_emptied = newest_deleted.len() == ROWS as usize;
            let expected = since.is_disjoint(&rows) && (!is_emptied || rows.is_subset(deleted));
            let outcome = delete(base, &rows.iter().copied().collect::<Vec<_>>()).commit().unwrap();
            prop_assert_eq!(matches!(outcome, Outcome::Committed(_)), expected);
            if expected {
                let all: BTreeSet<u64> = newest_deleted.union(&rows).copied().collect();
                let snapshot = newest(&storage);
                let verified = snapshot.verify().unwrap();
                prop_assert!(verified.is_ok() && verified.file.is_some(), "{:?}", verified);
                let remaining: Vec<i64> = (0..ROWS).filter(|id| !all.contains(&(*id as u64))).collect();
                prop_assert_eq!(ids(&snapshot), remaining);
                bases.push((snapshot, all));
            }
        }
    }
}
