//! What the newest version has of a feature.
//!
//! | feature | what must be gone | who removes it |
//! | --- | --- | --- |
//! | `appendOnly`, `changeDataFeed` | the property | the user |
//! | `checkConstraints` | the constraints | the user |
//! | `invariants` | invariants, and columns that must not be NULL | the user |
//! | `allowColumnDefaults`, `generatedColumns`, `identityColumns` | such columns | the user |
//! | `domainMetadata` | the domains of applications | the applications |
//! | `clustering` | the domain `delta.clustering` | the drop |
//! | `inCommitTimestamp` | its properties; times are those of the files again | the drop |
//! | `rowTracking` | its properties and its domain, and the ids of all files | the drop |
//! | `icebergCompatV1`, `icebergCompatV2` | the property; ids that files have stay | the user |
//! | `vacuumProtocolCheck` | nothing | |
//! | `timestampNtz`, `variantType` | columns of the type | the user |
//! | `columnMapping` | the mode: the table is replaced by one without | the user |
//! | `deletionVectors` | the property, and vectors of files | the user |
//! | `typeWidening` | the property, and changes of types | the user |
//! | `v2Checkpoint` | the checkpoint policy | the user |
//!
//! What makes versions use a feature of readers is for the user to end, by a version of its own: the drop must wait
//! until all older versions have expired, and that begins with this version. A property that is set and asks for
//! nothing is removed by the drop.

use crate::alter::draft::Draft;
use crate::alter::files::added_again;
use crate::error::{Error, Result};
use crate::log::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION};
use crate::protocol::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN, ROW_TRACKING_DOMAIN};
use crate::protocol::{
    CLUSTERING_DOMAIN, DomainMetadata, FieldMetadata, Metadata, PrimitiveType, StructType, TableFeature,
};
use crate::replay::{FileColumn, FileColumns, has_vectors};

const TIMESTAMPS: [&str; 3] = ["delta.enableInCommitTimestamps", ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION];
const ROW_TRACKING: [&str; 4] =
    ["delta.enableRowTracking", ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN, "delta.rowTrackingSuspended"];

/// Removes what the newest version has of `feature`.
///
/// # Errors
/// `InvalidArgument` if something is left that only the user can remove, `Unsupported` for a feature that cannot be
/// dropped. Also errors of the store.
pub(super) fn remove(draft: &mut Draft<'_>, feature: &TableFeature) -> Result<()> {
    let base = draft.base;
    if let Some((what, hint)) = use_in_metadata(feature, base.metadata(), base.schema())? {
        return Err(left(feature, what).with_hint(hint));
    }
    match feature {
        TableFeature::VacuumProtocolCheck => {}
        TableFeature::InCommitTimestamp => unset(draft, &TIMESTAMPS),
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
        TableFeature::V2Checkpoint => unset(draft, &["delta.checkpointPolicy"]),
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview => {
            unset(draft, &["delta.enableTypeWidening"]);
        }
        TableFeature::DeletionVectors => {
            unset(draft, &["delta.enableDeletionVectors"]);
            for batch in
                base.replay_files(FileColumns::of(&[FileColumn::Path, FileColumn::DeletionVector]))?
            {
                if has_vectors(&batch?) {
                    return Err(left(feature, "files of the table have deletion vectors").with_hint(
                        "overwrite the rows of these files, or purge them with a client that can",
                    ));
                }
            }
        }
        TableFeature::AppendOnly
        | TableFeature::AllowColumnDefaults
        | TableFeature::ChangeDataFeed
        | TableFeature::CheckConstraints
        | TableFeature::ColumnMapping
        | TableFeature::GeneratedColumns
        | TableFeature::IcebergCompatV1
        | TableFeature::IcebergCompatV2
        | TableFeature::IdentityColumns
        | TableFeature::Invariants
        | TableFeature::TimestampNtz
        | TableFeature::VariantType
        | TableFeature::VariantTypePreview => {}
        _ => {
            return Err(Error::unsupported(format!(
                "the feature '{feature}' cannot be dropped: what it leaves in files and in the log is not known well \
                 enough"
            ))
            .with_hint("drop it with a client that implements it"));
        }
    }
    Ok(())
}

/// Returns what in the metadata makes use of `feature`, and what users can do about it.
///
/// # Errors
/// `CorruptLog` for an invalid schema.
pub(super) fn use_in_metadata(
    feature: &TableFeature,
    metadata: &Metadata,
    schema: &StructType,
) -> Result<Option<(&'static str, &'static str)>> {
    let unset = "set or unset the property first";
    let unset_and_wait = "set or unset the property first; the feature can be dropped when the versions before have \
                          expired";
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
            (feature.is_active(metadata)?, "the table has constraints", "drop the constraints first")
        }
        TableFeature::Invariants => (
            feature.is_active(metadata)? || schema.any_field(&mut |field| !field.nullable),
            "columns have invariants or must not be NULL",
            "allow NULL in these columns first",
        ),
        TableFeature::AllowColumnDefaults => {
            (feature.is_active(metadata)?, "columns have default values", "drop the default values first")
        }
        TableFeature::GeneratedColumns => {
            (feature.is_active(metadata)?, "the table has generated columns", "drop these columns first")
        }
        TableFeature::IdentityColumns => {
            (feature.is_active(metadata)?, "the table has identity columns", "drop these columns first")
        }
        TableFeature::IcebergCompatV1 | TableFeature::IcebergCompatV2 => {
            (feature.is_active(metadata)?, "the table is to be compatible with Iceberg", unset)
        }
        TableFeature::TimestampNtz => (
            schema.any_primitive(&|primitive| primitive == PrimitiveType::TimestampNtz),
            "the table has columns of the type timestamp_ntz",
            "drop these columns first",
        ),
        TableFeature::VariantType | TableFeature::VariantTypePreview => {
            (schema.holds_variants(), "the table has columns of the type variant", "drop these columns first")
        }
        TableFeature::ColumnMapping => (
            feature.is_active(metadata)? || schema.any_field(&mut |field| is_mapped(&field.metadata)),
            "the columns of the table are mapped",
            "replace the table by one without column mapping first",
        ),
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview
            if metadata.is_enabled("delta.enableTypeWidening") =>
        {
            (true, "types of columns may change (delta.enableTypeWidening)", unset_and_wait)
        }
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview => (
            schema.has_type_changes(),
            "types of columns were changed",
            "overwrite the schema together with all rows first",
        ),
        TableFeature::DeletionVectors => (
            metadata.is_enabled("delta.enableDeletionVectors"),
            "the table may get deletion vectors (delta.enableDeletionVectors)",
            unset_and_wait,
        ),
        TableFeature::V2Checkpoint => (
            metadata.wants_v2_checkpoints(),
            "the table gets checkpoints of version 2 (delta.checkpointPolicy)",
            unset_and_wait,
        ),
        _ => return Ok(None),
    };
    Ok(is_used.then_some((what, hint)))
}

fn is_mapped(column: &FieldMetadata) -> bool {
    column.entries().keys().any(|key| key.starts_with("delta.columnMapping."))
}

fn left(feature: &TableFeature, what: &str) -> Error {
    Error::invalid_argument(format!("the feature '{feature}' cannot be dropped: {what}"))
}

fn unset(draft: &mut Draft<'_>, names: &[&str]) {
    for name in names {
        draft.metadata.configuration.remove(*name);
    }
}

/// Removes a domain that the protocol reserves, if the table has it.
fn remove_domain(draft: &mut Draft<'_>, name: &str) -> Result<()> {
    let domains = draft.base.domain_metadata()?.into_iter().filter(|domain| domain.domain == name);
    draft.domains.extend(domains.map(|domain| DomainMetadata { removed: true, ..domain }));
    Ok(())
}

/// Adds all files with row ids again without these.
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
    // Files that others add meanwhile have row ids.
    draft.depends_on_rows = true;
    Ok(())
}
