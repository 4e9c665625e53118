//! Logs that are damaged or unusual. Protocol: "Delta Log Entries", "Checkpoint Naming Scheme", "Last Checkpoint File".

use std::fs::File;
use std::time::{Duration, SystemTime};

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::log::{CommitTimes, InCommitTimestamps, LastCheckpoint};
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{Error, ErrorKind, Snapshot, Storage};

use crate::common::{add_line, append, empty, environment, live, paths, write_commit, write_log};

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
fn errors_name_a_missing_commit() {
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
fn a_refresh_does_not_skip_a_gap() {
    let storage = log(4);
    let snapshot = Snapshot::open(&storage, None).unwrap();
    put(&storage, "00000000000000000005.json", "{\"commitInfo\":{}}");
    let error = snapshot.refresh().unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::CorruptLog, Some(4)));
}

/// While commits are being added to a directory, a listing may contain commit N + 1 but not commit N.
#[test]
fn commits_missing_only_from_the_listing_are_found() {
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

/// A listing that lags behind its store may lack the requested version.
#[test]
fn a_requested_version_missing_from_the_listing_is_looked_up_by_name() {
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

/// Protocol, "Last Checkpoint File": the hint points to the newest checkpoint, regardless of the order in
/// which checkpoints are written.
#[test]
fn the_hint_never_names_an_older_checkpoint() {
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
    assert_eq!(hint(&storage), 7, "a hint that points to a missing checkpoint is replaced");
}

#[test]
fn errors_name_torn_and_empty_commits() {
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
fn empty_and_incomplete_checkpoints_are_ignored() {
    let names = [
        vec!["00000000000000000005.checkpoint.parquet"],
        vec!["00000000000000000005.checkpoint.0000000001.0000000002.parquet"],
        // These parts belong to two different incomplete checkpoints.
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
fn wrong_hints_change_nothing() {
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
fn foreign_files_are_ignored() {
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
        // A store may refuse some of these names.
        let _ = storage.put(&format!("_delta_log/{name}"), "x".into());
    }
    let snapshot = Snapshot::open(&storage, None).unwrap();
    assert_eq!((snapshot.version(), live(&snapshot).unwrap().len()), (4, 4));
}

#[test]
fn a_log_without_versions_is_not_a_table() {
    let (_, storage) = empty();
    assert_eq!(failure(&storage, None).kind(), ErrorKind::NotATable);
    put(&storage, "_last_checkpoint", r#"{"version":5,"size":1}"#);
    assert_eq!(failure(&storage, None).kind(), ErrorKind::NotATable);
    assert_eq!(failure(&storage, Some(3)).kind(), ErrorKind::NotATable);
    put(&storage, "00000000000000000000.crc", "{}");
    assert_eq!(
        failure(&storage, None).kind(),
        ErrorKind::CorruptLog,
        "a log without commits is not an empty directory"
    );
}

#[test]
fn errors_of_missing_versions_list_the_available_ones() {
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

/// "Metadata Cleanup": a clean-up has kept version 10 and all later versions. Afterwards a slow writer has written a
/// checkpoint of version 3, and some commits after it may remain. If files below the newest checkpoint are missing,
/// the log is not damaged.
#[test]
fn a_gap_before_a_checkpoint_does_not_mean_damage() {
    for (strays, ranges) in [
        (&[][..], "3 and 10 to 12"),
        (&[3, 4, 6], "3 to 4 and 10 to 12"),
        (&[0, 1, 3, 9], "0 to 1, 3 and 10 to 12"),
    ] {
        let storage = log(13);
        let expected: Vec<_> =
            (0..13).map(|version| paths(&Snapshot::open(&storage, Some(version)).unwrap())).collect();
        [3, 10].into_iter().for_each(|version| checkpoint(&storage, version));
        for version in (0..10).filter(|version| !strays.contains(version)) {
            storage.delete(&LogFileName::Commit(version).path()).unwrap();
        }
        for version in 0..13 {
            match Snapshot::open(&storage, Some(version)) {
                Ok(snapshot) => {
                    assert_eq!(paths(&snapshot), expected[usize::try_from(version).unwrap()]);
                    assert!(version != 5 && version != 9, "{strays:?}: {version}");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::VersionNotFound, "{strays:?}: {error}");
                    assert!(
                        error.to_string().contains(&format!("the readable versions are {ranges}")),
                        "{error}"
                    );
                }
            }
        }
        let newest = Snapshot::open(&storage, None).unwrap();
        assert_eq!(paths(&newest), expected[12]);
        let history = |snapshot: &Snapshot| -> Vec<u64> {
            snapshot.history(None).unwrap().iter().map(|entry| entry.version).collect()
        };
        assert_eq!(
            history(&newest),
            if strays.contains(&9) { vec![12, 11, 10, 9] } else { vec![12, 11, 10] }
        );
        for start in [5, 7] {
            let error = newest.commits(start).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::VersionNotFound, "{error}");
        }
        // Every commit between the checkpoint and the newest version is needed.
        storage.delete(&LogFileName::Commit(11).path()).unwrap();
        for version in [None, Some(11), Some(12)] {
            let error = failure(&storage, version);
            assert_eq!((error.kind(), error.version()), (ErrorKind::CorruptLog, Some(11)), "{error}");
        }
        assert_eq!(failure(&storage, Some(5)).kind(), ErrorKind::VersionNotFound);
    }
}

/// The name of a stray file may contain any version. The work must not grow with the number of versions below it.
#[test]
fn a_stray_version_costs_neither_memory_nor_time() {
    let storage = log(4);
    let held = Snapshot::open(&storage, None).unwrap();
    let stray = LogFileName::Commit(i64::MAX.unsigned_abs()).path();
    storage.put(&stray, "{\"commitInfo\":{}}".into()).unwrap();
    for found in [
        Snapshot::open(&storage, None).map(drop),
        held.refresh().map(drop),
        held.history(None)
            .map(drop)
            .and_then(|()| append(&held, "x", &environment()).commit_or_fail().map(drop)),
    ] {
        let error = found.unwrap_err();
        assert_eq!((error.kind(), error.version()), (ErrorKind::CorruptLog, Some(4)), "{error}");
    }
    assert_eq!(Snapshot::open(&storage, Some(3)).unwrap().history(None).unwrap().len(), 4);
    storage.delete(&stray).unwrap();
    append(&held, "x", &environment()).commit_or_fail().unwrap();
}

/// A listing that lags behind shows a gap that does not exist. History and time travel still cover all commits.
#[test]
fn commits_missing_only_from_the_listing_have_their_times() {
    let (store, storage) = empty();
    write_log(&storage, 8);
    let versions = |storage: &Storage| -> Vec<u64> {
        let newest = Snapshot::open(storage, None).unwrap();
        newest.history(None).unwrap().iter().map(|entry| entry.version).collect()
    };
    ["3.json", "4.json"].into_iter().for_each(|ending| store.hide(ending));
    assert_eq!(versions(&storage), (0..8).rev().collect::<Vec<_>>());
}

/// If a commit's file time is not later than the previous commit's, its time is one millisecond after the previous one.
#[test]
fn time_travel_makes_file_times_monotonic() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("_delta_log")).unwrap();
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
    let monotonic: Vec<_> = (0..5).map(|version| times.of(version).unwrap()).collect();
    assert_eq!(monotonic, [1000, 5000, 5001, 5002, 9000]);
    for (time, version) in [(1000, 0), (4999, 0), (5000, 1), (5001, 2), (5002, 3), (8999, 3), (9000, 4)] {
        assert_eq!(Snapshot::open_at(&storage, time).unwrap().version(), version, "{time}");
    }
    for time in [999, 9001, i64::MIN, i64::MAX] {
        let error = Snapshot::open_at(&storage, time).map(|snapshot| snapshot.version()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionNotFound);
        assert!(error.to_string().contains("0 to 4"), "{error}");
    }
}
