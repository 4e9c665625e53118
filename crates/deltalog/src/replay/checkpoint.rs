//! Reading a checkpoint column by column. Protocol: "Checkpoint Schema".
//!
//! - Only the leaf columns that are asked for are decoded; which ones a file has is taken from its own schema, never from a position.
//! - A row group without any row of the action asked for (known from the statistics of a required field) is not read.
//! - What other writers spell differently (names inside maps, integer widths, absent columns) is brought to the form of [`super::columns`].

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, RecordBatch, StructArray, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, filter_record_batch, is_not_null};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::ParquetMetaData;

use super::columns::{FileColumns, remove_fields};
use crate::error::{Error, Result};
use crate::log::{CheckpointFiles, LOG_DIRECTORY};
use crate::protocol::Action;
use crate::storage::{FileReader, Storage};

const BATCH_ROWS: usize = 16 * 1024;

/// Reads the rows of one kind of file action, file by file.
pub struct CheckpointReader {
    storage: Storage,
    version: u64,
    files: VecDeque<String>,
    action: &'static str,
    fields: Vec<Field>,
    schema: SchemaRef,
    open: Option<(String, ParquetRecordBatchReader)>,
}

impl CheckpointReader {
    /// The `add` rows with `columns`.
    pub fn adds(storage: &Storage, checkpoint: &CheckpointFiles, columns: FileColumns) -> Self {
        Self::new(storage, checkpoint, "add", columns.iter().map(|column| column.field()).collect())
    }

    /// The `remove` rows.
    pub fn removes(storage: &Storage, checkpoint: &CheckpointFiles) -> Self {
        Self::new(storage, checkpoint, "remove", remove_fields())
    }

    fn new(storage: &Storage, checkpoint: &CheckpointFiles, action: &'static str, fields: Vec<Field>) -> Self {
        Self {
            storage: storage.clone(),
            version: checkpoint.version,
            files: paths(checkpoint).collect(),
            action,
            schema: Arc::new(Schema::new(fields.clone())),
            fields,
            open: None,
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((_, reader)) = &mut self.open {
                match reader.next() {
                    Some(batch) => {
                        let batch = batch.map_err(|error| damaged().with_source(error))?;
                        return self.rows(&batch).map(Some);
                    }
                    None => self.open = None,
                }
            }
            let Some(path) = self.files.pop_front() else { return Ok(None) };
            self.open = Some((path.clone(), self.open_file(&path).map_err(|error| error.at_path(path))?));
        }
    }

    fn open_file(&self, path: &str) -> Result<ParquetRecordBatchReader> {
        let builder = open(&self.storage, path)?;
        // The path tells whether there is an action at all, so it is always read.
        let wanted: Vec<&str> = self.fields.iter().map(|field| field.name().as_str()).chain(["path"]).collect();
        let leaves = leaves(&builder, |root, child| root == self.action && wanted.contains(&child));
        let row_groups = row_groups_with(builder.metadata(), self.action, "path");
        let mask = ProjectionMask::leaves(builder.parquet_schema(), leaves);
        builder
            .with_projection(mask)
            .with_row_groups(row_groups)
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|error| damaged().with_source(error))
    }

    /// The rows that hold the action, in the form of the log.
    fn rows(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let empty = || RecordBatch::new_empty(Arc::clone(&self.schema));
        let Some(action) = batch.column_by_name(self.action).and_then(|column| column.as_struct_opt()) else { return Ok(empty()) };
        let path = action.column_by_name("path").ok_or_else(|| Error::corrupt_log(format!("'{}' has no column 'path'", self.action)))?;
        let present = NullBuffer::union(action.nulls(), path.nulls());
        if present.as_ref().is_some_and(|present| present.null_count() == present.len()) {
            return Ok(empty());
        }
        let columns = self.fields.iter().map(|field| normalized(action, field)).collect::<Result<Vec<_>>>()?;
        let rows = RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows())),
        )
        .map_err(|error| damaged().with_source(error))?;
        match present {
            Some(present) if present.null_count() > 0 => {
                filter_record_batch(&rows, &arrow::array::BooleanArray::new(present.inner().clone(), None))
                    .map_err(|error| damaged().with_source(error))
            }
            _ => Ok(rows),
        }
    }
}

impl Iterator for CheckpointReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.next_batch();
        let path = self.open.as_ref().map(|(path, _)| path.clone());
        result
            .map_err(|error| {
                let error = error.at_version(self.version).in_table(self.storage.url());
                match path {
                    Some(path) => error.at_path(path),
                    None => error,
                }
            })
            .transpose()
    }
}

/// The actions of a checkpoint that are not file actions: protocol, metadata, transactions, domains.
///
/// # Errors
/// `CorruptLog` if the checkpoint cannot be read, and the store's own.
pub(crate) fn read_table_actions(storage: &Storage, checkpoint: &CheckpointFiles, kinds: &[TableAction]) -> Result<Vec<Action>> {
    let mut actions = Vec::new();
    for path in paths(checkpoint) {
        let located = |error: Error| error.at_path(&path).at_version(checkpoint.version).in_table(storage.url());
        let file = storage.open_file(&path).map_err(located)?;
        // The footer is read once, however many kinds are asked for.
        let footer =
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()).map_err(|error| located(damaged().with_source(error)))?;
        for kind in kinds {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), footer.clone());
            read_kind(builder, *kind, &mut actions).map_err(located)?;
        }
    }
    Ok(actions)
}

/// An action that is about the table and not about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableAction {
    Protocol,
    Metadata,
    Transaction,
    Domain,
}

impl TableAction {
    /// Its column, and a field of it that is never null.
    fn column(self) -> (&'static str, &'static str) {
        match self {
            Self::Protocol => ("protocol", "minReaderVersion"),
            Self::Metadata => ("metaData", "id"),
            Self::Transaction => ("txn", "appId"),
            Self::Domain => ("domainMetadata", "domain"),
        }
    }
}

fn read_kind(builder: ParquetRecordBatchReaderBuilder<FileReader>, kind: TableAction, actions: &mut Vec<Action>) -> Result<()> {
    let (column, required) = kind.column();
    let leaves = leaves(&builder, |root, _| root == column);
    if leaves.is_empty() {
        return Ok(());
    }
    let row_groups = row_groups_with(builder.metadata(), column, required);
    let mask = ProjectionMask::leaves(builder.parquet_schema(), leaves);
    let reader = builder
        .with_projection(mask)
        .with_row_groups(row_groups)
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(|error| damaged().with_source(error))?;
    for batch in reader {
        let batch = batch.map_err(|error| damaged().with_source(error))?;
        let present =
            batch.column_by_name(column).map(|column| is_not_null(column)).transpose().map_err(|error| damaged().with_source(error))?;
        let Some(present) = present.filter(|present| present.true_count() > 0) else { continue };
        let rows = filter_record_batch(&batch, &present).map_err(|error| damaged().with_source(error))?;
        // A handful of rows: as JSON they go through the same reader as the lines of a commit.
        let mut writer = arrow::json::LineDelimitedWriter::new(Vec::new());
        writer.write(&rows).and_then(|()| writer.finish()).map_err(|error| damaged().with_source(error))?;
        for line in String::from_utf8_lossy(&writer.into_inner()).lines() {
            actions.extend(Action::parse_line(line)?);
        }
    }
    Ok(())
}

fn damaged() -> Error {
    Error::corrupt_log("the checkpoint cannot be read")
}

fn paths(checkpoint: &CheckpointFiles) -> impl Iterator<Item = String> {
    checkpoint.files.iter().map(|file| format!("{LOG_DIRECTORY}/{}", file.name))
}

fn open(storage: &Storage, path: &str) -> Result<ParquetRecordBatchReaderBuilder<FileReader>> {
    ParquetRecordBatchReaderBuilder::try_new(storage.open_file(path)?).map_err(|error| damaged().with_source(error))
}

/// The leaves whose root and second path element `wanted` accepts.
fn leaves(builder: &ParquetRecordBatchReaderBuilder<FileReader>, wanted: impl Fn(&str, &str) -> bool) -> Vec<usize> {
    builder
        .parquet_schema()
        .columns()
        .iter()
        .enumerate()
        .filter(|(_, leaf)| {
            let parts = leaf.path().parts();
            wanted(&parts[0], parts.get(1).map_or("", String::as_str))
        })
        .map(|(index, _)| index)
        .collect()
}

/// The row groups that may hold a value of the required field `root.field`.
fn row_groups_with(metadata: &ParquetMetaData, root: &str, field: &str) -> Vec<usize> {
    let leaf = metadata
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .position(|leaf| matches!(leaf.path().parts(), [a, b] if a == root && b == field));
    (0..metadata.num_row_groups())
        .filter(|index| {
            let group = metadata.row_group(*index);
            let nulls = leaf.and_then(|leaf| group.column(leaf).statistics()).and_then(|statistics| statistics.null_count_opt());
            nulls.is_none_or(|nulls| i64::try_from(nulls) != Ok(group.num_rows()))
        })
        .collect()
}

/// The child `field` of an action in the type of the log's form; nulls where the checkpoint does not have it.
fn normalized(action: &StructArray, field: &Field) -> Result<ArrayRef> {
    let Some(column) = action.column_by_name(field.name()) else { return Ok(new_null_array(field.data_type(), action.len())) };
    to_type(column, field.data_type())
        .map_err(|error| error.with_hint(format!("column '{}' of the checkpoint has a type that the protocol does not know", field.name())))
}

fn to_type(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if column.data_type() == wanted {
        return Ok(Arc::clone(column));
    }
    let bad = || Error::corrupt_log(format!("a column of type {} stands where {wanted} should", column.data_type()));
    match wanted {
        DataType::Map(entries, sorted) => {
            let map = column.as_map_opt().ok_or_else(bad)?;
            let DataType::Struct(fields) = entries.data_type() else { return Err(bad()) };
            let children = vec![to_type(map.keys(), fields[0].data_type())?, to_type(map.values(), fields[1].data_type())?];
            let rows = StructArray::try_new(fields.clone(), children, None).map_err(|error| bad().with_source(error))?;
            let map = MapArray::try_new(Arc::clone(entries), map.offsets().clone(), rows, map.nulls().cloned(), *sorted);
            Ok(Arc::new(map.map_err(|error| bad().with_source(error))?))
        }
        DataType::Struct(fields) => {
            let rows = column.as_struct_opt().ok_or_else(bad)?;
            let children = fields.iter().map(|field| normalized(rows, field)).collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StructArray::try_new(fields.clone(), children, rows.nulls().cloned()).map_err(|error| bad().with_source(error))?))
        }
        _ => cast(column, wanted).map_err(|error| bad().with_source(error)),
    }
}
