//! Renames columns. Protocol: "Column Mapping": "the *display name* of the column … is changeable".

use super::references::ensure_unreferenced;
use super::{ensure_mapped, name_of, statistics};
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::path::{edit_field, field_at, split};
use crate::protocol::schema::with_part_ids_by_physical_name;
use crate::protocol::{COLLATIONS, FieldMetadata, StructField};
use serde_json::{Map, Value};

/// Renames the column at `path`. A partition column keeps its position among the partition columns.
///
/// # Errors
/// Returns `Unsupported` if the table does not use column mapping. Returns `InvalidArgument` for a column that does not
/// exist, for an empty name, and for a column to which something else refers. Returns `SchemaMismatch` if a column with
/// the new name exists.
pub(in crate::operations::define::alter) fn rename(
    draft: &mut Draft<'_>,
    path: &ColumnPath,
    name: &str,
) -> Result<Operation> {
    ensure_mapped(draft, "renamed")?;
    if name.is_empty() {
        return Err(Error::invalid_argument(format!("the new name of the column '{path}' is empty")));
    }
    let old = field_at(&draft.schema, path)?;
    ensure_unreferenced(draft, path, "renamed")?;
    draft.schema = edit_field(&draft.schema, path, |field| {
        let metadata = with_part_ids_by_physical_name(&StructField {
            metadata: with_collations_of(&field, name),
            ..field.clone()
        });
        Ok(StructField { name: name.to_owned(), metadata, ..field })
    })?;
    let (parent, _) = split(path)?;
    if parent.is_empty() {
        for column in draft.metadata.partition_columns.iter_mut().filter(|column| **column == old.name) {
            name.clone_into(column);
        }
    }
    let new_path = ColumnPath::new(parent.iter().map(String::as_str).chain([name]));
    statistics::follow(draft, path, Some(&new_path));
    Ok(Operation::new("RENAME COLUMN")
        .parameter("oldColumnPath", name_of(path))
        .parameter("newColumnPath", name_of(&new_path)))
}

/// Returns the metadata of `field` under its new name. The keys of collations are paths that begin with the field's
/// name, so these keys change as well. (Table feature `collations`.)
fn with_collations_of(field: &StructField, name: &str) -> FieldMetadata {
    let Some(Value::Object(collations)) = field.metadata.get(COLLATIONS) else {
        return field.metadata.clone();
    };
    let renamed = |(path, collation): (String, Value)| match path.strip_prefix(&field.name) {
        Some(inner) if inner.is_empty() || inner.starts_with('.') => (format!("{name}{inner}"), collation),
        _ => (path, collation),
    };
    let renamed: Map<String, Value> = collations.into_iter().map(renamed).collect();
    field.metadata.with(COLLATIONS, Some(Value::Object(renamed)))
}
