//! Reads the deletion vector descriptors of a batch of file actions.

use arrow::array::{
    Array, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow::datatypes::{Int32Type, Int64Type};

use super::columns::FileColumn;
use crate::error::{Error, Result};
use crate::protocol::{DeletionVectorDescriptor, DeletionVectorStorage};

/// Returns whether any file of `batch`, which has the log's columns, has a deletion vector.
pub(crate) fn has_vectors(batch: &RecordBatch) -> bool {
    batch
        .column_by_name(FileColumn::DeletionVector.name())
        .is_some_and(|column| column.null_count() < column.len())
}

/// Returns which files of `batch`, which has the log's columns, have a deletion vector.
pub(crate) fn with_vectors(batch: &RecordBatch) -> BooleanArray {
    let column = batch.column_by_name(FileColumn::DeletionVector.name());
    let has_vector = |row: usize| column.is_some_and(|column| column.is_valid(row));
    (0..batch.num_rows()).map(has_vector).collect::<Vec<_>>().into()
}

/// The deletion vector descriptors of the files of a batch.
#[derive(Debug)]
pub struct DeletionVectorColumn<'a>(Option<Fields<'a>>);

#[derive(Debug)]
struct Fields<'a> {
    whole: &'a StructArray,
    storage_type: &'a StringArray,
    path_or_inline_dv: &'a StringArray,
    offset: &'a Int32Array,
    size_in_bytes: &'a Int32Array,
    cardinality: &'a Int64Array,
}

impl<'a> DeletionVectorColumn<'a> {
    /// Finds the column of descriptors in a batch with the log's columns.
    ///
    /// # Errors
    /// `CorruptLog` if the batch lacks the column.
    pub fn of_log(batch: &'a RecordBatch) -> Result<Self> {
        Self::new(
            batch,
            FileColumn::DeletionVector.name(),
            ["storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"],
        )
    }

    /// Finds the column of descriptors in a batch of a [`FileList`](crate::scan::FileList).
    ///
    /// # Errors
    /// `CorruptLog` if the batch lacks the column.
    pub fn of_list(batch: &'a RecordBatch) -> Result<Self> {
        Self::new(
            batch,
            "deletion_vector",
            ["storage_type", "path_or_inline_dv", "offset", "size_in_bytes", "cardinality"],
        )
    }

    fn new(batch: &'a RecordBatch, column: &str, names: [&str; 5]) -> Result<Self> {
        let missing = |name: &str| Error::corrupt_log(format!("file actions have no column '{name}'"));
        let whole = batch
            .column_by_name(column)
            .and_then(|whole| whole.as_struct_opt())
            .ok_or_else(|| missing(column))?;
        if whole.null_count() == whole.len() {
            return Ok(Self(None));
        }
        let child = |name: &str| whole.column_by_name(name).ok_or_else(|| missing(name));
        let [storage_type, path_or_inline_dv, offset, size_in_bytes, cardinality] = names;
        Ok(Self(Some(Fields {
            whole,
            storage_type: child(storage_type)?.as_string_opt().ok_or_else(|| missing(storage_type))?,
            path_or_inline_dv: child(path_or_inline_dv)?
                .as_string_opt()
                .ok_or_else(|| missing(path_or_inline_dv))?,
            offset: child(offset)?.as_primitive_opt::<Int32Type>().ok_or_else(|| missing(offset))?,
            size_in_bytes: child(size_in_bytes)?
                .as_primitive_opt::<Int32Type>()
                .ok_or_else(|| missing(size_in_bytes))?,
            cardinality: child(cardinality)?
                .as_primitive_opt::<Int64Type>()
                .ok_or_else(|| missing(cardinality))?,
        })))
    }

    /// Returns the descriptor of the file in `row`, if it has a deletion vector.
    ///
    /// # Errors
    /// `CorruptLog` for a descriptor without a required field or with an unknown storage type.
    pub fn get(&self, row: usize) -> Result<Option<DeletionVectorDescriptor>> {
        let Some(fields) = self.0.as_ref().filter(|fields| fields.whole.is_valid(row)) else {
            return Ok(None);
        };
        let required: [&dyn Array; 4] =
            [fields.storage_type, fields.path_or_inline_dv, fields.size_in_bytes, fields.cardinality];
        if required.iter().any(|field| field.is_null(row)) {
            return Err(Error::corrupt_log("a deletion vector descriptor lacks a required field"));
        }
        let letter = fields.storage_type.value(row);
        let storage_type = DeletionVectorStorage::parse(letter).ok_or_else(|| {
            Error::corrupt_log(format!(
                "a deletion vector descriptor has the unknown storage type '{letter}'"
            ))
        })?;
        Ok(Some(DeletionVectorDescriptor {
            storage_type,
            path_or_inline_dv: fields.path_or_inline_dv.value(row).to_owned(),
            offset: fields.offset.is_valid(row).then(|| fields.offset.value(row)),
            size_in_bytes: fields.size_in_bytes.value(row),
            cardinality: fields.cardinality.value(row),
        }))
    }
}
