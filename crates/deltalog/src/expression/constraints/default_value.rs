//! Default values of columns that a writer leaves out. (PROTOCOL, "Default Columns".)
//!
//! - A column that the written rows lack gets the value of its default expression. A NULL in the rows remains NULL.
//! - `current_timestamp()` is the same time for all rows of a write; `uuid()` has a different value in each row.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Schema};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::expression::predicate::{Expression, expression_bytes};
use crate::runtime::clock;
use crate::runtime::row_bytes::{too_large, weight};

/// The default value of a column. Unlike a constraint, it is only evaluated when it is needed. A writer that provides
/// all columns can therefore write to a table with any default expression.
#[derive(Debug, Clone)]
pub struct DefaultValue {
    column: String,
    sql: String,
    time_zone: String,
    /// The time at which the write began, in microseconds since 1970.
    begun: i64,
}

impl DefaultValue {
    /// Creates the default value of the top-level column `column`, for a write that begins now. `sql` is an
    /// expression in Spark's SQL that names no columns; `time_zone` is the IANA name of the zone for times that do
    /// not have one.
    pub fn new(column: &str, sql: &str, time_zone: &str) -> Self {
        Self {
            column: column.to_owned(),
            sql: sql.to_owned(),
            time_zone: time_zone.to_owned(),
            begun: clock::micros(),
        }
    }

    /// Returns the name of the column.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// Returns the text of the expression.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Refuses a value that differs from row to row, because Spark does not accept it as a default value.
    ///
    /// # Errors
    /// Returns InvalidArgument for such a value.
    pub(crate) fn ensure_same_for_all_rows(&self, data_type: &DataType) -> Result<()> {
        let expression = Expression::bind_default(&self.sql, &self.time_zone, self.begun, data_type)?;
        match expression.is_same_for_all_rows() {
            true => Ok(()),
            false => Err(Error::invalid_argument(
                "its value differs from row to row, which Spark and other writers refuse",
            )),
        }
    }

    /// Returns the default value as an array with one row, for a write in which all rows have the same value.
    ///
    /// # Errors
    /// Returns the same errors as [`DefaultValue::array`], and InvalidArgument for a value that differs from row to
    /// row.
    #[doc(hidden)]
    pub fn for_all_rows(&self, data_type: &DataType) -> Result<ArrayRef> {
        let value = self.array(data_type, 1)?;
        self.ensure_same_for_all_rows(data_type).map_err(|error| {
            Error::invalid_argument(format!(
                "the default value ({}) of the column '{}' cannot be used: {error}",
                self.sql, self.column
            ))
            .with_hint("give a value for the column")
        })?;
        Ok(value)
    }

    /// Returns the default value for `rows` rows, as an array of the column's type `data_type`.
    ///
    /// # Errors
    /// Returns InvalidArgument, which names the column, if this crate cannot evaluate the expression, if the value
    /// does not fit the column, or if a very long value, repeated for so many rows, would be too large. Returns
    /// SchemaMismatch if the value lacks a field of the column.
    pub fn array(&self, data_type: &DataType, rows: usize) -> Result<ArrayRef> {
        self.value(data_type, rows).map_err(|error| {
            error
                .within(format_args!(
                    "column '{}' is missing, and its default value ({}) cannot be computed",
                    self.column, self.sql
                ))
                .with_hint("give the column, or write to the table with Spark, which has more functions")
        })
    }

    /// Computes the same array as [`DefaultValue::array`]. Its errors do not say that the column is missing from the
    /// rows.
    pub(crate) fn value(&self, data_type: &DataType, rows: usize) -> Result<ArrayRef> {
        let expression = Expression::bind_default(&self.sql, &self.time_zone, self.begun, data_type)?;
        let is_same = expression.is_same_for_all_rows();
        let without_columns = RecordBatch::try_new_with_options(
            Arc::new(Schema::empty()),
            Vec::new(),
            &RecordBatchOptions::new().with_row_count(Some(if is_same { 1 } else { rows })),
        )
        .map_err(|error| Error::invalid_argument("a batch without columns failed").with_source(error))?;
        let value = expression.evaluate(&without_columns)?;
        if !is_same {
            return Ok(value);
        }
        let bytes = weight(&value, 0, 1).saturating_mul(rows);
        let allowed = expression_bytes()?;
        if rows > 1 && bytes > allowed {
            return Err(too_large(
                format!("the default value of {rows} rows has {bytes} bytes"),
                format!("at most {allowed} bytes are allowed at once"),
                "write fewer rows at once, or set DELTALOG_EXPRESSION_BYTES",
            ));
        }
        take(&value, &UInt64Array::from_value(0, rows), None)
            .map_err(|error| Error::invalid_argument("it cannot be repeated").with_source(error))
    }
}
