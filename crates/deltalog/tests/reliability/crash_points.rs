//! Every operation, failed at every request it makes: afterwards the table is as before or as after.

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

/// Runs `operation` once undisturbed, then once for each of its requests and each fault. A fault lasts for
/// one request, or from it on (a crash).
fn enumerate(
    prepare: impl Fn() -> (crate::common::store::FaultyStore, Storage),
    operation: impl Fn(&Storage) -> Result<(), Error>,
) {
    let (store, storage) = prepare();
    let before = state(&storage);
    store.take_calls();
    operation(&storage).unwrap();
    let requests = store.take_calls().len();
    let after = state(&storage);
    assert!(requests > 2, "nothing was enumerated");
    for at in 0..requests {
        for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Denied] {
            for lasting in [false, true] {
                let (store, storage) = prepare();
                // After a crash nothing has any effect; only the request at which it came may have had one.
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
fn create() {
    enumerate(empty, |storage| {
        let created = Snapshot::open(storage, None).is_ok();
        assert!(!created);
        try_creation(storage, &environment())?.commit_or_fail().map(drop)
    });
}

/// The commit that is due for a checkpoint, too.
#[test]
fn append_with_a_checkpoint() {
    enumerate(
        || table(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
        |storage| append(&Snapshot::open(storage, None)?, "new", &environment()).commit_or_fail().map(drop),
    );
}

#[test]
fn overwrite_over_a_checkpoint() {
    enumerate(
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
fn checkpoint() {
    enumerate(
        || table(&["a", "b", "c"]),
        |storage| write_checkpoint(&Snapshot::open(storage, None)?, &environment()),
    );
}
