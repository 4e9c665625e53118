//! Changes columns and nested fields. (Protocol: "Schema Serialization Format", "Column Mapping".)
//!
//! | file | what it does |
//! | --- | --- |
//! | `add` | adds columns, anywhere in the schema |
//! | `drop` | drops columns of tables with column mapping |
//! | `rename` | renames columns of tables with column mapping |
//! | `replace` | replaces all columns |
//! | `change` | moves columns, and changes their comments and whether they may be NULL |
//! | `default_value` | sets and removes the default values of columns |
//! | `widen` | changes the types of columns to wider types |
//! | `references` | finds the definitions that depend on a column |
//! | `statistics` | updates the properties that list columns with statistics |

mod add;
mod change;
mod default_value;
mod drop;
mod references;
mod rename;
mod replace;
mod statistics;
mod widen;

pub(super) use add::add;
pub use add::{ColumnPosition, NewColumn};
pub(super) use change::{move_to, set_metadata, set_nullable};
pub(super) use default_value::set_default;
pub(super) use drop::drop;
pub(super) use rename::rename;
pub(super) use replace::replace;
pub(super) use widen::widen;

use serde_json::{Value, json};

use super::draft::Draft;
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::protocol::{ColumnMappingMode, DataType, StructField};

/// Returns the description of a change of the column at `path`.
fn changed(path: &ColumnPath, field: &StructField) -> Operation {
    Operation::new("CHANGE COLUMN").parameter("column", described(path, field).to_string())
}

/// Returns a field as the table's history shows it.
fn described(path: &ColumnPath, field: &StructField) -> Value {
    json!({
        "name": name_of(path),
        "type": type_name(&field.data_type),
        "nullable": field.nullable,
        "metadata": field.metadata.entries(),
    })
}

/// Returns the path of a column as the table's history shows it: only names that contain a dot are in backticks.
fn name_of(path: &ColumnPath) -> String {
    let quoted = |part: &String| match part.contains('.') {
        true => format!("`{part}`"),
        false => part.clone(),
    };
    path.parts().iter().map(quoted).collect::<Vec<_>>().join(".")
}

/// Returns the name of a type without the types of its fields or elements.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Primitive(primitive) => primitive.to_string(),
        DataType::Struct(_) => "struct".to_owned(),
        DataType::Array(_) => "array".to_owned(),
        DataType::Map(_) => "map".to_owned(),
        DataType::Variant => "variant".to_owned(),
    }
}

/// Refuses to drop or rename columns of a table without column mapping. Its files are read by the column names in
/// the schema, so the values would be lost.
fn ensure_mapped(draft: &Draft<'_>, verb: &str) -> Result<()> {
    match draft.column_mapping() {
        ColumnMappingMode::None => Err(Error::unsupported(format!(
            "columns can only be {verb} in a table with column mapping, because without it, files are read by column \
             name"
        ))
        .with_hint("set the table property 'delta.columnMapping.mode' to 'name' first")),
        _ => Ok(()),
    }
}
