//! Changes the clustering columns. (Protocol: "Writer Requirements for Clustered Table".)
//!
//! - "If a new column is included in the clustering columns list, it is required for all table files to have
//!   statistics for these added columns". The change is therefore refused if a file has no NULL count of a new column.
//!   Bounds may be missing, because some values have none in JSON: NaN, infinite numbers, and the last timestamps of
//!   the year 9999, whose upper bound would be rounded up. A concurrent writer may add files that only have statistics
//!   for the old columns, so its commit conflicts with the change.
//! - A table that is no longer clustered keeps the metadata domain of clustering, with an empty list of columns.

use arrow::array::{Array, AsArray};

use super::draft::Draft;
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::log::replay::{FileColumn, FileColumns, path_of};
use crate::operations::define::checked_clustering;
use crate::protocol::{TableFeature, clustering_domain};

/// Clusters the table by `columns`; an empty list turns clustering off.
///
/// # Errors
/// Returns `InvalidArgument` for columns by which the table cannot be clustered, and if a file has no statistics of a
/// new column. Returns `CorruptLog`, and errors from the store, if the files cannot be read.
pub(super) fn cluster_by(draft: &mut Draft<'_>, columns: &[ColumnPath]) -> Result<Operation> {
    let metadata = &draft.metadata;
    let new =
        checked_clustering(columns, &draft.schema, &metadata.partition_columns, &metadata.configuration)?;
    let old = draft.base.clustering_columns()?;
    let added: Vec<_> = new.iter().filter(|path| !old.contains(path)).collect();
    for path in &added {
        ensure_statistics(draft, path)?;
    }
    // Files that other writers add concurrently may lack statistics for the new columns.
    draft.depends_on_rows |= !added.is_empty();
    let supported = draft.base.protocol().supports(&TableFeature::Clustering);
    if new != old || (!supported && !new.is_empty()) {
        draft.features.push(TableFeature::Clustering);
        draft.domains.push(clustering_domain(&new, draft.base.mapped_schema())?);
    }
    let names = |paths: &[Vec<String>]| paths.iter().map(|path| path.join(".")).collect::<Vec<_>>().join(",");
    Ok(Operation::new("CLUSTER BY")
        .parameter("oldClusteringColumns", names(&old))
        .parameter("newClusteringColumns", names(&new)))
}

/// Refuses a column for which a file has no statistics.
fn ensure_statistics(draft: &Draft<'_>, path: &[String]) -> Result<()> {
    let physical = draft.base.mapped_schema().physical_path(path).unwrap_or_default();
    for batch in draft.base.replay_files(FileColumns::of(&[FileColumn::Path, FileColumn::Stats]))? {
        let batch = batch?;
        let texts = batch.column_by_name(FileColumn::Stats.name());
        let texts = texts.and_then(|texts| texts.as_string_opt::<i32>());
        for row in 0..batch.num_rows() {
            let text = texts.filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row));
            if !text.is_some_and(|text| has_statistics(text, &physical)) {
                return Err(Error::invalid_argument(format!(
                    "the table cannot be clustered by '{}': a file has no statistics of the column",
                    path.join(".")
                ))
                .at_path(path_of(&batch, row).unwrap_or_default())
                .with_hint("call recompute_statistics, or choose another column"));
            }
        }
    }
    Ok(())
}

/// Returns whether `stats` contain the NULL count of the column.
fn has_statistics(stats: &str, physical: &[String]) -> bool {
    let Ok(stats) = serde_json::from_str::<serde_json::Value>(stats) else { return false };
    let nulls = physical.iter().try_fold(&stats["nullCount"], |value, part| value.get(part));
    nulls.is_some_and(serde_json::Value::is_u64)
}
