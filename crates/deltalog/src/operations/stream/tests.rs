//! Tests of streams of small tables: offsets, rows, restarts and errors. (Protocol: "Add File and Remove File".)

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::offset::Index;
use super::sorted::{SortedFiles, Sorter};
use super::{
    ChangeHandling, StreamBacklog, StreamLimits, StreamOffset, StreamOptions, StreamStart, TableStream,
};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::{col, lit};
use crate::log::replay::FileColumn;
use crate::runtime::environment::Environment;
use crate::scan::ListColumn;
use crate::scan::changes::test_table::{EPOCH, SCHEMA, Table, ints, metadata, protocol, texts};
use crate::snapshot::Snapshot;

const TWO_COLUMNS: &str = r#"{"type":"struct","fields":[
    {"name":"id","type":"long","nullable":true,"metadata":{}},
    {"name":"more","type":"string","nullable":true,"metadata":{}}
]}"#;

fn table() -> Table {
    let mut table = Table::empty();
    table.commit(vec![protocol(), metadata(SCHEMA, &[], false)]);
    table
}

/// Commits one file for each of `ids`, with one row.
pub(super) fn append(table: &mut Table, ids: &[i64]) -> Vec<String> {
    let paths: Vec<_> = ids.iter().map(|id| table.write_ids(&[*id])).collect();
    table.commit(paths.iter().map(|path| table.add(path)).collect());
    paths
}

pub(super) fn stream(table: &Table, options: StreamOptions) -> TableStream {
    TableStream::open(&Snapshot::open(&table.storage(), None).unwrap(), options, &Environment::system())
        .unwrap()
}

pub(super) fn one_file() -> StreamLimits {
    StreamLimits::new(Some(1), None)
}

fn ids(stream: &TableStream, start: Option<&StreamOffset>, end: &StreamOffset) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    for batch in stream.batch(start, end)?.read(None)? {
        ids.extend(batch?.column(0).as_primitive::<Int64Type>().values());
    }
    ids.sort_unstable();
    Ok(ids)
}

/// Returns the offsets of the batches from `start` to the newest version, with their rows.
fn batches(
    stream: &TableStream,
    start: Option<StreamOffset>,
    limits: StreamLimits,
) -> Result<Vec<(String, Vec<i64>)>> {
    let (mut done, mut found) = (start, Vec::new());
    while let Some(next) = stream.latest(done.as_ref(), limits)? {
        if done.as_ref() == Some(&next) {
            break;
        }
        found.push((next.to_string(), ids(stream, done.as_ref(), &next)?));
        stream.release(&next)?;
        done = Some(next);
    }
    Ok(found)
}

pub(super) fn offset(version: u64, index: i64, is_initial: bool) -> String {
    let place = format!(r#""reservoirId":"t","reservoirVersion":{version},"index":{index}"#);
    format!(r#"{{"sourceVersion":1,{place},"isStartingVersion":{is_initial}}}"#)
}

/// The JVM connector returns the expected offsets for the same table and limits.
#[test]
fn the_snapshot_comes_first_and_then_each_commit() {
    let mut table = table();
    append(&mut table, &[1, 2]);
    let stream = stream(&table, StreamOptions::new());
    append(&mut table, &[3]);
    assert_eq!(
        batches(&stream, None, one_file()).unwrap(),
        [(offset(1, 0, true), vec![1]), (offset(2, -1, false), vec![2]), (offset(3, -1, false), vec![3])]
    );
}

#[test]
fn limits_count_files_and_bytes_and_admit_at_least_one() {
    let mut table = table();
    append(&mut table, &[1, 2, 3]);
    let size =
        |batches: Vec<(String, Vec<i64>)>| batches.iter().map(|(_, ids)| ids.len()).collect::<Vec<_>>();
    let of =
        |limits: StreamLimits| size(batches(&stream(&table, StreamOptions::new()), None, limits).unwrap());
    assert_eq!(of(StreamLimits::default()), [3]);
    assert_eq!(of(StreamLimits::unlimited()), [3]);
    assert_eq!(of(StreamLimits::new(Some(2), None)), [2, 1]);
    assert_eq!(of(StreamLimits::new(None, Some(1))), [1, 1, 1]);
    let two = table.size("file-0.parquet") + 1;
    assert_eq!(of(StreamLimits::new(None, Some(two))), [2, 1]);
    assert_eq!(of(StreamLimits::new(Some(1), Some(two))), [1, 1, 1]);
}

#[test]
fn a_stream_begins_where_its_options_say() {
    let mut table = table();
    append(&mut table, &[1]);
    append(&mut table, &[2]);
    let of = |start: StreamStart| {
        let found =
            batches(&stream(&table, StreamOptions::new().start(start)), None, StreamLimits::default());
        found.map(|batches| batches.into_iter().flat_map(|(_, ids)| ids).collect::<Vec<_>>())
    };
    assert_eq!(of(StreamStart::Version(0)).unwrap(), [1, 2]);
    assert_eq!(of(StreamStart::Version(2)).unwrap(), [2]);
    assert_eq!(of(StreamStart::Timestamp(EPOCH + 10_001)).unwrap(), [2]);
    assert_eq!(of(StreamStart::Latest).unwrap(), [0; 0]);
    for start in [StreamStart::Version(3), StreamStart::Timestamp(EPOCH + 99_999)] {
        let error = of(start).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionNotFound, "{error}");
        assert!(error.table().is_some() && error.hint().is_some(), "{error}");
    }
    let latest = stream(&table, StreamOptions::new().start(StreamStart::Latest));
    assert_eq!(latest.latest(None, StreamLimits::default()).unwrap(), None);
}

/// If a file is only rewritten, its rows must not be read again.
#[test]
fn commits_that_only_move_rows_add_no_rows() {
    let mut table = table();
    let paths = append(&mut table, &[1, 2]);
    let stream = stream(&table, StreamOptions::new());
    let both = table.write_ids(&[1, 2]);
    let removes = paths.iter().map(|path| table.action("remove", path, None, false));
    table.commit(removes.chain([table.action("add", &both, None, false)]).collect());
    append(&mut table, &[3]);
    let found = batches(&stream, None, StreamLimits::default()).unwrap();
    assert_eq!(found, [(offset(4, -1, false), vec![1, 2, 3])]);
}

#[test]
fn options_for_commits_that_remove_rows() {
    let mut table = table();
    let paths = append(&mut table, &[1, 2]);
    table.commit(vec![table.remove(&paths[0])]);
    let rewritten = table.write_ids(&[2, 5]);
    table.commit(vec![table.remove(&paths[1]), table.add(&rewritten)]);
    let of = |version: u64, changes: ChangeHandling| -> Result<Vec<i64>> {
        let options = StreamOptions::new().start(StreamStart::Version(version)).changes(changes);
        let found = batches(&stream(&table, options), None, StreamLimits::default())?;
        Ok(found.into_iter().flat_map(|(_, ids)| ids).collect())
    };
    let refused = |found: Result<Vec<i64>>, version: u64, option: &str| {
        let error = found.unwrap_err();
        assert_eq!((error.kind(), error.version()), (ErrorKind::Unsupported, Some(version)), "{error}");
        assert!(error.hint().unwrap().contains(option), "{error}");
    };
    refused(of(2, ChangeHandling::Refuse), 2, "ignoreDeletes");
    refused(of(3, ChangeHandling::Refuse), 3, "skipChangeCommits");
    refused(of(2, ChangeHandling::IgnoreDeletes), 3, "ignoreChanges");
    assert_eq!(of(2, ChangeHandling::Ignore).unwrap(), [2, 5]);
    assert_eq!(of(2, ChangeHandling::Skip).unwrap(), [0; 0]);
}

/// Rows that the deletion vector of a file marks as deleted are not part of the stream.
#[test]
fn deleted_rows_of_the_snapshot_are_not_read() {
    let mut table = table();
    let path = table.write_ids(&[1, 2, 3]);
    let vector = table.vector(&BTreeSet::from([1]));
    table.commit(vec![table.action("add", &path, vector.as_ref(), true)]);
    let found = batches(&stream(&table, StreamOptions::new()), None, StreamLimits::default()).unwrap();
    assert_eq!(found, [(offset(2, -1, false), vec![1, 3])]);
}

#[test]
fn excluded_files_count_for_offsets() {
    let mut table = table();
    append(&mut table, &[1, 2, 3]);
    let options = StreamOptions::new().exclude("file-1").unwrap();
    let found = batches(&stream(&table, options), None, one_file()).unwrap();
    assert_eq!(found.iter().map(|(_, ids)| ids.len()).collect::<Vec<_>>(), [1, 0, 1]);
    assert_eq!(found[1].0, offset(1, 1, true));
}

/// A newly opened stream continues at the same offset.
#[test]
fn a_new_column_ends_a_stream_until_it_is_opened_again() {
    let mut table = table();
    append(&mut table, &[1]);
    let first = stream(&table, StreamOptions::new());
    let done = first.latest(None, StreamLimits::default()).unwrap().unwrap();
    table.commit(vec![metadata(TWO_COLUMNS, &[], false)]);
    let path = table.write(vec![("id", ints(&[2])), ("more", texts(&["b"]))]);
    table.commit(vec![table.add(&path)]);
    let error = batches(&stream_after(&first), Some(done.clone()), StreamLimits::default()).unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::SchemaMismatch, Some(2)), "{error}");
    assert!(error.hint().unwrap().contains("open the stream again"), "{error}");
    let again = stream(&table, StreamOptions::new());
    assert_eq!(
        batches(&again, Some(done), StreamLimits::default()).unwrap(),
        [(offset(4, -1, false), vec![2])]
    );
}

/// Opens another stream with the same snapshot, as another process might.
fn stream_after(stream: &TableStream) -> TableStream {
    TableStream::open(stream.snapshot(), StreamOptions::new(), &Environment::system()).unwrap()
}

#[test]
fn a_commit_that_was_cleaned_up_is_an_error() {
    let mut table = table();
    append(&mut table, &[1]);
    let done = stream(&table, StreamOptions::new()).latest(None, StreamLimits::default()).unwrap();
    append(&mut table, &[2]);
    append(&mut table, &[3]);
    let snapshot = Snapshot::open(&table.storage(), None).unwrap();
    crate::write_checkpoint(&snapshot, &Environment::system()).unwrap();
    for version in 0..=2 {
        fs::remove_file(table.directory.path().join(format!("_delta_log/{version:020}.json"))).unwrap();
    }
    let of =
        |options: StreamOptions| batches(&stream(&table, options), done.clone(), StreamLimits::default());
    let error = of(StreamOptions::new()).unwrap_err();
    assert_eq!((error.kind(), error.version()), (ErrorKind::VersionNotFound, Some(2)), "{error}");
    assert!(error.hint().unwrap().contains("failOnDataLoss"), "{error}");
    assert_eq!(of(StreamOptions::new().tolerate_loss(true)).unwrap(), [(offset(4, -1, false), vec![3])]);
}

#[test]
fn offsets_of_other_tables_and_in_the_wrong_order_are_refused() {
    let mut table = table();
    append(&mut table, &[1]);
    append(&mut table, &[2]);
    let stream = stream(&table, StreamOptions::new());
    let other = StreamOffset::parse(&offset(1, -1, false).replace("\"t\"", "\"u\"")).unwrap();
    let kind = |error: Error| error.kind();
    assert_eq!(kind(stream.latest(Some(&other), one_file()).unwrap_err()), ErrorKind::TableReplaced);
    let [early, late] = [1, 2].map(|version| StreamOffset::parse(&offset(version, -1, false)).unwrap());
    assert_eq!(kind(stream.batch(Some(&late), &early).unwrap_err()), ErrorKind::InvalidArgument);
    assert_eq!(ids(&stream, Some(&early), &late).unwrap(), [1]);
}

/// After a restart, Spark may ask for the first batch again. It then knows only the end of the batch, not its start.
#[test]
fn the_first_batch_can_be_read_again_from_its_end_alone() {
    let mut table = table();
    append(&mut table, &[1, 2]);
    for limits in [one_file(), StreamLimits::default()] {
        let first = stream(&table, StreamOptions::new());
        let end = first.latest(None, limits).unwrap().unwrap();
        let rows = ids(&first, None, &end).unwrap();
        append(&mut table, &[9]);
        let end = StreamOffset::parse(&end.to_string()).unwrap();
        assert_eq!(ids(&stream(&table, StreamOptions::new()), None, &end).unwrap(), rows);
    }
    let latest = StreamOptions::new().start(StreamStart::Latest);
    let end = StreamOffset::parse(&offset(2, -1, false)).unwrap();
    let error = stream(&table, latest).batch(None, &end).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionNotFound, "{error}");
}

#[test]
fn a_stream_ends_at_the_version_that_was_the_newest() {
    let mut table = table();
    append(&mut table, &[1]);
    let stream = stream(&table, StreamOptions::new());
    stream.end_at_newest();
    let end = stream.latest(None, StreamLimits::default()).unwrap().unwrap();
    append(&mut table, &[2]);
    assert_eq!(stream.latest(Some(&end), StreamLimits::default()).unwrap(), Some(end));
}

/// Spark may ask a source for new rows 84 times per second, but the source must ask the store only once.
#[test]
fn without_new_versions_a_stream_asks_the_store_once_per_second() {
    let mut table = table();
    append(&mut table, &[1]);
    let now = Arc::new(AtomicI64::new(EPOCH));
    let clock = Arc::clone(&now);
    let environment = Environment::new(move || clock.load(Ordering::Relaxed), Uuid::new_v4);
    let snapshot = Snapshot::open(&table.storage(), None).unwrap();
    let stream = TableStream::open(&snapshot, StreamOptions::new(), &environment).unwrap();
    let end = stream.latest(None, StreamLimits::default()).unwrap().unwrap();
    append(&mut table, &[2]);
    now.fetch_add(999, Ordering::Relaxed);
    assert_eq!(stream.latest(Some(&end), StreamLimits::default()).unwrap(), Some(end.clone()));
    now.fetch_add(1, Ordering::Relaxed);
    let next = stream.latest(Some(&end), StreamLimits::default()).unwrap().unwrap();
    assert_eq!(ids(&stream, Some(&end), &next).unwrap(), [2]);
}

/// Returns an environment and its clock, which advances only when the stream sleeps.
fn pausing() -> (Environment, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(EPOCH));
    let (clock, sleeper) = (Arc::clone(&now), Arc::clone(&now));
    let environment =
        Environment::new(move || clock.load(Ordering::Relaxed), Uuid::new_v4).with_sleep(move |pause| {
            sleeper.fetch_add(pause.as_millis() as i64, Ordering::Relaxed);
        });
    (environment, now)
}

#[test]
fn a_waiting_stream_looks_for_commits_once_per_second() {
    let mut table = table();
    append(&mut table, &[1]);
    let (environment, now) = pausing();
    let snapshot = Snapshot::open(&table.storage(), None).unwrap();
    let stream = TableStream::open(&snapshot, StreamOptions::new(), &environment).unwrap();
    let forever = StreamLimits::default();
    let end = stream.wait(None, forever, None).unwrap().unwrap();
    let second = Duration::from_secs(1);
    assert_eq!(stream.wait(Some(&end), forever, Some(second)).unwrap(), None);
    assert_eq!(now.load(Ordering::Relaxed), EPOCH + 1_000);
    assert_eq!(stream.wait(Some(&end), forever, Some(Duration::ZERO)).unwrap(), None);
    append(&mut table, &[2]);
    // The stream has just asked the store, so it sees the new commit only a second later.
    let next = stream.wait(Some(&end), forever, None).unwrap().unwrap();
    assert_eq!(ids(&stream, Some(&end), &next).unwrap(), [2]);
    assert_eq!(now.load(Ordering::Relaxed), EPOCH + 2_000);
}

#[test]
fn a_stream_that_was_closed_or_has_an_end_does_not_wait() {
    let mut table = table();
    append(&mut table, &[1]);
    let (environment, now) = pausing();
    let snapshot = Snapshot::open(&table.storage(), None).unwrap();
    let ended = TableStream::open(&snapshot, StreamOptions::new(), &environment).unwrap();
    ended.end_at_newest();
    let end = ended.wait(None, StreamLimits::default(), None).unwrap().unwrap();
    assert_eq!(ended.wait(Some(&end), StreamLimits::default(), None).unwrap(), None);
    let closed = TableStream::open(&snapshot, StreamOptions::new(), &environment).unwrap();
    closed.close();
    assert_eq!(closed.wait(Some(&end), StreamLimits::default(), None).unwrap(), None);
    assert_eq!(now.load(Ordering::Relaxed), EPOCH);
}

#[test]
fn the_backlog_counts_what_follows_an_offset() {
    let mut table = table();
    append(&mut table, &[1, 2, 3]);
    let stream = stream(&table, StreamOptions::new());
    append(&mut table, &[4]);
    let size = table.size("file-0.parquet");
    let first = stream.latest(None, one_file()).unwrap().unwrap();
    let backlog = stream.backlog(&first);
    assert_eq!((backlog.versions, backlog.files, backlog.bytes), (1, 2, 2 * size));
    let last = stream.latest(Some(&first), StreamLimits::default()).unwrap().unwrap();
    let backlog = stream.backlog(&first);
    assert_eq!((backlog.versions, backlog.files, backlog.bytes), (2, 3, 3 * size));
    assert_eq!(stream.backlog(&last), StreamBacklog::default());
    let largest = StreamOffset::new(stream.table_id(), u64::MAX, Index::File(0), true);
    assert_eq!(stream.backlog(&largest), StreamBacklog::default());
    assert_eq!(stream.newest(), last);
}

#[test]
fn files_of_a_batch_are_pruned_by_statistics() {
    let mut table = table();
    let with_stats = |table: &mut Table, id: i64| {
        let path = table.write_ids(&[id]);
        let mut add = table.add(&path);
        let stats = json!({"numRecords": 1, "minValues": {"id": id}, "maxValues": {"id": id}, "nullCount": {"id": 0}});
        add["add"]["stats"] = Value::String(stats.to_string());
        add
    };
    for ids in [[1, 2], [3, 4]] {
        let adds = ids.map(|id| with_stats(&mut table, id));
        table.commit(adds.to_vec());
    }
    let stream = stream(&table, StreamOptions::new().start(StreamStart::Version(2)));
    let initial = stream_after(&stream);
    for (stream, wanted, others) in [(stream, 4, 5), (initial, 1, 9)] {
        let end = stream.latest(None, StreamLimits::default()).unwrap().unwrap();
        let batch = stream.batch(None, &end).unwrap();
        let files = |id: i64| {
            let listing = batch.listing(Some(&col("id").eq(lit(id)))).unwrap().columns([ListColumn::Path]);
            listing.read().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>()
        };
        assert_eq!((files(wanted), files(others)), (1, 0));
    }
}

#[test]
fn files_that_are_sorted_on_disk_have_the_same_order() {
    let columns = [FileColumn::Path, FileColumn::Size, FileColumn::ModificationTime];
    let schema = Arc::new(Schema::new(columns.map(|column| column.field()).to_vec()));
    let sorted = |most_memory: usize, rows: &[(String, i64)]| -> SortedFiles {
        let mut sorter = Sorter::new(Arc::clone(&schema), most_memory);
        for rows in rows.chunks(700) {
            let paths: Vec<_> = rows.iter().map(|(path, _)| path.as_str()).collect();
            let times: Vec<_> = rows.iter().map(|(_, time)| *time).collect();
            let sizes: Vec<_> = (0..rows.len() as i64).collect();
            let columns = vec![texts(&paths), ints(&sizes), ints(&times)];
            sorter.push(RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()).unwrap();
        }
        sorter.finish().unwrap()
    };
    let paths = |files: &mut SortedFiles, from: usize, to: usize| -> Vec<String> {
        let batches = files.files(from..to).unwrap();
        batches
            .iter()
            .flat_map(|files| {
                files
                    .column(0)
                    .as_string::<i32>()
                    .iter()
                    .map(|path| path.unwrap().to_owned())
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    // Many files have the same modification time, so their order depends on their paths.
    let rows: Vec<_> =
        (0..20_000_i64).map(|row| (format!("{:x}", row * 7_919 % 100_003), row * 31 % 40)).collect();
    let mut wanted: Vec<_> = rows.iter().map(|(path, time)| (*time, path.clone())).collect();
    wanted.sort();
    for most_memory in [usize::MAX, 1, 200_000] {
        let mut files = sorted(most_memory, &rows);
        assert_eq!(files.sizes().len(), rows.len());
        let found = paths(&mut files, 0, rows.len());
        assert!(found.iter().zip(&wanted).all(|(found, (_, path))| found == path), "{most_memory}");
        for (from, to) in [(0, 0), (4_095, 4_097), (8_192, 8_193), (19_999, 20_000)] {
            let part: Vec<_> = wanted[from..to].iter().map(|(_, path)| path.clone()).collect();
            assert_eq!(paths(&mut files, from, to), part, "{most_memory}: {from} to {to}");
        }
    }
}

/// A commit of a random history.
#[derive(Debug, Clone)]
enum Step {
    Append(u8),
    /// Moves the rows of all files into one file.
    Optimize,
    /// Does not change the rows.
    Nothing,
    Checkpoint,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..4u8).prop_map(Step::Append),
        1 => Just(Step::Optimize),
        1 => Just(Step::Nothing),
        1 => Just(Step::Checkpoint),
    ]
}

struct History {
    table: Table,
    live: Vec<(String, i64)>,
    next: i64,
}

impl History {
    fn apply(&mut self, step: &Step) {
        match step {
            Step::Append(files) => {
                let ids: Vec<_> = (self.next..self.next + i64::from(*files)).collect();
                self.next += i64::from(*files);
                let paths = append(&mut self.table, &ids);
                self.live.extend(paths.into_iter().zip(ids));
            }
            Step::Optimize if self.live.is_empty() => {}
            Step::Optimize => {
                let ids: Vec<_> = self.live.iter().map(|(_, id)| *id).collect();
                let path = self.table.write_ids(&ids);
                let removed: BTreeSet<_> = self.live.iter().map(|(path, _)| path.clone()).collect();
                let removes = removed.iter().map(|path| self.table.action("remove", path, None, false));
                let actions: Vec<_> = removes.chain([self.table.action("add", &path, None, false)]).collect();
                self.table.commit(actions);
                self.live.iter_mut().for_each(|(live, _)| live.clone_from(&path));
            }
            Step::Nothing => self.table.commit(vec![json!({"txn": {"appId": "a", "version": 1}})]),
            Step::Checkpoint => {
                let snapshot = Snapshot::open(&self.table.storage(), None).unwrap();
                crate::write_checkpoint(&snapshot, &Environment::system()).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each row is read exactly once, regardless of the limits and of where the reader resumes.
    #[test]
    fn every_row_is_read_once(
        before in prop::collection::vec(step(), 0..5),
        after in prop::collection::vec((step(), any::<bool>(), 1..4u64), 1..8),
    ) {
        let mut history = History { table: table(), live: Vec::new(), next: 0 };
        before.iter().for_each(|step| history.apply(step));
        let (mut reader, mut done) = (stream(&history.table, StreamOptions::new()), None);
        let mut found = Vec::new();
        for (step, begins_again, files) in after.iter().chain([&(Step::Nothing, true, 1)]) {
            history.apply(step);
            if *begins_again {
                reader = stream(&history.table, StreamOptions::new());
                done = done.map(|done: StreamOffset| StreamOffset::parse(&done.to_string()).unwrap());
            }
            while let Some(next) = reader.latest(done.as_ref(), StreamLimits::new(Some(*files), None)).unwrap() {
                if done.as_ref() == Some(&next) {
                    break;
                }
                found.extend(ids(&reader, done.as_ref(), &next).unwrap());
                // Another process reads the same batch.
                if *begins_again {
                    let other = stream(&history.table, StreamOptions::new());
                    let parts = |stream: &TableStream| stream.batch(done.as_ref(), &next).unwrap().parts().unwrap();
                    prop_assert!(done.is_none() || parts(&reader) == parts(&other));
                }
                reader.release(&next).unwrap();
                done = Some(next);
            }
        }
        found.sort_unstable();
        prop_assert_eq!(found, (0..history.next).collect::<Vec<_>>());
    }
}
