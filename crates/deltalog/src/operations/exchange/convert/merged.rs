//! Merges the schemas of all files into the schema of the table. (Protocol: "Schema Serialization Format", "Delta
//! Data Type to Parquet Type Mappings".)
//!
//! - Columns and nested fields that some files lack are NULL in these files. Columns are ordered as the files first
//!   list them.
//! - A column that is `byte`, `short` or `integer` in different files gets the widest of their types, because Parquet
//!   stores these types alike. A column without values (`void`) gets the type that it has in other files. All other
//!   differences are refused: reading older types requires type widening, which records each change of a type, and no
//!   changes were recorded here.
//! - Two spellings of the same name are refused, because readers that look for the exact name would find NULL.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::protocol::schema::column_rules::EXISTS_DEFAULT;
use crate::protocol::{ArrayType, DataType, MapType, PrimitiveType, StructField, StructType};

/// The reason why two schemas cannot be merged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clash {
    /// The path of the column, or of the part of a column, whose types differ.
    pub(super) column: String,
    /// The two types of the column.
    pub(super) found: [String; 2],
}

/// Returns a schema that can hold the rows of both schemas.
///
/// # Errors
/// Returns the first column whose types cannot be merged.
pub(super) fn merge(a: &StructType, b: &StructType) -> Result<StructType, Clash> {
    merge_fields(a, b, "")
}

fn merge_fields(a: &StructType, b: &StructType, parent: &str) -> Result<StructType, Clash> {
    let path = |name: &str| if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
    let mut fields = a.fields().to_vec();
    for field in b.fields() {
        let found = a.index_of(&field.name).and_then(|at| fields.get_mut(at));
        let Some(known) = found else {
            fields.push(field.clone());
            continue;
        };
        if known.name != field.name {
            let found = [&known.name, &field.name].map(|name| format!("spelled '{name}'"));
            return Err(Clash { column: path(&known.name), found });
        }
        known.data_type = merge_types(&known.data_type, &field.data_type, &path(&field.name))?;
    }
    let clash = |error: Error| Clash { column: parent.to_owned(), found: [error.to_string(), String::new()] };
    StructType::try_new(fields).map_err(clash)
}

fn merge_types(a: &DataType, b: &DataType, path: &str) -> Result<DataType, Clash> {
    use PrimitiveType as P;
    let part = |name: &str| format!("{path}.{name}");
    Ok(match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => merge_fields(a, b, path)?.into(),
        (DataType::Array(a), DataType::Array(b)) => {
            ArrayType::new(merge_types(&a.element_type, &b.element_type, &part("element"))?, true).into()
        }
        (DataType::Map(a), DataType::Map(b)) => {
            let key = merge_types(&a.key_type, &b.key_type, &part("key"))?;
            MapType::new(key, merge_types(&a.value_type, &b.value_type, &part("value"))?, true).into()
        }
        (DataType::Primitive(P::Void), other) | (other, DataType::Primitive(P::Void)) => other.clone(),
        (a, b) if a == b => a.clone(),
        (DataType::Primitive(a), DataType::Primitive(b))
            if let (Some(one), Some(other)) = (small_width(*a), small_width(*b)) =>
        {
            if one > other { *a } else { *b }.into()
        }
        _ => return Err(Clash { column: path.to_owned(), found: [described(a), described(b)] }),
    })
}

/// Returns the width in bytes of an integer type that Parquet stores in 32 bits; `None` for other types.
fn small_width(primitive: PrimitiveType) -> Option<u8> {
    match primitive {
        PrimitiveType::Byte => Some(1),
        PrimitiveType::Short => Some(2),
        PrimitiveType::Integer => Some(4),
        _ => None,
    }
}

fn described(data_type: &DataType) -> String {
    match data_type {
        DataType::Primitive(primitive) => format!("of type {primitive}"),
        DataType::Struct(_) => "a struct".to_owned(),
        DataType::Array(_) => "an array".to_owned(),
        DataType::Map(_) => "a map".to_owned(),
        DataType::Variant => "a variant".to_owned(),
    }
}

/// Checks that files with the columns `found` can be read with the columns `known`, which the caller has declared.
/// Returns the declared columns, all nullable and without default values for older files. `common` contains the names
/// of the columns that all files have.
///
/// # Errors
/// Returns `SchemaMismatch` for a column of the files that was not declared or has another type. Returns
/// `Unsupported` for a column that has a default value for rows of files that lack it.
pub(super) fn declared(
    known: &StructType,
    found: &StructType,
    common: &BTreeSet<String>,
) -> Result<StructType> {
    let has_old_value = |field: &&StructField| {
        // If a column was added later, Spark records its value for older files, which lack it, in the column's
        // metadata.
        let value = field.metadata.get(EXISTS_DEFAULT);
        value.is_some_and(|value| {
            value.as_str().is_none_or(|value| !value.trim().eq_ignore_ascii_case("null"))
        })
    };
    let added = known.fields().iter().filter(has_old_value).find(|field| !common.contains(&field.name));
    if let Some(field) = added {
        return Err(Error::unsupported(format!(
            "not all files have the column '{}', and Spark fills in its default value for their rows",
            field.name
        ))
        .with_hint("write the rows to a new table"));
    }
    let hint = "to take the columns from the files, give no columns, or convert the directory by its path";
    let readable = nullable(known)?;
    let unknown = found.fields().iter().find(|field| known.index_of(&field.name).is_none());
    if let Some(field) = unknown {
        return Err(Error::schema_mismatch(format!(
            "the files have the column '{}', which the table does not have",
            field.name
        ))
        .with_hint(hint));
    }
    let differs = |column: &str, expected: &str, read: &str| {
        Error::schema_mismatch(format!(
            "the column '{column}' is {expected} in the table, and {read} in the files"
        ))
        .with_hint(hint)
    };
    match merge(&readable, found) {
        Err(Clash { column, found: [expected, read] }) => return Err(differs(&column, &expected, &read)),
        // The table's columns do not change to fit files that have more columns or wider types than were declared.
        Ok(both) if both != readable => {
            let fields = both.fields().iter().zip(readable.fields());
            let wider = fields.into_iter().find(|(both, known)| both != known);
            let (both, known) = wider.map_or(("", None), |(both, known)| (both.name.as_str(), Some(known)));
            let expected = known.map(|known| described(&known.data_type)).unwrap_or_default();
            let read = found.field(both).map(|field| described(&field.data_type)).unwrap_or_default();
            return Err(match expected == read {
                true => differs(both, &expected, "one with other fields"),
                false => differs(both, &expected, &read),
            });
        }
        Ok(_) => {}
    }
    let fields = known.fields().iter().zip(readable.fields());
    let fields = fields.map(|(known, readable)| StructField {
        data_type: readable.data_type.clone(),
        nullable: true,
        metadata: known.metadata.with(EXISTS_DEFAULT, None),
        ..known.clone()
    });
    StructType::try_new(fields.collect())
}

/// Returns the schema with all fields made nullable, at every depth, and without metadata.
pub(super) fn nullable(schema: &StructType) -> Result<StructType> {
    let field =
        |field: &StructField| Ok(StructField::new(&field.name, nullable_type(&field.data_type)?, true));
    StructType::try_new(schema.fields().iter().map(field).collect::<Result<_>>()?)
}

fn nullable_type(data_type: &DataType) -> Result<DataType> {
    Ok(match data_type {
        DataType::Primitive(_) | DataType::Variant => data_type.clone(),
        DataType::Struct(fields) => nullable(fields)?.into(),
        DataType::Array(array) => ArrayType::new(nullable_type(&array.element_type)?, true).into(),
        DataType::Map(map) => {
            MapType::new(nullable_type(&map.key_type)?, nullable_type(&map.value_type)?, true).into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn schema(fields: &str) -> StructType {
        let fields = fields.split(", ").map(|field| {
            let (name, data_type) = field.split_once(' ').unwrap();
            StructField::new(name, PrimitiveType::from_name(data_type).unwrap(), true)
        });
        StructType::try_new(fields.collect()).unwrap()
    }

    #[test]
    fn columns_have_the_order_in_which_files_first_list_them() {
        let merged =
            merge(&schema("b byte, a string, v void"), &schema("c long, b integer, v date")).unwrap();
        assert_eq!(merged, schema("b integer, a string, v date, c long"));
        // The merged schema does not depend on the order of the two schemas.
        assert_eq!(merge(&schema("b integer"), &schema("b short")).unwrap(), schema("b integer"));
        assert_eq!(merge(&schema("v date"), &schema("v void")).unwrap(), schema("v date"));
    }

    fn given(known: &StructType, found: &StructType) -> Result<StructType> {
        declared(known, found, &BTreeSet::new())
    }

    #[test]
    fn columns_with_a_value_in_old_rows_must_be_in_all_files() {
        let mut fields = schema("a integer, z integer").fields().to_vec();
        let mut noted = |value: &str| {
            fields[1].metadata = fields[1].metadata.with(EXISTS_DEFAULT, Some(value.into()));
            StructType::try_new(fields.clone()).unwrap()
        };
        let (known, nothing) = (noted("9"), noted("NULL"));
        let found = schema("a integer, z integer");
        let error = declared(&known, &found, &BTreeSet::from(["a".to_owned()])).unwrap_err();
        assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("'z'"), "{error}");
        let common = BTreeSet::from(["a".to_owned(), "z".to_owned()]);
        assert_eq!(declared(&known, &found, &common).unwrap(), found);
        assert_eq!(given(&nothing, &found).unwrap(), found);
    }

    #[test]
    fn files_must_fit_the_declared_columns() {
        let known = schema("a integer, b string, c long");
        for files in ["b string", "c long, a short", "a void, b string, c long"] {
            assert_eq!(given(&known, &schema(files)).unwrap(), known, "{files}");
        }
        for (files, text) in [
            ("a integer, d date", "the files have the column 'd'"),
            ("c integer", "the column 'c' is of type long in the table, and of type integer in the files"),
            ("A integer", "the column 'a' is spelled 'a' in the table, and spelled 'A' in the files"),
        ] {
            let error = given(&known, &schema(files)).unwrap_err();
            assert!(error.kind() == ErrorKind::SchemaMismatch && error.to_string().contains(text), "{error}");
        }
        let error = given(&schema("a byte"), &schema("a integer")).unwrap_err().to_string();
        assert!(error.contains("of type byte in the table, and of type integer in the files"), "{error}");
        let nested =
            |fields: &str| StructType::try_new(vec![StructField::new("n", schema(fields), false)]).unwrap();
        let fewer = given(&nested("a byte, b date"), &nested("b date")).unwrap();
        assert_eq!(fewer, nullable(&nested("a byte, b date")).unwrap());
        let error = given(&nested("b date"), &nested("a byte, b date")).unwrap_err().to_string();
        assert!(
            error.contains("'n' is a struct in the table, and one with other fields in the files"),
            "{error}"
        );
    }

    #[test]
    fn nested_fields_are_merged_as_well() {
        let nested = |fields: &str| {
            let list = ArrayType::new(schema(fields), true);
            StructType::try_new(vec![StructField::new("n", list, true)]).unwrap()
        };
        assert_eq!(merge(&nested("a byte"), &nested("a short, b date")).unwrap(), nested("a short, b date"));
        let clash = merge(&nested("a byte"), &nested("a string")).unwrap_err();
        assert_eq!(clash.column, "n.element.a");
        assert_eq!(clash.found, ["of type byte", "of type string"]);
    }

    #[test]
    fn other_differences_are_refused() {
        for (a, b, found) in [
            ("a integer", "a long", ["of type integer", "of type long"]),
            ("a float", "a double", ["of type float", "of type double"]),
            ("a timestamp", "a timestamp_ntz", ["of type timestamp", "of type timestamp_ntz"]),
            ("a decimal(5,2)", "a decimal(6,2)", ["of type decimal(5,2)", "of type decimal(6,2)"]),
            ("a long", "A long", ["spelled 'a'", "spelled 'A'"]),
        ] {
            assert_eq!(merge(&schema(a), &schema(b)).unwrap_err().found, found, "{a} {b}");
        }
    }
}
