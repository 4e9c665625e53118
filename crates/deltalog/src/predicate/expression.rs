//! Values bound to a schema, computed for each row of a batch.

use super::ast::Expr;
use super::bind::Binder;
use super::bind_value::Value;
use super::bound::{Arena, BoundColumn};
use super::compute::{Node, Operation};
use super::filter::Rows;
use super::parse::parse_value;
use super::zone::Clock;
use crate::error::{Error, Result};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema};

/// A value of any scalar type, bound to a schema.
#[derive(Debug, Clone)]
pub struct Expression {
    arena: Arena,
    value: Node,
    data_type: DataType,
    columns: Vec<BoundColumn>,
}

/// Returns whether `sql` is a constant, such as `DATE '2024-01-01'` or `-1.5`, and not a value to be computed.
pub(crate) fn is_constant(sql: &str) -> bool {
    let is_plain = |value: &Expr| matches!(value, Expr::Literal(_) | Expr::DoubleQuoted(_) | Expr::Typed(..));
    match parse_value(sql, "UTC") {
        Ok(Expr::Apply(Operation::Negate, operands)) => operands.iter().all(is_plain),
        Ok(value) => is_plain(&value),
        Err(_) => false,
    }
}

impl Expression {
    /// Parses `sql`, a value in Spark's SQL, and binds it to `schema`. `time_zone` is as for [`super::parse`].
    ///
    /// # Errors
    /// InvalidArgument if a part of the text is not understood, if a column does not exist, or if an operation is
    /// not defined for its arguments.
    pub fn bind(sql: &str, schema: &Schema, time_zone: &str) -> Result<Self> {
        Self::of_value(&parse_value(sql, time_zone)?, schema)
    }

    /// Binds a value that was parsed.
    ///
    /// # Errors
    /// As [`Expression::bind`].
    pub(super) fn of_value(parsed: &Expr, schema: &Schema) -> Result<Self> {
        let mut binder = Binder::new(schema);
        let value = binder.value(parsed)?;
        Ok(Self::new(binder.arena, value))
    }

    /// Parses and binds as [`Expression::bind`] does, and casts the value to `to`, unless it has that type.
    ///
    /// # Errors
    /// As [`Expression::bind`], and InvalidArgument if there is no cast.
    pub fn bind_as(sql: &str, schema: &Schema, time_zone: &str, to: &DataType) -> Result<Self> {
        Self::of_parsed(&parse_value(sql, time_zone)?, schema, time_zone, to, sql)
    }

    /// Binds a value that was parsed from `sql`, as [`Expression::bind_as`] does.
    ///
    /// # Errors
    /// As [`Expression::bind_as`].
    pub(super) fn of_parsed(
        parsed: &Expr,
        schema: &Schema,
        time_zone: &str,
        to: &DataType,
        sql: &str,
    ) -> Result<Self> {
        let mut binder = Binder::new(schema);
        let value = binder.value(parsed)?;
        let clock = Clock::named(time_zone).ok_or_else(|| {
            Error::invalid_argument(format!(
                "the time zone '{time_zone}' is neither in the IANA database nor an offset such as +02:00"
            ))
        })?;
        let value = binder.cast_to(value, to, clock, sql)?;
        Ok(Self::new(binder.arena, value))
    }

    fn new(arena: Arena, value: Value) -> Self {
        let columns = arena.columns_of(|visit| value.node.visit_columns(&arena.terms, visit));
        Self { arena, value: value.node, data_type: value.data_type, columns }
    }

    /// Returns the type of the value.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Returns the columns that the value depends on, without duplicates.
    pub fn columns(&self) -> &[BoundColumn] {
        &self.columns
    }

    /// Computes the value for each row of `batch`, whose columns are found by name.
    ///
    /// # Errors
    /// InvalidArgument if the value of a row does not exist, such as a division by zero. SchemaMismatch if `batch`
    /// lacks a column, or if the column's type cannot be cast to the type that the expression was bound with.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let rows = Rows::of_batch(&self.arena, batch);
        rows.value(&self.value, &BooleanBuffer::new_set(rows.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::is_constant;

    #[test]
    fn constants_are_told_from_what_is_computed() {
        for sql in ["1", "-1", "+2L", "- 1.5", "'a'", "x'00'", "TRUE", "null", "DATE '2024-01-01'", "1e3"] {
            assert!(is_constant(sql), "{sql}");
        }
        for sql in ["1 + 1", "abs(1)", "current_date()", "CAST(1 AS STRING)", "- (1 + 1)", "a", "'", "f(1)"] {
            assert!(!is_constant(sql), "{sql}");
        }
    }
}
