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
//! | `vacuumProtocolCheck` | nothing | |
//! | `timestampNtz`, `variantType` | columns of the type | the user |
//! | `columnMapping` | the mode: the table is replaced by one without | the user |
//! | `deletionVectors` | the property, by the drop; vectors of files | the user |
//! | `typeWidening` | the property, by the drop; changes of types | the user |
//! | `v2Checkpoint` | the checkpoint policy | the drop |

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, new_null_array};

use crate::alter::draft::Draft;
use crate::error::{Error, Result};
use crate::log::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION};
use crate::protocol::{CLUSTERING_DOMAIN, DomainMetadata, Metadata, PrimitiveType, StructType, TableFeature};
use crate::replay::{FileColumn, FileColumns};

/// The domain with the high water mark of row ids.
const ROW_TRACKING_DOMAIN: &str = "delta.rowTracking";

const TIMESTAMPS: [&str; 3] = ["delta.enableInCommitTimestamps", ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION];
const ROW_TRACKING: [&str; 4] = [
    "delta.enableRowTracking",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTrackingSuspended",
];

/// Removes what the newest version has of `feature`.
///
/// # Errors
/// `InvalidArgument` if something is left that only the user can remove, `Unsupported` for a feature that cannot be
/// dropped. Also errors of the store.
pub(super) fn remove(draft: &mut Draft<'_>, feature: &TableFeature) -> Result<()> {
    let base = draft.base;
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
    match use_in_metadata(feature, &draft.metadata, &draft.schema)? {
        Some((what, hint)) => Err(left(feature, what).with_hint(hint)),
        None => Ok(()),
    }
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
    let any_key = |matches: fn(&str) -> bool| {
        schema.any_field(&mut |field| field.metadata.entries().keys().any(|key| matches(key)))
    };
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
        TableFeature::TimestampNtz => (
            schema.any_primitive(&|primitive| primitive == PrimitiveType::TimestampNtz),
            "the table has columns of the type timestamp_ntz",
            "drop these columns first",
        ),
        TableFeature::VariantType | TableFeature::VariantTypePreview => {
            (schema.holds_variants(), "the table has columns of the type variant", "drop these columns first")
        }
        TableFeature::ColumnMapping => (
            feature.is_active(metadata)? || any_key(|key| key.starts_with("delta.columnMapping.")),
            "the columns of the table are mapped",
            "replace the table by one without column mapping first",
        ),
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview => (
            metadata.is_enabled("delta.enableTypeWidening") || any_key(|key| key == "delta.typeChanges"),
            "types of columns were changed",
            "overwrite the schema together with all rows first",
        ),
        TableFeature::DeletionVectors => (
            metadata.is_enabled("delta.enableDeletionVectors"),
            "the table may get deletion vectors (delta.enableDeletionVectors)",
            unset,
        ),
        TableFeature::V2Checkpoint => (
            metadata.wants_v2_checkpoints(),
            "the table gets checkpoints of version 2 (delta.checkpointPolicy)",
            unset,
        ),
        _ => return Ok(None),
    };
    Ok(is_used.then_some((what, hint)))
}

/// Returns whether a file of `batch` has a deletion vector.
pub(super) fn has_vectors(batch: &RecordBatch) -> bool {
    batch
        .column_by_name(FileColumn::DeletionVector.name())
        .is_some_and(|column| column.null_count() < column.len())
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
            draft.files.push(without_row_ids(&batch)?);
        }
    }
    // Files that others add meanwhile have row ids.
    draft.depends_on_rows = true;
    Ok(())
}

/// Returns the same `add` actions without row ids, for a commit that adds no rows.
fn without_row_ids(adds: &RecordBatch) -> Result<RecordBatch> {
    let schema = adds.schema();
    let columns = schema.fields().iter().zip(adds.columns()).map(|(field, column)| {
        let is = |column: FileColumn| field.name() == column.name();
        if is(FileColumn::DataChange) {
            Arc::new(BooleanArray::from(vec![false; adds.num_rows()])) as ArrayRef
        } else if is(FileColumn::BaseRowId) || is(FileColumn::DefaultRowCommitVersion) {
            new_null_array(field.data_type(), adds.num_rows())
        } else {
            Arc::clone(column)
        }
    });
    RecordBatch::try_new(adds.schema(), columns.collect())
        .map_err(|error| Error::corrupt_log("the files cannot be added again").with_source(error))
}
