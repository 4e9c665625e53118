//! The change feed of hand-made tables: ranges, columns, schemas and errors. (PROTOCOL, "Add CDC File".)

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use serde_json::{Value, json};

use super::test_table::*;
use super::{ChangeBound, ChangeFeed, ChangeKind};
use crate::commit::{Operation, SaveMode};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::{ParseMode, parse};
use crate::scan::FileRows;
use crate::snapshot::Snapshot;
use crate::{Environment, PendingWrite, WriteRequest};

/// Creates a table with an empty version 0 and three more versions: rows 1 to 3 are inserted, row 2 is deleted, and
/// row 1 is updated to 10, which is recorded as a change.
fn small() -> Table {
    let mut table = Table::new();
    let first = table.write_ids(&[1, 2, 3]);
    table.commit(vec![table.add(&first)]);
    let vector = table.vector(&BTreeSet::from([1]));
    table.commit(vec![table.remove(&first), table.action("add", &first, vector.as_ref(), true)]);
    let second = table.write(vec![
        ("id", ints(&[10, 3])),
        ("_change_type", Arc::new(StringArray::from(vec![None::<&str>, None]))),
    ]);
    let recorded = table.write(vec![
        ("id", ints(&[1, 10])),
        ("_change_type", texts(&["update_preimage", "update_postimage"])),
    ]);
    let size = table.size(&recorded);
    let cdc = json!({"cdc": {"path": recorded, "partitionValues": {}, "size": size, "dataChange": false}});
    table.commit(vec![table.action("remove", &first, vector.as_ref(), true), table.add(&second), cdc]);
    table
}

#[test]
fn columns_are_ordered_and_have_commit_times() {
    let table = small();
    let plan = table.feed().plan().unwrap();
    assert_eq!(plan.versions(), Some(0..=3));
    let names: Vec<_> = plan.schema().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["id", "_change_type", "_commit_version", "_commit_timestamp"]);
    let batches: Vec<_> = plan.read(None).unwrap().map(Result::unwrap).collect();
    let found: Rows = batches.iter().flat_map(rows_of).collect();
    let recorded = [change("update_preimage", [1], 3), change("update_postimage", [10], 3)].concat();
    assert_eq!(found, [change("insert", [1, 2, 3], 1), change("delete", [2], 2), recorded].concat());
    for batch in &batches {
        let versions = batch.column(2).as_primitive::<Int64Type>();
        let times = batch.column(3).as_primitive::<TimestampMicrosecondType>();
        assert!(
            (0..batch.num_rows())
                .all(|row| times.value(row) == (EPOCH + versions.value(row) * 10_000) * 1000)
        );
    }
}

/// The plan contains everything that an engine needs to plan a read.
#[test]
fn files_have_kind_version_time_and_rows() {
    let files: Vec<_> = small().feed().plan().unwrap().files().unwrap().map(Result::unwrap).collect();
    let kinds: Vec<_> =
        files.iter().map(|file| (file.kind, file.version, (file.timestamp_ms - EPOCH) / 10_000)).collect();
    assert_eq!(kinds, [(ChangeKind::Insert, 1, 1), (ChangeKind::Delete, 2, 2), (ChangeKind::Recorded, 3, 3)]);
    assert!(files[0].file.rows == FileRows::All && files[2].file.rows == FileRows::All);
    assert!(
        matches!(&files[1].file.rows, FileRows::Between { named_by, not_by: None } if named_by.cardinality == 1)
    );
    assert_eq!(files[0].file.path, files[1].file.path);
}

/// A data file may contain a column `_change_type`, which must be ignored ("Note for non-change data
/// readers").
#[test]
fn predicates_and_projections_may_use_feed_columns() {
    let mut table = small();
    let with_column = table.write(vec![
        ("id", ints(&[20, 21])),
        ("_change_type", Arc::new(StringArray::from(vec![None, Some("delete")]))),
    ]);
    table.commit(vec![table.add(&with_column)]);
    let select = |sql: &str| {
        let predicate = parse(sql, "UTC", ParseMode::Strict).unwrap();
        let batches = table.feed().predicate(predicate).plan().unwrap().read(None).unwrap();
        batches.flat_map(|batch| rows_of(&batch.unwrap())).collect::<Rows>()
    };
    assert_eq!(
        select("_change_type = 'insert' AND id > 2"),
        [change("insert", [3], 1), change("insert", [20, 21], 4)].concat()
    );
    assert_eq!(select("_change_type LIKE 'update_p%'").len(), 2);
    assert_eq!(select("_commit_version = 2"), change("delete", [2], 2));
    assert_eq!(
        select("_commit_timestamp < TIMESTAMP '2023-11-14 22:13:35Z'"),
        change("insert", [1, 2, 3], 1)
    );
    assert_eq!(select("_change_type IS NULL"), Rows::new());
    // A file that cannot contain a matching row is not opened, so it may be missing.
    fs::remove_file(table.directory.path().join(&with_column)).unwrap();
    assert_eq!(select("_commit_version = 2 OR _commit_version = 1").len(), 4);

    let plan = table.feed().to(ChangeBound::Version(3)).plan().unwrap();
    let columns = ["_commit_version", "_change_type"].map(str::to_owned);
    let batches: Vec<_> = plan.read(Some(&columns)).unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 6);
    assert!(batches.iter().all(|batch| batch.num_columns() == 2));
    assert_eq!(plan.read(Some(&["nothing".to_owned()])).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn ranges_by_version_and_time_are_inclusive() {
    let table = small();
    assert_eq!(table.between(2, 2).unwrap(), change("delete", [2], 2));
    assert_eq!(table.between(1, 99).unwrap().len(), 6);
    let at = |seconds: i64| ChangeBound::Timestamp(EPOCH + seconds * 1000);
    let versions = |start, end| {
        let plan = table.feed().from(start).to(end).plan();
        plan.map(|plan| plan.versions().unwrap().into_inner())
            .map_err(|error| (error.kind(), error.to_string()))
    };
    assert_eq!(versions(at(10), at(20)), Ok((1, 2)));
    assert_eq!(versions(at(11), at(29)), Ok((2, 2)));
    assert_eq!(versions(at(-5), at(500)), Ok((0, 3)));
    assert_eq!(versions(at(-5), at(0)), Ok((0, 0)));
    assert_eq!(versions(at(21), ChangeBound::Version(3)), Ok((3, 3)));

    let not_found = |outcome: std::result::Result<_, (ErrorKind, String)>| {
        let (kind, text) = outcome.unwrap_err();
        assert!(kind == ErrorKind::VersionNotFound && text.contains("versions 0 to 3"), "{text}");
    };
    not_found(versions(ChangeBound::Version(4), ChangeBound::Version(9)));
    not_found(versions(at(31), at(40)));
    not_found(versions(at(-9), at(-1)));
    assert!(
        versions(at(31), at(40))
            .unwrap_err()
            .1
            .contains("2023-11-14T22:13:20.000Z to 2023-11-14T22:13:50.000Z")
    );
    assert_eq!(versions(at(11), at(19)).unwrap_err().0, ErrorKind::InvalidArgument);
    let (kind, text) = versions(ChangeBound::Version(3), ChangeBound::Version(1)).unwrap_err();
    assert!(kind == ErrorKind::InvalidArgument && text.contains("versions 0 to 3"), "{text}");
    for (start, end) in [
        (ChangeBound::Version(4), ChangeBound::Version(9)),
        (at(31), at(40)),
        (at(11), at(19)),
        (at(-9), at(-1)),
    ] {
        let plan = table.feed().from(start).to(end).allow_out_of_range(true).plan().unwrap();
        assert!(plan.versions().is_none() && plan.read(None).unwrap().next().is_none());
        assert_eq!(plan.schema().fields().len(), 4);
    }
}

/// The column `_commit_timestamp` contains the in-commit timestamps of versions that have one. (PROTOCOL, "Reader
/// Requirements for AddCDCFile".)
#[test]
fn in_commit_timestamps_are_used_once_enabled() {
    let mut table = Table::new();
    let path = table.write_ids(&[1]);
    table.commit(vec![table.add(&path)]);
    let mut protocol = protocol();
    protocol["protocol"]["writerFeatures"].as_array_mut().unwrap().push(json!("inCommitTimestamp"));
    let mut metadata = metadata(SCHEMA, &[], true);
    let enabled = EPOCH + 100_000;
    for (key, value) in [
        ("delta.enableInCommitTimestamps", "true".to_owned()),
        ("delta.inCommitTimestampEnablementVersion", "2".to_owned()),
        ("delta.inCommitTimestampEnablementTimestamp", enabled.to_string()),
    ] {
        metadata["metaData"]["configuration"][key] = json!(value);
    }
    table.commit_as(json!({"inCommitTimestamp": enabled}), vec![protocol, metadata, table.remove(&path)]);
    table.commit_as(json!({"inCommitTimestamp": enabled + 7}), vec![table.add(&path)]);
    let times: Vec<_> = table
        .feed()
        .plan()
        .unwrap()
        .files()
        .unwrap()
        .map(|file| file.unwrap().timestamp_ms - EPOCH)
        .collect();
    assert_eq!(times, [10_000, 100_000, 100_007]);
    let since = |time| table.feed().from(ChangeBound::Timestamp(time)).plan().unwrap().versions();
    assert_eq!((since(enabled + 1), since(EPOCH + 10_001)), (Some(3..=3), Some(2..=3)));
}

#[test]
fn a_handle_on_an_old_version_sees_new_changes() {
    let table = small();
    let old = Snapshot::open(&table.storage(), Some(1)).unwrap();
    assert_eq!(table.changes(ChangeFeed::new(&old)).unwrap().len(), 6);
}

#[test]
fn the_feed_must_be_on_at_every_version() {
    let mut table = Table::empty();
    table.commit(vec![protocol(), metadata(SCHEMA, &[], false)]);
    for (is_on, ids) in [(false, [1]), (true, [2]), (true, [3]), (false, [4]), (true, [5])] {
        let path = table.write_ids(&ids);
        table.commit(vec![metadata(SCHEMA, &[], is_on), table.add(&path)]);
    }
    let error = table.refused(0, 9);
    assert_eq!((error.kind(), error.version()), (ErrorKind::VersionNotFound, Some(0)));
    assert!(
        error.to_string().contains("2 to 3, 5 to 5")
            && error.to_string().contains("delta.enableChangeDataFeed"),
        "{error}"
    );
    let error = table.refused(3, 5);
    assert_eq!(error.version(), Some(4));
    assert!(error.to_string().contains("3 to 3, 5 to 5"), "{error}");
    assert!(table.refused(1, 1).to_string().contains("none of them"));
    assert_eq!(table.between(2, 3).unwrap(), [change("insert", [2], 2), change("insert", [3], 3)].concat());
    assert_eq!(table.between(5, 5).unwrap(), change("insert", [5], 5));
}

/// Tests that a MERGE which changed no row has no changes, as in the JVM implementation.
#[test]
fn a_merge_that_changed_no_row_has_no_changes() {
    let merge = |zero: Value, metrics: &[&str]| {
        let metrics: serde_json::Map<_, _> =
            metrics.iter().map(|name| ((*name).to_owned(), zero.clone())).collect();
        json!({"operation": "MERGE", "operationMetrics": metrics})
    };
    let all = ["numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"];
    for (info, changes) in
        [(merge(json!("0"), &all), 0), (merge(json!("0"), &all[..2]), 4), (merge(json!("1"), &all), 4)]
    {
        let mut table = Table::new();
        let old = table.write_ids(&[1, 2]);
        table.commit(vec![table.add(&old)]);
        let new = table.write_ids(&[1, 2]);
        table.commit_as(info, vec![table.remove(&old), table.add(&new)]);
        assert_eq!(table.between(2, 2).unwrap().len(), changes);
    }
}

fn schema(fields: &[(&str, &str, bool)]) -> String {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, of, nullable)| json!({"name": name, "type": of, "nullable": nullable, "metadata": {}}))
        .collect();
    json!({"type": "struct", "fields": fields}).to_string()
}

/// As in the JVM implementation, a later schema may add and widen columns. It must not drop a column, narrow its type
/// or make it NOT NULL.
#[test]
fn compatible_schema_changes_are_read_and_others_refused() {
    let outcome = |later: &str, partition_columns: &[&str]| {
        let mut table = Table::empty();
        table.commit(vec![
            protocol(),
            metadata(&schema(&[("id", "integer", true), ("s", "string", true)]), &[], true),
        ]);
        let path = table.write(vec![("id", Arc::new(Int32Array::from(vec![7]))), ("s", texts(&["x"]))]);
        table.commit(vec![table.add(&path)]);
        table.commit(vec![metadata(later, partition_columns, true)]);
        // Versions before the change of the schema can still be read with the old schema.
        assert_eq!(table.feed().to(ChangeBound::Version(1)).plan().unwrap().read(None).unwrap().count(), 1);
        let mut batches = table.feed().plan()?.read(None)?;
        let batch = batches.next().unwrap()?;
        assert!(batches.next().is_none());
        Ok::<_, Error>(batch)
    };
    let added =
        outcome(&schema(&[("new", "long", true), ("s", "string", true), ("id", "integer", true)]), &[])
            .unwrap();
    assert_eq!(
        added.schema().fields().iter().take(3).map(|field| field.name().as_str()).collect::<Vec<_>>(),
        ["new", "s", "id"]
    );
    assert!(added.column(0).is_null(0) && added.column(1).as_string::<i32>().value(0) == "x");
    let widened = outcome(&schema(&[("id", "long", true), ("s", "string", true)]), &[]).unwrap();
    assert_eq!(widened.column(0).as_primitive::<Int64Type>().value(0), 7);
    let both = schema(&[("id", "integer", true), ("s", "string", true)]);
    for (later, partition_columns, what) in [
        (schema(&[("id", "integer", true)]), &[][..], "'s' no longer exists"),
        (schema(&[("id", "integer", true), ("S", "string", true)]), &[], "'s' no longer exists"),
        (schema(&[("id", "short", true), ("s", "string", true)]), &[], "'id' has a different type"),
        (schema(&[("id", "string", true), ("s", "string", true)]), &[], "'id' has a different type"),
        (schema(&[("id", "integer", false), ("s", "string", true)]), &[], "'id' is no longer nullable"),
        (both, &["s"], "are (), not (s)"),
    ] {
        let error = outcome(&later, partition_columns).unwrap_err();
        assert_eq!((error.kind(), error.version()), (ErrorKind::SchemaMismatch, Some(0)), "{error}");
        assert!(error.to_string().contains(what) && error.hint().is_some(), "{error}");
    }
}

#[test]
fn columns_with_reserved_names_are_refused() {
    let mut table = Table::empty();
    table.commit(vec![protocol(), metadata(&schema(&[("_Change_Type", "string", true)]), &[], true)]);
    assert_eq!(table.refused(0, 0).kind(), ErrorKind::Unsupported);
}

#[test]
fn errors_name_missing_commits() {
    let mut table = small();
    let path = table.write_ids(&[30]);
    table.commit(vec![table.add(&path)]);
    let storage = table.storage();
    crate::upkeep::checkpoint::write_checkpoint(
        &Snapshot::open(&storage, Some(2)).unwrap(),
        &Environment::system(),
    )
    .unwrap();
    let log = |version: u64| table.directory.path().join(format!("_delta_log/{version:020}.json"));
    fs::remove_file(log(0)).unwrap();
    fs::remove_file(log(1)).unwrap();
    let error = table.refused(0, 4);
    assert_eq!(error.kind(), ErrorKind::VersionNotFound);
    assert!(error.to_string().contains("versions 2 to 4"), "{error}");
    assert_eq!(table.between(2, 4).unwrap().len(), 4);
    fs::remove_file(log(2)).unwrap();
    assert_eq!(table.between(3, 4).unwrap().len(), 3);
}

/// Partition values are optional in `remove` actions. (PROTOCOL, "Add File and Remove File".)
#[test]
fn partition_values_come_from_the_actions() {
    let mut table = Table::empty();
    let of = schema(&[("id", "long", true), ("p", "string", true)]);
    table.commit(vec![protocol(), metadata(&of, &["p"], true)]);
    let path = table.write_ids(&[1]);
    let mut add = table.add(&path);
    add["add"]["partitionValues"] = json!({"p": "a b"});
    table.commit(vec![add]);
    let mut remove = table.remove(&path);
    remove["remove"]["partitionValues"] = json!({"p": "a b"});
    remove["remove"].as_object_mut().unwrap().remove("size");
    table.commit(vec![remove.clone()]);
    remove["remove"].as_object_mut().unwrap().remove("partitionValues");
    table.commit(vec![remove]);
    let recorded = table.write(vec![("id", ints(&[1])), ("_change_type", texts(&["update_preimage"]))]);
    table.commit(vec![
        json!({"cdc": {"path": recorded, "partitionValues": {"p": "c"}, "size": 1, "dataChange": false}}),
    ]);

    let plan = table.feed().to(ChangeBound::Version(2)).plan().unwrap();
    let batches: Vec<_> = plan.read(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(
        batches.iter().flat_map(rows_of).collect::<Rows>(),
        [change("insert", [1], 1), change("delete", [1], 2)].concat()
    );
    assert!(batches.iter().all(|batch| batch.column(1).as_string::<i32>().value(0) == "a b"));
    let error = table.refused(3, 3);
    assert_eq!(
        (error.kind(), error.version(), error.path()),
        (ErrorKind::Unsupported, Some(3), Some(path.as_str())),
        "{error}"
    );
    let predicate = parse("p = 'c'", "UTC", ParseMode::Strict).unwrap();
    let plan = |predicate| table.feed().from(ChangeBound::Version(4)).predicate(predicate).plan().unwrap();
    let batches: Vec<_> = plan(predicate).read(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.iter().flat_map(rows_of).collect::<Rows>(), change("update_preimage", [1], 4));
    let nothing = parse("p = 'd'", "UTC", ParseMode::Strict).unwrap();
    assert!(plan(nothing).read(None).unwrap().next().is_none());
}

/// Files are not opened if the partition values and statistics of their actions rule them out. In this test, such files
/// do not even exist. (PROTOCOL, "Per-file Statistics".)
#[test]
fn files_that_cannot_match_are_not_opened() {
    let mut table = Table::empty();
    let of = schema(&[("id", "long", true), ("p", "string", true)]);
    table.commit(vec![protocol(), metadata(&of, &["p"], true)]);
    let file = |kind: &str, path: &str, p: &str, ids: Option<[i64; 2]>| {
        let stats = ids.map(|[min, max]| {
            json!({
                "numRecords": 2, "minValues": {"id": min}, "maxValues": {"id": max}, "nullCount": {"id": 0},
            })
        });
        let stats = stats.map(|stats| stats.to_string());
        json!({kind: {
            "path": path, "partitionValues": {"p": p}, "size": 1,
            "modificationTime": 0, "dataChange": true, "stats": stats,
        }})
    };
    table.commit(vec![file("add", "gone-1", "a", Some([1, 9])), file("add", "gone-2", "b", Some([1, 9]))]);
    table.commit(vec![file("remove", "gone-1", "a", Some([1, 9])), file("add", "gone-3", "a", None)]);
    let there = table.write_ids(&[20, 21]);
    table.commit(vec![file("remove", "gone-3", "a", None), file("add", &there, "a", Some([20, 21]))]);
    table.commit(vec![
        json!({"cdc": {"path": "gone-4", "partitionValues": {"p": "b"}, "size": 1, "dataChange": false}}),
    ]);
    let plan =
        |sql: &str| table.feed().predicate(parse(sql, "UTC", ParseMode::Strict).unwrap()).plan().unwrap();
    let files = |sql: &str| {
        plan(sql).files().unwrap().map(|file| file.unwrap().file.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(files("id > 9"), ["gone-3", "gone-3", &there, "gone-4"]);
    assert_eq!(files("id > 9 AND _change_type = 'insert'"), ["gone-3", &there, "gone-4"]);
    assert_eq!(files("id > 9 AND p = 'a' AND _commit_version = 3"), ["gone-3", &there]);
    assert_eq!(files("p = 'b' OR id = 20"), ["gone-2", "gone-3", "gone-3", &there, "gone-4"]);
    assert_eq!(files("_change_type = 'delete' AND p = 'a' AND id < 5"), ["gone-1", "gone-3"]);
    assert_eq!(files("_commit_version > 4 OR p IS NULL"), Vec::<String>::new());
    let sql = "id > 9 AND p = 'a' AND _commit_version = 3 AND _change_type = 'insert'";
    let batches = plan(sql).read(None).unwrap().map(Result::unwrap);
    assert_eq!(batches.flat_map(|batch| rows_of(&batch)).collect::<Rows>(), change("insert", [20, 21], 3));
    let unknown =
        table.feed().predicate(parse("nothing = 1", "UTC", ParseMode::Strict).unwrap()).plan().unwrap_err();
    assert_eq!((unknown.kind(), unknown.table().is_some()), (ErrorKind::InvalidArgument, true));
}

/// If a deletion vector changes, the statistics of the `add` action do not describe the rows that were deleted, and
/// the statistics of the `remove` action do not describe the rows that were restored.
#[test]
fn changes_of_a_vector_use_the_statistics_of_the_right_action() {
    let mut table = Table::new();
    let path = table.write_ids(&[1, 2, 3]);
    let vector = table.vector(&BTreeSet::from([0]));
    let action = |kind: &str, is_whole: bool| {
        let mut action = table.action(kind, &path, vector.as_ref().filter(|_| !is_whole), true);
        let min = if is_whole { 1 } else { 2 };
        let stats = json!({
            "numRecords": 3, "minValues": {"id": min}, "maxValues": {"id": 3}, "tightBounds": true,
        });
        action[kind]["stats"] = stats.to_string().into();
        action
    };
    let commits = [
        vec![action("add", true)],
        vec![action("remove", true), action("add", false)],
        vec![action("remove", false), action("add", true)],
    ];
    commits.into_iter().for_each(|commit| table.commit(commit));
    let found = |sql: &str| {
        table.changes(table.feed().predicate(parse(sql, "UTC", ParseMode::Strict).unwrap())).unwrap()
    };
    assert_eq!(
        found("id = 1"),
        [change("delete", [1], 2), change("insert", [1], 1), change("insert", [1], 3)].concat()
    );
    assert_eq!(found("id = 1 AND _change_type = 'delete'"), change("delete", [1], 2));
    assert_eq!(found("id = 2"), change("insert", [2], 1));
}

/// There are more commits than threads, and two of the commits are damaged. The error names the damaged commit that
/// comes first in the log.
#[test]
fn commits_are_read_in_parallel_and_the_first_error_is_reported() {
    let mut table = Table::new();
    for id in 0..60 {
        let path = table.write_ids(&[id]);
        table.commit(vec![table.add(&path)]);
    }
    let expected: Vec<_> = (0..60).flat_map(|id| change("insert", [id], id + 1)).collect();
    assert_eq!(table.between(0, 60).unwrap(), expected);
    let feed = table.feed();
    for version in [50, 30] {
        fs::write(table.directory.path().join(format!("_delta_log/{version:020}.json")), "{").unwrap();
    }
    let error = feed.plan().unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::CorruptLog, Some(30)), "{error}");
}

/// A logical file is removed by its path and its deletion vector ("Action Reconciliation"). Changes of whole files
/// need no `cdc` file ("Writer Requirements for AddCDCFile").
#[test]
fn writes_of_this_crate_are_in_the_feed() {
    let mut table = small();
    let path = table.write_ids(&[40, 41, 42]);
    let vector = table.vector(&BTreeSet::from([0, 2]));
    table.commit(vec![table.action("add", &path, vector.as_ref(), true)]);
    assert_eq!(ids_at(&table, 4), [3, 10, 41]);
    let write = |mode, ids: &[i64]| {
        let snapshot = Snapshot::open(&table.storage(), None).unwrap();
        let request = WriteRequest::new(snapshot.schema().clone(), mode);
        let write = PendingWrite::begin(&table.storage(), request, &Environment::system()).unwrap().unwrap();
        let mut writer = write.writer().unwrap();
        writer.write(&RecordBatch::try_from_iter([("id", ints(ids))]).unwrap()).unwrap();
        write.commit(writer.finish().unwrap(), Operation::new("WRITE")).unwrap();
    };
    write(SaveMode::Append, &[50]);
    assert_eq!(ids_at(&table, 5), [3, 10, 41, 50]);
    // A checkpoint contains the whole state, including deletion vectors.
    let newest = Snapshot::open(&table.storage(), None).unwrap();
    crate::upkeep::checkpoint::write_checkpoint(&newest, &Environment::system()).unwrap();
    assert_eq!(ids_at(&table, 5), [3, 10, 41, 50]);
    write(SaveMode::Overwrite, &[60]);
    assert_eq!(ids_at(&table, 6), [60]);
    let removed =
        fs::read_to_string(table.directory.path().join("_delta_log/00000000000000000006.json")).unwrap();
    assert!(removed.contains(&vector.unwrap().path_or_inline_dv), "{removed}");
    let expected =
        [change("insert", [50], 5), change("delete", [3, 10, 41, 50], 6), change("insert", [60], 6)];
    assert_eq!(table.between(5, 6).unwrap(), sorted(expected));
}
