//! The rules of a table for its rows, as the table's metadata states them.

use serde::Deserialize;

use super::bind_schema::BindSchema;
use super::identity::{Identities, IdentityColumn, IdentityValues};
use super::length::Length;
use super::{Check, Constraints, DefaultValue, Generated};
use crate::error::{Error, Result};
use crate::expression::predicate::is_constant;
use crate::protocol::schema::column_rules::{DEFAULT, GENERATED, INVARIANT};
use crate::protocol::{DataType, IcebergCompat, Metadata, Protocol, StructField, StructType, TableFeature};

/// The prefix of the properties that hold CHECK constraints. (PROTOCOL, "CHECK Constraints".)
pub(crate) const CHECK: &str = "delta.constraints.";

/// An expression in a table's metadata, and the name of the constraint or column that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleText {
    /// The name of a CHECK constraint, the path of a column with an invariant, or the name of a column.
    pub name: String,
    /// The expression in Spark's SQL.
    pub sql: String,
    /// The time zone for times without a zone; `None` means the writer's time zone.
    pub(crate) time_zone: Option<String>,
}

/// The rules of a table for its rows, as SQL text that is not bound to the schema yet.
///
/// A rule in the metadata is ignored if the table's protocol does not support the table feature of such rules.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RowRules {
    /// CHECK constraints by name, then the invariants of columns.
    pub checks: Vec<RuleText>,
    /// The generated columns, in the order of the schema.
    pub generated: Vec<RuleText>,
    /// The columns with default values, in the order of the schema.
    pub defaults: Vec<RuleText>,
    /// The identity columns, and the values used so far by all writers that share these rules.
    pub(crate) identities: Identities,
    /// The columns that contain `char` or `varchar` strings, in the order of the schema.
    pub(super) lengths: Vec<Length>,
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

impl RowRules {
    /// Finds the rules of a table with this protocol, this metadata and this schema.
    ///
    /// # Errors
    /// Returns CorruptLog if an invariant, a generation expression, a default value, an identity column or a length
    /// does not have the form that the protocol requires. Returns Unsupported for invariants of fields inside of
    /// arrays and maps, and for nested fields that are generated or have a default value.
    pub fn of(protocol: &Protocol, metadata: &Metadata, schema: &StructType) -> Result<Self> {
        let features = protocol.writer_features();
        let has = |feature| features.contains(&feature);
        let mut found = Self::default();
        if has(TableFeature::CheckConstraints) {
            let checks = metadata.configuration.iter();
            found.checks =
                checks.filter_map(|(key, sql)| Some(RuleText::new(key.strip_prefix(CHECK)?, sql))).collect();
        }
        let mut identities = Vec::new();
        for field in schema.fields() {
            if has(TableFeature::Invariants) {
                found.add_invariants(field, field.name.clone())?;
            }
            if has(TableFeature::GeneratedColumns) {
                found.generated.extend(top_level(field, GENERATED, "generated")?);
            }
            if has(TableFeature::AllowColumnDefaults) {
                found.defaults.extend(top_level(field, DEFAULT, "given a default value")?);
            }
            if has(TableFeature::IdentityColumns) {
                identities.extend(IdentityColumn::of(field)?);
            }
            found.lengths.extend(Length::of(field)?);
        }
        found.identities = Identities::new(identities);
        Ok(found)
    }

    /// Binds the rules to the table's schema. `time_zone` is the IANA name of the time zone for times that do not
    /// have one; a rule's own time zone takes precedence.
    ///
    /// # Errors
    /// Returns the same errors as [`Check::bind`] and [`Generated::bind`].
    pub fn bind(&self, schema: &StructType, time_zone: &str) -> Result<Constraints> {
        let nothing = StructType::default();
        let is_read = !(self.checks.is_empty() && self.generated.is_empty());
        let schema = BindSchema::of(if is_read { schema } else { &nothing })?;
        let checks = self.checks.iter().map(|rule| {
            let time_zone = rule.time_zone.as_deref().unwrap_or(time_zone);
            Check::bind_to(&schema, &rule.name, &rule.sql, time_zone)
        });
        let generated =
            self.generated.iter().map(|rule| Generated::bind_to(&schema, &rule.name, &rule.sql, time_zone));
        let defaults = self.defaults.iter().map(|rule| DefaultValue::new(&rule.name, &rule.sql, time_zone));
        Ok(Constraints {
            checks: checks.collect::<Result<_>>()?,
            generated: generated.collect::<Result<_>>()?,
            defaults: defaults.collect(),
            identities: self.identities.clone(),
            lengths: self.lengths.clone(),
        })
    }

    /// Returns whether the table has generated or identity columns, which are computed if the written rows lack them.
    pub fn computes_columns(&self) -> bool {
        !(self.generated.is_empty() && self.identities.is_empty())
    }

    /// Returns the first value and the step of each identity column that is missing from `given`, the columns of the
    /// engine's rows. The engine generates the column's values from them. (PROTOCOL, "Identity Columns".)
    ///
    /// # Errors
    /// Returns SchemaMismatch if `given` contains a column whose values are always generated. Returns InvalidArgument
    /// if a column has no values left.
    pub fn identity_values(&self, given: &[String]) -> Result<Vec<IdentityValues>> {
        self.identities.for_engine(given)
    }

    /// Returns the name of each identity column, and whether rows may provide values for it.
    pub fn identity_columns(&self) -> Vec<(String, bool)> {
        self.identities.described()
    }

    /// Refuses computed default values if the table's version of Iceberg compatibility requires constants.
    ///
    /// # Errors
    /// Returns InvalidArgument, which names the column.
    pub(crate) fn check_defaults(&self, iceberg: IcebergCompat) -> Result<()> {
        if !iceberg.needs_constant_defaults() {
            return Ok(());
        }
        match self.defaults.iter().find(|default| !is_constant(&default.sql)) {
            None => Ok(()),
            Some(RuleText { name, sql, .. }) => Err(iceberg
                .refusal(&format!("the default value ({sql}) of the column '{name}' is computed"))
                .with_hint("choose a constant")),
        }
    }

    /// Returns whether the table has no rules.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty()
            && self.generated.is_empty()
            && self.defaults.is_empty()
            && self.identities.is_empty()
            && self.lengths.is_empty()
    }

    fn add_invariants(&mut self, field: &StructField, path: String) -> Result<()> {
        if let Some(value) = field.metadata.get(INVARIANT) {
            let json = text(&value, INVARIANT, &path)?;
            let sql = invariant(json).map_err(|error| {
                Error::corrupt_log(format!(
                    "the invariant of column {path} is not written as the protocol requires"
                ))
                .with_source(error)
            })?;
            self.checks.push(RuleText::new(&path, &sql));
        }
        match &field.data_type {
            DataType::Struct(fields) => fields
                .fields()
                .iter()
                .try_for_each(|child| self.add_invariants(child, format!("{path}.{}", child.name))),
            other if other.any_field(&mut |field| field.metadata.get(INVARIANT).is_some()) => {
                Err(Error::unsupported(format!(
                    "column {path} contains an invariant inside of an array or map, which is not implemented"
                )))
            }
            _ => Ok(()),
        }
    }
}

impl RuleText {
    pub(crate) fn new(name: &str, sql: &str) -> Self {
        Self { name: name.to_owned(), sql: sql.to_owned(), time_zone: None }
    }
}

/// Returns the SQL expression in the JSON of an invariant.
///
/// # Errors
/// The parser's error if `json` does not have the form that the protocol requires.
pub(super) fn invariant(json: &str) -> serde_json::Result<String> {
    serde_json::from_str(json).map(|Invariant { expression }| expression.expression)
}

/// Returns the expression that a column's metadata holds under `key`. Fields inside of the column must not have one.
fn top_level(field: &StructField, key: &str, what: &str) -> Result<Option<RuleText>> {
    if field.data_type.any_field(&mut |field| field.metadata.get(key).is_some()) {
        return Err(Error::unsupported(format!(
            "column {} contains a field that is {what}, but only top-level columns can be",
            field.name
        )));
    }
    let Some(value) = field.metadata.get(key) else { return Ok(None) };
    Ok(Some(RuleText::new(&field.name, text(&value, key, &field.name)?)))
}

fn text<'a>(value: &'a serde_json::Value, key: &str, column: &str) -> Result<&'a str> {
    value
        .as_str()
        .ok_or_else(|| Error::corrupt_log(format!("the metadata '{key}' of column {column} is not a string")))
}
