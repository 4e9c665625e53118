//! The rules of a table, bound to its schema, and the code that applies them to rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};

use super::check::{Check, Violation};
use super::default_value::DefaultValue;
use super::generated::Generated;
use super::identity::Identities;
use super::length::Length;
use super::named_columns::NamedColumns;
use super::rules::RowRules;
use crate::error::{Error, Result};
use crate::protocol::{Metadata, Protocol, StructType};

/// All rules that a table has for its rows.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Constraints {
    /// The CHECK constraints, by name, followed by the invariants of columns.
    pub checks: Vec<Check>,
    /// The generated columns, in the order of the table's schema.
    pub generated: Vec<Generated>,
    /// The default values of columns, in the order of the table's schema.
    pub defaults: Vec<DefaultValue>,
    pub(super) identities: Identities,
    pub(super) lengths: Vec<Length>,
}

impl Constraints {
    /// Finds and binds the expressions of a table with this protocol, this metadata and this schema.
    ///
    /// # Errors
    /// Returns the same errors as [`RowRules::of`] and [`RowRules::bind`].
    pub fn of(
        protocol: &Protocol,
        metadata: &Metadata,
        schema: &StructType,
        time_zone: &str,
    ) -> Result<Self> {
        RowRules::of(protocol, metadata, schema)?.bind(schema, time_zone)
    }

    /// Returns the schema that the rows must fit before they are filled. It differs from the table's schema in one
    /// respect: a column that `given` lacks is nullable if these rules fill it.
    pub(crate) fn schema_before_filling(&self, table: &SchemaRef, given: &Schema) -> SchemaRef {
        let (filled, given) = (self.filled(), Given::of(given));
        let fields = table.fields().iter().map(|field| {
            match filled.contains(field.name().as_str()) && !given.has(field.name()) {
                true => Arc::new(field.as_ref().clone().with_nullable(true)),
                false => Arc::clone(field),
            }
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Fills the columns that are missing from `given` with default values or with the next values of an identity
    /// column, pads values of type `char`, and returns the result. `rows` must have all columns of `table`, including
    /// the columns to be filled.
    ///
    /// # Errors
    /// Returns the same errors as [`DefaultValue::array`] and [`Identities::take`]. Returns SchemaMismatch if the rows
    /// have values for an identity column whose values are always generated, or if a string is too long for its
    /// column.
    pub(crate) fn fill(&self, rows: RecordBatch, table: &SchemaRef, given: &Schema) -> Result<RecordBatch> {
        let given = Given::of(given);
        let mut columns = NamedColumns::of(rows);
        let defaults: HashMap<&str, &DefaultValue> =
            self.defaults.iter().map(|default| (default.column(), default)).collect();
        for (at, field) in table.fields().iter().enumerate() {
            if let Some(default) = defaults.get(field.name().as_str())
                && !given.has(field.name())
            {
                columns.set(at, default.array(field.data_type(), columns.rows())?);
            }
        }
        for (at, field) in table.fields().iter().enumerate() {
            if self.identities.generates(field.name(), given.has(field.name()))? {
                columns.set(at, self.identities.take(field.name(), columns.rows())?);
            }
        }
        self.pad(&mut columns)?;
        columns.batch()
    }

    /// Computes the generated columns that `given` does not have, and returns the completed rows. `rows` must come
    /// from [`Constraints::fill`], and the columns that the expressions read must then have been converted to the types
    /// in which they will be stored.
    ///
    /// # Errors
    /// Returns the same errors as [`Generated::fill`]. Returns SchemaMismatch if a NULL was computed for a NOT NULL
    /// column, or if a string is too long for its column.
    pub(crate) fn generate(
        &self,
        rows: RecordBatch,
        table: &SchemaRef,
        given: &Schema,
    ) -> Result<RecordBatch> {
        let given = Given::of(given);
        let mut columns = NamedColumns::of(rows);
        let generated: HashMap<&str, &Generated> =
            self.generated.iter().map(|generated| (generated.column(), generated)).collect();
        for (at, field) in table.fields().iter().enumerate() {
            if let Some(generated) = generated.get(field.name().as_str())
                && !given.has(field.name())
            {
                columns.set(at, generated.fill(&columns.read_by(generated.columns())?)?);
            }
        }
        self.pad(&mut columns)?;
        let filled = self.filled();
        for (field, column) in table.fields().iter().zip(columns.columns()) {
            if !field.is_nullable() && column.null_count() > 0 && filled.contains(field.name().as_str()) {
                return Err(Error::schema_mismatch(format!(
                    "column '{}' is NOT NULL in the table, and the value computed for it is NULL",
                    field.name()
                )));
            }
        }
        columns.batch_of(table)
    }

    /// Pads strings of type `char` to the length of their column, and refuses strings that are too long.
    fn pad(&self, columns: &mut NamedColumns) -> Result<()> {
        for length in &self.lengths {
            let at = columns.place(length.column())?;
            if let Some(column) = columns.columns().get(at)
                && let Some(padded) = length.apply(column)?
            {
                columns.set(at, padded);
            }
        }
        Ok(())
    }

    /// Returns the first row that violates a constraint, or has a wrong value in a generated column.
    ///
    /// # Errors
    /// Returns the same errors as [`Check::violation`] and [`Generated::verify`].
    pub fn violation(&self, batch: &RecordBatch) -> Result<Option<Violation>> {
        if self.checks.is_empty() && self.generated.is_empty() {
            return Ok(None);
        }
        let columns = NamedColumns::of(batch.clone());
        for check in &self.checks {
            if let Some(violation) = check.violation(&columns.read_by(check.columns())?)? {
                return Ok(Some(violation));
            }
        }
        for generated in &self.generated {
            let at = columns.place(generated.column())?;
            let rows = columns.read_with(at, generated.columns())?;
            if let Some(violation) = generated.verify(&rows)? {
                return Ok(Some(violation));
            }
        }
        Ok(None)
    }

    /// Returns the names of the columns that are filled if the given rows lack them.
    fn filled(&self) -> HashSet<&str> {
        let computed = self.generated.iter().map(Generated::column);
        let defaults = self.defaults.iter().map(DefaultValue::column);
        defaults.chain(computed).chain(self.identities.names()).collect()
    }
}

/// The names of the columns that the given rows have. As in Spark, case is ignored.
struct Given(HashSet<String>);

impl Given {
    fn of(schema: &Schema) -> Self {
        Self(schema.fields().iter().map(|field| field.name().to_lowercase()).collect())
    }

    fn has(&self, column: &str) -> bool {
        self.0.contains(&column.to_lowercase())
    }
}
