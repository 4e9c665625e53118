//! Logs with something wrong in them. Protocol: "Delta Log Entries", "Checkpoint Naming Scheme", "Last
//! Checkpoint File".

use std::fs::File;
use std::time::{Duration, SystemTime};

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::log::name::LogFileName;
use deltalog::engine::log::{CommitTimes, InCommitTimestamps, LastCheckpoint};
use deltalog::{Error, ErrorKind, Snapshot, Storage};

use crate::common::{add_line, empty, environment, live, paths, write_commit, write_log};

fn log(versions: u64) -> Storage {
    let (_, storage) = empty();
    write_log(&storage, versions);
    storage
}

fn checkpoint(storage: &Storage, version: u64) {
    write_checkpoint(&Snapshot::open(storage, Some(version)).unwrap(), &environment()).unwrap();
}

fn put(storage: &Storage, name: &str, text: impl Into<bytes::Bytes>) {
    storage.put(&format!("_delta_log/{name}"), text.into()).unwrap();
}

fn failure(storage: &Storage, version: Option<u64>) -> Error {
    Snapshot::open(storage, version).map(|snapshot| snapshot.version()).unwrap_err()
}

#[test]
fn a_missing_commit_is_named() {
    let storage = log(8);
    storage.delete(&LogFileName::Commit(4).path()).unwrap();
    for version in [None, Some(4), Some(5), Some(7), Some(9)] {
        let error = failure(&storage, version);
        assert_eq!((error.kind(), error.version()), (ErrorKind::CorruptLog, Some(4)), "{version:?}: {error}");
        assert!(error.to_string().contains("00000000000000000004.json"), "{error}");
    }
    assert_eq!(Snapshot::open(&storage, Some(3)).unwrap().version(), 3);
}

#[test]
fn a_refresh_does_not_step_over_a_gap() {
    let storage = log(4);
    let snapshot = Snapshot::open(&storage, None).unwrap();
    put(&storage, "00000000000000000005.json", "{\"commitInfo\":{}}");
    let error = snapshot.refresh().unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::CorruptLog, Some(4)));
}

/// A directory that is listed while commits are added may show N + 1 and not N.
#[test]
fn a_commit_that_only_the_listing_lacks_is_not_missing() {
    for hidden in [&["0.json"][..], &["3.json"], &["5.json", "6.json"], &["1.json", "5.json", "6.json"]] {
        let (store, storage) = empty();
        write_log(&storage, 3);
        let held = Snapshot::open(&storage, None).unwrap();
        (3..8)
            .for_each(|version| write_commit(&storage, version, &[add_line(&format!("{version}.parquet"))]));
        let expected = paths(&Snapshot::open(&storage, None).unwrap());
        hidden.iter().for_each(|ending| store.hide(ending));
        for snapshot in [
            Snapshot::open(&storage, None).unwrap(),
            held.refresh().unwrap(),
            Snapshot::open(&storage, Some(7)).unwrap(),
        ] {
            assert_eq!((snapshot.version(), paths(&snapshot)), (7, expected.clone()), "{hidden:?}");
        }
        assert_eq!(Snapshot::open(&storage, Some(4)).unwrap().version(), 4, "{hidden:?}");
    }
}

/// A listing that lags behind its store does not show the version that is asked for.
#[test]
fn a_version_that_the_listing_lacks_is_asked_for_by_name() {
    for hidden in [&["7.json"][..], &["5.json", "6.json", "7.json"], &[".json"]] {
        for with_checkpoint in [false, true] {
            let (store, storage) = empty();
            write_log(&storage, 8);
            if with_checkpoint {
                checkpoint(&storage, 3);
            }
            let expected = paths(&Snapshot::open(&storage, None).unwrap());
            hidden.iter().for_each(|ending| store.hide(ending));
            let snapshot = Snapshot::open(&storage, Some(7)).unwrap();
            assert_eq!((snapshot.version(), paths(&snapshot)), (7, expected), "{hidden:?}");
        }
    }
}

/// "Last Checkpoint File": it points at the newest checkpoint, whatever the order in which they are written.
#[test]
fn the_hint_never_goes_backwards() {
    let hint = |storage: &Storage| {
        LastCheckpoint::parse(&storage.read("_delta_log/_last_checkpoint").unwrap()).unwrap().version
    };
    let storage = log(8);
    checkpoint(&storage, 6);
    checkpoint(&storage, 4);
    assert_eq!(hint(&storage), 6);
    checkpoint(&storage, 6);
    checkpoint(&storage, 7);
    assert_eq!(hint(&storage), 7);
    put(&storage, "_last_checkpoint", r#"{"version":700,"size":3}"#);
    checkpoint(&storage, 7);
    assert_eq!(hint(&storage), 7, "a hint at nothing is replaced");
}

#[test]
fn torn_and_empty_commits_are_named() {
    for (text, line) in [("{\"commitInfo\":{}}\n{\"add\":{\"path\":\"x", Some(2)), ("", None), ("\n\n", None)]
    {
        let storage = log(4);
        put(&storage, "00000000000000000003.json", text);
        let error = failure(&storage, None);
        assert_eq!(
            (error.kind(), error.version(), error.line()),
            (ErrorKind::CorruptLog, Some(3), line),
            "{error}"
        );
        assert_eq!(error.path(), Some("_delta_log/00000000000000000003.json"));
        assert_eq!(Snapshot::open(&storage, Some(2)).unwrap().version(), 2);
    }
}

#[test]
fn empty_and_incomplete_checkpoints_are_passed_over() {
    let names = [
        vec!["00000000000000000005.checkpoint.parquet"],
        vec!["00000000000000000005.checkpoint.0000000001.0000000002.parquet"],
        // One part of each of two sets is no set.
        vec![
            "00000000000000000005.checkpoint.0000000001.0000000002.parquet",
            "00000000000000000005.checkpoint.0000000002.0000000003.parquet",
            "00000000000000000005.checkpoint.0000000003.0000000003.parquet",
        ],
    ];
    for (names, hinted) in names.iter().flat_map(|names| [(names, false), (names, true)]) {
        let storage = log(8);
        let expected = paths(&Snapshot::open(&storage, None).unwrap());
        for name in names {
            put(&storage, name, if name.ends_with("checkpoint.parquet") { "" } else { "x" });
        }
        if hinted {
            put(&storage, "_last_checkpoint", r#"{"version":5,"size":1}"#);
        }
        let snapshot = Snapshot::open(&storage, None).unwrap();
        assert_eq!(paths(&snapshot), expected);
        assert_eq!(snapshot.segment().checkpoint, None);
    }
}

#[test]
fn the_hint_is_only_a_hint() {
    let hints = [
        r#"{"version":2,"size":3}"#,
        r#"{"version":4,"size":3}"#,
        r#"{"version":3,"size":3}"#,
        r#"{"version":700,"size":3}"#,
        r#"{"version":18446744073709551615,"size":3}"#,
        r#"{"version":-1,"size":3}"#,
        r#"{"version":"#,
        "",
        "[]",
        "\u{0}\u{0}",
    ];
    for hint in hints {
        let storage = log(8);
        let expected = paths(&Snapshot::open(&storage, None).unwrap());
        checkpoint(&storage, 2);
        checkpoint(&storage, 4);
        put(&storage, "_last_checkpoint", hint);
        for version in 0..8 {
            let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
            assert_eq!((snapshot.version(), paths(&snapshot).len() as u64), (version, version), "{hint}");
        }
        let newest = Snapshot::open(&storage, None).unwrap();
        assert_eq!((newest.version(), paths(&newest)), (7, expected), "{hint}");
        assert_eq!(
            newest.segment().checkpoint.as_ref().map(|checkpoint| checkpoint.version),
            Some(4),
            "{hint}"
        );
    }
}

#[test]
fn foreign_files_are_passed_over() {
    let storage = log(5);
    let names = [
        "00000000000000000005.json.tmp",
        ".00000000000000000005.json.crc",
        "00000000000000000009.json#1",
        "5.json",
        "000000000000000000005.json",
        "00000000000000000002.crc",
        "00000000000000000001.00000000000000000003.compacted.json",
        "_commits/00000000000000000007.json",
        "zzz",
    ];
    for name in names {
        // Some of these names are none in every store.
        let _ = storage.put(&format!("_delta_log/{name}"), "x".into());
    }
    let snapshot = Snapshot::open(&storage, None).unwrap();
    assert_eq!((snapshot.version(), live(&snapshot).unwrap().len()), (4, 4));
}

#[test]
fn a_log_without_a_version_is_no_table() {
    let (_, storage) = empty();
    assert_eq!(failure(&storage, None).kind(), ErrorKind::NotATable);
    put(&storage, "_last_checkpoint", r#"{"version":5,"size":1}"#);
    assert_eq!(failure(&storage, None).kind(), ErrorKind::NotATable);
    assert_eq!(failure(&storage, Some(3)).kind(), ErrorKind::NotATable);
    put(&storage, "00000000000000000000.crc", "{}");
    assert_eq!(
        failure(&storage, None).kind(),
        ErrorKind::CorruptLog,
        "a log without commits is not an empty place"
    );
}

#[test]
fn a_version_that_is_not_there_lists_those_that_are() {
    let storage = log(8);
    let error = failure(&storage, Some(9));
    assert_eq!(error.kind(), ErrorKind::VersionNotFound);
    assert!(error.to_string().contains("0 to 7"), "{error}");
    checkpoint(&storage, 5);
    for version in 0..4 {
        storage.delete(&LogFileName::Commit(version).path()).unwrap();
    }
    for version in [0, 2, 4, 100] {
        let error = failure(&storage, Some(version));
        assert_eq!(error.kind(), ErrorKind::VersionNotFound, "{version}: {error}");
        assert!(error.to_string().contains("5 to 7"), "{error}");
    }
}

/// File times that go back are made monotonic, each a millisecond after the one before.
#[test]
fn time_travel_over_file_times_that_go_back() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    write_log(&storage, 5);
    for (version, time) in [1000, 5000, 2000, 4000, 9000].into_iter().enumerate() {
        let file = File::options()
            .write(true)
            .open(directory.path().join(LogFileName::Commit(version as u64).path()))
            .unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(time)).unwrap();
    }
    let times = CommitTimes::read(&storage, None, InCommitTimestamps::Never).unwrap();
    let made: Vec<_> = (0..5).map(|version| times.of(version).unwrap()).collect();
    assert_eq!(made, [1000, 5000, 5001, 5002, 9000]);
    for (time, version) in [(1000, 0), (4999, 0), (5000, 1), (5001, 2), (5002, 3), (8999, 3), (9000, 4)] {
        assert_eq!(Snapshot::open_at(&storage, time).unwrap().version(), version, "{time}");
    }
    for time in [999, 9001, i64::MIN, i64::MAX] {
        let error = Snapshot::open_at(&storage, time).map(|snapshot| snapshot.version()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionNotFound);
        assert!(error.to_string().contains("0 to 4"), "{error}");
    }
}
