//! Writes a Parquet file of actions: a checkpoint, a part of one, or a sidecar. Protocol: "Checkpoint Schema".
//!
//! - A row group is written when it is full, so that only one row group is in memory.
//! - Nearly all paths and statistics are different, so both are stored without a dictionary. Statistics are also stored
//!   without minima and maxima, because no reader looks for them.
//! - A sidecar has Bloom filters for its paths. The writer of the next checkpoint uses them to find out whether it can
//!   reuse the sidecar ([`crate::log::replay::SidecarFile`]).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray, new_null_array};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::error::{Error, ErrorKind, Result};
use crate::log::replay::{FileAction, PLAIN_PATHS, are_plain};
use crate::storage::FileWriter;

/// The maximum size of a row group. Readers decode row groups in parallel, and skip some by their minima and maxima.
const ROW_GROUP_ROWS: usize = 64 * 1024;
const ROW_GROUP_BYTES: usize = 64 << 20;

/// The columns that contain paths.
const PATHS: [[&str; 2]; 2] = [["add", "path"], ["remove", "path"]];

/// The probability that the Bloom filter of a sidecar reports a path that is not in the sidecar.
const FALSE_HITS: f64 = 1e-4;

/// A Parquet file of actions that is still being written.
pub(super) struct ActionFile {
    writer: ArrowWriter<FileWriter>,
    schema: SchemaRef,
    path: String,
    rows: u64,
    /// Whether every path is plain, so that it is its own key; `None` if this need not be recorded.
    is_plain: Option<bool>,
}

/// A file that is complete and durable.
#[derive(Debug)]
pub(super) struct WrittenFile {
    pub(super) bytes: u64,
    pub(super) rows: u64,
}

/// Rows of one kind of file action, as the columns of a checkpoint.
pub(super) struct ActionRows {
    pub(super) kind: FileAction,
    pub(super) column: StructArray,
}

impl ActionRows {
    pub(super) fn len(&self) -> u64 {
        self.column.len() as u64
    }

    /// Returns the rows with all columns of `schema`. Columns of other actions are null.
    fn with_columns(self, schema: &SchemaRef) -> Result<RecordBatch> {
        let rows = self.column.len();
        let own: ArrayRef = Arc::new(self.column);
        let column = |field: &Arc<arrow::datatypes::Field>| match field.name() == self.kind.name() {
            true => Arc::clone(&own),
            false => new_null_array(field.data_type(), rows),
        };
        RecordBatch::try_new(Arc::clone(schema), schema.fields().iter().map(column).collect())
            .map_err(|error| Error::corrupt_log("file actions do not fit a checkpoint").with_source(error))
    }
}

impl ActionFile {
    /// Starts a file with the columns of `schema`. It is written to `file`, whose path is `path`.
    pub(super) fn new(file: FileWriter, path: String, schema: SchemaRef) -> Result<Self> {
        Self::with_properties(file, path, schema, None, properties().build())
    }

    /// Starts a sidecar in the same way as [`ActionFile::new`] starts a file.
    pub(super) fn sidecar(file: FileWriter, path: String, schema: SchemaRef) -> Result<Self> {
        let with_filters = PATHS.into_iter().fold(properties(), |properties, names| {
            properties
                .set_column_bloom_filter_fpp(column(names), FALSE_HITS)
                .set_column_bloom_filter_max_ndv(column(names), ROW_GROUP_ROWS as u64)
        });
        Self::with_properties(file, path, schema, Some(true), with_filters.build())
    }

    fn with_properties(
        file: FileWriter,
        path: String,
        schema: SchemaRef,
        is_plain: Option<bool>,
        properties: WriterProperties,
    ) -> Result<Self> {
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
        let writer = writer.map_err(|error| failed(&path, error))?;
        Ok(Self { writer, schema, path, rows: 0, is_plain })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes rows that have all columns of the file.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        self.writer.write(batch).map_err(|error| failed(&self.path, error))
    }

    /// Writes file actions.
    pub(super) fn write_actions(&mut self, rows: ActionRows) -> Result<()> {
        if let Some(is_plain) = &mut self.is_plain {
            let paths = rows.column.column_by_name("path").and_then(|column| column.as_string_opt());
            *is_plain = *is_plain && paths.is_some_and(are_plain);
        }
        let batch = rows.with_columns(&self.schema)?;
        self.write(&batch)
    }

    /// Writes actions to a row group of their own, so that readers can find them without reading other actions.
    pub(super) fn write_group(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write(batch)?;
        self.writer.flush().map_err(|error| failed(&self.path, error))
    }

    /// Completes the file and makes it durable.
    pub(super) fn finish(self) -> Result<WrittenFile> {
        let Self { mut writer, path, rows, is_plain, .. } = self;
        if let Some(is_plain) = is_plain {
            writer.append_key_value_metadata(KeyValue::new(PLAIN_PATHS.to_owned(), is_plain.to_string()));
        }
        let file = writer.into_inner().map_err(|error| failed(&path, error))?;
        Ok(WrittenFile { bytes: file.finish()?, rows })
    }
}

fn failed(path: &str, error: ParquetError) -> Error {
    Error::new(ErrorKind::Unavailable, "the checkpoint cannot be written").at_path(path).with_source(error)
}

fn column(names: [&str; 2]) -> ColumnPath {
    ColumnPath::from(names.map(str::to_owned).to_vec())
}

fn properties() -> WriterPropertiesBuilder {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("deltalog version {}", env!("CARGO_PKG_VERSION")))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_column_statistics_enabled(column(["add", "stats"]), EnabledStatistics::None);
    for path in PATHS {
        // The null counts of columns show which row groups contain an action.
        properties = properties.set_column_statistics_enabled(column(path), EnabledStatistics::Chunk);
    }
    for unique in [["add", "path"], ["add", "stats"], ["add", "modificationTime"], ["remove", "path"]] {
        properties = properties.set_column_dictionary_enabled(column(unique), false);
    }
    properties
}
