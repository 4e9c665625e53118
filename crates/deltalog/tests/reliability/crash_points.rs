//! Every operation, with every fault at each of its requests: afterwards the table is in the old or in the new state,
//! and can be written again.
//!
//! The faults of a request are those of its kind, once or for good, and the end of the process before and after its
//! effect. Afterwards a naive replay of the log must agree at every version, and every data file must exist.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use deltalog::engine::checkpoint::{CheckpointLimits, write_checkpoint, write_checkpoint_within};
use deltalog::engine::parallel::stay_alone;
use deltalog::engine::protocol::SetTransaction;
use deltalog::{
    Environment, Error, ErrorKind, Operation, PendingWrite, ReplaceWhere, Result, SaveMode, Snapshot,
    Storage, TableChange, WriteRequest, alter_table, find_commit,
};
use deltalog_testkit::judge::{Log, State as Replayed};

use crate::common::store::{Call, Crash, Fault, FaultyStore};
use crate::common::{
    add, add_line, append, empty, environment, live, metadata_line, overwrite, paths, schema, storage_in,
    table, try_creation, write_commit,
};

type State = Option<(u64, Vec<String>)>;

/// How a request fails, and whether all later ones fail too.
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

/// Checks that the newest version and every fourth one are as a naive replay says, and that their data files exist if
/// `files_exist`. The four remainders take turns.
fn check_versions(store: &FaultyStore, storage: &Storage, files_exist: bool, turn: usize) {
    let log = Log::read(&store.objects(), "t").unwrap();
    let newest = log.states.len().saturating_sub(1);
    let is_checked = |version: &(usize, &Replayed)| version.0 % 4 == turn % 4 || version.0 == newest;
    for (version, expected) in log.states.iter().enumerate().filter(is_checked) {
        let version = version as u64;
        let found: BTreeSet<String> =
            paths(&Snapshot::open(storage, Some(version)).unwrap()).into_iter().collect();
        assert_eq!(found, expected.files, "version {version}");
        for path in expected.files.iter().filter(|_| files_exist) {
            assert!(
                store.objects().get(&format!("t/{path}")).is_some(),
                "{path} of version {version} was deleted"
            );
        }
    }
}

/// Runs `operation` once without faults, and then once for each of its requests and each failure.
fn fail_at_each_request(
    prepare: impl FnOnce() -> (FaultyStore, Storage),
    operation: impl Fn(&Storage) -> Result<(), Error>,
    files_exist: bool,
) {
    // A crash is to unwind this thread.
    stay_alone();
    let prepared = prepare().0;
    let store = prepared.copy();
    let storage = storage_in(&store);
    let before = state(&storage);
    store.take_calls();
    operation(&storage).unwrap();
    let calls = store.take_calls();
    let after = state(&storage);
    assert!(!calls.is_empty(), "the operation made no requests");
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
            // The process has told nobody, even if something has caught its end.
            _ if failure.fault.is_crash() => {}
            Err(_) => unreachable!("only a crash unwinds"),
            Ok(Ok(())) => assert_eq!(found, after, "{context}"),
            Ok(Err(error)) if error.kind() == ErrorKind::CommitStateUnknown => {}
            Ok(Err(_)) => assert_eq!(found, before, "{context}"),
        }
        check_versions(&store, &storage, files_exist, turn);
        if let Some((version, _)) = found {
            let next = append(&Snapshot::open(&storage, None).unwrap(), "afterwards", &other_ids());
            assert_eq!(next.commit_or_fail().unwrap().version, version + 1, "{context}");
        }
    }
}

fn other_ids() -> Environment {
    Environment::system()
}

/// Writes a data file and commits it, as users do.
fn write(storage: &Storage, mode: SaveMode, progress: Option<SetTransaction>) -> Result<()> {
    let environment = hasty();
    let mut request = WriteRequest::new(schema(), mode);
    request.app_transactions = progress.into_iter().collect();
    write_as(storage, request, &environment)
}

fn write_as(storage: &Storage, request: WriteRequest, environment: &Environment) -> Result<()> {
    let pending = PendingWrite::begin(storage, request, environment)?.unwrap();
    storage.create_file("new")?.finish()?;
    pending.commit_or_fail(vec![add("new")], Operation::new("WRITE")).map(drop)
}

/// Creates a table by writes, whose data files exist.
fn written_table(files: &[&str]) -> (FaultyStore, Storage) {
    let (store, storage) = table(files);
    for file in files {
        storage.create_file(file).unwrap().finish().unwrap();
    }
    store.take_calls();
    (store, storage)
}

#[test]
fn creation_is_atomic() {
    let create = |storage: &Storage| try_creation(storage, &hasty())?.commit_or_fail().map(drop);
    fail_at_each_request(empty, create, false);
}

#[test]
fn a_write_that_creates_the_table_is_atomic() {
    fail_at_each_request(empty, |storage| write(storage, SaveMode::Append, None), true);
}

#[test]
fn an_append_that_writes_a_checkpoint_is_atomic() {
    fail_at_each_request(
        || written_table(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
        |storage| write(storage, SaveMode::Append, None),
        true,
    );
}

#[test]
fn an_append_to_a_handle_is_atomic() {
    let prepare = || {
        let (store, storage) = table(&["a"]);
        append(&Snapshot::open(&storage, None).unwrap(), "b", &other_ids()).commit_or_fail().unwrap();
        store.take_calls();
        (store, storage)
    };
    let on_old = |storage: &Storage| {
        append(&Snapshot::open(storage, Some(1))?, "new", &hasty()).commit_or_fail().map(drop)
    };
    fail_at_each_request(prepare, on_old, false);
}

#[test]
fn an_append_with_progress_is_atomic() {
    let progress = || Some(SetTransaction::new("app", 1));
    fail_at_each_request(
        || written_table(&["a"]),
        move |storage| write(storage, SaveMode::Append, progress()),
        true,
    );
}

#[test]
fn an_overwrite_is_atomic() {
    fail_at_each_request(
        || written_table(&["a", "b"]),
        |storage| write(storage, SaveMode::Overwrite, None),
        true,
    );
}

#[test]
fn an_overwrite_of_rows_for_which_a_predicate_is_true_is_atomic() {
    let replace = |storage: &Storage| {
        let mut request = WriteRequest::new(schema(), SaveMode::Overwrite);
        request.replace_where = Some(ReplaceWhere::new("true"));
        write_as(storage, request, &hasty())
    };
    fail_at_each_request(|| written_table(&["a", "b"]), replace, true);
}

#[test]
fn an_overwrite_after_a_checkpoint_is_atomic() {
    fail_at_each_request(
        || {
            let (store, storage) = table(&["a", "b", "c"]);
            write_checkpoint(&Snapshot::open(&storage, Some(2)).unwrap(), &environment()).unwrap();
            (store, storage)
        },
        |storage| overwrite(&Snapshot::open(storage, None)?, "new", &hasty())?.commit_or_fail().map(drop),
        false,
    );
}

#[test]
fn a_checkpoint_is_atomic() {
    fail_at_each_request(
        || table(&["a", "b", "c"]),
        |storage| write_checkpoint(&Snapshot::open(storage, None)?, &hasty()),
        false,
    );
}

#[test]
fn a_second_checkpoint_is_atomic() {
    fail_at_each_request(
        || {
            let (store, storage) = table(&["a", "b", "c"]);
            write_checkpoint(&Snapshot::open(&storage, Some(1)).unwrap(), &environment()).unwrap();
            (store, storage)
        },
        |storage| write_checkpoint(&Snapshot::open(storage, None)?, &hasty()),
        false,
    );
}

/// The second checkpoint uses the sidecars of the first one again.
#[test]
fn a_checkpoint_with_sidecars_is_atomic() {
    let mut limits = CheckpointLimits::default();
    (limits.inline_rows, limits.sidecar_rows) = (0, 2);
    let prepare = || {
        let (store, storage) = empty();
        let features = r#"["v2Checkpoint"]"#;
        let versions = r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"#;
        let protocol = format!(r#"{versions}"readerFeatures":{features},"writerFeatures":{features}}}}}"#);
        let policy = BTreeMap::from([("delta.checkpointPolicy".to_owned(), "v2".to_owned())]);
        write_commit(&storage, 0, &[protocol, metadata_line(&policy)]);
        write_commit(&storage, 1, &["a", "b", "c", "d", "e"].map(add_line));
        write_checkpoint_within(&Snapshot::open(&storage, None).unwrap(), &limits, &other_ids()).unwrap();
        let remove =
            r#"{"remove":{"path":"a","deletionTimestamp":1700000000000,"dataChange":true}}"#.to_owned();
        write_commit(&storage, 2, &[add_line("f"), remove]);
        (store, storage)
    };
    let write =
        |storage: &Storage| write_checkpoint_within(&Snapshot::open(storage, None)?, &limits, &hasty());
    fail_at_each_request(prepare, write, false);
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
        find_commit(storage, "an id that nobody has").map(|found| assert_eq!(found, None))
    };
    fail_at_each_request(prepare, look, false);
}

/// Sets properties of the table as of `version`.
fn set(storage: &Storage, version: u64, properties: &[&str]) -> Result<()> {
    let properties = properties.iter().map(|name| ((*name).to_owned(), "true".to_owned())).collect();
    let base = Snapshot::open(storage, Some(version))?;
    alter_table(&base, &TableChange::SetProperties(properties), Default::default(), &hasty()).map(drop)
}

/// The change is rebased over an append, and notes the version with which in-commit timestamps begin.
#[test]
fn a_change_of_properties_is_atomic() {
    let properties = ["delta.enableInCommitTimestamps", "delta.enableDeletionVectors"];
    fail_at_each_request(|| table(&["a", "b"]), |storage| set(storage, 1, &properties), false);
    let (_, storage) = table(&["a", "b"]);
    set(&storage, 1, &properties).unwrap();
    let newest = Snapshot::open(&storage, None).unwrap();
    let begun = newest.metadata().configuration.get("delta.inCommitTimestampEnablementVersion");
    assert_eq!((newest.version(), begun.map(String::as_str)), (3, Some("3")));
    assert_eq!(newest.protocol().min_writer_version, 7);
}
