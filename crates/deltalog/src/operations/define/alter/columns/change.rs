//! Changes the positions, comments and nullability of columns. (Protocol: "Struct Field", "Column Metadata".)

use std::collections::BTreeMap;

use super::add::ColumnPosition;
use super::changed;
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::predicate::{ColumnPath, Expr, Predicate};
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::path::{edit_field, edit_fields, field_at, position, split};
use crate::operations::rewrite::files_in_doubt;
use crate::protocol::{DataType, StructField, TableFeature};
use crate::scan::RowScan;

/// Moves the column at `path` within its struct.
///
/// # Errors
/// Returns `InvalidArgument` for a column that does not exist, and for the position after the column itself.
pub(in crate::operations::define::alter) fn move_to(
    draft: &mut Draft<'_>,
    path: &ColumnPath,
    to: &ColumnPosition,
) -> Result<Operation> {
    let moved = field_at(&draft.schema, path)?;
    let (parent, name) = split(path)?;
    draft.schema = edit_fields(&draft.schema, parent, |mut fields| {
        if let Some(index) = position(&fields, name) {
            let field = fields.remove(index);
            to.insert(&mut fields, field)?;
        }
        Ok(fields)
    })?;
    Ok(changed(path, &moved).parameter("position", to.described()))
}

/// Sets or removes entries in the metadata of the column at `path`.
///
/// # Errors
/// Returns `InvalidArgument` for a column that does not exist, and for an entry that readers or writers interpret.
pub(in crate::operations::define::alter) fn set_metadata(
    draft: &mut Draft<'_>,
    path: &ColumnPath,
    entries: &BTreeMap<String, Option<String>>,
) -> Result<Operation> {
    if let Some(reserved) = entries.keys().find(|key| has_meaning(key)) {
        return Err(Error::invalid_argument(format!(
            "the metadata '{reserved}' of the column '{path}' cannot be set: writers and readers act on it"
        ))
        .with_hint("choose another name; a comment is 'comment'"));
    }
    draft.schema = edit_field(&draft.schema, path, |mut field| {
        for (key, value) in entries {
            field.metadata = field.metadata.with(key, value.clone().map(Into::into));
        }
        Ok(field)
    })?;
    Ok(changed(path, &field_at(&draft.schema, path)?))
}

/// Returns whether readers or writers interpret this key of a column's metadata: the protocol's keys, and Spark's
/// keys for default values, types and files.
fn has_meaning(key: &str) -> bool {
    const PREFIXES: [&str; 5] = ["delta.", "CURRENT_DEFAULT", "EXISTS_DEFAULT", "parquet.", "__"];
    PREFIXES
        .iter()
        .any(|prefix| key.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)))
}

/// Allows or forbids NULL in the column at `path`. Forbidding it requires that no row has NULL. If this crate wrote
/// the statistics, they show whether a row has NULL; otherwise the rows are read.
///
/// # Errors
/// Returns `InvalidArgument` for a column that does not exist, `SchemaMismatch` if a row has NULL, and `Unsupported`
/// if NULL would be forbidden in a part of an array or map. Also returns the errors of reading rows.
pub(in crate::operations::define::alter) fn set_nullable(
    draft: &mut Draft<'_>,
    path: &ColumnPath,
    nullable: bool,
) -> Result<Operation> {
    let field = field_at(&draft.schema, path)?;
    if field.nullable && !nullable {
        ensure_no_nulls(draft, path, "fill or delete these rows first")?;
        draft.depends_on_rows = true;
        // In a Delta table, a NOT NULL column counts as an invariant.
        draft.features.push(TableFeature::Invariants);
    }
    draft.schema = edit_field(&draft.schema, path, |field| Ok(StructField { nullable, ..field }))?;
    Ok(changed(path, &StructField { nullable, ..field }))
}

/// Checks that no row has NULL in the column at `path`, except where a struct that contains it is NULL. `hint` tells
/// the user what to do if a row has NULL.
///
/// # Errors
/// Returns the same errors as [`set_nullable`].
pub(super) fn ensure_no_nulls(draft: &Draft<'_>, path: &ColumnPath, hint: &str) -> Result<()> {
    let (parent, _) = split(path)?;
    let mut is_null = vec![];
    for length in 1..=parent.len() {
        let outer = ColumnPath::new(parent.get(..length).unwrap_or(parent));
        if !matches!(field_at(&draft.schema, &outer).map(|field| field.data_type), Ok(DataType::Struct(_))) {
            return Err(Error::unsupported(format!(
                "NULL cannot be forbidden in '{path}', which is a part of an array or map"
            )));
        }
        is_null.push(Expr::Column(outer).is_not_null());
    }
    // Where a struct is NULL, its NOT NULL fields may be NULL as well.
    let is_null = is_null.into_iter().fold(Expr::Column(path.clone()).is_null(), Predicate::and);
    let first = field_at(&draft.schema, &ColumnPath::new(path.parts().first()))?.name;
    let located = |error: Error| draft.base.located(error);
    let bound = is_null.bind(draft.base.arrow_schema()).map_err(located)?;
    let scan = RowScan::of(draft.base)?.with_projection(&[first])?.with_predicate(&bound)?;
    let files = files_in_doubt(draft.base, &is_null)?;
    for batch in scan.in_any_order().read(files.into_iter().map(Ok)) {
        if batch?.num_rows() > 0 {
            return Err(Error::schema_mismatch(format!(
                "NULL cannot be forbidden in the column '{path}': the table has rows with NULL in it"
            ))
            .with_hint(hint));
        }
    }
    Ok(())
}
