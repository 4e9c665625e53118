//! Finds the files that may be deleted in an inventory of the store, which the caller provides.
//!
//! - Only full paths in the table's directory are used. If the inventory has rows but none with such a path, that is
//!   an error, because an inventory of another location, or with paths in another format, would look like a table
//!   without files to delete.
//! - Paths are plain text and not encoded, as in the JVM implementation. The encoded path of a needed file is an
//!   error, because it would look as if no version needed the file.

use std::borrow::Cow;
use std::collections::HashSet;

use arrow::array::{Array, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchReader, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};

use super::candidates::{Candidates, reason};
use super::listing::Found;
use super::retained::Retained;
use super::visible::Visible;
use crate::error::{Error, Result};
use crate::protocol::path::decode;
use crate::snapshot::Snapshot;
use crate::storage::FileMeta;

/// Reads an inventory, and lists the files that may be deleted.
///
/// # Errors
/// Returns `SchemaMismatch` if the inventory lacks a column. Returns `InvalidArgument` for a row without a value, for
/// encoded paths, and if there is no row for a path in the table's directory.
pub(super) fn find(
    snapshot: &Snapshot,
    inventory: impl RecordBatchReader,
    retained: &Retained,
    cutoff_ms: i64,
) -> Result<Found> {
    let visible = Visible::of(snapshot);
    let mut candidates = Candidates::default();
    let mut directories: HashSet<String> = HashSet::new();
    let (mut rows, mut below) = (0, 0);
    for batch in inventory {
        let batch = batch
            .map_err(|error| Error::invalid_argument("the inventory could not be read").with_source(error))?;
        let columns = Columns::of(&batch)?;
        rows += batch.num_rows();
        for row in 0..batch.num_rows() {
            let (path, is_directory, file) = columns.row(row)?;
            let Some(name) = snapshot.resolver().below_table(path)? else { continue };
            below += 1;
            let is_shown = visible.shows_path(&name);
            if is_directory || !is_shown {
                continue;
            }
            if let Some((directory, _)) = name.rsplit_once('/')
                && !directories.contains(directory)
            {
                directories.insert(directory.to_owned());
            }
            let file = FileMeta { name, ..file };
            if let Some(reason) = reason(&file, retained, cutoff_ms) {
                ensure_plain(path, &file.name, retained)?;
                candidates.push(&file, reason);
            }
        }
    }
    if rows > 0 && below == 0 {
        return Err(Error::invalid_argument("no path of the inventory is below the table's root")
            .with_hint("the column 'path' must have full paths, such as s3://bucket/table/part-0.parquet"));
    }
    Ok(Found {
        files: candidates.finish_beside(snapshot, visible.other_tables())?,
        directories: directories.len() as u64 + 1,
        ..Found::default()
    })
}

/// Refuses a path that is the encoded form of a path that the table needs.
fn ensure_plain(path: &str, name: &str, retained: &Retained) -> Result<()> {
    let is_encoded = |plain: Cow<'_, str>| plain != name && retained.keeps(&plain);
    if !name.contains('%') || !decode(name).is_ok_and(is_encoded) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("the paths of the inventory are encoded, such as {path}"))
        .with_hint("decode them: the column 'path' must have plain text"))
}

/// The columns of a batch of the inventory.
struct Columns {
    path: StringArray,
    length: Int64Array,
    is_directory: BooleanArray,
    modified_ms: Int64Array,
}

impl Columns {
    fn of(batch: &RecordBatch) -> Result<Self> {
        let column = |name: &str, data_type: &DataType| {
            let found = batch.column_by_name(name).ok_or_else(|| {
                Error::schema_mismatch(format!("the inventory has no column '{name}'"))
                    .with_hint("it needs the columns path, length, isDir and modificationTime")
            })?;
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(found, data_type, &options).map_err(|error| {
                Error::schema_mismatch(format!(
                    "the column '{name}' of the inventory has the type {}",
                    found.data_type()
                ))
                .with_source(error)
            })
        };
        let is_timestamp = batch
            .schema_ref()
            .field_with_name("modificationTime")
            .is_ok_and(|field| matches!(field.data_type(), DataType::Timestamp(..)));
        let times = if is_timestamp {
            let times = column("modificationTime", &DataType::Timestamp(TimeUnit::Millisecond, None))?;
            times.as_primitive::<arrow::datatypes::TimestampMillisecondType>().reinterpret_cast()
        } else {
            column("modificationTime", &DataType::Int64)?.as_primitive::<Int64Type>().clone()
        };
        Ok(Self {
            path: column("path", &DataType::Utf8)?.as_string().clone(),
            length: column("length", &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
            is_directory: column("isDir", &DataType::Boolean)?.as_boolean().clone(),
            modified_ms: times,
        })
    }

    /// Returns the path in a row, whether it is a directory, and the other properties of the file.
    fn row(&self, row: usize) -> Result<(&str, bool, FileMeta)> {
        let columns: [(&str, &dyn Array); 4] = [
            ("path", &self.path),
            ("length", &self.length),
            ("isDir", &self.is_directory),
            ("modificationTime", &self.modified_ms),
        ];
        if let Some((name, _)) = columns.iter().find(|(_, column)| column.is_null(row)) {
            return Err(Error::invalid_argument(format!("a row of the inventory has no value in '{name}'")));
        }
        let file = FileMeta {
            name: String::new(),
            size: u64::try_from(self.length.value(row)).unwrap_or_default(),
            modified_ms: self.modified_ms.value(row),
            tag: None,
        };
        Ok((self.path.value(row), self.is_directory.value(row), file))
    }
}
