//! Replaces a table by another one. Protocol: "Change Metadata", "Supported Features".
//!
//! The following is kept from the old table, as in the JVM implementation:
//!
//! | what | why |
//! | --- | --- |
//! | the history | a replacement is a commit like any other; all files are removed in it |
//! | the features of the protocol | "Clients must not remove the feature from the `protocol` action" |
//! | progress of applications, domains of users, high water mark of row ids | they do not depend on the schema |
//! | where in-commit timestamps began, if both tables have them | earlier versions have none |
//! | row tracking, deletion vectors and the checkpoint policy, unless they are given | they say how files are kept |
//!
//! The table gets a new id, which shows readers of a stream that this is another table. New columns get physical names
//! that no column of the old table had, and also unused ids if the columns of the old table were mapped. A table whose
//! columns are not mapped has no highest id, so ids start from one again. That is safe, because no file of the old
//! table remains. The JVM implementation does the same: it removes the highest id together with the mapping.

use super::{FEATURE, MAX_COLUMN_ID, TableDefinition, name_row_tracking_columns};
use crate::error::{Error, Result};
use crate::log::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION, InCommitTimestamps};
use crate::protocol::TableHeader;
use crate::protocol::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN};
use crate::protocol::schema::greatest_id;
use crate::protocol::{
    CLUSTERING_DOMAIN, IcebergCompat, Metadata, PROTECTED_BEFORE, TableFeature, ensure_features,
    ensure_writable, required_features, writer_refusals,
};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;

/// The properties that determine how rows and files are stored.
const KEPT_UNLESS_GIVEN: [&str; 3] =
    ["delta.checkpointPolicy", "delta.enableDeletionVectors", "delta.enableRowTracking"];

impl TableDefinition {
    /// Returns the actions of a commit that replaces the table of `base` by the defined one.
    ///
    /// # Errors
    /// Returns the same errors as [`TableDefinition::resolve`]. `InvalidArgument` also if `base` is append-only, or
    /// if it is clustered and the definition has partition columns, or if Iceberg compatibility forbids its partition
    /// columns. `Unsupported` if `base` cannot be written.
    pub(crate) fn replacing(&self, base: &Snapshot, environment: &Environment) -> Result<TableHeader> {
        ensure_writable(base.protocol(), base.metadata())?;
        base.ensure_removable()?;
        if !self.partition_columns.is_empty() && base.protocol().supports(&TableFeature::Clustering) {
            return Err(Error::invalid_argument(
                "the table has the feature 'clustering', so it cannot be replaced by one with partition columns",
            )
            .with_hint("drop the feature first, or leave the partition columns out"));
        }
        let mut metadata = self.metadata(environment)?;
        let kept = |metadata: &mut Metadata, name: &str| {
            if let Some(value) = base.metadata().property(name) {
                metadata.configuration.insert(name.to_owned(), value.to_owned());
            }
        };
        for name in KEPT_UNLESS_GIVEN {
            if !metadata.configuration.contains_key(name) {
                kept(&mut metadata, name);
            }
        }
        let required = required_features(&metadata.schema()?, &metadata)?;
        let protocol = base.protocol().supporting(&required);
        ensure_features("make", &writer_refusals(&protocol))?;
        metadata.configuration.retain(|key, _| !key.starts_with(FEATURE));
        kept(&mut metadata, PROTECTED_BEFORE);
        if metadata.is_enabled("delta.enableRowTracking") {
            [ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN].iter().for_each(|name| kept(&mut metadata, name));
            name_row_tracking_columns(&mut metadata.configuration, environment);
        }
        let had_timestamps =
            InCommitTimestamps::of(base.protocol(), base.metadata())? != InCommitTimestamps::Never;
        if had_timestamps && InCommitTimestamps::of(&protocol, &metadata)? != InCommitTimestamps::Never {
            [ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP].iter().for_each(|name| kept(&mut metadata, name));
        }
        let mut table = self.finish(protocol, metadata, last_column_id(base.metadata())?, environment)?;
        if table.clustering.is_none()
            && base.domain_metadata()?.iter().any(|domain| domain.domain == CLUSTERING_DOMAIN)
        {
            table.clustering = Some(Vec::new());
        }
        if let Some(iceberg) = IcebergCompat::of(&table.protocol, &table.metadata)? {
            iceberg.check_replacement(base.metadata(), &table.metadata)?;
        }
        Ok(table)
    }
}

/// Returns the highest id that the table has given to a column, or to a part of an array or map. Besides the ids in the
/// schema it considers the property, because the highest id may belong to a column that was dropped.
///
/// # Errors
/// `CorruptLog` if the property is not a number, or if the schema is invalid.
pub(crate) fn last_column_id(metadata: &Metadata) -> Result<i64> {
    let Some(text) = metadata.property(MAX_COLUMN_ID) else { return Ok(0) };
    let noted: i64 = text.trim().parse().map_err(|error| {
        Error::corrupt_log(format!("the table property '{MAX_COLUMN_ID}' is not a number: '{text}'"))
            .with_source(error)
    })?;
    Ok(noted.max(greatest_id(&metadata.schema()?)))
}
