//! Renames the fields of arrays to the names that data files use, without copying values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

use super::stored::is_void;
use crate::error::{Error, Result};

/// Returns `batch` with the names and metadata of `schema`. The types must be the same, except that `schema` lacks
/// the void fields of structs.
///
/// # Errors
/// Returns `SchemaMismatch` if the shapes of the types differ.
pub(super) fn renamed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns =
        columns.map(|(array, field)| rename(array, field.data_type())).collect::<Result<Vec<_>, _>>();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .and_then(|columns| RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options))
        .map_err(|error| {
            Error::schema_mismatch("the batch does not have the shape of the table's files")
                .with_source(error)
        })
}

fn rename(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    Ok(match to {
        DataType::Struct(fields) => {
            let array = array.as_struct();
            let stored = array.columns().iter().filter(|column| !is_void(column.data_type()));
            let columns = stored.zip(fields).map(|(column, field)| rename(column, field.data_type()));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, array.nulls().cloned())?)
        }
        DataType::List(field) => {
            let array = array.as_list::<i32>();
            let values = rename(array.values(), field.data_type())?;
            Arc::new(ListArray::try_new(
                Arc::clone(field),
                array.offsets().clone(),
                values,
                array.nulls().cloned(),
            )?)
        }
        DataType::Map(field, sorted) => {
            let array = array.as_map();
            let entries: ArrayRef = Arc::new(array.entries().clone());
            let entries = rename(&entries, field.data_type())?.as_struct().clone();
            Arc::new(MapArray::try_new(
                Arc::clone(field),
                array.offsets().clone(),
                entries,
                array.nulls().cloned(),
                *sorted,
            )?)
        }
        _ => Arc::clone(array),
    })
}
