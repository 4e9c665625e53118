//! Work that follows a commit in the background neither delays the commit nor makes it fail. When a wait for the
//! background work ends, the work is complete. Protocol: "Checkpoints", "Version Checksum File", "Log Compaction
//! Files", "Metadata Cleanup".

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deltalog::engine::log::LogSegment;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{Background, Environment, Snapshot, Storage};
use deltalog_testkit::store::{Answer, Call, Director, Entry, Fault, Objects, Op, Store};
use url::Url;

use crate::common::{append, environment, first_lines, replace_table, table, write_commit};
use crate::written_checkpoints::{v2_metadata, v2_protocol};

const LONG: Duration = Duration::from_secs(60);

const CHECKPOINT: &str = ".checkpoint";

/// Holds back the first write of a certain file until a message arrives. It sends a message when the write is about to
/// begin.
struct Gate {
    /// A part of the file's name.
    name: &'static str,
    began: Mutex<Sender<String>>,
    go: Mutex<Receiver<()>>,
    /// The outcome of the write.
    fault: Option<Fault>,
}

impl Director for Gate {
    fn begin(&self, call: &Call) -> Option<Fault> {
        if call.path.contains(self.name) && matches!(call.op, Op::Put | Op::Create | Op::Part) {
            self.began.lock().unwrap().send(call.path.clone()).unwrap();
            // The gate opens by itself after a while. If a commit wrongly waits for it, the test fails instead of
            // hanging.
            let _ = self.go.lock().unwrap().recv_timeout(Duration::from_secs(30));
            return self.fault;
        }
        None
    }

    fn end(&self, _: &Call, _: Answer) {}

    fn shown(&self, entries: Vec<Entry>, _: u64) -> Vec<Entry> {
        entries
    }

    fn now_ms(&self) -> i64 {
        crate::common::NOW_MS
    }
}

/// Creates an empty store behind a gate.
fn gated() -> (Storage, Receiver<String>, Sender<()>) {
    gated_with(CHECKPOINT, None)
}

fn gated_with(name: &'static str, fault: Option<Fault>) -> (Storage, Receiver<String>, Sender<()>) {
    let ((began, begun), (open, go)) = (channel(), channel());
    let gate = Gate { name, began: Mutex::new(began), go: Mutex::new(go), fault };
    let store = Store::new(Arc::<Mutex<Objects>>::default(), Arc::new(gate));
    let url = Url::parse("memory:///t").unwrap();
    (Storage::with_immediate_store(url, Arc::new(store)).unwrap(), begun, open)
}

fn with_interval(interval: u64) -> BTreeMap<String, String> {
    BTreeMap::from([("delta.checkpointInterval".to_owned(), interval.to_string())])
}

/// Appends to the newest version `times` times.
fn append_times(storage: &Storage, times: u64, environment: &Environment) {
    let mut base = Snapshot::open(storage, None).unwrap();
    for number in 0..times {
        let name = format!("{} of {}", number, base.version());
        let committed = append(&base, &name, environment).commit_or_fail().unwrap();
        base = base.refresh().unwrap();
        assert_eq!(base.version(), committed.version);
    }
}

fn checkpoint_of(storage: &Storage) -> Option<u64> {
    LogSegment::find(storage, None).unwrap().checkpoint.map(|checkpoint| checkpoint.version)
}

#[test]
fn commits_are_possible_while_a_checkpoint_is_written() {
    let (storage, begun, go) = gated();
    write_commit(&storage, 0, &first_lines(&with_interval(2)));
    let background = Background::new();
    let environment = environment().with_background(&background);
    append_times(&storage, 2, &environment);
    assert!(begun.recv_timeout(LONG).unwrap().contains(&format!("{:020}", 2)));
    append_times(&storage, 5, &environment);
    assert_eq!((Snapshot::open(&storage, None).unwrap().version(), checkpoint_of(&storage)), (7, None));
    assert!(!background.wait(Duration::ZERO));
    drop(go);
    assert!(background.wait(LONG));
    assert!(begun.recv_timeout(LONG).unwrap().contains(&format!("{:020}", 6)), "of 4 and 6 only the newer");
    assert!(begun.try_recv().is_err());
    assert_eq!(checkpoint_of(&storage), Some(6));
    assert_eq!(storage.get(&LogFileName::ClassicCheckpoint(4).path()).unwrap(), None);
    for version in 0..=7 {
        let found = Snapshot::open(&storage, Some(version)).unwrap().verify().unwrap();
        assert!(found.is_ok(), "version {version}: {found:?}");
    }
}

/// The checksum of a version without a checkpoint is written while the checkpoint of another version is held back.
#[test]
fn a_checksum_does_not_wait_for_a_checkpoint_of_another_version() {
    let (storage, begun, go) = gated();
    write_commit(&storage, 0, &first_lines(&with_interval(2)));
    let background = Background::new();
    let environment = environment().with_background(&background);
    append_times(&storage, 3, &environment);
    begun.recv_timeout(LONG).unwrap();
    let has_checksum = |version| storage.get(&LogFileName::Checksum(version).path()).unwrap().is_some();
    // In a remote store, the checksum is written in the background. Version 1 is not checked: it may have no checksum,
    // if the next version was committed first.
    let began = std::time::Instant::now();
    while !has_checksum(3) && began.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!([2, 3].map(has_checksum), [false, true]);
    drop((go, background));
    assert_eq!([2, 3].map(has_checksum), [true, true]);
}

/// The background work fails with an error, with a missing response, or with a panic.
#[test]
fn a_failure_in_the_background_does_not_affect_the_commit() {
    for fault in [Fault::Denied, Fault::LostBefore, Fault::CrashBefore] {
        let (store, storage) = table(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
        let background = Background::new();
        let environment = environment().with_background(&background);
        store.fail(move |_, call| call.path.contains(".checkpoint").then_some(fault));
        append_times(&storage, 1, &environment);
        assert!(background.wait(LONG), "{fault:?}");
        assert_eq!(checkpoint_of(&storage), None);
        store.heal();
        append_times(&storage, 10, &environment);
        assert!(background.wait(LONG));
        assert_eq!(checkpoint_of(&storage), Some(20), "{fault:?}");
        assert_eq!(Snapshot::open(&storage, None).unwrap().totals().unwrap().files, 20);
    }
}

/// A table is dropped and another one created while a checkpoint is written, which therefore fails. If the checksum
/// were written, it would be trusted when the new table reaches its version.
#[test]
fn no_checksum_goes_into_the_log_of_another_table() {
    for is_wrong in [false, true] {
        let (storage, begun, go) = gated_with(CHECKPOINT, Some(Fault::Denied));
        write_commit(&storage, 0, &first_lines(&with_interval(4)));
        append_times(&storage, 3, &environment());
        if is_wrong {
            miscount(&storage, 3);
        }
        let background = Background::new();
        append_times(&storage, 1, &environment().with_background(&background));
        begun.recv_timeout(LONG).unwrap();
        replace_table(&storage, 3);
        drop(go);
        assert!(background.wait(LONG));
        assert_eq!(storage.get(&LogFileName::Checksum(4).path()).unwrap(), None);
    }
}

/// If the checkpoint were written, the dropped table would reappear, or the table that replaces it could not be read.
#[test]
fn a_checkpoint_in_the_background_does_not_bring_a_dropped_table_back() {
    let classic = first_lines(&with_interval(4));
    let v2 = vec![v2_protocol(), v2_metadata(&[("delta.checkpointInterval", "4")])];
    for (is_replaced, first) in [(false, &classic), (true, &classic), (false, &v2), (true, &v2)] {
        a_dropped_table_stays_dropped(CHECKPOINT, first, is_replaced);
    }
}

/// A log compaction that is written after its table was dropped must not bring the table back.
#[test]
fn a_compaction_in_the_background_does_not_bring_a_dropped_table_back() {
    let properties = [("delta.checkpointInterval", "100"), ("deltalog.logCompactionInterval", "4")];
    let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let first = first_lines(&BTreeMap::from(properties));
    for is_replaced in [false, true] {
        a_dropped_table_stays_dropped(".compacted", &first, is_replaced);
    }
}

/// Drops a table, and perhaps creates another one in its place, while the file called `name` is about to be written
/// after version 4.
fn a_dropped_table_stays_dropped(name: &'static str, first: &[String], is_replaced: bool) {
    let (storage, begun, go) = gated_with(name, None);
    write_commit(&storage, 0, first);
    append_times(&storage, 3, &environment());
    let background = Background::new();
    append_times(&storage, 1, &environment().with_background(&background));
    begun.recv_timeout(LONG).unwrap();
    for file in storage.list_after("", "").unwrap() {
        storage.delete(&file.name).unwrap();
    }
    let expected = if is_replaced {
        write_commit(&storage, 0, &first_lines(&with_interval(100)));
        append_times(&storage, 1, &environment());
        storage.list_after("", "").unwrap()
    } else {
        Vec::new()
    };
    drop(go);
    assert!(background.wait(LONG));
    assert_eq!(storage.list_after("", "").unwrap(), expected);
}

/// If a clean-up has removed the commit of a checkpoint's version, this is not mistaken for a dropped table.
#[test]
fn a_checkpoint_whose_commit_was_cleaned_up_stays() {
    let (storage, begun, go) = gated();
    write_commit(&storage, 0, &first_lines(&with_interval(4)));
    append_times(&storage, 3, &environment());
    let background = Background::new();
    append_times(&storage, 1, &environment().with_background(&background));
    begun.recv_timeout(LONG).unwrap();
    append_times(&storage, 2, &environment());
    storage.delete(&LogFileName::Commit(4).path()).unwrap();
    drop(go);
    assert!(background.wait(LONG));
    assert_eq!(checkpoint_of(&storage), Some(4));
    assert_eq!(Snapshot::open(&storage, None).unwrap().totals().unwrap().files, 6);
}

/// Writes a checksum with too high a number of files.
fn miscount(storage: &Storage, version: u64) {
    let path = LogFileName::Checksum(version).path();
    let text = String::from_utf8(storage.read(&path).unwrap().to_vec()).unwrap();
    let mut checksum: serde_json::Value = serde_json::from_str(&text).unwrap();
    checksum["numFiles"] = 7.into();
    checksum.as_object_mut().unwrap().remove("allFiles");
    storage.put(&path, checksum.to_string().into()).unwrap();
}

/// The first checksum has too high a number of files. The checksums of the versions that are committed while the
/// checkpoint is written are derived from it, and are deleted afterwards. No later checksum is derived from them,
/// neither by a writer whose handle has read them, nor by another writer.
#[test]
fn a_wrong_number_of_files_is_not_copied_to_later_checksums() {
    for has_handle in [true, false] {
        wrong_number_of_files(has_handle);
    }
}

fn wrong_number_of_files(has_handle: bool) {
    let (storage, begun, go) = gated();
    write_commit(&storage, 0, &first_lines(&with_interval(4)));
    append_times(&storage, 3, &environment());
    miscount(&storage, 3);
    let background = Background::new();
    let environment = environment().with_background(&background);
    let (mut base, mut go) = (Snapshot::open(&storage, None).unwrap(), Some(go));
    for number in 4..=12_u64 {
        if !has_handle {
            base = Snapshot::open(&storage, None).unwrap();
        }
        append(&base, &number.to_string(), &environment).commit_or_fail().unwrap();
        base = base.refresh().unwrap();
        base.totals().unwrap();
        if number == 4 {
            begun.recv_timeout(LONG).unwrap();
        }
        if number >= 6 {
            go.take();
            assert!(background.wait(LONG));
        }
    }
    for version in 4..=12 {
        let found = Snapshot::open(&storage, Some(version)).unwrap().verify().unwrap();
        assert!(found.is_ok(), "with a handle: {has_handle}, version {version}: {found:?}");
        match version {
            4 | 8 | 12 => assert!(found.file.is_some(), "version {version}"),
            _ => {}
        }
    }
}
