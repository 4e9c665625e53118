//! Changes of a table's definition that fail at any request.

use deltalog::engine::commit::Transaction;
use deltalog::{ColumnPath, Operation, Result, Snapshot, Storage, TableChange, alter_table};

use super::{fail_at_each_request, hasty, other_ids};
use crate::common::store::FaultyStore;
use crate::common::{add, table};

/// Applies a change to the table as of `version`.
fn change(storage: &Storage, version: u64, change: &TableChange) -> Result<()> {
    alter_table(&Snapshot::open(storage, Some(version))?, change, Default::default(), &hasty()).map(drop)
}

fn set(properties: &[&str]) -> TableChange {
    let properties = properties.iter().map(|name| ((*name).to_owned(), "true".to_owned()));
    TableChange::SetProperties(properties.collect())
}

/// Another writer has appended, so the change gets the version after the append. It records this version as the first
/// one with in-commit timestamps.
#[test]
fn a_change_of_properties_is_atomic() {
    let set = set(&["delta.enableInCommitTimestamps", "delta.enableDeletionVectors"]);
    fail_at_each_request(|| table(&["a", "b"]), |storage| change(storage, 1, &set), false);
    let (_, storage) = table(&["a", "b"]);
    change(&storage, 1, &set).unwrap();
    let newest = Snapshot::open(&storage, None).unwrap();
    let begun = newest.metadata().configuration.get("delta.inCommitTimestampEnablementVersion");
    assert_eq!((newest.version(), begun.map(String::as_str)), (3, Some("3")));
    assert_eq!(newest.protocol().min_writer_version, 7);
}

/// Creates a table with two files. Their statistics have the number of rows, and are marked as written by this crate.
fn with_counts() -> (FaultyStore, Storage) {
    let (store, storage) = table(&[]);
    for path in ["a", "b"] {
        let mut file = add(path);
        file.stats = Some(r#"{"numRecords":5,"deltalog":1}"#.to_owned());
        let base = Snapshot::open(&storage, None).unwrap();
        let mut transaction = Transaction::new(&base, Operation::new("WRITE"), &other_ids()).unwrap();
        transaction.add_files(&[file]).unwrap();
        transaction.commit_or_fail().unwrap();
    }
    store.take_calls();
    (store, storage)
}

/// Protocol: "Row Tracking". All rows get their ids in the commit.
#[test]
fn a_change_that_gives_ids_to_all_rows_is_atomic() {
    let set = set(&["delta.enableRowTracking"]);
    fail_at_each_request(with_counts, |storage| change(storage, 2, &set), false);
}

/// Protocol: "Supported Features".
#[test]
fn a_feature_is_added_atomically() {
    let add = TableChange::AddFeatures(vec!["clustering".to_owned()]);
    fail_at_each_request(with_counts, |storage| change(storage, 2, &add), false);
}

/// Protocol: "Clustered Table".
#[test]
fn a_change_of_the_clustering_columns_is_atomic() {
    let cluster = TableChange::ClusterBy(vec![ColumnPath::new(["id"])]);
    fail_at_each_request(|| table(&[]), |storage| change(storage, 0, &cluster), false);
}
