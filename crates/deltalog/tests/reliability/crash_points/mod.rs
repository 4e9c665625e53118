//! Runs every operation, and makes each of its requests fail in every way. Afterwards the table is in the old or in
//! the new state, and can be written again.
//!
//! A request fails with each fault that is possible for its kind, once or permanently, or the process crashes before
//! or after the request takes effect. Afterwards a naive replay of the log must agree at every version, and every data
//! file must exist. The resulting tables are saved, so that another implementation can read them ([`left`]).

mod changes;
mod clones;
mod conversions;
mod drops;
mod left;
mod rows;
mod upkeep;
mod writes;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::commit::Transaction;
use deltalog::engine::deletion_vector::DeletionVectors;
use deltalog::engine::parallel::stay_alone;
use deltalog::engine::replay::{DeletionVectorColumn, FileColumn, FileColumns};
use deltalog::{Environment, Error, ErrorKind, Operation, Result, Snapshot, Storage, find_commit};
use deltalog_testkit::judge::{Log, State as Replayed};

use crate::common::store::{Call, Crash, Fault, FaultyStore};
use crate::common::{add, environment, live, paths, storage_in, table};
use left::Left;

type State = Option<(u64, Vec<String>)>;

/// How a request fails, and whether all later requests fail, too.
#[derive(Debug, Clone, Copy)]
struct Failure {
    at: usize,
    fault: Fault,
    is_lasting: bool,
}

impl Failure {
    /// Returns every failure of request `at` of `calls`.
    fn all(at: usize, call: &Call) -> impl Iterator<Item = Self> {
        let crashes =
            [Fault::CrashBefore, Fault::CrashAfter].map(|fault| Self { at, fault, is_lasting: true });
        let faults = Fault::of(call.op)
            .iter()
            .flat_map(move |fault| [false, true].map(|is_lasting| Self { at, fault: *fault, is_lasting }));
        faults.chain(crashes)
    }

    /// Returns the fault of request `number`. After a crash no request takes effect.
    fn of(self, number: usize) -> Option<Fault> {
        let later = if self.fault.is_crash() { Fault::CrashBefore } else { Fault::Denied };
        match number {
            _ if number == self.at => Some(self.fault),
            _ if number > self.at && self.is_lasting => Some(later),
            _ => None,
        }
    }
}

/// Returns an environment whose pauses take no time.
fn hasty() -> Environment {
    environment().with_sleep(|_| {})
}

fn state(storage: &Storage) -> State {
    match Snapshot::open(storage, None) {
        Ok(snapshot) => Some((snapshot.version(), paths(&snapshot))),
        Err(error) if error.kind() == ErrorKind::NotATable => None,
        Err(error) => panic!("the table cannot be opened: {error}"),
    }
}

/// Checks that the newest version and every fourth version agree with a naive replay, and, if `files_exist` is set,
/// that their data files exist. Consecutive calls check different versions. Versions that are not `retained` need not
/// exist.
fn check_versions(
    store: &FaultyStore,
    storage: &Storage,
    retained: &BTreeSet<u64>,
    files_exist: bool,
    turn: usize,
) {
    let log = Log::read(&store.objects(), "t").unwrap();
    let newest = log.states.len().saturating_sub(1);
    let is_checked = |version: &(usize, &Replayed)| version.0 % 4 == turn % 4 || version.0 == newest;
    for (version, expected) in log.states.iter().enumerate().filter(is_checked) {
        let version = version as u64;
        let snapshot = match Snapshot::open(storage, Some(version)) {
            Err(error) if error.kind() == ErrorKind::VersionNotFound && !retained.contains(&version) => {
                continue;
            }
            opened => opened.unwrap(),
        };
        assert_eq!(logical_files(&snapshot), expected.files, "version {version}");
        read_vectors(&snapshot).unwrap();
        let data_files = expected.files.iter().map(|file| file.split('#').next().unwrap_or_default());
        for path in data_files.filter(|_| files_exist) {
            assert!(
                store.objects().get(&format!("t/{path}")).is_some(),
                "{path} of version {version} was deleted"
            );
        }
    }
}

/// Returns the live logical files as the naive replay names them.
fn logical_files(snapshot: &Snapshot) -> BTreeSet<String> {
    let name = |(path, vector, _): (String, Option<String>, i64)| match vector {
        Some(vector) => format!("{path}#{vector}"),
        None => path,
    };
    live(snapshot).unwrap().into_iter().map(name).collect()
}

/// Reads the deletion vectors of the live files.
fn read_vectors(snapshot: &Snapshot) -> Result<()> {
    let vectors = DeletionVectors::new(snapshot.storage().clone(), snapshot.resolver().clone());
    for batch in snapshot.replay_files(FileColumns::of(&[FileColumn::Path, FileColumn::DeletionVector]))? {
        let batch = batch?;
        let column = DeletionVectorColumn::of_log(&batch)?;
        for row in 0..batch.num_rows() {
            column.get(row)?.map_or(Ok(()), |vector| vectors.read(&vector, None).map(drop))?;
        }
    }
    Ok(())
}

/// Returns the versions that can be opened.
fn readable(store: &FaultyStore, storage: &Storage) -> BTreeSet<u64> {
    let versions = Log::read(&store.objects(), "t").unwrap().states.len() as u64;
    (0..versions).filter(|version| Snapshot::open(storage, Some(*version)).is_ok()).collect()
}

/// Runs `operation` once without faults, and then once for each of its requests and each failure. Versions that can be
/// read after the run without faults must also be readable after every run with a fault.
fn fail_at_each_request(
    prepare: impl FnOnce() -> (FaultyStore, Storage),
    operation: impl Fn(&Storage) -> Result<(), Error>,
    files_exist: bool,
) {
    // All requests run on this thread, because a simulated crash unwinds the thread that makes the request.
    stay_alone();
    let prepared = prepare().0;
    let store = prepared.copy();
    let storage = storage_in(&store);
    let before = state(&storage);
    store.take_calls();
    operation(&storage).unwrap();
    let calls = store.take_calls();
    let after = state(&storage);
    let retained = readable(&store, &storage);
    assert!(!calls.is_empty(), "the operation made no requests");
    let mut left = Left::new();
    let failures = calls.iter().enumerate().flat_map(|(at, call)| Failure::all(at, call));
    for (turn, failure) in failures.enumerate() {
        let store = prepared.copy();
        let storage = storage_in(&store);
        store.fail(move |number, _| failure.of(number));
        let result = catch_unwind(AssertUnwindSafe(|| operation(&storage)));
        store.heal();
        let found = state(&storage);
        let context = format!("{failure:?} at {:?}: {result:?}", calls[failure.at]);
        assert!(found == before || found == after, "{context}: {found:?}");
        match result {
            Err(panic) if !panic.is::<Crash>() => resume_unwind(panic),
            // A crashed process has no result, even if code of the operation caught the unwinding.
            _ if failure.fault.is_crash() => {}
            Err(_) => unreachable!("only a crash unwinds"),
            Ok(Ok(())) => assert_eq!(found, after, "{context}"),
            Ok(Err(error)) if error.kind() == ErrorKind::CommitStateUnknown => {}
            Ok(Err(_)) => assert_eq!(found, before, "{context}"),
        }
        check_versions(&store, &storage, &retained, files_exist, turn);
        left.keep(&store);
        if let Some((version, _)) = found {
            assert_eq!(append_afterwards(&storage), version + 1, "{context}");
        }
    }
}

/// Appends a file with a known number of rows, which row tracking needs. Returns the version.
fn append_afterwards(storage: &Storage) -> u64 {
    let base = Snapshot::open(storage, None).unwrap();
    let mut file = add("afterwards");
    file.stats = Some(r#"{"numRecords":1}"#.to_owned());
    let mut next = Transaction::new(&base, Operation::new("WRITE"), &other_ids()).unwrap();
    next.add_files(&[file]).unwrap();
    next.commit_or_fail().unwrap().version
}

fn other_ids() -> Environment {
    Environment::system()
}

#[test]
fn looking_at_the_table_changes_nothing() {
    let prepare = || {
        let (store, storage) = table(&["a", "b", "c"]);
        write_checkpoint(&Snapshot::open(&storage, Some(1)).unwrap(), &environment()).unwrap();
        (store, storage)
    };
    let look = |storage: &Storage| {
        let handle = Snapshot::open(storage, Some(2))?;
        live(&handle.refresh()?.reopen()?)?;
        find_commit(storage, "an unknown id").map(|found| assert_eq!(found, None))
    };
    fail_at_each_request(prepare, look, false);
}
