//! Checksums that commits write. Protocol: "Version Checksum File".

use std::collections::BTreeMap;

use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::commit::{Operation, Outcome, Transaction};
use deltalog::engine::protocol::Add;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::engine::replay::FileColumns;
use deltalog::engine::rewrite::listed_files;
use deltalog::{Snapshot, Storage};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::store::{Fault, Op};
use crate::common::warnings::warnings;
use crate::common::{
    add, append, creation, empty, environment, first_lines, metadata_line, table, write_commit,
};

/// A commit of this crate or of another writer.
#[derive(Debug, Clone)]
enum Step {
    /// This crate appends files with these sizes, and possibly records the progress of an application.
    Append(Vec<i64>, Option<(usize, i64)>),
    /// This crate replaces all files with files of these sizes.
    Overwrite(Vec<i64>),
    /// This crate has read all files and adds them again, with other statistics.
    Again,
    /// Another writer commits.
    Foreign(Foreign),
    Checkpoint,
}

#[derive(Debug, Clone, Copy)]
enum Foreign {
    Append,
    Progress,
    /// Adds a file with a deletion vector.
    DeletionVector,
    /// Adds the file of the first version again, with another size.
    Statistics,
    /// Removes a file without stating its size.
    UnknownSize,
    Domain(bool),
}

fn step() -> impl Strategy<Value = Step> {
    // A checksum lists up to 20 files.
    let sizes = || prop_oneof![4 => vec(0..1_i64 << 34, 0..6), 1 => vec(0..1_i64 << 34, 15..30)];
    let progress = prop::option::of((0..3usize, 0..9i64));
    let foreign = prop::sample::select(vec![
        Foreign::Append,
        Foreign::Progress,
        Foreign::DeletionVector,
        Foreign::Statistics,
        Foreign::UnknownSize,
        Foreign::Domain(false),
        Foreign::Domain(true),
    ]);
    prop_oneof![
        6 => (sizes(), progress).prop_map(|(sizes, progress)| Step::Append(sizes, progress)),
        2 => sizes().prop_map(Step::Overwrite),
        2 => foreign.prop_map(Step::Foreign),
        1 => Just(Step::Again),
        1 => Just(Step::Checkpoint),
    ]
}

fn files(version: u64, sizes: &[i64]) -> Vec<Add> {
    let file = |(number, size): (usize, &i64)| {
        let mut file = add(&format!("{version}-{number}.parquet"));
        file.size = *size;
        file.stats = Some(format!(r#"{{"numRecords":{number}}}"#));
        file
    };
    sizes.iter().enumerate().map(file).collect()
}

impl Foreign {
    fn lines(self, version: u64) -> Vec<String> {
        let operation =
            |name: &str| json!({"commitInfo": {"operation": name, "txnId": format!("t{version}")}});
        let file = |name: &str, size: i64| {
            json!({
                "path": name,
                "partitionValues": {},
                "size": size,
                "modificationTime": 1,
                "dataChange": true,
            })
        };
        let own = format!("foreign-{version}.parquet");
        let vector = json!({
            "storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40,
            "cardinality": version,
        });
        let lines = match self {
            Self::Append => vec![operation("WRITE"), json!({"add": file(&own, 7)})],
            Self::Progress => {
                vec![
                    operation("WRITE"),
                    json!({"txn": {"appId": "app1", "version": version, "lastUpdated": 1}}),
                ]
            }
            Self::DeletionVector => {
                let mut with_vector = file(&own, 100);
                with_vector["deletionVector"] = vector;
                vec![operation("UPDATE"), json!({"add": with_vector})]
            }
            Self::Statistics => {
                vec![operation("COMPUTE STATS"), json!({"add": file("0-0.parquet", 12)})]
            }
            Self::UnknownSize => {
                vec![operation("DELETE"), json!({"remove": {"path": "0-0.parquet", "dataChange": true}})]
            }
            Self::Domain(removed) => vec![
                operation("WRITE"),
                json!({"domainMetadata": {"domain": "d", "configuration": version.to_string(), "removed": removed}}),
            ],
        };
        lines.iter().map(Value::to_string).collect()
    }
}

fn committed(transaction: Transaction) -> bool {
    matches!(transaction.commit().unwrap(), Outcome::Committed(_))
}

/// Returns whether a file of `base` was added again since. This is a conflict for the operation that computes
/// statistics, which then starts from the newest version.
fn is_described_anew(base: &Snapshot, newest: &Snapshot) -> bool {
    let adds = |snapshot| listed_files(snapshot, None).unwrap().into_iter().map(|file| file.add);
    let now: BTreeMap<String, Add> = adds(newest).map(|add| (add.path.clone(), add)).collect();
    adds(base).any(|add| now.get(&add.path).is_some_and(|now| *now != add))
}

/// Carries out the steps, each based on the newest version or on a snapshot that was opened earlier. Returns the
/// number of versions.
fn carry_out(storage: &Storage, steps: &[(Step, bool)]) -> u64 {
    let environment = environment();
    let newest = || Snapshot::open(storage, None).unwrap();
    let mut held = newest();
    for (step, is_stale) in steps {
        let version = newest().version() + 1;
        if !is_stale {
            held = newest();
        }
        match step {
            Step::Append(sizes, progress) => {
                let mut transaction = Transaction::new(&held, Operation::new("WRITE"), &environment).unwrap();
                transaction.add_files(&files(version, sizes)).unwrap();
                if let Some((app, number)) = progress {
                    transaction.record_progress(format!("app{app}"), *number);
                }
                committed(transaction);
            }
            Step::Overwrite(sizes) => {
                let mut transaction =
                    Transaction::overwrite(&held, Operation::new("WRITE"), &environment).unwrap();
                transaction.add_files(&files(version, sizes)).unwrap();
                committed(transaction);
            }
            Step::Again => {
                let base = if is_described_anew(&held, &newest()) { newest() } else { held.clone() };
                let operation = Operation::new("COMPUTE STATS");
                let mut transaction = Transaction::new(&base, operation, &environment).unwrap();
                for batch in base.replay_files(FileColumns::all()).unwrap() {
                    transaction.read_files(&batch.unwrap()).unwrap();
                }
                let mut files: Vec<Add> =
                    listed_files(&base, None).unwrap().into_iter().map(|file| file.add).collect();
                for file in &mut files {
                    file.data_change = false;
                    file.stats = Some(r#"{"numRecords":3}"#.to_owned());
                }
                transaction.add_files(&files).unwrap();
                committed(transaction);
            }
            Step::Foreign(foreign) => write_commit(storage, version, &foreign.lines(version)),
            Step::Checkpoint => write_checkpoint(&newest(), &environment).unwrap(),
        }
    }
    newest().version() + 1
}

/// Creates a table with features that this crate can write, with one file in its first version.
fn start(storage: &Storage) {
    let features = json!(["deletionVectors", "domainMetadata"]);
    let protocol = json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
        "writerFeatures": features,
    }});
    let properties = BTreeMap::from([("delta.checkpointInterval".to_owned(), "4".to_owned())]);
    let file = files(0, &[11]).remove(0);
    let file = deltalog::engine::protocol::Action::Add(file).to_json_line().unwrap();
    write_commit(storage, 0, &[protocol.to_string(), metadata_line(&properties), file]);
    // This crate counts the files to write the checksum of its first commit.
    append(&Snapshot::open(storage, None).unwrap(), "first", &environment()).commit_or_fail().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever this crate and other writers commit, every field of every checksum agrees with the log. If only this
    /// crate writes, each of its versions has a checksum.
    #[test]
    fn every_checksum_agrees_with_the_log(steps in vec((step(), any::<bool>()), 1..25)) {
        let (_, storage) = empty();
        start(&storage);
        let versions = carry_out(&storage, &steps);
        let is_known = |step: &Step| match step {
            Step::Foreign(_) => false,
            Step::Append(..) | Step::Overwrite(_) | Step::Again | Step::Checkpoint => true,
        };
        let is_ours = steps.iter().all(|(step, _)| is_known(step));
        for version in 1..versions {
            let found = Snapshot::open(&storage, Some(version)).unwrap().verify().unwrap();
            prop_assert!(found.is_ok(), "version {}: {:?}", version, found);
            prop_assert!(found.file.is_some() || !is_ours, "version {} has no checksum", version);
        }
    }
}

fn read(storage: &Storage, version: u64) -> Option<Value> {
    let bytes = storage.get(&LogFileName::Checksum(version).path()).unwrap()?;
    Some(serde_json::from_slice(&bytes).unwrap())
}

#[test]
fn all_fields_are_recorded_from_the_first_version_on() {
    let (_, storage) = table(&["a", "b"]);
    let fields = [
        "txnId",
        "tableSizeBytes",
        "numFiles",
        "numMetadata",
        "numProtocol",
        "setTransactions",
        "domainMetadata",
        "metadata",
        "protocol",
        "fileSizeHistogram",
        "allFiles",
        "numDeletedRecordsOpt",
        "numDeletionVectorsOpt",
        "deletedRecordCountsHistogramOpt",
    ];
    for version in 0..3 {
        let checksum = read(&storage, version).unwrap();
        let names: Vec<_> = checksum.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(fields.iter().all(|field| names.contains(field)) && names.len() == fields.len(), "{names:?}");
        assert_eq!(checksum["numFiles"], version);
        assert_eq!(checksum["allFiles"].as_array().unwrap().len() as u64, version);
        assert!(Snapshot::open(&storage, Some(version)).unwrap().verify().unwrap().is_ok());
    }
}

/// "Writers MUST NOT overwrite existing Version Checksum files".
#[test]
fn an_existing_file_is_not_replaced() {
    let (_, storage) = table(&["a"]);
    let path = LogFileName::Checksum(2).path();
    storage.put(&path, "another".into()).unwrap();
    let base = Snapshot::open(&storage, None).unwrap();
    append(&base, "b", &environment()).commit_or_fail().unwrap();
    assert_eq!(storage.read(&path).unwrap(), "another");
    // The next version's checksum is computed from the one before the damaged checksum.
    append(&Snapshot::open(&storage, Some(1)).unwrap(), "c", &environment()).commit_or_fail().unwrap();
    assert_eq!(read(&storage, 3).unwrap()["numFiles"], 3);
}

/// If a checksum cannot be written, the commit still succeeds.
#[test]
fn a_checksum_needs_no_listing_and_no_file_list() {
    let (store, storage) = table(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    let base = Snapshot::open(&storage, None).unwrap();
    assert!(base.segment().checkpoint.is_some());
    base.totals().unwrap();
    for fails in [false, true] {
        store.fail(move |_, call| (fails && call.path.ends_with(".crc")).then_some(Fault::LostBefore));
        append(&base, &format!("new {fails}"), &environment()).commit_or_fail().unwrap();
        let calls = store.take_calls();
        let count = |op, ending: &str| {
            calls.iter().filter(|call| call.op == op && call.path.ends_with(ending)).count()
        };
        assert_eq!(calls.iter().filter(|call| call.op == Op::List).count(), 1, "{calls:?}");
        assert_eq!(count(Op::Create, ".crc"), 1, "{calls:?}");
        assert_eq!(count(Op::Get, ".crc") + count(Op::Get, ".parquet"), 0, "{calls:?}");
    }
    store.heal();
    assert_eq!(read(&storage, 11).unwrap()["numFiles"], 11);
    assert_eq!(read(&storage, 12), None);
}

/// A table without checksums gets one with the next checkpoint, because the files are counted for it.
#[test]
fn a_missing_checksum_is_made_up_for_at_the_next_checkpoint() {
    let (_, storage) = empty();
    crate::common::write_log(&storage, 8);
    write_checkpoint(&Snapshot::open(&storage, Some(5)).unwrap(), &environment()).unwrap();
    for version in 8..13 {
        let base = Snapshot::open(&storage, None).unwrap();
        append(&base, &format!("{version}"), &environment()).commit_or_fail().unwrap();
        assert_eq!(read(&storage, version).is_some(), version >= 10, "{version}");
        assert!(Snapshot::open(&storage, None).unwrap().verify().unwrap().is_ok());
    }
}

/// If a table has no checkpoint, all its actions are in memory, so its checksum can be computed at once.
#[test]
fn a_small_table_without_checksums_gets_them_at_once() {
    let (_, storage) = empty();
    crate::common::write_log(&storage, 4);
    append(&Snapshot::open(&storage, None).unwrap(), "new", &environment()).commit_or_fail().unwrap();
    assert_eq!(read(&storage, 4).unwrap()["numFiles"], 4);
}

/// If another writer's checksum has unknown or invalid fields, these are left out of the next checksums. A checkpoint
/// computes the known fields again. A histogram with other bins is also left out, because the JVM implementation treats
/// it as damaged.
#[test]
fn checksum_fields_of_other_writers_are_kept_only_if_they_are_known() {
    let (_, storage) = empty();
    crate::common::write_log(&storage, 8);
    write_checkpoint(&Snapshot::open(&storage, Some(5)).unwrap(), &environment()).unwrap();
    let checksum = json!({
        "tableSizeBytes": 7, "numFiles": 7, "numMetadata": 1, "numProtocol": 1, "somethingNew": 5,
        "histogramOpt": {"sortedBinBoundaries": [0, 1], "fileCounts": [0, 7], "totalBytes": [0, 7]},
        "setTransactions": "many",
    });
    storage.put(&LogFileName::Checksum(7).path(), checksum.to_string().into()).unwrap();
    for version in 8..=10 {
        append(&Snapshot::open(&storage, None).unwrap(), &format!("{version}"), &environment())
            .commit_or_fail()
            .unwrap();
        let (kept, is_counted) = (read(&storage, version).unwrap(), version == 10);
        assert_eq!(kept["numFiles"], version);
        for (field, is_kept) in [
            ("somethingNew", false),
            ("setTransactions", is_counted),
            ("allFiles", is_counted),
            ("fileSizeHistogram", is_counted),
            ("metadata", true),
            ("protocol", true),
        ] {
            assert_eq!(kept.get(field).is_some(), is_kept, "{field} of version {version}");
        }
        assert!(Snapshot::open(&storage, None).unwrap().verify().unwrap().is_ok());
    }
}

/// Replaces the checksum of `version` with one that has a different number of files.
fn falsify(storage: &Storage, version: u64) {
    let mut checksum = read(storage, version).unwrap();
    checksum["numFiles"] = json!(checksum["numFiles"].as_u64().unwrap() + 5);
    checksum.as_object_mut().unwrap().remove("allFiles");
    storage.put(&LogFileName::Checksum(version).path(), checksum.to_string().into()).unwrap();
}

/// A checksum that another writer or an earlier release wrote may be wrong. "Writers MUST NOT overwrite" it, but the
/// next checkpoint counts the files again.
#[test]
fn a_wrong_number_of_files_is_corrected_by_the_next_checkpoint() {
    let (_, storage) = table(&["a", "b", "c", "d", "e", "f", "g"]);
    falsify(&storage, 7);
    for version in 8..13 {
        let base = Snapshot::open(&storage, None).unwrap();
        let commit = || append(&base, &format!("{version}"), &environment()).commit_or_fail().unwrap();
        let (warnings, _) = warnings(commit);
        assert_eq!(
            warnings.iter().filter(|line| line.contains("counted=10")).count(),
            usize::from(version == 10)
        );
        let files = read(&storage, version).unwrap()["numFiles"].as_u64().unwrap();
        assert_eq!(files, if version < 10 { version + 5 } else { version }, "version {version}");
    }
}

/// If a checkpoint cannot be written, files are not counted. The checksum is derived from the previous one instead,
/// and the next checkpoint verifies it.
#[test]
fn a_checksum_is_written_if_its_checkpoint_is_not() {
    for is_false in [false, true] {
        let (store, storage) = table(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
        if is_false {
            falsify(&storage, 9);
        }
        for version in 10..=20 {
            let base = Snapshot::open(&storage, None).unwrap();
            store.fail(move |_, call| {
                let is_checkpoint = version == 10 && call.path.contains(".checkpoint");
                (is_checkpoint && call.op == Op::Put).then_some(Fault::Denied)
            });
            append(&base, &format!("{version}"), &environment()).commit_or_fail().unwrap();
            let is_wrong = is_false && version < 20;
            let files = read(&storage, version).unwrap()["numFiles"].as_u64().unwrap();
            assert_eq!(files, version + if is_wrong { 5 } else { 0 }, "version {version}, {is_false}");
        }
        let checkpoint = |version| storage.get(&LogFileName::ClassicCheckpoint(version).path()).unwrap();
        assert!(checkpoint(10).is_none() && checkpoint(20).is_some());
    }
}

/// A checkpoint that the user requests also compares its counts with the checksum. If they differ, the process no
/// longer uses that checksum.
#[test]
fn a_requested_checkpoint_reveals_a_wrong_number_of_files() {
    let (_, storage) = table(&["a", "b", "c", "d", "e", "f", "g"]);
    falsify(&storage, 7);
    let base = Snapshot::open(&storage, None).unwrap();
    let (warnings, _) = warnings(|| write_checkpoint(&base, &environment()).unwrap());
    assert!(warnings.iter().any(|line| line.contains("recorded=12 files=7")), "{warnings:?}");
    append(&base, "new", &environment()).commit_or_fail().unwrap();
    assert!(read(&storage, 8).is_none_or(|checksum| checksum["numFiles"] == 8));
}

/// If transaction identifiers expire, they are left out, because whether one has expired depends on the time at which
/// the checksum is read.
#[test]
fn identifiers_that_expire_are_left_out() {
    let (_, storage) = empty();
    let properties =
        BTreeMap::from([("delta.setTransactionRetentionDuration".to_owned(), "interval 1 day".to_owned())]);
    write_commit(&storage, 0, &first_lines(&properties));
    append(&Snapshot::open(&storage, None).unwrap(), "new", &environment()).commit_or_fail().unwrap();
    assert!(read(&storage, 1).unwrap().get("setTransactions").is_none());
}

/// A checksum is ignored if the version to which it belongs does not exist.
#[test]
fn a_checksum_without_a_version_is_ignored() {
    let (_, storage) = table(&["a", "b"]);
    write_checkpoint(&Snapshot::open(&storage, Some(1)).unwrap(), &environment()).unwrap();
    let mut stray = read(&storage, 2).unwrap();
    stray["numFiles"] = 90.into();
    storage.delete(&LogFileName::Checksum(2).path()).unwrap();
    storage.put(&LogFileName::Checksum(5).path(), stray.to_string().into()).unwrap();
    append(&Snapshot::open(&storage, None).unwrap(), "c", &environment()).commit_or_fail().unwrap();
    assert_eq!(read(&storage, 3).unwrap()["numFiles"], 3);
    assert!(Snapshot::open(&storage, None).unwrap().verify().unwrap().is_ok());
}

/// A checksum of more than twenty files does not list the files. If a commit of this crate adds files again with new
/// statistics, the totals stay the same, because these files were live before.
#[test]
fn statistics_that_are_computed_again_change_no_total() {
    let (_, storage) = empty();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let sizes: Vec<i64> = (0..30).collect();
    carry_out(&storage, &[(Step::Append(sizes, None), false), (Step::Again, false)]);
    let (before, after) = (read(&storage, 1).unwrap(), read(&storage, 2).unwrap());
    for field in ["numFiles", "tableSizeBytes", "fileSizeHistogram"] {
        assert_eq!(before[field], after[field], "{field}");
    }
    assert!(Snapshot::open(&storage, None).unwrap().verify().unwrap().is_ok());
}

/// Totals also stay known if another process has committed new statistics after the version on which a commit is based.
#[test]
fn totals_stay_known_after_another_process_has_computed_statistics() {
    let (_, storage) = empty();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let sizes: Vec<i64> = (0..30).collect();
    let steps =
        [(Step::Append(sizes, None), false), (Step::Again, false), (Step::Append(vec![7], None), true)];
    carry_out(&storage, &steps);
    let (before, after) = (read(&storage, 2).unwrap(), read(&storage, 3).unwrap());
    let number = |of: &Value, field: &str| of[field].as_i64().unwrap();
    assert_eq!(number(&after, "numFiles"), number(&before, "numFiles") + 1);
    assert_eq!(number(&after, "tableSizeBytes"), number(&before, "tableSizeBytes") + 7);
    assert!(Snapshot::open(&storage, None).unwrap().verify().unwrap().is_ok());
}

/// Other writers may add live files again, so their `add` actions can be counted only while the checksum lists all
/// files.
#[test]
fn totals_stay_known_after_another_writers_commit_while_all_files_are_listed() {
    for files in [3, 30] {
        let (_, storage) = empty();
        creation(&storage, &environment()).commit_or_fail().unwrap();
        let steps = [
            (Step::Append((0..files).collect(), None), false),
            (Step::Foreign(Foreign::Append), false),
            (Step::Append(vec![7], None), false),
        ];
        carry_out(&storage, &steps);
        assert_eq!(read(&storage, 3).is_some(), files == 3, "{files} files");
        assert!(Snapshot::open(&storage, None).unwrap().verify().unwrap().is_ok());
    }
}

#[test]
fn a_table_of_very_many_files_has_no_list_of_them() {
    let (_, storage) = empty();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let sizes: Vec<i64> = (0..30).collect();
    let many = |version| {
        let base = Snapshot::open(&storage, None).unwrap();
        let mut transaction = Transaction::new(&base, Operation::new("WRITE"), &environment()).unwrap();
        transaction.add_files(&files(version, &sizes)).unwrap();
        transaction.commit_or_fail().unwrap();
    };
    many(1);
    many(2);
    assert!(read(&storage, 2).unwrap().get("allFiles").is_none());
    // After an overwrite, all files are known again.
    let base = Snapshot::open(&storage, None).unwrap();
    let mut transaction = Transaction::overwrite(&base, Operation::new("WRITE"), &environment()).unwrap();
    transaction.add_files(&files(3, &[1])).unwrap();
    transaction.commit_or_fail().unwrap();
    assert_eq!(read(&storage, 3).unwrap()["allFiles"].as_array().unwrap().len(), 1);
    assert!(Snapshot::open(&storage, None).unwrap().verify().unwrap().is_ok());
}
