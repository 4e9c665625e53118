//! The first version of a table.

use std::collections::BTreeMap;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::protocol::properties::check_properties;
use crate::protocol::{DataType, Format, Metadata, PrimitiveType, Protocol, StructType, protocol_for};

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

    /// Checks the definition, and returns it with the partition columns spelled as in the schema.
    ///
    /// # Errors
    /// `SchemaMismatch` or `InvalidArgument` if such a table cannot exist; `Unsupported` if it needs a feature
    /// that cannot be written.
    pub fn checked(mut self, environment: &Environment) -> Result<Self> {
        self.partition_columns = self.check()?;
        self.actions(environment)?;
        Ok(self)
    }

    /// Returns the protocol and the metadata of the first commit.
    pub(super) fn actions(&self, environment: &Environment) -> Result<(Protocol, Metadata)> {
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
        Ok((protocol, metadata))
    }

    /// Checks the definition, and returns the partition columns spelled as in the schema.
    fn check(&self) -> Result<Vec<String>> {
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
        check_names(&self.schema)?;
        check_properties(&self.configuration)?;
        Ok(columns)
    }
}

/// Names the hidden columns for the ids of rows that were moved. (PROTOCOL, "Row Tracking".)
fn name_row_tracking_columns(configuration: &mut BTreeMap<String, String>, environment: &Environment) {
    for (key, prefix) in [
        ("delta.rowTracking.materializedRowIdColumnName", "_row-id-col-"),
        ("delta.rowTracking.materializedRowCommitVersionColumnName", "_row-commit-version-col-"),
    ] {
        let name = || format!("{prefix}{}", environment.uuid());
        configuration.entry(key.to_owned()).or_insert_with(name);
    }
}

/// Refuses column names that Parquet readers refuse, at every nesting level.
fn check_names(fields: &StructType) -> Result<()> {
    for field in fields.fields() {
        if let Some(bad) = field.name.chars().find(|c| " ,;{}()\n\t=".contains(*c)) {
            return Err(Error::schema_mismatch(format!(
                "the column name '{}' contains {bad:?}, which Parquet readers refuse without column mapping",
                field.name
            ))
            .with_hint("rename the column"));
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
