//! Decides whether values of a type can be assigned to a column, before any values are computed.
//!
//! - An assigned value is stored unchanged or refused, as in an append.
//! - An assignment must give a value to every field of a struct, at any depth, as in Spark. An append may omit
//!   fields, which become NULL, but in an UPDATE the current value of an omitted field would be lost.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use arrow::record_batch::RecordBatch;

use super::fit::fit;
use crate::error::{Error, Result};
use crate::protocol::schema::is_variant;

/// Checks that values of the field `from` can be assigned to the column `to`. This does not guarantee that each value
/// will fit.
///
/// # Errors
/// Returns `SchemaMismatch`, which names the column or the field in it.
pub(crate) fn ensure_assignable(from: &Field, to: &Field) -> Result<()> {
    if let Some(path) = missing_field(from, to, to.name()) {
        return Err(Error::schema_mismatch(format!(
            "the field '{path}' is missing in the value that is assigned to the column '{}'",
            to.name()
        ))
        .with_hint("give each field of the struct a value, which may be NULL"));
    }
    let schema = |field: Field| Arc::new(Schema::new(vec![field.with_nullable(true)]));
    let none = RecordBatch::new_empty(schema(from.clone().with_name(to.name())));
    fit(&none, &schema(to.clone())).map(drop)
}

/// Returns the path of the first field of `to`, at any depth, that `from` lacks.
fn missing_field(from: &Field, to: &Field, path: &str) -> Option<String> {
    if is_variant(to) {
        return None;
    }
    match (plain(from.data_type()), to.data_type()) {
        (DataType::Struct(given), DataType::Struct(fields)) => fields.iter().find_map(|field| {
            let path = format!("{path}.{}", field.name());
            match named(given, field.name()) {
                Some(given) => missing_field(given, field, &path),
                None => Some(path),
            }
        }),
        (
            DataType::List(from)
            | DataType::LargeList(from)
            | DataType::FixedSizeList(from, _)
            | DataType::ListView(from)
            | DataType::LargeListView(from),
            DataType::List(to),
        ) => missing_field(from, to, &format!("{path}.element")),
        (DataType::Map(from, _), DataType::Map(to, _)) => {
            let (DataType::Struct(from), DataType::Struct(to)) = (from.data_type(), to.data_type()) else {
                return None;
            };
            let names = ["key", "value"];
            from.iter()
                .zip(to)
                .zip(names)
                .find_map(|((from, to), name)| missing_field(from, to, &format!("{path}.{name}")))
        }
        _ => None,
    }
}

fn named<'a>(fields: &'a Fields, name: &str) -> Option<&'a FieldRef> {
    fields.iter().find(|field| field.name().to_lowercase() == name.to_lowercase())
}

/// Returns the type of the values, without dictionary or run-end encoding.
fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        other => other,
    }
}
