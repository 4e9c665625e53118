//! The traces of a feature in the newest version of a table.
//!
//! | feature | what must be removed | who removes it |
//! | --- | --- | --- |
//! | `appendOnly`, `changeDataFeed` | the property | the user |
//! | `checkConstraints` | the constraints | the user |
//! | `invariants` | invariants, and NOT NULL columns | the user |
//! | `allowColumnDefaults`, `generatedColumns`, `identityColumns` | columns of this kind | the user |
//! | `timestampNtz`, `variantType` | columns of the type | the user |
//! | `domainMetadata` | the metadata domains of applications | the applications |
//! | `clustering` | the metadata domain `delta.clustering` | the drop |
//! | `inCommitTimestamp` | its properties; commits then have the times of their files again | the drop |
//! | `rowTracking` | its properties and metadata domain, and the row ids of all files | the drop |
//! | `icebergCompatV1`, `icebergCompatV2`, `icebergCompatV3` | the property, but not the ids in files | the user |
//! | `materializePartitionColumns` | its property, but not the columns in files | the drop |
//! | `vacuumProtocolCheck` | nothing | |
//! | `checkpointProtection` | its property | the drop |
//! | `deletionVectors` | the property, and the deletion vectors of files | the preceding steps |
//! | `typeWidening` | the property, files with older types, and recorded type changes | the preceding steps |
//! | `columnMapping` | the mode; physical names and ids, in the schema and in files | the preceding steps |
//! | `v2Checkpoint` | the checkpoint policy | the preceding steps |
//!
//! The drop also removes a property of the feature that is set but does not enable it.

use crate::error::{Error, Result};
use crate::log::replay::{FileColumn, FileColumns};
use crate::log::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION};
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::files::added_again;
use crate::operations::define::{MAX_COLUMN_ID, unfit_name};
use crate::protocol::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN, ROW_TRACKING_DOMAIN};
use crate::protocol::{
    CLUSTERING_DOMAIN, DomainMetadata, FieldMetadata, MATERIALIZE_PARTITION_COLUMNS, Metadata,
    PROTECTED_BEFORE, PrimitiveType, StructType, TableFeature,
};
use crate::snapshot::Snapshot;

const DELETION_VECTORS: &str = "delta.enableDeletionVectors";
const TYPE_WIDENING: &str = "delta.enableTypeWidening";
const CHECKPOINT_POLICY: &str = "delta.checkpointPolicy";
const TIMESTAMPS: [&str; 3] = ["delta.enableInCommitTimestamps", ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION];
const ROW_TRACKING: [&str; 4] =
    ["delta.enableRowTracking", ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN, "delta.rowTrackingSuspended"];

/// The properties of column mapping.
pub(super) const COLUMN_MAPPING: [&str; 2] = ["delta.columnMapping.mode", MAX_COLUMN_ID];

/// Refuses to drop a feature whose traces are not known, or that has traces which only the user can remove.
///
/// # Errors
/// Returns `Unsupported` or `InvalidArgument`, and `CorruptLog` for an invalid schema.
pub(super) fn ensure_removable(base: &Snapshot, feature: &TableFeature) -> Result<()> {
    if !is_known(feature) {
        return Err(Error::unsupported(format!(
            "the feature '{feature}' cannot be dropped: not all of its traces in files and in the log are known"
        ))
        .with_hint("drop it with a client that implements it"));
    }
    if *feature == TableFeature::ColumnMapping
        && let Some((name, bad)) = unfit_name(base.schema())
    {
        let what = format!("the column name '{name}' contains {bad:?}, which it allows");
        return Err(left(feature, &what).with_hint("rename the column first"));
    }
    match use_in_metadata(feature, base.metadata(), base.schema())? {
        Some(Use { what, hint: Some(hint) }) => Err(left(feature, what).with_hint(hint)),
        Some(Use { hint: None, .. }) | None => Ok(()),
    }
}

/// Returns the property by which the table uses `feature`, for the features whose property the drop itself unsets.
pub(super) fn property_in_use(feature: &TableFeature, metadata: &Metadata) -> Option<&'static str> {
    let (is_used, property) = match feature {
        TableFeature::DeletionVectors => (metadata.is_enabled(DELETION_VECTORS), DELETION_VECTORS),
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview => {
            (metadata.is_enabled(TYPE_WIDENING), TYPE_WIDENING)
        }
        TableFeature::V2Checkpoint => (metadata.wants_v2_checkpoints(), CHECKPOINT_POLICY),
        _ => return None,
    };
    is_used.then_some(property)
}

/// Returns the schema without physical names and ids.
pub(super) fn without_mapping(schema: &StructType) -> StructType {
    schema.with_metadata(&|metadata| {
        let keys: Vec<String> = metadata.entries().keys().filter(|key| is_of_mapping(key)).cloned().collect();
        keys.iter().fold(metadata.clone(), |metadata, key| metadata.with(key, None))
    })
}

/// Removes the traces of `feature` from the newest version, after the preceding steps.
///
/// # Errors
/// Returns `InvalidArgument` if a trace remains, and errors from the store.
pub(super) fn remove(draft: &mut Draft<'_>, feature: &TableFeature) -> Result<()> {
    let base = draft.base;
    if let Some(Use { what, hint }) = use_in_metadata(feature, base.metadata(), base.schema())? {
        return Err(match hint {
            Some(hint) => left(feature, what).with_hint(hint),
            None => left(feature, what),
        });
    }
    match feature {
        TableFeature::CheckpointProtection => unset(draft, &[PROTECTED_BEFORE]),
        TableFeature::InCommitTimestamp => unset(draft, &TIMESTAMPS),
        TableFeature::MaterializePartitionColumns => unset(draft, &[MATERIALIZE_PARTITION_COLUMNS]),
        TableFeature::Clustering => remove_domain(draft, CLUSTERING_DOMAIN)?,
        TableFeature::RowTracking => {
            unset(draft, &ROW_TRACKING);
            remove_domain(draft, ROW_TRACKING_DOMAIN)?;
            remove_row_ids(draft)?;
        }
        TableFeature::DomainMetadata => {
            if let Some(DomainMetadata { domain, .. }) = base.domain_metadata()?.first() {
                return Err(left(feature, &format!("the table has the metadata domain '{domain}'"))
                    .with_hint("have the application that owns the domain remove it first"));
            }
        }
        TableFeature::V2Checkpoint => unset(draft, &[CHECKPOINT_POLICY]),
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview => unset(draft, &[TYPE_WIDENING]),
        TableFeature::DeletionVectors => unset(draft, &[DELETION_VECTORS]),
        TableFeature::ColumnMapping => unset(draft, &COLUMN_MAPPING),
        _ => {}
    }
    Ok(())
}

/// Returns whether it is known which traces the feature leaves in files and in the log.
fn is_known(feature: &TableFeature) -> bool {
    matches!(
        feature,
        TableFeature::AllowColumnDefaults
            | TableFeature::AppendOnly
            | TableFeature::ChangeDataFeed
            | TableFeature::CheckConstraints
            | TableFeature::CheckpointProtection
            | TableFeature::Clustering
            | TableFeature::ColumnMapping
            | TableFeature::DeletionVectors
            | TableFeature::DomainMetadata
            | TableFeature::GeneratedColumns
            | TableFeature::IcebergCompatV1
            | TableFeature::IcebergCompatV2
            | TableFeature::IcebergCompatV3
            | TableFeature::IdentityColumns
            | TableFeature::InCommitTimestamp
            | TableFeature::Invariants
            | TableFeature::MaterializePartitionColumns
            | TableFeature::RowTracking
            | TableFeature::TimestampNtz
            | TableFeature::TypeWidening
            | TableFeature::TypeWideningPreview
            | TableFeature::V2Checkpoint
            | TableFeature::VacuumProtocolCheck
            | TableFeature::VariantType
            | TableFeature::VariantTypePreview
    )
}

/// A use of a feature in the metadata of a table.
pub(super) struct Use {
    what: &'static str,
    /// What the user must do to remove the use; `None` if the drop removes it.
    hint: Option<&'static str>,
}

/// Returns how the metadata uses `feature`; `None` if it does not.
///
/// # Errors
/// Returns `CorruptLog` for an invalid schema.
pub(super) fn use_in_metadata(
    feature: &TableFeature,
    metadata: &Metadata,
    schema: &StructType,
) -> Result<Option<Use>> {
    let unset = Some("set or unset the property first");
    let by_drop = None;
    let (is_used, what, hint) = match feature {
        TableFeature::AppendOnly => {
            (feature.is_active(metadata)?, "the table is append-only (delta.appendOnly)", unset)
        }
        TableFeature::ChangeDataFeed => (
            feature.is_active(metadata)?,
            "the table has a change data feed (delta.enableChangeDataFeed)",
            unset,
        ),
        TableFeature::CheckConstraints => {
            (feature.is_active(metadata)?, "the table has constraints", Some("drop the constraints first"))
        }
        TableFeature::Invariants => (
            feature.is_active(metadata)? || schema.any_field(&mut |field| !field.nullable),
            "columns have invariants or must not be NULL",
            Some("allow NULL in these columns first"),
        ),
        TableFeature::AllowColumnDefaults => (
            feature.is_active(metadata)?,
            "columns have default values",
            Some("drop the default values first"),
        ),
        TableFeature::GeneratedColumns => (
            feature.is_active(metadata)?,
            "the table has generated columns",
            Some("drop these columns first"),
        ),
        TableFeature::IdentityColumns => {
            (feature.is_active(metadata)?, "the table has identity columns", Some("drop these columns first"))
        }
        TableFeature::IcebergCompatV1 | TableFeature::IcebergCompatV2 | TableFeature::IcebergCompatV3 => {
            (feature.is_active(metadata)?, "compatibility with Iceberg is enabled", unset)
        }
        TableFeature::TimestampNtz => (
            schema.any_primitive(&|primitive| primitive == PrimitiveType::TimestampNtz),
            "the table has columns of type timestamp_ntz",
            Some("drop these columns first"),
        ),
        TableFeature::VariantType | TableFeature::VariantTypePreview => (
            schema.holds_variants(),
            "the table has columns of type variant",
            Some("drop these columns first"),
        ),
        TableFeature::ColumnMapping => (
            feature.is_active(metadata)? || schema.any_field(&mut |field| is_mapped(&field.metadata)),
            "the columns of the table are mapped",
            by_drop,
        ),
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview if schema.has_type_changes() => {
            (true, "types of columns were changed", by_drop)
        }
        TableFeature::DeletionVectors
        | TableFeature::TypeWidening
        | TableFeature::TypeWideningPreview
        | TableFeature::V2Checkpoint => {
            (property_in_use(feature, metadata).is_some(), "a property of the table allows its use", by_drop)
        }
        _ => return Ok(None),
    };
    Ok(is_used.then_some(Use { what, hint }))
}

fn is_mapped(column: &FieldMetadata) -> bool {
    column.entries().keys().any(|key| is_of_mapping(key))
}

fn is_of_mapping(key: &str) -> bool {
    key.starts_with("delta.columnMapping.")
}

fn left(feature: &TableFeature, what: &str) -> Error {
    Error::invalid_argument(format!("the feature '{feature}' cannot be dropped: {what}"))
}

fn unset(draft: &mut Draft<'_>, names: &[&str]) {
    for name in names {
        draft.metadata.configuration.remove(*name);
    }
}

/// Removes a metadata domain that the protocol reserves, if the table has it.
fn remove_domain(draft: &mut Draft<'_>, name: &str) -> Result<()> {
    let domains = draft.base.domain_metadata()?.into_iter().filter(|domain| domain.domain == name);
    draft.domains.extend(domains.map(|domain| DomainMetadata { removed: true, ..domain }));
    Ok(())
}

/// Drafts new `add` actions without row ids for files that have row ids.
fn remove_row_ids(draft: &mut Draft<'_>) -> Result<()> {
    for batch in draft.base.replay_files(FileColumns::all())? {
        let batch = batch?;
        let is_null = |column: FileColumn| {
            batch.column_by_name(column.name()).is_none_or(|ids| ids.null_count() == ids.len())
        };
        if !is_null(FileColumn::BaseRowId) || !is_null(FileColumn::DefaultRowCommitVersion) {
            draft
                .files
                .push(added_again(&batch, &[FileColumn::BaseRowId, FileColumn::DefaultRowCommitVersion])?);
        }
    }
    // Other writers may concurrently add files with row ids.
    draft.depends_on_rows = true;
    Ok(())
}
