//! The rules for all writers of a table's files. The table may exist, or be about to be created.
//!
//! - Data that is to be written has the logical names of the schema. Files, partition values and statistics have the
//!   physical names, and with column mapping the files also have field ids. (PROTOCOL, "Writer Requirements for
//!   Column Mapping".)
//! - Files of a table with Iceberg compatibility have the partition columns after all other columns and, from version
//!   2 on, field ids for the parts of arrays and maps. (PROTOCOL, "Iceberg Compatibility V1", "… V2"; "Iceberg
//!   Compatibility V3" of the protocol's requests for comments.) Files of other tables contain the partition columns
//!   if the table requires it. ("Materialize Partition Columns" of the same requests for comments.)
//! - The table's rules for its rows are kept as SQL text. Each writer binds them before it receives data, or passes
//!   them to its engine. In this crate, times without a zone are in UTC; in Spark, they are in the session's zone.
//! - The spec depends only on the table's protocol and metadata, so that writers in other processes can create the
//!   same spec.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::blooms::BloomFilters;
use super::hive;
use super::indexed::indexed_columns;
use super::required_void::{check_required, required_voids};
use super::stored::{check_storable, is_void, lacks_void, stored_fields};
use crate::error::{Error, Result};
use crate::expression::constraints::{Constraints, Identities, Lane, RowRules, RuleText};
use crate::expression::predicate::ColumnPath;
use crate::protocol::properties::{WRITE_PARTITION_COLUMNS, byte_size};
use crate::protocol::{
    ColumnMappingMode, IcebergCompat, MappedSchema, MaterializedRowTracking, Metadata, PartitionValues,
    Protocol, StructType, TableFeature, Tags,
};
use crate::scan::{ROW_COMMIT_VERSION, ROW_ID};
use crate::snapshot::Snapshot;
use crate::values::stats::{IndexedColumns, indexed};

/// The size in bytes at which a file is closed and the next one is started, if the table does not set another size.
const TARGET_FILE_SIZE: u64 = 128 << 20;

/// The same size for a table whose rows are often changed (`delta.tuneFileSizesForRewrites`). If files are smaller, a
/// statement that changes a single row has less data to rewrite.
const TARGET_FILE_SIZE_FOR_REWRITES: u64 = 32 << 20;

/// The rules for writers of a table's files.
#[derive(Debug, Clone)]
pub struct TableWriteSpec {
    mode: ColumnMappingMode,
    logical: StructType,
    arrow: SchemaRef,
    /// The schema with physical names and, with column mapping, field ids.
    physical: StructType,
    physical_arrow: SchemaRef,
    partition_columns: Vec<String>,
    physical_partition_columns: Vec<String>,
    iceberg: Option<IcebergCompat>,
    /// Whether files contain the partition columns as well.
    materializes: bool,
    clustering: Vec<Vec<String>>,
    indexed: IndexedColumns,
    bloom_filters: BloomFilters,
    target_file_size: u64,
    configuration: BTreeMap<String, String>,
    rules: Arc<RowRules>,
    /// The void columns that are NOT NULL. No row can be written to them.
    required_voids: Vec<ColumnPath>,
}

impl TableWriteSpec {
    /// Creates the spec of a table with this protocol and this metadata.
    ///
    /// # Errors
    /// Returns `CorruptLog` for an invalid schema, column mapping or property. Returns `Unsupported` in the same
    /// cases as [`RowRules::of`], and `InvalidArgument` in the same cases as [`IcebergCompat::check`], and for a
    /// default value that Iceberg compatibility does not allow.
    pub fn new(protocol: &Protocol, metadata: &Metadata) -> Result<Self> {
        Self::clustered(protocol, metadata, &[])
    }

    /// Creates the spec of the table at this version. Clustering columns always have statistics, regardless of the
    /// table's properties. (PROTOCOL, "Writer Requirements for Clustered Table".)
    ///
    /// # Errors
    /// Returns the same errors as [`TableWriteSpec::new`] and [`Snapshot::clustering_columns`].
    pub fn of(snapshot: &Snapshot) -> Result<Self> {
        Self::of_evolved(snapshot, snapshot.protocol(), snapshot.metadata())
    }

    /// Creates the spec of the table at this version, but with another protocol and other metadata.
    ///
    /// # Errors
    /// Returns the same errors as [`TableWriteSpec::of`].
    pub(crate) fn of_evolved(snapshot: &Snapshot, protocol: &Protocol, metadata: &Metadata) -> Result<Self> {
        let is_clustered = snapshot.protocol().writer_features().contains(&TableFeature::Clustering);
        let columns = if is_clustered { snapshot.clustering_columns()? } else { Vec::new() };
        Self::clustered(protocol, metadata, &columns)
    }

    /// Creates the spec of a table that is clustered by the columns at these logical paths.
    ///
    /// # Errors
    /// Returns the same errors as [`TableWriteSpec::new`].
    pub(crate) fn clustered(
        protocol: &Protocol,
        metadata: &Metadata,
        columns: &[Vec<String>],
    ) -> Result<Self> {
        let mode = ColumnMappingMode::of(protocol, metadata)?;
        // Files have field ids in both modes, although readers find columns by name in the mode `name`.
        let written = match mode {
            ColumnMappingMode::None => ColumnMappingMode::None,
            ColumnMappingMode::Name | ColumnMappingMode::Id => ColumnMappingMode::Id,
        };
        let iceberg = IcebergCompat::of(protocol, metadata)?;
        let schema = metadata.schema()?;
        if let Some(iceberg) = iceberg {
            iceberg.check(protocol, metadata, &schema)?;
        }
        let schema = match iceberg.is_some_and(IcebergCompat::identifies_parts) {
            true => MappedSchema::with_part_ids(schema)?,
            false => MappedSchema::new(schema, written)?,
        };
        let physical_partition_columns = metadata
            .partition_columns
            .iter()
            .map(|name| {
                schema.physical_name(name).map(str::to_owned).ok_or_else(|| {
                    Error::corrupt_log(format!("the partition column '{name}' is not in the schema"))
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let own_size = metadata.property("delta.targetFileSize").and_then(byte_size);
        let target_file_size =
            own_size.unwrap_or(match metadata.is_enabled("delta.tuneFileSizesForRewrites") {
                true => TARGET_FILE_SIZE_FOR_REWRITES,
                false => TARGET_FILE_SIZE,
            });
        let rules = RowRules::of(protocol, metadata, schema.logical())?;
        if let Some(iceberg) = iceberg {
            rules.check_defaults(iceberg)?;
        }
        Ok(Self {
            mode,
            iceberg,
            materializes: iceberg.is_some()
                || protocol.supports(&TableFeature::MaterializePartitionColumns)
                || metadata.is_enabled(WRITE_PARTITION_COLUMNS),
            clustering: columns.to_vec(),
            indexed: indexed_columns(&metadata.configuration, &schema, columns)?,
            bloom_filters: BloomFilters::of(&metadata.configuration, &schema)?,
            arrow: Arc::clone(schema.arrow()),
            physical_arrow: Arc::clone(schema.physical_arrow()),
            physical: schema.physical().clone(),
            logical: schema.logical().clone(),
            partition_columns: metadata.partition_columns.clone(),
            physical_partition_columns,
            target_file_size,
            configuration: metadata.configuration.clone(),
            rules: Arc::new(rules),
            required_voids: required_voids(schema.logical()),
        })
    }

    /// Creates the spec of a table without column mapping.
    #[cfg(test)]
    pub(super) fn unmapped(arrow: &SchemaRef, partition_columns: &[String], indexed: IndexedColumns) -> Self {
        Self {
            mode: ColumnMappingMode::None,
            logical: StructType::default(),
            arrow: Arc::clone(arrow),
            physical: StructType::default(),
            physical_arrow: Arc::clone(arrow),
            partition_columns: partition_columns.to_vec(),
            physical_partition_columns: partition_columns.to_vec(),
            iceberg: None,
            materializes: false,
            clustering: Vec::new(),
            indexed,
            bloom_filters: BloomFilters::default(),
            target_file_size: TARGET_FILE_SIZE,
            configuration: BTreeMap::new(),
            rules: Arc::default(),
            required_voids: Vec::new(),
        }
    }

    /// Returns how readers find columns in the table's files.
    pub fn column_mapping(&self) -> ColumnMappingMode {
        self.mode
    }

    /// Returns the logical schema, to which data is converted before it is written.
    pub fn schema(&self) -> &StructType {
        &self.logical
    }

    /// Returns the logical schema as an Arrow schema.
    pub fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// Returns the schema with physical names as an Arrow schema, including the partition columns.
    pub(super) fn physical_arrow(&self) -> &SchemaRef {
        &self.physical_arrow
    }

    /// Returns the directory of files with these partition values, which are keyed by physical names. The path is
    /// relative to the directory of the write, and is empty or ends with a slash.
    pub(crate) fn directory_of(&self, values: &PartitionValues) -> String {
        let columns = self.physical_partition_columns().iter();
        hive::directory(columns.map(|name| (name.as_str(), values.get(name).and_then(Option::as_deref))))
    }

    /// Returns the partition columns, by their logical names.
    pub fn partition_columns(&self) -> &[String] {
        &self.partition_columns
    }

    /// Returns the partition columns, by the names that directories and the log use.
    pub fn physical_partition_columns(&self) -> &[String] {
        &self.physical_partition_columns
    }

    /// Returns the schema with physical names, including the partition columns. With column mapping, the fields have
    /// the metadata that makes Spark write field ids.
    pub fn physical_schema(&self) -> &StructType {
        &self.physical
    }

    /// Returns whether files also contain the partition columns, after all other columns.
    pub fn keeps_partition_columns(&self) -> bool {
        self.materializes && !self.partition_columns.is_empty()
    }

    /// Returns what an engine calls the partition columns in the names of directories. No column in the files has one
    /// of these names.
    pub fn directory_columns(&self) -> Vec<String> {
        let names = &self.physical_partition_columns;
        if !self.keeps_partition_columns() {
            return names.clone();
        }
        let is_taken = |name: &str| {
            let mut fields = self.physical_arrow.fields().iter();
            fields.any(|field| field.name().to_lowercase() == name.to_lowercase())
        };
        let free = |name: &String| {
            let mut free = format!("{name}-text");
            while is_taken(&free) {
                free.push('-');
            }
            free
        };
        names.iter().map(free).collect()
    }

    /// Returns the version of Iceberg compatibility whose rules apply to the files.
    pub(crate) fn iceberg(&self) -> Option<IcebergCompat> {
        self.iceberg
    }

    /// Returns the tags of files that are added to the table.
    pub(crate) fn tags(&self) -> Option<Tags> {
        let (name, value) = self.iceberg?.tag()?;
        Some(Tags::from([(name.to_owned(), Some(value.to_owned()))]))
    }

    /// Refuses a table whose rows cannot be stored in data files.
    ///
    /// # Errors
    /// Returns `SchemaMismatch`, which names the column.
    pub fn ensure_storable(&self) -> Result<()> {
        self.arrow.fields().iter().try_for_each(|field| check_storable(field, field.name()))?;
        match self.data_columns().is_empty() {
            true => Err(Error::schema_mismatch(
                "a data file needs at least one column that is neither a partition column nor void",
            )
            .with_hint("give a column another type, or add one")),
            false => Ok(()),
        }
    }

    /// Refuses rows that have a NULL in a void column that is NOT NULL.
    ///
    /// # Errors
    /// Returns `SchemaMismatch`, which names the column.
    pub(super) fn check_voids(&self, rows: &RecordBatch) -> Result<()> {
        check_required(rows, &self.required_voids)
    }

    /// Returns whether files lack columns of the table, or fields of structs, because their type is void.
    pub fn lacks_void(&self) -> bool {
        self.arrow.fields().iter().any(|field| lacks_void(field))
    }

    /// Returns the positions in the schema of the columns that are neither partition columns nor void.
    pub(super) fn data_columns(&self) -> Vec<usize> {
        let fields = self.arrow.fields().iter().enumerate();
        let partition_columns: HashSet<&String> = self.partition_columns.iter().collect();
        fields
            .filter(|(_, field)| !partition_columns.contains(field.name()) && !is_void(field.data_type()))
            .map(|(index, _)| index)
            .collect()
    }

    /// Returns the positions in the schema of the columns that files contain, in the order that they have in files.
    pub(super) fn file_columns(&self) -> Vec<usize> {
        let mut columns = self.data_columns();
        if self.keeps_partition_columns() {
            columns.extend(self.partition_columns.iter().filter_map(|name| self.arrow.index_of(name).ok()));
        }
        columns
    }

    /// Returns the schema of the files.
    pub(super) fn file_schema(&self) -> SchemaRef {
        self.physical_columns(self.file_columns())
    }

    /// Returns the schema of the columns that have statistics: the columns of the files except the partition columns,
    /// whose values are in the log.
    pub(crate) fn data_schema(&self) -> SchemaRef {
        self.physical_columns(self.data_columns())
    }

    fn physical_columns(&self, columns: Vec<usize>) -> SchemaRef {
        let fields = columns.into_iter().filter_map(|index| self.physical_arrow.fields().get(index));
        Arc::new(Schema::new(stored_fields(&fields.cloned().collect())))
    }

    /// Returns the logical paths of the columns that the table is clustered by.
    pub(crate) fn clustering(&self) -> &[Vec<String>] {
        &self.clustering
    }

    /// Returns the fields of the schema by their physical names.
    pub(super) fn physical_fields(&self) -> &Fields {
        self.physical_arrow.fields()
    }

    /// Returns the columns with statistics, by their physical names.
    pub(crate) fn indexed(&self) -> &IndexedColumns {
        &self.indexed
    }

    /// Returns the Bloom filters that the table's files have.
    pub fn bloom_filters(&self) -> &BloomFilters {
        &self.bloom_filters
    }

    /// Returns the size in bytes at which a file is closed and the next one is started.
    pub fn target_file_size(&self) -> u64 {
        self.target_file_size
    }

    /// Returns the table's rules for each row.
    pub fn rules(&self) -> &RowRules {
        &self.rules
    }

    /// Binds the table's rules for each row. Times without a zone are in UTC.
    ///
    /// # Errors
    /// `InvalidArgument` if a constraint or a generated column cannot be evaluated.
    pub fn bound_rules(&self) -> Result<Constraints> {
        self.rules.bind(self.schema(), "UTC")
    }

    /// Returns the table's metadata with the new high water marks of identity columns; `None` if this write used no
    /// values of identity columns. (PROTOCOL, "Identity Columns".)
    ///
    /// # Errors
    /// Returns the same errors as [`StructType::try_new`].
    pub(crate) fn counted_metadata(&self, metadata: &Metadata) -> Result<Option<Metadata>> {
        let marked = self.rules.identities.marked(self.schema())?;
        Ok(marked.map(|schema| Metadata { schema_string: schema.to_json(), ..metadata.clone() }))
    }

    /// Returns the spec with an additional condition that rows must meet. `time_zone` applies to times without a
    /// zone.
    #[must_use]
    pub(crate) fn with_check(mut self, name: &str, sql: &str, time_zone: &str) -> Self {
        let check = RuleText { time_zone: Some(time_zone.to_owned()), ..RuleText::new(name, sql) };
        Arc::make_mut(&mut self.rules).checks.push(check);
        self
    }

    /// Returns the spec with another target size of files.
    #[must_use]
    pub(crate) fn with_target_file_size(mut self, bytes: u64) -> Self {
        self.target_file_size = bytes;
        self
    }

    /// Returns the spec for rows that include their row ids, in the columns that a scan of the table appends. Files
    /// store these columns under the names in `materialized`, and the columns have no statistics. (PROTOCOL, "Row
    /// Tracking", "Writer Requirements for Row Tracking".) From version 3 of Iceberg compatibility on, they have
    /// field ids.
    #[must_use]
    pub(crate) fn with_row_ids(mut self, materialized: &MaterializedRowTracking) -> Self {
        let indexed = indexed(&self.data_schema(), &self.indexed).into_iter().map(|(path, _)| path);
        self.indexed = IndexedColumns::Chosen(indexed.collect());
        let columns =
            [(ROW_ID, &materialized.row_id), (ROW_COMMIT_VERSION, &materialized.row_commit_version)];
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let ids = self.iceberg.and_then(IcebergCompat::row_tracking_ids);
        let mut physical = columns.map(|(_, name)| field(name));
        for (field, id) in physical.iter_mut().zip(ids.into_iter().flatten()) {
            let id = (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
            field.set_metadata([id].into());
        }
        self.with_columns(columns.map(|(name, _)| field(name)), physical)
    }

    /// Returns the spec of change data files. Their rows have an additional column `name` with the kind of change,
    /// and are not checked. The files have no Bloom filters. (PROTOCOL, "Change Data Files".)
    #[must_use]
    pub(crate) fn with_change_type(mut self, name: &str) -> Self {
        self.bloom_filters = BloomFilters::default();
        let field = Field::new(name, DataType::Utf8, true);
        self.without_rules().with_columns([field.clone()], [field])
    }

    /// Appends columns. Each is given as a logical and as a physical field.
    fn with_columns<const N: usize>(mut self, logical: [Field; N], physical: [Field; N]) -> Self {
        let more = |schema: &Schema, fields: [Field; N]| {
            let fields: Fields = schema.fields().iter().cloned().chain(fields.map(Arc::new)).collect();
            Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
        };
        self.arrow = more(&self.arrow, logical);
        self.physical_arrow = more(&self.physical_arrow, physical);
        self
    }

    /// Returns the spec for one of several writers. The writer assigns the values of its `lane` to identity columns. If
    /// `lane` is `None`, it cannot assign any values.
    #[must_use]
    pub(crate) fn in_lane(mut self, lane: Option<Lane>) -> Self {
        let rules = Arc::make_mut(&mut self.rules);
        rules.identities = rules.identities.in_lane(lane);
        self
    }

    /// Returns the spec for rows that already have values in their identity columns.
    #[must_use]
    pub(crate) fn with_given_identities(mut self) -> Self {
        Arc::make_mut(&mut self.rules).identities = Identities::default();
        self
    }

    /// Returns the spec without rules, for rows that have already been checked.
    #[must_use]
    pub(crate) fn without_rules(mut self) -> Self {
        self.rules = Arc::default();
        self.required_voids.clear();
        self
    }

    /// Returns the table's properties.
    pub fn configuration(&self) -> &BTreeMap<String, String> {
        &self.configuration
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::define::TableDefinition;
    use crate::protocol::{PrimitiveType, StructField};
    use crate::runtime::environment::Environment;

    #[test]
    fn table_properties_set_the_target_size_of_files() {
        let size = |properties: &[(&str, &str)]| {
            let columns = vec![StructField::new("a", PrimitiveType::Long, true)];
            let mut definition = TableDefinition::new(StructType::try_new(columns).unwrap());
            let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            definition.configuration = properties.collect();
            let table = definition.resolve(&Environment::system()).unwrap();
            TableWriteSpec::new(&table.protocol, &table.metadata).unwrap().target_file_size() >> 20
        };
        let rewrites = ("delta.tuneFileSizesForRewrites", "true");
        assert_eq!(size(&[]), 128);
        assert_eq!(size(&[rewrites]), 32);
        assert_eq!(size(&[("delta.tuneFileSizesForRewrites", "false")]), 128);
        assert_eq!(size(&[rewrites, ("delta.targetFileSize", "1g")]), 1024);
    }
}
