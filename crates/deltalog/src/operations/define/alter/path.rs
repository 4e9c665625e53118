//! Finds columns by path, and returns schemas in which the field at a path was changed. (Protocol: "Schema
//! Serialization Format".)
//!
//! - Names are compared ignoring case, as in Spark.
//! - In a path, `element` leads into an array, and `key` and `value` lead into a map.

use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::protocol::{ArrayType, DataType, MapType, StructField, StructType};

/// Splits a path into the path of the innermost struct and the name of the field in it.
///
/// # Errors
/// Returns `InvalidArgument` for an empty path.
pub(super) fn split(path: &ColumnPath) -> Result<(&[String], &str)> {
    match path.parts().split_last() {
        Some((name, parent)) => Ok((parent, name)),
        None => Err(Error::invalid_argument("the path of a column is empty")),
    }
}

/// Returns the field at `path`.
///
/// # Errors
/// Returns `InvalidArgument` if there is no field at `path`.
pub(super) fn field_at(schema: &StructType, path: &ColumnPath) -> Result<StructField> {
    let (parent, name) = split(path)?;
    let mut found = None;
    let find = |fields: Vec<StructField>| {
        found = fields.iter().find(|field| is_named(field, name)).cloned();
        Ok(fields)
    };
    fields_in(schema, parent, find, &|| missing("column", path, schema))?;
    found.ok_or_else(|| missing("column", path, schema))
}

/// Returns `schema` with the field at `path` replaced by the result of `edit`.
///
/// # Errors
/// Returns `InvalidArgument` if there is no field at `path`, and `SchemaMismatch` if two fields of a struct would
/// have the same name. Also returns the errors of `edit`.
pub(super) fn edit_field(
    schema: &StructType,
    path: &ColumnPath,
    edit: impl FnOnce(StructField) -> Result<StructField>,
) -> Result<StructType> {
    let (parent, name) = split(path)?;
    let edit = |mut fields: Vec<StructField>| {
        let found = position(&fields, name).ok_or_else(|| missing("column", path, schema))?;
        let field = fields.remove(found);
        fields.insert(found, edit(field)?);
        Ok(fields)
    };
    fields_in(schema, parent, edit, &|| missing("column", path, schema))
}

/// Returns `schema` with the fields of the struct at `parent` replaced by the result of `edit`.
///
/// # Errors
/// Returns the same errors as [`edit_field`], and `InvalidArgument` if there is no struct at `parent`.
pub(super) fn edit_fields(
    schema: &StructType,
    parent: &[String],
    edit: impl FnOnce(Vec<StructField>) -> Result<Vec<StructField>>,
) -> Result<StructType> {
    fields_in(schema, parent, edit, &|| missing("struct", &ColumnPath::new(parent), schema))
}

/// Returns the position of the field `name` among `fields`.
pub(super) fn position(fields: &[StructField], name: &str) -> Option<usize> {
    fields.iter().position(|field| is_named(field, name))
}

/// Returns whether two columns are the same, or one of them contains the other.
pub(super) fn overlap(one: &[String], other: &[String]) -> bool {
    one.iter().zip(other).all(|(one, other)| one.to_lowercase() == other.to_lowercase())
}

fn is_named(field: &StructField, name: &str) -> bool {
    field.name == name || field.name.to_lowercase() == name.to_lowercase()
}

/// Returns the error for a column or struct at `path` that does not exist.
fn missing(what: &str, path: &ColumnPath, schema: &StructType) -> Error {
    let error = Error::invalid_argument(format!("the table has no {what} '{path}'"));
    match schema.field(&path.parts().join(".")).filter(|_| path.parts().len() > 1) {
        Some(field) => {
            let quoted = ColumnPath::new([&field.name]);
            error.with_hint(format!("a name with a dot is written in backticks: {quoted}"))
        }
        None => {
            let names: Vec<_> = schema.fields().iter().map(|field| field.name.as_str()).collect();
            error.with_hint(format!("the columns are {}", names.join(", ")))
        }
    }
}

type Missing<'a> = &'a dyn Fn() -> Error;

fn fields_in(
    fields: &StructType,
    path: &[String],
    edit: impl FnOnce(Vec<StructField>) -> Result<Vec<StructField>>,
    missing: Missing<'_>,
) -> Result<StructType> {
    let mut fields = fields.fields().to_vec();
    let Some((name, rest)) = path.split_first() else { return StructType::try_new(edit(fields)?) };
    let found = position(&fields, name).ok_or_else(missing)?;
    let field = fields.get_mut(found).ok_or_else(missing)?;
    field.data_type = type_in(&field.data_type, rest, edit, missing)?;
    StructType::try_new(fields)
}

fn type_in(
    data_type: &DataType,
    path: &[String],
    edit: impl FnOnce(Vec<StructField>) -> Result<Vec<StructField>>,
    missing: Missing<'_>,
) -> Result<DataType> {
    let part = path.split_first().map(|(part, rest)| (part.to_lowercase(), rest));
    let part = part.as_ref().map(|(part, rest)| (part.as_str(), *rest));
    match (data_type, part) {
        (DataType::Struct(fields), _) => fields_in(fields, path, edit, missing).map(DataType::Struct),
        (DataType::Array(array), Some(("element", rest))) => Ok(ArrayType {
            element_type: type_in(&array.element_type, rest, edit, missing)?,
            ..ArrayType::clone(array)
        }
        .into()),
        (DataType::Map(map), Some(("key", rest))) => {
            Ok(MapType { key_type: type_in(&map.key_type, rest, edit, missing)?, ..MapType::clone(map) }
                .into())
        }
        (DataType::Map(map), Some(("value", rest))) => {
            Ok(MapType { value_type: type_in(&map.value_type, rest, edit, missing)?, ..MapType::clone(map) }
                .into())
        }
        _ => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PrimitiveType;

    /// `a: long, s: struct<b: long, l: array<struct<c: long>>, m: map<struct<k: long>, struct<v: long>>>`
    fn schema() -> StructType {
        let one = |name: &str| {
            StructType::try_new(vec![StructField::new(name, PrimitiveType::Long, true)]).unwrap()
        };
        let inner = StructType::try_new(vec![
            StructField::new("b", PrimitiveType::Long, true),
            StructField::new("l", ArrayType::new(one("c"), true), true),
            StructField::new("m", MapType::new(one("k"), one("v"), true), true),
        ]);
        StructType::try_new(vec![
            StructField::new("a", PrimitiveType::Long, true),
            StructField::new("s", inner.unwrap(), true),
        ])
        .unwrap()
    }

    #[test]
    fn each_field_can_be_found_and_edited_without_changing_others() {
        let paths: [&[&str]; 8] = [
            &["a"],
            &["S"],
            &["s", "b"],
            &["s", "l"],
            &["s", "l", "element", "c"],
            &["s", "m"],
            &["s", "M", "KEY", "k"],
            &["s", "m", "value", "V"],
        ];
        for path in paths {
            let path = ColumnPath::new(path.iter().copied());
            let before = field_at(&schema(), &path).unwrap();
            let edited =
                edit_field(&schema(), &path, |field| Ok(StructField { nullable: false, ..field })).unwrap();
            let after = field_at(&edited, &path).unwrap();
            assert_eq!(after, StructField { nullable: false, ..before.clone() });
            // Undoing the edit gives the original schema.
            assert_eq!(edit_field(&edited, &path, |_| Ok(before)).unwrap(), schema(), "{path}");
        }
    }

    #[test]
    fn paths_that_lead_nowhere_are_refused() {
        let paths: [&[&str]; 6] =
            [&[], &["x"], &["a", "b"], &["s", "l", "c"], &["s", "m", "element", "v"], &["s", "x", "y"]];
        for path in paths {
            let error = field_at(&schema(), &ColumnPath::new(path.iter().copied())).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument, "{error}");
        }
    }
}
