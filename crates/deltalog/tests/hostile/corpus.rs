//! Collects the files to mutate: files that other writers wrote, if they are available, and our own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::DataType;
use deltalog::engine::commit::{Operation, SaveMode};
use deltalog::engine::dml::{Request, delete};
use deltalog::engine::protocol::StructType;
use deltalog::{Environment, PendingWrite, Snapshot, Storage, WriteRequest};

/// The files of a table by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The maximum size of a file in the corpus. Mutations of small files find more problems.
const LARGEST: u64 = 64 << 10;
/// The maximum number of other writers' tables in the corpus.
const MOST_TABLES: usize = 160;

/// The tables of the corpus.
pub static TABLES: LazyLock<Vec<Files>> = LazyLock::new(|| {
    let mut tables = vec![our_own()];
    let root = std::env::var_os("DELTALOG_GOLDEN").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden"),
        PathBuf::from,
    );
    let mut names: Vec<PathBuf> =
        fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path().join("table")).collect();
    names.sort();
    for table in names.iter().filter(|table| table.is_dir()).take(MOST_TABLES) {
        let mut files = Files::new();
        collect(table, table, &mut files);
        tables.push(files);
    }
    tables
});

fn collect(root: &Path, directory: &Path, files: &mut Files) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if entry.metadata().is_ok_and(|metadata| metadata.len() <= LARGEST) {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.insert(name, fs::read(&path).unwrap());
        }
    }
}

/// Returns the distinct contents of the files whose paths `wanted` accepts.
pub fn files(wanted: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = TABLES
        .iter()
        .flatten()
        .filter(|(path, _)| wanted(path))
        .map(|(_, bytes)| bytes.clone())
        .filter(|bytes| !bytes.is_empty())
        .collect();
    found.sort();
    found.dedup();
    found
}

pub fn is_commit(path: &str) -> bool {
    path.starts_with("_delta_log/") && path.ends_with(".json") && !path.contains("checkpoint")
}

pub fn is_checkpoint(path: &str) -> bool {
    path.starts_with("_delta_log/") && path.ends_with(".parquet")
}

pub fn is_data(path: &str) -> bool {
    !path.starts_with('_') && path.ends_with(".parquet")
}

/// Returns the values that one field of an action has in all commits.
pub fn members(action: &str, member: &str) -> Vec<String> {
    let mut found: Vec<String> = files(is_commit)
        .iter()
        .flat_map(|commit| String::from_utf8_lossy(commit).lines().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(&line).ok())
        .filter_map(|value| value.get(action)?.get(member).cloned())
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Returns a partitioned table with a checkpoint, statistics of several types, commits after the checkpoint, and a
/// deletion vector.
fn our_own() -> Files {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let environment = Environment::system();
    let batch = |first: i64| {
        let numbers: Vec<i64> = (first..first + 20).collect();
        let times = TimestampMicrosecondArray::from(numbers.clone()).with_timezone("UTC");
        RecordBatch::try_from_iter_with_nullable([
            ("n", Arc::new(Int64Array::from(numbers.clone())) as ArrayRef, true),
            ("f", Arc::new(numbers.iter().map(|n| Some(*n as f64 / 3.0)).collect::<Float64Array>()), true),
            (
                "s",
                Arc::new(
                    numbers.iter().map(|n| (n % 3 > 0).then(|| format!("text {n}"))).collect::<StringArray>(),
                ),
                true,
            ),
            ("t", Arc::new(times), true),
            ("p", Arc::new(numbers.iter().map(|n| Some((n % 2).to_string())).collect::<StringArray>()), true),
        ])
        .unwrap()
    };
    for version in 0..4 {
        let batch = batch(version * 100);
        let mut request =
            WriteRequest::new(StructType::from_arrow(&batch.schema()).unwrap(), SaveMode::Append);
        if version == 0 {
            request.partition_by = Some(vec!["p".to_owned()]);
            let properties = [("delta.checkpointInterval", "2"), ("delta.enableDeletionVectors", "true")];
            request.configuration =
                properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        }
        let write = PendingWrite::begin(&storage, request, &environment).unwrap().unwrap();
        let mut writer = write.writer().unwrap();
        writer.write(&batch).unwrap();
        write.commit(writer.finish().unwrap(), Operation::new("WRITE")).unwrap();
        assert_eq!(batch.column(0).data_type(), &DataType::Int64);
    }
    delete(&Snapshot::open(&storage, None).unwrap(), Some("n % 5 = 0"), Request::new(&environment)).unwrap();
    let mut files = Files::new();
    collect(directory.path(), directory.path(), &mut files);
    assert!(files.keys().any(|path| path.ends_with(".bin")));
    assert!(
        files.keys().any(|path| is_checkpoint(path)) && files.contains_key("_delta_log/_last_checkpoint")
    );
    files
}
