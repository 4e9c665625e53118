//! Distributed writes: workers return fragments, which are committed together. Fragments that do not come from a
//! worker of the write are refused, and a write that fails deletes only its own files.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use serde_json::{Value, json};
use tempfile::TempDir;

use deltalog::{
    DistributedWrite, Environment, ErrorKind, Fragment, Operation, PendingWrite, PrimitiveType, SaveMode,
    Snapshot, Storage, StructField, StructType, TableScan, WriteRequest, WriteTask,
};

use crate::common::ids::ids;
use crate::common::newest;

fn table() -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    (directory, storage)
}

fn request() -> WriteRequest {
    let schema = StructType::try_new(vec![
        StructField::new("id", PrimitiveType::Long, true),
        StructField::new("p", PrimitiveType::String, true),
        StructField::new("day", PrimitiveType::Date, true),
    ]);
    let mut request = WriteRequest::new(schema.unwrap(), SaveMode::Append);
    request.partition_by = Some(vec!["p".to_owned(), "day".to_owned()]);
    request
}

fn begin(storage: &Storage) -> DistributedWrite {
    let pending = PendingWrite::begin(storage, request(), &Environment::system()).unwrap().unwrap();
    DistributedWrite::new(pending).unwrap()
}

/// Writes ids like a worker in another process: it gets its task and returns its fragment as text.
fn work(task: &str, ids: &[i64]) -> String {
    let task = WriteTask::from_json(task).unwrap();
    let storage = Storage::open(task.table_url(), []).unwrap();
    let mut writer = task.writer(&storage, &Environment::system()).unwrap();
    let partitions: ArrayRef =
        Arc::new(ids.iter().map(|id| Some(format!("ä/{}", id % 2))).collect::<StringArray>());
    let columns = [("id", Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef), ("P", partitions)];
    writer.write(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
    task.fragment(writer).unwrap().to_json().unwrap()
}

fn fragment(write: &DistributedWrite, ids: &[i64]) -> Fragment {
    Fragment::from_json(&work(&write.task().to_json().unwrap(), ids)).unwrap()
}

fn commit(write: DistributedWrite, fragments: &[Fragment]) -> Option<u64> {
    let checked = write.check(fragments).unwrap();
    write.commit(checked, Operation::new("WRITE")).unwrap().version()
}

fn files(storage: &Storage) -> BTreeSet<String> {
    let all = storage.list_after("", "").unwrap().into_iter().map(|file| file.name);
    all.filter(|name| !name.starts_with("_delta_log")).collect()
}

#[test]
fn fragments_of_workers_are_one_version() {
    let (_directory, storage) = table();
    for version in 0..2 {
        let write = begin(&storage);
        let fragments = [fragment(&write, &[1, 2, 3]), fragment(&write, &[4]), fragment(&write, &[])];
        assert_eq!((fragments[0].num_rows(), fragments[0].files().len(), fragments[2].num_rows()), (3, 2, 0));
        assert_eq!(commit(write, &fragments), Some(version));
    }
    assert_eq!(ids(&newest(&storage)), [1, 1, 2, 2, 3, 3, 4, 4]);
    let totals = Snapshot::open(&storage, None).unwrap().totals().unwrap();
    assert_eq!(totals.files, files(&storage).len() as u64);
}

/// If a task runs twice and only one fragment is passed to the commit, the files of the other run are deleted. Other
/// files are kept.
#[test]
fn files_that_no_fragment_names_are_deleted_with_the_commit() {
    let (_directory, storage) = table();
    commit(begin(&storage), &[]);
    let (write, other) = (begin(&storage), begin(&storage));
    let first = fragment(&write, &[1]);
    let before = files(&storage);
    fragment(&write, &[1]);
    let others = fragment(&other, &[2]);
    assert_eq!(files(&storage).len(), 3);
    assert_eq!(commit(write, &[first]), Some(1));
    assert_eq!(files(&storage).len(), 2);
    assert!(files(&storage).is_superset(&before));
    assert_eq!(commit(other, &[others]), Some(2));
    assert_eq!(ids(&newest(&storage)), [1, 2]);
}

#[test]
fn an_abort_deletes_exactly_the_files_of_the_write() {
    let (directory, storage) = table();
    let (write, other) = (begin(&storage), begin(&storage));
    let others = fragment(&other, &[1]);
    let before = files(&storage);
    fragment(&write, &[2, 3]);
    let root = write.task().directory().to_owned();
    // A worker that died has left this file behind.
    std::fs::write(directory.path().join(&root).join("part-torn.parquet"), "PAR1").unwrap();
    write.abort().unwrap();
    assert_eq!(files(&storage), before);
    assert!(!directory.path().join(root).exists());
    assert_eq!(commit(other, &[others]), Some(0));
}

#[test]
fn a_commit_that_fails_deletes_the_files_of_the_write() {
    let (_directory, storage) = table();
    commit(begin(&storage), &[]);
    let mut overwrite = request();
    overwrite.mode = SaveMode::Overwrite;
    let pending = PendingWrite::begin(&storage, overwrite, &Environment::system()).unwrap().unwrap();
    let write = DistributedWrite::new(pending).unwrap();
    let append = begin(&storage);
    let winner = fragment(&append, &[1]);
    commit(append, &[winner]);
    let before = files(&storage);
    let fragments = [fragment(&write, &[2])];
    fragment(&write, &[2]);
    let checked = write.check(&fragments).unwrap();
    let error = write.commit(checked, Operation::new("WRITE")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict);
    assert_eq!(files(&storage), before);
}

/// A fragment whose text was changed in any way is refused. The write stays open, and nothing is deleted.
#[test]
fn a_fragment_that_was_changed_is_refused() {
    let (_directory, storage) = table();
    let (write, other) = (begin(&storage), begin(&storage));
    let text = work(&write.task().to_json().unwrap(), &[1]);
    let foreign = fragment(&other, &[2]);
    let before = files(&storage);
    let path = |path: &str| path.to_owned();
    let directory = write.task().directory().to_owned();
    let good = Fragment::from_json(&text).unwrap();
    let (place, _) = good.files()[0].path.rsplit_once('/').unwrap();
    let changes: Vec<(&str, Value, ErrorKind, &str)> = vec![
        ("/write", json!("x"), ErrorKind::InvalidArgument, "belongs to the write x"),
        (
            "/files/0/path",
            json!(foreign.files()[0].path),
            ErrorKind::InvalidArgument,
            "not in the write's directory",
        ),
        ("/files/0/path", json!("/etc/passwd"), ErrorKind::InvalidArgument, "not in the write's directory"),
        ("/files/0/path", json!("s3://b/x"), ErrorKind::InvalidArgument, "not in the write's directory"),
        (
            "/files/0/path",
            json!(format!("{directory}/../x")),
            ErrorKind::InvalidArgument,
            "not in the write's",
        ),
        ("/files/0/path", json!(format!("{directory}//x")), ErrorKind::InvalidArgument, "not in the write's"),
        ("/files/0/path", json!(format!("{directory}x/y")), ErrorKind::InvalidArgument, "not in the write's"),
        ("/files/0/path", json!(directory), ErrorKind::InvalidArgument, "not in the write's directory"),
        ("/files/0/path", json!(format!("{place}/none")), ErrorKind::FileNotFound, "does not exist"),
        (
            "/files/0/path",
            json!(format!("{directory}/none")),
            ErrorKind::InvalidArgument,
            "differ from its file's directory",
        ),
        ("/files/0/size", json!(7), ErrorKind::CorruptData, "but its fragment says 7"),
        ("/files/0/size", json!(u64::MAX), ErrorKind::InvalidArgument, "too large"),
        ("/files/0/rows", json!(2), ErrorKind::InvalidArgument, "has 2 rows"),
        ("/files/0/stats", json!("{\"numRecords\":2}"), ErrorKind::InvalidArgument, "statistics have 2"),
        ("/files/0/stats", json!("[]"), ErrorKind::InvalidArgument, "not a JSON object"),
        ("/files/0/stats", json!("{}"), ErrorKind::InvalidArgument, "statistics have none"),
        ("/files/0/partitionValues", json!({"p": "x"}), ErrorKind::InvalidArgument, "the table has [p, day]"),
        ("/files/0/partitionValues", json!({"p": "x", "q": "y"}), ErrorKind::InvalidArgument, "[p, q]"),
        (
            "/files/0/partitionValues",
            json!({"p": "x", "day": "soon"}),
            ErrorKind::InvalidArgument,
            "invalid value of the partition column 'day'",
        ),
        (
            "/files/0/partitionValues",
            json!({"p": "ä/0", "day": null}),
            ErrorKind::InvalidArgument,
            "differ from its file's directory",
        ),
    ];
    for (pointer, value, kind, message) in changes {
        let mut changed: Value = serde_json::from_str(&text).unwrap();
        *changed.pointer_mut(pointer).unwrap() = value.clone();
        let changed = Fragment::from_json(&changed.to_string()).unwrap();
        let error = write.check(&[changed]).unwrap_err();
        assert_eq!(error.kind(), kind, "{pointer} {value}: {error}");
        assert!(error.to_string().contains(message), "{pointer} {value}: {error}");
        assert_eq!(error.table().map(path), Some(storage.url()));
    }
    // The fragment of another write is refused, even if it has no files.
    let nothing = write.check(&[fragment(&other, &[])]).unwrap_err();
    assert!(nothing.to_string().contains("belongs to the write"), "{nothing}");
    let twice = write.check(&[good.clone(), good.clone()]).unwrap_err();
    assert!(twice.to_string().contains("in the fragments twice"), "{twice}");
    assert_eq!(files(&storage), before);
    assert_eq!(commit(write, &[good]), Some(0));
}

#[test]
fn invalid_tasks_and_fragments_are_refused() {
    let (_directory, storage) = table();
    let write = begin(&storage);
    let task: Value = serde_json::from_str(&write.task().to_json().unwrap()).unwrap();
    let fragment: Value = serde_json::from_str(&work(&task.to_string(), &[1])).unwrap();
    let read_task = |value: &Value| WriteTask::from_json(&value.to_string()).map(drop);
    let read_fragment = |value: &Value| Fragment::from_json(&value.to_string()).map(drop);
    read_task(&task).unwrap();
    read_fragment(&fragment).unwrap();
    let refused =
        [read_task(&fragment), read_fragment(&task), read_task(&json!(1)), read_fragment(&json!({}))];
    for error in refused.map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    for mut other in [task, fragment] {
        other["format"] = json!(3);
        let error = if other.get("table").is_some() { read_task(&other) } else { read_fragment(&other) };
        assert!(error.unwrap_err().to_string().contains("has format version 3"));
    }
}

/// Begins a distributed write to a table with an identity column `n`. The first such write creates the table.
fn counting(storage: &Storage, accepts_values: bool) -> DistributedWrite {
    let schema = StructType::try_new(vec![
        StructField::new("id", PrimitiveType::Long, true),
        StructField::new("n", PrimitiveType::Long, false).with_identity(5, 5, accepts_values),
    ]);
    let request = WriteRequest::new(schema.unwrap(), SaveMode::Append);
    let pending = PendingWrite::begin(storage, request, &Environment::system()).unwrap().unwrap();
    DistributedWrite::new(pending).unwrap()
}

/// Writes each id as a batch of its own. If `given` is set, the rows have this value for the identity column.
fn counted(
    storage: &Storage,
    task: &WriteTask,
    ids: &[i64],
    given: Option<i64>,
) -> deltalog::Result<Fragment> {
    let task = WriteTask::from_json(&task.to_json()?)?;
    let mut writer = task.writer(storage, &Environment::system())?;
    for id in ids {
        let mut columns = vec![("id", Arc::new(Int64Array::from(vec![*id])) as ArrayRef)];
        columns.extend(given.map(|value| ("n", Arc::new(Int64Array::from(vec![value])) as ArrayRef)));
        writer.write(&RecordBatch::try_from_iter(columns).unwrap())?;
    }
    Fragment::from_json(&task.fragment(writer)?.to_json()?)
}

fn numbers(storage: &Storage) -> Vec<i64> {
    let mut numbers = Vec::new();
    for batch in TableScan::new(&Snapshot::open(storage, None).unwrap()).read().unwrap() {
        numbers.extend(batch.unwrap().column(1).as_primitive::<Int64Type>().values());
    }
    numbers.sort_unstable();
    numbers
}

/// PROTOCOL, "Identity Columns".
#[test]
fn tasks_count_values_of_their_own() {
    let (_directory, storage) = table();
    let write = counting(&storage, false);
    let tasks = write.tasks(3).unwrap();
    assert_eq!(write.tasks(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let fragments = [
        counted(&storage, &tasks[0], &[1, 2], None).unwrap(),
        counted(&storage, &tasks[2], &[3], None).unwrap(),
        counted(&storage, &tasks[1], &[], None).unwrap(),
    ];
    assert_eq!(commit(write, &fragments), Some(0));
    assert_eq!(numbers(&storage), [5, 15, 20]);
    // The next write continues after the high water mark.
    let write = counting(&storage, false);
    let tasks = write.tasks(2).unwrap();
    let fragments = [
        counted(&storage, &tasks[0], &[4], None).unwrap(),
        counted(&storage, &tasks[1], &[5, 6], None).unwrap(),
    ];
    assert_eq!(commit(write, &fragments), Some(1));
    assert_eq!(numbers(&storage), [5, 15, 20, 25, 30, 40]);
}

#[test]
fn fragments_with_the_same_identity_values_are_refused() {
    let (_directory, storage) = table();
    commit(counting(&storage, false), &[]);
    let write = counting(&storage, false);
    let tasks = write.tasks(2).unwrap();
    let first = counted(&storage, &tasks[0], &[1], None).unwrap();
    // One worker runs twice, and another worker has a task from a division into three tasks.
    let again = counted(&storage, &tasks[0], &[1], None).unwrap();
    let other = counted(&storage, &write.tasks(3).unwrap()[1], &[2], None).unwrap();
    for (fragments, expected) in [
        ([first.clone(), again], "two fragments belong to the task 0 of 2"),
        ([first.clone(), other], "one of 3 tasks, and another by one of 2 tasks"),
    ] {
        let error = write.check(&fragments).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut forged: Value = serde_json::from_str(&first.to_json().unwrap()).unwrap();
    *forged.pointer_mut("/counted/lane/number").unwrap() = json!(1);
    let forged = Fragment::from_json(&forged.to_string()).unwrap();
    assert!(write.check(&[forged]).unwrap_err().to_string().contains("they begin at 10"));
    let mut silent: Value = serde_json::from_str(&first.to_json().unwrap()).unwrap();
    silent.as_object_mut().unwrap().remove("counted");
    let silent = Fragment::from_json(&silent.to_string()).unwrap();
    assert!(write.check(&[silent]).unwrap_err().to_string().contains("does not say which values"));
    // A task without a number cannot generate values.
    let error = counted(&storage, write.task(), &[1], None).unwrap_err();
    assert!(error.to_string().contains("tasks(count)"), "{error}");
    assert_eq!(commit(write, &[first]), Some(1));
    assert_eq!(numbers(&storage), [5]);
}

#[test]
fn two_writes_that_count_conflict_and_given_values_are_free() {
    let (_directory, storage) = table();
    commit(counting(&storage, true), &[]);
    let (write, other) = (counting(&storage, true), counting(&storage, true));
    let count =
        |write: &DistributedWrite| counted(&storage, &write.tasks(1).unwrap()[0], &[1], None).unwrap();
    let (first, second) = (count(&write), count(&other));
    let given = counting(&storage, true);
    let fragment = counted(&storage, given.task(), &[7], Some(70)).unwrap();
    assert_eq!(commit(write, &[first]), Some(1));
    let checked = other.check(&[second]).unwrap();
    let error = other.commit(checked, Operation::new("WRITE")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
    assert_eq!(commit(given, &[fragment]), Some(2));
    assert_eq!(numbers(&storage), [5, 70]);
}

/// If the identity column accepts values, a task may have both rows with a value and rows without.
#[test]
fn a_task_counts_only_the_rows_that_lack_a_value() {
    let (_directory, storage) = table();
    for (version, accepts_values) in [(0, true), (1, false)] {
        let schema = StructType::try_new(vec![
            StructField::new("id", PrimitiveType::Long, true),
            StructField::new("n", PrimitiveType::Long, false).with_identity(5, 5, accepts_values),
        ]);
        let root = format!("{}/{version}", storage.url());
        let storage = Storage::open(&root, []).unwrap();
        let request = WriteRequest::new(schema.unwrap(), SaveMode::Append);
        let pending = PendingWrite::begin(&storage, request, &Environment::system()).unwrap().unwrap();
        let write = DistributedWrite::new(pending).unwrap();
        let task = write.tasks(2).unwrap().remove(1);
        let mut writer = task.writer(&storage, &Environment::system()).unwrap();
        let id = || ("id", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef);
        let given = ("n", Arc::new(Int64Array::from(vec![701, 702])) as ArrayRef);
        writer.write(&RecordBatch::try_from_iter([id()]).unwrap()).unwrap();
        let mixed = writer.write(&RecordBatch::try_from_iter([id(), given]).unwrap());
        assert_eq!(mixed.is_ok(), accepts_values);
        let fragment = task.fragment(writer).unwrap();
        assert_eq!(fragment.num_rows(), if accepts_values { 4 } else { 2 });
        // If all values are generated, a fragment that has more rows than values is damaged.
        let mut forged: Value = serde_json::from_str(&fragment.to_json().unwrap()).unwrap();
        *forged.pointer_mut("/counted/values/n").unwrap() = json!([10, 10]);
        let forged = write.check(&[Fragment::from_json(&forged.to_string()).unwrap()]);
        assert_eq!(forged.is_ok(), accepts_values);
        commit(write, &[fragment]);
        let expected: &[i64] = if accepts_values { &[10, 20, 701, 702] } else { &[10, 20] };
        assert_eq!(numbers(&storage), expected);
    }
}
