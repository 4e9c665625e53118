//! The actions in a checkpoint that are not file actions. Protocol: "Checkpoints", "Transaction Identifiers", "Domain
//! Metadata".
//!
//! - To be written to Parquet, they are first converted to JSON. When they are read, they are converted back through
//!   JSON.
//! - The progress of an application expires after `delta.setTransactionRetentionDuration`, if the table has that
//!   property. If the newest progress of an application has expired, an older one does not take its place.
//! - Progress without a time never expires, because its age is unknown, and if it were left out, the application would
//!   write its data again. (The JVM connector leaves it out.)

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::error::{Error, Result};
use crate::log::replay::string_map;
use crate::protocol::properties::interval_ms;
use crate::protocol::{Action, CheckpointMetadata, SetTransaction};
use crate::snapshot::Snapshot;

/// Returns the actions of a checkpoint by the V1 spec, except file actions.
///
/// # Errors
/// `CorruptLog`, and errors from the store.
pub(super) fn v1_actions(snapshot: &Snapshot, now_ms: i64) -> Result<Vec<Action>> {
    let mut actions =
        vec![Action::Protocol(snapshot.protocol().clone()), Action::Metadata(snapshot.metadata().clone())];
    let retention = snapshot.metadata().property("delta.setTransactionRetentionDuration");
    let expired_ms = retention.and_then(interval_ms).map(|retention| now_ms.saturating_sub(retention));
    let is_kept = |transaction: &SetTransaction| match (transaction.last_updated, expired_ms) {
        (Some(updated), Some(expired)) => updated > expired,
        _ => true,
    };
    actions.extend(snapshot.app_transactions()?.into_iter().filter(is_kept).map(Action::Txn));
    actions.extend(snapshot.domain_metadata()?.into_iter().map(Action::DomainMetadata));
    Ok(actions)
}

/// Returns the actions of a checkpoint by the V2 spec, except file actions and references to sidecars.
///
/// # Errors
/// Returns the same errors as [`v1_actions`].
pub(super) fn v2_actions(snapshot: &Snapshot, now_ms: i64) -> Result<Vec<Action>> {
    let version = i64::try_from(snapshot.version())
        .map_err(|_| Error::corrupt_log("the version does not fit in an i64"))?;
    let mut actions = vec![Action::CheckpointMetadata(CheckpointMetadata { version, tags: None })];
    actions.extend(v1_actions(snapshot, now_ms)?);
    Ok(actions)
}

/// Returns the columns of [`v1_actions`]. Protocol: "Checkpoint Schema".
pub(super) fn v1_fields() -> Vec<Field> {
    let format = action("format", vec![text("provider"), map("options")]);
    vec![
        action("txn", vec![text("appId"), long("version"), long("lastUpdated")]),
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
    ]
}

/// Returns the columns of [`v2_actions`] and of the references to sidecars.
pub(super) fn v2_fields() -> Vec<Field> {
    let sidecar = vec![text("path"), long("sizeInBytes"), long("modificationTime"), map("tags")];
    let mut fields = v1_fields();
    fields.push(action("checkpointMetadata", vec![long("version"), map("tags")]));
    fields.push(action("sidecar", sidecar));
    fields
}

/// Converts `actions`, which must not be file actions, to rows of a checkpoint with the columns of `schema`.
///
/// # Errors
/// `CorruptLog` if the actions do not fit these columns.
pub(super) fn rows(actions: &[Action], schema: &SchemaRef) -> Result<RecordBatch> {
    let failed = |error: ArrowError| {
        Error::corrupt_log("the table's actions do not fit a checkpoint").with_source(error)
    };
    let known = v2_fields();
    let is_known = |field: &&Arc<Field>| known.iter().any(|known| known.name() == field.name());
    let own = Schema::new(schema.fields().iter().filter(is_known).cloned().collect::<Fields>());
    let lines = actions.iter().map(Action::to_json_line).collect::<Result<Vec<_>>>()?.join("\n");
    let mut reader = arrow::json::ReaderBuilder::new(Arc::new(own))
        .with_batch_size(actions.len())
        .build(Cursor::new(lines))
        .map_err(failed)?;
    let batch =
        reader.next().ok_or_else(|| Error::corrupt_log("the table has no actions"))?.map_err(failed)?;
    let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
        Some(column) => Arc::clone(column),
        None => new_null_array(field.data_type(), batch.num_rows()),
    };
    RecordBatch::try_new(Arc::clone(schema), schema.fields().iter().map(column).collect()).map_err(failed)
}

fn action(name: &str, fields: Vec<Field>) -> Field {
    Field::new(name, DataType::Struct(fields.into()), true)
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

fn texts(name: &str) -> Field {
    Field::new_list(name, Field::new("element", DataType::Utf8, true), true)
}

fn int(name: &str) -> Field {
    Field::new(name, DataType::Int32, true)
}

fn long(name: &str) -> Field {
    Field::new(name, DataType::Int64, true)
}

fn map(name: &str) -> Field {
    Field::new(name, string_map(), true)
}
