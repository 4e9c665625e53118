//! Clones of tables that fail at any request.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use deltalog::engine::clone::{CopiedFile, plan_clone};
use deltalog::engine::dml::{Request, delete};
use deltalog::{
    CloneRequest, CreationMode, Operation, PendingWrite, Result, SaveMode, Snapshot, Storage, WriteRequest,
    clone_table,
};
use url::Url;

use super::{fail_at_each_request, hasty, other_ids};
use crate::common::store::FaultyStore;
use crate::common::{empty, schema};

/// Creates a table in its own store, with two files, one with a deletion vector.
fn source() -> Storage {
    let storage =
        Storage::with_immediate_store(Url::parse("memory:///s").unwrap(), FaultyStore::default().connect())
            .unwrap();
    for ids in [[1, 2, 3], [4, 5, 6]] {
        let mut request = WriteRequest::new(schema(), SaveMode::Append);
        request.configuration = [("delta.enableDeletionVectors".to_owned(), "true".to_owned())].into();
        let write = PendingWrite::begin(&storage, request, &other_ids()).unwrap().unwrap();
        let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
        let mut writer = write.writer().unwrap();
        writer.write(&RecordBatch::try_from_iter([("id", ids)]).unwrap()).unwrap();
        let files = writer.finish().unwrap();
        write.commit(files, Operation::new("WRITE")).unwrap();
    }
    delete(&Snapshot::open(&storage, None).unwrap(), Some("id = 2"), Request::new(&other_ids())).unwrap();
    storage
}

/// The clone exists with all files, or does not exist. Cloning again updates it completely, or not at all.
#[test]
fn a_deep_clone_is_atomic() {
    let source = source();
    let clone = |storage: &Storage, version: u64| -> Result<()> {
        let mut request = CloneRequest::new(false);
        request.mode = CreationMode::CreateOrReplace;
        let version = Snapshot::open(&source, Some(version)).unwrap();
        clone_table(&version, storage, request, &hasty()).map(drop)
    };
    fail_at_each_request(empty, |storage| clone(storage, 2), true);
    let repeated = || {
        let (store, storage) = empty();
        clone(&storage, 1).unwrap();
        store.take_calls();
        (store, storage)
    };
    fail_at_each_request(repeated, |storage| clone(storage, 2), true);
}

/// A deep clone is also atomic if an engine copies the data files.
#[test]
fn a_deep_clone_by_an_engine_is_atomic() {
    let source = source();
    let clone = |storage: &Storage| -> Result<()> {
        let plan = plan_clone(&Snapshot::open(&source, None)?, storage, CloneRequest::new(false), &hasty())?;
        let mut told = Vec::new();
        let copied = plan.copies().enumerate().try_for_each(|(number, file)| {
            // File names are the same in each run, so that the resulting states can be compared.
            let unique = number as u64 + 1;
            let bytes = source.read(&file.from.to_string())?;
            let name = format!("{}{unique:016x}-{}", file.start, file.name);
            let mut writer = storage.create_file(&name)?;
            writer.write_all(&bytes).unwrap();
            let size = writer.finish()?;
            told.push(CopiedFile { number, unique, size });
            Ok(())
        });
        if let Err(error) = copied {
            plan.abandon();
            return Err(error);
        }
        plan.commit_copied(&told).map(drop)
    };
    fail_at_each_request(empty, clone, true);
}

#[test]
fn a_shallow_clone_is_atomic() {
    let source = source();
    let clone = |storage: &Storage| -> Result<()> {
        let newest = Snapshot::open(&source, None).unwrap();
        clone_table(&newest, storage, CloneRequest::new(true), &hasty()).map(drop)
    };
    // The newest version has a deletion vector, whose file is in the store of the source. The checks after each failure
    // cannot read it, so they are made with a version without deletion vectors.
    let first = |storage: &Storage| -> Result<()> {
        let version = Snapshot::open(&source, Some(1)).unwrap();
        clone_table(&version, storage, CloneRequest::new(true), &hasty()).map(drop)
    };
    fail_at_each_request(empty, first, false);
    let (_, storage) = empty();
    clone(&storage).unwrap();
}
