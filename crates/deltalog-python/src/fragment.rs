//! Divides scans into parts for other processes, such as Spark's Python workers. A part consists of a scan task and,
//! optionally, the numbers of its files.

use deltalog::engine::deletion_vector::DeletionVectors;
use deltalog::engine::dml::{FileNumbers, NumberedFile, NumberedRows};
use deltalog::engine::predicate::{ParseMode, Predicate, parse};
use deltalog::engine::scan::FileListing;
use deltalog::{Error, Result, ScanTask, Snapshot, StreamBatch, TableScan};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::call::call;
use crate::predicate::user_predicate;
use crate::store_options::{StoreOptions, open_storage};
use crate::stream::ArrowStream;

#[derive(Serialize, Deserialize)]
struct Fragment {
    task: ScanTask,
    /// The numbers of the files, if rows are requested with their positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    numbers: Option<Vec<u32>>,
}

/// A part of a scan, serialized for another process.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) fragment: Vec<u8>,
    pub(crate) files: usize,
    /// The total size of the part's files in bytes.
    pub(crate) size: u64,
    /// The number of rows in the part's files, without deleted rows, if the log states it for all of these files.
    pub(crate) rows: Option<u64>,
}

/// What a scan should return.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// The columns; `None` for all columns.
    pub(crate) columns: Option<Vec<String>>,
    /// Whether to return row ids and row commit versions.
    pub(crate) row_ids: bool,
    /// Whether to return, for each row, the number of its file and its position in the file.
    pub(crate) positions: bool,
    /// An additional condition that only skips files, not single rows, and the time zone for its times.
    pub(crate) condition: Option<(String, String)>,
}

/// Divides the files that may contain rows for which `filter_sql` is true into at most `n` fragments of about the
/// same size in bytes.
pub(crate) fn scan_partitions(
    snapshot: &Snapshot,
    filter_sql: &str,
    n: usize,
    wanted: &Wanted,
) -> Result<Vec<Vec<u8>>> {
    let pushed = Some((filter_sql, "UTC"));
    let condition = wanted.condition.as_ref().map(|(sql, time_zone)| (sql.as_str(), time_zone.as_str()));
    let given = pushed.into_iter().chain(condition).filter(|(sql, _)| !sql.trim().is_empty());
    let filters = given.map(|(sql, time_zone)| parse(sql, time_zone, ParseMode::Pruning));
    let filters = filters.collect::<Result<Vec<_>>>()?;
    let mut listing = FileListing::new(snapshot);
    if !filters.is_empty() {
        listing = listing.pruning(&Predicate::And(filters));
    }
    let mut scan = TableScan::new(snapshot);
    if let Some(columns) = &wanted.columns {
        scan = scan.columns(columns.clone());
    }
    if wanted.row_ids {
        scan = scan.row_ids();
    }
    let numbers = wanted.positions.then(|| FileNumbers::of(snapshot)).transpose()?;
    let fragment = |task: ScanTask| {
        let number = |numbers: &FileNumbers| task.files().map(|(path, _)| numbers.number(path)).collect();
        let numbers = numbers.as_ref().and_then(number);
        packed(&Fragment { task, numbers })
    };
    scan.tasks_of(listing, n)?.into_iter().map(fragment).collect()
}

/// Divides the files in a batch of a stream of rows into at most `n` fragments of about the same size in bytes.
pub(crate) fn batch_partitions(batch: &StreamBatch, n: usize) -> Result<Vec<Vec<u8>>> {
    let tasks = TableScan::new(batch.snapshot()).tasks_of(batch.listing(None)?, n)?;
    tasks.into_iter().map(|task| packed(&Fragment { task, numbers: None })).collect()
}

/// Divides a scan into at most `n` parts. Each part returns exactly the rows of its files for which `predicate` is
/// true.
///
/// # Errors
/// Returns the same errors as [`TableScan::tasks`].
pub(crate) fn scan_tasks(
    snapshot: &Snapshot,
    n: usize,
    columns: Option<Vec<String>>,
    predicate: Option<&str>,
    ordered: bool,
) -> Result<Vec<Part>> {
    let mut scan = TableScan::new(snapshot);
    if let Some(columns) = columns {
        scan = scan.columns(columns);
    }
    if let Some(predicate) = user_predicate(predicate)? {
        scan = scan.predicate(predicate);
    }
    if ordered {
        scan = scan.in_order();
    }
    let part = |task: ScanTask| {
        let (files, size, rows) = (task.num_files(), task.size_in_bytes(), task.num_rows());
        let fragment = packed(&Fragment { task, numbers: None })?;
        Ok(Part { fragment, files, size, rows })
    };
    scan.tasks(n)?.into_iter().map(part).collect()
}

fn packed(fragment: &Fragment) -> Result<Vec<u8>> {
    serde_json::to_vec(fragment)
        .map_err(|error| Error::invalid_argument("the scan cannot be serialized").with_source(error))
}

/// Reads the rows of a fragment. A fragment contains no credentials, so they must be passed as options. `columns`
/// replaces the fragment's own columns.
#[pyfunction]
#[pyo3(signature = (fragment, storage_options = None, columns = None))]
pub(crate) fn read_fragment(
    py: Python<'_>,
    fragment: &[u8],
    storage_options: Option<StoreOptions>,
    columns: Option<Vec<String>>,
) -> PyResult<ArrowStream> {
    let (schema, rows) = call(py, || {
        let Fragment { task, numbers } = serde_json::from_slice(fragment)
            .map_err(|error| Error::invalid_argument("the scan fragment is malformed").with_source(error))?;
        let storage = open_storage(task.table_url(), storage_options)?;
        let task = match columns {
            Some(columns) => task.columns(columns),
            None => task,
        };
        let Some(numbers) = numbers else {
            let rows = task.read(&storage)?;
            return Ok((rows.schema(), Box::new(rows) as Box<dyn Iterator<Item = _> + Send>));
        };
        let (scan, files, resolver) = task.opened(&storage)?;
        let numbered = numbers
            .into_iter()
            .zip(files)
            .zip(task.files())
            .map(|((number, file), (_, vector))| NumberedFile { number, file, vector: vector.cloned() });
        let rows = NumberedRows::new(scan, DeletionVectors::new(storage, resolver), numbered.collect())?;
        Ok((rows.schema(), Box::new(rows) as _))
    })?;
    ArrowStream::start(py, schema, rows)
}
