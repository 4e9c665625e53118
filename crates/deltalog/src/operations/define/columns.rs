//! Checks the columns of a table that is to be created or replaced, and the rules of these columns.
//!
//! The schema may come from another table. Metadata about that table's files is left out: physical names and ids,
//! recorded type changes, and high water marks of identity columns.

use crate::error::{Error, ErrorKind, Result};
use crate::expression::constraints::{Constraints, DefaultValue};
use crate::expression::predicate::Expression;
use crate::protocol::schema::column_rules::{
    DEFAULT, GENERATED, IDENTITY, IDENTITY_STEP, INVARIANT, is_of_files,
};
use crate::protocol::schema::type_name;
use crate::protocol::{DataType, Metadata, PrimitiveType, Protocol, StructField, StructType};
use serde_json::Value;

/// Returns `schema` without metadata about another table's files.
pub(super) fn without_files(schema: &StructType) -> StructType {
    schema.with_metadata(&|metadata| metadata.retained(|key| !is_of_files(key)))
}

/// Refuses columns with rules that contradict each other or that no row can meet, and with expressions that cannot be
/// evaluated.
///
/// # Errors
/// Returns `InvalidArgument`, which names the column and the rule, and `Unsupported` for rules that are not
/// implemented.
pub(super) fn check_rules(
    protocol: &Protocol,
    metadata: &Metadata,
    schema: &StructType,
    partition_columns: &[String],
) -> Result<()> {
    for field in schema.fields() {
        check_column(field, partition_columns)?;
    }
    let constraints = Constraints::of(protocol, metadata, schema, "UTC").map_err(as_argument)?;
    let arrow = schema.to_arrow()?;
    for generated in &constraints.generated {
        let (name, sql) = (generated.column(), generated.sql());
        let is_generated = |path: &[String]| {
            path.first().is_some_and(|first| {
                constraints
                    .generated
                    .iter()
                    .any(|other| other.column().to_lowercase() == first.to_lowercase())
            })
        };
        if let Some(other) = generated.columns().iter().find(|column| is_generated(column.path.parts())) {
            return Err(Error::invalid_argument(format!(
                "the generated column '{name}' ({sql}) depends on '{}', which is also a generated column",
                other.path
            ))
            .with_hint("write the expression of that column instead of its name"));
        }
        let computed = Expression::bind(sql, &arrow, "UTC")?;
        computed.ensure_deterministic().map_err(|error| {
            error.within(format_args!("the generated column '{name}' ({sql}) cannot be computed"))
        })?;
        let field = arrow.field_with_name(name).map_err(|error| {
            Error::invalid_argument(format!("there is no generated column '{name}'")).with_source(error)
        })?;
        if !computed.is_of(field.data_type()) {
            return Err(Error::invalid_argument(format!(
                "the generated column '{name}' has the type {}, and its expression ({sql}) has the type {}",
                type_name(field.data_type()),
                type_name(computed.data_type())
            ))
            .with_hint("cast the expression to the type of the column"));
        }
    }
    Ok(())
}

/// Refuses rules of a column that exclude each other, or that no value can meet.
///
/// # Errors
/// Returns `InvalidArgument` for rules that exclude each other, or that no value can meet.
pub(crate) fn check_column(field: &StructField, partition_columns: &[String]) -> Result<()> {
    let entries = field.metadata.entries();
    let refused = |what: &str| Err(Error::invalid_argument(format!("the column '{}' {what}", field.name)));
    let is_identity = entries.keys().any(|key| key.starts_with(IDENTITY));
    let rules = [
        (entries.contains_key(GENERATED), "is generated"),
        (entries.contains_key(DEFAULT), "has a default value"),
        (is_identity, "is an identity column"),
    ];
    let mut rules = rules.iter().filter(|(is_set, _)| *is_set).map(|(_, what)| *what);
    if let (Some(one), Some(other)) = (rules.next(), rules.next()) {
        return refused(&format!("{one} and {other}, which exclude each other"));
    }
    if is_identity && field.data_type != DataType::Primitive(PrimitiveType::Long) {
        return refused("is an identity column, and its type is not long");
    }
    if is_identity && entries.get(IDENTITY_STEP).and_then(Value::as_i64) == Some(0) {
        return refused("is an identity column with the step 0, which would repeat its values");
    }
    if is_identity && partition_columns.contains(&field.name) {
        return refused("is an identity column, by which a table cannot be partitioned");
    }
    if let Some(sql) = entries.get(DEFAULT).and_then(Value::as_str) {
        check_default(field, sql)?;
    }
    let mut nested = None;
    field.data_type.any_field(&mut |inner| {
        let is_rule = |key: &String| {
            key.starts_with(IDENTITY) || matches!(key.as_str(), GENERATED | DEFAULT) || key == INVARIANT
        };
        nested = inner.metadata.entries().keys().find(|key| is_rule(key)).cloned();
        nested.is_some()
    });
    match nested {
        Some(key) if key != INVARIANT => refused(&format!(
            "contains a field with the metadata '{key}', which only columns of the table can have"
        )),
        _ => Ok(()),
    }
}

/// Refuses a default value that cannot be computed, or that the column does not accept.
fn check_default(field: &StructField, sql: &str) -> Result<()> {
    let default = DefaultValue::new(&field.name, sql, "UTC");
    let refused = |error: Error| {
        error
            .within(format_args!(
                "the column '{}' cannot have the default value ({})",
                default.column(),
                default.sql()
            ))
            .with_hint("choose a value of the column's type, computed without other columns")
    };
    let arrow = field.to_arrow()?;
    let value = default.value(arrow.data_type(), 1).map_err(refused)?;
    default.ensure_same_for_all_rows(arrow.data_type()).map_err(refused)?;
    match value.null_count() > 0 && !field.nullable {
        true => Err(refused(Error::invalid_argument("it is NULL, which the column does not allow"))),
        false => Ok(()),
    }
}

/// Turns a `CorruptLog` error into `InvalidArgument`. Invalid metadata in a new definition is a mistake of the user; it
/// does not mean that a log is damaged.
fn as_argument(error: Error) -> Error {
    match error.kind() {
        ErrorKind::CorruptLog => Error::invalid_argument(error.to_string()),
        _ => error,
    }
}
