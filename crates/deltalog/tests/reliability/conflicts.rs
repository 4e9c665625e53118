//! What a commit that lost its version makes of the winner. Protocol: "Creation of New Log Entries".

use std::sync::Barrier;

use deltalog::engine::transaction::{ConflictReason, Outcome};
use deltalog::{ErrorKind, Snapshot};

use crate::common::{
    add_line, append, creation, empty, environment, first_lines, overwrite, paths, table, versions_of,
    write_commit,
};

fn reason(outcome: Outcome) -> (u64, ConflictReason) {
    match outcome {
        Outcome::Conflict(conflict) => (conflict.version, conflict.reason),
        Outcome::Committed(committed) => panic!("committed: {committed:?}"),
    }
}

#[test]
fn an_append_goes_over_appends_and_overwrites() {
    let (_, storage) = table(&["a"]);
    let environment = environment();
    let base = Snapshot::open(&storage, None).unwrap();
    append(&base, "b", &environment).commit_or_fail().unwrap();
    overwrite(&Snapshot::open(&storage, None).unwrap(), "c", &environment).unwrap().commit_or_fail().unwrap();
    let committed = append(&base, "d", &environment).commit_or_fail().unwrap();
    assert_eq!(committed.version, 4);
    assert_eq!(versions_of(&storage, &committed), [4]);
    assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()), ["c", "d"]);
}

#[test]
fn an_overwrite_that_lost_says_why_and_changes_nothing() {
    let (_, storage) = table(&["a"]);
    let environment = environment();
    let base = Snapshot::open(&storage, None).unwrap();
    append(&base, "b", &environment).commit_or_fail().unwrap();
    let outcome = overwrite(&base, "c", &environment).unwrap().commit().unwrap();
    assert_eq!(reason(outcome), (2, ConflictReason::FilesChanged));
    let error = overwrite(&base, "c", &environment).unwrap().commit_or_fail().unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::CommitConflict, Some(2)));
    let after = Snapshot::open(&storage, None).unwrap();
    assert_eq!((after.version(), paths(&after)), (2, vec!["a".to_owned(), "b".to_owned()]));
}

/// Whatever stands between the base and the end of the log is looked at, not only the first winner.
#[test]
fn metadata_and_protocol_of_any_winner_conflict() {
    let lines = first_lines(&[("delta.appendOnly".to_owned(), "false".to_owned())].into());
    for (line, expected) in
        lines.into_iter().zip([ConflictReason::ProtocolChanged, ConflictReason::MetadataChanged])
    {
        let (_, storage) = table(&["a"]);
        let base = Snapshot::open(&storage, None).unwrap();
        write_commit(&storage, 2, &[add_line("b")]);
        write_commit(&storage, 3, std::slice::from_ref(&line));
        write_commit(&storage, 4, &[add_line("c")]);
        let outcome = append(&base, "d", &environment()).commit().unwrap();
        assert_eq!(reason(outcome), (3, expected.clone()));
        assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 4);
    }
}

#[test]
fn an_application_does_not_overtake_itself() {
    let (_, storage) = table(&["a"]);
    let base = Snapshot::open(&storage, None).unwrap();
    write_commit(&storage, 2, &[r#"{"txn":{"appId":"app","version":7}}"#.to_owned()]);
    let mut transaction = append(&base, "b", &environment());
    transaction.record_progress("app", 7);
    assert_eq!(reason(transaction.commit().unwrap()), (2, ConflictReason::AppTransaction("app".to_owned())));
}

#[test]
fn of_sixteen_creators_one_wins() {
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
