//! Times of versions: in-commit timestamps, time travel, history, commit actions. Protocol: "In-Commit
//! Timestamps".

use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, SystemTime};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int64Type, TimestampMillisecondType};
use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::history::history_batch;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{ErrorKind, Snapshot, Storage};
use serde_json::json;
use tempfile::TempDir;

use crate::common::{add_line, environment, first_lines, metadata_line, write_commit, write_log};

const ICT_PROTOCOL: &str =
    r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["inCommitTimestamp"]}}"#;

fn local() -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("_delta_log")).unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    (directory, storage)
}

fn set_time(directory: &TempDir, version: u64, millis: u64) {
    let file =
        File::options().write(true).open(directory.path().join(LogFileName::Commit(version).path())).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(millis)).unwrap();
}

fn stamped(in_commit_timestamp: i64) -> String {
    let info = json!({
        "inCommitTimestamp": in_commit_timestamp, "timestamp": 1, "operation": "WRITE", "custom": {"a": [1]},
    });
    json!({ "commitInfo": info }).to_string()
}

/// Creates a log in which versions 0 to 2 have the file times 1000, 3000 and 2000. Versions 3 to 5 have the
/// in-commit timestamps 5000, 6000 and 7000, and different file times.
fn enabled_later() -> (TempDir, Storage) {
    let (directory, storage) = local();
    write_log(&storage, 3);
    let properties = [
        ("delta.enableInCommitTimestamps", "true"),
        ("delta.inCommitTimestampEnablementVersion", "3"),
        ("delta.inCommitTimestampEnablementTimestamp", "5000"),
    ];
    let properties: BTreeMap<_, _> = properties.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    write_commit(&storage, 3, &[stamped(5000), ICT_PROTOCOL.to_owned(), metadata_line(&properties)]);
    write_commit(&storage, 4, &[stamped(6000), add_line("4.parquet")]);
    write_commit(&storage, 5, &[stamped(7000), add_line("5.parquet")]);
    for (version, time) in [1000, 3000, 2000, 90_000, 10, 80_000].into_iter().enumerate() {
        set_time(&directory, version as u64, time);
    }
    (directory, storage)
}

fn version_at(storage: &Storage, time: i64) -> u64 {
    Snapshot::open_at(storage, time).unwrap_or_else(|error| panic!("{time}: {error}")).version()
}

/// "Recommendations for Readers of Tables with In-Commit Timestamps".
#[test]
fn time_travel_works_before_and_after_timestamps_are_enabled() {
    let (_directory, storage) = enabled_later();
    for (time, version) in [
        (1000, 0),
        (2999, 0),
        (3000, 1),
        (3001, 2),
        (4999, 2),
        (5000, 3),
        (5999, 3),
        (6000, 4),
        (6999, 4),
        (7000, 5),
    ] {
        assert_eq!(version_at(&storage, time), version, "{time}");
    }
    let times =
        (0..6).map(|version| Snapshot::open(&storage, Some(version)).unwrap().timestamp_ms().unwrap());
    // Versions before the timestamps were enabled use file times.
    assert_eq!(times.collect::<Vec<_>>(), [1000, 3000, 3001, 5000, 6000, 7000]);
    for (time, why) in [(999, "version 0 was committed at"), (7001, "version 5 is the newest")] {
        let error = Snapshot::open_at(&storage, time).map(|snapshot| snapshot.version()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionNotFound);
        assert!(error.to_string().contains(why) && error.to_string().contains("0 to 5"), "{error}");
    }
}

#[test]
fn time_travel_works_if_timestamps_are_enabled_from_the_first_version() {
    let (directory, storage) = local();
    let properties = [("delta.enableInCommitTimestamps".to_owned(), "true".to_owned())].into();
    write_commit(&storage, 0, &[stamped(100), ICT_PROTOCOL.to_owned(), metadata_line(&properties)]);
    write_commit(&storage, 1, &[stamped(200)]);
    write_commit(&storage, 2, &[stamped(300)]);
    (0..3).for_each(|version| set_time(&directory, version, 1_000_000 - version));
    for (time, version) in [(100, 0), (199, 0), (200, 1), (300, 2)] {
        assert_eq!(version_at(&storage, time), version);
    }
    // If a commit lacks the required timestamp, there is an error, and the time is not guessed.
    write_commit(&storage, 3, &[add_line("3.parquet")]);
    assert_eq!(
        Snapshot::open(&storage, None).unwrap().timestamp_ms().unwrap_err().kind(),
        ErrorKind::CorruptLog
    );
}

/// Without the table feature, `inCommitTimestamp` has no meaning.
#[test]
fn file_times_are_used_if_timestamps_are_not_enabled() {
    let (directory, storage) = local();
    write_commit(&storage, 0, &[&[stamped(100)], first_lines(&BTreeMap::new()).as_slice()].concat());
    write_commit(&storage, 1, &[stamped(200)]);
    set_time(&directory, 0, 5000);
    set_time(&directory, 1, 6000);
    assert_eq!(version_at(&storage, 5999), 0);
    assert_eq!(version_at(&storage, 6000), 1);
}

#[test]
fn errors_of_time_travel_mention_a_cleanup() {
    let (directory, storage) = local();
    write_log(&storage, 9);
    (0..9).for_each(|version| set_time(&directory, version, 1000 * (version + 1)));
    write_checkpoint(&Snapshot::open(&storage, Some(5)).unwrap(), &environment()).unwrap();
    (0..3).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
    // Commits 3 and 4 exist, but their versions cannot be read.
    for time in [4000, 5999] {
        let error = Snapshot::open_at(&storage, time).map(|snapshot| snapshot.version()).unwrap_err();
        assert!(
            error.to_string().contains("5 to 8")
                && error.to_string().contains("before version 5 was cleaned up"),
            "{error}"
        );
    }
    assert_eq!(version_at(&storage, 6000), 5);
    assert_eq!(version_at(&storage, 9000), 8);
}

/// If the commits around a time were cleaned up, it is unknown which version was the newest at that time. The last
/// readable version before that time is not returned instead.
#[test]
fn a_time_at_which_commits_are_missing_is_that_of_no_version() {
    let (directory, storage) = local();
    write_log(&storage, 9);
    (0..9).for_each(|version| set_time(&directory, version, 1000 * (version + 1)));
    for version in [1, 6] {
        write_checkpoint(&Snapshot::open(&storage, Some(version)).unwrap(), &environment()).unwrap();
    }
    for version in [0, 3, 4, 5] {
        storage.delete(&LogFileName::Commit(version).path()).unwrap();
    }
    let at = |time| Snapshot::open_at(&storage, time).map(|snapshot| snapshot.version());
    for (time, version) in [(2000, 1), (2999, 1), (3000, 2), (7000, 6), (7999, 6), (9000, 8)] {
        assert_eq!(at(time).unwrap(), version, "{time}");
    }
    for time in [1999, 3001, 6999] {
        let error = at(time).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionNotFound, "{error}");
        assert!(error.to_string().contains("the readable versions"), "{error}");
        assert!(error.to_string().contains("1 to 2 and 6 to 8"), "{error}");
    }
}

#[test]
fn compactions_do_not_hide_the_times_of_their_commits() {
    let (_directory, storage) = enabled_later();
    storage
        .put(
            &LogFileName::Compaction { start: 4, end: 5 }.path(),
            [add_line("4.parquet"), add_line("5.parquet")].join("\n").into(),
        )
        .unwrap();
    let snapshot = Snapshot::open(&storage, None).unwrap();
    assert_eq!(snapshot.segment().compactions.len(), 1);
    assert_eq!(snapshot.timestamp_ms().unwrap(), 7000);
    assert_eq!(
        snapshot.history(None).unwrap().iter().map(|entry| entry.timestamp_ms).collect::<Vec<_>>(),
        [7000, 6000, 5000, 3001, 3000, 1000]
    );
    assert_eq!(version_at(&storage, 6500), 4);
}

/// "Implementations are free to store any valid JSON-formatted data via the `commitInfo` action".
#[test]
fn the_history_keeps_every_field() {
    let (_directory, storage) = enabled_later();
    let entries = Snapshot::open(&storage, None).unwrap().history(Some(3)).unwrap();
    assert_eq!(entries[0].fields().unwrap()["custom"], json!({"a": [1]}));
    let batch = history_batch(&entries).unwrap();
    let text = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
    assert_eq!(text("operation").value(0), "WRITE");
    assert_eq!(text("other").value(0), r#"{"custom":{"a":[1]}}"#);
    assert!(text("user_name").is_null(0) && batch.column_by_name("operation_metrics").unwrap().is_null(0));
    assert_eq!(
        batch
            .column_by_name("in_commit_timestamp")
            .unwrap()
            .as_primitive::<TimestampMillisecondType>()
            .value(1),
        6000
    );
    assert_eq!(batch.column_by_name("version").unwrap().as_primitive::<Int64Type>().values(), &[5, 4, 3]);
}

#[test]
fn commit_actions_are_the_lines_of_the_log() {
    let (_directory, storage) = enabled_later();
    let remove = concat!(
        r#"{"remove":{"path":"a%20b.parquet","deletionTimestamp":9,"#,
        r#""dataChange":true,"size":3,"partitionValues":{"p":null}}}"#,
    );
    let unknown = r#"{"fromTheFuture":{"x":1.50}}"#;
    write_commit(
        &storage,
        6,
        &[stamped(8000), remove.to_owned(), unknown.to_owned(), r#"{"add":null}"#.to_owned()],
    );
    let snapshot = Snapshot::open(&storage, None).unwrap();
    let batches: Vec<_> = snapshot.commit_actions(4, None).unwrap().map(|batch| batch.unwrap()).collect();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).collect::<Vec<_>>(), [2, 2, 4]);
    let last = &batches[2];
    let text = |name: &str, row: usize| {
        let column = last.column_by_name(name).unwrap().as_string::<i32>();
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    assert_eq!(
        (0..4).map(|row| text("action", row)).collect::<Vec<_>>(),
        [Some("commitInfo"), Some("remove"), Some("fromTheFuture"), None].map(|name| name.map(str::to_owned))
    );
    assert_eq!((text("path", 1).as_deref(), text("path", 2)), (Some("a b.parquet"), None));
    assert_eq!(text("json", 2).as_deref(), Some(r#"{"x":1.50}"#));
    assert_eq!(
        last.column_by_name("timestamp").unwrap().as_primitive::<TimestampMillisecondType>().values(),
        &[8000; 4]
    );
    assert_eq!(last.column_by_name("size").unwrap().as_primitive::<Int64Type>().value(1), 3);
    assert_eq!(snapshot.commit_actions(0, Some(0)).unwrap().count(), 1);
    for (start, end, kind) in [
        (3, Some(2), ErrorKind::InvalidArgument),
        (7, None, ErrorKind::InvalidArgument),
        (5, Some(9), ErrorKind::VersionNotFound),
    ] {
        assert_eq!(
            snapshot.commit_actions(start, end).map(|_| ()).unwrap_err().kind(),
            kind,
            "{start} to {end:?}"
        );
    }
    storage.delete(&LogFileName::Commit(5).path()).unwrap();
    assert_eq!(snapshot.commit_actions(4, None).map(|_| ()).unwrap_err().kind(), ErrorKind::CorruptLog);
}
