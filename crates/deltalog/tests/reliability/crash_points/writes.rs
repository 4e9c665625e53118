//! Commits of every kind that fail at any request.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::commit::Transaction;
use deltalog::engine::protocol::{Add, PartitionValues, SetTransaction};
use deltalog::{
    ColumnPath, CreationMode, DistributedWrite, Environment, Operation, PendingWrite, ReplaceWhere, Result,
    SaveMode, Snapshot, Storage, TableDefinition, WriteRequest,
};
use serde_json::json;

use super::{fail_at_each_request, hasty, other_ids};
use crate::common::store::FaultyStore;
use crate::common::{
    add, append, empty, environment, metadata_line, overwrite, schema, table, try_creation, write_commit,
};

/// Writes a data file and commits it, as users do.
fn write(storage: &Storage, mode: SaveMode, progress: Option<SetTransaction>) -> Result<()> {
    let environment = hasty();
    let mut request = WriteRequest::new(schema(), mode);
    request.app_transactions = progress.into_iter().collect();
    write_as(storage, request, &environment)
}

fn write_as(storage: &Storage, request: WriteRequest, environment: &Environment) -> Result<()> {
    let pending = PendingWrite::begin(storage, request, environment)?.unwrap();
    storage.create_file("new")?.finish()?;
    pending.commit_or_fail(vec![add("new")], Operation::new("WRITE")).map(drop)
}

/// Creates a table, and its data files, which are empty.
fn written_table(files: &[&str]) -> (FaultyStore, Storage) {
    let (store, storage) = table(files);
    for file in files {
        storage.create_file(file).unwrap().finish().unwrap();
    }
    store.take_calls();
    (store, storage)
}

#[test]
fn creation_is_atomic() {
    let create = |storage: &Storage| try_creation(storage, &hasty())?.commit_or_fail().map(drop);
    fail_at_each_request(empty, create, false);
}

#[test]
fn a_write_that_creates_the_table_is_atomic() {
    fail_at_each_request(empty, |storage| write(storage, SaveMode::Append, None), true);
}

#[test]
fn an_append_that_writes_a_checkpoint_is_atomic() {
    fail_at_each_request(
        || written_table(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
        |storage| write(storage, SaveMode::Append, None),
        true,
    );
}

#[test]
fn an_append_to_a_handle_is_atomic() {
    let prepare = || {
        let (store, storage) = table(&["a"]);
        append(&Snapshot::open(&storage, None).unwrap(), "b", &other_ids()).commit_or_fail().unwrap();
        store.take_calls();
        (store, storage)
    };
    let on_old = |storage: &Storage| {
        append(&Snapshot::open(storage, Some(1))?, "new", &hasty()).commit_or_fail().map(drop)
    };
    fail_at_each_request(prepare, on_old, false);
}

#[test]
fn an_append_with_progress_is_atomic() {
    let progress = || Some(SetTransaction::new("app", 1));
    fail_at_each_request(
        || written_table(&["a"]),
        move |storage| write(storage, SaveMode::Append, progress()),
        true,
    );
}

#[test]
fn an_overwrite_is_atomic() {
    fail_at_each_request(
        || written_table(&["a", "b"]),
        |storage| write(storage, SaveMode::Overwrite, None),
        true,
    );
}

#[test]
fn a_replacement_of_the_table_is_atomic() {
    let replace = |storage: &Storage| {
        let mut definition = TableDefinition::new(schema());
        definition.configuration.insert("delta.enableInCommitTimestamps".to_owned(), "true".to_owned());
        definition.clustering_columns = Some(vec![ColumnPath::new(["id"])]);
        let mode = CreationMode::CreateOrReplace;
        let write = PendingWrite::define(storage, &definition, mode, Vec::new(), &hasty())?.unwrap();
        storage.create_file("new")?.finish()?;
        let operation = write.definition_operation(true);
        write.commit_or_fail(vec![add("new")], operation).map(drop)
    };
    fail_at_each_request(|| written_table(&["a", "b"]), replace, true);
    fail_at_each_request(empty, replace, true);
}

#[test]
fn an_overwrite_of_rows_for_which_a_predicate_is_true_is_atomic() {
    let replace = |storage: &Storage| {
        let mut request = WriteRequest::new(schema(), SaveMode::Overwrite);
        request.replace_where = Some(ReplaceWhere::new("true"));
        write_as(storage, request, &hasty())
    };
    fail_at_each_request(|| written_table(&["a", "b"]), replace, true);
}

#[test]
fn an_overwrite_after_a_checkpoint_is_atomic() {
    fail_at_each_request(
        || {
            let (store, storage) = table(&["a", "b", "c"]);
            write_checkpoint(&Snapshot::open(&storage, Some(2)).unwrap(), &environment()).unwrap();
            (store, storage)
        },
        |storage| overwrite(&Snapshot::open(storage, None)?, "new", &hasty())?.commit_or_fail().map(drop),
        false,
    );
}

/// Returns the protocol of a table with the feature `deletionVectors`.
fn protocol_with_vectors() -> String {
    let features = json!(["deletionVectors"]);
    json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
    }})
    .to_string()
}

/// Returns the `add` action of the only file in the table that [`with_vectors`] creates.
fn file_with_rows() -> Add {
    let mut file = add("a");
    file.stats = Some(r#"{"numRecords":5}"#.to_owned());
    file
}

/// Creates a table whose rows can be deleted by deletion vectors.
fn with_vectors() -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let properties = BTreeMap::from([("delta.enableDeletionVectors".to_owned(), "true".to_owned())]);
    write_commit(&storage, 0, &[protocol_with_vectors(), metadata_line(&properties)]);
    let mut first = append(&Snapshot::open(&storage, None).unwrap(), "b", &other_ids());
    first.add_files(&[file_with_rows()]).unwrap();
    first.commit_or_fail().unwrap();
    store.take_calls();
    (store, storage)
}

fn delete(base: &Snapshot, rows: &[u64], environment: &Environment) -> Result<()> {
    let mut transaction = Transaction::new(base, Operation::new("DELETE"), environment)?;
    transaction.delete_rows(file_with_rows(), rows.iter().copied().collect());
    transaction.commit_or_fail().map(drop)
}

/// Protocol: "Deletion Vectors".
#[test]
fn a_delete_of_rows_is_atomic() {
    fail_at_each_request(
        with_vectors,
        |storage| delete(&Snapshot::open(storage, None)?, &[1, 3], &hasty()),
        false,
    );
}

/// Two statements delete rows of the same file. Their deletion vectors are merged and written to a new file.
#[test]
fn a_delete_of_rows_that_meets_another_one_is_atomic() {
    let prepare = || {
        let (store, storage) = with_vectors();
        delete(&Snapshot::open(&storage, None).unwrap(), &[0, 2], &other_ids()).unwrap();
        store.take_calls();
        (store, storage)
    };
    fail_at_each_request(
        prepare,
        |storage| delete(&Snapshot::open(storage, Some(1))?, &[1, 3], &hasty()),
        false,
    );
}

#[test]
fn a_delete_of_all_rows_of_a_file_is_atomic() {
    let all = [0, 1, 2, 3, 4];
    fail_at_each_request(
        with_vectors,
        move |storage| delete(&Snapshot::open(storage, None)?, &all, &hasty()),
        false,
    );
}

#[test]
fn an_overwrite_of_partitions_is_atomic() {
    let file = |path: &str, partition: &str| {
        let mut file = add(path);
        file.partition_values = PartitionValues::from_iter([("id".to_owned(), Some(partition.to_owned()))]);
        file
    };
    let prepare = || {
        let (store, storage) = empty();
        let metadata = metadata_line(&BTreeMap::new())
            .replace(r#""partitionColumns":[]"#, r#""partitionColumns":["id"]"#);
        let schema = r#"{\\"name\\":\\"v\\",\\"type\\":\\"long\\",\\"nullable\\":true,\\"metadata\\":{}},"#;
        let metadata =
            metadata.replace(r#"\"fields\":["#, &format!(r#"\"fields\":[{}"#, schema.replace(r"\\", r"\")));
        let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#.to_owned();
        write_commit(&storage, 0, &[protocol, metadata]);
        let base = Snapshot::open(&storage, None).unwrap();
        let mut first = Transaction::new(&base, Operation::new("WRITE"), &other_ids()).unwrap();
        first.add_files(&[file("a", "1"), file("b", "2"), file("c", "1")]).unwrap();
        first.commit_or_fail().unwrap();
        store.take_calls();
        (store, storage)
    };
    let replace = |storage: &Storage| {
        let base = Snapshot::open(storage, None)?;
        let new = [file("new", "1"), file("another", "3")];
        let transaction =
            Transaction::overwrite_partitions(&base, None, &new, Operation::new("WRITE"), &hasty())?;
        transaction.commit_or_fail().map(drop)
    };
    fail_at_each_request(prepare, replace, false);
}

/// Two workers write files, and one of them repeats its task. Only the fragment of its first attempt is committed, so
/// the file of the second attempt belongs to no version.
#[test]
fn a_distributed_write_is_atomic() {
    let distributed = |storage: &Storage| {
        let request = WriteRequest::new(schema(), SaveMode::Append);
        let pending = PendingWrite::begin(storage, request, &hasty())?.unwrap();
        let write = DistributedWrite::new(pending)?;
        let workers = hasty();
        let work = |id: i64| {
            let mut writer = write.task().writer(storage, &workers)?;
            let ids: ArrayRef = Arc::new(Int64Array::from(vec![id]));
            writer.write(&RecordBatch::try_from_iter([("id", ids)]).unwrap())?;
            write.task().fragment(writer)
        };
        let fragments = [work(1)?, work(2)?];
        work(2)?;
        let checked = write.check(&fragments)?;
        write.commit(checked, Operation::new("WRITE")).map(drop)
    };
    fail_at_each_request(|| written_table(&["a"]), distributed, true);
}
