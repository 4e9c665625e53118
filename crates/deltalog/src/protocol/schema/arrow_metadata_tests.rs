use std::collections::HashMap;

use arrow::datatypes::{DataType as ArrowType, Field, Fields, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ArrayType, DataType, FieldMetadata, MapType, PrimitiveType, StructField, StructType};
use crate::ErrorKind;

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "comment",
            "delta.generationExpression",
            "delta.invariants",
            "CURRENT_DEFAULT",
            "__CHAR_VARCHAR_TYPE_STRING",
            "delta.identity.start",
            "delta.identity.allowExplicitInsert",
            "delta.columnMapping.id",
            "delta.typeChanges",
            "__COLLATIONS",
            "parquet.field.id",
        ])
        .prop_map(str::to_owned),
        "[a-z.]{0,6}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~é]{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["1", "true", "{}", "\"x\"", "null"]).prop_map(Value::from),
        "[a-z]{0,3}".prop_map(|text| json!({"inner": [text, 1, null]})),
    ]
}

fn data_type() -> impl Strategy<Value = DataType> {
    let leaf = prop_oneof![
        Just(DataType::from(PrimitiveType::Long)),
        Just(DataType::from(PrimitiveType::String)),
        Just(DataType::Variant),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            fields(inner.clone()).prop_map(DataType::from),
            (inner.clone(), any::<bool>()).prop_map(|(element, nulls)| ArrayType::new(element, nulls).into()),
            (inner.clone(), inner, any::<bool>())
                .prop_map(|(key, value, nulls)| MapType::new(key, value, nulls).into()),
        ]
    })
}

fn fields(types: impl Strategy<Value = DataType>) -> impl Strategy<Value = StructType> {
    let field = (types, any::<bool>(), prop::collection::btree_map(key(), value(), 0..4));
    prop::collection::vec(field, 1..4).prop_map(|fields| {
        let field = |(index, (data_type, nullable, metadata)): (usize, (_, _, _))| StructField {
            name: format!("c{index}"),
            data_type,
            nullable,
            metadata: FieldMetadata::parse(&json!(metadata as std::collections::BTreeMap<_, _>).to_string())
                .unwrap(),
        };
        StructType::try_new(fields.into_iter().enumerate().map(field).collect()).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Metadata with any content is unchanged after it is converted to Arrow and back.
    #[test]
    fn a_schema_is_unchanged_after_conversion_to_arrow_and_back(schema in fields(data_type())) {
        let arrow = schema.to_arrow_with_metadata().unwrap();
        prop_assert_eq!(StructType::from_arrow(&arrow).unwrap(), schema.clone());
        // `types_from_arrow` ignores the metadata, so a schema without metadata gives the same types.
        prop_assert_eq!(
            StructType::types_from_arrow(&arrow).unwrap(),
            StructType::from_arrow(&schema.to_arrow().unwrap()).unwrap()
        );
    }
}

fn of(key: &str, text: &str) -> crate::Result<StructType> {
    let field = Field::new("c", ArrowType::Int64, true)
        .with_metadata(HashMap::from([(key.to_owned(), text.to_owned())]));
    let outer = ArrowType::Struct(Fields::from(vec![field]));
    StructType::from_arrow(&Schema::new(vec![Field::new("s", outer, true)]))
}

#[test]
fn malformed_metadata_is_refused_by_name() {
    for (key, text, what) in [
        ("delta.identity.start", "one", "a whole number: one"),
        ("delta.identity.step", "1.5", "a whole number: 1.5"),
        ("delta.identity.allowExplicitInsert", "yes", "true or false: yes"),
        ("delta.typeChanges", "[", "JSON: ["),
        ("deltalog.jsonKeys", "a", "a JSON array of keys: a"),
    ] {
        // `deltalog.jsonKeys` is only parsed if there are other keys.
        let error = match key {
            "deltalog.jsonKeys" => {
                let metadata =
                    HashMap::from([(key.to_owned(), text.to_owned()), ("x".to_owned(), String::new())]);
                let field = Field::new("c", ArrowType::Int64, true).with_metadata(metadata);
                StructType::from_arrow(&Schema::new(vec![field])).unwrap_err()
            }
            _ => of(key, text).unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let message = error.to_string();
        assert!(message.contains(&format!("'{key}'")) && message.contains(what), "{message}");
    }
}

#[test]
fn metadata_that_belongs_to_arrow_is_left_out() {
    for key in ["ARROW:extension:name", "PARQUET:field_id"] {
        assert_eq!(of(key, "7").unwrap(), of("ARROW:x", "").unwrap());
    }
    let DataType::Struct(kept) = of("anything", "7").unwrap().fields()[0].data_type.clone() else { panic!() };
    assert_eq!(kept.fields()[0].metadata.as_json(), r#"{"anything":"7"}"#);
}

/// The schema of rows has the metadata that describes the values, but no metadata about the table's files.
#[test]
fn rows_have_only_metadata_that_applies_outside_the_table() {
    let schema = StructType::from_json(
        r#"{"type":"struct","fields":[
            {"name":"id","type":"long","nullable":true,"metadata":{"comment":"key","delta.identity.start":1,
             "delta.identity.step":1,"delta.identity.allowExplicitInsert":true,"delta.columnMapping.id":1,
             "delta.columnMapping.physicalName":"col-1","delta.typeChanges":[]}},
            {"name":"l","type":{"type":"array","elementType":{"type":"struct","fields":[
             {"name":"b","type":"string","nullable":true,"metadata":{"comment":"inner"}}]},"containsNull":true},
             "nullable":true,"metadata":{}},
            {"name":"g","type":"long","nullable":true,"metadata":{"delta.generationExpression":"id + 1"}}]}"#,
    )
    .unwrap();
    let arrow = schema.to_arrow().unwrap();
    let rows = Schema::new(vec![
        arrow.field(1).clone(),
        arrow.field(0).clone(),
        Field::new("_row_id", ArrowType::Int64, true),
    ]);
    let described = schema.describe_rows(&rows);
    let metadata = |field: &Field| {
        let mut all: Vec<String> =
            field.metadata().iter().map(|(key, value)| format!("{key}={value}")).collect();
        all.sort();
        all
    };
    assert_eq!(metadata(described.field(1)), ["comment=key"]);
    let ArrowType::List(element) = described.field(0).data_type() else { panic!() };
    let ArrowType::Struct(parts) = element.data_type() else { panic!() };
    assert_eq!(metadata(&parts[0]), ["comment=inner"]);
    assert!(described.field(2).metadata().is_empty());
    let generated = schema.describe_rows(&Schema::new(vec![arrow.field(2).clone()]));
    assert_eq!(metadata(generated.field(0)), ["delta.generationExpression=id + 1"]);
}
