//! Determines which columns of a table are stored in data files: all except `void` columns, which are NULL in every
//! row.
//!
//! - Void columns, and void fields of structs, are not stored, as in the JVM connector. Readers find NULL in columns
//!   that a file lacks. (PROTOCOL, "Primitive Types", only recommends ignoring such columns.)
//! - Parquet cannot represent a struct whose fields are all void, or an array or a map that contains void. The schema
//!   of a table may have such columns, but rows cannot be written to it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use crate::error::{Error, Result};

/// Returns the fields that are stored in files.
pub(super) fn stored_fields(fields: &Fields) -> Fields {
    fields.iter().filter(|field| !is_void(field.data_type())).map(stored_field).collect()
}

fn stored_field(field: &FieldRef) -> FieldRef {
    match field.data_type() {
        DataType::Struct(inner) if lacks_void(field) => {
            Arc::new(Field::clone(field).with_data_type(DataType::Struct(stored_fields(inner))))
        }
        _ => Arc::clone(field),
    }
}

/// Returns whether all values of a type are NULL.
pub(super) fn is_void(data_type: &DataType) -> bool {
    *data_type == DataType::Null
}

/// Returns whether a field, or a part of it, is not stored in files.
pub(super) fn lacks_void(field: &Field) -> bool {
    match field.data_type() {
        DataType::Struct(inner) => inner.iter().any(|field| lacks_void(field)),
        other => is_void(other),
    }
}

/// Refuses a field that files cannot store. `path` is its name in the table.
///
/// # Errors
/// `SchemaMismatch`, which names the column.
pub(super) fn check_storable(field: &Field, path: &str) -> Result<()> {
    let refused = |what: &str, hint: &str| {
        Err(Error::schema_mismatch(format!("column '{path}' {what}, which a Parquet file cannot hold"))
            .with_hint(hint))
    };
    match field.data_type() {
        DataType::Struct(inner) if inner.is_empty() => {
            refused("has a struct without fields", "leave the struct out, or add a field to it")
        }
        DataType::Struct(inner) if inner.iter().all(|field| is_void(field.data_type())) => refused(
            "has a struct whose fields all have the type void",
            "give one of the fields another type, or leave the struct out",
        ),
        DataType::Struct(inner) => {
            inner.iter().try_for_each(|field| check_storable(field, &format!("{path}.{}", field.name())))
        }
        DataType::List(element) => check_part(element, &format!("{path}.element")),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(parts) => parts
                .iter()
                .zip(["key", "value"])
                .try_for_each(|(part, name)| check_part(part, &format!("{path}.{name}"))),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Refuses arrays and maps with parts of type void at any depth, and all types that [`check_storable`] refuses.
fn check_part(part: &Field, path: &str) -> Result<()> {
    match has_void(part.data_type()) {
        true => Err(Error::schema_mismatch(format!(
            "column '{path}' has the type void in an array or a map, which a Parquet file cannot hold"
        ))
        .with_hint("give it another type, for example by a cast")),
        false => check_storable(part, path),
    }
}

fn has_void(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| has_void(field.data_type())),
        DataType::List(part) | DataType::Map(part, _) => has_void(part.data_type()),
        other => is_void(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn field(name: &str, data_type: DataType) -> FieldRef {
        Arc::new(Field::new(name, data_type, true))
    }

    fn of<const N: usize>(fields: [FieldRef; N]) -> DataType {
        DataType::Struct(fields.into())
    }

    fn list(element: DataType) -> DataType {
        DataType::List(field("element", element))
    }

    #[test]
    fn void_columns_and_fields_are_not_stored() {
        let (void, x) = (field("v", DataType::Null), field("x", DataType::Int64));
        let inner = field("r", of([void.clone(), x.clone()]));
        let fields: Fields = [void.clone(), field("s", of([x.clone(), void, inner])), x.clone()].into();
        let expected: Fields = [field("s", of([x.clone(), field("r", of([x.clone()]))])), x.clone()].into();
        assert_eq!(stored_fields(&fields), expected);
        assert_eq!(stored_fields(&expected), expected);
        assert!(fields.iter().take(2).all(|field| lacks_void(field)));
        assert!(!expected.iter().any(|field| lacks_void(field)));
        assert!(fields.iter().all(|field| check_storable(field, field.name()).is_ok()));
    }

    #[test]
    fn types_that_parquet_cannot_represent_are_refused() {
        let (void, x) = (field("v", DataType::Null), field("x", DataType::Int64));
        let only_void = of([void.clone()]);
        let mixed = of([void, x.clone()]);
        let cases = [
            (of([]), "'c' has a struct without fields"),
            (list(of([])), "'c.element' has a struct without fields"),
            (only_void.clone(), "'c' has a struct whose fields all have the type void"),
            (of([x, field("r", only_void)]), "'c.r' has a struct whose fields all have the type void"),
            (list(DataType::Null), "'c.element' has the type void in an array"),
            (list(list(mixed.clone())), "'c.element' has the type void in an array"),
            (
                DataType::Map(
                    field("key_value", of([field("key", DataType::Utf8), field("value", mixed)])),
                    false,
                ),
                "'c.value' has the type void in an array or a map",
            ),
        ];
        for (data_type, said) in cases {
            let error = check_storable(&field("c", data_type), "c").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
