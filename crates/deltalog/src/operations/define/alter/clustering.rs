//! Changes the clustering columns. (Protocol: "Writer Requirements for Clustered Table".)
//!
//! - "If a new column is included in the clustering columns list, it is required for all table files to have
//!   statistics for these added columns". The change is therefore refused if the statistics of a file lack a new
//!   column, so that `recompute_statistics` would add them. Some values have no bounds in JSON, such as NaN and
//!   infinite numbers, so bounds may be missing if this crate has computed the statistics. A concurrent writer may add
//!   files that only have statistics for the old columns, so its commit conflicts with the change.
//! - A table that is no longer clustered keeps the metadata domain of clustering, with an empty list of columns.

use super::draft::Draft;
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::log::replay::{FileColumns, adds_of};
use crate::operations::define::checked_clustering;
use crate::protocol::{Add, TableFeature, clustering_domain};
use crate::values::stats::{OF_ROWS, StatsTree};

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
    for batch in draft.base.replay_files(FileColumns::all())? {
        if let Some(add) = adds_of(&batch?)?.into_iter().find(|add| lacks_statistics(add, &physical)) {
            return Err(Error::invalid_argument(format!(
                "the table cannot be clustered by '{}': a file has no statistics of the column",
                path.join(".")
            ))
            .at_path(add.path)
            .with_hint("call recompute_statistics, or choose another column"));
        }
    }
    Ok(())
}

/// Returns whether the statistics of a file lack a column, and can be completed.
fn lacks_statistics(add: &Add, physical: &[String]) -> bool {
    let Some(stats) = add.stats.as_deref().and_then(StatsTree::parse) else { return true };
    let is_computed = add.tags.as_ref().is_some_and(|tags| tags.contains_key(OF_ROWS));
    stats.lacks(physical, is_computed || stats.is_own())
}
