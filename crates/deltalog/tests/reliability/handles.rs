//! Handles of tables: they return the newest snapshot, the commits of the log, and whether table properties allow an
//! operation. Protocol: "Delta Log Entries", "Metadata Cleanup", "Append-only Tables".

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{Background, CommitEntry, Environment, ErrorKind, Snapshot, Storage, Table, write_checkpoint};
use deltalog_testkit::store::{Answer, Call, Director, Entry, Objects, Op, Store};
use url::Url;
use uuid::Uuid;

use crate::common::store::{Fault, FaultyStore};
use crate::common::{
    add_line, append, drop_table, empty, environment, first_lines, replace_table, write_commit, write_log,
};

const LONG: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// A table of four versions, a handle that was just opened, and a clock that the test advances.
struct Watched {
    store: FaultyStore,
    storage: Storage,
    clock: Arc<AtomicI64>,
    background: Background,
    table: Table,
}

impl Watched {
    fn new() -> Self {
        let (store, storage) = empty();
        write_log(&storage, 4);
        let (clock, background) = (Arc::new(AtomicI64::new(1_000_000)), Background::new());
        let time = Arc::clone(&clock);
        let environment = Environment::new(move || time.load(Ordering::Relaxed), Uuid::new_v4);
        let table = Table::open(&storage, &environment.with_background(&background)).unwrap();
        store.take_calls();
        Self { store, storage, clock, background, table }
    }

    fn pass(&self, milliseconds: i64) {
        self.clock.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// Returns the version of a snapshot that may be one second old. Waits for the background work.
    fn recent(&self) -> deltalog::Result<u64> {
        let found = self.table.recent_snapshot(SECOND).map(|snapshot| snapshot.version());
        assert!(self.background.settle(LONG));
        found
    }
}

fn kind<T>(result: deltalog::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

#[test]
fn a_recent_answer_makes_no_request_and_the_next_one_is_newer() {
    let watched = Watched::new();
    write_commit(&watched.storage, 4, &[add_line("4")]);
    // The call returns without waiting, although the store does not answer.
    watched.store.fail(|_, _| Some(Fault::LostBefore));
    assert_eq!(watched.recent().unwrap(), 3);
    assert_eq!(watched.store.take_calls().len(), 1, "the refresh in the background");
    watched.store.heal();
    assert_eq!(watched.recent().unwrap(), 3);
    assert_eq!(watched.recent().unwrap(), 4);
    assert_eq!(watched.table.snapshot().unwrap().version(), 4);
}

#[test]
fn an_answer_is_never_older_than_the_limit() {
    let watched = Watched::new();
    for version in 4..8 {
        write_commit(&watched.storage, version, &[add_line("more")]);
        watched.pass(1001);
        assert_eq!(watched.recent().unwrap(), version);
    }
    write_commit(&watched.storage, 8, &[add_line("more")]);
    assert_eq!(watched.table.recent_snapshot(Duration::ZERO).unwrap().version(), 8);
    // If the clock was set back, the age of the snapshot is unknown.
    write_commit(&watched.storage, 9, &[add_line("more")]);
    watched.pass(-10_000_000);
    assert_eq!(watched.recent().unwrap(), 9);
    // After the refresh, the age is known again.
    watched.store.fail(|_, _| Some(Fault::Denied));
    watched.pass(900);
    assert_eq!(watched.recent().unwrap(), 9);
    watched.pass(200);
    assert_eq!(kind(watched.recent()), ErrorKind::PermissionDenied);
}

/// If refreshes fail, the handle returns the kept snapshot until it is too old. Then the caller gets the error.
#[test]
fn a_refresh_that_fails_is_raised_when_the_answer_is_too_old() {
    let watched = Watched::new();
    watched.store.fail(|_, _| Some(Fault::Denied));
    for _ in 0..3 {
        assert_eq!(watched.recent().unwrap(), 3);
        watched.pass(300);
    }
    watched.pass(300);
    assert_eq!(kind(watched.recent()), ErrorKind::PermissionDenied);
    watched.store.heal();
    assert_eq!(watched.recent().unwrap(), 3);
}

#[test]
fn a_replaced_table_is_seen_by_the_next_call() {
    for is_created_again in [false, true] {
        let watched = Watched::new();
        let (place, _) = Table::at_place(|| watched.table.snapshot(), &environment()).unwrap();
        drop_table(&watched.storage);
        if is_created_again {
            replace_table(&watched.storage, 3);
        }
        assert_eq!(watched.recent().unwrap(), 3, "the answer is from before");
        let expected = if is_created_again { ErrorKind::TableReplaced } else { ErrorKind::NotATable };
        assert_eq!(kind(watched.recent()), expected);
        assert_eq!(kind(watched.table.snapshot()), expected);
        assert_eq!(Table::exists(&watched.storage).unwrap(), is_created_again);
        match place.snapshot() {
            Ok(found) => assert!(is_created_again && found.version() == 2),
            Err(error) => assert!(!is_created_again && error.kind() == ErrorKind::NotATable, "{error}"),
        }
    }
}

/// Holds back one listing: it sends a message when the listing is done, and returns the listing only after a message
/// arrives. It affects only the first listing after it was armed.
#[derive(Default)]
struct SlowListing(Mutex<Option<(Sender<()>, Receiver<()>)>>);

impl Director for SlowListing {
    fn begin(&self, _: &Call) -> Option<Fault> {
        None
    }

    fn end(&self, call: &Call, _: Answer) {
        let armed = if call.op == Op::List { self.0.lock().unwrap().take() } else { None };
        if let Some((listed, go)) = armed {
            listed.send(()).unwrap();
            go.recv_timeout(LONG).unwrap();
        }
    }

    fn shown(&self, entries: Vec<Entry>, _: u64) -> Vec<Entry> {
        entries
    }

    fn now_ms(&self) -> i64 {
        crate::common::NOW_MS
    }
}

/// Slows down a refresh of a table with four versions, and lets `replace` change the table after the refresh has listed
/// the log and before the listing is returned. Returns the first snapshot, the result of the slow refresh, and the
/// snapshot that the handle keeps.
fn slow_look(replace: impl FnOnce(&Storage)) -> [Snapshot; 3] {
    let director = Arc::new(SlowListing::default());
    let store = Store::new(Arc::<Mutex<Objects>>::default(), Arc::clone(&director) as Arc<dyn Director>);
    let storage = Storage::with_immediate_store(Url::parse("memory:///t").unwrap(), Arc::new(store)).unwrap();
    write_log(&storage, 4);
    let (place, first) = Table::at_place(|| Snapshot::open(&storage, None), &environment()).unwrap();
    let ((listed, is_listed), (go, gone)) = (channel(), channel());
    *director.0.lock().unwrap() = Some((listed, gone));
    let slow = std::thread::scope(|scope| {
        let slow = scope.spawn(|| place.snapshot().unwrap());
        is_listed.recv_timeout(LONG).unwrap();
        replace(&storage);
        assert_eq!(place.snapshot().unwrap().version(), 2);
        go.send(()).unwrap();
        slow.join().unwrap()
    });
    [first, slow, place.recent_snapshot(LONG).unwrap()]
}

#[test]
fn a_slow_refresh_does_not_bring_a_replaced_table_back() {
    let [first, slow, kept] = slow_look(|storage| replace_table(storage, 3));
    for found in [slow, kept] {
        assert!(found.version() == 2 && found.metadata().id != first.metadata().id);
    }
}

/// While a refresh is slow, the table is replaced with an older backup, which has fewer versions.
#[test]
fn a_slow_refresh_does_not_bring_lost_versions_back() {
    let [_, slow, kept] = slow_look(|storage| storage.delete(&LogFileName::Commit(3).path()).unwrap());
    assert_eq!((slow.version(), kept.version()), (2, 2));
}

/// Threads share a handle while other writers commit. No thread ever sees an older version after a newer one.
#[test]
fn a_handle_never_goes_back() {
    let watched = Watched::new();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let table = watched.table.clone();
            scope.spawn(move || {
                let mut before = 0;
                for round in 0..30_u64 {
                    let max_age = Duration::from_millis((thread + round) % 2 * 1000);
                    let now = table.recent_snapshot(max_age).unwrap().version();
                    assert!(before <= now, "{before}, {now}");
                    before = now;
                }
            });
        }
        for version in 4..24 {
            write_commit(&watched.storage, version, &[add_line(&version.to_string())]);
        }
    });
    assert_eq!(watched.table.snapshot().unwrap().version(), 23);
}

/// Without a `Background`, which snapshot is returned does not depend on timing.
#[test]
fn without_a_background_a_recent_answer_is_refreshed_when_it_is_too_old() {
    let (_, storage) = empty();
    write_log(&storage, 4);
    let table = Table::open(&storage, &environment()).unwrap();
    write_commit(&storage, 4, &[add_line("4")]);
    for _ in 0..3 {
        assert_eq!(table.recent_snapshot(SECOND).unwrap().version(), 3);
    }
    assert_eq!(table.snapshot().unwrap().version(), 4);
    assert_eq!(
        Table::of(&table.snapshot().unwrap(), &environment()).recent_snapshot(LONG).unwrap().version(),
        4
    );
}

fn entries(snapshot: &Snapshot, from: u64) -> deltalog::Result<Vec<CommitEntry>> {
    snapshot.commits(from)?.collect()
}

#[test]
fn commits_are_returned_by_version_up_to_the_newest() {
    let (store, storage) = empty();
    write_log(&storage, 3);
    let opened = Snapshot::open(&storage, Some(1)).unwrap();
    append(&Snapshot::open(&storage, None).unwrap(), "new", &environment()).commit_or_fail().unwrap();
    let found = entries(&opened, 0).unwrap();
    let rows: Vec<_> = found.iter().map(|entry| (entry.version, entry.actions.num_rows())).collect();
    assert_eq!(rows, [(0, 2), (1, 1), (2, 1), (3, 2)]);
    assert_eq!(found[3].info.as_ref().and_then(|info| info.operation.as_deref()), Some("WRITE"));
    assert!(found[2].info.is_none());
    // Commits are read one by one, and only when they are requested.
    let mut commits = opened.commits(2).unwrap();
    store.take_calls();
    assert_eq!(commits.next().unwrap().unwrap().version, 2);
    assert_eq!(store.take_calls().len(), 1);
}

/// A reader that follows a table requests the version after the last one that it has seen.
#[test]
fn after_the_newest_version_there_are_no_commits_yet() {
    let (_, storage) = empty();
    write_log(&storage, 3);
    let opened = Snapshot::open(&storage, None).unwrap();
    assert!(entries(&opened, 3).unwrap().is_empty());
    let error = entries(&opened, 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionNotFound);
    assert!(error.to_string().contains("versions 0 to 2"), "{error}");
}

#[test]
fn missing_commits_are_typed_errors() {
    let (_, storage) = empty();
    write_log(&storage, 12);
    write_checkpoint(&Snapshot::open(&storage, Some(8)).unwrap(), &environment()).unwrap();
    let opened = Snapshot::open(&storage, None).unwrap();
    let mut commits = opened.commits(3).unwrap();
    (0..5).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
    // The commits are deleted while they are read.
    assert_eq!(kind(commits.next().unwrap()), ErrorKind::VersionNotFound);
    assert_eq!(kind(opened.commits(4)), ErrorKind::VersionNotFound);
    assert_eq!(entries(&opened, 5).unwrap().len(), 7);
    // Newer versions are read from the checkpoint of version 8 and the commits after it.
    for (missing, expected) in [(7, ErrorKind::VersionNotFound), (9, ErrorKind::CorruptLog)] {
        storage.delete(&LogFileName::Commit(missing).path()).unwrap();
        assert_eq!(kind(opened.commits(missing)), expected);
    }
    replace_table(&storage, 20);
    assert_eq!(kind(opened.commits(5)), ErrorKind::TableReplaced);
}

/// "Metadata Cleanup", "Append-only Tables".
#[test]
fn properties_set_the_retention_and_whether_rows_may_be_deleted() {
    let with = |properties: &[(&str, &str)]| {
        let (_, storage) = empty();
        let properties: BTreeMap<_, _> =
            properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        write_commit(&storage, 0, &first_lines(&properties));
        Snapshot::open(&storage, None).unwrap()
    };
    let days = |days: u64| Duration::from_secs(days * 24 * 3600);
    let plain = with(&[]);
    assert_eq!(
        (plain.log_retention().unwrap(), plain.deleted_file_retention().unwrap()),
        (days(30), days(7))
    );
    plain.ensure_removable().unwrap();
    let kept = with(&[
        ("delta.logRetentionDuration", "interval 2 weeks"),
        ("delta.deletedFileRetentionDuration", "interval 1 day 12 hours"),
        ("delta.appendOnly", "true"),
    ]);
    assert_eq!(kept.log_retention().unwrap(), days(14));
    assert_eq!(kept.deleted_file_retention().unwrap(), Duration::from_secs(36 * 3600));
    assert_eq!(kind(kept.ensure_removable()), ErrorKind::InvalidArgument);
    for text in ["interval 1 month", "soon", "interval -1 days"] {
        let unclear = with(&[("delta.deletedFileRetentionDuration", text)]);
        let error = unclear.deleted_file_retention().unwrap_err();
        assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains(text), "{error}");
    }
}

/// If the table was replaced, time travel with an old handle does not return versions of the new table.
#[test]
fn time_travel_does_not_lead_to_another_table() {
    let (_, storage) = empty();
    write_log(&storage, 12);
    let opened = Snapshot::open(&storage, None).unwrap();
    assert_eq!(opened.at_version(4).unwrap().version(), 4);
    assert_eq!(opened.at_timestamp_ms(opened.timestamp_ms().unwrap()).unwrap().version(), 11);
    drop_table(&storage);
    assert_eq!(kind(opened.at_version(4)), ErrorKind::NotATable);
    replace_table(&storage, 20);
    assert_eq!(kind(opened.at_version(4)), ErrorKind::TableReplaced);
    assert_eq!(kind(opened.at_timestamp_ms(opened.timestamp_ms().unwrap())), ErrorKind::TableReplaced);
}
