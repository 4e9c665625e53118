//! Checks the clustering columns of a table. (Protocol: "Writer Requirements for Clustered Table".)
//!
//! - "Writers must not define clustered and partitioned table at the same time."
//! - "Writers must write out per-file statistics and per-column statistics for clustering columns". The type of a
//!   clustering column must therefore have a minimum and maximum, and the table's properties must not exclude the
//!   column from statistics.
//! - A table has at most four clustering columns, as in the JVM implementation.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::protocol::{DataType, PrimitiveType, StructField, StructType};
use crate::values::stats::indexed;
use crate::write::selected_columns;

/// The maximum number of clustering columns of a table.
const MOST: usize = 4;

/// Returns the logical paths of the clustering columns `columns`, spelled as in `schema`.
///
/// # Errors
/// Returns `InvalidArgument` if a table with this schema, these partition columns and these properties cannot be
/// clustered by `columns`.
pub(crate) fn checked(
    columns: &[ColumnPath],
    schema: &StructType,
    partition_columns: &[String],
    configuration: &BTreeMap<String, String>,
) -> Result<Vec<Vec<String>>> {
    let refused = |message: String, hint: &str| Err(Error::invalid_argument(message).with_hint(hint));
    if !partition_columns.is_empty() {
        return refused(
            format!("a table that is partitioned (by {}) cannot be clustered", partition_columns.join(", ")),
            "create a table without partition columns",
        );
    }
    if columns.len() > MOST {
        return refused(
            format!("a table can be clustered by at most {MOST} columns, not {}", columns.len()),
            "choose the columns that filters use most",
        );
    }
    with_bounds(columns, schema, configuration, "clustered")
}

/// Returns the logical paths of `columns`, spelled as in `schema`. Checks that files of a table with these properties
/// can have a minimum and a maximum for each column. `action` completes error messages such as "the table cannot be
/// clustered by …".
///
/// # Errors
/// Returns `InvalidArgument` if a column does not exist, cannot have a minimum and maximum in files, or is named twice.
pub(crate) fn with_bounds(
    columns: &[ColumnPath],
    schema: &StructType,
    configuration: &BTreeMap<String, String>,
    action: &str,
) -> Result<Vec<Vec<String>>> {
    let refused = |message: String, hint: &str| Err(Error::invalid_argument(message).with_hint(hint));
    let arrow = schema.to_arrow()?;
    let with_statistics = indexed(&arrow, &selected_columns(configuration, &arrow)?);
    let mut paths: Vec<Vec<String>> = Vec::new();
    for column in columns {
        let (path, field) = resolve(schema, column, action)?;
        if !can_cluster(&field.data_type) {
            return refused(
                format!("the table cannot be {action} by the column '{column}', whose type has no bounds"),
                "choose columns with numbers, strings, dates or timestamps, which may be fields of structs",
            );
        }
        if paths.contains(&path) {
            return refused(format!("the table is {action} by '{column}' twice"), "name each column once");
        }
        if !with_statistics.iter().any(|(indexed, _)| indexed.parts() == path) {
            return refused(
                format!("the table cannot be {action} by the column '{column}', which has no statistics"),
                "let 'delta.dataSkippingStatsColumns' or 'delta.dataSkippingNumIndexedCols' include the column",
            );
        }
        paths.push(path);
    }
    Ok(paths)
}

/// Returns the path of a column, spelled as in the schema, and its field.
fn resolve(schema: &StructType, column: &ColumnPath, action: &str) -> Result<(Vec<String>, StructField)> {
    let missing = || {
        let names: Vec<_> = schema.fields().iter().map(|field| field.name.as_str()).collect();
        let message = format!("the table cannot be {action} by '{column}': it has no such column");
        Error::invalid_argument(message).with_hint(format!("the columns are {}", names.join(", ")))
    };
    let (mut path, mut fields, mut found) = (Vec::new(), Some(schema), None);
    for name in column.parts() {
        let field = fields.and_then(|fields| fields.field(name)).ok_or_else(missing)?;
        path.push(field.name.clone());
        fields = match &field.data_type {
            DataType::Struct(children) => Some(children),
            _ => None,
        };
        found = Some(field.clone());
    }
    found.map(|field| (path, field)).ok_or_else(missing)
}

/// Returns whether the JVM implementation skips files by columns of this type.
fn can_cluster(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Primitive(primitive) if !matches!(
        primitive,
        PrimitiveType::Boolean | PrimitiveType::Binary | PrimitiveType::Void
    ))
}
