//! Generated columns, whose values are computed from other columns. (PROTOCOL, "Generated Columns".)
//!
//! - If the written rows lack such a column, its values are computed. If they have it, each value must meet `(value
//!   <=> expression) IS TRUE`.
//! - The expression is cast to the column's type in both cases.

use super::bind_schema::BindSchema;
use super::check::{Violation, value_of};
use super::collation::ensure_bytes;
use crate::error::{Error, Result};
use crate::expression::predicate::{BoundColumn, ColumnPath, Expression, column_at, null_safe_equal};
use crate::protocol::StructType;
use arrow::array::{ArrayRef, RecordBatch};
use std::iter::once;

/// A generated column, bound to its table's schema.
#[derive(Debug, Clone)]
pub struct Generated {
    column: String,
    sql: String,
    expression: Expression,
}

impl Generated {
    /// Parses `sql`, the expression of the top-level column `column`, and binds it to `schema`. `time_zone` is
    /// the IANA name of the zone for times that do not have one.
    ///
    /// # Errors
    /// InvalidArgument, naming the column, if it does not exist, if the expression reads it, or if this crate cannot
    /// evaluate the expression or cast it to the column's type.
    pub fn bind(column: &str, sql: &str, schema: &StructType, time_zone: &str) -> Result<Self> {
        Self::bind_to(&BindSchema::of(schema)?, column, sql, time_zone)
    }

    /// Binds a generated column as [`Generated::bind`] does, using a schema index that all rules of the table share.
    ///
    /// # Errors
    /// Returns the same errors as [`Generated::bind`].
    pub(super) fn bind_to(schema: &BindSchema<'_>, column: &str, sql: &str, time_zone: &str) -> Result<Self> {
        let unusable = |error: Error| {
            error
                .within(format_args!("the generated column '{column}' ({sql}) cannot be computed"))
                .with_hint("write to the table with Spark, which has more functions")
        };
        let data_type = schema.type_of(column).ok_or_else(|| {
            Error::invalid_argument(format!("the generated column {column} does not exist"))
        })?;
        let expression = schema.bind_as(sql, time_zone, data_type).map_err(unusable)?;
        expression.ensure_deterministic().map_err(unusable)?;
        ensure_bytes(expression.columns(), schema.table()).map_err(unusable)?;
        let path = ColumnPath::new([column]);
        if expression.columns().iter().any(|read| read.path.parts().first() == path.parts().first()) {
            return Err(unusable(Error::invalid_argument("it depends on itself")));
        }
        Ok(Self { column: column.to_owned(), sql: sql.to_owned(), expression })
    }

    /// Returns the name of the column.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// Returns the text of the expression.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Returns the columns that the expression reads.
    pub fn columns(&self) -> &[BoundColumn] {
        self.expression.columns()
    }

    /// Computes the column for the rows of `batch`, in the column's type.
    ///
    /// # Errors
    /// InvalidArgument if the expression cannot be computed for a row, or its value does not fit the column's type.
    /// SchemaMismatch if `batch` lacks a column that the expression reads.
    pub fn fill(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        self.expression.evaluate_all(batch)
    }

    /// Returns the first row in which the column differs from the value of the expression. Two NULLs are equal.
    ///
    /// # Errors
    /// Returns the same errors as [`Generated::fill`], and SchemaMismatch if `batch` lacks the column.
    pub fn verify(&self, batch: &RecordBatch) -> Result<Option<Violation>> {
        let expected = self.fill(batch)?;
        let path = ColumnPath::new([&self.column]);
        let same = null_safe_equal(&column_at(batch, &path)?, &expected)?;
        let Some(row) = (0..batch.num_rows()).find(|row| !same.value(*row)) else { return Ok(None) };
        let read = self.columns().iter().map(|column| &column.path);
        Ok(Some(Violation {
            rule: format!("the generated column '{}' ({})", self.column, self.sql),
            row,
            values: once(&path).chain(read).map(|path| value_of(batch, path, row)).collect::<Result<_>>()?,
        }))
    }
}
