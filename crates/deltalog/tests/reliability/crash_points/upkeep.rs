//! Checkpoints, compactions and clean-ups that fail at any request.

use std::collections::BTreeMap;

use deltalog::engine::checkpoint::{CheckpointLimits, write_checkpoint, write_checkpoint_within};
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{Background, Environment, Snapshot, Storage, clean_up_log, compact_log};
use uuid::Uuid;

use super::{fail_at_each_request, hasty, other_ids};
use crate::common::store::FaultyStore;
use crate::common::{
    NOW_MS, add_line, append, empty, environment, first_lines, metadata_line, table, write_commit, write_log,
};

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

/// The second checkpoint refers to the sidecars of the first one.
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

/// Protocol: "Log Compaction Files".
#[test]
fn a_compaction_is_atomic() {
    let compact = |storage: &Storage| compact_log(&Snapshot::open(storage, None)?, 1, 3).map(drop);
    fail_at_each_request(|| table(&["a", "b", "c", "d"]), compact, false);
}

#[test]
fn an_append_that_writes_a_compaction_is_atomic() {
    let prepare = || {
        let (store, storage) = empty();
        let properties = BTreeMap::from([("deltalog.logCompactionInterval".to_owned(), "3".to_owned())]);
        write_commit(&storage, 0, &first_lines(&properties));
        for file in ["a", "b"] {
            append(&Snapshot::open(&storage, None).unwrap(), file, &other_ids()).commit_or_fail().unwrap();
        }
        store.take_calls();
        (store, storage)
    };
    let append = |storage: &Storage| {
        append(&Snapshot::open(storage, None)?, "new", &hasty()).commit_or_fail().map(drop)
    };
    fail_at_each_request(prepare, append, false);
}

const DAY_MS: i64 = 24 * 3_600_000;

/// Creates a log of ten old versions, one per day, with a checkpoint of version 6 and files that a killed writer left
/// behind.
fn old_log() -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    write_log(&storage, 10);
    write_checkpoint(&Snapshot::open(&storage, Some(6)).unwrap(), &environment()).unwrap();
    let names = (0..10).map(LogFileName::Commit).chain([LogFileName::ClassicCheckpoint(6)]);
    for name in names {
        let day = i64::try_from(name.version().unwrap_or_default()).unwrap();
        store.objects().set_modified_ms(&format!("t/{}", name.path()), day * DAY_MS);
    }
    let left = format!("_delta_log/.{}.{}.tmp", LogFileName::ClassicCheckpoint(4), Uuid::from_u128(4));
    storage.put(&left, "x".into()).unwrap();
    store.objects().set_modified_ms(&format!("t/{left}"), 0);
    store.take_calls();
    (store, storage)
}

/// Protocol: "Metadata Cleanup".
#[test]
fn a_clean_up_is_atomic() {
    let clean = |storage: &Storage| {
        let environment = Environment::new(|| 100 * DAY_MS, Uuid::new_v4);
        clean_up_log(&Snapshot::open(storage, None)?, &environment, false).map(drop)
    };
    fail_at_each_request(old_log, clean, false);
}

#[test]
fn an_append_that_cleans_up_is_atomic() {
    let append = |storage: &Storage| {
        let environment = Environment::new(|| NOW_MS, hasty_ids()).with_sleep(|_| {});
        append(&Snapshot::open(storage, None)?, "new", &environment).commit_or_fail().map(drop)
    };
    fail_at_each_request(old_log, append, false);
}

/// The commit returns before the clean-up. The clean-up is background work, which runs later, or never if the process
/// crashes first.
#[test]
fn a_clean_up_in_the_background_is_atomic() {
    let append = |storage: &Storage| {
        let background = Background::stepped();
        let environment =
            Environment::new(|| NOW_MS, hasty_ids()).with_sleep(|_| {}).with_background(&background);
        append(&Snapshot::open(storage, None)?, "new", &environment).commit_or_fail()?;
        while background.step() {}
        Ok(())
    };
    fail_at_each_request(old_log, append, false);
}

/// Returns ids that are the same in each run.
fn hasty_ids() -> impl Fn() -> Uuid + Send + Sync + 'static {
    let environment = hasty();
    move || environment.uuid()
}
