//! Changes the `add` actions of files that the table already contains. A commit then adds these files again. (Protocol:
//! "Add File and Remove File".)

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};

use crate::error::{Error, Result};
use crate::log::replay::FileColumn;

/// Returns the `add` actions with NULL in the columns `left_out`. Their `dataChange` is false, because a commit of them
/// adds no rows.
///
/// # Errors
/// Returns `CorruptLog` if every action must have one of these columns.
pub(super) fn added_again(adds: &RecordBatch, left_out: &[FileColumn]) -> Result<RecordBatch> {
    let schema = adds.schema();
    let columns = schema.fields().iter().zip(adds.columns()).map(|(field, column)| {
        if field.name() == FileColumn::DataChange.name() {
            Arc::new(BooleanArray::from(vec![false; adds.num_rows()])) as ArrayRef
        } else if left_out.iter().any(|column| field.name() == column.name()) {
            new_null_array(field.data_type(), adds.num_rows())
        } else {
            Arc::clone(column)
        }
    });
    RecordBatch::try_new(adds.schema(), columns.collect())
        .map_err(|error| Error::corrupt_log("the files cannot be added again").with_source(error))
}
