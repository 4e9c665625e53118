//! The options of a write. They are checked against the existing table before any row is written.

use std::collections::BTreeMap;

use crate::commit::{PartitionOverwrite, RowsRead, SaveMode, SchemaMode};
use crate::error::{Error, Result};
use crate::operations::define::alter::{merged, overwritten};
use crate::operations::insert::replacement::ReplaceWhere;
use crate::protocol::TableHeader;
use crate::protocol::{SetTransaction, StructType, ensure_writable};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::write::TableWriteSpec;

/// A request to write data.
///
/// ```
/// use deltalog::{PrimitiveType, SaveMode, StructField, StructType, WriteRequest};
///
/// let schema = StructType::try_new(vec![StructField::new("day", PrimitiveType::Date, true)])?;
/// let mut request = WriteRequest::new(schema, SaveMode::Append);
/// request.partition_by = Some(vec!["day".to_owned()]);
/// # Ok::<(), deltalog::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WriteRequest {
    /// The schema of the data. If the write creates a table, it is also the table's schema.
    pub schema: StructType,
    /// What to do if the table already exists.
    pub mode: SaveMode,
    /// Whether an overwrite replaces all rows, or only the rows of some partitions.
    pub partition_overwrite: PartitionOverwrite,
    /// The partition columns of a new table. An existing table must have the same partition columns. `None` accepts
    /// the partition columns of an existing table.
    pub partition_by: Option<Vec<String>>,
    /// The properties of a new table.
    pub configuration: BTreeMap<String, String>,
    /// The name of a new table.
    pub name: Option<String>,
    /// The description of a new table.
    pub description: Option<String>,
    /// The progress of applications to record with the write. If the table has already recorded the same version of
    /// an application, or a later one, the write counts as already committed and has no effect. (Protocol:
    /// "Transaction Identifiers".)
    pub app_transactions: Vec<SetTransaction>,
    /// The predicate for the rows that an overwrite replaces. If `None`, `partition_overwrite` decides.
    pub replace_where: Option<ReplaceWhere>,
    /// The rows of the table itself from which the data was computed, at the version that is passed to
    /// [`PendingWrite::begin_on`](crate::PendingWrite::begin_on).
    ///
    /// A later commit that changes these rows, or adds rows that would have been read as well, is a conflict, because
    /// the data would now be different. Blind appends by other writers are not conflicts, unless the isolation level
    /// of the table is `Serializable`. A write that does not state what it has read cannot conflict with such changes.
    pub reads: RowsRead,
    /// How the write may change the schema of the table.
    pub schema_mode: SchemaMode,
    /// The size in bytes at which a file is closed and the next one begins. With `None`, the table's setting applies
    /// (`delta.targetFileSize`).
    pub target_file_size: Option<u64>,
    /// The table with its changed schema, if another process has already applied `schema_mode`.
    #[doc(hidden)]
    pub evolved: Option<TableHeader>,
}

impl WriteRequest {
    /// Requests to write data with the schema `schema`, with defaults for all other options.
    pub fn new(schema: StructType, mode: SaveMode) -> Self {
        Self {
            schema,
            mode,
            partition_overwrite: PartitionOverwrite::default(),
            partition_by: None,
            configuration: BTreeMap::new(),
            name: None,
            description: None,
            app_transactions: Vec::new(),
            replace_where: None,
            reads: RowsRead::default(),
            schema_mode: SchemaMode::default(),
            target_file_size: None,
            evolved: None,
        }
    }
}

/// Returns `spec` with the options of `request`: new rows must meet the predicate of `replace_where`, if it checks
/// rows, and files have the requested size.
///
/// # Errors
/// Returns `InvalidArgument` for a file size of zero.
pub(crate) fn requested(spec: TableWriteSpec, request: &WriteRequest) -> Result<TableWriteSpec> {
    let spec = checking(spec, request.replace_where.as_ref());
    match request.target_file_size {
        Some(0) => Err(Error::invalid_argument("files cannot have a target size of 0 bytes")
            .with_hint("pass a size such as 134217728, or leave it out")),
        Some(bytes) => Ok(spec.with_target_file_size(bytes)),
        None => Ok(spec),
    }
}

/// Returns the spec of a write that replaces the rows selected by `replaced`. If requested, new rows must meet its
/// predicate.
pub(crate) fn checking(spec: TableWriteSpec, replaced: Option<&ReplaceWhere>) -> TableWriteSpec {
    match replaced.filter(|replaced| replaced.checks_rows) {
        Some(replaced) => spec.with_check("replaceWhere", &replaced.predicate, &replaced.time_zone),
        None => spec,
    }
}

/// Returns the table with the schema that it has after the write; `None` if the schema does not change.
pub(crate) fn evolved(
    base: &Snapshot,
    request: &WriteRequest,
    environment: &Environment,
) -> Result<Option<TableHeader>> {
    if request.evolved.is_some() {
        return Ok(request.evolved.clone());
    }
    match request.schema_mode {
        SchemaMode::Keep => Ok(None),
        SchemaMode::Merge => merged(base, &request.schema, environment),
        SchemaMode::Overwrite => {
            overwritten(base, &request.schema, request.partition_by.as_deref(), environment)
        }
    }
}

/// Refuses to overwrite the schema if rows with the old schema would remain.
fn check_schema_mode(request: &WriteRequest) -> Result<()> {
    if request.schema_mode != SchemaMode::Overwrite {
        return Ok(());
    }
    let what = match (request.mode, request.partition_overwrite, &request.replace_where) {
        (SaveMode::Overwrite, PartitionOverwrite::Static, None) => return Ok(()),
        (SaveMode::Overwrite, PartitionOverwrite::Dynamic, None) => {
            "an overwrite of some partitions".to_owned()
        }
        (SaveMode::Overwrite, _, Some(replaced)) => {
            format!("an overwrite of the rows for which {} is true", replaced.predicate)
        }
        (mode, ..) => format!("a write in the mode {}", mode.name().to_ascii_lowercase()),
    };
    Err(Error::invalid_argument(format!(
        "{what} cannot overwrite the schema, because rows of the table remain"
    ))
    .with_hint("merge the schema, or overwrite all rows"))
}

/// Checks a request against the existing table.
pub(crate) fn check_existing(snapshot: &Snapshot, request: &WriteRequest) -> Result<()> {
    let metadata = snapshot.metadata();
    if let Some(replaced) = &request.replace_where {
        replaced.check_mode(request.mode, request.partition_overwrite)?;
    }
    ensure_writable(snapshot.protocol(), metadata).map_err(|error| error.at_version(snapshot.version()))?;
    if request.mode == SaveMode::Overwrite {
        snapshot.ensure_removable()?;
    }
    check_schema_mode(request)?;
    if request.schema_mode == SchemaMode::Overwrite {
        return Ok(());
    }
    let same = |wanted: &[String]| {
        wanted.len() == metadata.partition_columns.len()
            && wanted
                .iter()
                .zip(&metadata.partition_columns)
                .all(|(a, b)| a.to_lowercase() == b.to_lowercase())
    };
    if let Some(wanted) = &request.partition_by
        && !same(wanted)
    {
        let list =
            |columns: &[String]| if columns.is_empty() { "nothing".to_owned() } else { columns.join(", ") };
        return Err(Error::schema_mismatch(format!(
            "the table is partitioned by {}, not by {}",
            list(&metadata.partition_columns),
            list(wanted)
        ))
        .with_hint("leave the partition columns out, or write to a new table"));
    }
    Ok(())
}
