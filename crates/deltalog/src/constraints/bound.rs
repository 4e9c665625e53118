//! The rules of a table, bound to its schema, and their application to rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};

use super::check::{Check, Violation};
use super::default_value::DefaultValue;
use super::generated::Generated;
use super::identity::Identities;
use super::length::Length;
use super::rules::RowRules;
use crate::error::{Error, Result};
use crate::protocol::{Metadata, Protocol, StructType};

/// All expressions that a table demands of its rows.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Constraints {
    /// CHECK constraints by name, then the invariants of columns.
    pub checks: Vec<Check>,
    /// The generated columns, in the order of the schema.
    pub generated: Vec<Generated>,
    /// The default values of columns, in the order of the schema.
    pub defaults: Vec<DefaultValue>,
    pub(super) identities: Identities,
    pub(super) lengths: Vec<Length>,
}

impl Constraints {
    /// Finds and binds the expressions of a table with this protocol, this metadata and this schema.
    ///
    /// # Errors
    /// As [`RowRules::of`] and [`RowRules::bind`].
    pub fn of(
        protocol: &Protocol,
        metadata: &Metadata,
        schema: &StructType,
        time_zone: &str,
    ) -> Result<Self> {
        RowRules::of(protocol, metadata, schema)?.bind(schema, time_zone)
    }

    /// Returns the schema that given rows must fit: that of the table, in which the columns may be NULL that are not
    /// given and will be filled.
    pub(crate) fn schema_before_filling(&self, table: &SchemaRef, given: &Schema) -> SchemaRef {
        let fields =
            table.fields().iter().map(|field| match self.fills(field) && !has(given, field.name()) {
                true => Arc::new(field.as_ref().clone().with_nullable(true)),
                false => Arc::clone(field),
            });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Returns `rows`, which have all columns of `table`, with default values and values of identity columns where
    /// `given` does not have the column. Values of type `char` are padded.
    ///
    /// # Errors
    /// As [`DefaultValue::array`]. SchemaMismatch for values of an identity column whose values are always generated,
    /// and for a string that is too long for its column. InvalidArgument if an identity column has no further values.
    pub(crate) fn fill(
        &self,
        mut rows: RecordBatch,
        table: &SchemaRef,
        given: &Schema,
    ) -> Result<RecordBatch> {
        for (index, field) in table.fields().iter().enumerate() {
            let default = self.defaults.iter().find(|default| default.column() == field.name());
            if let Some(default) = default
                && !has(given, field.name())
            {
                let column = default.array(field.data_type(), rows.num_rows())?;
                rows = replaced(rows, index, column)?;
            }
        }
        for (index, field) in table.fields().iter().enumerate() {
            if self.identities.generates(field.name(), has(given, field.name()))? {
                let column = self.identities.take(field.name(), rows.num_rows())?;
                rows = replaced(rows, index, column)?;
            }
        }
        self.padded(rows)
    }

    /// Returns `rows`, which [`Constraints::fill`] has returned, with values in those generated columns that `given`
    /// does not have. The columns that they read are as they will be stored.
    ///
    /// # Errors
    /// As [`Generated::fill`]. SchemaMismatch for a NULL in a NOT NULL column that was computed, and for a string that
    /// is too long for its column.
    pub(crate) fn generate(
        &self,
        mut rows: RecordBatch,
        table: &SchemaRef,
        given: &Schema,
    ) -> Result<RecordBatch> {
        for (index, field) in table.fields().iter().enumerate() {
            let generated = self.generated.iter().find(|generated| generated.column() == field.name());
            if let Some(generated) = generated
                && !has(given, field.name())
            {
                let column = generated.fill(&rows)?;
                rows = replaced(rows, index, column)?;
            }
        }
        let (_, columns, count) = self.padded(rows)?.into_parts();
        for (field, column) in table.fields().iter().zip(&columns) {
            if !field.is_nullable() && column.null_count() > 0 && self.fills(field) {
                return Err(Error::schema_mismatch(format!(
                    "column '{}' is NOT NULL in the table, and the value computed for it is NULL",
                    field.name()
                )));
            }
        }
        RecordBatch::try_new_with_options(Arc::clone(table), columns, &sized(count)).map_err(unfit)
    }

    /// Returns `rows` with strings of the lengths that their columns demand.
    fn padded(&self, mut rows: RecordBatch) -> Result<RecordBatch> {
        for length in &self.lengths {
            let index = rows.schema_ref().index_of(length.column()).map_err(unfit)?;
            if let Some(padded) = length.apply(rows.column(index))? {
                rows = replaced(rows, index, padded)?;
            }
        }
        Ok(rows)
    }

    /// Returns the first violation of a check, or of a generated column that `batch` has.
    ///
    /// # Errors
    /// As [`Check::violation`] and [`Generated::verify`].
    pub fn violation(&self, batch: &RecordBatch) -> Result<Option<Violation>> {
        for check in &self.checks {
            if let Some(violation) = check.violation(batch)? {
                return Ok(Some(violation));
            }
        }
        for generated in &self.generated {
            if let Some(violation) = generated.verify(batch)? {
                return Ok(Some(violation));
            }
        }
        Ok(None)
    }

    fn fills(&self, field: &Field) -> bool {
        self.defaults.iter().any(|default| default.column() == field.name())
            || self.generated.iter().any(|generated| generated.column() == field.name())
            || self.identities.names().contains(&field.name().as_str())
    }
}

/// Returns whether `given` has the column, compared as Spark compares names.
fn has(given: &Schema, column: &str) -> bool {
    let column = column.to_lowercase();
    given.fields().iter().any(|field| field.name().to_lowercase() == column)
}

/// Returns `rows` with another column at `index`.
fn replaced(rows: RecordBatch, index: usize, column: ArrayRef) -> Result<RecordBatch> {
    let (schema, mut columns, count) = rows.into_parts();
    if let Some(place) = columns.get_mut(index) {
        *place = column;
    }
    RecordBatch::try_new_with_options(schema, columns, &sized(count)).map_err(unfit)
}

fn sized(rows: usize) -> RecordBatchOptions {
    RecordBatchOptions::new().with_row_count(Some(rows))
}

fn unfit(error: arrow::error::ArrowError) -> Error {
    Error::schema_mismatch("a computed column does not fit the table").with_source(error)
}
