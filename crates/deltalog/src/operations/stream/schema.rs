//! Checks whether the rows of another version can be read with the schema of a stream.

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{ColumnMappingMode, MappedSchema, Metadata, Protocol, ensure_readable_with_catalog};
use crate::scan::changes::{PROPERTY, Shape};
use crate::snapshot::Snapshot;

/// Checks that a stream with the schema of `read` can read the rows of `version`, in which the table has `protocol` and
/// `metadata`.
///
/// | the schema of `version` | result |
/// | --- | --- |
/// | only has columns of `read`, with the same or narrower types | the stream continues |
/// | is newer, and has more columns or wider types | an error; a stream that is opened again continues |
/// | has dropped or renamed a column, under column mapping | an error |
///
/// # Errors
/// Returns `TableReplaced`, `SchemaMismatch`, and `Unsupported` for a protocol that this crate cannot read.
pub(super) fn check(read: &Snapshot, version: u64, protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    ensure_same_table(read, version, metadata)?;
    ensure_readable_with_catalog(protocol, metadata)?;
    let mode = ColumnMappingMode::of(protocol, metadata)?;
    let schema = MappedSchema::new(metadata.schema()?, mode)?;
    let other = Shape { schema: &schema, partition_columns: &metadata.partition_columns };
    let own = Shape { schema: read.mapped_schema(), partition_columns: &read.metadata().partition_columns };
    let is_newer = version > read.version();
    let [older, newer] = if is_newer { [&own, &other] } else { [&other, &own] };
    let has_mapping =
        mode != ColumnMappingMode::None || read.mapped_schema().mode() != ColumnMappingMode::None;
    // With column mapping, a column that exists only in the older schema has been dropped or renamed.
    let lost = if has_mapping { older.obstacle(newer) } else { None };
    if let Some(lost) = lost {
        return Err(Error::schema_mismatch(format!(
            "a stream with the schema of version {} cannot read across the change of the schema in version {version}: \
             {lost}",
            read.version()
        ))
        .at_version(version)
        .with_hint("finish the rows before the change with the older schema, then begin with a new checkpoint"));
    }
    let Some(obstacle) = other.obstacle(&own) else { return Ok(()) };
    let error = Error::schema_mismatch(format!(
        "the rows of version {version} cannot be read with the schema of version {}, which the stream has: {obstacle}",
        read.version()
    ))
    .at_version(version);
    Err(match is_newer && own.obstacle(&other).is_none() {
        true => error.with_hint("open the stream again: it continues with the new schema"),
        false => error.with_hint("begin with a new checkpoint"),
    })
}

/// Checks that a commit of `version` has not replaced the table.
///
/// # Errors
/// Returns `TableReplaced` if it has.
pub(super) fn ensure_same_table(read: &Snapshot, version: u64, metadata: &Metadata) -> Result<()> {
    if metadata.id != read.metadata().id {
        return Err(Error::new(
            ErrorKind::TableReplaced,
            format!(
                "the table with the id {} was replaced by one with the id {}",
                read.metadata().id,
                metadata.id
            ),
        )
        .at_version(version)
        .with_hint("begin with a new checkpoint"));
    }
    Ok(())
}

/// Checks that the change data feed is enabled in a version that has this metadata.
///
/// # Errors
/// Returns `VersionNotFound` if it is not enabled.
pub(super) fn ensure_change_feed(version: u64, metadata: &Metadata) -> Result<()> {
    if metadata.has_change_feed() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::VersionNotFound,
        format!("the change data feed was off at version {version}, so that its changes cannot be read"),
    )
    .at_version(version)
    .with_hint(format!(
        "start the stream with a version since which the table property '{PROPERTY}' was true, or read its rows \
         instead of its changes"
    )))
}
