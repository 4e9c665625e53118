//! `add` actions for the files that an engine's Parquet writer put below a directory of the table.
//!
//! ```text
//! <directory>/_SUCCESS                            ignored, like every name that begins with `_` or `.`
//! <directory>/a=1/b=x%3Ay/part-00000-….parquet    a file of the partition a = 1, b = x:y
//! ```
//!
//! - The engine serializes partition values as the log does, so the names of directories only have to be
//!   unescaped.
//! - The directories of an engine that also writes the partition columns to its files have names of their own for them
//!   ([`TableWriteSpec::directory_columns`]).
//! - Only footers are read, not data pages, so it is unknown whether a file contains NaN.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::Schema;

use super::counted;
use super::footer::{THREADS, read_footer};
use super::hive;
use super::iceberg;
use super::spec::TableWriteSpec;
use super::split::null_in_partition_column;
use crate::error::{Error, ErrorKind, Result};
use crate::parallel;
use crate::protocol::{Add, PartitionValues, path};
use crate::stats::{CollectOptions, collect_stats, num_records};
use crate::storage::{FileMeta, Storage};

/// The files that [`adopt`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adopted {
    /// The files with rows, ordered by path.
    pub adds: Vec<Add>,
    /// The decoded paths of the files without rows, relative to the table's root. The caller may delete them.
    pub empty: Vec<String>,
}

/// What an engine reports to have written, to be compared with what [`adopt`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The number of rows.
    pub rows: u64,
    /// The number of partitions; `None` if the table has no partition columns.
    pub partitions: Option<u64>,
}

impl Written {
    /// Checks that `adds` hold exactly what the engine wrote.
    ///
    /// # Errors
    /// `FileNotFound` if rows are missing, `CorruptData` if there are more rows than were written,
    /// `Unsupported` if several partitions share a directory.
    pub fn check(self, adds: &[Add]) -> Result<()> {
        let rows = adds.iter().map(rows_of).sum::<Result<u64>>()?;
        if rows != self.rows {
            let kind = if rows < self.rows { ErrorKind::FileNotFound } else { ErrorKind::CorruptData };
            return Err(Error::new(
                kind,
                format!(
                    "the engine reports that it wrote {} rows, but the files in the table's directory hold \
                     {rows}; nothing was committed",
                    self.rows
                ),
            )
            .with_hint(
                "make sure that the table's path is the same place for the driver and all executors, such as a \
                 directory of a shared file system",
            ));
        }
        let directories = adds.iter().map(|add| &add.partition_values).collect::<BTreeSet<_>>().len() as u64;
        match self.partitions {
            Some(partitions) if partitions != directories => Err(Error::unsupported(format!(
                "the engine wrote {partitions} partitions to {directories} directories, so the partition values \
                 of some rows are lost; nothing was committed"
            ))
            .with_hint(
                "use a case-sensitive file system for partition values that differ only in case, and do not use \
                 '__HIVE_DEFAULT_PARTITION__' as a value, because it stands for NULL",
            )),
            _ => Ok(()),
        }
    }
}

fn rows_of(add: &Add) -> Result<u64> {
    add.stats.as_deref().and_then(num_records).ok_or_else(|| {
        Error::corrupt_data("the statistics of the file do not have a number of rows").at_path(&add.path)
    })
}

/// Returns the data files below `directory`, a decoded path relative to the table's root.
///
/// # Errors
/// `CorruptData` for a file whose directories do not name each partition column, for a file that is not Parquet, and
/// for one that does not tell the values of a column that the engine has counted; also errors of the store.
pub fn adopt(storage: &Storage, directory: &str, spec: &TableWriteSpec) -> Result<Adopted> {
    let located = |error: Error| error.in_table(storage.url());
    let partition_columns = &spec.directory_columns();
    let directory = directory.trim_end_matches('/');
    let files = storage.list_after(directory, "")?;
    let files: Vec<FileMeta> =
        files.into_iter().filter(|file| !is_hidden(&file.name, partition_columns)).collect();
    let data_schema = spec.data_schema();
    let stats = CollectOptions { columns: spec.indexed().clone(), without_nan: false };
    let path_of = |file: &FileMeta| {
        if directory.is_empty() { file.name.clone() } else { format!("{directory}/{}", file.name) }
    };
    let read = |file: &FileMeta| {
        let path = path_of(file);
        read_file(storage, &path, file, &data_schema, &stats, spec)
            .map_err(|error| located(error.at_path(&path)))
    };
    let mut adopted = Adopted::default();
    for (file, add) in files.iter().zip(parallel::each(&files, THREADS, read)?) {
        match add {
            Some(add) => {
                ensure_required(&add, spec).map_err(|error| located(error.at_path(&add.path)))?;
                adopted.adds.push(add);
            }
            None => adopted.empty.push(path_of(file)),
        }
    }
    Ok(adopted)
}

/// Refuses NULL, which is also what is stored for an empty string, in a NOT NULL partition column.
pub(crate) fn ensure_required(add: &Add, spec: &TableWriteSpec) -> Result<()> {
    let columns = spec.partition_columns().iter().zip(spec.physical_partition_columns());
    for (name, physical) in columns {
        let is_required = spec.schema().field(name).is_some_and(|field| !field.nullable);
        if is_required
            && add
                .partition_values
                .get(physical)
                .is_none_or(|value| value.as_deref().is_none_or(str::is_empty))
        {
            return Err(null_in_partition_column(name));
        }
    }
    Ok(())
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

/// Returns the action that adds a file, or `None` if it has no rows.
fn read_file(
    storage: &Storage,
    path: &str,
    file: &FileMeta,
    schema: &Schema,
    stats: &CollectOptions,
    spec: &TableWriteSpec,
) -> Result<Option<Add>> {
    let partition_values = partition_values(&file.name, &spec.directory_columns())?;
    let names = spec.physical_partition_columns().iter().cloned();
    let partition_values: PartitionValues = names.zip(partition_values).collect();
    let metadata = read_footer(&storage.open_file(path)?)?;
    if metadata.file_metadata().num_rows() == 0 {
        return Ok(None);
    }
    if let Some(fault) = iceberg::fault(&metadata, spec) {
        return Err(Error::corrupt_data(format!("{fault}; nothing was committed"))
            .with_hint("this is a bug: report it with the version of the engine"));
    }
    let size = i64::try_from(file.size).map_err(|_| Error::corrupt_data("the file is too large"))?;
    let add = Add {
        path: path::encode(path),
        partition_values,
        size,
        modification_time: file.modified_ms,
        data_change: true,
        stats: Some(collect_stats(&metadata, schema, stats)?),
        tags: spec.tags(),
        ..Add::default()
    };
    counted::note(&metadata, &add, spec)?;
    Ok(Some(add))
}

/// Returns the value of each partition column, in order, from the names of the directories above a file.
fn partition_values(name: &str, partition_columns: &[String]) -> Result<Vec<Option<String>>> {
    let mut named: BTreeMap<String, (String, Option<String>)> = BTreeMap::new();
    let directories = name.rsplit_once('/').map_or("", |(directories, _)| directories);
    for directory in directories.split('/').filter(|directory| !directory.is_empty()) {
        let (column, value) = hive::parse_directory(directory).ok_or_else(|| {
            Error::corrupt_data(format!("the directory '{directory}' is not named column=value"))
        })?;
        if named.insert(column.to_lowercase(), (column, value)).is_some() {
            return Err(Error::corrupt_data(format!(
                "the directory '{directory}' is inside another directory of the same column"
            )));
        }
    }
    let value = |column: &String| match named.remove(&column.to_lowercase()) {
        Some((_, value)) => Ok(value),
        None => {
            Err(Error::corrupt_data(format!("no directory names a value of the partition column '{column}'")))
        }
    };
    let values = partition_columns.iter().map(value).collect::<Result<Vec<_>>>()?;
    match named.into_values().next() {
        Some((column, _)) => Err(Error::corrupt_data(format!(
            "the file is in a directory of '{column}', which is not a partition column"
        ))),
        None => Ok(values),
    }
}
