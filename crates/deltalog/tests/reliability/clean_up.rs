//! The clean-up removes the expired part of a log. Protocol: "Metadata Cleanup".

use std::collections::{BTreeMap, BTreeSet};

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{Environment, Error, ErrorKind, Snapshot, Storage, clean_up_log};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use uuid::Uuid;

use crate::common::forms::{FORMS, Form, rewrite};
use crate::common::oracle::Table;
use crate::common::store::{Fault, FaultyStore, Op};
use crate::common::{
    NOW_MS, append, empty, environment, live, metadata_line, paths, storage_in, write_commit, write_log,
};
use crate::histories::{Step, contents, expected, history, lines};

mod of_commits;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Returns an environment whose clock shows this time.
fn at(time_ms: i64) -> Environment {
    Environment::new(move || time_ms, Uuid::new_v4)
}

fn clean(storage: &Storage, time_ms: i64) -> deltalog::Result<Vec<String>> {
    clean_up_log(&Snapshot::open(storage, None)?, &at(time_ms), false).map(|cleaned| cleaned.files)
}

/// Returns all files of the log, with their paths.
fn log_files(storage: &Storage) -> BTreeSet<String> {
    storage
        .list_after("_delta_log", "")
        .unwrap()
        .into_iter()
        .map(|file| format!("_delta_log/{}", file.name))
        .collect()
}

/// Sets when the file at `path`, relative to the table's root, was written.
fn write_at(store: &FaultyStore, path: &str, time_ms: i64) {
    store.objects().set_modified_ms(&format!("t/{path}"), time_ms);
}

/// Sets the commit time of `version`.
fn commit_at(store: &FaultyStore, version: u64, time_ms: i64) {
    write_at(store, &LogFileName::Commit(version).path(), time_ms);
}

fn checkpoint(storage: &Storage, version: u64, form: Form) -> Vec<String> {
    write_checkpoint(&Snapshot::open(storage, Some(version)).unwrap(), &environment()).unwrap();
    rewrite(storage, version, form)
}

/// Creates a log of `versions` commits, one per day beginning with day 0, with checkpoints.
fn daily(versions: u64, checkpoints: &[(u64, Form)]) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    write_log(&storage, versions);
    for version in 0..versions {
        commit_at(&store, version, i64::try_from(version).unwrap() * DAY_MS);
    }
    for (version, form) in checkpoints {
        for file in checkpoint(&storage, *version, *form) {
            write_at(&store, &file, i64::try_from(*version).unwrap() * DAY_MS);
        }
    }
    (store, storage)
}

/// Returns the version of the newest commit that is not newer than the cut-off, as a naive reading of the protocol
/// finds it.
fn cutoff_commit(times: &[i64], cutoff_ms: i64) -> Option<u64> {
    let mut last = i64::MIN;
    let mut found = None;
    for (version, time) in (0..).zip(times) {
        last = (*time).max(last.saturating_add(1));
        if last <= cutoff_ms {
            found = Some(version);
        }
    }
    found
}

/// Returns the versions that can be read, with their files.
fn readable(storage: &Storage, versions: u64) -> BTreeMap<u64, Vec<(String, Option<String>, i64)>> {
    let open = |version| Some((version, live(&Snapshot::open(storage, Some(version)).ok()?).ok()?));
    (0..versions).filter_map(open).collect()
}

/// A checkpoint is written for a version whose commit the clean-up deletes next.
#[test]
fn a_checkpoint_that_is_written_during_a_clean_up_is_deleted() {
    let (store, storage) = daily(8, &[(5, Form::Classic)]);
    let writer = storage_in(&store.reconnect());
    let late = Snapshot::open(&writer, Some(2)).unwrap();
    store.fail(move |_, call| {
        if call.op == Op::Delete && call.path.ends_with("00000.json") {
            // This runs on another thread, because a thread in the middle of a request cannot send another request.
            let write = || write_checkpoint(&late, &environment()).unwrap();
            std::thread::scope(|scope| scope.spawn(write).join().unwrap());
        }
        None
    });
    let deleted = clean(&storage, 60 * DAY_MS).unwrap();
    store.heal();
    let checkpoint = LogFileName::ClassicCheckpoint(2).path();
    assert!(deleted.contains(&checkpoint), "{deleted:?}");
    assert!(log_files(&storage).iter().all(|file| file.as_str() >= "_delta_log/00000000000000000005"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Every version from the last checkpoint at or before the cut-off reads the same before and after. All older
    /// versions and their files are deleted.
    #[test]
    fn retained_versions_read_the_same(
        history in history(),
        hours in vec(-30..200_i64, 10),
        checkpoints in vec((any::<Index>(), prop::sample::select(&FORMS[..])), 0..4),
        days in 0..6_i64,
        now_hours in 0..60 * 24_i64,
    ) {
        let (store, storage) = empty();
        let retention = Step::LogRetention(days);
        let commits = lines(&history).into_iter().enumerate().map(|(version, mut commit)| {
            if version == history.len() - 1 {
                commit.push(retention.line(0));
            }
            commit
        });
        let mut times = Vec::new();
        let mut time = 0;
        for ((version, commit), hours) in (0..).zip(commits).zip(hours) {
            write_commit(&storage, version, &commit);
            time += hours * HOUR_MS;
            times.push(time);
            commit_at(&store, version, time);
        }
        let versions = times.len() as u64;
        let mut with_checkpoint = BTreeSet::new();
        for (index, form) in checkpoints {
            let version = index.index(times.len()) as u64;
            with_checkpoint.insert(version);
            checkpoint(&storage, version, form);
        }
        let tables: Vec<_> = (0..versions).map(|version| Table::at(&storage, version)).collect();
        let now = now_hours * HOUR_MS;
        let cutoff = (now - days * DAY_MS).div_euclid(DAY_MS) * DAY_MS;
        let oldest = cutoff_commit(&times, cutoff)
            .and_then(|cutoff| with_checkpoint.iter().rev().find(|version| **version <= cutoff).copied())
            .unwrap_or(0);
        let before = log_files(&storage);
        let newest = Snapshot::open(&storage, None).unwrap();
        let dry = clean_up_log(&newest, &at(now), true).unwrap();
        prop_assert_eq!(dry.cutoff_ms, cutoff);
        prop_assert_eq!(&before, &log_files(&storage));
        let files = clean(&storage, now).unwrap();
        prop_assert_eq!(&dry.files, &files);
        let deleted: BTreeSet<_> = files.iter().cloned().collect();
        prop_assert_eq!(deleted.len(), files.len());
        prop_assert_eq!(before.difference(&deleted).cloned().collect::<BTreeSet<_>>(), log_files(&storage));
        for version in 0..versions {
            let found = Snapshot::open(&storage, Some(version));
            if version < oldest {
                prop_assert_eq!(found.map(|found| found.version()).unwrap_err().kind(), ErrorKind::VersionNotFound);
            } else {
                prop_assert_eq!(contents(&found.unwrap()), expected(&tables[version as usize]));
            }
            prop_assert_eq!(storage.get(&LogFileName::Commit(version).path()).unwrap().is_some(), version >= oldest);
        }
        prop_assert_eq!(contents(&newest.refresh().unwrap()), expected(tables.last().unwrap()));
        prop_assert_eq!(clean(&storage, now).unwrap(), Vec::<String>::new());
    }
}

/// The clean-up fails at each of its requests in turn. Afterwards every retained version still reads the same, and
/// another clean-up completes the work.
#[test]
fn a_clean_up_that_fails_at_any_request_can_be_repeated() {
    let (prepared, storage) = daily(
        14,
        &[(3, Form::Parts(2)), (6, Form::UuidJson(2)), (9, Form::UuidParquet(2)), (11, Form::Classic)],
    );
    storage.put(&LogFileName::Compaction { start: 2, end: 5 }.path(), "{}".into()).unwrap();
    storage.put(&LogFileName::Checksum(4).path(), "{}".into()).unwrap();
    let prepare = || {
        let store = prepared.copy();
        let storage = storage_in(&store);
        (store, storage)
    };
    let now = 40 * DAY_MS + HOUR_MS;
    let (store, storage) = prepare();
    let before = readable(&storage, 14);
    assert_eq!(before.len(), 14);
    store.take_calls();
    clean(&storage, now).unwrap();
    let calls = store.take_calls();
    let after = log_files(&storage);
    let retained = readable(&storage, 14);
    assert_eq!(retained.keys().copied().collect::<Vec<_>>(), (9..14).collect::<Vec<_>>());
    assert!(calls.iter().filter(|call| call.op == Op::Delete).count() > 15, "{calls:?}");
    for at in 0..calls.len() {
        for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Denied] {
            for lasting in [false, true] {
                let (store, storage) = prepare();
                store.fail(move |number, _| match number {
                    _ if number == at => Some(fault),
                    _ if number > at && lasting => Some(Fault::Denied),
                    _ => None,
                });
                let result = clean(&storage, now);
                store.heal();
                let context = format!("{fault:?} at request {at}, lasting: {lasting}: {result:?}");
                let found = readable(&storage, 14);
                // Every version that can be read is read correctly, and every retained version can be read.
                assert!(found.iter().all(|(version, files)| before[version] == *files), "{context}");
                assert!(
                    retained.iter().all(|(version, files)| found.get(version) == Some(files)),
                    "{context}"
                );
                assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()).len(), 13, "{context}");
                // No version has only some of its files.
                let oldest = *found.keys().next().unwrap();
                assert_eq!(found.len() as u64, 14 - oldest, "{context}: {:?}", found.keys());
                clean(&storage, now).unwrap();
                assert_eq!(log_files(&storage), after, "{context}");
            }
        }
    }
}

#[test]
fn nothing_is_deleted_without_a_checkpoint() {
    let (_, storage) = daily(10, &[]);
    assert_eq!(clean(&storage, 400 * DAY_MS).unwrap(), Vec::<String>::new());
    assert_eq!(Snapshot::open(&storage, Some(0)).unwrap().version(), 0);
}

/// "`cutoffCommit` … a commit exactly at midnight is an acceptable cutoff": days are in UTC.
#[test]
fn versions_expire_at_midnight() {
    // The retention is 30 days, and version 5 was committed on day 5.
    for (now, is_expired) in [
        (36 * DAY_MS - 1, true),
        (35 * DAY_MS, true),
        (35 * DAY_MS - 1, false),
        (34 * DAY_MS + HOUR_MS, false),
    ] {
        let (_, storage) = daily(10, &[(5, Form::Classic)]);
        assert_eq!(!clean(&storage, now).unwrap().is_empty(), is_expired, "{now}");
    }
}

/// The newest checkpoint is kept, however old it is, because all later versions need it.
#[test]
fn the_last_checkpoint_stays() {
    let (_, storage) = daily(10, &[(2, Form::Classic), (5, Form::UuidJson(1))]);
    let files = clean(&storage, 4000 * DAY_MS).unwrap();
    assert!(files.iter().all(|file| !file.contains("00005.")), "{files:?}");
    assert_eq!(paths(&Snapshot::open(&storage, None).unwrap()).len(), 9);
    assert_eq!(paths(&Snapshot::open(&storage, Some(5)).unwrap()).len(), 5);
    assert!(storage.get(&LogFileName::Commit(5).path()).unwrap().is_some(), "its commit has the provenance");
}

/// A checkpoint that cannot be read does not replace commits. An older checkpoint is used, or the commits are kept.
#[test]
fn a_damaged_checkpoint_replaces_nothing() {
    for form in FORMS {
        let (_, storage) = daily(10, &[(3, Form::Classic), (7, form)]);
        let newest = rewrite_names(&storage, 7);
        for file in &newest {
            let bytes = storage.read(file).unwrap();
            storage.put(file, bytes.slice(..bytes.len() / 2)).unwrap();
            let dry =
                clean_up_log(&Snapshot::open(&storage, None).unwrap(), &at(400 * DAY_MS), true).unwrap();
            assert_eq!(dry.oldest_version, Some(3), "{form:?} {file}");
            storage.put(file, bytes).unwrap();
        }
        clean(&storage, 400 * DAY_MS).unwrap();
        assert_eq!(readable(&storage, 10).len(), 3, "{form:?}");
    }
}

/// Returns the files of the checkpoints of `version`, with its sidecars.
fn rewrite_names(storage: &Storage, version: u64) -> Vec<String> {
    let names = log_files(storage);
    let of = |name: &&String| {
        name.contains(&format!("{version:020}.checkpoint")) || name.contains(&format!("_sidecars/{version}-"))
    };
    names.iter().filter(of).cloned().collect()
}

/// Step 5: "preserve files that are less than a day old (as of midnight UTC)". Sidecars to which a checkpoint refers
/// are kept as well.
#[test]
fn sidecars_are_deleted_if_they_are_old_and_no_checkpoint_refers_to_them() {
    let now = 40 * DAY_MS + HOUR_MS;
    let (store, storage) = daily(10, &[(2, Form::UuidJson(2)), (8, Form::UuidParquet(2))]);
    for (name, time) in [("orphan", 0), ("young", 39 * DAY_MS), ("old", 39 * DAY_MS - 1)] {
        let path = format!("_delta_log/_sidecars/{name}.parquet");
        storage.put(&path, "x".into()).unwrap();
        write_at(&store, &path, time);
    }
    clean(&storage, now).unwrap();
    let left: Vec<_> = log_files(&storage).into_iter().filter(|file| file.contains("_sidecars/")).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left.iter().any(|file| file.contains("young")), "{left:?}");
    assert_eq!(left.iter().filter(|file| file.contains("_sidecars/8-")).count(), 2, "{left:?}");
    assert_eq!(paths(&Snapshot::open(&storage, Some(8)).unwrap()).len(), 8);
}

#[test]
fn no_sidecar_is_deleted_if_a_checkpoint_cannot_be_read() {
    let (store, storage) = daily(10, &[(5, Form::Classic), (8, Form::UuidJson(1))]);
    storage.put("_delta_log/_sidecars/orphan.parquet", "x".into()).unwrap();
    write_at(&store, "_delta_log/_sidecars/orphan.parquet", 0);
    let top = rewrite_names(&storage, 8).remove(0);
    storage.put(&top, "{".into()).unwrap();
    let files = clean(&storage, 37 * DAY_MS).unwrap();
    assert!(!files.is_empty() && files.iter().all(|file| !file.contains("_sidecars")), "{files:?}");
}

/// Other readers may accept top-level checkpoint files with unusual names, such as a UUID in capitals. The sidecars of
/// these files are kept.
#[test]
fn heads_under_unknown_names_protect_their_sidecars() {
    let now = 400 * DAY_MS;
    let left = |name: Option<&str>, form: Form| {
        let (_, storage) = daily(10, &[(8, form)]);
        let head = rewrite_names(&storage, 8).remove(0);
        let bytes = storage.read(&head).unwrap();
        storage.delete(&head).unwrap();
        if let Some(name) = name {
            storage.put(&format!("_delta_log/{name}"), bytes).unwrap();
        }
        clean(&storage, now).unwrap();
        log_files(&storage).into_iter().filter(|file| file.contains("_sidecars/")).count()
    };
    let version = format!("{:020}", 8);
    let uuid = Uuid::from_u128(u128::MAX).to_string().to_uppercase();
    for (extension, form) in [("parquet", Form::UuidParquet(2)), ("json", Form::UuidJson(2))] {
        assert_eq!(left(Some(&format!("{version}.checkpoint.{uuid}.{extension}")), form), 2);
        assert_eq!(left(Some(&format!("{version}.checkpoint.some.thing.{extension}")), form), 2);
        // These files are not top-level files of checkpoints.
        for name in
            [format!(".{version}.checkpoint.{uuid}.{extension}"), format!("{version}.checkpoint.{uuid}.crc")]
        {
            assert_eq!(left(Some(&name), form), 0, "{name}");
        }
        assert_eq!(left(None, form), 0);
    }
    // A top-level file that cannot be read may refer to any sidecar.
    assert_eq!(left(Some(&format!("{version}.checkpoint.{uuid}.json")), Form::UuidParquet(2)), 2);
}

/// A killed writer leaves a temporary file behind that it has not renamed yet.
#[test]
fn incomplete_checkpoints_are_deleted_after_a_day() {
    let now = 40 * DAY_MS + HOUR_MS;
    let temporary = |version: u64| {
        let name = LogFileName::ClassicCheckpoint(version);
        format!("_delta_log/.{name}.{}.tmp", Uuid::from_u128(version.into()))
    };
    for by_commit in [false, true] {
        let (store, storage) = daily(10, &[(5, Form::Classic)]);
        for (version, time) in [(7, 39 * DAY_MS - 1), (8, 39 * DAY_MS)] {
            storage.put(&temporary(version), "x".into()).unwrap();
            write_at(&store, &temporary(version), time);
        }
        if by_commit {
            let base = Snapshot::open(&storage, None).unwrap();
            append(&base, "new", &at(now)).commit_or_fail().unwrap();
        } else {
            clean(&storage, now).unwrap();
        }
        let left: Vec<_> = log_files(&storage).into_iter().filter(|file| file.ends_with(".tmp")).collect();
        assert_eq!(left, [temporary(8)], "by a commit: {by_commit}");
    }
}

/// A table is dropped and another one created while the log is cleaned up: the new table's commits have the same names
/// as expired commits of the old table.
#[test]
fn only_files_that_were_listed_are_deleted() {
    for by_commit in [false, true] {
        let (store, storage) = daily(10, &[(5, Form::Classic)]);
        let base = Snapshot::open(&storage, None).unwrap();
        let other = storage_in(&store.reconnect());
        store.fail(move |_, call| {
            if call.op == Op::Delete && call.path.ends_with(&LogFileName::Commit(0).path()) {
                let replace = || {
                    other.delete(&LogFileName::Commit(1).path()).unwrap();
                    write_commit(&other, 1, &["another table".to_owned()]);
                };
                // This runs on another thread, because the current thread is in the middle of a request.
                std::thread::scope(|scope| scope.spawn(replace).join().unwrap());
            }
            None
        });
        match by_commit {
            true => drop(append(&base, "new", &at(NOW_MS)).commit_or_fail().unwrap()),
            false => drop(clean(&storage, NOW_MS).unwrap()),
        }
        store.heal();
        let left = log_files(&storage);
        let versions = (0..5).filter(|version| left.contains(&LogFileName::Commit(*version).path()));
        assert_eq!(versions.collect::<Vec<_>>(), [1], "by a commit: {by_commit}");
    }
}

fn kind(result: deltalog::Result<Vec<String>>) -> (ErrorKind, String) {
    let error: Error = result.unwrap_err();
    (error.kind(), error.to_string())
}

/// "Maintenance Operations on Catalog-managed Tables", "Checkpoint Protection", "VACUUM Protocol Check".
#[test]
fn tables_that_require_more_are_refused_by_name() {
    for (feature, is_reader_feature, is_refused) in [
        ("checkpointProtection", false, false),
        ("unheardOf", false, true),
        ("vacuumProtocolCheck", true, false),
        ("v2Checkpoint", true, false),
    ] {
        let (_, storage) = daily(10, &[]);
        let protocol = json!({"protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": [feature],
            "readerFeatures": if is_reader_feature { vec![feature] } else { vec![] },
        }});
        write_commit(&storage, 10, &[protocol.to_string()]);
        checkpoint(&storage, 5, Form::Classic);
        let result = clean(&storage, 400 * DAY_MS);
        if is_refused {
            let (kind, text) = kind(result);
            assert!(kind == ErrorKind::Unsupported && text.contains(feature), "{text}");
            assert_eq!(readable(&storage, 10).len(), 10);
        } else {
            assert!(!result.unwrap().is_empty(), "{feature}");
        }
    }
}

/// "Checkpoint Protection": if the history uses an unknown feature, either everything that is protected is deleted, or
/// nothing. Commits are deleted before checkpoints.
#[test]
fn protected_checkpoints_stay_unless_their_history_is_known() {
    let protocol = |features: &[&str]| {
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}})
            .to_string()
    };
    let protected = "delta.requireCheckpointProtectionBeforeVersion";
    for (unknown, day, oldest, checkpoints) in
        [("appendOnly", 35, 4, 1), ("unheardOf", 35, 0, 0), ("unheardOf", 36, 6, 2), ("appendOnly", 36, 6, 2)]
    {
        let (store, storage) = daily(10, &[(2, Form::Classic), (4, Form::Classic), (6, Form::Classic)]);
        write_commit(&storage, 1, &[protocol(&[unknown])]);
        write_commit(&storage, 3, &[protocol(&["appendOnly"])]);
        let properties = BTreeMap::from([(protected.to_owned(), "6".to_owned())]);
        write_commit(&storage, 9, &[protocol(&["checkpointProtection"]), metadata_line(&properties)]);
        for version in [1, 3, 9] {
            commit_at(&store, version, i64::try_from(version).unwrap() * DAY_MS);
        }
        // The retention is thirty days.
        let deleted = clean(&storage, day * DAY_MS + DAY_MS / 2).unwrap();
        let context = format!("{unknown} on day {day}: {deleted:?}");
        let first =
            (0..10).find(|version| storage.head(&LogFileName::Commit(*version).path()).unwrap().is_some());
        assert_eq!(first, Some(oldest), "{context}");
        let is_checkpoint: Vec<bool> =
            deleted.iter().map(|path| path.ends_with(".checkpoint.parquet")).collect();
        assert_eq!(
            is_checkpoint.iter().filter(|is_checkpoint| **is_checkpoint).count(),
            checkpoints,
            "{context}"
        );
        assert!(is_checkpoint.is_sorted(), "{context}");
    }
}

fn with_properties(properties: &[(&str, &str)]) -> Storage {
    let (_, storage) = daily(10, &[(5, Form::Classic)]);
    let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    write_commit(&storage, 10, &[metadata_line(&properties)]);
    storage
}

#[test]
fn the_retention_is_a_property_of_the_table() {
    let retention = "delta.logRetentionDuration";
    for (text, is_expired) in
        [("interval 300 days", false), ("interval 1 week", true), ("interval 0 days", true)]
    {
        let storage = with_properties(&[(retention, text)]);
        assert_eq!(!clean(&storage, 200 * DAY_MS).unwrap().is_empty(), is_expired, "{text}");
    }
    for text in ["interval 1 month", "a while", "interval -1 days"] {
        let (kind, message) = kind(clean(&with_properties(&[(retention, text)]), 200 * DAY_MS));
        assert!(kind == ErrorKind::Unsupported && message.contains(text), "{message}");
    }
}
