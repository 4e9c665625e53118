//! Fragments of scans, serialized for other processes such as Spark's Python workers.
//!
//! A fragment of a scan has the table's location, the schema of its version, and some of its files. It contains
//! no credentials.

use std::sync::Arc;

use arrow::array::{Array, AsArray, MapArray, RecordBatch};
use arrow::datatypes::Int64Type;
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::protocol::{
    ColumnMappingMode, DeletionVectorDescriptor, MappedSchema, MaterializedRowTracking,
    PartitionColumnBuilder, PathResolver, StructType,
};
use deltalog::engine::replay::DeletionVectorColumn;
use deltalog::engine::scan::{
    DataFile, FileListing, ListColumn, PartitionColumns, PartitionRow, RowScan, RowTracking,
};
use deltalog::engine::storage::parse_location;
use deltalog::{Error, Result, Snapshot};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::call::call;
use crate::snapshot::open_storage;
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
    files: Vec<FragmentFile>,
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
}

/// Distributes the files that may contain rows for which `filter_sql` is true over at most `n` fragments of about
/// the same size in bytes. If `row_ids` is true, the fragments have row ids and row commit versions.
pub(crate) fn scan_partitions(
    snapshot: &Snapshot,
    filter_sql: &str,
    n: usize,
    row_ids: bool,
) -> Result<Vec<Vec<u8>>> {
    let row_ids = match row_ids {
        true => {
            let tracking = MaterializedRowTracking::of(snapshot.protocol(), snapshot.metadata());
            let tracking = tracking
                .map_err(|error| error.in_table(snapshot.storage().url()).at_version(snapshot.version()))?;
            Some([tracking.row_id, tracking.row_commit_version])
        }
        false => None,
    };
    let mut listing = FileListing::new(snapshot);
    if !filter_sql.trim().is_empty() {
        listing = listing.pruning(&parse(filter_sql, "UTC", ParseMode::Pruning)?);
    }
    let mut files = listed(snapshot, listing, row_ids.is_some())?;
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
        let fragment = Fragment {
            uri: snapshot.storage().url(),
            allowed_roots: snapshot.resolver().allowed_roots().collect(),
            schema: snapshot.metadata().schema_string.clone(),
            column_mapping: snapshot.mapped_schema().mode(),
            partition_columns: snapshot.metadata().partition_columns.clone(),
            row_ids: row_ids.clone(),
            files,
        };
        serde_json::to_vec(&fragment)
            .map_err(|error| Error::invalid_argument("the scan cannot be serialized").with_source(error))
    };
    parts.into_iter().filter(|(_, files)| !files.is_empty()).map(|(_, files)| pack(files)).collect()
}

fn listed(snapshot: &Snapshot, listing: FileListing, row_ids: bool) -> Result<Vec<FragmentFile>> {
    let mut files = Vec::new();
    let mut columns =
        vec![ListColumn::Path, ListColumn::Size, ListColumn::PartitionValues, ListColumn::DeletionVector];
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
        for row in 0..batch.num_rows() {
            files.push(FragmentFile {
                path: paths.value(row).to_owned(),
                size: sizes.value(row),
                partition_values: partition_columns.iter().map(|name| value_of(values, row, name)).collect(),
                deletion_vector: vectors.get(row).map_err(|error| error.at_path(paths.value(row)))?,
                base_row_id: number(&batch, "baseRowId", row),
                default_row_commit_version: number(&batch, "defaultRowCommitVersion", row),
            });
        }
    }
    Ok(files)
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

/// Reads the rows of a fragment.
#[pyfunction]
pub(crate) fn read_fragment(py: Python<'_>, fragment: &[u8]) -> PyResult<ArrowStream> {
    let rows = call(py, || {
        let fragment: Fragment = serde_json::from_slice(fragment)
            .map_err(|error| Error::invalid_argument("the scan fragment is malformed").with_source(error))?;
        let storage = open_storage(&fragment.uri, None)?;
        let schema = MappedSchema::new(StructType::from_json(&fragment.schema)?, fragment.column_mapping)?;
        let own = PathResolver::new(storage.root())?;
        let resolver = fragment
            .allowed_roots
            .iter()
            .try_fold(own, |resolver, root| resolver.allow(&parse_location(root)?))?;
        let mut scan = RowScan::new(storage, schema.arrow(), &fragment.partition_columns)?
            .with_physical_schema(schema.physical_arrow())?;
        if let Some([row_id, row_commit_version]) = fragment.row_ids.clone() {
            scan = scan.with_row_ids(&MaterializedRowTracking { row_id, row_commit_version })?;
        }
        let files = data_files(&fragment, &schema, &resolver)?;
        Ok(scan.with_resolver(resolver).read(files.into_iter().map(Ok)))
    })?;
    ArrowStream::start(py, rows.schema(), rows)
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
