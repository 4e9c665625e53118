//! Small files are compacted after a write that requests it, while other writers commit and requests fail. Protocol:
//! "Add File and Remove File", "Commit Provenance Information".

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use deltalog::engine::dml::{Request, delete, update};
use deltalog::engine::parallel::stay_alone;
use deltalog::engine::protocol::{Add, StructType};
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    AutoCompaction, Environment, ErrorKind, Operation, PendingWrite, SaveMode, Snapshot, Storage,
    TableChange, WriteOutcome, WriteRequest, alter_table,
};
use deltalog_testkit::store::{Fault, FaultyStore, Op};
use tempfile::TempDir;

use crate::common::ids::{environment, files, ids, meanwhile};
use crate::common::warnings::warnings;
use crate::common::{empty, newest, schema};

const AUTO: [(&str, &str); 1] = [("delta.autoOptimize.autoCompact", "true")];

const PARTITIONED: &str = r#"{"type":"struct","fields":[
    {"name":"id","type":"long","nullable":true,"metadata":{}},
    {"name":"p","type":"string","nullable":true,"metadata":{}}]}"#;

/// Returns settings with which four small files are compacted. `set` changes them further.
fn four(set: impl FnOnce(&mut AutoCompaction)) -> AutoCompaction {
    let mut settings = AutoCompaction::default();
    settings.least_files = 4;
    set(&mut settings);
    settings
}

fn compacting() -> Environment {
    environment().with_auto_compaction(four(|_| {}))
}

/// Appends `count` files of ten rows each, with consecutive ids from `first` on. Returns the version.
fn append(storage: &Storage, first: i64, count: i64, environment: &Environment) -> u64 {
    write(storage, SaveMode::Append, first, count, environment)
}

fn write(storage: &Storage, mode: SaveMode, first: i64, count: i64, environment: &Environment) -> u64 {
    let mut request = WriteRequest::new(schema(), mode);
    if Snapshot::open(storage, None).is_err() {
        request.configuration = properties(&AUTO);
    }
    let write = PendingWrite::begin(storage, request, environment).unwrap().unwrap();
    let files = (0..count).flat_map(|file| files(&write, first + 10 * file..first + 10 * (file + 1)));
    let files = files.collect();
    write.commit(files, Operation::new("WRITE")).unwrap().version().unwrap()
}

fn properties(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Creates a table with deletion vectors and these properties, without files.
fn table(pairs: &[(&str, &str)]) -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let mut request = WriteRequest::new(schema(), SaveMode::Append);
    request.configuration = properties(pairs);
    request.configuration.insert("delta.enableDeletionVectors".to_owned(), "true".to_owned());
    let write = PendingWrite::begin(&storage, request, &environment()).unwrap().unwrap();
    write.commit(Vec::new(), Operation::new("WRITE")).unwrap();
    (directory, storage)
}

fn adds(snapshot: &Snapshot) -> Vec<Add> {
    listed_files(snapshot, None).unwrap().into_iter().map(|file| file.add).collect()
}

fn file_count(storage: &Storage) -> usize {
    adds(&newest(storage)).len()
}

/// Returns the `commitInfo` of the newest version.
fn commit_info(storage: &Storage) -> serde_json::Value {
    let path = format!("_delta_log/{:020}.json", newest(storage).version());
    let text = String::from_utf8(storage.read(&path).unwrap().to_vec()).unwrap();
    serde_json::from_str::<serde_json::Value>(text.lines().next().unwrap()).unwrap()["commitInfo"].clone()
}

/// The commit of the write does not change. The compaction is a separate version, which does not start another
/// compaction.
#[test]
fn enough_small_files_become_one() {
    let (_directory, storage) = table(&AUTO);
    for written in 1..4 {
        let version = append(&storage, 10 * (written - 1), 1, &compacting());
        assert_eq!((version, newest(&storage).version()), (version, version), "{written} files are too few");
    }
    let version = append(&storage, 30, 1, &compacting());
    assert_eq!((version, newest(&storage).version(), file_count(&storage)), (4, 5, 1));
    assert_eq!(ids(&newest(&storage)), (0..40).collect::<Vec<_>>());
    assert_eq!(Snapshot::open(&storage, Some(4)).unwrap().totals().unwrap().files, 4);
    let info = commit_info(&storage);
    assert_eq!(
        (&info["operation"], &info["operationParameters"]["auto"]),
        (&"OPTIMIZE".into(), &true.into())
    );
    assert_eq!(info["operationMetrics"]["numRemovedFiles"], "4");
    assert!(!adds(&newest(&storage))[0].data_change);
    // The file that the compaction wrote is also small, so it counts.
    append(&storage, 40, 2, &compacting());
    assert_eq!((newest(&storage).version(), file_count(&storage)), (6, 3));
    append(&storage, 60, 1, &compacting());
    assert_eq!((newest(&storage).version(), file_count(&storage)), (8, 1));
}

/// The defaults are the same as in the JVM connector.
#[test]
fn fifty_files_are_enough_by_default() {
    let (_directory, storage) = table(&AUTO);
    append(&storage, 0, 49, &environment());
    assert_eq!(file_count(&storage), 49);
    append(&storage, 490, 1, &environment());
    assert_eq!((file_count(&storage), ids(&newest(&storage))), (1, (0..500).collect::<Vec<_>>()));
}

#[test]
fn the_session_decides_before_the_table() {
    for (by_table, enabled, compacts) in
        [(true, None, true), (true, Some(false), false), (false, Some(true), true), (false, None, false)]
    {
        let (_directory, storage) = table(if by_table { &AUTO } else { &[] });
        let settings = four(|settings| settings.enabled = enabled);
        append(&storage, 0, 5, &environment().with_auto_compaction(settings));
        assert_eq!(file_count(&storage), if compacts { 1 } else { 5 }, "{by_table} {enabled:?}");
    }
}

/// Besides appends, this covers overwrites, the creation of a table, and statements that write rows.
#[test]
fn every_write_that_adds_files_starts_it() {
    let (_directory, storage) = table(&AUTO);
    append(&storage, 0, 6, &environment());
    write(&storage, SaveMode::Overwrite, 0, 5, &compacting());
    assert_eq!((file_count(&storage), ids(&newest(&storage)).len()), (1, 50));

    let directory = tempfile::tempdir().unwrap();
    let created = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    assert_eq!(append(&created, 0, 4, &compacting()), 0);
    assert_eq!((newest(&created).version(), file_count(&created)), (1, 1));

    // Besides the files of the append, there is the one that the UPDATE has added.
    let (_directory, storage) = table(&AUTO);
    append(&storage, 0, 5, &environment());
    let values = [("id".to_owned(), "id + 100".to_owned())];
    update(&newest(&storage), &values, Some("id = 7"), Request::new(&compacting())).unwrap();
    let expected: Vec<i64> = (0..50).filter(|id| *id != 7).chain([107]).collect();
    assert_eq!((file_count(&storage), ids(&newest(&storage))), (1, expected));

    // A DELETE with deletion vectors adds no file, so it starts no compaction.
    let (_directory, storage) = table(&AUTO);
    append(&storage, 0, 5, &environment());
    delete(&newest(&storage), Some("id = 7"), Request::new(&compacting())).unwrap();
    assert_eq!((file_count(&storage), ids(&newest(&storage)).len()), (5, 49));
}

/// Appends one file with one row to each of these partitions, `count` times, in one commit.
fn append_to_partitions(
    storage: &Storage,
    partitions: &[Option<&str>],
    count: usize,
    environment: &Environment,
) {
    let mut request = WriteRequest::new(StructType::from_json(PARTITIONED).unwrap(), SaveMode::Append);
    if Snapshot::open(storage, None).is_err() {
        request.partition_by = Some(vec!["p".to_owned()]);
        request.configuration = properties(&AUTO);
    }
    let write = PendingWrite::begin(storage, request, environment).unwrap().unwrap();
    let mut files = Vec::new();
    for _ in 0..count {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((0..).take(partitions.len()))),
            Arc::new(StringArray::from(partitions.to_vec())),
        ];
        let mut writer = write.writer().unwrap();
        writer.write(&RecordBatch::try_new(Arc::clone(write.arrow_schema()), columns).unwrap()).unwrap();
        files.extend(writer.finish().unwrap());
    }
    write.commit(files, Operation::new("WRITE")).unwrap();
}

/// Returns the number of files of each partition.
fn by_partition(storage: &Storage) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for add in adds(&newest(storage)) {
        *counts.entry(format!("{:?}", add.partition_values)).or_default() += 1;
    }
    counts
}

#[test]
fn only_partitions_of_the_write_are_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    append_to_partitions(&storage, &[Some("old"), Some("new"), None, Some("a/b")], 5, &environment());
    let counts = || by_partition(&storage).into_values().collect::<Vec<_>>();
    assert_eq!(counts(), [5, 5, 5, 5]);
    append_to_partitions(&storage, &[Some("new"), None], 1, &compacting());
    let found = by_partition(&storage);
    let is_touched = |partition: &str| partition.contains("new") || !partition.contains("Some");
    assert_eq!(found.len(), 4);
    for (partition, count) in found {
        assert_eq!(count, if is_touched(&partition) { 1 } else { 5 }, "{partition}");
    }
    assert_eq!(ids(&newest(&storage)).len(), 22);
}

/// Partitions with the most small files are compacted first. The size of new files and the total size of a compaction
/// are bounded.
#[test]
fn a_compaction_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    append_to_partitions(&storage, &[Some("few"), Some("many")], 5, &environment());
    append_to_partitions(&storage, &[Some("many")], 1, &environment());
    let settings = four(|settings| settings.most_partitions = 1);
    append_to_partitions(
        &storage,
        &[Some("few"), Some("many")],
        1,
        &environment().with_auto_compaction(settings),
    );
    assert_eq!(by_partition(&storage).into_values().collect::<Vec<_>>(), [6, 1]);

    let (_directory, storage) = table(&AUTO);
    append(&storage, 0, 1, &environment());
    let size = u64::try_from(adds(&newest(&storage))[0].size).unwrap();
    // Two files fit into a new file, and four files into a compaction.
    let settings = four(|settings| {
        settings.target_size = Some(size * 5 / 2);
        settings.small_size = Some(size * 3 / 2);
        settings.most_bytes = size * 9 / 2;
    });
    append(&storage, 10, 7, &environment().with_auto_compaction(settings.clone()));
    assert_eq!(
        (file_count(&storage), commit_info(&storage)["operationMetrics"]["numAddedFiles"].clone()),
        (6, "2".into())
    );
    // The remaining files are compacted after the next write.
    append(&storage, 80, 1, &environment().with_auto_compaction(settings));
    assert_eq!((file_count(&storage), ids(&newest(&storage))), (5, (0..90).collect::<Vec<_>>()));

    // Larger files do not count as small.
    let settings = four(|settings| settings.small_size = Some(size / 2));
    append(&storage, 90, 4, &environment().with_auto_compaction(settings));
    assert_eq!(file_count(&storage), 9);
}

/// Rows that other writers delete while the compaction runs are deleted in the new file. If other writers remove a
/// whole file, its rows do not come back.
#[test]
fn other_writers_commit_during_a_compaction() {
    for (condition, files) in [("id = 3 or id = 17", 1), ("id < 10", 4)] {
        let (_directory, storage) = table(&AUTO);
        append(&storage, 0, 3, &environment());
        let other = storage.clone();
        // The first three ids are used for the files and the transaction of the append, and the next id for the new
        // file.
        let work =
            move || drop(delete(&newest(&other), Some(condition), Request::new(&environment())).unwrap());
        let environment = meanwhile(work, 4).with_auto_compaction(four(|_| {}));
        append(&storage, 30, 2, &environment);
        let before: Vec<i64> = (0..50).collect();
        let is_deleted = |id: &i64| match files {
            1 => [3, 17].contains(id),
            _ => *id < 10,
        };
        let expected: Vec<i64> = before.into_iter().filter(|id| !is_deleted(id)).collect();
        assert_eq!((ids(&newest(&storage)), file_count(&storage)), (expected, files), "{condition}");
    }
}

/// A change of the table's definition is a conflict for the compaction, but not for the write.
#[test]
fn a_conflict_gives_the_compaction_up() {
    let (_directory, storage) = table(&AUTO);
    append(&storage, 0, 4, &environment());
    let other = storage.clone();
    let rename = move || {
        let set = BTreeMap::from([("delta.enableChangeDataFeed".to_owned(), "true".to_owned())]);
        let change = TableChange::SetProperties(set);
        alter_table(&newest(&other), &change, serde_json::Map::new(), &environment()).unwrap();
    };
    let environment = meanwhile(rename, 2).with_auto_compaction(four(|_| {}));
    let (logged, version) = warnings(|| append(&storage, 40, 1, &environment));
    assert_eq!(version, 2);
    assert_eq!((newest(&storage).version(), file_count(&storage)), (3, 5));
    assert!(
        logged.iter().any(|line| line.contains("the compaction of small files after it failed")),
        "{logged:?}"
    );
    // The next write tries again.
    append(&storage, 50, 1, &compacting());
    assert_eq!((file_count(&storage), ids(&newest(&storage)).len()), (1, 60));
}

/// If two writers compact the same files, one of them gives up, and no row is lost or doubled.
#[test]
fn two_writers_compact_at_the_same_time() {
    let (_directory, storage) = table(&AUTO);
    append(&storage, 0, 4, &environment());
    let other = storage.clone();
    let environment = meanwhile(
        move || {
            append(&other, 100, 1, &compacting());
        },
        2,
    );
    append(&storage, 40, 1, &environment.with_auto_compaction(four(|_| {})));
    let expected: Vec<i64> = (0..50).chain(100..110).collect();
    assert_eq!((ids(&newest(&storage)), file_count(&storage)), (expected, 1));

    // Each writer runs in its own thread and makes many commits.
    let (_directory, storage) = table(&AUTO);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let storage = storage.clone();
            scope.spawn(move || {
                for turn in 0..10 {
                    append(&storage, 1_000 * writer + 10 * turn, 1, &compacting());
                }
            });
        }
    });
    let expected: Vec<i64> = (0..4).flat_map(|writer| 1_000 * writer..1_000 * writer + 100).collect();
    assert_eq!(ids(&newest(&storage)), expected);
    assert!(file_count(&storage) < 20, "{} files", file_count(&storage));
}

/// Each request of the write and of the compaction fails in turn, in every way, once or permanently. If the write
/// reports success, all of its rows are in the table. If it reports a failure, none are. No row occurs twice.
#[test]
fn a_failed_compaction_does_not_fail_the_write() {
    stay_alone();
    let (prepared, storage) = empty();
    append(&storage, 0, 3, &crate::common::environment());
    let run = |store: &FaultyStore| -> deltalog::Result<WriteOutcome> {
        let storage = crate::common::storage_in(store);
        let request = WriteRequest::new(schema(), SaveMode::Append);
        let settings = four(|_| {});
        let environment = environment().with_auto_compaction(settings);
        let write = PendingWrite::begin(&storage, request, &environment)?.unwrap();
        let mut writer = write.writer()?;
        let column = Arc::new(Int64Array::from_iter_values(30..40));
        writer.write(&RecordBatch::try_new(Arc::clone(write.arrow_schema()), vec![column]).unwrap())?;
        let files = writer.finish()?;
        write.commit(files, Operation::new("WRITE"))
    };
    let store = prepared.copy();
    store.take_calls();
    run(&store).unwrap();
    let calls = store.take_calls();
    let storage = crate::common::storage_in(&store);
    assert_eq!((newest(&storage).version(), file_count(&storage)), (2, 1));
    let commit = |version: u64| {
        let name = format!("{version:020}.json");
        let is_commit =
            |call: &deltalog_testkit::store::Call| call.op == Op::Create && call.path.ends_with(&name);
        calls.iter().position(is_commit).unwrap()
    };
    let (of_write, of_compaction) = (commit(1), commit(2));
    let mut warned = 0;
    for (at, call) in calls.iter().enumerate() {
        for fault in Fault::of(call.op).iter().copied().chain([Fault::CrashBefore, Fault::CrashAfter]) {
            for is_lasting in [false, true] {
                let store = prepared.copy();
                let later = if fault.is_crash() { Fault::CrashBefore } else { Fault::Denied };
                store.fail(move |number, _| match number {
                    _ if number == at => Some(fault),
                    _ if number > at && (is_lasting || fault.is_crash()) => Some(later),
                    _ => None,
                });
                let (logged, done) = warnings(|| catch_unwind(AssertUnwindSafe(|| run(&store))));
                store.heal();
                let storage = crate::common::storage_in(&store);
                let found = ids(&newest(&storage));
                let context = format!("{fault:?} at {at} {call:?}, lasting {is_lasting}: {done:?}");
                let (old, new): (Vec<i64>, Vec<i64>) = ((0..30).collect(), (0..40).collect());
                assert!(found == old || found == new, "{context}: {found:?}");
                if !fault.is_crash() {
                    match &done {
                        Ok(Ok(_)) => assert_eq!(found, new, "{context}"),
                        Ok(Err(error)) if error.kind() == ErrorKind::CommitStateUnknown => {}
                        Ok(Err(_)) => assert_eq!(found, old, "{context}"),
                        Err(_) => unreachable!("only a crash unwinds"),
                    }
                    if at > of_write {
                        assert!(matches!(done, Ok(Ok(_))), "{context}");
                    }
                    if at > of_write && at < of_compaction {
                        warned +=
                            usize::from(logged.iter().any(|line| line.contains("compaction of small files")));
                    }
                }
                // The data files of all versions still exist.
                for version in 0..=newest(&storage).version() {
                    ids(&Snapshot::open(&storage, Some(version)).unwrap());
                }
            }
        }
    }
    assert!(warned > 0, "no fault made a compaction fail");
}

/// Without auto-compaction, a write makes no additional requests. With it, a write makes one more listing, and reads
/// the new commit.
#[test]
fn without_the_property_a_write_makes_the_same_requests_as_before() {
    let calls = |enabled: bool| {
        let (store, storage) = empty();
        append(&storage, 0, 3, &crate::common::environment());
        let settings = four(|settings| (settings.enabled, settings.least_files) = (Some(enabled), 10));
        store.take_calls();
        append(&storage, 30, 1, &environment().with_auto_compaction(settings));
        let calls = store.take_calls();
        calls.iter().map(|call| format!("{:?}", call.op)).collect::<Vec<_>>()
    };
    let (off, on) = (calls(false), calls(true));
    assert_eq!(on[..off.len()], off);
    assert_eq!(on[off.len()..], ["List", "Get"], "both writes make the requests {off:?}");
}
