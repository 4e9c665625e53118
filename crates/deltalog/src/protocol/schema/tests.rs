//! Tests with the example of "Schema Serialization Format", and round trips.

use ::arrow::datatypes::{DataType as ArrowType, Field, Schema, TimeUnit};
use proptest::prelude::*;

use super::*;
use crate::ErrorKind;

/// The section's example, written on one line.
const EXAMPLE: &str = concat!(
    r#"{"type":"struct","fields":[{"name":"a","type":"integer","nullable":false,"metadata":{}},"#,
    r#"{"name":"b","type":{"type":"struct","fields":[{"name":"d","type":"integer","nullable":false,"#,
    r#""metadata":{}}]},"nullable":true,"metadata":{}},{"name":"c","type":{"type":"array","#,
    r#""elementType":"integer","containsNull":false},"nullable":true,"metadata":{}},{"name":"e","#,
    r#""type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"d","type":"integer","#,
    r#""nullable":false,"metadata":{}}]},"containsNull":true},"nullable":true,"metadata":{}},{"name":"f","#,
    r#""type":{"type":"map","keyType":"string","valueType":"string","valueContainsNull":true},"#,
    r#""nullable":true,"metadata":{}}]}"#,
);

fn one_column(data_type: &str) -> String {
    format!(
        r#"{{"type":"struct","fields":[{{"name":"x","type":{data_type},"nullable":true,"metadata":{{}}}}]}}"#
    )
}

fn nested(levels: usize) -> String {
    let (open, close) = (r#"{"type":"array","containsNull":true,"elementType":"#, "}");
    one_column(&format!("{}\"long\"{}", open.repeat(levels), close.repeat(levels)))
}

#[test]
fn protocol_example_is_written_as_it_was_read() {
    let schema = StructType::from_json(EXAMPLE).unwrap();
    assert_eq!(schema.to_json(), EXAMPLE);
    let spaced = EXAMPLE.replace(':', " : ").replace(',', " ,\n");
    assert_eq!(StructType::from_json(&spaced).unwrap().fields().len(), 5);
}

#[test]
fn metadata_is_kept_byte_for_byte() {
    let json = concat!(
        r#"{"type":"struct","fields":[{"name":"x","type":"long","nullable":true,"metadata":{"z":1.50,"#,
        r#""a":{ "b" : [1e2, "\u0041"]},"z2":12345678901234567890123}}]}"#,
    );
    let schema = StructType::from_json(json).unwrap();
    assert_eq!(schema.to_json(), json);
    assert_eq!(schema.field("X").unwrap().metadata.get("a").unwrap()["b"][1], "A");
}

#[test]
fn invalid_schemas_are_a_corrupt_log() {
    for json in [
        "",
        "[]",
        "\"long\"",
        r#"{"type":"array","elementType":"long","containsNull":true}"#,
        r#"{"type":"struct"}"#,
        r#"{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":[]}]}"#,
        r#"{"type":"struct","fields":[{"type":"long","nullable":true,"metadata":{}}]}"#,
        &one_column(r#"{"type":"map","keyType":"string"}"#),
        &one_column(r#""decimal(39,0)""#),
        &one_column(r#""decimal(5,6)""#),
        &one_column(r#""decimal(0,0)""#),
    ] {
        assert_eq!(StructType::from_json(json).unwrap_err().kind(), ErrorKind::CorruptLog, "{json}");
    }
}

#[test]
fn names_that_differ_only_by_case_are_refused() {
    let json = concat!(
        r#"{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}},"#,
        r#"{"name":"A","type":"long","nullable":true,"metadata":{}}]}"#,
    );
    assert_eq!(StructType::from_json(json).unwrap_err().kind(), ErrorKind::SchemaMismatch);
}

#[test]
fn unknown_types_are_refused_by_name() {
    for name in ["geometry(OGC:CRS84)", "interval day", "object"] {
        let error = StructType::from_json(&one_column(&format!("{name:?}"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(name) && error.to_string().contains("'x'"), "{error}");
    }
}

#[test]
fn nesting_is_limited_when_parsing_and_converting() {
    assert!(StructType::from_json(&nested(MAX_DEPTH - 1)).unwrap().to_arrow().is_ok());
    for levels in [MAX_DEPTH, 5_000] {
        assert!(StructType::from_json(&nested(levels)).is_err());
    }
    let mut arrow = ArrowType::Int64;
    for _ in 0..MAX_DEPTH {
        arrow = ArrowType::List(Field::new("element", arrow, true).into());
    }
    let schema = Schema::new(vec![Field::new("x", arrow, true)]);
    assert_eq!(StructType::from_arrow(&schema).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn all_encodings_of_the_same_values_have_one_type() {
    let utf8 = || Box::new(ArrowType::Utf8);
    for (arrow, name) in [
        (ArrowType::LargeUtf8, "string"),
        (ArrowType::Utf8View, "string"),
        (ArrowType::Dictionary(Box::new(ArrowType::Int8), utf8()), "string"),
        (
            ArrowType::RunEndEncoded(
                Field::new("run_ends", ArrowType::Int32, false).into(),
                Field::new("values", ArrowType::Utf8, true).into(),
            ),
            "string",
        ),
        (ArrowType::FixedSizeBinary(4), "binary"),
        (ArrowType::UInt8, "short"),
        (ArrowType::UInt16, "integer"),
        (ArrowType::UInt32, "long"),
        (ArrowType::UInt64, "decimal(20,0)"),
        (ArrowType::Timestamp(TimeUnit::Second, Some("Europe/Berlin".into())), "timestamp"),
        (ArrowType::Timestamp(TimeUnit::Millisecond, None), "timestamp_ntz"),
        (ArrowType::Decimal256(38, 4), "decimal(38,4)"),
        (ArrowType::Decimal64(10, -2), "decimal(12,0)"),
        (ArrowType::Decimal256(36, -2), "decimal(38,0)"),
    ] {
        let schema = StructType::from_arrow(&Schema::new(vec![Field::new("x", arrow, true)])).unwrap();
        assert_eq!(schema.fields()[0].data_type, PrimitiveType::from_name(name).unwrap().into());
    }
    for arrow in [
        ArrowType::Time64(TimeUnit::Microsecond),
        ArrowType::Duration(TimeUnit::Second),
        ArrowType::Decimal256(39, 0),
        ArrowType::Decimal128(38, -1),
        ArrowType::Decimal128(2, 5),
    ] {
        let inner = ArrowType::Struct(vec![Field::new("y", arrow, true)].into());
        let error = StructType::from_arrow(&Schema::new(vec![Field::new("x", inner, true)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("'x.y'"), "{error}");
    }
}

/// Returns a schema with decimals of this type at every kind of position. `name` changes the names of fields.
fn nested_decimals(name: fn(&str) -> String, decimal: &ArrowType) -> Schema {
    let field = |name: &str, kind: ArrowType| Field::new(name, kind, true);
    let decimal = |part: &str| field(part, decimal.clone());
    let entries = ArrowType::Struct(vec![Field::new("k", ArrowType::Utf8, false), decimal("v")].into());
    let list =
        ArrowType::LargeList(field("item", ArrowType::Struct(vec![decimal(&name("a"))].into())).into());
    let encoded = ArrowType::Dictionary(Box::new(ArrowType::Int8), Box::new(decimal("").data_type().clone()));
    Schema::new(vec![
        decimal(&name("d")),
        field(&name("l"), list),
        field(&name("m"), ArrowType::Map(Field::new("entries", entries, false).into(), false)),
        field(&name("r"), encoded),
    ])
}

#[test]
fn decimals_with_too_many_digits_have_the_type_of_their_column_in_the_table() {
    let wide = ArrowType::Decimal256(60, 10);
    for narrow in [ArrowType::Decimal128(38, 10), ArrowType::Int64] {
        let table = StructType::from_arrow(&nested_decimals(str::to_owned, &narrow)).unwrap();
        let rows = StructType::from_arrow_into(&nested_decimals(str::to_uppercase, &wide), &table).unwrap();
        let renamed = StructType::from_arrow(&nested_decimals(str::to_uppercase, &narrow)).unwrap();
        assert_eq!(rows, renamed);
        let decimals = Schema::new(vec![Field::new("d", ArrowType::Decimal128(5, 2), true)]);
        assert_eq!(
            StructType::from_arrow_into(&decimals, &table).unwrap(),
            StructType::from_arrow(&decimals).unwrap()
        );
        let new = Schema::new(vec![Field::new("new", wide.clone(), true)]);
        let error = StructType::from_arrow_into(&new, &table).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(
            error
                .to_string()
                .contains("column 'new' has the Arrow type Decimal256(60, 10), but decimals of a")
        );
    }
}

#[test]
fn names_are_resolved_and_compared_ignoring_case() {
    let long = |name: &str| StructField::new(name, PrimitiveType::Long, true);
    let schema = StructType::try_new(vec![long("Ünï"), long("b")]).unwrap();
    assert_eq!(
        (schema.index_of("üNÏ"), schema.index_of("B"), schema.index_of("c")),
        (Some(0), Some(1), None)
    );
    assert_eq!(
        StructType::try_new(vec![long("Ä"), long("ä")]).unwrap_err().kind(),
        ErrorKind::SchemaMismatch
    );
}

fn any_leaf() -> impl Strategy<Value = DataType> {
    let names = prop::sample::select(vec![
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "void",
    ]);
    let decimal = (1u8..=38).prop_flat_map(|precision| (Just(precision), 0..=precision));
    prop_oneof![
        Just(DataType::Variant),
        names.prop_map(|name| PrimitiveType::from_name(name).unwrap().into()),
        decimal.prop_map(|(precision, scale)| PrimitiveType::decimal(precision, scale).unwrap().into()),
    ]
}

fn any_fields(
    data_type: impl Strategy<Value = DataType> + Clone + 'static,
) -> impl Strategy<Value = StructType> {
    prop::collection::vec((any::<String>(), data_type, any::<bool>()), 0..4).prop_map(|fields| {
        let mut seen = std::collections::HashSet::new();
        let fields = fields
            .into_iter()
            .filter(|(name, ..)| seen.insert(name.to_lowercase()))
            .map(|(name, data_type, nullable)| {
                StructField::new(name, data_type.clone(), nullable || data_type == PrimitiveType::Void.into())
            })
            .collect();
        StructType::try_new(fields).unwrap()
    })
}

pub(super) fn any_schema() -> impl Strategy<Value = StructType> {
    let data_type = any_leaf().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            any_fields(inner.clone()).prop_map(DataType::Struct),
            (inner.clone(), any::<bool>()).prop_map(|(element_type, contains_null)| DataType::Array(
                Box::new(ArrayType { element_type, contains_null })
            )),
            (inner.clone(), inner, any::<bool>()).prop_map(|(key_type, value_type, value_contains_null)| {
                DataType::Map(Box::new(MapType { key_type, value_type, value_contains_null }))
            }),
        ]
    });
    any_fields(data_type)
}

proptest! {
    #[test]
    fn json_round_trip(schema in any_schema()) {
        prop_assert_eq!(StructType::from_json(&schema.to_json()).unwrap(), schema);
    }

    #[test]
    fn arrow_round_trip(schema in any_schema()) {
        prop_assert_eq!(StructType::from_arrow(&schema.to_arrow().unwrap()).unwrap(), schema);
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = StructType::from_json(&text);
        let _ = StructType::from_json(&one_column(&text));
    }
}
