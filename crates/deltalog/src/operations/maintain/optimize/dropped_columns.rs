//! Finds files that contain columns which are no longer in the schema. (Protocol: "Column Mapping".)
//!
//! - A dropped column remains in the files that were written before. Only their footers show it.
//! - Fields of structs count like columns, also inside of arrays and maps. The parts of variants do not count.
//! - The hidden columns with row ids belong to the table as long as its properties name them (protocol, "Row
//!   Tracking").

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use parquet::arrow::{PARQUET_FIELD_ID_META_KEY, parquet_to_arrow_schema};

use crate::error::{Error, Result};
use crate::operations::rewrite::ListedFile;
use crate::protocol::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN};
use crate::protocol::schema::is_variant;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;
use crate::write::{FOOTER_THREADS, read_footer};

/// Finds files that contain columns which the schema lacks.
pub(super) struct DroppedColumns<'a> {
    snapshot: &'a Snapshot,
    /// The names of the hidden columns that contain row ids.
    hidden: Vec<&'a str>,
}

impl<'a> DroppedColumns<'a> {
    pub(super) fn of(snapshot: &'a Snapshot) -> Self {
        let names = [ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN];
        let hidden = names.into_iter().filter_map(|name| snapshot.metadata().property(name)).collect();
        Self { snapshot, hidden }
    }

    /// Returns for each of `files` whether it contains columns that the schema lacks.
    ///
    /// # Errors
    /// Returns `FileNotFound`, `CorruptData` for a file that is not Parquet, and errors from the store.
    pub(super) fn find(&self, files: &[ListedFile]) -> Result<Vec<bool>> {
        parallel::each(files, FOOTER_THREADS, |file| {
            self.has_others(file).map_err(|error| self.snapshot.located(error.at_path(&file.add.path)))
        })
    }

    fn has_others(&self, file: &ListedFile) -> Result<bool> {
        let footer = read_footer(&self.snapshot.storage().open_log_path(&file.file.path)?)?;
        let schema = parquet_to_arrow_schema(footer.file_metadata().schema_descr(), None)
            .map_err(|error| Error::corrupt_data("the file's schema is not understood").with_source(error))?;
        let known = self.snapshot.mapped_schema().physical_arrow();
        let fields = schema.fields().iter().filter(|field| !self.hidden.contains(&field.name().as_str()));
        Ok(has_others(fields, known.fields()))
    }
}

/// Returns whether a field of `fields`, at any depth, is not in `known`.
fn has_others<'f>(mut fields: impl Iterator<Item = &'f FieldRef>, known: &Fields) -> bool {
    fields.any(|field| match known.iter().find(|known| is_same(field, known)) {
        None => true,
        Some(known) => !is_variant(known) && has_others_inside(field.data_type(), known.data_type()),
    })
}

fn has_others_inside(in_file: &DataType, known: &DataType) -> bool {
    match (in_file, known) {
        (DataType::Struct(fields), DataType::Struct(known)) => has_others(fields.iter(), known),
        (DataType::List(element), DataType::List(known)) => part_has_others(element, known),
        (DataType::Map(entries, _), DataType::Map(known, _)) => {
            match (entries.data_type(), known.data_type()) {
                (DataType::Struct(parts), DataType::Struct(known)) => {
                    parts.iter().zip(known).any(|(part, known)| part_has_others(part, known))
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// Checks the element of an array, or the key or value of a map. Their names are not compared, because they differ
/// between writers.
fn part_has_others(part: &Arc<Field>, known: &Arc<Field>) -> bool {
    !is_variant(known) && has_others_inside(part.data_type(), known.data_type())
}

/// Returns whether a field of a file is the same as a field of the table. Fields are compared by id if the table has
/// ids, and otherwise by name.
fn is_same(in_file: &Field, known: &Field) -> bool {
    match known.metadata().get(PARQUET_FIELD_ID_META_KEY) {
        Some(id) => in_file.metadata().get(PARQUET_FIELD_ID_META_KEY) == Some(id),
        None => in_file.name().eq_ignore_ascii_case(known.name()),
    }
}
