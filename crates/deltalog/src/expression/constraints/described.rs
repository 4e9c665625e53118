//! Describes the rules of a table for rows that have only some of its columns. A table that is created from such rows
//! can have a rule only if the rows have all columns that the rule reads.

use std::collections::HashSet;

use arrow::datatypes::Schema;

use super::bind_schema::BindSchema;
use super::rules::invariant;
use crate::expression::predicate::BoundColumn;
use crate::protocol::StructType;
use crate::protocol::schema::column_rules::{GENERATED, INVARIANT};

/// Returns the schema for `rows` that are written to `table`, as `StructType::describe_rows` does, but without the
/// generation expressions and invariants that read a column missing from `rows`.
#[must_use]
pub fn describe_rows(table: &StructType, rows: &Schema) -> Schema {
    let given: HashSet<&str> = rows.fields().iter().map(|field| field.name().as_str()).collect();
    let has = |name: &str| given.contains(name);
    if table.fields().iter().all(|field| has(&field.name)) {
        return table.describe_rows(rows);
    }
    let schema = BindSchema::of(table).ok();
    let is_met = |sql: &str| {
        // An expression that cannot be bound might read any column.
        let bound = schema.as_ref().and_then(|schema| schema.bind(sql, "UTC").ok());
        let is_there = |name: &str| table.field(name).is_some_and(|field| has(&field.name));
        bound.is_some_and(|bound| bound.columns().iter().filter_map(BoundColumn::top_level).all(is_there))
    };
    let kept = table.with_metadata(&|metadata| {
        let is_kept = |key: &String| match (key.as_str(), metadata.get(key)) {
            (GENERATED, Some(sql)) => sql.as_str().is_some_and(is_met),
            (INVARIANT, Some(json)) => {
                json.as_str().and_then(|json| invariant(json).ok()).is_some_and(|sql| is_met(&sql))
            }
            _ => true,
        };
        match metadata.get(GENERATED).or_else(|| metadata.get(INVARIANT)) {
            Some(_) => metadata.retained(is_kept),
            None => metadata.clone(),
        }
    });
    kept.describe_rows(rows)
}
