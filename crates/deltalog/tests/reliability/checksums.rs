//! Version checksum files: what they are used for, and when they are ignored. Protocol: "Version
//! Checksum File".

use std::collections::BTreeMap;

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{Snapshot, Storage};
use serde_json::{Value, json};

use crate::common::store::{FaultyStore, Op};
use crate::common::warnings::warnings;
use crate::common::{empty, environment, first_lines, live, write_commit, write_log};

fn checksum(files: u64) -> Value {
    let mut text = json!({
        "txnId": "t7", "tableSizeBytes": files, "numFiles": files, "numMetadata": 1, "numProtocol": 1,
        "setTransactions": [], "domainMetadata": [],
        "fileSizeHistogram": {
            "sortedBinBoundaries": [0, 1, 2], "fileCounts": [0, files, 0], "totalBytes": [0, files, 0],
        },
        "numDeletedRecordsOpt": 0, "numDeletionVectorsOpt": 0,
        "deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [files, 0, 0, 0, 0, 0, 0, 0, 0, 0]},
    });
    for line in first_lines(&BTreeMap::new()) {
        let line: Value = serde_json::from_str(&line).unwrap();
        let (name, action) = line.as_object().unwrap().iter().next().unwrap();
        text[if name == "metaData" { "metadata" } else { name }] = action.clone();
    }
    text
}

fn put(storage: &Storage, version: u64, text: impl ToString) {
    storage.put(&LogFileName::Checksum(version).path(), text.to_string().into()).unwrap();
}

/// Creates a log with eight versions, seven files, a checkpoint at version 5, and the checksum of version 7.
fn log() -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    write_log(&storage, 7);
    let add = crate::common::add_line("7.parquet");
    write_commit(&storage, 7, &[r#"{"commitInfo":{"txnId":"t7"}}"#.to_owned(), add]);
    write_checkpoint(&Snapshot::open(&storage, Some(5)).unwrap(), &environment()).unwrap();
    put(&storage, 7, checksum(7));
    store.take_calls();
    (store, storage)
}

#[test]
fn a_checksum_replaces_reading_the_checkpoint() {
    let (store, storage) = log();
    let snapshot = Snapshot::open(&storage, None).unwrap();
    let totals = snapshot.totals().unwrap();
    assert_eq!((totals.files, totals.bytes), (7, 7));
    let calls = store.take_calls();
    assert!(calls.iter().all(|call| !call.path.contains("checkpoint.parquet")), "{calls:?}");
    // Only the hint, two commits and the checksum are read.
    assert_eq!(calls.iter().filter(|call| call.op == Op::Get).count(), 4, "{calls:?}");
    assert_eq!(live(&snapshot).unwrap().len(), 7);
    assert!(snapshot.verify().unwrap().is_ok());
}

#[test]
fn checksums_of_other_versions_are_not_used() {
    let (_, storage) = log();
    put(&storage, 6, checksum(100));
    assert_eq!(Snapshot::open(&storage, Some(5)).unwrap().totals().unwrap().files, 5);
    let newest = Snapshot::open(&storage, None).unwrap();
    write_commit(&storage, 8, &[crate::common::add_line("8.parquet")]);
    assert_eq!(newest.refresh().unwrap().totals().unwrap().files, 8);
    put(&storage, 9, checksum(100));
    assert_eq!(Snapshot::open(&storage, None).unwrap().totals().unwrap().files, 8);
}

#[test]
fn malformed_and_implausible_checksums_are_ignored() {
    let whole = checksum(100).to_string();
    let foreign_metadata =
        whole.replace("00000000-0000-0000-0000-000000000000", "11111111-1111-1111-1111-111111111111");
    for (text, is_warned) in [
        (String::new(), false),
        ("malformed".to_owned(), true),
        (whole[..whole.len() / 2].to_owned(), true),
        ("{}".to_owned(), true),
        (whole.replace("\"numMetadata\":1", "\"numMetadata\":0"), true),
        (whole.replace("\"numFiles\":100", "\"numFiles\":-1"), true),
        (whole.replace("t7", "another"), true),
        (foreign_metadata.replace("t7", "another"), true),
    ] {
        let (_, storage) = log();
        put(&storage, 7, &text);
        let (logged, files) = warnings(|| Snapshot::open(&storage, None).unwrap().totals().unwrap().files);
        assert_eq!(files, 7, "{text}");
        assert_eq!(
            logged.iter().any(|line| line.contains("00000000000000000007.crc")),
            is_warned,
            "{text}: {logged:?}"
        );
    }
}

#[test]
fn verification_names_exactly_the_fields_that_differ() {
    let (_, storage) = log();
    let right = checksum(7);
    let wrong = [
        ("numFiles", "numFiles", json!(8)),
        ("tableSizeBytes", "tableSizeBytes", json!(8)),
        ("txnId", "txnId", json!("other")),
        ("setTransactions", "setTransactions", json!([{"appId": "a", "version": 1}])),
        ("domainMetadata", "domainMetadata", json!([{"domain": "d", "configuration": "", "removed": false}])),
        ("protocol", "protocol", json!({"minReaderVersion": 1, "minWriterVersion": 3})),
        (
            "fileSizeHistogram",
            "fileSizeHistogram",
            json!({"sortedBinBoundaries": [0, 1], "fileCounts": [1, 6], "totalBytes": [1, 6]}),
        ),
        (
            "histogramOpt",
            "fileSizeHistogram",
            json!({"sortedBinBoundaries": [0, 1], "fileCounts": [1, 6], "totalBytes": [1, 6]}),
        ),
        ("numDeletedRecordsOpt", "numDeletedRecordsOpt", json!(1)),
        ("numDeletionVectorsOpt", "numDeletionVectorsOpt", json!(1)),
        (
            "deletedRecordCountsHistogramOpt",
            "deletedRecordCountsHistogramOpt",
            json!({"deletedRecordCounts": [6, 1, 0, 0, 0, 0, 0, 0, 0, 0]}),
        ),
        ("inCommitTimestampOpt", "inCommitTimestampOpt", json!(5)),
        (
            "allFiles",
            "allFiles",
            json!([{
                "path": "7.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1,
                "dataChange": false,
            }]),
        ),
    ];
    for (field, named, value) in wrong {
        let mut text = right.clone();
        if field == "histogramOpt" {
            text.as_object_mut().unwrap().remove("fileSizeHistogram");
        }
        text[field] = value;
        put(&storage, 7, text);
        let found = Snapshot::open(&storage, None).unwrap().verify().unwrap();
        assert_eq!(
            found.differences.iter().map(|difference| difference.field).collect::<Vec<_>>(),
            [named],
            "{found:?}"
        );
        assert!(found.checked.contains(&named) && !found.is_ok());
    }
    storage.delete(&LogFileName::Checksum(7).path()).unwrap();
    let found = Snapshot::open(&storage, None).unwrap().verify().unwrap();
    assert!(found.is_ok() && found.file.is_none() && found.checked.is_empty());
}
