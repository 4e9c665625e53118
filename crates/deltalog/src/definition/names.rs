//! Names that the columns of a new table, and its hidden columns, can have.

use std::collections::BTreeMap;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::protocol::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN};
use crate::protocol::{DataType, StructType};

/// Names the hidden columns for the ids of rows that were moved. (PROTOCOL, "Row Tracking".)
pub(crate) fn name_row_tracking_columns(
    configuration: &mut BTreeMap<String, String>,
    environment: &Environment,
) {
    for (key, prefix) in
        [(ROW_ID_COLUMN, "_row-id-col-"), (ROW_COMMIT_VERSION_COLUMN, "_row-commit-version-col-")]
    {
        let name = || format!("{prefix}{}", environment.uuid());
        configuration.entry(key.to_owned()).or_insert_with(name);
    }
}

/// Refuses column names that Parquet readers refuse, at every nesting level.
pub(crate) fn check_names(fields: &StructType) -> Result<()> {
    for field in fields.fields() {
        if let Some(bad) = field.name.chars().find(|c| " ,;{}()\n\t=".contains(*c)) {
            return Err(Error::schema_mismatch(format!(
                "the column name '{}' contains {bad:?}, which Parquet readers refuse without column mapping",
                field.name
            ))
            .with_hint("rename the column, or set the table property 'delta.columnMapping.mode' to 'name'"));
        }
        check_names_within(&field.data_type)?;
    }
    Ok(())
}

fn check_names_within(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Struct(fields) => check_names(fields),
        DataType::Array(array) => check_names_within(&array.element_type),
        DataType::Map(map) => {
            check_names_within(&map.key_type).and_then(|()| check_names_within(&map.value_type))
        }
        DataType::Primitive(_) | DataType::Variant => Ok(()),
    }
}
