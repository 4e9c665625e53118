//! Tests of streams of the change data feed. (Protocol: "Change Data Files".)

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::{append, offset, one_file, stream};
use super::{StreamLimits, StreamOffset, StreamOptions, StreamStart, TableStream};
use crate::error::{ErrorKind, Result};
use crate::expression::predicate::{col, lit};
use crate::scan::changes::law_tests::{History, step};
use crate::scan::changes::test_table::{
    EPOCH, Rows, SCHEMA, Table, change, ints, metadata, protocol, rows_of, sorted, texts,
};

fn table() -> Table {
    let mut table = Table::empty();
    table.commit(vec![protocol(), metadata(SCHEMA, &[], true)]);
    table
}

fn feed() -> StreamOptions {
    StreamOptions::new().change_feed(true).pause(Duration::ZERO)
}

fn from_version(version: u64) -> StreamOptions {
    feed().start(StreamStart::Version(version))
}

fn rows(stream: &TableStream, start: Option<&StreamOffset>, end: &StreamOffset) -> Result<Rows> {
    let mut rows = Vec::new();
    for batch in stream.batch(start, end)?.read(None)? {
        rows.extend(rows_of(&batch?));
    }
    rows.sort();
    Ok(rows)
}

/// Returns the offsets of the batches from `start` to the newest version, with their changes.
fn batches(
    stream: &TableStream,
    start: Option<StreamOffset>,
    limits: StreamLimits,
) -> Result<Vec<(String, Rows)>> {
    let (mut done, mut found) = (start, Vec::new());
    while let Some(next) = stream.latest(done.as_ref(), limits)? {
        if done.as_ref() == Some(&next) {
            break;
        }
        found.push((next.to_string(), rows(stream, done.as_ref(), &next)?));
        stream.release(&next)?;
        done = Some(next);
    }
    Ok(found)
}

fn cdc(table: &mut Table, id: i64, kind: &str) -> Value {
    let path = table.write(vec![("id", ints(&[id])), ("_change_type", texts(&[kind]))]);
    let size = table.size(&path);
    json!({"cdc": {"path": path, "partitionValues": {}, "size": size, "dataChange": false}})
}

#[test]
fn the_rows_of_the_snapshot_are_inserts_and_precede_the_changes_of_commits() {
    let mut table = table();
    let paths = append(&mut table, &[1, 2]);
    let stream = stream(&table, feed());
    table.commit(vec![table.remove(&paths[0])]);
    append(&mut table, &[3]);
    assert_eq!(
        batches(&stream, None, StreamLimits::default()).unwrap(),
        [
            (offset(2, -1, false), change("insert", [1, 2], 1)),
            (offset(4, -1, false), sorted([change("delete", [1], 2), change("insert", [3], 3)])),
        ]
    );
}

/// The end offset of the first batch is enough to read it again, even after newer commits.
#[test]
fn the_first_batch_of_a_feed_ends_with_the_snapshot() {
    let mut table = table();
    let paths = append(&mut table, &[1]);
    let first = stream(&table, feed());
    table.commit(vec![table.remove(&paths[0])]);
    let end = first.latest(None, StreamLimits::unlimited()).unwrap().unwrap();
    assert_eq!(end.to_string(), offset(2, -1, false));
    assert_eq!(rows(&stream(&table, feed()), None, &end).unwrap(), change("insert", [1], 1));
}

/// The JVM connector writes the same offsets: a batch that ends with change data files ends at the index of the last
/// one, and not at the base of the next version.
#[test]
fn change_data_files_of_a_commit_are_in_one_batch() {
    let mut table = table();
    let recorded = ["update_preimage", "update_postimage"].map(|kind| cdc(&mut table, 7, kind));
    table.commit(recorded.to_vec());
    append(&mut table, &[8]);
    let updated = sorted([change("update_preimage", [7], 1), change("update_postimage", [7], 1)]);
    assert_eq!(
        batches(&stream(&table, from_version(1)), None, one_file()).unwrap(),
        [(offset(1, 1, false), updated), (offset(3, -1, false), change("insert", [8], 2))]
    );
}

#[test]
fn a_commit_that_does_not_fit_as_a_whole_is_left_for_the_next_batch() {
    let mut table = table();
    append(&mut table, &[1]);
    let recorded = ["update_preimage", "update_postimage"].map(|kind| cdc(&mut table, 7, kind));
    table.commit(recorded.to_vec());
    let two = StreamLimits::new(Some(2), None);
    let found = batches(&stream(&table, from_version(1)), None, two).unwrap();
    assert_eq!(
        found.iter().map(|(offset, rows)| (offset.clone(), rows.len())).collect::<Vec<_>>(),
        [(offset(2, -1, false), 1), (offset(2, 1, false), 2)]
    );
}

/// An UPDATE deletes rows by a deletion vector and adds their new values in another file. Both must be in one batch.
#[test]
fn commits_with_deletion_vectors_are_in_one_batch() {
    let mut table = table();
    let path = table.write_ids(&[1, 2, 3]);
    table.commit(vec![table.add(&path)]);
    let vector = table.vector(&BTreeSet::from([0]));
    let new = table.write_ids(&[4]);
    table.commit(vec![
        table.remove(&path),
        table.action("add", &path, vector.as_ref(), true),
        table.add(&new),
    ]);
    let found = batches(&stream(&table, from_version(2)), None, one_file()).unwrap();
    assert_eq!(found, [(offset(3, -1, false), sorted([change("delete", [1], 2), change("insert", [4], 2)]))]);
}

/// Actions are counted in the order of the log, as the JVM connector counts them.
#[test]
fn a_commit_without_vectors_is_divided_in_the_order_of_the_log() {
    let mut table = table();
    let old = append(&mut table, &[1, 2]);
    let new = [3, 4].map(|id| table.write_ids(&[id]));
    table.commit(vec![table.add(&new[0]), table.remove(&old[1]), table.add(&new[1]), table.remove(&old[0])]);
    let found = batches(&stream(&table, from_version(2)), None, one_file()).unwrap();
    let expected = [
        (offset(2, 0, false), change("insert", [3], 2)),
        (offset(2, 1, false), change("delete", [2], 2)),
        (offset(2, 2, false), change("insert", [4], 2)),
        (offset(3, -1, false), change("delete", [1], 2)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_change_feed_must_be_enabled() {
    let mut off = Table::empty();
    off.commit(vec![protocol(), metadata(SCHEMA, &[], false)]);
    append(&mut off, &[1]);
    let mut later_off = table();
    append(&mut later_off, &[1]);
    later_off.commit(vec![metadata(SCHEMA, &[], false)]);
    for (table, version, stream) in [
        (&off, 1, stream(&off, feed())),
        (&off, 0, stream(&off, from_version(0))),
        (&later_off, 2, stream(&later_off, from_version(1))),
    ] {
        let error = batches(&stream, None, StreamLimits::default()).unwrap_err();
        assert_eq!((error.kind(), error.version()), (ErrorKind::VersionNotFound, Some(version)), "{error}");
        assert_eq!(error.table(), Some(table.storage().url().as_str()));
        assert!(error.hint().unwrap().contains("delta.enableChangeDataFeed"), "{error}");
    }
}

#[test]
fn rows_of_a_feed_have_the_times_of_their_commits() {
    let mut table = table();
    append(&mut table, &[1]);
    let reader = stream(&table, feed());
    append(&mut table, &[2]);
    let mut done = None;
    let mut times = Vec::new();
    while let Some(next) = reader.latest(done.as_ref(), StreamLimits::default()).unwrap() {
        if done.as_ref() == Some(&next) {
            break;
        }
        let columns = ["_commit_timestamp".to_owned()];
        for batch in reader.batch(done.as_ref(), &next).unwrap().read(Some(&columns)).unwrap() {
            let batch = batch.unwrap();
            let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Int64).unwrap();
            times.extend(
                arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(&column).values().to_vec(),
            );
        }
        done = Some(next);
    }
    assert_eq!(times, [(EPOCH + 10_000) * 1000, (EPOCH + 20_000) * 1000]);
}

#[test]
fn files_of_a_feed_are_pruned_and_excluded() {
    let mut table = table();
    let add = |table: &mut Table, id: i64| {
        let path = table.write_ids(&[id]);
        let mut add = table.add(&path);
        let stats = json!({"numRecords": 1, "minValues": {"id": id}, "maxValues": {"id": id}, "nullCount": {"id": 0}});
        add["add"]["stats"] = Value::String(stats.to_string());
        add
    };
    let adds = [1, 2].map(|id| add(&mut table, id));
    table.commit(adds.to_vec());
    for options in [feed(), from_version(1)] {
        let stream = stream(&table, options.clone());
        let end = stream.latest(None, StreamLimits::default()).unwrap().unwrap();
        let batch = stream.batch(None, &end).unwrap();
        let files = |predicate| batch.changes(Some(&predicate)).unwrap().files().unwrap().count();
        assert_eq!(files(col("id").eq(lit(1))), 1);
        assert_eq!(files(col("id").eq(lit(9))), 0);
        assert_eq!(files(col("_commit_version").eq(lit(2))), 0);
        let excluding = self::stream(&table, options.exclude("file-0").unwrap());
        assert_eq!(rows(&excluding, None, &end).unwrap(), change("insert", [2], 1));
    }
}

#[test]
fn a_batch_of_rows_has_no_changes() {
    let mut table = table();
    append(&mut table, &[1]);
    let stream = stream(&table, StreamOptions::new());
    let end = stream.latest(None, StreamLimits::default()).unwrap().unwrap();
    let error = stream.batch(None, &end).unwrap().changes(None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Each change is read exactly once, regardless of the limits and of where the reader resumes.
    #[test]
    fn every_change_is_read_once(
        before in prop::collection::vec(step(), 0..4),
        after in prop::collection::vec((step(), any::<bool>(), 1..4u64), 1..8),
    ) {
        let mut history = History::new();
        before.into_iter().for_each(|step| drop(history.apply(step)));
        let (mut reader, mut done) = (stream(&history.table, feed()), None);
        let mut expected = vec![history.as_inserts()];
        let mut found = Vec::new();
        for (step, begins_again, files) in after {
            // This change is not in the snapshot with which the first stream begins, so it is read from its commit.
            expected.push(history.apply(step));
            if begins_again && done.is_some() {
                reader = stream(&history.table, feed());
                done = done.map(|done: StreamOffset| StreamOffset::parse(&done.to_string()).unwrap());
            }
            while let Some(next) = reader.latest(done.as_ref(), StreamLimits::new(Some(files), None)).unwrap() {
                if done.as_ref() == Some(&next) {
                    break;
                }
                found.push(rows(&reader, done.as_ref(), &next).unwrap());
                reader.release(&next).unwrap();
                done = Some(next);
            }
        }
        prop_assert_eq!(sorted(found), sorted(expected));
    }
}
