//! Drops columns from the schema. Protocol: "Column Mapping".
//!
//! The values remain in the files, but nothing refers to them. A new column of the same name gets another physical
//! name.

use serde_json::json;

use super::references::{ensure_not_clustered, ensure_unreferenced};
use super::{ensure_mapped, name_of, statistics};
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::path::{edit_fields, field_at, position, split};

/// Drops the columns at `paths`.
///
/// # Errors
/// Returns `Unsupported` if the table does not use column mapping. Returns `InvalidArgument` for a column that does not
/// exist, for the only field of a struct, for the only column that is not a partition column, for a partition column,
/// and for a column to which something else refers.
pub(in crate::operations::define::alter) fn drop(
    draft: &mut Draft<'_>,
    paths: &[ColumnPath],
) -> Result<Operation> {
    ensure_mapped(draft, "dropped")?;
    for path in paths {
        field_at(&draft.schema, path)?;
        ensure_unreferenced(draft, path, "dropped")?;
        ensure_not_clustered(draft, path)?;
        let (parent, name) = split(path)?;
        let partitioned_by = |name: &str| {
            draft.metadata.partition_columns.iter().any(|column| column.to_lowercase() == name.to_lowercase())
        };
        if parent.is_empty() && partitioned_by(name) {
            return Err(Error::invalid_argument(format!(
                "the column '{path}' cannot be dropped: the table is partitioned by it"
            )));
        }
        draft.schema = edit_fields(&draft.schema, parent, |mut fields| {
            let index = position(&fields, name);
            index.map(|index| fields.remove(index));
            let in_files = fields.iter().filter(|field| !parent.is_empty() || !partitioned_by(&field.name));
            match in_files.count() {
                0 => {
                    let why = match parent.is_empty() {
                        true => "without it, the files would have no column",
                        false => "it is the only field of its struct",
                    };
                    Err(Error::invalid_argument(format!("the column '{path}' cannot be dropped: {why}")))
                }
                _ => Ok(fields),
            }
        })?;
        statistics::follow(draft, path, None);
    }
    let names: Vec<_> = paths.iter().map(name_of).collect();
    Ok(Operation::new("DROP COLUMNS").parameter("columns", json!(names).to_string()))
}
