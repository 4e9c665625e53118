//! Finds definitions that depend on a column: partitioning, clustering, constraints and generated columns.
//!
//! Constraints and generated columns name columns of the schema, and would break if such a column were dropped or
//! renamed or changed its type. (Protocol: "CHECK Constraints", "columns referred by the SQL expression must exist in
//! the table schema".) Clustering refers to physical names, so it breaks only if the column is dropped.

use crate::error::{Error, Result};
use crate::expression::constraints::Constraints;
use crate::expression::predicate::{BoundColumn, ColumnPath};
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::path::overlap;

/// Refuses to change the column at `path` if a constraint or a generated column refers to it or to a part of it.
/// `verb` names the kind of change in the error message.
///
/// # Errors
/// Returns `InvalidArgument`, which names the constraint or the generated column. Also returns the errors of
/// [`Constraints::of`], because an expression that cannot be bound may refer to any column.
pub(super) fn ensure_unreferenced(draft: &Draft<'_>, path: &ColumnPath, verb: &str) -> Result<()> {
    let refused = |by: String| {
        Err(Error::invalid_argument(format!("the column '{path}' cannot be {verb}: {by} refers to it")))
    };
    let base = draft.base;
    let constraints = Constraints::of(base.protocol(), &draft.metadata, &draft.schema, "UTC")?;
    let refers =
        |columns: &[BoundColumn]| columns.iter().any(|column| overlap(column.path.parts(), path.parts()));
    if let Some(check) = constraints.checks.iter().find(|check| refers(check.columns())) {
        return refused(format!("the constraint '{}' ({})", check.name(), check.sql()));
    }
    for generated in &constraints.generated {
        let is_itself = overlap(&[generated.column().to_owned()], path.parts());
        if is_itself || refers(generated.columns()) {
            return refused(format!("the generated column '{}' ({})", generated.column(), generated.sql()));
        }
    }
    Ok(())
}

/// Refuses to drop the column at `path` if the table is clustered by it or by a part of it.
///
/// # Errors
/// Returns `InvalidArgument` if the table is clustered by it. Also returns `CorruptLog`, and errors from the store.
pub(super) fn ensure_not_clustered(draft: &Draft<'_>, path: &ColumnPath) -> Result<()> {
    match draft.base.clustering_columns()?.iter().any(|column| overlap(column, path.parts())) {
        true => Err(Error::invalid_argument(format!(
            "the column '{path}' cannot be dropped: the clustering of the table refers to it"
        ))
        .with_hint("cluster the table by other columns first")),
        false => Ok(()),
    }
}
