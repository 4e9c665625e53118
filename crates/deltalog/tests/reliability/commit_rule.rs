//! An acknowledged commit is in the log exactly once, even if responses of the store are lost or wrong.
//! Protocol: "Creation of New Log Entries".

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use deltalog::engine::commit::find_commit;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{Environment, ErrorKind, Snapshot, Storage};

use crate::common::store::{Call, Fault, FaultyStore, Op};
use crate::common::{NOW_MS, append, creation, empty, environment, paths, table, versions_of, versions_with};

const FIRST_ID: &str = "00000000-0000-0000-0000-000000000001";

/// Makes the first `times` put-if-absent requests fail with `fault`.
fn fail_creates(store: &FaultyStore, times: usize, fault: Fault) {
    let mut left = times;
    store.fail(move |_, call| {
        let fails = call.op == Op::Create && left > 0;
        left -= usize::from(fails);
        fails.then_some(fault)
    });
}

/// Appends while the first `times` put-if-absent requests fail with `fault`. Checks that the commit exists once, as
/// version 2.
fn commits_once_after(times: usize, fault: Fault) {
    let (store, storage) = table(&["a"]);
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "b", &environment());
    fail_creates(&store, times, fault);
    let committed = transaction.commit_or_fail().unwrap();
    store.heal();
    assert_eq!(committed.version, 2);
    assert_eq!(versions_of(&storage, &committed), [2]);
    assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()), ["a", "b"]);
}

#[test]
fn an_answer_lost_after_the_effect_is_read_back() {
    commits_once_after(1, Fault::LostAfter);
}

#[test]
fn an_answer_lost_before_the_effect_is_put_again() {
    commits_once_after(1, Fault::LostBefore);
    commits_once_after(3, Fault::LostBefore);
}

/// A client that retries its own put receives "already exists" because its first put succeeded.
#[test]
fn already_exists_after_an_own_put_is_a_success() {
    commits_once_after(1, Fault::ExistsAfter);
}

/// The store answers "already exists", for example with status 409, although the version does not exist.
#[test]
fn already_exists_without_a_commit_is_put_again() {
    let (store, storage) = table(&["a"]);
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "b", &environment());
    fail_creates(&store, 1, Fault::ExistsBefore);
    store.take_calls();
    let committed = transaction.commit_or_fail().unwrap();
    let creates = store
        .take_calls()
        .iter()
        .filter(|call| call.op == Op::Create && call.path.ends_with("02.json"))
        .count();
    store.heal();
    assert_eq!((creates, versions_of(&storage, &committed)), (2, vec![2]));
}

/// The put takes effect but returns "already exists", and the first attempt to read the commit back gets no response.
#[test]
fn reading_back_is_retried_if_there_is_no_answer() {
    let (store, storage) = table(&["a"]);
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "b", &environment());
    let (mut creates, mut reads) = (1, 1);
    store.fail(move |_, call| match call.op {
        Op::Create if creates > 0 => {
            creates -= 1;
            Some(Fault::ExistsAfter)
        }
        Op::Get if reads > 0 && call.path.ends_with("02.json") => {
            reads -= 1;
            Some(Fault::LostBefore)
        }
        _ => None,
    });
    let committed = transaction.commit_or_fail().unwrap();
    store.heal();
    assert_eq!(versions_of(&storage, &committed), [2]);
}

#[test]
fn a_lost_answer_to_the_first_commit_is_read_back() {
    for fault in [Fault::LostAfter, Fault::LostBefore, Fault::ExistsAfter] {
        let (store, storage) = empty();
        let transaction = creation(&storage, &environment());
        fail_creates(&store, 1, fault);
        let committed = transaction.commit_or_fail().unwrap();
        store.heal();
        assert_eq!(committed.version, 0);
        assert_eq!(versions_of(&storage, &committed), [0]);
    }
}

/// The response to the put is lost, and another writer's commit has the version. The append moves to the next version.
#[test]
fn a_lost_answer_may_hide_the_commit_of_another_writer() {
    let (store, storage) = table(&["a"]);
    let base = Snapshot::open(&storage, None).unwrap();
    append(&base, "winner", &environment()).commit_or_fail().unwrap();
    // The listing does not show the other writer's commit; otherwise version 3 would be put first.
    store.hide("02.json");
    let transaction = append(&base, "b", &uuids_from(100));
    fail_creates(&store, 1, Fault::LostAfter);
    let committed = transaction.commit_or_fail().unwrap();
    store.heal();
    assert_eq!(committed.version, 3);
    assert_eq!(versions_of(&storage, &committed), [3]);
    assert_eq!(paths(&Snapshot::open(&storage, Some(3)).unwrap()), ["a", "b", "winner"]);
}

fn uuids_from(first: u128) -> deltalog::Environment {
    deltalog::Environment::new(|| crate::common::NOW_MS, move || uuid::Uuid::from_u128(first))
}

/// Appends to version 1 while the first put-if-absent request fails with `fault` and every read of version 2 fails
/// with `reads`.
fn fail_append(fault: Fault, reads: Fault) -> (Storage, deltalog::Error) {
    let (store, storage) = table(&["a"]);
    storage.put("b", "data".into()).unwrap();
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "b", &uuids_from(1));
    let mut created = false;
    store.fail(move |_, call| {
        let first = call.op == Op::Create && !created;
        created |= first;
        match call.op {
            Op::Create if first => Some(fault),
            Op::Get if created && call.path.ends_with("02.json") => Some(reads),
            _ => None,
        }
    });
    let error = transaction.commit_or_fail().unwrap_err();
    store.heal();
    (storage, error)
}

/// One of the faults is the response "already exists". A client that retries a put receives it if its own first put
/// succeeded.
#[test]
fn the_state_is_unknown_if_reading_back_fails() {
    let faults = [
        (Fault::LostAfter, true),
        (Fault::LostBefore, false),
        (Fault::ExistsAfter, true),
        (Fault::ExistsBefore, false),
    ];
    for (fault, is_committed) in faults {
        for reads in [Fault::LostBefore, Fault::Denied] {
            let (storage, error) = fail_append(fault, reads);
            assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{fault:?}, {reads:?}: {error:?}");
            assert_eq!((error.version(), error.transaction_id()), (Some(2), Some(FIRST_ID)));
            let reason = if reads == Fault::Denied { "access_denied" } else { "no_answer" };
            assert_eq!(error.reason(), Some(reason), "{error}");
            assert!(error.to_string().contains(FIRST_ID), "{error}");
            assert!(error.hint().unwrap().contains("find_commit"), "{error}");
            // The hint of the error names the function that finds out whether the commit exists.
            let found = find_commit(&storage, error.transaction_id().unwrap()).unwrap();
            assert_eq!(found, is_committed.then_some(2));
            assert_eq!(versions_with(&storage, FIRST_ID), if is_committed { vec![2] } else { vec![] });
            assert_eq!(
                storage.read("b").unwrap(),
                "data",
                "no data file is deleted while the outcome is unknown"
            );
        }
    }
}

/// A damaged commit file may be our own commit, only partly written.
#[test]
fn the_state_is_unknown_if_the_commit_read_back_is_damaged() {
    let (store, storage) = table(&["a"]);
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "b", &uuids_from(1));
    store.hide("02.json");
    storage.put(&LogFileName::Commit(2).path(), r#"{"commitInfo":{"txnId":"0000"#.into()).unwrap();
    let error = transaction.commit_or_fail().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{error:?}");
    assert_eq!((error.transaction_id(), error.reason()), (Some(FIRST_ID), Some("unreadable")));
}

/// The store answers "already exists" although there is no commit, and then denies permission for the next put. The
/// first put may still take effect.
#[test]
fn the_state_is_unknown_if_permission_is_denied_after_already_exists() {
    let (store, storage) = table(&["a"]);
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "b", &environment());
    let mut creates = 0;
    store.fail(move |_, call| {
        creates += usize::from(call.op == Op::Create);
        (call.op == Op::Create).then_some(if creates == 1 { Fault::ExistsBefore } else { Fault::Denied })
    });
    let error = transaction.commit_or_fail().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{error:?}");
}

/// Commits are found by id anywhere in the log, even if the listing lags behind.
#[test]
fn commits_are_found_by_transaction_id() {
    let (_, nothing) = empty();
    assert_eq!(find_commit(&nothing, FIRST_ID).unwrap(), None, "there is no table");
    let (store, storage) = table(&[]);
    let environment = environment();
    let committed: Vec<_> = (0..100)
        .map(|number| {
            let base = Snapshot::open(&storage, None).unwrap();
            append(&base, &number.to_string(), &environment).commit_or_fail().unwrap()
        })
        .collect();
    store.hide("99.json");
    store.hide("100.json");
    for committed in [&committed[0], &committed[50], &committed[98], &committed[99]] {
        assert_eq!(find_commit(&storage, &committed.txn_id).unwrap(), Some(committed.version));
    }
    assert_eq!(find_commit(&storage, "another").unwrap(), None);
    // A damaged older commit does not hide a newer one.
    storage.put(&LogFileName::Commit(96).path(), "{".into()).unwrap();
    assert_eq!(find_commit(&storage, &committed[98].txn_id).unwrap(), Some(99));
    assert_eq!(find_commit(&storage, &committed[50].txn_id).unwrap_err().kind(), ErrorKind::CorruptLog);
    store.fail(|_, call| (call.op == Op::Get).then_some(Fault::LostBefore));
    assert_eq!(find_commit(&storage, FIRST_ID).unwrap_err().kind(), ErrorKind::Unavailable);
}

#[test]
fn the_state_is_unknown_if_the_store_never_answers() {
    let (store, storage) = table(&["a"]);
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "b", &environment());
    fail_creates(&store, usize::MAX, Fault::LostBefore);
    let error = transaction.commit_or_fail().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "the put may still take effect: {error:?}");
}

/// A client of a remote store retries for minutes before it gives up. A writer must not wait a multiple of this time.
#[test]
fn a_commit_is_not_read_back_for_longer_than_its_budget() {
    let (store, storage) = table(&["a"]);
    let now_ms = Arc::new(AtomicI64::new(NOW_MS));
    let clock = Arc::clone(&now_ms);
    let environment =
        Environment::new(move || clock.load(Ordering::Relaxed), uuid::Uuid::new_v4).with_sleep(|_| {});
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "b", &environment);
    store.take_calls();
    store.fail(move |_, call| {
        let fails = matches!(call.op, Op::Create | Op::Get);
        now_ms.fetch_add(if fails { 180_000 } else { 0 }, Ordering::Relaxed);
        fails.then_some(Fault::LostBefore)
    });
    let error = transaction.commit_or_fail().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{error:?}");
    let reads = store.take_calls().into_iter().filter(|call: &Call| call.op == Op::Get).count();
    assert_eq!(reads, 1);
}

#[test]
fn permission_denied_means_that_nothing_was_committed() {
    let (store, storage) = table(&["a"]);
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "b", &environment());
    fail_creates(&store, usize::MAX, Fault::Denied);
    let error = transaction.commit_or_fail().unwrap_err();
    let creates = store.take_calls().into_iter().filter(|call: &Call| call.op == Op::Create).count();
    store.heal();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error:?}");
    assert_eq!(creates, 1, "a denied put is not retried");
    assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 1);
}

/// The first put got no response, so it may still take effect after permission was denied for the second put.
#[test]
fn the_state_is_unknown_if_permission_is_denied_after_a_lost_answer() {
    let (store, storage) = table(&["a"]);
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "b", &environment());
    let mut creates = 0;
    store.fail(move |_, call| {
        creates += usize::from(call.op == Op::Create);
        (call.op == Op::Create).then_some(if creates == 1 { Fault::LostBefore } else { Fault::Denied })
    });
    let error = transaction.commit_or_fail().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{error:?}");
}

/// A put may take effect although permission is denied. For example, a local file system may refuse to sync the
/// directory after the commit was linked into it, or a client may lose a response and retry the put with credentials
/// that have expired since.
#[test]
fn a_put_that_is_denied_after_its_effect_is_read_back() {
    commits_once_after(1, Fault::DeniedAfter);
}

/// A table is not created if the log exists but its first versions were removed by a clean-up.
#[test]
fn tables_are_not_created_over_a_log_without_its_first_version() {
    let (_, storage) = table(&["a"]);
    storage.delete("_delta_log/00000000000000000000.json").unwrap();
    let error = creation(&storage, &environment()).commit_or_fail().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TableAlreadyExists);
    assert!(storage.get("_delta_log/00000000000000000000.json").unwrap().is_none());
}

/// No failure after the put makes a commit fail, not even a panic. Here the clock panics when the checkpoint
/// reads it.
#[test]
fn a_commit_succeeds_even_if_its_checkpoint_panics() {
    let (_, storage) = table(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let panics = deltalog::Environment::new(
        move || {
            assert_eq!(calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0, "the clock panics");
            crate::common::NOW_MS
        },
        || uuid::Uuid::from_u128(7),
    );
    let transaction = append(&Snapshot::open(&storage, None).unwrap(), "j", &panics);
    let (logged, committed) = crate::common::warnings::warnings(|| transaction.commit_or_fail().unwrap());
    assert_eq!(committed.version, 10);
    assert_eq!(versions_of(&storage, &committed), [10]);
    assert!(logged.iter().any(|line| line.contains("the clock panics")), "{logged:?}");
    assert!(storage.get("_delta_log/00000000000000000010.checkpoint.parquet").unwrap().is_none());
}

/// A stray file in the log may be named after any version, and may be a copy of a commit.
#[test]
fn commits_are_found_below_a_stray_file() {
    let (_, storage) = table(&["a", "b"]);
    let last = storage.read(&LogFileName::Commit(2).path()).unwrap();
    let info = Snapshot::open(&storage, None).unwrap().history(Some(1)).unwrap().remove(0).commit_info;
    for stray in ["{".into(), last] {
        storage.put(&LogFileName::Commit(900_000_000).path(), stray).unwrap();
        assert_eq!(find_commit(&storage, info.txn_id.as_ref().unwrap()).unwrap(), Some(2));
    }
    // The original commit no longer exists, as after a clean-up.
    storage.delete(&LogFileName::Commit(2).path()).unwrap();
    assert_eq!(find_commit(&storage, info.txn_id.as_ref().unwrap()).unwrap(), Some(900_000_000));
}

/// A listing that lags behind may show a commit, but not the commits before and after it. A simulation found such a
/// case, in which an acknowledged commit was reported as missing.
#[test]
fn commits_that_a_listing_does_not_show_are_found() {
    for shown in 0..4 {
        let (store, storage) = table(&[]);
        let environment = environment();
        let mut ids = Vec::new();
        for file in ["a", "b", "c"] {
            let base = Snapshot::open(&storage, None).unwrap();
            ids.push(append(&base, file, &environment).commit_or_fail().unwrap().txn_id);
        }
        (0..4).filter(|version| *version != shown).for_each(|version| store.hide(&format!("{version}.json")));
        for (version, id) in (1..).zip(&ids) {
            assert_eq!(find_commit(&storage, id).unwrap(), Some(version), "only version {shown} is listed");
        }
    }
}
