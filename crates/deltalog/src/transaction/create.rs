//! The first version of a table.

use std::collections::BTreeMap;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::protocol::properties::check_properties;
use crate::protocol::{
    ColumnMappingMode, DataType, Format, Metadata, NewMapping, PrimitiveType, Protocol, StructType,
    protocol_for,
};
use serde::{Deserialize, Serialize};

/// What the first commit of a table says. Other processes can write the table's files by it before the table exists.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewTable {
    pub(crate) protocol: Protocol,
    pub(crate) metadata: Metadata,
}

/// The definition of a new table.
#[derive(Debug, Clone)]
pub struct TableDefinition {
    /// The schema, including the partition columns.
    pub schema: StructType,
    /// The partition columns, in order.
    pub partition_columns: Vec<String>,
    /// The name chosen by the user.
    pub name: Option<String>,
    /// The description written by the user.
    pub description: Option<String>,
    /// The table properties.
    pub configuration: BTreeMap<String, String>,
}

impl TableDefinition {
    /// Creates the definition of a table with this schema and without partition columns or properties.
    pub fn new(schema: StructType) -> Self {
        Self {
            schema,
            partition_columns: Vec::new(),
            name: None,
            description: None,
            configuration: BTreeMap::new(),
        }
    }

    /// Returns what the first commit of such a table says. Ids and physical names are new each time.
    ///
    /// # Errors
    /// `SchemaMismatch` or `InvalidArgument` if such a table cannot exist; `Unsupported` if it needs a feature
    /// that cannot be written.
    pub fn resolve(&self, environment: &Environment) -> Result<NewTable> {
        let partition_columns = self.check()?;
        let mut metadata = Metadata {
            id: environment.uuid().to_string(),
            name: self.name.clone(),
            description: self.description.clone(),
            format: Format::default(),
            schema_string: self.schema.to_json(),
            partition_columns,
            created_time: Some(environment.now_ms()),
            configuration: self.configuration.clone(),
        };
        // The protocol lists the features, so the properties that request them are dropped.
        let protocol = protocol_for(&self.schema, &metadata)?;
        metadata.configuration.retain(|key, _| !key.starts_with("delta.feature."));
        if metadata.is_enabled("delta.enableRowTracking") {
            name_row_tracking_columns(&mut metadata.configuration, environment);
        }
        if ColumnMappingMode::of(&protocol, &metadata)? != ColumnMappingMode::None {
            let mut mapping = NewMapping::new(0, |_| format!("col-{}", environment.uuid()));
            metadata.schema_string = mapping.assign(&self.schema)?.to_json();
            metadata
                .configuration
                .insert("delta.columnMapping.maxColumnId".to_owned(), mapping.last_id().to_string());
        }
        Ok(NewTable { protocol, metadata })
    }

    /// Returns whether files have other column names than the schema.
    fn maps_columns(&self) -> bool {
        let mode = self.configuration.get("delta.columnMapping.mode");
        mode.is_some_and(|mode| !mode.trim().eq_ignore_ascii_case("none"))
    }

    /// Checks the definition, and returns the partition columns spelled as in the schema.
    ///
    /// # Errors
    /// As [`TableDefinition::resolve`].
    pub(crate) fn check(&self) -> Result<Vec<String>> {
        if self.schema.fields().is_empty() {
            return Err(Error::schema_mismatch("a table needs at least one column"));
        }
        let mut columns = Vec::new();
        for name in &self.partition_columns {
            let names = || {
                self.schema.fields().iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ")
            };
            let field = self.schema.field(name).ok_or_else(|| {
                Error::schema_mismatch(format!("the partition column '{name}' is not in the schema"))
                    .with_hint(format!("the columns are {}", names()))
            })?;
            let DataType::Primitive(_) = field.data_type else {
                return Err(Error::schema_mismatch(format!(
                    "a table cannot be partitioned by the nested column '{name}'"
                )));
            };
            if columns.contains(&field.name) {
                return Err(Error::schema_mismatch(format!("the table is partitioned by '{name}' twice")));
            }
            columns.push(field.name.clone());
        }
        if columns.len() == self.schema.fields().len() {
            return Err(Error::schema_mismatch(
                "a table must have at least one column that is not a partition column",
            ));
        }
        if let Some(field) = self
            .schema
            .fields()
            .iter()
            .find(|field| field.data_type.any_primitive(&|primitive| primitive == PrimitiveType::Void))
        {
            return Err(Error::schema_mismatch(format!("the column '{}' has the type void", field.name))
                .with_hint("cast it to another type"));
        }
        if !self.maps_columns() {
            check_names(&self.schema)?;
        }
        check_properties(&self.configuration)?;
        Ok(columns)
    }
}

/// Names the hidden columns for the ids of rows that were moved. (PROTOCOL, "Row Tracking".)
pub(crate) fn name_row_tracking_columns(
    configuration: &mut BTreeMap<String, String>,
    environment: &Environment,
) {
    for (key, prefix) in [
        ("delta.rowTracking.materializedRowIdColumnName", "_row-id-col-"),
        ("delta.rowTracking.materializedRowCommitVersionColumnName", "_row-commit-version-col-"),
    ] {
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
