//! VACUUM finds files in the log alone, or in an inventory. Protocol: "Add File and Remove File".

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{BooleanArray, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::{ErrorKind, Snapshot, Storage, VacuumPlan, VacuumRequest, VacuumSource, plan_vacuum};
use serde_json::json;

use super::vacuum::{DAY_MS, WEEK_MS, at, files, from_log, plan, planned, put};
use crate::common::store::FaultyStore;
use crate::common::{NOW_MS, add_line, empty, environment, first_lines, newest, table, write_commit};

/// Creates a table with versions up to `last`. Version `n` is committed after `n` days. It adds file `n`, and removes
/// the file of the previous version.
pub(super) fn daily(last: u64) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    for version in 0..=last {
        let time = i64::try_from(version).unwrap() * DAY_MS;
        let mut commit = if version == 0 { first_lines(&BTreeMap::new()) } else { Vec::new() };
        commit.push(add_line(&version.to_string()));
        if let Some(before) = version.checked_sub(1) {
            commit.push(
                json!({"remove": {"path": before.to_string(), "size": 3, "deletionTimestamp": time}})
                    .to_string(),
            );
        }
        write_commit(&storage, version, &commit);
        store.objects().set_modified_ms(&format!("t/{}", LogFileName::Commit(version).path()), time);
        put(&store, &version.to_string(), time);
    }
    (store, storage)
}

fn lite(storage: &Storage, day: i64) -> deltalog::Result<VacuumPlan> {
    plan_vacuum(&newest(storage), VacuumRequest::new(VacuumSource::Log), &at(day * DAY_MS + 1))
}

pub(super) fn names(range: std::ops::Range<u64>) -> BTreeSet<String> {
    range.map(|name| name.to_string()).collect()
}

/// `_last_vacuum_info` records where the next VACUUM from the log begins, as in the JVM implementation.
#[test]
fn the_log_shows_what_was_removed_since_the_last_vacuum() {
    let (_, storage) = daily(20);
    assert_eq!(lite(&storage, 6).unwrap().files(), 0);
    // On day 12, version 5, which removed file 4, is exactly as old as the retention.
    let plan = lite(&storage, 12).unwrap();
    assert_eq!(planned(&plan), names(0..5));
    assert_eq!(plan.bytes(), 15);
    assert_eq!(plan.delete().unwrap().files, 5);
    let info = storage.read("_delta_log/_last_vacuum_info").unwrap();
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&info).unwrap(),
        json!({"latestCommitVersionOutsideOfRetentionWindow": 5})
    );
    assert_eq!(lite(&storage, 12).unwrap().files(), 0);
    let plan = lite(&storage, 14).unwrap();
    assert_eq!(planned(&plan), names(5..7));
    plan.delete().unwrap();
    assert_eq!(lite(&storage, 13).unwrap().delete().unwrap().files, 0);
    assert_eq!(planned(&lite(&storage, 15).unwrap()), names(7..8));
    assert_eq!(files(&storage), names(7..21));
}

#[test]
fn a_log_that_does_not_reach_back_is_refused() {
    let (_, storage) = daily(20);
    lite(&storage, 12).unwrap().delete().unwrap();
    write_checkpoint(&Snapshot::open(&storage, Some(9)).unwrap(), &at(12 * DAY_MS)).unwrap();
    // The commits that follow the last VACUUM are enough.
    (0..6).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
    assert_eq!(planned(&lite(&storage, 14).unwrap()), names(5..7));
    storage.delete(&LogFileName::Commit(6).path()).unwrap();
    let error = lite(&storage, 14).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionNotFound);
    assert!(error.to_string().contains("the versions up to 5, but the log begins with version 7"), "{error}");
    assert!(error.hint().unwrap().contains("full VACUUM"));
    // A full VACUUM does not need the old commits. The next VACUUM from the log continues where it ended.
    let full = plan_vacuum(&newest(&storage), VacuumRequest::default(), &at(16 * DAY_MS + 1)).unwrap();
    full.delete().unwrap();
    assert_eq!(planned(&lite(&storage, 17).unwrap()), names(8..10));
}

/// A tombstone may have a later time than its commit, for example because the writer's clock was ahead of the store's
/// clock.
#[test]
fn a_tombstone_that_is_younger_than_its_commit_is_found_later() {
    let (store, storage) = daily(0);
    let remove = json!({"remove": {"path": "0", "deletionTimestamp": 3 * DAY_MS}}).to_string();
    write_commit(&storage, 1, &[remove]);
    store.objects().set_modified_ms(&format!("t/{}", LogFileName::Commit(1).path()), DAY_MS);
    // The time of the commit is older than the retention, but the tombstone's time is not.
    assert_eq!(lite(&storage, 9).unwrap().delete().unwrap().files, 0);
    assert_eq!(planned(&lite(&storage, 11).unwrap()), names(0..1));
}

/// If a `remove` action names a file of the log or a hidden file, that file is not deleted.
#[test]
fn a_hostile_log_cannot_name_files_that_are_not_the_tables() {
    let (store, storage) = empty();
    let hostile = ["_delta_log/00000000000000000000.json", "_x", "file:///elsewhere", "ok"];
    let remove = |path: &&str| json!({"remove": {"path": path, "deletionTimestamp": 5}}).to_string();
    let mut first = first_lines(&BTreeMap::new());
    first.extend(hostile.iter().map(remove));
    write_commit(&storage, 0, &first);
    store.objects().set_modified_ms("t/_delta_log/00000000000000000000.json", 0);
    put(&store, "_x", 0);
    assert_eq!(planned(&plan(&storage, from_log(WEEK_MS))), ["ok".to_owned()].into());
}

fn inventory(rows: &[(&str, bool, i64)]) -> VacuumRequest {
    let schema = Schema::new(vec![
        Field::new("modificationTime", DataType::Int64, true),
        Field::new("path", DataType::Utf8, true),
        Field::new("isDir", DataType::Boolean, true),
        Field::new("length", DataType::Int64, true),
    ]);
    let batch = RecordBatch::try_new(
        schema.into(),
        vec![
            std::sync::Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2))),
            std::sync::Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
            std::sync::Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.1)))),
            std::sync::Arc::new(Int64Array::from_iter_values(rows.iter().map(|_| 4))),
        ],
    )
    .unwrap();
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    VacuumRequest::new(VacuumSource::Inventory(Box::new(reader)))
}

#[test]
fn an_inventory_replaces_a_listing() {
    let (store, storage) = table(&["a"]);
    for file in ["a", "not listed", "d=1/with space.parquet", "100%25.parquet", "_hidden/b"] {
        put(&store, file, 0);
    }
    let request = inventory(&[
        ("memory:///t/a", false, 0),
        ("memory:///t/d=1/with space.parquet", false, 0),
        ("/t/100%25.parquet", false, 0),
        ("/t/_hidden/b", false, 0),
        ("/t/d=1", true, 0),
        ("/t/young", false, NOW_MS),
        ("/other/x", false, 0),
        ("relative", false, 0),
        ("/t/x/_delta_log/0.json", false, 0),
        ("/t/x/y", false, 0),
    ]);
    let plan = plan(&storage, request);
    assert_eq!(planned(&plan), ["d=1/with space.parquet", "100%25.parquet"].map(str::to_owned).into());
    assert_eq!(plan.bytes(), 8);
    assert_eq!(plan.delete().unwrap().files, 2);
    assert_eq!(files(&storage), ["a", "not listed", "_hidden/b"].map(str::to_owned).into());

    let error = plan_vacuum(&newest(&storage), inventory(&[("x", false, 0)]), &environment()).unwrap_err();
    assert!(error.to_string().contains("no path of the inventory is below the table's root"), "{error}");
}

/// An inventory with encoded paths is refused. Otherwise no path would match, and all files would be reported as
/// deleted although none was.
#[test]
fn an_inventory_with_encoded_paths_is_refused() {
    let (store, storage) = table(&["p=1/a b"]);
    put(&store, "p=1/a b", 0);
    put(&store, "p=1/other", 0);
    let encoded = inventory(&[("memory:///t/p%3D1/other", false, 0), ("memory:///t/p%3D1/a%20b", false, 0)]);
    let error = plan_vacuum(&newest(&storage), encoded, &environment()).unwrap_err();
    let text = "the paths of the inventory are encoded, such as memory:///t/p%3D1/a%20b";
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(text), "{error}");
}
