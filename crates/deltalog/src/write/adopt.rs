//! Files that an engine's Parquet writer put below a directory of the table, as `add` actions.
//!
//! ```text
//! <directory>/_SUCCESS                            passed over, as every name that begins with `_` or `.`
//! <directory>/a=1/b=x%3Ay/part-00000-….parquet    a file of the partition a = 1, b = x:y
//! ```
//!
//! - The engine writes each partition value as the log's text for it, so that the directory's name only has
//!   to be unescaped.
//! - Footers are read, data pages are not: nobody looks whether there is a NaN.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::{Schema, SchemaRef};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use serde::Deserialize;

use super::hive;
use crate::error::{Error, ErrorKind, Result};
use crate::parallel;
use crate::protocol::{Add, PartitionValues, path};
use crate::stats::{CollectOptions, IndexedColumns, collect_stats};
use crate::storage::{FileMeta, Storage};

/// What [`adopt`] has to know about the table.
#[derive(Debug, Clone)]
pub struct AdoptOptions {
    /// The table's schema, with or without its partition columns.
    pub schema: SchemaRef,
    /// The partition columns by the names of the directories.
    pub partition_columns: Vec<String>,
    /// The columns that statistics are kept of.
    pub indexed: IndexedColumns,
    /// How many footers are read at once; at least one.
    pub threads: usize,
}

/// What [`adopt`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adopted {
    /// The files with rows, in the order of their paths.
    pub adds: Vec<Add>,
    /// Decoded paths, relative to the table's root, of the files without rows: the caller may delete them.
    pub empty: Vec<String>,
}

/// What an engine says that it wrote, to be compared with what [`adopt`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The number of rows.
    pub rows: u64,
    /// The number of partitions; `None` if the table has no partition columns.
    pub partitions: Option<u64>,
}

impl Written {
    /// Checks that `adds` are all that the engine wrote.
    ///
    /// # Errors
    /// `FileNotFound` if rows are missing, `CorruptData` if there are more than were written, `Unsupported`
    /// if partitions share a directory.
    pub fn check(self, adds: &[Add]) -> Result<()> {
        let rows = adds.iter().map(rows_of).sum::<Result<u64>>()?;
        if rows != self.rows {
            let kind = if rows < self.rows { ErrorKind::FileNotFound } else { ErrorKind::CorruptData };
            return Err(Error::new(
                kind,
                format!(
                    "the engine says that it wrote {} rows, but the files in the table's directory hold {rows}; nothing was \
                     committed",
                    self.rows
                ),
            )
            .with_hint("let all executors write to one file system: the table's path must be the same place for them and the driver"));
        }
        let directories = adds.iter().map(|add| &add.partition_values).collect::<BTreeSet<_>>().len() as u64;
        match self.partitions {
            Some(partitions) if partitions != directories => Err(Error::unsupported(format!(
                "the engine wrote {partitions} partitions into {directories} directories, so the partition values of some rows \
                 are lost; nothing was committed"
            ))
            .with_hint(
                "a file system that does not distinguish upper and lower case cannot hold partition values that differ in case \
                 only, and no file system can hold both null and '__HIVE_DEFAULT_PARTITION__'",
            )),
            _ => Ok(()),
        }
    }
}

fn rows_of(add: &Add) -> Result<u64> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Count {
        num_records: u64,
    }
    let stats = add.stats.as_deref().unwrap_or_default();
    let count: Count = serde_json::from_str(stats).map_err(|error| {
        Error::corrupt_data("the statistics of the file have no number of rows")
            .at_path(&add.path)
            .with_source(error)
    })?;
    Ok(count.num_records)
}

/// The data files below `directory`, a decoded path relative to the table's root.
///
/// # Errors
/// `CorruptData` for a file that is not below a directory for each partition column, or is no Parquet file;
/// what the store says otherwise.
pub fn adopt(storage: &Storage, directory: &str, options: &AdoptOptions) -> Result<Adopted> {
    let located = |error: Error| error.in_table(storage.url());
    let directory = directory.trim_end_matches('/');
    let files = storage.list_after(directory, "")?;
    let files: Vec<FileMeta> =
        files.into_iter().filter(|file| !is_hidden(&file.name, &options.partition_columns)).collect();
    let file_schema = without_partitions(options);
    let stats = CollectOptions { columns: options.indexed.clone(), without_nan: false };
    let place = |file: &FileMeta| {
        if directory.is_empty() { file.name.clone() } else { format!("{directory}/{}", file.name) }
    };
    let read = |file: &FileMeta| {
        let path = place(file);
        read_file(storage, &path, file, &file_schema, &stats, &options.partition_columns)
            .map_err(|error| located(error.at_path(&path)))
    };
    let mut adopted = Adopted::default();
    for (file, add) in files.iter().zip(parallel::each(&files, options.threads, read)?) {
        match add {
            Some(add) => adopted.adds.push(add),
            None => adopted.empty.push(place(file)),
        }
    }
    Ok(adopted)
}

/// Returns whether engines would not read the file `name`: it or a directory above it starts with `_` or `.`. The
/// directory of a partition column is never hidden.
fn is_hidden(name: &str, partition_columns: &[String]) -> bool {
    let is_partition = |directory: &str| {
        hive::parse_directory(directory).is_some_and(|(column, _)| {
            partition_columns.iter().any(|name| name.to_lowercase() == column.to_lowercase())
        })
    };
    let (directories, file) = name.rsplit_once('/').unwrap_or(("", name));
    let starts_hidden = |part: &str| part.starts_with(['_', '.']);
    starts_hidden(file) || directories.split('/').any(|part| starts_hidden(part) && !is_partition(part))
}

fn without_partitions(options: &AdoptOptions) -> Schema {
    let fields =
        options.schema.fields().iter().filter(|field| !options.partition_columns.contains(field.name()));
    Schema::new(fields.cloned().collect::<Vec<_>>())
}

/// The action that adds a file, or `None` if it has no rows.
fn read_file(
    storage: &Storage,
    path: &str,
    file: &FileMeta,
    schema: &Schema,
    stats: &CollectOptions,
    partition_columns: &[String],
) -> Result<Option<Add>> {
    let partition_values = partition_values(&file.name, partition_columns)?;
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Skip);
    let metadata = reader.parse_and_finish(&storage.open_file(path)?).map_err(|error| match error {
        ParquetError::External(_) => {
            Error::new(ErrorKind::Unavailable, "the file's footer could not be read").with_source(error)
        }
        error => Error::corrupt_data("the file has no readable Parquet footer").with_source(error),
    })?;
    if metadata.file_metadata().num_rows() == 0 {
        return Ok(None);
    }
    let size = i64::try_from(file.size).map_err(|_| Error::corrupt_data("the file is too large"))?;
    Ok(Some(Add {
        path: path::encode(path),
        partition_values,
        size,
        modification_time: file.modified_ms,
        data_change: true,
        stats: Some(collect_stats(&metadata, schema, stats)?),
        ..Add::default()
    }))
}

/// The values that the directories above a file name, one for each partition column.
fn partition_values(name: &str, partition_columns: &[String]) -> Result<PartitionValues> {
    let mut named: BTreeMap<String, (String, Option<String>)> = BTreeMap::new();
    let directories = name.rsplit_once('/').map_or("", |(directories, _)| directories);
    for directory in directories.split('/').filter(|directory| !directory.is_empty()) {
        let (column, value) = hive::parse_directory(directory)
            .ok_or_else(|| Error::corrupt_data(format!("the directory '{directory}' is no partition's")))?;
        if named.insert(column.to_lowercase(), (column, value)).is_some() {
            return Err(Error::corrupt_data(format!(
                "the directory '{directory}' is inside another one of the same column"
            )));
        }
    }
    let value = |column: &String| match named.remove(&column.to_lowercase()) {
        Some((_, value)) => Ok((column.clone(), value)),
        None => {
            Err(Error::corrupt_data(format!("the file is in no directory of partition column '{column}'")))
        }
    };
    let values = partition_columns.iter().map(value).collect::<Result<PartitionValues>>()?;
    match named.into_values().next() {
        Some((column, _)) => Err(Error::corrupt_data(format!(
            "the file is in a directory of '{column}', which is no partition column"
        ))),
        None => Ok(values),
    }
}
