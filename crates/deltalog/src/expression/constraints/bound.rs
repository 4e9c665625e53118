//! The rules of a table, bound to its schema, and their application to rows.

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

/// All of a table's rules for its rows.
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
    /// Returns the same errors as [`RowRules::of`] and [`RowRules::bind`].
    pub fn of(
        protocol: &Protocol,
        metadata: &Metadata,
        schema: &StructType,
        time_zone: &str,
    ) -> Result<Self> {
        RowRules::of(protocol, metadata, schema)?.bind(schema, time_zone)
    }

    /// Returns the schema that given rows must fit: the table's schema, in which columns that are not given and will be
    /// filled are nullable.
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

    /// Returns `rows` after filling the columns that `given` does not have with default values and values of identity
    /// columns. `rows` have all columns of `table`. Values of type `char` are padded.
    ///
    /// # Errors
    /// Returns the same errors as [`DefaultValue::array`]. SchemaMismatch for values of an identity column whose
    /// values are always generated, and for a string that is too long for its column. InvalidArgument if an identity
    /// column has no values left.
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

    /// Returns `rows`, which [`Constraints::fill`] has returned, after computing the generated columns that `given`
    /// does not have, from columns in the form in which they will be stored.
    ///
    /// # Errors
    /// Returns the same errors as [`Generated::fill`]. SchemaMismatch if a computed column is NOT NULL and has a
    /// NULL, and for a string that is too long for its column.
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

    /// Pads strings to the lengths of their columns; refuses longer ones.
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

    /// Returns the first row that violates a check, or whose value of a generated column in `batch` is wrong.
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

    /// Returns the names of the columns that are filled if they are not given.
    fn filled(&self) -> HashSet<&str> {
        let computed = self.generated.iter().map(Generated::column);
        let defaults = self.defaults.iter().map(DefaultValue::column);
        defaults.chain(computed).chain(self.identities.names()).collect()
    }
}

/// The columns that the given rows have, compared as Spark compares names.
struct Given(HashSet<String>);

impl Given {
    fn of(schema: &Schema) -> Self {
        Self(schema.fields().iter().map(|field| field.name().to_lowercase()).collect())
    }

    fn has(&self, column: &str) -> bool {
        self.0.contains(&column.to_lowercase())
    }
}
