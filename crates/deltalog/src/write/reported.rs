//! Creates `add` and `cdc` actions for the files that an engine's tasks report, and collects the rows that the tasks
//! report as removed.
//!
//! - Only reported files belong to a write. Other files in the table's directories are ignored.
//! - The statistics are computed from the footers in the reports, by the same code as for all other files. No file is
//!   opened.

use std::collections::BTreeMap;
use std::ops::Range;

use parquet::file::metadata::ParquetMetaData;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::counted;
use super::iceberg;
use super::spec::TableWriteSpec;
use super::split::null_in_partition_column;
pub use super::task_report::ReportedBin;
use super::task_report::{FileReport, RemovedRows, StatementCounts, TaskReports, read};
use crate::error::{Error, Result};
use crate::protocol::{Add, AddCdcFile, PartitionColumnBuilder, path};
use crate::runtime::parallel;
use crate::values::stats::{CollectOptions, collect_stats};

/// The results of an engine's tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reported {
    /// The files that the tasks have written, in the order of the tasks.
    pub files: Vec<Add>,
    /// The change data files that the tasks have written. (PROTOCOL, "Change Data Files".)
    pub changes: Vec<AddCdcFile>,
    /// The rows that a statement removes, by the number that their file has in the statement's plan.
    pub removed: BTreeMap<u32, RoaringTreemap>,
    /// The number of a file with a row that two tasks have reported, as removed or as matching a row of the source;
    /// `None` if there is no such file.
    pub matched_twice: Option<u32>,
    /// The number of rows that the statement has processed, by kind of change.
    pub counts: StatementCounts,
    /// The bins of an OPTIMIZE that the tasks have written.
    pub bins: Vec<ReportedBin>,
}

impl Reported {
    /// Returns the total number of removed rows.
    pub(crate) fn num_removed(&self) -> u64 {
        self.removed.values().map(RoaringTreemap::len).sum()
    }
}

/// Returns the combined results of the tasks. In the files that the byte range `counting` of `reports` describes, the
/// engine has generated the values of identity columns. The rows of all other files already had values.
///
/// # Errors
/// Returns `CorruptData` for a report that does not fit the table: it has an invalid format, a path outside of the
/// table, other partition columns, no readable footer, or a number of rows that differs from the footer's. Also
/// returns it for a file that lacks the statistics of an identity column whose values the engine generated. Returns
/// `SchemaMismatch` for NULL in a partition column that is NOT NULL.
pub(crate) fn reported(reports: &[u8], counting: Range<usize>, spec: &TableWriteSpec) -> Result<Reported> {
    let TaskReports { files, changes, removed: rows, staying, counts, bins } = read(reports)?;
    let files_until = |end| match reports.get(..end) {
        Some(earlier) => read(earlier).map(|earlier| earlier.files.len()),
        None => Ok(files.len()),
    };
    let counting = files_until(counting.start)?..files_until(counting.end)?;
    let schema = spec.data_schema();
    let options = CollectOptions { columns: spec.indexed().clone(), is_own: true };
    let added = |(index, file): &(usize, &FileReport<'_>)| -> Result<Add> {
        let located = |error: Error| error.at_path(file.path);
        let mut add = added(file, inside(file.path)?, spec).map_err(located)?;
        ensure_required(&add, spec).map_err(located)?;
        let metadata = footer(file).map_err(located)?;
        if let Some(fault) = iceberg::fault(&metadata, spec) {
            return Err(located(
                Error::corrupt_data(format!("{fault}; nothing was committed"))
                    .with_hint("this is a bug: report it with the version of the engine"),
            ));
        }
        add.stats = Some(collect_stats(&metadata, &schema, &options).map_err(located)?);
        if counting.contains(index) {
            counted::note(&metadata, &add, spec).map_err(located)?;
        }
        Ok(add)
    };
    let mut reported = Reported { counts, bins, ..Reported::default() };
    let numbered: Vec<_> = files.iter().enumerate().collect();
    reported.files = parallel::each(&numbered, parallel::cores(), added)?;
    reported.changes = changes.iter().map(|file| change_file(file, spec)).collect::<Result<_>>()?;
    let (removed, mut twice) = united(&rows)?;
    let (staying, staying_twice) = united(&staying)?;
    twice = twice.or(staying_twice);
    for (file, rows) in &staying {
        if removed.get(file).is_some_and(|removed| !removed.is_disjoint(rows)) {
            twice = Some(*file);
        }
    }
    (reported.removed, reported.matched_twice) = (removed, twice);
    Ok(reported)
}

/// Returns the positions of the rows that a statement removes, keyed by the number of their file in the statement's
/// plan.
///
/// # Errors
/// Returns `CorruptData` for a report with an invalid format.
pub fn removed_rows(reports: &[u8]) -> Result<BTreeMap<u32, RoaringTreemap>> {
    united(&read(reports)?.removed).map(|(removed, _)| removed)
}

/// Returns the positions of the rows that any task removes, keyed by the number of their file, and the number of a file
/// for which two tasks reported the same row.
fn united(tasks: &[RemovedRows<'_>]) -> Result<(BTreeMap<u32, RoaringTreemap>, Option<u32>)> {
    let (mut all, mut twice) = (BTreeMap::<u32, RoaringTreemap>::new(), None);
    for rows in tasks {
        let found = positions(rows)?;
        let before = all.entry(rows.file).or_default();
        if !before.is_disjoint(&found) {
            twice = Some(rows.file);
        }
        *before |= found;
    }
    Ok((all, twice))
}

/// Returns whether a task has written a change data file.
///
/// # Errors
/// Returns `CorruptData` for a report with an invalid format.
pub fn has_change_files(reports: &[u8]) -> Result<bool> {
    Ok(!read(reports)?.changes.is_empty())
}

fn positions(rows: &RemovedRows<'_>) -> Result<RoaringTreemap> {
    let lower = RoaringBitmap::deserialize_from(rows.bitmap).map_err(|error| {
        Error::corrupt_data("a task has reported removed rows that cannot be read").with_source(error)
    })?;
    Ok(RoaringTreemap::from_bitmaps([(rows.upper, lower)]))
}

/// Returns the decoded paths of all files in `reports`, relative to the table's root, so that they can be deleted.
///
/// # Errors
/// Returns `CorruptData` for a report with an invalid format, or with a path outside of the table.
pub(crate) fn reported_paths(reports: &[u8]) -> Result<Vec<String>> {
    let TaskReports { files, changes, .. } = read(reports)?;
    let data = files.iter().map(|file| inside(file.path));
    data.chain(changes.iter().map(|file| inside_changes(file.path)))
        .map(|path| path.map(str::to_owned))
        .collect()
}

fn change_file(file: &FileReport<'_>, spec: &TableWriteSpec) -> Result<AddCdcFile> {
    let located = |error: Error| error.at_path(file.path);
    let add = added(file, inside_changes(file.path)?, spec).map_err(located)?;
    footer(file).map_err(located)?;
    Ok(AddCdcFile::from(add))
}

fn added(file: &FileReport<'_>, path: &str, spec: &TableWriteSpec) -> Result<Add> {
    let columns = spec.physical_partition_columns();
    if file.partition_values.len() != columns.len() {
        return Err(Error::corrupt_data(format!(
            "a task has reported {} partition values for a file, but the table has {} partition columns",
            file.partition_values.len(),
            columns.len()
        )));
    }
    let names = spec.partition_columns();
    for (name, value) in names.iter().zip(&file.partition_values) {
        let primitive = spec.schema().field(name).and_then(|field| field.data_type.as_primitive());
        let Some(primitive) = primitive else { continue };
        PartitionColumnBuilder::new(name, primitive).append(*value).map_err(|error| {
            Error::corrupt_data(format!(
                "a task has reported an invalid value of the partition column '{name}'"
            ))
            .with_source(error)
        })?;
    }
    // An empty string is NULL. (Protocol, "Partition Value Serialization".)
    let values = file.partition_values.iter().map(|value| value.filter(|text| !text.is_empty()));
    Ok(Add {
        path: path::encode(path),
        partition_values: columns.iter().cloned().zip(values.map(|value| value.map(str::to_owned))).collect(),
        size: file.size,
        modification_time: file.modification_time_ms,
        data_change: true,
        tags: spec.tags(),
        ..Add::default()
    })
}

/// Refuses a path that leads outside of the table, or to a directory that is not for data files.
fn inside(path: &str) -> Result<&str> {
    if is_plain(path) && !path.starts_with("_delta_log/") && !is_below_changes(path) {
        return Ok(path);
    }
    Err(Error::corrupt_data("a task has reported a file that is not a data file of the table").at_path(path))
}

/// Refuses a path that does not lead to the directory of change data files.
fn inside_changes(path: &str) -> Result<&str> {
    if is_plain(path) && is_below_changes(path) {
        return Ok(path);
    }
    Err(Error::corrupt_data("a task has reported a file that is not a change data file of the table")
        .at_path(path))
}

fn is_below_changes(path: &str) -> bool {
    path.split_once('/').is_some_and(|(first, _)| first == AddCdcFile::DIRECTORY)
}

fn is_plain(path: &str) -> bool {
    path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

fn footer(file: &FileReport<'_>) -> Result<ParquetMetaData> {
    let bytes = bytes::Bytes::copy_from_slice(file.footer);
    let metadata = crate::values::footer::decode(&bytes).map_err(|error| {
        Error::corrupt_data("a task has reported a footer that cannot be read").with_source(error)
    })?;
    if u64::try_from(metadata.file_metadata().num_rows()) != Ok(file.rows) {
        return Err(Error::corrupt_data(format!(
            "a task has reported {} rows for a file, but its footer has {}",
            file.rows,
            metadata.file_metadata().num_rows()
        )));
    }
    Ok(metadata)
}

/// Refuses NULL in a partition column that is NOT NULL. An empty string counts as NULL, because it is stored as NULL.
pub(crate) fn ensure_required(add: &Add, spec: &TableWriteSpec) -> Result<()> {
    let columns = spec.partition_columns().iter().zip(spec.physical_partition_columns());
    for (name, physical) in columns {
        let is_required = spec.schema().field(name).is_some_and(|field| !field.nullable);
        let value = add.partition_values.get(physical).and_then(Option::as_deref);
        if is_required && value.is_none_or(str::is_empty) {
            return Err(null_in_partition_column(name));
        }
    }
    Ok(())
}
