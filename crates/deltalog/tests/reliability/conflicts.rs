//! Conflicts with the commits of other writers. Protocol: "Creation of New Log Entries".

use std::sync::Barrier;

use deltalog::engine::commit::{ConflictReason, Operation, Outcome, Transaction, WhatWasRead};
use deltalog::{ErrorKind, Snapshot};

use crate::common::store::FaultyStore;
use crate::common::{
    add_line, append, creation, empty, environment, first_lines, overwrite, paths, table, versions_of,
    write_commit,
};

/// Runs `test` twice. The first time, the listing shows the commits of other writers, so they are found before the
/// first put. The second time, the listing lags behind, so they are found only when the put fails.
fn found_early_and_late(test: impl Fn(&dyn Fn(&FaultyStore))) {
    test(&|_| {});
    test(&|store| (1..6).for_each(|version| store.hide(&format!("{version:020}.json"))));
}

fn reason(outcome: Outcome) -> (u64, ConflictReason) {
    match outcome {
        Outcome::Conflict { conflict, .. } => (conflict.version, conflict.reason),
        outcome => panic!("no conflict: {outcome:?}"),
    }
}

fn appended(file: &str) -> ConflictReason {
    ConflictReason::ConcurrentAppend { file: file.to_owned(), read: WhatWasRead::WholeTable }
}

#[test]
fn appends_do_not_conflict_with_appends_and_overwrites() {
    found_early_and_late(|hide| {
        let (store, storage) = table(&["a"]);
        let environment = environment();
        let base = Snapshot::open(&storage, None).unwrap();
        append(&base, "b", &environment).commit_or_fail().unwrap();
        let newest = Snapshot::open(&storage, None).unwrap();
        overwrite(&newest, "c", &environment).unwrap().commit_or_fail().unwrap();
        hide(&store);
        let committed = append(&base, "d", &environment).commit_or_fail().unwrap();
        assert_eq!(committed.version, 4);
        assert_eq!(versions_of(&storage, &committed), [4]);
        assert_eq!(paths(&Snapshot::open(&storage, Some(4)).unwrap()), ["c", "d"]);
    });
}

#[test]
fn an_overwrite_that_conflicts_reports_the_reason_and_changes_nothing() {
    found_early_and_late(|hide| {
        let (store, storage) = table(&["a"]);
        let environment = environment();
        let base = Snapshot::open(&storage, None).unwrap();
        append(&base, "b", &environment).commit_or_fail().unwrap();
        hide(&store);
        let outcome = overwrite(&base, "c", &environment).unwrap().commit().unwrap();
        assert_eq!(reason(outcome), (2, appended("b")));
        let error = overwrite(&base, "c", &environment).unwrap().commit_or_fail().unwrap_err();
        assert_eq!((error.kind(), error.version()), (ErrorKind::CommitConflict, Some(2)));
        let after = Snapshot::open(&storage, Some(2)).unwrap();
        assert_eq!(paths(&after), ["a", "b"]);
        assert!(storage.get("_delta_log/00000000000000000003.json").unwrap().is_none());
    });
}

/// The overwrite removes no file, because it has read an empty table. It conflicts with rows that are added
/// concurrently.
#[test]
fn an_overwrite_that_changes_nothing_conflicts_with_an_append() {
    found_early_and_late(|hide| {
        let (store, storage) = table(&[]);
        let base = Snapshot::open(&storage, None).unwrap();
        write_commit(&storage, 1, &[add_line("b")]);
        hide(&store);
        let overwrite = Transaction::overwrite(&base, Operation::new("WRITE"), &environment()).unwrap();
        assert_eq!(reason(overwrite.commit().unwrap()), (1, appended("b")));
    });
}

/// After a failed put, all commits of other writers are read, so a conflict is also found in a later one.
#[test]
fn an_overwrite_conflicts_with_a_commit_after_the_first_one() {
    found_early_and_late(|hide| {
        let (store, storage) = table(&["a"]);
        let base = Snapshot::open(&storage, None).unwrap();
        write_commit(&storage, 2, &[r#"{"commitInfo":{}}"#.to_owned()]);
        write_commit(&storage, 3, &[add_line("b")]);
        hide(&store);
        let outcome = overwrite(&base, "c", &environment()).unwrap().commit().unwrap();
        assert_eq!(reason(outcome), (3, appended("b")));
    });
}

/// All commits after the base are checked, not only the first.
#[test]
fn metadata_and_protocol_changes_in_any_later_commit_conflict() {
    let mut lines = first_lines(&[("delta.appendOnly".to_owned(), "false".to_owned())].into());
    lines[0] = lines[0].replace("\"minWriterVersion\":2", "\"minWriterVersion\":4");
    for (line, expected) in
        lines.into_iter().zip([ConflictReason::ProtocolChanged, ConflictReason::MetadataChanged])
    {
        found_early_and_late(|hide| {
            let (store, storage) = table(&["a"]);
            let base = Snapshot::open(&storage, None).unwrap();
            write_commit(&storage, 2, &[add_line("b")]);
            write_commit(&storage, 3, std::slice::from_ref(&line));
            write_commit(&storage, 4, &[add_line("c")]);
            hide(&store);
            let outcome = append(&base, "d", &environment()).commit().unwrap();
            assert_eq!(reason(outcome), (3, expected.clone()));
            assert!(storage.get("_delta_log/00000000000000000005.json").unwrap().is_none());
        });
    }
}

#[test]
fn progress_of_the_same_application_conflicts() {
    found_early_and_late(|hide| {
        let (store, storage) = table(&["a"]);
        let base = Snapshot::open(&storage, None).unwrap();
        write_commit(&storage, 2, &[r#"{"txn":{"appId":"app","version":7}}"#.to_owned()]);
        hide(&store);
        let mut transaction = append(&base, "b", &environment());
        transaction.record_progress("app", 8);
        let expected = (2, ConflictReason::AppTransaction("app".to_owned()));
        assert_eq!(reason(transaction.commit().unwrap()), expected);
        let mut again = append(&base, "b", &environment());
        again.record_progress("app", 7);
        let Outcome::AlreadyApplied(applied) = again.commit().unwrap() else { panic!("not applied before") };
        assert_eq!((applied.version, applied.recorded, applied.table_version), (7, 7, 2));
    });
}

#[test]
fn exactly_one_of_sixteen_concurrent_creations_succeeds() {
    for _ in 0..20 {
        let (_, storage) = empty();
        let barrier = Barrier::new(16);
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let environment = deltalog::Environment::system();
            let threads: Vec<_> = (0..16)
                .map(|_| {
                    let transaction = creation(&storage, &environment);
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        transaction.commit_or_fail()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (winners, losers): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!(winners.len(), 1);
        assert!(
            losers.iter().all(|loser| loser.as_ref().unwrap_err().kind() == ErrorKind::TableAlreadyExists),
            "{losers:?}"
        );
        assert_eq!(versions_of(&storage, winners[0].as_ref().unwrap()), [0]);
        assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 0);
    }
}
