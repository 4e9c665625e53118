//! Sets and removes default values of columns. (Protocol: "Default Columns".)
//!
//! Existing rows do not change: if their file lacks a column, the column is NULL, even if it has a default value.

use super::changed;
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::path::{edit_field, field_at};
use crate::operations::define::check_column;
use crate::protocol::schema::column_rules::DEFAULT;
use crate::protocol::{StructField, TableFeature};

/// Sets the default value of `column` to the expression `sql`, or removes it.
///
/// # Errors
/// Returns `InvalidArgument` for a nested field, for a generated or identity column, for an expression whose value
/// does not have the column's type, and for the removal of a default value that does not exist.
pub(in crate::operations::define::alter) fn set_default(
    draft: &mut Draft<'_>,
    column: &ColumnPath,
    sql: Option<&str>,
) -> Result<Operation> {
    let old = field_at(&draft.schema, column)?;
    if column.parts().len() != 1 {
        return Err(Error::invalid_argument(format!(
            "the field '{column}' cannot have a default value, which only columns of the table can have"
        )));
    }
    if sql.is_none() && old.metadata.get(DEFAULT).is_none() {
        return Err(Error::invalid_argument(format!("the column '{column}' has no default value"))
            .with_hint("name a column that has one, as its metadata CURRENT_DEFAULT says"));
    }
    let metadata = old.metadata.with(DEFAULT, sql.map(Into::into));
    let new = StructField { metadata, ..old };
    if sql.is_some() {
        draft.features.push(TableFeature::AllowColumnDefaults);
        check_column(&new, &draft.metadata.partition_columns)?;
    }
    draft.schema = edit_field(&draft.schema, column, |_| Ok(new.clone()))?;
    Ok(changed(column, &new))
}
