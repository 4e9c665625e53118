//! The constraints and generated columns of a table.

use super::check::{Check, Violation};
use super::generated::Generated;
use crate::error::{Error, Result};
use crate::protocol::{DataType, Metadata, Protocol, StructField, StructType, TableFeature};
use arrow::array::RecordBatch;
use serde::Deserialize;

/// The prefix of the properties that hold CHECK constraints. (PROTOCOL, "CHECK Constraints".)
const CHECK: &str = "delta.constraints.";
/// The metadata of a column with an invariant. (PROTOCOL, "Column Invariants".)
const INVARIANT: &str = "delta.invariants";
/// The metadata of a generated column. (PROTOCOL, "Generated Columns".)
const GENERATED: &str = "delta.generationExpression";

/// All expressions that a table demands of its rows.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Constraints {
    /// CHECK constraints by name, then the invariants of columns.
    pub checks: Vec<Check>,
    /// The generated columns, in the order of the schema.
    pub generated: Vec<Generated>,
}

/// `{"expression": {"expression": "x > 3"}}`
#[derive(Deserialize)]
struct Invariant {
    expression: InvariantExpression,
}

#[derive(Deserialize)]
struct InvariantExpression {
    expression: String,
}

impl Constraints {
    /// Binds the expressions of a table with this protocol, this metadata and this schema. A feature that the
    /// protocol does not support is not in force, whatever the metadata say.
    ///
    /// # Errors
    /// As [`Check::bind`] and [`Generated::bind`]. CorruptLog if an invariant or a generation expression is not of the
    /// protocol's form. Unsupported for those of fields inside of arrays and maps, and for generated columns inside
    /// of structs.
    pub fn of(
        protocol: &Protocol,
        metadata: &Metadata,
        schema: &StructType,
        time_zone: &str,
    ) -> Result<Self> {
        let features = protocol.writer_features();
        let (invariants, generated) = (
            features.contains(&TableFeature::Invariants),
            features.contains(&TableFeature::GeneratedColumns),
        );
        let mut found = Self::default();
        for (key, sql) in &metadata.configuration {
            if let Some(name) = key.strip_prefix(CHECK)
                && features.contains(&TableFeature::CheckConstraints)
            {
                found.checks.push(Check::bind(name, sql, schema, time_zone)?);
            }
        }
        for field in schema.fields() {
            if invariants {
                found.add_invariants(field, field.name.clone(), schema, time_zone)?;
            }
            if !generated {
                continue;
            }
            if let Some(value) = field.metadata.get(GENERATED) {
                let sql = text(&value, GENERATED, &field.name)?;
                found.generated.push(Generated::bind(&field.name, sql, schema, time_zone)?);
            }
            if field.data_type.any_field(&mut |field| field.metadata.get(GENERATED).is_some()) {
                return Err(Error::unsupported(format!(
                    "column {} contains a generated field, but only top-level columns can be generated",
                    field.name
                )));
            }
        }
        Ok(found)
    }

    fn add_invariants(
        &mut self,
        field: &StructField,
        path: String,
        schema: &StructType,
        time_zone: &str,
    ) -> Result<()> {
        if let Some(value) = field.metadata.get(INVARIANT) {
            let json = text(&value, INVARIANT, &path)?;
            let invariant: Invariant = serde_json::from_str(json).map_err(|error| {
                Error::corrupt_log(format!("the invariant of column {path} is not of the protocol's form"))
                    .with_source(error)
            })?;
            self.checks.push(Check::bind(&path, &invariant.expression.expression, schema, time_zone)?);
        }
        match &field.data_type {
            DataType::Struct(fields) => fields.fields().iter().try_for_each(|child| {
                self.add_invariants(child, format!("{path}.{}", child.name), schema, time_zone)
            }),
            other if other.any_field(&mut |field| field.metadata.get(INVARIANT).is_some()) => {
                Err(Error::unsupported(format!(
                    "column {path} contains an invariant inside of an array or map, which is not implemented"
                ))
                .with_hint("write to the table with Spark"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.generated.is_empty()
    }

    /// Returns the names of the constraints and of the generated columns.
    pub fn names(&self) -> Vec<&str> {
        let checks = self.checks.iter().map(Check::name);
        checks.chain(self.generated.iter().map(Generated::column)).collect()
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
}

fn text<'a>(value: &'a serde_json::Value, key: &str, column: &str) -> Result<&'a str> {
    value
        .as_str()
        .ok_or_else(|| Error::corrupt_log(format!("the metadata '{key}' of column {column} is not a string")))
}
