//! Replaces a table with another table. (Protocol: "Change Metadata", "Supported Features".)
//!
//! The following parts of the old table are kept, as in the JVM implementation:
//!
//! | part | reason |
//! | --- | --- |
//! | the history | a replacement is an ordinary commit that removes all files |
//! | the features of the protocol | "Clients must not remove the feature from the `protocol` action" |
//! | progress of applications, domains of users, high water mark of row ids | these do not depend on the schema |
//! | when in-commit timestamps began, if both tables have them | earlier versions have no such timestamps |
//! | row tracking, deletion vectors and checkpoint policy, unless they are given | they concern how files are stored |
//!
//! The table gets a new id, which shows readers of a stream that this is another table. With column mapping, all
//! columns get new physical names. If the old table had column mapping, the columns also get ids that it has never
//! used. Otherwise, the ids start from one, because the old table has no record of the highest id. This is safe,
//! because no file of the old table remains. The JVM implementation does the same: when it removes column mapping from
//! a table, it also removes the record of the highest id.

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

/// The properties that determine how rows and files are stored. They keep the old table's values unless new values are
/// given.
const KEPT_UNLESS_GIVEN: [&str; 3] =
    ["delta.checkpointPolicy", "delta.enableDeletionVectors", "delta.enableRowTracking"];

impl TableDefinition {
    /// Returns the protocol, metadata and clustering for a commit that replaces the table of `base` with the table of
    /// this definition.
    ///
    /// # Errors
    /// Returns the same errors as [`TableDefinition::resolve`]. Also returns `InvalidArgument` if `base` is
    /// append-only, if it is clustered and the definition has partition columns, or if Iceberg compatibility forbids
    /// the definition's partition columns. Returns `Unsupported` if this crate cannot write `base`.
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

/// Returns the highest id that the table has given to a column, or to a part of an array or map. The property is
/// considered in addition to the schema, because the highest id may belong to a column that was dropped.
///
/// # Errors
/// Returns `CorruptLog` if the property is not a number, or if the schema is invalid.
pub(crate) fn last_column_id(metadata: &Metadata) -> Result<i64> {
    let Some(text) = metadata.property(MAX_COLUMN_ID) else { return Ok(0) };
    let noted: i64 = text.trim().parse().map_err(|error| {
        Error::corrupt_log(format!("the table property '{MAX_COLUMN_ID}' is not a number: '{text}'"))
            .with_source(error)
    })?;
    Ok(noted.max(greatest_id(&metadata.schema()?)))
}
