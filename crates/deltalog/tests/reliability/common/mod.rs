//! Code that the tests share: tables in a store that fails on demand, a clock that stands still, and logs that are
//! written line by line.

pub mod forms;
pub mod ids;
pub mod oracle;
pub mod warnings;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int32Type, Int64Type};
use deltalog::TableDefinition;
use deltalog::engine::commit::{Committed, Operation, Transaction};
use deltalog::engine::log::LOG_DIRECTORY;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::engine::protocol::{Add, StructType};
use deltalog::engine::replay::{FileColumn, FileColumns};
use deltalog::{Environment, Result, Snapshot, Storage};
pub use deltalog_testkit::store;
use deltalog_testkit::store::FaultyStore;
use url::Url;
use uuid::Uuid;

/// The time of the clock of [`environment`].
pub const NOW_MS: i64 = 1_700_000_000_000;

/// Returns an environment whose clock stands still, whose pauses take no time and whose ids are consecutive.
pub fn environment() -> Environment {
    counting_from(1)
}

/// Returns where a sample of every `step`-th item starts. CI runs use different starts, so together they cover all
/// items.
pub fn first_of(step: usize) -> usize {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse::<usize>().ok());
    seed.unwrap_or_default() % step
}

fn counting_from(first: u64) -> Environment {
    let count = AtomicU64::new(first);
    Environment::new(|| NOW_MS, move || Uuid::from_u128(count.fetch_add(1, Ordering::Relaxed).into()))
        .with_sleep(|_| {})
}

/// Creates an empty store for a table.
pub fn empty() -> (FaultyStore, Storage) {
    let store = FaultyStore::default();
    let storage = storage_in(&store);
    (store, storage)
}

/// Returns the table in `store`.
pub fn storage_in(store: &FaultyStore) -> Storage {
    Storage::with_immediate_store(Url::parse("memory:///t").unwrap(), store.connect()).unwrap()
}

/// Opens the newest version.
pub fn newest(storage: &Storage) -> Snapshot {
    Snapshot::open(storage, None).unwrap()
}

/// Returns a schema with one column, `id: long`.
pub fn schema() -> StructType {
    StructType::from_json(&schema_json()).unwrap()
}

fn schema_json() -> String {
    r#"{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}"#.to_owned()
}

/// Returns an `add` action for a data file that does not exist.
pub fn add(path: &str) -> Add {
    let mut add = Add::default();
    (add.path, add.size, add.modification_time, add.data_change) = (path.to_owned(), 1, NOW_MS, true);
    add
}

/// Returns a transaction that creates the table.
pub fn creation(storage: &Storage, environment: &Environment) -> Transaction {
    try_creation(storage, environment).unwrap()
}

/// Does the same as [`creation`], with a store that may fail.
pub fn try_creation(storage: &Storage, environment: &Environment) -> Result<Transaction> {
    let table = TableDefinition::new(schema()).resolve(environment)?;
    Transaction::create(storage, table, Operation::new("CREATE TABLE"), environment)
}

/// Returns a transaction that adds the file `path` to `base`.
pub fn append(base: &Snapshot, path: &str, environment: &Environment) -> Transaction {
    let mut transaction = Transaction::new(base, Operation::new("WRITE"), environment).unwrap();
    transaction.add_files(&[add(path)]).unwrap();
    transaction
}

/// Returns a transaction that replaces everything in `base` with the file `path`.
pub fn overwrite(base: &Snapshot, path: &str, environment: &Environment) -> Result<Transaction> {
    let mut transaction = Transaction::overwrite(base, Operation::new("WRITE"), environment)?;
    transaction.add_files(&[add(path)])?;
    Ok(transaction)
}

/// Creates a table with `files`, each added by a separate commit, starting at version 1.
pub fn table(files: &[&str]) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    // These ids must differ from the ids that tests draw.
    let environment = counting_from(1_000_000);
    creation(&storage, &environment).commit_or_fail().unwrap();
    for file in files {
        append(&Snapshot::open(&storage, None).unwrap(), file, &environment).commit_or_fail().unwrap();
    }
    store.take_calls();
    (store, storage)
}

/// Writes a commit with these lines.
pub fn write_commit(storage: &Storage, version: u64, lines: &[String]) {
    storage.put(&LogFileName::Commit(version).path(), (lines.join("\n") + "\n").into()).unwrap();
}

/// Returns the two lines that every first commit needs.
pub fn first_lines(configuration: &BTreeMap<String, String>) -> Vec<String> {
    vec![
        r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#.to_owned(),
        metadata_line(configuration),
    ]
}

/// Returns a `metaData` line with these properties.
pub fn metadata_line(configuration: &BTreeMap<String, String>) -> String {
    serde_json::json!({"metaData": {
        "id": "00000000-0000-0000-0000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_json(),
        "partitionColumns": [],
        "configuration": configuration,
    }})
    .to_string()
}

/// Returns an `add` line for the file `path`.
pub fn add_line(path: &str) -> String {
    serde_json::json!({"add": {
        "path": path,
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": true,
    }})
    .to_string()
}

/// Writes a log in which each version except the first adds one file, whose name contains the version.
pub fn write_log(storage: &Storage, versions: u64) {
    write_commit(storage, 0, &first_lines(&BTreeMap::new()));
    for version in 1..versions {
        write_commit(storage, version, &[add_line(&format!("{version}.parquet"))]);
    }
}

/// Drops the table by deleting the files of its log.
pub fn drop_table(storage: &Storage) {
    for file in storage.list_after(LOG_DIRECTORY, "").unwrap() {
        storage.delete(&format!("{LOG_DIRECTORY}/{}", file.name)).unwrap();
    }
}

/// Drops the table and creates another one with this many versions.
pub fn replace_table(storage: &Storage, versions: u64) {
    drop_table(storage);
    let first = first_lines(&BTreeMap::new());
    let first: Vec<_> =
        first.into_iter().map(|line| line.replace("-000000000000", "-000000000001")).collect();
    write_commit(storage, 0, &first);
    (1..versions)
        .for_each(|version| write_commit(storage, version, &[add_line(&format!("other {version}"))]));
}

/// Returns the live logical files, sorted: the path as in the log, the deletion vector, and the size.
pub fn live(snapshot: &Snapshot) -> Result<Vec<(String, Option<String>, i64)>> {
    let columns = FileColumns::of(&[FileColumn::Path, FileColumn::Size, FileColumn::DeletionVector]);
    let mut files = Vec::new();
    for batch in snapshot.replay_files(columns)? {
        let batch = batch?;
        let sizes = batch.column_by_name("size").unwrap().as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let path = batch.column_by_name("path").unwrap().as_string::<i32>().value(row).to_owned();
            files.push((path, deletion_vector(&batch, row), sizes.value(row)));
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the unique id of the deletion vector of a row. Protocol: "Derived Fields".
pub fn deletion_vector(batch: &arrow::array::RecordBatch, row: usize) -> Option<String> {
    let vectors = batch.column_by_name("deletionVector").unwrap().as_struct();
    let text = |name: &str| vectors.column_by_name(name).unwrap().as_string::<i32>().value(row);
    vectors.is_valid(row).then(|| {
        let offset = vectors.column_by_name("offset").unwrap().as_primitive::<Int32Type>();
        let offset = if offset.is_valid(row) { format!("@{}", offset.value(row)) } else { String::new() };
        format!("{}{}{offset}", text("storageType"), text("pathOrInlineDv"))
    })
}

/// Returns the paths of the live files, sorted.
pub fn paths(snapshot: &Snapshot) -> Vec<String> {
    live(snapshot).unwrap().into_iter().map(|(path, _, _)| path).collect()
}

/// Returns the versions whose commits have the id of `committed`.
pub fn versions_of(storage: &Storage, committed: &Committed) -> Vec<u64> {
    versions_with(storage, &committed.txn_id)
}

/// Returns the versions whose commits contain the id `txn_id` in their text.
pub fn versions_with(storage: &Storage, txn_id: &str) -> Vec<u64> {
    (0..)
        .map_while(|version| Some((version, storage.get(&LogFileName::Commit(version).path()).unwrap()?)))
        .filter(|(_, bytes)| String::from_utf8_lossy(bytes).contains(&format!(r#""txnId":"{txn_id}""#)))
        .map(|(version, _)| version)
        .collect()
}
