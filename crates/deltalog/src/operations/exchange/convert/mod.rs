//! CONVERT: turns a directory of Parquet files into a table, without moving the files. (Protocol: "Creation of New
//! Log Entries", "Add File and Remove File".)
//!
//! ```text
//!   directory walk ─┐
//!                   ├──► files ──► partition columns, their types and values
//!    caller's list ─┘     │
//!                         └─ footers, in parallel ──► schema, statistics ──► version 0
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `request` | the request of a conversion |
//! | `listing`, `listed` | find the files, in the directory or in a list |
//! | `partitions` | finds the partition columns in directory names, and their values |
//! | `inferred` | infers the types of these columns if they are not given |
//! | `footers` | reads the schemas and statistics of the files |
//! | `merged` | merges the schemas of the files |
//!
//! - No data is read or written. The footer of each file is read, and a single commit is made. Files that cannot
//!   become part of a table are refused before the commit, with their paths.
//! - All files that are not hidden become part of the table, regardless of their names, because leaving one out would
//!   lose its rows. A file that is not Parquet is therefore an error, and so is a table inside of the directory. Only
//!   empty files are left out.
//! - The values of partition columns are parsed with the column's type and written as the log spells them, as in the
//!   JVM implementation (the value `01` of an integer column becomes `1`).
//! - All columns are nullable, as in the JVM implementation, because the files may contain NULL in any column.
//! - If a table already exists, it is not changed.

mod footers;
mod inferred;
mod listed;
mod listing;
mod merged;
mod partitions;
mod request;

use std::borrow::Cow;

use arrow::array::{RecordBatch, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;
use serde_json::{Value, json};

pub use request::{ConvertRequest, ConvertSource};

use self::footers::Footers;
use self::merged::declared;
use self::partitions::Partitions;
use crate::commit::{Committed, Operation, Transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::log::is_table;
use crate::log::replay::{FileColumn, path_of};
use crate::operations::define::{CreationMode, TableDefinition, unfit_name};
use crate::protocol::TableHeader;
use crate::protocol::path::decode;
use crate::protocol::{StructField, StructType};
use crate::runtime::environment::Environment;
use crate::storage::Storage;

/// A data file to convert.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FoundFile {
    /// The decoded path of the file, relative to the directory.
    path: String,
    size: u64,
    modified_ms: i64,
    /// The index of the file's partition.
    partition: usize,
}

/// The columns of a plan as users see it, and the columns of `add` actions that they come from.
const COLUMNS: [(&str, FileColumn); 5] = [
    ("path", FileColumn::Path),
    ("size", FileColumn::Size),
    ("modification_time", FileColumn::ModificationTime),
    ("partition_values", FileColumn::PartitionValues),
    ("stats", FileColumn::Stats),
];

/// The maximum number of paths that an error message lists.
const NAMED: usize = 10;

/// Finds the files below the root of `storage`, and reads their footers. Does not commit yet; call
/// [`Conversion::commit`] to make the commit. Returns `None` if a table exists and the mode is `Ignore`.
///
/// ```
/// use deltalog::{ConvertRequest, Environment, Snapshot, Storage, plan_conversion};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (directory, storage) = example_table()?;
/// # // The data files of a table are a directory of Parquet files without its log.
/// # std::fs::remove_dir_all(directory.path().join("_delta_log")).unwrap();
/// let environment = Environment::system();
/// let plan = plan_conversion(&storage, ConvertRequest::default(), &environment)?;
/// let plan = plan.expect("the request does not ignore a table");
/// println!("{} files, {:?}", plan.files(), plan.schema());
/// let files = plan.files();
/// plan.commit()?;
/// assert_eq!(Snapshot::open(&storage, None)?.totals()?.files, files);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns `TableAlreadyExists` if the directory is a table. Returns `InvalidArgument` if there are no files, if the
/// partition columns do not match the directories, or if a value does not have its column's type. Returns
/// `SchemaMismatch` if the files have columns of different types, columns that the request does not name, or columns
/// that no table can have. Returns `CorruptData` for a file that is not Parquet, and `Unsupported` for a type or
/// property that cannot be converted. Also returns errors from the store.
pub fn plan_conversion(
    storage: &Storage,
    request: ConvertRequest,
    environment: &Environment,
) -> Result<Option<Conversion>> {
    plan(storage, request, environment).map_err(|error| error.in_table(storage.url()))
}

fn plan(storage: &Storage, request: ConvertRequest, environment: &Environment) -> Result<Option<Conversion>> {
    request.check()?;
    if is_table(storage)? {
        return match request.mode {
            CreationMode::Ignore => Ok(None),
            _ => Err(exists()),
        };
    }
    let ConvertRequest {
        source,
        definition,
        partition_by,
        columns: known,
        time_zone,
        statistics,
        mode,
        operation,
    } = request;
    let (mut files, partitions, partition_by) = match source {
        ConvertSource::Directory => {
            let hidden = partition_by.iter().flat_map(|columns| columns.fields());
            let (files, partitions) = listing::find(storage, hidden.map(|field| field.name.as_str()))?;
            (files, partitions, partition_by)
        }
        ConvertSource::Files(files) => {
            let listed::List { files, partitions, columns } = listed::read(storage, files)?;
            (files, partitions, partition_by.or(columns))
        }
    };
    if files.is_empty() {
        return Err(Error::invalid_argument("there are no Parquet files to convert").with_hint(
            "check the path; files and directories that begin with '_' or '.' are not looked at",
        ));
    }
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let (columns, values) = Partitions::new(partitions, &files)?.typed(partition_by.as_ref(), &time_zone)?;
    let footers =
        Footers { storage, configuration: &definition.configuration, partition_by: &columns, statistics };
    let (data, common, adds) = footers.read(&files, &values)?;
    let data = match known {
        Some(known) => declared(&known, &data, &common)?,
        None => data,
    };
    let fields: Vec<StructField> = data.fields().iter().chain(columns.fields()).cloned().collect();
    let mut definition = TableDefinition { schema: StructType::try_new(fields)?, ..definition };
    if let Some((name, bad)) = unfit_name(&definition.schema) {
        return Err(Error::schema_mismatch(format!(
            "the column name '{name}' contains {bad:?}, which needs column mapping, and a conversion cannot map columns"
        ))
        .with_hint(
            "write the rows to a new table whose property 'delta.columnMapping.mode' is 'name', or rename the column \
             in the files",
        ));
    }
    definition.partition_columns = columns.fields().iter().map(|field| field.name.clone()).collect();
    let table = definition.resolve(environment)?;
    let bytes = files.iter().map(|file| file.size).sum();
    let count = files.len() as u64;
    let operation = described(operation, count, &definition.partition_columns, statistics);
    Ok(Some(Conversion {
        storage: storage.clone(),
        table,
        schema: definition.schema,
        adds,
        files: count,
        bytes,
        mode,
        operation,
        environment: environment.clone(),
    }))
}

fn exists() -> Error {
    Error::new(ErrorKind::TableAlreadyExists, "the directory is already a Delta table")
        .with_hint("there is nothing to convert; the mode 'ignore' leaves the table as it is")
}

/// Returns the description of the commit, with the names that the JVM implementation uses.
fn described(mut operation: Operation, files: u64, partition_by: &[String], statistics: bool) -> Operation {
    "CONVERT".clone_into(&mut operation.name);
    operation
        .parameter("numFiles", files)
        .parameter("partitionedBy", Value::String(json!(partition_by).to_string()))
        .parameter("collectStats", statistics)
        .parameter("sourceFormat", "parquet")
        .metric("numConvertedFiles", files)
}

/// A planned conversion of a directory into a table. Nothing has been committed yet.
#[derive(Debug)]
pub struct Conversion {
    storage: Storage,
    table: TableHeader,
    schema: StructType,
    adds: Vec<RecordBatch>,
    files: u64,
    bytes: u64,
    mode: CreationMode,
    operation: Operation,
    environment: Environment,
}

impl Conversion {
    /// Returns the number of files that will be part of the table.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Returns the total size in bytes of the files that will be part of the table.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the paths of the files, decoded and relative to the table.
    ///
    /// # Errors
    /// Never fails for a plan that [`plan_conversion`] has made.
    pub fn paths(&self) -> Result<Vec<String>> {
        let mut paths = Vec::with_capacity(self.adds.iter().map(RecordBatch::num_rows).sum());
        for batch in &self.adds {
            for row in 0..batch.num_rows() {
                paths.extend(path_of(batch, row).map(|path| decode(&path).map(Cow::into_owned)).transpose()?);
            }
        }
        Ok(paths)
    }

    /// Returns the schema of the table, with the partition columns at its end.
    pub fn schema(&self) -> &StructType {
        &self.schema
    }

    /// Returns the partition columns.
    pub fn partition_columns(&self) -> &[String] {
        &self.table.metadata.partition_columns
    }

    /// Returns the files in batches with the columns `path` (a URI, as in the log), `size`, `modification_time`,
    /// `partition_values` (a map of strings) and `stats` (JSON).
    ///
    /// # Errors
    /// Never fails for a plan that [`plan_conversion`] has made.
    pub fn batches(&self) -> Result<Vec<RecordBatch>> {
        let unreadable =
            |error: ArrowError| Error::corrupt_log("file actions cannot be read").with_source(error);
        let batch = |adds: &RecordBatch| -> Result<RecordBatch> {
            let mut columns = Vec::with_capacity(COLUMNS.len());
            for (name, column) in COLUMNS {
                let found = adds.column_by_name(column.name()).cloned();
                let found = found.unwrap_or_else(|| new_null_array(&column.data_type(), adds.num_rows()));
                let is_time = column == FileColumn::ModificationTime;
                let found = if is_time { cast(&found, &time()).map_err(unreadable)? } else { found };
                columns.push((name, found, true));
            }
            RecordBatch::try_from_iter_with_nullable(columns).map_err(unreadable)
        };
        self.adds.iter().map(batch).collect()
    }

    /// Commits the files as version 0. Returns `None` if another writer has created a table since, and the mode is
    /// `Ignore`.
    ///
    /// # Errors
    /// Returns `TableAlreadyExists`, `CommitStateUnknown`, and errors from the store. After any error except
    /// `CommitStateUnknown`, nothing has been committed.
    pub fn commit(&self) -> Result<Option<Committed>> {
        let Self { storage, table, operation, .. } = self;
        let mut transaction =
            Transaction::create(storage, table.clone(), operation.clone(), &self.environment)?;
        self.adds.iter().for_each(|batch| transaction.add_batch(batch.clone()));
        match transaction.attempt()? {
            Ok(committed) => Ok(Some(committed)),
            Err(_) if self.mode == CreationMode::Ignore => Ok(None),
            Err(lost) => Err(lost.into_error()),
        }
    }
}

/// Returns the type of the modification times in a plan.
fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

/// Lists paths for an error message: the first few of them, and their total number.
fn named<'a>(paths: impl IntoIterator<Item = &'a str>) -> String {
    let (mut text, mut count) = (String::new(), 0);
    for path in paths {
        count += 1;
        if count <= NAMED {
            let comma = if text.is_empty() { "" } else { ", " };
            text.push_str(&format!("{comma}{path}"));
        }
    }
    if count > NAMED { format!("{text}, … ({count} in all)") } else { text }
}
