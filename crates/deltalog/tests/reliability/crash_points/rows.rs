//! Commits of rows that fail at any request. Unlike in other tests, the data files really exist, and are read when
//! rows are replaced.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use deltalog::engine::dml::{
    Clause, ClauseAction, Merge, MergeSource, Request, RowChangeOutcome, delete, merge, update,
};
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    ColumnPath, CreationMode, Environment, Operation, OptimizeRequest, PendingWrite, PrimitiveType,
    RecomputeRequest, RepairRequest, ReplaceWhere, RestoreRequest, Result, SaveMode, SchemaMode, Snapshot,
    Storage, StructField, StructType, TableDefinition, WriteRequest, optimize, recompute_statistics, repair,
    restore,
};

use super::{fail_at_each_request, hasty, other_ids};
use crate::common::store::FaultyStore;
use crate::common::{empty, schema};

fn batch(columns: &[(&str, &[i64])]) -> RecordBatch {
    let columns =
        columns.iter().map(|(name, values)| (*name, Arc::new(Int64Array::from(values.to_vec())) as ArrayRef));
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Writes rows as one file, and commits it.
fn write(pending: PendingWrite, rows: &RecordBatch) -> Result<()> {
    let mut writer = pending.writer()?;
    writer.write(rows)?;
    let files = writer.finish()?;
    pending.commit_or_fail(files, Operation::new("WRITE")).map(drop)
}

fn begin(storage: &Storage, request: WriteRequest, environment: &Environment) -> Result<PendingWrite> {
    Ok(PendingWrite::begin(storage, request, environment)?.unwrap())
}

/// Creates a table with two files of three rows each.
fn with_rows(define: impl FnOnce(&mut TableDefinition)) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    let mut definition = TableDefinition::new(schema());
    define(&mut definition);
    let mode = CreationMode::ErrorIfExists;
    let first = PendingWrite::define(&storage, &definition, mode, Vec::new(), &other_ids()).unwrap().unwrap();
    write(first, &batch(&[("id", &[1, 2, 3])])).unwrap();
    let request = WriteRequest::new(schema(), SaveMode::Append);
    write(begin(&storage, request, &other_ids()).unwrap(), &batch(&[("id", &[4, 5, 6])])).unwrap();
    store.take_calls();
    (store, storage)
}

fn set(definition: &mut TableDefinition, property: &str) {
    definition.configuration.insert(property.to_owned(), "true".to_owned());
}

/// The overwrite removes one file, and some rows of the other file: by a deletion vector, or by copying the remaining
/// rows.
#[test]
fn an_overwrite_of_some_rows_of_a_file_is_atomic() {
    let replace = |storage: &Storage| {
        let mut request = WriteRequest::new(schema(), SaveMode::Overwrite);
        request.replace_where = Some(ReplaceWhere::new("id >= 3"));
        write(begin(storage, request, &hasty())?, &batch(&[("id", &[7, 8])]))
    };
    for property in ["delta.enableRowTracking", "delta.enableDeletionVectors"] {
        let prepare = || with_rows(|definition| set(definition, property));
        fail_at_each_request(prepare, replace, true);
    }
}

/// Protocol: "Identity Columns". The values are generated, and the high water mark is part of the commit.
#[test]
fn an_append_that_counts_up_is_atomic() {
    let prepare = || {
        with_rows(|definition| {
            let number = StructField::new("number", PrimitiveType::Long, true).with_identity(1, 1, false);
            let fields = definition.schema.fields().iter().cloned().chain([number]);
            definition.schema = StructType::try_new(fields.collect()).unwrap();
        })
    };
    let append = |storage: &Storage| {
        let request = WriteRequest::new(schema(), SaveMode::Append);
        write(begin(storage, request, &hasty())?, &batch(&[("id", &[7, 8])]))
    };
    fail_at_each_request(prepare, append, true);
}

/// The new file does not have the rows that were deleted from one of the old files.
#[test]
fn an_optimize_is_atomic() {
    for property in ["delta.enableRowTracking", "delta.enableDeletionVectors"] {
        let prepare = || {
            let (store, storage) = with_rows(|definition| set(definition, property));
            delete(&Snapshot::open(&storage, None).unwrap(), Some("id = 2"), Request::new(&other_ids()))
                .unwrap();
            store.take_calls();
            (store, storage)
        };
        let run = |storage: &Storage| {
            let base = Snapshot::open(storage, None)?;
            let done = optimize(&base, OptimizeRequest::default(), &hasty())?;
            assert_eq!(done.commits.len(), 1);
            Ok(())
        };
        fail_at_each_request(prepare, run, true);
    }
}

/// FSCK: a missing file is removed from the table.
#[test]
fn a_repair_is_atomic() {
    let prepare = || {
        let (store, storage) = with_rows(|_| {});
        let files = listed_files(&Snapshot::open(&storage, None).unwrap(), None).unwrap();
        storage.delete(&files[0].add.path).unwrap();
        store.take_calls();
        (store, storage)
    };
    let run = |storage: &Storage| {
        let done = repair(&Snapshot::open(storage, None)?, RepairRequest::default(), &hasty())?;
        assert!(done.committed.is_some());
        Ok(())
    };
    fail_at_each_request(prepare, run, false);
}

/// One file has a deletion vector, so that its rows are read.
#[test]
fn new_statistics_are_atomic() {
    let prepare = || {
        let (store, storage) = with_rows(|definition| set(definition, "delta.enableDeletionVectors"));
        let base = Snapshot::open(&storage, None).unwrap();
        delete(&base, Some("id = 2"), Request::new(&other_ids())).unwrap();
        store.take_calls();
        (store, storage)
    };
    let run = |storage: &Storage| {
        let mut request = RecomputeRequest::default();
        request.all_files = true;
        let done = recompute_statistics(&Snapshot::open(storage, None)?, request, &hasty())?;
        assert_eq!(done.commits.len(), 1);
        Ok(())
    };
    fail_at_each_request(prepare, run, true);
}

/// REORG: a file with deleted rows is rewritten without them.
#[test]
fn a_purge_is_atomic() {
    let prepare = || {
        let (store, storage) = with_rows(|definition| set(definition, "delta.enableDeletionVectors"));
        delete(&Snapshot::open(&storage, None).unwrap(), Some("id = 2"), Request::new(&other_ids())).unwrap();
        store.take_calls();
        (store, storage)
    };
    let run = |storage: &Storage| {
        let mut request = OptimizeRequest::default();
        request.purges = true;
        let done = optimize(&Snapshot::open(storage, None)?, request, &hasty())?;
        assert_eq!((done.commits.len(), done.metrics.removed.count()), (1, 1));
        Ok(())
    };
    fail_at_each_request(prepare, run, true);
}

/// The rows of two files, except for a deleted row, are written to two new files.
#[test]
fn an_order_of_rows_is_atomic() {
    for property in ["delta.enableRowTracking", "delta.enableDeletionVectors"] {
        let prepare = || {
            let (store, storage) = with_rows(|definition| set(definition, property));
            delete(&Snapshot::open(&storage, None).unwrap(), Some("id = 2"), Request::new(&other_ids()))
                .unwrap();
            store.take_calls();
            (store, storage)
        };
        let run = |storage: &Storage| {
            let base = Snapshot::open(storage, None)?;
            let mut request = OptimizeRequest::default();
            request.z_order = vec![ColumnPath::new(["id"])];
            request.target_size = Some(1_000);
            let done = optimize(&base, request, &hasty())?;
            assert_eq!(done.commits.len(), 1);
            Ok(())
        };
        fail_at_each_request(prepare, run, true);
    }
}

/// The rows of a clustered file and of a new file, except for a deleted row, are written to two files of one cube.
#[test]
fn clustering_is_atomic() {
    let cluster = |storage: &Storage, environment: &Environment| {
        let mut request = OptimizeRequest::default();
        request.target_size = Some(1_000);
        optimize(&Snapshot::open(storage, None)?, request, environment)
    };
    let prepare = || {
        let (store, storage) = with_rows(|definition| {
            set(definition, "delta.enableDeletionVectors");
            definition.clustering_columns = Some(vec![ColumnPath::new(["id"])]);
        });
        cluster(&storage, &other_ids()).unwrap();
        let request = WriteRequest::new(schema(), SaveMode::Append);
        write(begin(&storage, request, &other_ids()).unwrap(), &batch(&[("id", &[7, 8])])).unwrap();
        delete(&Snapshot::open(&storage, None).unwrap(), Some("id = 2"), Request::new(&other_ids())).unwrap();
        store.take_calls();
        (store, storage)
    };
    let run = |storage: &Storage| {
        let done = cluster(storage, &hasty())?;
        assert_eq!((done.commits.len(), done.metrics.clustering.unwrap().output_cubes), (1, 1));
        Ok(())
    };
    fail_at_each_request(prepare, run, true);
}

/// One file is restored with its earlier deletion vector, and another file is removed.
#[test]
fn a_restore_is_atomic() {
    let prepare = || {
        let (store, storage) = with_rows(|definition| set(definition, "delta.enableDeletionVectors"));
        let newest = || Snapshot::open(&storage, None).unwrap();
        delete(&newest(), Some("id = 2"), Request::new(&other_ids())).unwrap();
        delete(&newest(), Some("id = 3 or id >= 4"), Request::new(&other_ids())).unwrap();
        store.take_calls();
        (store, storage)
    };
    let run = |storage: &Storage| {
        let base = Snapshot::open(storage, None)?;
        let done = restore(&base, &base.at_version(2)?, RestoreRequest::default(), &hasty())?;
        assert!(done.committed.is_some());
        Ok(())
    };
    fail_at_each_request(prepare, run, true);
}

/// The new schema and the rows that have it are one commit.
#[test]
fn an_append_that_merges_the_schema_is_atomic() {
    let append = |storage: &Storage| {
        let column = |name: &str| StructField::new(name, PrimitiveType::Long, true);
        let schema = StructType::try_new(vec![column("id"), column("more")])?;
        let mut request = WriteRequest::new(schema, SaveMode::Append);
        request.schema_mode = SchemaMode::Merge;
        write(begin(storage, request, &hasty())?, &batch(&[("id", &[7]), ("more", &[8])]))
    };
    let prepare = || {
        with_rows(|definition| {
            definition.configuration.insert("delta.columnMapping.mode".to_owned(), "name".to_owned());
        })
    };
    fail_at_each_request(prepare, append, true);
    let (_, storage) = prepare();
    append(&storage).unwrap();
    assert_eq!(Snapshot::open(&storage, None).unwrap().schema().fields().len(), 2);
}

/// Runs `statement` on two tables with a change data feed: one copies the rows that remain, and the other deletes rows
/// by deletion vectors. The statement deletes all rows of one file, and some rows of the other file.
fn statement_is_atomic(statement: impl Fn(&Snapshot, Request) -> Result<RowChangeOutcome>) {
    let run = |storage: &Storage| {
        let done = statement(&Snapshot::open(storage, None)?, Request::new(&hasty()))?;
        assert!(matches!(done, RowChangeOutcome::Committed(..)), "{done:?}");
        Ok(())
    };
    for property in ["delta.enableRowTracking", "delta.enableDeletionVectors"] {
        let prepare = || {
            with_rows(|definition| {
                set(definition, property);
                set(definition, "delta.enableChangeDataFeed");
            })
        };
        fail_at_each_request(prepare, run, true);
        let (store, storage) = prepare();
        run(&storage).unwrap();
        let files = |store: &FaultyStore| store.objects().list("t", "").len();
        let before = files(&store);
        // A statement that fails leaves no data file behind.
        let stale = Snapshot::open(&storage, Some(1)).unwrap();
        statement(&stale, Request::new(&other_ids())).unwrap_err();
        assert_eq!(files(&store), before);
    }
}

#[test]
fn a_delete_by_a_predicate_is_atomic() {
    statement_is_atomic(|base, request| delete(base, Some("id >= 3"), request));
}

#[test]
fn an_update_is_atomic() {
    let values = [("id".to_owned(), "id + 10".to_owned())];
    statement_is_atomic(|base, request| update(base, &values, Some("id >= 3"), request));
}

#[test]
fn a_merge_is_atomic() {
    let clause = |by_source, condition: Option<&str>, action| Clause {
        by_source,
        condition: condition.map(str::to_owned),
        action,
    };
    let source = batch(&[("id", &[3, 4, 9])]);
    let source = MergeSource::new(&source.schema(), [Ok(source)]).unwrap();
    let merged = Merge {
        condition: "target.id = source.id".to_owned(),
        source_alias: "source".to_owned(),
        target_alias: "target".to_owned(),
        clauses: vec![
            clause(
                false,
                Some("source.id = 3"),
                ClauseAction::Update(vec![("id".to_owned(), "30".to_owned())]),
            ),
            clause(false, None, ClauseAction::Delete),
            clause(false, None, ClauseAction::InsertAll(Vec::new())),
            clause(true, Some("id > 4"), ClauseAction::Delete),
        ],
    };
    statement_is_atomic(|base, request| merge(base, &merged, &source, request));
}
