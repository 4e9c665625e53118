//! Replaces all columns of the table. A column that keeps its name remains the same column, so no rows change.

use std::collections::BTreeMap;

use serde_json::Value;

use super::add::NewColumn;
use super::{add, described, drop, set_metadata, set_nullable, widen};
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::constraints::LENGTH_TYPE;
use crate::expression::predicate::ColumnPath;
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::evolve::types_agree;
use crate::protocol::schema::column_rules::COMMENT;
use crate::protocol::{DataType, StructField, StructType};

/// Makes `columns` the columns of the table, in this order. Columns that the table lacks are added, and existing
/// columns that are not in `columns` are dropped. A column that remains may get a new comment or a wider type, or
/// become nullable.
///
/// # Errors
/// Returns `InvalidArgument` if columns would be added and others dropped at the same time, because the user may want
/// to rename them. Returns `SchemaMismatch` if a type would change to one that is not wider, or if a column would
/// become NOT NULL. Also returns the errors of adding, dropping and widening columns.
pub(in crate::operations::define::alter) fn replace(
    draft: &mut Draft<'_>,
    columns: &StructType,
) -> Result<Operation> {
    let is_in = |schema: &StructType, field: &StructField| schema.index_of(&field.name).is_some();
    let dropped: Vec<_> = draft.schema.fields().iter().filter(|field| !is_in(columns, field)).collect();
    let new: Vec<_> = columns.fields().iter().filter(|field| !is_in(&draft.schema, field)).collect();
    if let (Some(dropped), Some(new)) = (dropped.first(), new.first()) {
        return Err(Error::invalid_argument(format!(
            "it is not clear whether the column '{}' is renamed, or dropped while '{}' is added",
            dropped.name, new.name
        ))
        .with_hint("rename the column first, or drop it first"));
    }
    let dropped: Vec<_> = dropped.iter().map(|field| ColumnPath::new([&field.name])).collect();
    if !dropped.is_empty() {
        drop(draft, &dropped)?;
    }
    let table = ColumnPath::new([""; 0]);
    let new: Vec<_> = new.into_iter().map(|field| NewColumn::new(table.clone(), field.clone())).collect();
    let kept = draft.schema.clone();
    add(draft, &new)?;
    for field in columns.fields() {
        if let Some(column) = kept.field(&field.name) {
            change(draft, column, field)?;
        }
    }
    let known = &draft.schema;
    let ordered = columns.fields().iter().filter_map(|field| known.field(&field.name).cloned()).collect();
    draft.schema = StructType::try_new(ordered)?;
    let shown = columns.fields().iter().map(|field| described(&ColumnPath::new([&field.name]), field));
    Ok(Operation::new("REPLACE COLUMNS").parameter("columns", Value::Array(shown.collect()).to_string()))
}

/// Changes the existing `column` to match the new `field`.
fn change(draft: &mut Draft<'_>, column: &StructField, field: &StructField) -> Result<()> {
    let path = ColumnPath::new([&column.name]);
    match (&column.data_type, &field.data_type) {
        (from @ DataType::Primitive(_), to) if from != to => std::mem::drop(widen(draft, &path, to)?),
        (from, to) if types_agree(from, to) => {}
        _ => {
            return Err(Error::schema_mismatch(format!(
                "the type of the column '{path}' cannot be changed as a whole"
            ))
            .with_hint("change its fields one by one"));
        }
    }
    if column.metadata.get(LENGTH_TYPE) != field.metadata.get(LENGTH_TYPE) {
        return Err(Error::schema_mismatch(format!("the column '{path}' has another length"))
            .with_hint("write the rows to a new column or table with that type"));
    }
    if column.nullable && !field.nullable {
        return Err(Error::schema_mismatch(format!("the column '{path}' may be NULL"))
            .with_hint("forbid NULL in a separate statement"));
    }
    if column.nullable != field.nullable {
        set_nullable(draft, &path, field.nullable)?;
    }
    if let Some(Value::String(comment)) = field.metadata.get(COMMENT) {
        set_metadata(draft, &path, &BTreeMap::from([(COMMENT.to_owned(), Some(comment))]))?;
    }
    Ok(())
}
