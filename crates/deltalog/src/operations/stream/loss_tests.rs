//! Tests of streams whose first version or later commits no longer exist. Such streams must fail; they must not
//! silently leave out rows.

use std::fs;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use serde_json::{Value, json};
use uuid::Uuid;

use super::tests::{append, offset, one_file, stream};
use super::{
    ChangeHandling, SchemaTracking, StreamLimits, StreamOffset, StreamOptions, StreamStart, TableStream,
};
use crate::error::{Error, ErrorKind, Result};
use crate::log::StagedCommit;
use crate::runtime::environment::Environment;
use crate::scan::changes::test_table::{SCHEMA, Table, metadata, protocol};
use crate::snapshot::Snapshot;

fn options() -> StreamOptions {
    StreamOptions::new().pause(Duration::ZERO)
}

/// Creates a table in which each of the versions 1 to `versions` adds one row, with the version as its value.
fn table(versions: i64) -> Table {
    let mut table = Table::empty();
    table.commit(vec![protocol(), metadata(SCHEMA, &[], false)]);
    for id in 1..=versions {
        append(&mut table, &[id]);
    }
    table
}

fn place(version: u64, index: i64, is_initial: bool) -> StreamOffset {
    StreamOffset::parse(&offset(version, index, is_initial)).unwrap()
}

fn latest(stream: &TableStream, start: Option<&StreamOffset>) -> Result<Option<StreamOffset>> {
    stream.latest(start, StreamLimits::default())
}

fn ids(stream: &TableStream, start: Option<&StreamOffset>, end: &StreamOffset) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    for batch in stream.batch(start, end)?.read(None)? {
        ids.extend(batch?.column(0).as_primitive::<Int64Type>().values());
    }
    ids.sort_unstable();
    Ok(ids)
}

fn ensure_lost<T: std::fmt::Debug>(found: Result<T>) -> Error {
    let error = found.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionNotFound, "{error}");
    assert!(error.table().is_some() && error.hint().is_some(), "{error}");
    error
}

fn log_file(table: &Table, name: &str) -> std::path::PathBuf {
    table.directory.path().join("_delta_log").join(name)
}

fn delete_commit(table: &Table, version: u64) {
    fs::remove_file(log_file(table, &format!("{version:020}.json"))).unwrap();
}

#[test]
fn an_error_says_that_the_first_snapshot_was_cleaned_up() {
    let mut table = table(2);
    let first = stream(&table, options());
    let end = first.latest(None, one_file()).unwrap().unwrap();
    append(&mut table, &[3]);
    crate::write_checkpoint(&Snapshot::open(&table.storage(), None).unwrap(), &Environment::system())
        .unwrap();
    (0..=2).for_each(|version| delete_commit(&table, version));
    let lost = ensure_lost(latest(&stream(&table, options()), Some(&end)));
    assert_eq!(lost.version(), Some(2), "{lost}");
    assert!(
        lost.to_string().contains("snapshot of version 2, with which the stream begins, was cleaned up"),
        "{lost}"
    );
    assert!(lost.hint().unwrap().contains("new checkpoint"), "{lost}");
}

#[test]
fn a_first_batch_that_began_with_the_next_commit_is_not_empty_after_a_restart() {
    let mut table = table(2);
    let first = stream(&table, options().start(StreamStart::Latest));
    assert_eq!(latest(&first, None).unwrap(), None);
    append(&mut table, &[3]);
    let end = latest(&first, None).unwrap().unwrap();
    assert_eq!((end.to_string(), ids(&first, None, &end).unwrap()), (offset(4, -1, false), vec![3]));

    let again = stream(&table, options().start(StreamStart::Latest));
    let lost = ensure_lost(again.batch(None, &end));
    assert!(lost.hint().unwrap().contains("startingVersion"), "{lost}");
    ensure_lost(again.batch(None, &end));
    // A stream of the same query that another process has opened.
    let options = options().start(StreamStart::Latest);
    let other = TableStream::open(first.snapshot(), options, &Environment::system()).unwrap();
    assert_eq!(ids(&other, None, &end).unwrap(), [3]);
}

#[test]
fn a_stream_with_a_pinned_start_begins_there_whenever_it_is_opened() {
    let mut table = table(2);
    let begun = stream(&table, options().start(StreamStart::Latest));
    assert_eq!(begun.start().unwrap(), Some(3));
    let again = |version| stream(&table, options().start(StreamStart::Pinned(version)));
    assert_eq!(latest(&again(3), None).unwrap(), None);
    append(&mut table, &[3]);
    append(&mut table, &[4]);
    let again = |version| stream(&table, options().start(StreamStart::Pinned(version)));
    let end = latest(&again(3), None).unwrap().unwrap();
    assert_eq!(end, place(5, -1, false));
    assert_eq!((again(3).start().unwrap(), ids(&again(3), None, &end).unwrap()), (Some(3), vec![3, 4]));
    // Another process has begun this first batch.
    assert_eq!(ids(&again(3), None, &place(4, -1, false)).unwrap(), [3]);
    assert_eq!(ensure_lost(latest(&again(7), None)).version(), Some(6));
    delete_commit(&table, 4);
    assert_eq!(ensure_lost(latest(&again(5), None)).version(), Some(4));
    assert_eq!(stream(&table, options()).start().unwrap(), None);
}

#[test]
fn a_first_batch_that_ends_where_the_stream_begins_is_refused() {
    let table = table(3);
    let begins_with = |version| stream(&table, options().start(StreamStart::Version(version)));
    let end = place(3, -1, false);
    assert_eq!(ids(&begins_with(2), None, &end).unwrap(), [2]);
    let later = begins_with(3);
    ensure_lost(later.batch(None, &end));
    ensure_lost(later.batch(None, &end));
}

#[test]
fn a_first_batch_is_read_from_the_snapshot_with_which_it_began() {
    let mut table = table(0);
    let paths = append(&mut table, &[1, 2]);
    let options = || options().changes(ChangeHandling::IgnoreDeletes);
    let first = stream(&table, options());
    table.commit(vec![table.remove(&paths[0])]);
    append(&mut table, &[3]);
    let end = latest(&first, None).unwrap().unwrap();
    assert_eq!(end, place(4, -1, false));
    assert_eq!(ids(&first, None, &end).unwrap(), [1, 2, 3]);
    // The end offset does not show with which snapshot the stream began. This stream assumes the newest possible
    // snapshot, which contains only these rows.
    assert_eq!(ids(&stream(&table, options()), None, &end).unwrap(), [2, 3]);
}

#[test]
fn a_batch_whose_last_commits_are_missing_is_refused() {
    let table = table(4);
    delete_commit(&table, 4);
    let stream = stream(&table, options());
    let start = place(3, -1, false);
    assert_eq!(ids(&stream, Some(&start), &place(4, -1, false)).unwrap(), [3]);
    for end in [place(5, -1, false), place(4, 0, false)] {
        let lost = ensure_lost(ids(&stream, Some(&start), &end));
        assert_eq!(lost.version(), Some(4), "{lost}");
    }
    assert_eq!(ids(&stream, Some(&place(4, 0, false)), &place(4, 0, false)).unwrap(), [0; 0]);
}

#[test]
fn a_batch_is_read_at_once_even_if_the_stream_has_just_looked_for_versions() {
    let mut table = table(1);
    let reader = stream(&table, StreamOptions::new().pause(Duration::from_secs(3_600)));
    let start = latest(&reader, None).unwrap().unwrap();
    assert_eq!(latest(&reader, Some(&start)).unwrap().as_ref(), Some(&start));
    append(&mut table, &[2]);
    assert_eq!(ids(&reader, Some(&start), &place(3, -1, false)).unwrap(), [2]);
}

#[test]
fn a_start_after_the_newest_version_is_refused() {
    let mut table = table(2);
    let hour = Duration::from_secs(3_600);
    let reader = stream(&table, StreamOptions::new().pause(hour));
    let next = place(3, -1, false);
    assert_eq!(latest(&reader, Some(&next)).unwrap(), Some(next));
    for start in [place(4, -1, false), place(3, 0, false), place(3, -20, false), place(3, -1, true)] {
        ensure_lost(latest(&reader, Some(&start)));
    }
    // Another process may have seen newer versions than this one.
    append(&mut table, &[3]);
    let start = place(4, -1, false);
    assert_eq!(latest(&reader, Some(&start)).unwrap(), Some(start));
}

#[test]
fn rows_before_a_refused_commit_are_read() {
    let mut table = table(0);
    let paths = append(&mut table, &[1]);
    append(&mut table, &[2]);
    table.commit(vec![table.remove(&paths[0])]);
    let reader = stream(&table, options().start(StreamStart::Version(1)));
    let end = latest(&reader, None).unwrap().unwrap();
    assert_eq!((end.to_string(), ids(&reader, None, &end).unwrap()), (offset(3, -1, false), vec![1, 2]));
    let refused = latest(&reader, Some(&end)).unwrap_err();
    assert_eq!((refused.kind(), refused.version()), (ErrorKind::Unsupported, Some(3)), "{refused}");
}

#[test]
fn a_stream_with_schema_tracking_cannot_tolerate_loss() {
    let table = table(1);
    let options = options().track_schema(SchemaTracking::new(&table.storage())).tolerate_loss(true);
    let snapshot = Snapshot::open(&table.storage(), None).unwrap();
    let error = TableStream::open(&snapshot, options, &Environment::system()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.hint().unwrap().contains("failOnDataLoss"), "{error}");
}

/// Returns the metadata of a table with column mapping.
fn mapped(names: &[&str]) -> Value {
    let field = |name: &&str| {
        json!({"name": name, "type": "long", "nullable": true, "metadata": {
            "delta.columnMapping.id": name.len(), "delta.columnMapping.physicalName": name,
        }})
    };
    let fields: Vec<_> = names.iter().map(field).collect();
    let mut metadata = metadata(&json!({"type": "struct", "fields": fields}).to_string(), &[], false);
    metadata["metaData"]["configuration"] =
        json!({"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"});
    metadata
}

#[test]
fn with_column_mapping_a_start_without_a_known_schema_is_refused() {
    let mut table = Table::empty();
    let features = json!(["columnMapping"]);
    table.commit(vec![
        json!({"protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
        }}),
        mapped(&["id", "more"]),
    ]);
    append(&mut table, &[1]);
    // The newest version drops the column `more`.
    table.commit(vec![mapped(&["id"])]);
    append(&mut table, &[3]);
    let snapshot = Snapshot::open(&table.storage(), None).unwrap();
    crate::write_checkpoint(&snapshot, &Environment::system()).unwrap();
    let start = place(1, -1, false);
    let refused = latest(&stream(&table, options()), Some(&start)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SchemaMismatch, "{refused}");
    delete_commit(&table, 0);
    let refused = ensure_lost(latest(&stream(&table, options()), Some(&start)));
    assert_eq!(refused.version(), Some(1), "{refused}");
    assert!(refused.to_string().contains("column mapping"), "{refused}");
    ensure_lost(ids(&stream(&table, options()), Some(&start), &place(2, -1, false)));
}

fn stage(table: &Table, version: u64, actions: &[Value]) -> StagedCommit {
    let name = format!("{version:020}.{}.json", Uuid::from_u128(version.into()));
    let info = json!({"commitInfo": {"inCommitTimestamp": 1_000 * (version + 1)}});
    let lines: String = std::iter::once(&info).chain(actions).map(|action| format!("{action}\n")).collect();
    let directory = log_file(table, "_staged_commits");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(&name), lines).unwrap();
    StagedCommit::file(&name).unwrap()
}

/// Publishes a staged commit, and deletes its file.
fn publish(table: &Table, version: u64) {
    let name = format!("{version:020}.{}.json", Uuid::from_u128(version.into()));
    let staged = log_file(table, "_staged_commits").join(name);
    fs::rename(staged, log_file(table, &format!("{version:020}.json"))).unwrap();
}

/// Creates a table that is managed by a catalog.
fn managed() -> Table {
    let mut table = Table::empty();
    let mut metadata = metadata(SCHEMA, &[], false);
    metadata["metaData"]["configuration"] = json!({"delta.enableInCommitTimestamps": "true"});
    let protocol = json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["catalogManaged"],
        "writerFeatures": ["catalogManaged", "inCommitTimestamp"],
    }});
    table.commit_as(json!({"inCommitTimestamp": 1_000}), vec![protocol, metadata]);
    table
}

fn open_managed(
    table: &Table,
    staged: impl IntoIterator<Item = StagedCommit>,
    options: StreamOptions,
) -> TableStream {
    let snapshot = Snapshot::builder(&table.storage()).staged_commits(staged).open().unwrap();
    TableStream::open(&snapshot, options, &Environment::system()).unwrap()
}

#[test]
fn a_staged_commit_that_was_published_since_is_read() {
    let mut table = managed();
    let adds = [1, 2].map(|id| {
        let path = table.write_ids(&[id]);
        table.add(&path)
    });
    let staged = [stage(&table, 1, &adds[..1]), stage(&table, 2, &adds[1..])];
    let reader = open_managed(&table, staged, options().start(StreamStart::Version(0)));
    publish(&table, 1);
    let end = reader.latest(None, one_file()).unwrap().unwrap();
    publish(&table, 2);
    let end = latest(&reader, Some(&end)).unwrap().unwrap();
    assert_eq!(end, place(3, -1, false));
    assert_eq!(ids(&reader, None, &end).unwrap(), [1, 2]);
}

#[test]
fn a_staged_commit_that_changes_the_schema_is_recorded() {
    let mut table = managed();
    let checkpoint = tempfile::tempdir().unwrap();
    let location = crate::storage::Storage::open(checkpoint.path().to_str().unwrap(), []).unwrap();
    let options = || options().track_schema(SchemaTracking::new(&location)).start(StreamStart::Version(0));
    let path = table.write_ids(&[1]);
    let one = stage(&table, 1, &[table.add(&path)]);
    let first = open_managed(&table, [one.clone()], options());
    let start = latest(&first, None).unwrap().unwrap();
    assert_eq!(start, place(2, -1, false));

    let mut changed = metadata(SCHEMA, &[], false);
    changed["metaData"]["configuration"] =
        json!({"delta.enableInCommitTimestamps": "true", "delta.appendOnly": "true"});
    let two = stage(&table, 2, &[changed]);
    for is_published in [false, true] {
        let again = open_managed(&table, [one.clone(), two.clone()], options());
        if is_published {
            publish(&table, 2);
        }
        let before = latest(&again, Some(&start)).unwrap().unwrap();
        assert!(before.to_string().contains(r#""reservoirVersion":2,"index":-20"#), "{before}");
        let waiting = latest(&again, Some(&before)).unwrap().unwrap();
        assert_eq!(latest(&again, Some(&waiting)).unwrap(), Some(waiting));
        if is_published {
            let ended = again.release(&before).unwrap_err();
            assert_eq!((ended.kind(), ended.version()), (ErrorKind::SchemaMismatch, Some(2)), "{ended}");
        }
    }
}
