//! Puts pairs of a row of the table and a row of the source side by side in a batch.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{take, take_record_batch};
use arrow::datatypes::{FieldRef, Schema};
use arrow::error::ArrowError;

use super::source::MergeSource;
use crate::error::{Error, Result};
use crate::expression::predicate::Scope;
use crate::runtime::by_name::names_of;
use crate::runtime::row_bytes::{BatchBytes, weight, widest};

/// The source of a MERGE, and the columns of the table and the source that conditions may read.
pub(super) struct Sides<'a> {
    scope: &'a Scope,
    pub(super) source: &'a MergeSource,
    pub(super) limits: BatchBytes,
    /// For each column of the source, the size in bytes of its largest value.
    widest: Vec<usize>,
}

impl<'a> Sides<'a> {
    pub(super) fn new(scope: &'a Scope, source: &'a MergeSource, limits: BatchBytes) -> Self {
        Self { scope, source, limits, widest: source.widest() }
    }

    /// Divides pairs of a row of `target` and a row of the source into parts. With the `columns` of the scope, each
    /// part fits in one batch.
    pub(super) fn parts<'b>(
        &'b self,
        target: &'b RecordBatch,
        pairs: &'b [(u32, u32)],
        columns: impl Iterator<Item = &'b str>,
    ) -> impl Iterator<Item = &'b [(u32, u32)]> {
        let names: BTreeSet<&str> = columns.collect();
        let (mut of_target, mut of_source): (Vec<&ArrayRef>, Vec<usize>) = (Vec::new(), Vec::new());
        let [targets, sources] = [target.schema_ref(), self.source.schema()].map(|of| names_of(of.fields()));
        for name in names {
            match self.scope.table_of(name) {
                Some((0, column)) => {
                    of_target.extend(targets.find(column).and_then(|column| target.columns().get(column)));
                }
                Some((_, column)) => of_source.extend(sources.find(column)),
                None => {}
            }
        }
        let wide_source: usize = of_source.iter().filter_map(|column| self.widest.get(*column)).sum();
        let most = wide_source + widest(of_target.iter().copied());
        self.limits.parts(pairs, most, move |(target, source)| {
            let of_target = of_target.iter().map(|array| weight(array, *target as usize, 1));
            of_target.sum::<usize>() + self.source.bytes(*source, &of_source)
        })
    }

    /// Divides rows of the source into parts that fit in one batch.
    pub(super) fn parts_of_source<'b>(&'b self, rows: &'b [u32]) -> impl Iterator<Item = &'b [u32]> {
        let columns: Vec<usize> = (0..self.widest.len()).collect();
        let most = self.widest.iter().sum();
        self.limits.parts(rows, most, move |row| self.source.bytes(*row, &columns))
    }

    /// Returns pairs of rows with the `columns` of the scope. `of_target` are the indices of the table's rows in a
    /// batch, or `None` for all rows of the batch. `of_source` are the rows of the source.
    ///
    /// # Errors
    /// `InvalidArgument` if a batch lacks a column.
    pub(super) fn pairs<'b>(
        &self,
        target: &RecordBatch,
        of_target: Option<&UInt32Array>,
        of_source: &[u32],
        columns: impl Iterator<Item = &'b str>,
    ) -> Result<RecordBatch> {
        let names: BTreeSet<&str> = columns.collect();
        let (mut fields, mut arrays): (Vec<FieldRef>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        let [targets, sources] = [target.schema_ref(), self.source.schema()].map(|of| names_of(of.fields()));
        for name in names {
            let Some((place, column)) = self.scope.table_of(name) else { continue };
            let (schema, names) =
                if place == 0 { (target.schema_ref(), &targets) } else { (self.source.schema(), &sources) };
            let missing = || unpaired(ArrowError::SchemaError(format!("there is no column '{column}'")));
            let index = names.find(column).ok_or_else(missing)?;
            let array = match (place, of_target) {
                (0, Some(indices)) => take(target.column(index), indices, None),
                (0, None) => Ok(Arc::clone(target.column(index))),
                _ => self.source.column(index, of_source),
            };
            arrays.push(array.map_err(unpaired)?);
            fields.push(Arc::new(schema.field(index).clone().with_name(name).with_nullable(true)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(of_source.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).map_err(unpaired)
    }

    /// Returns the rows of the source, with the column names of the scope.
    ///
    /// # Errors
    /// Never fails.
    pub(super) fn named_source(&self) -> Result<Vec<RecordBatch>> {
        self.source.batches().iter().map(|batch| self.named(1, batch)).collect()
    }

    /// Returns rows of one of the tables, with the column names of the scope.
    ///
    /// # Errors
    /// Never fails for rows of the table.
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
/// Returns `InvalidArgument` for rows that need more memory than an Arrow array can have.
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
