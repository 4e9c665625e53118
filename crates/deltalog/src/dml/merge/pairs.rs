//! Rows of the table and of the source, side by side.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{take, take_record_batch};
use arrow::datatypes::{FieldRef, Schema};
use arrow::error::ArrowError;

use crate::error::{Error, Result};
use crate::predicate::Scope;

/// The source of a MERGE, and the scope of pairs of rows of both tables.
pub(super) struct Sides<'a> {
    scope: &'a Scope,
    pub(super) source: &'a RecordBatch,
}

impl<'a> Sides<'a> {
    pub(super) fn new(scope: &'a Scope, source: &'a RecordBatch) -> Self {
        Self { scope, source }
    }

    /// Returns pairs of rows, with those of the `columns` of the scope: rows `of_target` of a batch of the table (all
    /// rows, if it is `None`), and rows `of_source`.
    ///
    /// # Errors
    /// `InvalidArgument` if a batch lacks a column.
    pub(super) fn pairs<'b>(
        &self,
        target: &RecordBatch,
        of_target: Option<&UInt32Array>,
        of_source: &UInt32Array,
        columns: impl Iterator<Item = &'b str>,
    ) -> Result<RecordBatch> {
        let names: BTreeSet<&str> = columns.collect();
        let (mut fields, mut arrays): (Vec<FieldRef>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for name in names {
            let Some((place, column)) = self.scope.table_of(name) else { continue };
            let (rows, indices) =
                if place == 0 { (target, of_target) } else { (self.source, Some(of_source)) };
            let index = rows.schema_ref().index_of(column).map_err(unpaired)?;
            let array = rows.column(index);
            arrays.push(match indices {
                Some(indices) => take(array, indices, None).map_err(unpaired)?,
                None => Arc::clone(array),
            });
            let field = rows.schema_ref().field(index).clone().with_name(name).with_nullable(true);
            fields.push(Arc::new(field));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(of_source.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).map_err(unpaired)
    }

    /// Returns rows of one table, by the names of the scope.
    ///
    /// # Errors
    /// Never for rows of the table.
    pub(super) fn named(&self, place: usize, rows: &RecordBatch) -> Result<RecordBatch> {
        let named = |field: &FieldRef| {
            let name = self.scope.name_of(place, field.name());
            Arc::new(field.as_ref().clone().with_name(name).with_nullable(true))
        };
        let fields: Vec<FieldRef> = rows.schema_ref().fields().iter().map(named).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), rows.columns().to_vec(), &options)
            .map_err(unpaired)
    }
}

/// Returns the rows at `indices`.
///
/// # Errors
/// `InvalidArgument` for rows that need more memory than an Arrow array can have.
pub(super) fn taken(rows: &RecordBatch, indices: &[u32]) -> Result<RecordBatch> {
    if rows.num_columns() == 0 {
        let options = RecordBatchOptions::new().with_row_count(Some(indices.len()));
        return RecordBatch::try_new_with_options(rows.schema(), Vec::new(), &options).map_err(unpaired);
    }
    take_record_batch(rows, &UInt32Array::from(indices.to_vec())).map_err(unpaired)
}

fn unpaired(error: ArrowError) -> Error {
    Error::invalid_argument("rows of the table and of the source cannot be paired").with_source(error)
}
