//! Checks the names of a new table's columns, and chooses names for its hidden columns.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::protocol::StructType;
use crate::protocol::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN};
use crate::runtime::environment::Environment;

/// Chooses names for the hidden columns that store the row ids of moved rows. (PROTOCOL, "Row Tracking".)
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

/// Refuses column names that Parquet readers would refuse, at every nesting level.
pub(crate) fn check_names(fields: &StructType) -> Result<()> {
    match unfit_name(fields) {
        None => Ok(()),
        Some((name, bad)) => Err(Error::schema_mismatch(format!(
            "the column name '{name}' contains {bad:?}, which Parquet readers refuse without column mapping"
        ))
        .with_hint(
            "rename the column, or turn on column mapping, with which all names are allowed: \
             configuration={\"delta.columnMapping.mode\": \"name\"}, or in SQL \
             TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        )),
    }
}

/// Returns the first column name, at any nesting level, that Parquet readers refuse, and the character that they
/// refuse in it.
pub(crate) fn unfit_name(fields: &StructType) -> Option<(String, char)> {
    let mut found = None;
    fields.any_field(&mut |field| {
        let bad = field.name.chars().find(|c| " ,;{}()\n\t=".contains(*c));
        found = bad.map(|bad| (field.name.clone(), bad));
        found.is_some()
    });
    found
}
