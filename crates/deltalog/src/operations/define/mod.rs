//! Creates tables from definitions, and replaces tables. (Protocol: "Change Metadata", "Table Features for New and
//! Existing Tables".)
//!
//! ```text
//!   TableDefinition ── checked ──► metadata, features ──► TableHeader ──► the first commit, or one that replaces
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `names` | checks column names, and chooses names for hidden columns |
//! | `columns` | checks the rules of columns: generated, default, identity, constraints |
//! | `clustering` | checks clustering columns |
//! | `properties` | checks which properties users can set |
//! | `replace` | replaces a table by another one |
//!
//! - A definition is refused before anything is written if no such table can exist, or if this crate could not write
//!   the table.
//! - The new protocol is the oldest one that supports everything in the definition. A table that is replaced keeps
//!   the features of its protocol.
//! - Iceberg compatibility implies column mapping by name, unless the definition sets another mode. In version 3, it
//!   also implies row tracking.

pub(crate) mod alter;
mod clustering;
mod columns;
mod names;
mod properties;
mod replace;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::protocol::TableHeader;
pub(crate) use clustering::{checked as checked_clustering, with_bounds as columns_with_bounds};
pub(crate) use columns::check_column;
pub(crate) use names::{check_names, name_row_tracking_columns, unfit_name};
pub(crate) use properties::{ensure_not_kept, ensure_settable};
pub(crate) use replace::last_column_id;

use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::constraints::CHECK;
use crate::expression::predicate::ColumnPath;
use crate::protocol::schema::with_part_ids;
use crate::protocol::{
    ColumnMappingMode, DataType, Format, IcebergCompat, Metadata, NewMapping, PrimitiveType, Protocol,
    StructField, StructType, TableFeature, protocol_for,
};
use crate::runtime::environment::Environment;
use crate::upkeep::manifest;
use crate::write::check_bloom_filters;

/// The table property with the highest id that any column has been given.
pub(crate) const MAX_COLUMN_ID: &str = "delta.columnMapping.maxColumnId";
const FEATURE: &str = "delta.feature.";
const MAPPING_MODE: &str = "delta.columnMapping.mode";

/// What to do if the table to create already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreationMode {
    /// Return an error.
    ErrorIfExists,
    /// Leave the table unchanged.
    Ignore,
    /// Replace the table: its schema, partitioning, properties, rules and rows, in one commit. The history is kept.
    CreateOrReplace,
}

/// The definition of a table.
///
/// Columns with rules can be made with [`StructField::generated_as`], [`StructField::with_default`] and
/// [`StructField::with_identity`].
///
/// ```
/// use deltalog::{
///     ColumnPath, CreationMode, Environment, PendingWrite, PrimitiveType, Snapshot, Storage, StructField,
///     StructType, TableDefinition,
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let location = directory.path().to_str().ok_or("no UTF-8")?;
/// let storage = Storage::open(location, [])?;
/// let environment = Environment::system();
/// let mut definition = TableDefinition::new(StructType::try_new(vec![
///     StructField::new("id", PrimitiveType::Long, false).with_identity(1, 1, false),
///     StructField::new("price", PrimitiveType::Double, true).with_default("0"),
/// ])?);
/// definition.constraints.insert("positive".to_owned(), "price >= 0".to_owned());
/// definition.clustering_columns = Some(vec![ColumnPath::new(["price"])]);
///
/// let mode = CreationMode::CreateOrReplace;
/// let creation = PendingWrite::define(&storage, &definition, mode, Vec::new(), &environment)?;
/// let creation = creation.ok_or("only the mode Ignore gives None")?;
/// let operation = creation.definition_operation(false);
/// creation.commit(Vec::new(), operation)?;
/// assert_eq!(Snapshot::open(&storage, None)?.clustering_columns()?, [["price"]]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TableDefinition {
    /// The schema, including the partition columns.
    pub schema: StructType,
    /// The partition columns, in order.
    pub partition_columns: Vec<String>,
    /// The columns by which the rows are clustered. They may be fields of structs. With an empty list, the table has
    /// the feature `clustering` but no clustering columns yet. `None` does not request the feature.
    pub clustering_columns: Option<Vec<ColumnPath>>,
    /// CHECK constraints: their names and their conditions in Spark's SQL.
    pub constraints: BTreeMap<String, String>,
    /// The name that the user chose for the table.
    pub name: Option<String>,
    /// The description that the user wrote for the table.
    pub description: Option<String>,
    /// The table properties.
    pub configuration: BTreeMap<String, String>,
}

impl TableDefinition {
    /// Creates the definition of a table that has this schema and no other settings.
    pub fn new(schema: StructType) -> Self {
        Self {
            schema,
            partition_columns: Vec::new(),
            clustering_columns: None,
            constraints: BTreeMap::new(),
            name: None,
            description: None,
            configuration: BTreeMap::new(),
        }
    }

    /// Returns the protocol and metadata for the first commit of such a table. Each call assigns a new table id and
    /// new physical names.
    ///
    /// # Errors
    /// Returns `SchemaMismatch` or `InvalidArgument` if such a table cannot exist, and `Unsupported` if it needs a
    /// feature that this crate cannot write.
    pub fn resolve(&self, environment: &Environment) -> Result<TableHeader> {
        let mut metadata = self.metadata(environment)?;
        // The protocol now lists the features, so the properties that requested them are removed.
        let protocol = protocol_for(&metadata.schema()?, &metadata)?;
        metadata.configuration.retain(|key, _| !key.starts_with(FEATURE));
        if metadata.is_enabled("delta.enableRowTracking") {
            name_row_tracking_columns(&mut metadata.configuration, environment);
        }
        self.finish(protocol, metadata, 0, environment)
    }

    /// Returns the metadata before column ids and physical names are assigned. It includes the properties that
    /// request features.
    fn metadata(&self, environment: &Environment) -> Result<Metadata> {
        let partition_columns = self.check()?;
        let mut configuration = self.all_properties()?;
        for (name, value) in IcebergCompat::implied(|name| configuration.get(name).map(String::as_str)) {
            configuration.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
        Ok(Metadata {
            id: environment.uuid().to_string(),
            name: self.name.clone(),
            description: self.description.clone(),
            format: Format::default(),
            schema_string: columns::without_files(&self.schema).to_json(),
            partition_columns,
            created_time: Some(environment.now_ms()),
            configuration,
        })
    }

    /// Returns all properties, including the ones for constraints and clustering columns.
    fn all_properties(&self) -> Result<BTreeMap<String, String>> {
        let mut properties = self.configuration.clone();
        for (name, sql) in &self.constraints {
            if name.is_empty() {
                return Err(Error::invalid_argument(format!("the name of the constraint ({sql}) is empty")));
            }
            let key = format!("{CHECK}{}", name.to_lowercase());
            if let Some(other) = properties.insert(key, sql.clone()) {
                return Err(Error::invalid_argument(format!(
                    "there are two constraints '{name}': {other}, and {sql} (names are compared ignoring case)"
                )));
            }
        }
        if self.clustering_columns.is_some() {
            properties.insert(format!("{FEATURE}{}", TableFeature::Clustering), "supported".to_owned());
        }
        Ok(properties)
    }

    /// Checks the rules of the columns. If the table uses column mapping, first assigns physical names, and ids that
    /// are greater than `last_id`.
    fn finish(
        &self,
        protocol: Protocol,
        mut metadata: Metadata,
        last_id: i64,
        environment: &Environment,
    ) -> Result<TableHeader> {
        let mut schema = metadata.schema()?;
        if ColumnMappingMode::of(&protocol, &metadata)? != ColumnMappingMode::None {
            let mut mapping =
                NewMapping::new(last_id, |_: &StructField| format!("col-{}", environment.uuid()));
            schema = mapping.assign(&schema)?;
            let mut last_id = mapping.last_id();
            if IcebergCompat::of(&protocol, &metadata)?.is_some_and(IcebergCompat::identifies_parts) {
                schema = with_part_ids(&schema, &mut last_id)?;
            }
            metadata.schema_string = schema.to_json();
            metadata.configuration.insert(MAX_COLUMN_ID.to_owned(), last_id.to_string());
        }
        manifest::ensure_keepable(&metadata)?;
        columns::check_rules(&protocol, &metadata, &schema, &metadata.partition_columns)?;
        let asks = protocol.supports(&TableFeature::Clustering)
            && self.configuration.contains_key(&format!("{FEATURE}{}", TableFeature::Clustering));
        let clustering = match &self.clustering_columns {
            Some(columns) => Some(columns.as_slice()),
            None => asks.then_some([].as_slice()),
        };
        let clustering = clustering.map(|columns| {
            checked_clustering(columns, &schema, &metadata.partition_columns, &metadata.configuration)
        });
        Ok(TableHeader { protocol, metadata, clustering: clustering.transpose()? })
    }

    /// Returns whether the table uses column mapping, which means that files do not have the schema's column names.
    fn maps_columns(&self) -> bool {
        let property = |name: &str| self.configuration.get(name).map(String::as_str);
        match property(MAPPING_MODE) {
            Some(mode) => !mode.trim().eq_ignore_ascii_case("none"),
            None => IcebergCompat::is_asked_for(property),
        }
    }

    /// Checks the definition, and returns the partition columns, spelled as in the schema.
    ///
    /// # Errors
    /// Returns the same errors as [`TableDefinition::resolve`].
    fn check(&self) -> Result<Vec<String>> {
        ensure_settable(&self.configuration)?;
        check_bloom_filters(&self.configuration, &self.schema)?;
        self.check_columns()
    }

    /// Checks the names and types of the columns, and returns the partition columns, spelled as in the schema.
    ///
    /// # Errors
    /// Returns the same errors as [`TableDefinition::resolve`].
    pub(crate) fn check_columns(&self) -> Result<Vec<String>> {
        if self.schema.fields().is_empty() {
            return Err(Error::schema_mismatch("a table needs at least one column"));
        }
        let partition_columns = self.check_partitioning()?;
        if !self.maps_columns() {
            check_names(&self.schema)?;
        }
        Ok(partition_columns)
    }

    fn check_partitioning(&self) -> Result<Vec<String>> {
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
            if field.data_type == PrimitiveType::Void.into() {
                return Err(Error::schema_mismatch(format!(
                    "a table cannot be partitioned by the column '{name}', which has the type void"
                ))
                .with_hint("cast it to another type"));
            }
            if columns.contains(&field.name) {
                return Err(Error::schema_mismatch(format!("the table is partitioned by '{name}' twice")));
            }
            columns.push(field.name.clone());
        }
        match columns.len() == self.schema.fields().len() {
            true => Err(Error::schema_mismatch(
                "a table must have at least one column that is not a partition column",
            )),
            false => Ok(columns),
        }
    }
}

/// Returns the description of a commit that creates or replaces a table, as the JVM implementation records it.
pub(crate) fn operation(mode: CreationMode, as_select: bool, table: &TableHeader) -> Operation {
    let TableHeader { metadata, clustering, .. } = table;
    let name = match mode {
        CreationMode::ErrorIfExists | CreationMode::Ignore => "CREATE TABLE",
        CreationMode::CreateOrReplace => "CREATE OR REPLACE TABLE",
    };
    let clustered_by: Vec<String> = clustering.iter().flatten().map(|path| path.join(".")).collect();
    Operation::new(format!("{name}{}", if as_select { " AS SELECT" } else { "" }))
        .parameter("isManaged", "false")
        .parameter("description", metadata.description.clone().map_or(Value::Null, Value::String))
        .parameter("partitionBy", json!(metadata.partition_columns).to_string())
        .parameter("clusterBy", json!(clustered_by).to_string())
        .parameter("properties", json!(metadata.configuration).to_string())
}
