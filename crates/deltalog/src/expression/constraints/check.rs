//! Conditions that every row must meet. (PROTOCOL, "CHECK Constraints" and "Column Invariants".)
//!
//! A row meets a condition only if the condition is true for it. A row for which the condition is NULL violates it,
//! whereas in standard SQL such a row meets a CHECK constraint.

use super::bind_schema::BindSchema;
use super::collation::ensure_bytes;
use crate::error::{Error, Result};
use crate::expression::predicate::{BoundColumn, ColumnPath, Expression, column_at};
use crate::protocol::StructType;
use crate::protocol::schema::type_name;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use std::fmt;

/// A named condition, bound to a table's schema.
///
/// ```
/// use deltalog::{Check, PrimitiveType, StructField, StructType};
///
/// let schema = StructType::try_new(vec![StructField::new("price", PrimitiveType::Double, true)])?;
/// let check = Check::bind("positive", "round(price, 2) > 0", &schema, "UTC")?;
/// assert_eq!(check.name(), "positive");
/// # Ok::<(), deltalog::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Check {
    name: String,
    sql: String,
    condition: Expression,
}

impl Check {
    /// Parses `sql`, a condition in Spark's SQL, and binds it to `schema`. `time_zone` is the IANA name of
    /// the zone for times that do not have one.
    ///
    /// # Errors
    /// InvalidArgument, naming the constraint, if the condition is not boolean, names a column that does not exist, or
    /// contains something that this crate cannot evaluate.
    pub fn bind(name: &str, sql: &str, schema: &StructType, time_zone: &str) -> Result<Self> {
        Self::bind_to(&BindSchema::of(schema)?, name, sql, time_zone)
    }

    /// Binds a condition as [`Check::bind`] does, using a schema index that all rules of the table share.
    ///
    /// # Errors
    /// Returns the same errors as [`Check::bind`].
    pub(super) fn bind_to(schema: &BindSchema<'_>, name: &str, sql: &str, time_zone: &str) -> Result<Self> {
        let hint = "write to the table with Spark, which has more functions";
        Self::bind_or(schema, name, sql, time_zone, hint)
    }

    /// Binds the condition of a constraint that is about to be added to a table.
    pub(crate) fn bind_new(name: &str, sql: &str, schema: &StructType, time_zone: &str) -> Result<Self> {
        let hint = "choose a condition that deltalog can evaluate for the rows that the table has";
        Self::bind_or(&BindSchema::of(schema)?, name, sql, time_zone, hint)
    }

    fn bind_or(schema: &BindSchema<'_>, name: &str, sql: &str, time_zone: &str, hint: &str) -> Result<Self> {
        let unusable = |error: Error| {
            error.within(format_args!("the constraint '{name}' ({sql}) cannot be evaluated")).with_hint(hint)
        };
        let condition = schema.bind(sql, time_zone).map_err(unusable)?;
        condition.ensure_deterministic().map_err(unusable)?;
        ensure_bytes(condition.columns(), schema.table()).map_err(unusable)?;
        match condition.data_type() {
            DataType::Boolean | DataType::Null => {
                Ok(Self { name: name.to_owned(), sql: sql.to_owned(), condition })
            }
            other => Err(unusable(Error::invalid_argument(format!(
                "it has the type {}, not boolean",
                type_name(other)
            )))),
        }
    }

    /// Returns the name of the constraint, or the path of an invariant's column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text of the condition.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Returns the columns that the condition reads.
    pub fn columns(&self) -> &[BoundColumn] {
        self.condition.columns()
    }

    /// Returns the first row for which the condition is false or NULL.
    ///
    /// # Errors
    /// InvalidArgument if the condition cannot be evaluated for a row. SchemaMismatch if `batch` lacks a column.
    pub fn violation(&self, batch: &RecordBatch) -> Result<Option<Violation>> {
        let truths = self.condition.evaluate(batch)?;
        let row = match truths.as_boolean_opt() {
            Some(truths) => (0..truths.len()).find(|row| truths.is_null(*row) || !truths.value(*row)),
            // The condition is NULL for all rows, so the first row violates it.
            None => (batch.num_rows() > 0).then_some(0),
        };
        row.map(|row| self.violated(batch, row)).transpose()
    }

    fn violated(&self, batch: &RecordBatch, row: usize) -> Result<Violation> {
        let values = self.columns().iter().map(|column| value_of(batch, &column.path, row));
        Ok(Violation {
            rule: format!("the constraint '{}' ({})", self.name, self.sql),
            row,
            values: values.collect::<Result<_>>()?,
        })
    }
}

/// Returns the column at `path` and its value in `row`, as text.
pub(super) fn value_of(batch: &RecordBatch, path: &ColumnPath, row: usize) -> Result<(ColumnPath, String)> {
    let array = column_at(batch, path)?;
    let text = match array.is_null(row) {
        true => "NULL".to_owned(),
        false => array_value_to_string(&array, row).map_err(|error| {
            Error::invalid_argument(format!("a value of column {path} cannot be shown as text"))
                .with_source(error)
        })?,
    };
    Ok((path.clone(), text))
}

/// A row that breaks a rule of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule: its kind, name and text.
    pub rule: String,
    /// The number of the row in its batch, from 0.
    pub row: usize,
    /// The columns that the rule reads, each with its value in this row as text.
    pub values: Vec<(ColumnPath, String)>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {} violates {}", self.row, self.rule)?;
        for (i, (column, value)) in self.values.iter().enumerate() {
            write!(f, "{}{column} = {value}", if i == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::invalid_argument(violation.to_string())
    }
}
