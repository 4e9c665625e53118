//! Fragments of scans, serialized for other processes such as Spark's Python workers.
//!
//! A fragment of a scan has the table's location, the schema of its version, and some of its files. It contains
//! no credentials.

use std::sync::Arc;

use arrow::array::{Array, AsArray, MapArray, RecordBatch};
use arrow::datatypes::Int64Type;
use deltalog::engine::deletion_vector::DeletionVectors;
use deltalog::engine::dml::{FileNumbers, NumberedFile, NumberedRows};
use deltalog::engine::predicate::{ParseMode, Predicate, parse};
use deltalog::engine::protocol::{
    ColumnMappingMode, DeletionVectorDescriptor, MappedSchema, MaterializedRowTracking,
    PartitionColumnBuilder, PathResolver, StructType,
};
use deltalog::engine::replay::DeletionVectorColumn;
use deltalog::engine::scan::{
    DataFile, FileListing, ListColumn, PartitionColumns, PartitionRow, RowScan, RowTracking,
};
use deltalog::engine::storage::parse_location;
use deltalog::{Error, Result, Snapshot, StreamBatch, TableScan};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::call::call;
use crate::store_options::{StoreOptions, open_storage};
use crate::stream::ArrowStream;

#[derive(Serialize, Deserialize)]
struct Fragment {
    uri: String,
    allowed_roots: Vec<String>,
    schema: String,
    column_mapping: ColumnMappingMode,
    partition_columns: Vec<String>,
    /// The hidden columns with row ids and row commit versions, if they are requested.
    row_ids: Option<[String; 2]>,
    /// The columns to read; all if it is missing.
    columns: Option<Vec<String>>,
    /// The rows to return; all if it is missing. Times without a zone are in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predicate: Option<String>,
    files: Vec<FragmentFile>,
}

/// A part of a scan, in the form in which another process reads it.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) fragment: Vec<u8>,
    pub(crate) files: usize,
    /// The size of its files in bytes.
    pub(crate) size: u64,
    /// The rows of its files that are not deleted, if the log has the number for all of them.
    pub(crate) rows: Option<u64>,
}

/// A file, with its path and partition values as in the log.
#[derive(Clone, Serialize, Deserialize)]
struct FragmentFile {
    path: String,
    size: i64,
    partition_values: Vec<Option<String>>,
    deletion_vector: Option<DeletionVectorDescriptor>,
    base_row_id: Option<i64>,
    default_row_commit_version: Option<i64>,
    /// The file's number, if rows are requested with their positions.
    number: Option<u32>,
    /// The rows that are not deleted, if the log has their number. A reader does not need it.
    #[serde(skip)]
    rows: Option<u64>,
}

/// Describes what a scan has to return.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// The columns; all if it is missing.
    pub(crate) columns: Option<Vec<String>>,
    /// Whether to return row ids and row commit versions.
    pub(crate) row_ids: bool,
    /// Whether to return, for each row, the number of its file and its position in the file.
    pub(crate) positions: bool,
    /// A further condition for leaving out files, with the time zone of its times.
    pub(crate) condition: Option<(String, String)>,
}

/// Distributes the files that may contain rows for which `filter_sql` is true over at most `n` fragments of about
/// the same size in bytes.
pub(crate) fn scan_partitions(
    snapshot: &Snapshot,
    filter_sql: &str,
    n: usize,
    wanted: &Wanted,
) -> Result<Vec<Vec<u8>>> {
    let row_ids = match wanted.row_ids {
        true => {
            let tracking = MaterializedRowTracking::of(snapshot.protocol(), snapshot.metadata());
            let tracking = tracking.map_err(|error| snapshot.located(error))?;
            Some([tracking.row_id, tracking.row_commit_version])
        }
        false => None,
    };
    let pushed = Some((filter_sql, "UTC"));
    let condition = wanted.condition.as_ref().map(|(sql, time_zone)| (sql.as_str(), time_zone.as_str()));
    let given = pushed.into_iter().chain(condition).filter(|(sql, _)| !sql.trim().is_empty());
    let filters = given.map(|(sql, time_zone)| parse(sql, time_zone, ParseMode::Pruning));
    let filters = filters.collect::<Result<Vec<_>>>()?;
    let mut listing = FileListing::new(snapshot);
    if !filters.is_empty() {
        listing = listing.pruning(&Predicate::And(filters));
    }
    let mut files = listed(snapshot, listing, row_ids.is_some(), false)?;
    if wanted.positions {
        let numbers = FileNumbers::of(snapshot)?;
        for file in &mut files {
            file.number = numbers.number(&file.path);
        }
    }
    fragments(packed(snapshot, files, n, row_ids, wanted.columns.as_deref(), None)?)
}

/// Distributes the files of a batch of a stream of rows over at most `n` fragments of about the same size in bytes.
pub(crate) fn batch_partitions(batch: &StreamBatch, n: usize) -> Result<Vec<Vec<u8>>> {
    let snapshot = batch.snapshot();
    fragments(packed(snapshot, listed(snapshot, batch.listing(None)?, false, false)?, n, None, None, None)?)
}

/// Distributes the files that may contain rows for which `predicate` is true over at most `n` parts of about the same
/// size.
/// Each part returns exactly these rows.
///
/// # Errors
/// As for a scan of the table: unknown columns, and a predicate that does not match the schema.
pub(crate) fn scan_tasks(
    snapshot: &Snapshot,
    n: usize,
    columns: Option<Vec<String>>,
    predicate: Option<&str>,
) -> Result<Vec<Part>> {
    if let Some(columns) = &columns {
        TableScan::new(snapshot).columns(columns.clone()).schema()?;
    }
    let mut listing = FileListing::new(snapshot);
    if let Some(sql) = predicate {
        listing = listing.predicate(&parse(sql, "UTC", ParseMode::Strict)?)?;
    }
    packed(snapshot, listed(snapshot, listing, false, true)?, n, None, columns.as_deref(), predicate)
}

fn fragments(parts: Vec<Part>) -> Result<Vec<Vec<u8>>> {
    Ok(parts.into_iter().map(|part| part.fragment).collect())
}

fn packed(
    snapshot: &Snapshot,
    mut files: Vec<FragmentFile>,
    n: usize,
    row_ids: Option<[String; 2]>,
    columns: Option<&[String]>,
    predicate: Option<&str>,
) -> Result<Vec<Part>> {
    // Add each file, largest first, to the smallest part.
    files.sort_by_key(|file| std::cmp::Reverse(file.size));
    let mut parts: Vec<(i64, Vec<FragmentFile>)> = vec![(0, Vec::new()); n.clamp(1, files.len().max(1))];
    for file in files {
        if let Some((bytes, part)) = parts.iter_mut().min_by_key(|(bytes, _)| *bytes) {
            *bytes += file.size.max(1);
            part.push(file);
        }
    }
    let pack = |files: Vec<FragmentFile>| {
        let rows = files.iter().map(|file| file.rows).sum();
        let size = files.iter().filter_map(|file| u64::try_from(file.size).ok()).sum();
        let count = files.len();
        let fragment = Fragment {
            uri: snapshot.storage().url(),
            allowed_roots: snapshot.resolver().allowed_roots().collect(),
            schema: snapshot.metadata().schema_string.clone(),
            column_mapping: snapshot.mapped_schema().mode(),
            partition_columns: snapshot.metadata().partition_columns.clone(),
            row_ids: row_ids.clone(),
            columns: columns.map(<[String]>::to_vec),
            predicate: predicate.map(str::to_owned),
            files,
        };
        serde_json::to_vec(&fragment)
            .map(|fragment| Part { fragment, files: count, size, rows })
            .map_err(|error| Error::invalid_argument("the scan cannot be serialized").with_source(error))
    };
    parts.into_iter().filter(|(_, files)| !files.is_empty()).map(|(_, files)| pack(files)).collect()
}

fn listed(
    snapshot: &Snapshot,
    listing: FileListing,
    row_ids: bool,
    counts_rows: bool,
) -> Result<Vec<FragmentFile>> {
    let mut files = Vec::new();
    let mut columns =
        vec![ListColumn::Path, ListColumn::Size, ListColumn::PartitionValues, ListColumn::DeletionVector];
    if counts_rows {
        columns.push(ListColumn::NumRecords);
    }
    if row_ids {
        columns.extend([ListColumn::BaseRowId, ListColumn::DefaultRowCommitVersion]);
    }
    let schema = snapshot.mapped_schema();
    let partition_columns: Vec<&str> =
        snapshot.metadata().partition_columns.iter().filter_map(|name| schema.physical_name(name)).collect();
    for batch in listing.columns(columns).kept()? {
        let batch = batch?;
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| Error::corrupt_log(format!("the file actions lack the column '{name}'")))
        };
        let (paths, sizes) =
            (column("path")?.as_string::<i32>(), column("size")?.as_primitive::<Int64Type>());
        let values = column("partitionValues")?.as_map();
        let vectors = DeletionVectorColumn::of_log(&batch)?;
        let stats = batch.column_by_name("stats").and_then(|stats| stats.as_string_opt::<i32>());
        for row in 0..batch.num_rows() {
            let vector = vectors.get(row).map_err(|error| error.at_path(paths.value(row)))?;
            let records =
                stats.filter(|stats| stats.is_valid(row)).and_then(|stats| records_of(stats.value(row)));
            files.push(FragmentFile {
                path: paths.value(row).to_owned(),
                size: sizes.value(row),
                partition_values: partition_columns.iter().map(|name| value_of(values, row, name)).collect(),
                rows: records.and_then(|records| {
                    let deleted =
                        vector.as_ref().map_or(Some(0), |vector| u64::try_from(vector.cardinality).ok())?;
                    records.checked_sub(deleted)
                }),
                deletion_vector: vector,
                base_row_id: number(&batch, "baseRowId", row),
                default_row_commit_version: number(&batch, "defaultRowCommitVersion", row),
                number: None,
            });
        }
    }
    Ok(files)
}

/// Returns the number of rows in statistics of the log, including deleted rows.
fn records_of(stats: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Count {
        #[serde(rename = "numRecords")]
        num_records: Option<u64>,
    }

    serde_json::from_str::<Count>(stats).ok()?.num_records
}

fn number(batch: &RecordBatch, column: &str, row: usize) -> Option<i64> {
    let numbers = batch.column_by_name(column)?.as_primitive_opt::<Int64Type>()?;
    numbers.is_valid(row).then(|| numbers.value(row))
}

fn value_of(values: &MapArray, row: usize, name: &str) -> Option<String> {
    let entries = values.value(row);
    let (keys, texts) = (entries.column(0).as_string::<i32>(), entries.column(1).as_string::<i32>());
    let at = (0..keys.len()).find(|at| keys.value(*at) == name)?;
    texts.is_valid(at).then(|| texts.value(at).to_owned())
}

/// Reads the rows of a fragment. The fragment contains no credentials, so the store's credentials are passed as
/// options. `columns` replaces the columns of the fragment.
#[pyfunction]
#[pyo3(signature = (fragment, storage_options = None, columns = None))]
pub(crate) fn read_fragment(
    py: Python<'_>,
    fragment: &[u8],
    storage_options: Option<StoreOptions>,
    columns: Option<Vec<String>>,
) -> PyResult<ArrowStream> {
    let (schema, rows) = call(py, || {
        let fragment: Fragment = serde_json::from_slice(fragment)
            .map_err(|error| Error::invalid_argument("the scan fragment is malformed").with_source(error))?;
        let storage = open_storage(&fragment.uri, storage_options)?;
        let schema = MappedSchema::new(StructType::from_json(&fragment.schema)?, fragment.column_mapping)?;
        let own = PathResolver::new(storage.root())?;
        let resolver = fragment
            .allowed_roots
            .iter()
            .try_fold(own, |resolver, root| resolver.allow(&parse_location(root)?))?;
        let mut scan = RowScan::new(storage.clone(), schema.arrow(), &fragment.partition_columns)?
            .with_physical_schema(schema.physical_arrow())?;
        if let Some(columns) = columns.as_ref().or(fragment.columns.as_ref()) {
            scan = scan.with_projection(columns)?;
        }
        if let Some([row_id, row_commit_version]) = fragment.row_ids.clone() {
            scan = scan.with_row_ids(&MaterializedRowTracking { row_id, row_commit_version })?;
        }
        if let Some(predicate) = &fragment.predicate {
            scan = scan.with_predicate(&parse(predicate, "UTC", ParseMode::Strict)?.bind(schema.arrow())?)?;
        }
        let files = data_files(&fragment, &schema, &resolver)?;
        let scan = scan.with_resolver(resolver.clone());
        let numbers: Option<Vec<u32>> = fragment.files.iter().map(|file| file.number).collect();
        let Some(numbers) = numbers else {
            let rows = scan.read(files.into_iter().map(Ok));
            return Ok((rows.schema(), Box::new(rows) as Box<dyn Iterator<Item = _> + Send>));
        };
        let numbered = numbers
            .into_iter()
            .zip(files)
            .zip(fragment.files)
            .map(|((number, file), about)| NumberedFile { number, file, vector: about.deletion_vector });
        let rows = NumberedRows::new(scan, DeletionVectors::new(storage, resolver), numbered.collect())?;
        Ok((rows.schema(), Box::new(rows) as _))
    })?;
    ArrowStream::start(py, schema, rows)
}

fn data_files(fragment: &Fragment, schema: &MappedSchema, resolver: &PathResolver) -> Result<Vec<DataFile>> {
    let columns = PartitionColumns::new(schema, &fragment.partition_columns)?;
    let mut arrays = Vec::new();
    for (index, name) in fragment.partition_columns.iter().enumerate() {
        let primitive = schema.logical().field(name).and_then(|field| field.data_type.as_primitive());
        let primitive = primitive.ok_or_else(|| {
            Error::corrupt_log(format!("the partition column '{name}' does not have a primitive type"))
        })?;
        let mut builder = PartitionColumnBuilder::new(name, primitive);
        for file in &fragment.files {
            builder.append(file.partition_values.get(index).and_then(Option::as_deref))?;
        }
        arrays.push(builder.finish());
    }
    let values = columns.assemble(arrays, fragment.files.len())?;
    let values = Arc::new(values);
    let file = |(row, file): (usize, &FragmentFile)| {
        Ok(DataFile {
            row_tracking: RowTracking {
                base_row_id: file.base_row_id,
                default_row_commit_version: file.default_row_commit_version,
            },
            path: resolver.resolve(&file.path)?,
            size: u64::try_from(file.size).unwrap_or_default(),
            partition_values: PartitionRow::new(Arc::clone(&values), row)?,
            rows: file.deletion_vector.clone().into(),
        })
    };
    fragment.files.iter().enumerate().map(file).collect()
}
