//! Makes the changes that are necessary when a property activates a feature of an existing table.
//!
//! | property | necessary changes | PROTOCOL |
//! | --- | --- | --- |
//! | `delta.columnMapping.mode` | columns get ids; the names in files become physical names | "Column Mapping" |
//! | `delta.enableRowTracking` | the rows of all files get ids | "Row Tracking" |
//! | `delta.enableInCommitTimestamps` | the commit records when the timestamps begin | "In-Commit Timestamps" |
//! | `delta.enableIcebergCompatV1`, `…V2`, `…V3` | see `iceberg` | "Iceberg Compatibility V1", "… V2" |
//!
//! "Iceberg Compatibility V3" is one of the protocol's requests for comments. A change that enables a feature also
//! enables the features that it requires, and sets their properties.

use super::draft::Draft;
use crate::error::{Error, Result};
use crate::log::replay::{add_at, batches_of_adds};
use crate::log::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION};
use crate::operations::define::{MAX_COLUMN_ID, last_column_id, name_row_tracking_columns};
use crate::operations::rewrite::{ListedFile, visit_files};
use crate::protocol::{Add, ColumnMappingMode, Metadata, NewMapping, StructField, TableFeature};
use crate::runtime::parallel;
use crate::write::FOOTER_THREADS;

const MODE: &str = "delta.columnMapping.mode";
const ROW_TRACKING: &str = "delta.enableRowTracking";
const TIMESTAMPS: &str = "delta.enableInCommitTimestamps";

/// Makes the changes that the draft's changed properties require.
///
/// # Errors
/// Returns `InvalidArgument` for a change of the column mapping that would make files unreadable. If numbers of rows
/// are needed, returns `CorruptData` for a file that is not Parquet, or whose number of rows differs from its
/// statistics. Returns `CorruptLog`, and errors from the store, if files cannot be read.
pub(super) fn follow_up(draft: &mut Draft<'_>) -> Result<()> {
    map_columns(draft)?;
    // A property has no effect if the protocol does not support its feature.
    let was_supported = draft.base.protocol().supports(&TableFeature::RowTracking);
    let was_tracking = was_supported && draft.base.metadata().is_enabled(ROW_TRACKING);
    let asks = was_supported
        || draft.features.contains(&TableFeature::RowTracking)
        || !draft.base.metadata().is_enabled(ROW_TRACKING);
    if draft.metadata.is_enabled(ROW_TRACKING) && asks && !was_tracking {
        track_rows(draft)?;
    }
    if !draft.metadata.is_enabled(TIMESTAMPS) {
        // These entries would be wrong if the timestamps were enabled again later.
        draft.metadata.configuration.remove(ENABLEMENT_VERSION);
        draft.metadata.configuration.remove(ENABLEMENT_TIMESTAMP);
    }
    Ok(())
}

/// Enables column mapping if the mode has changed from `none` to `name`. The files keep their column names, which
/// become the physical names.
fn map_columns(draft: &mut Draft<'_>) -> Result<()> {
    let mode = |metadata: &Metadata| {
        metadata.property(MODE).map_or_else(|| "none".to_owned(), |mode| mode.trim().to_ascii_lowercase())
    };
    let (before, after) = (draft.column_mapping(), mode(&draft.metadata));
    // A mode that was set without the feature has had no effect so far. This change must not activate it, unless the
    // change itself sets the mode or adds the feature.
    let asks = after != mode(draft.base.metadata()) || draft.features.contains(&TableFeature::ColumnMapping);
    if before.name() == after || !asks {
        return Ok(());
    }
    if before != ColumnMappingMode::None || after != ColumnMappingMode::Name.name() {
        return Err(Error::invalid_argument(format!(
            "the column mapping mode (table property '{MODE}') cannot be changed from {} to {after}",
            before.name()
        ))
        .with_hint("only the change from none to name keeps the files of the table readable"));
    }
    let mut mapping =
        NewMapping::new(last_column_id(&draft.metadata)?, |field: &StructField| field.name.clone());
    draft.schema = mapping.assign(&draft.schema)?;
    draft.metadata.configuration.insert(MAX_COLUMN_ID.to_owned(), mapping.last_id().to_string());
    draft.features.push(TableFeature::ColumnMapping);
    Ok(())
}

/// Chooses names for the hidden columns that store the row ids of moved rows, and assigns ids to the rows of files
/// that have no ids.
fn track_rows(draft: &mut Draft<'_>) -> Result<()> {
    name_row_tracking_columns(&mut draft.metadata.configuration, draft.environment);
    let mut files = Vec::new();
    visit_files(draft.base, None, |batch, found| {
        for (row, file) in found.into_iter().enumerate() {
            let add = add_at(batch, row)?;
            if add.base_row_id.is_none() || add.default_row_commit_version.is_none() {
                files.push(ListedFile { add, file });
            }
        }
        Ok(())
    })?;
    // Rows are counted exactly. If the statistics stated too few rows, the rows of two files would get the same ids.
    let counted = parallel::each(&files, FOOTER_THREADS, |file| {
        let add = match file.add.base_row_id {
            None => file.counted_certainly(draft.base)?,
            Some(_) => file.add.clone(),
        };
        Ok::<_, Error>(Add { data_change: false, ..add })
    })?;
    draft.files.extend(batches_of_adds(&counted)?);
    // Files that are added concurrently get row ids only if their writers know the feature.
    let was_supported = draft.base.protocol().supports(&TableFeature::RowTracking);
    draft.depends_on_rows |= !was_supported || !draft.files.is_empty();
    Ok(())
}
