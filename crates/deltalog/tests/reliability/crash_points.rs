//! Every operation, with a failure at each of its requests: afterwards the table is in the old or in the new
//! state.

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::{Error, ErrorKind, Snapshot, Storage};

use crate::common::store::Fault;
use crate::common::{append, empty, environment, overwrite, paths, table, try_creation};

type State = Option<(u64, Vec<String>)>;

fn state(storage: &Storage) -> State {
    match Snapshot::open(storage, None) {
        Ok(snapshot) => Some((snapshot.version(), paths(&snapshot))),
        Err(error) if error.kind() == ErrorKind::NotATable => None,
        Err(error) => panic!("the table cannot be opened: {error}"),
    }
}

/// Runs `operation` once without faults, and then once for each of its requests and each fault. A fault
/// affects one request, or also all later ones, as in a crash.
fn fail_at_each_request(
    prepare: impl Fn() -> (crate::common::store::FaultyStore, Storage),
    operation: impl Fn(&Storage) -> Result<(), Error>,
) {
    let (store, storage) = prepare();
    let before = state(&storage);
    store.take_calls();
    operation(&storage).unwrap();
    let requests = store.take_calls().len();
    let after = state(&storage);
    assert!(requests > 2, "the operation made too few requests");
    for at in 0..requests {
        for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Denied] {
            for lasting in [false, true] {
                let (store, storage) = prepare();
                // After a crash, no request takes effect. The request during the crash may have taken effect.
                store.fail(move |number, _| match number {
                    _ if number == at => Some(fault),
                    _ if number > at && lasting => Some(Fault::Denied),
                    _ => None,
                });
                let result = operation(&storage);
                store.heal();
                let found = state(&storage);
                let context = format!("{fault:?} at request {at}, lasting: {lasting}: {result:?}");
                assert!(found == before || found == after, "{context}: {found:?}");
                match result {
                    Ok(()) => assert_eq!(found, after, "{context}"),
                    Err(error) if error.kind() == ErrorKind::CommitStateUnknown => {}
                    Err(_) => assert_eq!(found, before, "{context}"),
                }
            }
        }
    }
}

#[test]
fn creation_is_atomic() {
    fail_at_each_request(empty, |storage| {
        let created = Snapshot::open(storage, None).is_ok();
        assert!(!created);
        try_creation(storage, &environment())?.commit_or_fail().map(drop)
    });
}

#[test]
fn an_append_that_writes_a_checkpoint_is_atomic() {
    fail_at_each_request(
        || table(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
        |storage| append(&Snapshot::open(storage, None)?, "new", &environment()).commit_or_fail().map(drop),
    );
}

#[test]
fn an_overwrite_after_a_checkpoint_is_atomic() {
    fail_at_each_request(
        || {
            let (store, storage) = table(&["a", "b", "c"]);
            write_checkpoint(&Snapshot::open(&storage, Some(2)).unwrap(), &environment()).unwrap();
            (store, storage)
        },
        |storage| {
            overwrite(&Snapshot::open(storage, None)?, "new", &environment())?.commit_or_fail().map(drop)
        },
    );
}

#[test]
fn a_checkpoint_is_atomic() {
    fail_at_each_request(
        || table(&["a", "b", "c"]),
        |storage| write_checkpoint(&Snapshot::open(storage, None)?, &environment()),
    );
}
