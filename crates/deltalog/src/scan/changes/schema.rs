//! The schema of changes, and the check that a version's rows can be read with the schema of a later version.
//!
//! As in the JVM implementation, a version's rows can be read with the schema of a later version if all of this is
//! true:
//!
//! - no column was dropped or renamed since, including within structs (added columns are NULL in old rows);
//! - no type changed, except to a wider type, or from void, whose old rows are NULL;
//! - no column became NOT NULL;
//! - the partition columns are the same.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef, TimeUnit};

use super::{CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION};
use crate::error::{Error, Result};
use crate::protocol::schema::is_widening;
use crate::protocol::{DataType, MappedSchema, PrimitiveType, StructType};

/// Returns the fields that follow the table's fields in rows of changes.
pub(super) fn change_fields() -> [Field; 3] {
    [
        Field::new(CHANGE_TYPE, ArrowType::Utf8, true),
        Field::new(COMMIT_VERSION, ArrowType::Int64, true),
        Field::new(COMMIT_TIMESTAMP, ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
    ]
}

/// Adds the fields of changes to `schema`.
///
/// # Errors
/// `Unsupported` if the table has a column with one of these names.
pub(super) fn with_change_fields(schema: &SchemaRef) -> Result<SchemaRef> {
    let added = change_fields();
    let taken = schema
        .fields()
        .iter()
        .find(|field| added.iter().any(|added| added.name().eq_ignore_ascii_case(field.name())));
    if let Some(taken) = taken {
        return Err(Error::unsupported(format!(
            "column '{}' of the table has a name that is reserved for the change data feed",
            taken.name()
        ))
        .with_hint("rename the column"));
    }
    let fields: Vec<_> = schema.fields().iter().cloned().chain(added.map(Arc::new)).collect();
    Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

/// A schema and the names of its partition columns.
pub(crate) struct Shape<'a> {
    pub(crate) schema: &'a MappedSchema,
    pub(crate) partition_columns: &'a [String],
}

impl Shape<'_> {
    /// Returns the reason why rows of this shape cannot be read as rows of `later`; `None` if they can.
    pub(crate) fn obstacle(&self, later: &Shape<'_>) -> Option<String> {
        if self.partition_columns != later.partition_columns {
            return Some(format!(
                "the partition columns are ({}), not ({})",
                self.partition_columns.join(", "),
                later.partition_columns.join(", ")
            ));
        }
        let [from, to] = [self.schema, later.schema]
            .map(|schema| Names { logical: schema.logical(), physical: schema.physical() });
        from.obstacle(&to, "")
    }
}

/// A struct type with logical names, and the same type with physical names.
struct Names<'a> {
    logical: &'a StructType,
    physical: &'a StructType,
}

impl Names<'_> {
    fn obstacle(&self, later: &Names<'_>, place: &str) -> Option<String> {
        let fields = self.logical.fields().iter().zip(self.physical.fields());
        fields.into_iter().find_map(|(field, in_files)| {
            let name = format!("{place}{}", field.name);
            let Some(index) =
                later.physical.fields().iter().position(|candidate| candidate.name == in_files.name)
            else {
                return Some(format!("column '{name}' no longer exists"));
            };
            let (found, found_in_files) =
                (later.logical.fields().get(index)?, later.physical.fields().get(index)?);
            if found.name != field.name {
                return Some(format!("column '{name}' was renamed to '{}'", found.name));
            }
            if field.nullable && !found.nullable {
                return Some(format!("column '{name}' is no longer nullable"));
            }
            type_obstacle(
                [&field.data_type, &in_files.data_type],
                [&found.data_type, &found_in_files.data_type],
                &name,
            )
        })
    }
}

/// Returns the reason why values of type `from` cannot be read as values of type `to`; `None` if they can.
/// Each type is given with logical and with physical names.
fn type_obstacle(from: [&DataType; 2], to: [&DataType; 2], name: &str) -> Option<String> {
    match (from, to) {
        ([DataType::Primitive(PrimitiveType::Void), _], _) => None,
        ([DataType::Struct(a), DataType::Struct(b)], [DataType::Struct(c), DataType::Struct(d)]) => {
            Names { logical: a, physical: b }
                .obstacle(&Names { logical: c, physical: d }, &format!("{name}."))
        }
        ([DataType::Array(a), DataType::Array(b)], [DataType::Array(c), DataType::Array(d)]) => {
            if a.contains_null && !c.contains_null {
                return Some(format!("the elements of '{name}' are no longer nullable"));
            }
            type_obstacle(
                [&a.element_type, &b.element_type],
                [&c.element_type, &d.element_type],
                &format!("{name}.element"),
            )
        }
        ([DataType::Map(a), DataType::Map(b)], [DataType::Map(c), DataType::Map(d)]) => {
            if a.value_contains_null && !c.value_contains_null {
                return Some(format!("the values of '{name}' are no longer nullable"));
            }
            type_obstacle([&a.key_type, &b.key_type], [&c.key_type, &d.key_type], &format!("{name}.key"))
                .or_else(|| {
                    type_obstacle(
                        [&a.value_type, &b.value_type],
                        [&c.value_type, &d.value_type],
                        &format!("{name}.value"),
                    )
                })
        }
        ([DataType::Primitive(a), _], [DataType::Primitive(b), _]) if a == b || is_widening(*a, *b) => None,
        ([a, _], [b, _]) if a == b => None,
        _ => Some(format!("column '{name}' has a different type now")),
    }
}
