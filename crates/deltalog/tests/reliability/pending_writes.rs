//! What becomes of the data files of a write that does not become a commit.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use deltalog::transaction::{Operation, SaveMode};
use deltalog::{ErrorKind, PendingWrite, Storage, WriteRequest};

use crate::common::store::{Fault, Op};
use crate::common::{creation, empty, environment, schema};

fn begin(storage: &Storage, mode: SaveMode) -> PendingWrite {
    let request = WriteRequest {
        schema: schema(),
        mode,
        partition_by: None,
        configuration: [].into(),
        name: None,
        description: None,
    };
    PendingWrite::begin(storage, request, &deltalog::Environment::system()).unwrap().unwrap()
}

fn files(write: &PendingWrite) -> Vec<deltalog::protocol::Add> {
    let schema = Arc::clone(write.arrow_schema());
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|field| arrow::compute::cast(&Int64Array::from(vec![1]), field.data_type()).unwrap())
        .collect();
    let mut writer = write.writer().unwrap();
    writer.write(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
    writer.finish().unwrap()
}

fn data_files(storage: &Storage) -> usize {
    storage
        .list_after("", "")
        .unwrap()
        .iter()
        .filter(|file| file.name.ends_with(".parquet") && !file.name.contains("_delta_log"))
        .count()
}

#[test]
fn a_write_that_lost_takes_its_files_away() {
    let (_, storage) = empty();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let loser = begin(&storage, SaveMode::Overwrite);
    let lost = files(&loser);
    let winner = begin(&storage, SaveMode::Append);
    let won = files(&winner);
    assert_eq!(data_files(&storage), 2);
    winner.commit(won, Operation::new("WRITE")).unwrap();
    let error = loser.commit(lost, Operation::new("WRITE")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict);
    assert_eq!(data_files(&storage), 1);
}

/// The commit may stand: then its files must be there.
#[test]
fn while_the_state_is_unknown_the_files_stay() {
    let (store, storage) = empty();
    creation(&storage, &environment()).commit_or_fail().unwrap();
    let write = begin(&storage, SaveMode::Append);
    let files = files(&write);
    store.fail(|_, call| (call.op == Op::Create).then_some(Fault::LostBefore));
    let error = write.commit(files, Operation::new("WRITE")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitStateUnknown);
    store.heal();
    assert_eq!(data_files(&storage), 1);
}
