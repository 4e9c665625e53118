//! Sets table properties, the table's name and its description. (Protocol: "Change Metadata".)
//!
//! The module `define::properties` decides which properties users can set.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::draft::Draft;
use super::{enable, features, iceberg};
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::constraints::CHECK;
use crate::operations::define::{ensure_not_kept, ensure_settable};
use crate::protocol::{MATERIALIZE_PARTITION_COLUMNS, Metadata, Protocol, TableFeature};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::write::check_bloom_filters;

const FEATURE: &str = "delta.feature.";
const COLUMN_MAPPING: &str = "delta.columnMapping.mode";
/// The property that contains the table's description in SQL, as in the JVM implementation.
const COMMENT: &str = "comment";

/// Sets `properties`. The property `comment` sets the description of the table.
///
/// # Errors
/// Returns `InvalidArgument` for an unknown property of the protocol, for a value that is not allowed, for a CHECK
/// constraint, and for a property that the table maintains itself. Also returns the errors of [`enable::follow_up`].
pub(super) fn set(draft: &mut Draft<'_>, properties: &BTreeMap<String, String>) -> Result<Operation> {
    ensure_settable(properties)?;
    check_bloom_filters(properties, &draft.schema)?;
    for (name, value) in properties {
        ensure_free(name)?;
        // Instead of this property, the protocol lists the feature.
        match name.strip_prefix(FEATURE) {
            Some(feature) => draft.ask_for([features::named(feature)?]),
            None if name == COMMENT => draft.metadata.description = Some(value.clone()),
            None => {
                draft.metadata.configuration.insert(name.clone(), value.clone());
            }
        }
    }
    draft.ask_for(requested(properties));
    enable::follow_up(draft)?;
    Ok(Operation::new("SET TBLPROPERTIES").parameter("properties", json!(properties).to_string()))
}

/// Returns the protocol and metadata of a new table that has the files of `base`, and additionally has `properties`.
///
/// # Errors
/// Returns the same errors as [`set`] and [`Draft::finish`].
pub(crate) fn with_properties(
    base: &Snapshot,
    properties: &BTreeMap<String, String>,
    environment: &Environment,
) -> Result<(Protocol, Metadata)> {
    let mut draft = Draft::of(base, environment)?;
    if !properties.is_empty() {
        set(&mut draft, properties)?;
        let protocol = draft.protocol()?;
        iceberg::follow_up(&mut draft, &protocol)?;
        iceberg::check_files(&mut draft, &protocol)?;
    }
    let table = draft.into_table()?;
    Ok((table.protocol, table.metadata))
}

/// Removes the properties `names`. The property `comment` stands for the description of the table.
///
/// # Errors
/// Returns `InvalidArgument` for a property that is not set, unless `if_exists` is true, and for a property that only
/// another kind of change may set. Also returns the errors of [`enable::follow_up`].
pub(super) fn unset(draft: &mut Draft<'_>, names: &[String], if_exists: bool) -> Result<Operation> {
    for name in names {
        ensure_free(name)?;
        let removed = match name == COMMENT {
            true => draft.metadata.description.take(),
            false => draft.metadata.configuration.remove(name),
        };
        if removed.is_none() && !if_exists {
            return Err(Error::invalid_argument(format!("the table property '{name}' is not set"))
                .with_hint("leave it out, or ignore properties that are not set"));
        }
    }
    enable::follow_up(draft)?;
    Ok(Operation::new("UNSET TBLPROPERTIES")
        .parameter("properties", json!(names).to_string())
        .parameter("ifExists", if_exists))
}

/// Sets the name of the table.
pub(super) fn set_name(draft: &mut Draft<'_>, name: &str) -> Operation {
    draft.metadata.name = Some(name.to_owned());
    let update = json!({ "name": name, "description": Value::Null });
    // The JVM implementation never changes a table's name, so the history gets the operation that delta-rs records.
    Operation::new("UPDATE TABLE METADATA").parameter("metadataUpdate", update.to_string())
}

/// Sets the description of the table, which SQL calls a comment.
pub(super) fn set_description(draft: &mut Draft<'_>, description: &str) -> Operation {
    draft.metadata.description = Some(description.to_owned());
    Operation::new("SET TBLPROPERTIES").parameter("properties", json!({ COMMENT: description }).to_string())
}

/// Refuses a property that is a CHECK constraint, or that the table maintains itself.
fn ensure_free(name: &str) -> Result<()> {
    if name.starts_with(CHECK) {
        return Err(Error::invalid_argument(format!("the table property '{name}' cannot be set or removed"))
            .with_hint("add or drop the constraint, so that the rows of the table are checked"));
    }
    ensure_not_kept(name)
}

/// Returns the features that these properties request, including features that the table's properties already request
/// without support by its protocol.
fn requested(properties: &BTreeMap<String, String>) -> Vec<TableFeature> {
    let is_on = |name: &str| {
        let value = properties.get(name).map_or("", |value| value.trim());
        value.eq_ignore_ascii_case("true") || (name == COLUMN_MAPPING && !matches!(value, "" | "none"))
    };
    [
        (COLUMN_MAPPING, TableFeature::ColumnMapping),
        ("delta.appendOnly", TableFeature::AppendOnly),
        ("delta.enableChangeDataFeed", TableFeature::ChangeDataFeed),
        ("delta.enableDeletionVectors", TableFeature::DeletionVectors),
        ("delta.enableIcebergCompatV1", TableFeature::IcebergCompatV1),
        ("delta.enableIcebergCompatV2", TableFeature::IcebergCompatV2),
        ("delta.enableIcebergCompatV3", TableFeature::IcebergCompatV3),
        ("delta.enableInCommitTimestamps", TableFeature::InCommitTimestamp),
        (MATERIALIZE_PARTITION_COLUMNS, TableFeature::MaterializePartitionColumns),
        ("delta.enableRowTracking", TableFeature::RowTracking),
        ("delta.enableTypeWidening", TableFeature::TypeWidening),
    ]
    .into_iter()
    .filter(|(name, _)| is_on(name))
    .map(|(_, feature)| feature)
    .collect()
}
