//! Writing checkpoints. Protocol: "Checkpoints", "V1 Spec", "V2 Spec", "Classic checkpoint".
//!
//! - A checkpoint has the classic name, which all readers know. It follows the V1 spec, which every table allows,
//!   or the V2 spec with all actions in one file if the table's policy asks for V2 checkpoints.
//! - A checkpoint holds the protocol, the metadata, every application's newest progress, every live domain,
//!   every live file, and the tombstones that have not expired.
//! - A checkpoint appears whole or not at all, and `_last_checkpoint` is written after it.
//! - Checkpoints are an optimization: failing to write one is logged and never fails the commit.

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, StructArray, new_null_array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::log::name::LogFileName;
use crate::log::{LastCheckpoint, LogSegment};
use crate::panics::caught;
use crate::protocol::properties::interval_ms;
use crate::protocol::{Action, CheckpointMetadata, TableFeature};
use crate::replay::{FileColumn, FileColumns, remove_fields, string_map};
use crate::snapshot::Snapshot;
use crate::storage::Storage;

const DEFAULT_INTERVAL: u64 = 10;
const DEFAULT_RETENTION_MS: i64 = 7 * 24 * 3600 * 1000;

/// Writes the checkpoint of `snapshot`, and the hint that names it.
///
/// # Errors
/// `CorruptLog`, and errors of the store. They leave the table unchanged.
pub fn write_checkpoint(snapshot: &Snapshot, environment: &Environment) -> Result<()> {
    write(snapshot, environment)
        .map_err(|error| error.in_table(snapshot.storage().url()).at_version(snapshot.version()))
}

/// Writes a checkpoint if `version`, just committed, is due for one.
pub(crate) fn after_commit(
    storage: &Storage,
    base: Option<&Snapshot>,
    version: u64,
    environment: &Environment,
) {
    let interval = base
        .and_then(|base| base.metadata().property("delta.checkpointInterval")?.trim().parse().ok())
        .filter(|interval| *interval > 0);
    if version == 0 || !version.is_multiple_of(interval.unwrap_or(DEFAULT_INTERVAL)) {
        return;
    }
    let write = || {
        let snapshot = match base {
            // A checkpoint must be of its own version, even if other writers have committed since.
            Some(base) => base.refresh().and_then(|newest| {
                if newest.version() == version { Ok(newest) } else { Snapshot::open(storage, Some(version)) }
            }),
            None => Snapshot::open(storage, Some(version)),
        };
        snapshot.and_then(|snapshot| write_checkpoint(&snapshot, environment))
    };
    // A commit that stands must not fail because a thread cannot be started or an Arrow array exceeds 2 GiB.
    let written = caught(write, |panic| {
        Error::new(ErrorKind::Unavailable, format!("writing the checkpoint panicked with '{panic}'"))
    });
    if let Err(error) = written {
        tracing::warn!(
            table = storage.url(),
            version,
            %error,
            "the commit succeeded, but its checkpoint could not be written"
        );
    }
}

fn write(snapshot: &Snapshot, environment: &Environment) -> Result<()> {
    let metadata = snapshot.metadata();
    // Statistics as structs are not written yet: a table that wants them gets JSON, also where it wants structs
    // only, so that the statistics are not lost.
    let with_stats = metadata.is_enabled("delta.checkpoint.writeStatsAsStruct")
        || metadata
            .property("delta.checkpoint.writeStatsAsJson")
            .is_none_or(|value| !value.trim().eq_ignore_ascii_case("false"));
    let add_columns: Vec<FileColumn> =
        FileColumn::ALL.into_iter().filter(|column| with_stats || *column != FileColumn::Stats).collect();
    let is_v2 = metadata.wants_v2_checkpoints()
        && snapshot.protocol().reader_features().contains(&TableFeature::V2Checkpoint);
    let schema = checkpoint_schema(&add_columns, is_v2);
    let properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_created_by(created_by()).build();
    let failed = |error: parquet::errors::ParquetError| {
        Error::corrupt_log("the checkpoint cannot be written").with_source(error)
    };
    let mut writer =
        ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties)).map_err(failed)?;
    let mut size = 0;
    let table_actions = table_actions(snapshot, &schema, is_v2)?;
    size += table_actions.num_rows();
    writer.write(&table_actions).map_err(failed)?;
    let mut files = 0;
    for batch in snapshot.replay_files(FileColumns::of(&add_columns))? {
        let batch = wrapped("add", batch?, &schema)?;
        files += batch.num_rows();
        writer.write(&batch).map_err(failed)?;
    }
    for batch in tombstones(snapshot, environment.now_ms())? {
        let batch = wrapped("remove", batch?, &schema)?;
        size += batch.num_rows();
        writer.write(&batch).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(failed)?;
    let hint = LastCheckpoint {
        version: snapshot.version(),
        size: i64::try_from(size + files).unwrap_or(i64::MAX),
        size_in_bytes: i64::try_from(bytes.len()).ok(),
        num_of_add_files: i64::try_from(files).ok(),
        ..LastCheckpoint::default()
    };
    snapshot.storage().put(&LogFileName::ClassicCheckpoint(snapshot.version()).path(), bytes.into())?;
    if is_ahead(snapshot.storage(), snapshot.version())? {
        return Ok(());
    }
    hint.write(snapshot.storage())
}

/// Returns whether `_last_checkpoint` points at a newer checkpoint than that of `version`, and one that exists.
fn is_ahead(storage: &Storage, version: u64) -> Result<bool> {
    let Some(hint) = LastCheckpoint::read(storage)?.filter(|hint| hint.version > version) else {
        return Ok(false);
    };
    let found = LogSegment::find(storage, None)?.checkpoint;
    Ok(found.is_some_and(|found| found.version >= hint.version))
}

fn created_by() -> String {
    format!("deltalog version {}", env!("CARGO_PKG_VERSION"))
}

/// The columns of a checkpoint. Protocol: "Checkpoint Schema".
fn checkpoint_schema(add_columns: &[FileColumn], is_v2: bool) -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let long = |name: &str| Field::new(name, DataType::Int64, true);
    let int = |name: &str| Field::new(name, DataType::Int32, true);
    let texts = |name: &str| Field::new_list(name, Field::new("element", DataType::Utf8, true), true);
    let map = |name: &str| Field::new(name, string_map(), true);
    let action =
        |name: &str, fields: Vec<Field>| Field::new(name, DataType::Struct(Fields::from(fields)), true);
    let format = action("format", vec![text("provider"), map("options")]);
    let mut actions = vec![
        action("txn", vec![text("appId"), long("version"), long("lastUpdated")]),
        action("add", add_columns.iter().map(|column| column.field()).collect()),
        action("remove", remove_fields()),
        action(
            "metaData",
            vec![
                text("id"),
                text("name"),
                text("description"),
                format,
                text("schemaString"),
                texts("partitionColumns"),
                map("configuration"),
                long("createdTime"),
            ],
        ),
        action(
            "protocol",
            vec![
                int("minReaderVersion"),
                int("minWriterVersion"),
                texts("readerFeatures"),
                texts("writerFeatures"),
            ],
        ),
        action(
            "domainMetadata",
            vec![text("domain"), text("configuration"), Field::new("removed", DataType::Boolean, true)],
        ),
    ];
    if is_v2 {
        actions.push(action("checkpointMetadata", vec![long("version"), map("tags")]));
    }
    Arc::new(Schema::new(actions))
}

/// Everything that is not about files, as rows. They go through JSON, as they do when they are read.
fn table_actions(snapshot: &Snapshot, schema: &SchemaRef, is_v2: bool) -> Result<RecordBatch> {
    let mut actions =
        vec![Action::Protocol(snapshot.protocol().clone()), Action::Metadata(snapshot.metadata().clone())];
    actions.extend(snapshot.app_transactions()?.into_iter().map(Action::Txn));
    actions.extend(snapshot.domain_metadata()?.into_iter().map(Action::DomainMetadata));
    if is_v2 {
        let version = i64::try_from(snapshot.version())
            .map_err(|_| Error::corrupt_log("the version does not fit in an i64"))?;
        actions.push(Action::CheckpointMetadata(CheckpointMetadata { version, tags: None }));
    }
    let lines = actions.iter().map(Action::to_json_line).collect::<Result<Vec<_>>>()?.join("\n");
    let failed = |error: arrow::error::ArrowError| {
        Error::corrupt_log("the table's actions do not fit a checkpoint").with_source(error)
    };
    let mut reader = arrow::json::ReaderBuilder::new(Arc::clone(schema))
        .with_batch_size(actions.len())
        .build(Cursor::new(lines))
        .map_err(failed)?;
    reader.next().ok_or_else(|| Error::corrupt_log("the table has no actions"))?.map_err(failed)
}

/// Rows of one file action as rows of a checkpoint.
fn wrapped(action: &str, batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let failed = |error: arrow::error::ArrowError| {
        Error::corrupt_log("file actions do not fit a checkpoint").with_source(error)
    };
    let columns = schema
        .fields()
        .iter()
        .map(|field| -> Result<ArrayRef> {
            let DataType::Struct(fields) = field.data_type() else {
                return Ok(new_null_array(field.data_type(), rows));
            };
            if field.name() != action {
                return Ok(new_null_array(field.data_type(), rows));
            }
            let children = fields
                .iter()
                .map(|child| match child.name().as_str() {
                    // A checkpoint changes no data.
                    "dataChange" => Ok(Arc::new(BooleanArray::from(vec![false; rows])) as ArrayRef),
                    name => batch
                        .column_by_name(name)
                        .cloned()
                        .ok_or_else(|| Error::corrupt_log(format!("file actions lack '{name}'"))),
                })
                .collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StructArray::try_new(fields.clone(), children, None).map_err(failed)?))
        })
        .collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(failed)
}

/// The tombstones that have not expired. Protocol: "Add File and Remove File".
fn tombstones(snapshot: &Snapshot, now_ms: i64) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
    let retention = match snapshot.metadata().property("delta.deletedFileRetentionDuration") {
        None => Some(DEFAULT_RETENTION_MS),
        // An interval that is not understood expires nothing.
        Some(text) => interval_ms(text),
    };
    let oldest = retention.map_or(i64::MIN, |retention| now_ms.saturating_sub(retention));
    Ok(snapshot.replay_removes()?.map(move |batch| unexpired(&batch?, oldest)))
}

fn unexpired(batch: &RecordBatch, oldest: i64) -> Result<RecordBatch> {
    use arrow::array::AsArray;
    let times =
        batch.column_by_name("deletionTimestamp").and_then(|column| column.as_primitive_opt::<Int64Type>());
    let times = times.ok_or_else(|| Error::corrupt_log("remove actions lack 'deletionTimestamp'"))?;
    // Without a time a tombstone is as old as can be.
    let keep: BooleanArray =
        (0..times.len()).map(|row| Some(times.is_valid(row) && times.value(row) > oldest)).collect();
    filter_record_batch(batch, &keep)
        .map_err(|error| Error::corrupt_log("remove actions cannot be filtered").with_source(error))
}
