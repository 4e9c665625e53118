//! The columns of a batch, indexed by name. A table may have thousands of rules, and each rule replaces a column or
//! reads a few, so searching all columns for each rule would be slow.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::expression::predicate::BoundColumn;

/// The columns of a batch, which rules may replace one by one.
pub(super) struct NamedColumns {
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
    /// The index of the first column with each name.
    places: HashMap<String, usize>,
}

impl NamedColumns {
    pub(super) fn of(batch: RecordBatch) -> Self {
        let (schema, columns, rows) = batch.into_parts();
        let mut places = HashMap::with_capacity(columns.len());
        for (place, field) in schema.fields().iter().enumerate() {
            places.entry(field.name().clone()).or_insert(place);
        }
        Self { schema, columns, rows, places }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> &[ArrayRef] {
        &self.columns
    }

    /// Returns the index of the column `name`.
    ///
    /// # Errors
    /// SchemaMismatch if there is no column of that name.
    pub(super) fn place(&self, name: &str) -> Result<usize> {
        let place = self.places.get(name).copied();
        place.ok_or_else(|| Error::schema_mismatch(format!("the data has no column {name}")))
    }

    /// Replaces the column at `place`.
    pub(super) fn set(&mut self, place: usize, column: ArrayRef) {
        if let Some(former) = self.columns.get_mut(place) {
            *former = column;
        }
    }

    /// Returns a batch that contains only the columns that an expression reads.
    ///
    /// # Errors
    /// SchemaMismatch if one of the columns is missing.
    pub(super) fn read_by(&self, columns: &[BoundColumn]) -> Result<RecordBatch> {
        let names = columns.iter().filter_map(BoundColumn::top_level);
        self.at(names.map(|name| self.place(name)).collect::<Result<_>>()?)
    }

    /// Returns a batch that contains the column at `place` and the columns that an expression reads.
    ///
    /// # Errors
    /// Returns the same errors as [`NamedColumns::read_by`].
    pub(super) fn read_with(&self, place: usize, columns: &[BoundColumn]) -> Result<RecordBatch> {
        let names = columns.iter().filter_map(BoundColumn::top_level);
        let read = names.map(|name| self.place(name));
        self.at(std::iter::once(Ok(place)).chain(read).collect::<Result<_>>()?)
    }

    /// Returns a batch that contains the columns at `places`, each of them once.
    fn at(&self, mut places: Vec<usize>) -> Result<RecordBatch> {
        places.sort_unstable();
        places.dedup();
        // A NOT NULL column may contain NULLs until it is filled.
        let field =
            |place: &usize| Some(self.schema.fields().get(*place)?.as_ref().clone().with_nullable(true));
        let schema = Schema::new(places.iter().filter_map(field).collect::<Vec<_>>());
        let columns = places.iter().filter_map(|place| self.columns.get(*place)).cloned().collect();
        built(Arc::new(schema), columns, self.rows)
    }

    /// Returns the columns as a batch with the original schema.
    ///
    /// # Errors
    /// SchemaMismatch if a column that was replaced does not fit.
    pub(super) fn batch(self) -> Result<RecordBatch> {
        built(self.schema, self.columns, self.rows)
    }

    /// Returns the columns as a batch with the given schema.
    ///
    /// # Errors
    /// SchemaMismatch if the columns do not fit.
    pub(super) fn batch_of(self, schema: &SchemaRef) -> Result<RecordBatch> {
        built(Arc::clone(schema), self.columns, self.rows)
    }
}

fn built(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(|error| {
        Error::schema_mismatch("a computed column does not fit the table").with_source(error)
    })
}
