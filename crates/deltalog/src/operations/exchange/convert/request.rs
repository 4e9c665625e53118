//! The request of a conversion.

use arrow::array::RecordBatchReader;

use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::operations::define::{CreationMode, TableDefinition};
use crate::protocol::{DataType, IcebergCompat, StructType};

/// The source of the files to convert.
#[non_exhaustive]
pub enum ConvertSource {
    /// All files in the directory. The names of nested directories, `column=value`, contain the partition values.
    Directory,
    /// The files in a list, such as a manifest. The list has these columns: `path`, relative to the directory or a
    /// full path, not encoded; `size` in bytes; and `modification_time`, in milliseconds since the epoch or as a
    /// timestamp. If there are partition columns, it also has the column `partition_values`, which is a map of
    /// strings as the log spells them, or a struct with a typed field for each column.
    Files(Box<dyn RecordBatchReader + Send>),
}

impl std::fmt::Debug for ConvertSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Directory => "Directory",
            Self::Files(_) => "Files",
        })
    }
}

/// A request to turn Parquet files into a table.
#[derive(Debug)]
#[non_exhaustive]
pub struct ConvertRequest {
    /// The source of the files.
    pub source: ConvertSource,
    /// The partition columns and their types. If `None`, the columns are taken from directory names, or from the list
    /// of files. Their types are the types of the list's struct fields. If there is no struct, the types are inferred
    /// from the values as Spark does: integer, long, decimal without fraction, double, timestamp, date, or otherwise
    /// string.
    pub partition_by: Option<StructType>,
    /// The other columns of the table, if they are known, for example from a catalog. Files may lack some of these
    /// columns, which are then NULL, but must not have additional columns. If `None`, the columns are taken from the
    /// files. A column whose default value applies to old rows (Spark's `EXISTS_DEFAULT`) must be in all files.
    pub columns: Option<StructType>,
    /// The time zone for timestamps in directory names that do not contain a time zone.
    pub time_zone: String,
    /// Whether to keep the bounds and NULL counts in the footers. The numbers of rows are always kept.
    pub statistics: bool,
    /// What to do if the directory is already a table.
    pub mode: CreationMode,
    /// Additional fields of the commit, such as user metadata.
    pub operation: Operation,
    /// The name, description and properties of the table. The columns in this definition are ignored.
    pub(super) definition: TableDefinition,
}

impl Default for ConvertRequest {
    fn default() -> Self {
        Self::new(ConvertSource::Directory)
    }
}

impl ConvertRequest {
    /// Requests a table that consists of the files of `source`.
    pub fn new(source: ConvertSource) -> Self {
        Self {
            source,
            partition_by: None,
            columns: None,
            time_zone: "UTC".to_owned(),
            statistics: true,
            mode: CreationMode::ErrorIfExists,
            operation: Operation::default(),
            definition: TableDefinition::new(StructType::default()),
        }
    }

    /// Takes the name, description and properties of the table from `definition`. The columns still come from the
    /// files.
    #[must_use]
    pub fn defined_as(mut self, definition: TableDefinition) -> Self {
        self.definition = definition;
        self
    }

    /// Refuses requests that are invalid regardless of the files.
    pub(super) fn check(&self) -> Result<()> {
        if self.mode == CreationMode::CreateOrReplace {
            return Err(Error::invalid_argument("a conversion does not replace a table")
                .with_hint("use the mode error or ignore"));
        }
        let TableDefinition { schema, partition_columns, clustering_columns, constraints, .. } =
            &self.definition;
        if !schema.fields().is_empty() || !partition_columns.is_empty() {
            return Err(Error::invalid_argument("a converted table takes its columns from its files"));
        }
        if clustering_columns.is_some() || !constraints.is_empty() {
            return Err(Error::unsupported(
                "a conversion can neither cluster a table nor add constraints to it",
            )
            .with_hint("alter the table afterwards"));
        }
        let property = |name: &str| self.definition.configuration.get(name).map(String::as_str);
        let is_mapped = property("delta.columnMapping.mode")
            .is_some_and(|mode| !mode.trim().eq_ignore_ascii_case("none"));
        if is_mapped || IcebergCompat::is_asked_for(property) {
            return Err(Error::unsupported(
                "a conversion cannot map columns: the files keep their column names",
            )
            .with_hint("set delta.columnMapping.mode, or the compatibility with Iceberg, afterwards"));
        }
        let nested = |columns: &StructType| {
            let is_nested = |data_type: &DataType| data_type.as_primitive().is_none();
            columns.fields().iter().find(|field| is_nested(&field.data_type)).map(|field| field.name.clone())
        };
        match self.partition_by.as_ref().and_then(nested) {
            Some(name) => Err(Error::invalid_argument(format!(
                "a table cannot be partitioned by the nested column '{name}'"
            ))),
            None => Ok(()),
        }
    }
}
