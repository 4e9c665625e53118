//! The schema of a table with an index of its column names, so that many rules can be bound to it quickly.

use arrow::datatypes::{DataType, Schema};

use crate::error::Result;
use crate::expression::predicate::{Expression, FieldNames};
use crate::protocol::StructType;

/// A schema to which rules are bound.
pub(super) struct BindSchema<'a> {
    table: &'a StructType,
    arrow: Schema,
    names: FieldNames,
}

impl<'a> BindSchema<'a> {
    /// # Errors
    /// Returns the same errors as [`StructType::to_arrow`].
    pub(super) fn of(table: &'a StructType) -> Result<Self> {
        let arrow = table.to_arrow()?;
        let names = FieldNames::new(arrow.fields());
        Ok(Self { table, arrow, names })
    }

    /// Returns the schema of the table, without the index.
    pub(super) fn table(&self) -> &'a StructType {
        self.table
    }

    /// Returns the type of the column with exactly this name.
    pub(super) fn type_of(&self, column: &str) -> Option<&DataType> {
        Some(self.arrow.fields().get(self.names.exact(column)?)?.data_type())
    }

    /// Parses a SQL expression and binds it to the schema.
    ///
    /// # Errors
    /// Returns the same errors as [`Expression::bind`].
    pub(super) fn bind(&self, sql: &str, time_zone: &str) -> Result<Expression> {
        Expression::bind_named(sql, &self.arrow, &self.names, time_zone)
    }

    /// Parses a SQL expression, binds it to the schema, and casts its value to the type `to`.
    ///
    /// # Errors
    /// Returns the same errors as [`Expression::bind_as`].
    pub(super) fn bind_as(&self, sql: &str, time_zone: &str, to: &DataType) -> Result<Expression> {
        Expression::bind_named_as(sql, &self.arrow, &self.names, time_zone, to)
    }
}
