//! Tests with the example of "Column Mapping", with damaged schemas, and of the relation between the two schemas.

use ::arrow::datatypes::DataType as ArrowType;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use proptest::prelude::*;

use super::tests::any_schema;
use super::*;
use crate::ErrorKind;
use crate::protocol::action::{Format, Metadata, Protocol};

/// The section's example of a column definition, as part of a schema.
const EXAMPLE: &str = concat!(
    r#"{"type":"struct","fields":[{"name":"e","type":{"type":"array","elementType":{"type":"struct","#,
    r#""fields":[{"name":"d","type":"integer","nullable":false,"metadata":{"delta.columnMapping.id":5,"#,
    r#""delta.columnMapping.physicalName":"col-a7f4159c-53be-4cb0-b81a-f7e5240cfc49"}}]},"#,
    r#""containsNull":true},"nullable":true,"metadata":{"delta.columnMapping.id":4,"#,
    r#""delta.columnMapping.physicalName":"col-5f422f40-de70-45b2-88ab-1d5c90e94db1"}}]}"#,
);

fn mapped(json: &str, mode: ColumnMappingMode) -> crate::Result<MappedSchema> {
    MappedSchema::new(StructType::from_json(json).unwrap(), mode)
}

fn element(field: &::arrow::datatypes::Field) -> &::arrow::datatypes::Fields {
    match field.data_type() {
        ArrowType::List(element) => match element.data_type() {
            ArrowType::Struct(fields) => fields,
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

#[test]
fn the_example_is_mapped_by_name_and_by_id() {
    for mode in [ColumnMappingMode::Name, ColumnMappingMode::Id] {
        let schema = mapped(EXAMPLE, mode).unwrap();
        assert_eq!(schema.logical().to_json(), EXAMPLE);
        let physical = schema.physical_arrow().field(0);
        assert_eq!(physical.name(), "col-5f422f40-de70-45b2-88ab-1d5c90e94db1");
        let inner = &element(physical)[0];
        assert_eq!(inner.name(), "col-a7f4159c-53be-4cb0-b81a-f7e5240cfc49");
        let ids = [physical, inner]
            .map(|field| field.metadata().get(PARQUET_FIELD_ID_META_KEY).map(String::as_str));
        let spark_ids = schema.physical().fields()[0].metadata.as_json();
        match mode {
            ColumnMappingMode::Id => {
                assert_eq!((ids, spark_ids), ([Some("4"), Some("5")], r#"{"parquet.field.id":4}"#))
            }
            // "Column ids are not used in this mode for resolution purposes."
            _ => assert_eq!((ids, spark_ids), ([None, None], "{}")),
        }
        assert_eq!(schema.physical_name("e"), Some("col-5f422f40-de70-45b2-88ab-1d5c90e94db1"));
        assert!(schema.arrow().field(0).data_type().equals_datatype(physical.data_type()));
        // Users never see a physical name or an id.
        assert!(!format!("{:?}", schema.arrow()).contains("col-"));
        assert!(!format!("{:?}", schema.arrow()).contains(PARQUET_FIELD_ID_META_KEY));
    }
    let unmapped = mapped(EXAMPLE, ColumnMappingMode::None).unwrap();
    assert_eq!(unmapped.physical(), unmapped.logical());
    assert_eq!(unmapped.physical_arrow(), unmapped.arrow());
}

#[test]
fn paths_lead_through_structs() {
    let field = |name: &str, data_type: DataType, physical: &str, id: i32| {
        let metadata =
            format!(r#"{{"delta.columnMapping.id":{id},"delta.columnMapping.physicalName":"{physical}"}}"#);
        StructField {
            metadata: FieldMetadata::parse(&metadata).unwrap(),
            ..StructField::new(name, data_type, true)
        }
    };
    let inner = StructType::try_new(vec![
        field("x", PrimitiveType::Long.into(), "p2", 2),
        field("y", PrimitiveType::Long.into(), "p3", 3),
    ]);
    let schema = StructType::try_new(vec![
        field("a.b", inner.unwrap().into(), "p1", 1),
        field("y", PrimitiveType::Date.into(), "p4", 4),
    ]);
    let schema = MappedSchema::new(schema.unwrap(), ColumnMappingMode::Id).unwrap();
    let physical =
        |path: &[&str]| schema.physical_path(&path.iter().map(|name| name.to_string()).collect::<Vec<_>>());
    assert_eq!(physical(&["a.b", "y"]).unwrap(), ["p1", "p3"]);
    assert_eq!(schema.logical_path(&["p1".to_owned(), "p3".to_owned()]).unwrap(), ["a.b", "y"]);
    assert_eq!(schema.logical_path(&["y".to_owned()]), None);
    assert_eq!(physical(&["y"]).unwrap(), ["p4"]);
    assert_eq!(physical(&["a", "b"]), None);
    assert_eq!(physical(&["y", "x"]), None);
}

#[test]
fn errors_name_columns_without_a_mapping() {
    let no_inner_name = EXAMPLE
        .replace(r#","delta.columnMapping.physicalName":"col-a7f4159c-53be-4cb0-b81a-f7e5240cfc49""#, "");
    let no_inner_id = EXAMPLE.replace(r#""delta.columnMapping.id":5,"#, "");
    let same_id = EXAMPLE.replace(r#""delta.columnMapping.id":5"#, r#""delta.columnMapping.id":4"#);
    let wide_id = EXAMPLE.replace(r#""delta.columnMapping.id":5"#, r#""delta.columnMapping.id":2147483648"#);
    for mode in [ColumnMappingMode::Name, ColumnMappingMode::Id] {
        let error = mapped(&no_inner_name, mode).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptLog);
        assert!(error.to_string().contains("'e.element.d' has no physical name"), "{error}");
    }
    for damaged in [no_inner_id, same_id, wide_id] {
        assert!(mapped(&damaged, ColumnMappingMode::Name).is_ok());
        let error = mapped(&damaged, ColumnMappingMode::Id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptLog);
        assert!(error.to_string().contains("'e.element.d'"), "{error}");
    }
    let plain = r#"{"type":"struct","fields":[{"name":"x","type":"long","nullable":true,"metadata":{}}]}"#;
    assert_eq!(mapped(plain, ColumnMappingMode::Name).unwrap_err().kind(), ErrorKind::CorruptLog);
    let twice = concat!(
        r#"{"type":"struct","fields":[{"name":"x","type":"long","nullable":true,"#,
        r#""metadata":{"delta.columnMapping.physicalName":"p"}},{"name":"y","type":"long","#,
        r#""nullable":true,"metadata":{"delta.columnMapping.physicalName":"p"}}]}"#,
    );
    assert_eq!(mapped(twice, ColumnMappingMode::Name).unwrap_err().kind(), ErrorKind::CorruptLog);
}

/// "The table property should only be honored if the table's protocol has reader and writer versions and/or
/// table features that support …"
#[test]
fn the_mode_only_applies_if_the_protocol_supports_it() {
    let with_mode = |mode: &str| Metadata {
        id: "id".into(),
        name: None,
        description: None,
        format: Format::default(),
        schema_string: EXAMPLE.into(),
        partition_columns: Vec::new(),
        created_time: None,
        configuration: [("delta.columnMapping.mode".to_owned(), mode.to_owned())].into(),
    };
    let legacy =
        |reader| Protocol { min_reader_version: reader, min_writer_version: 5, ..Protocol::default() };
    let listing = |features: &[&str]| Protocol {
        min_reader_version: 3,
        min_writer_version: 7,
        reader_features: Some(features.iter().map(|name| name.to_string()).collect()),
        writer_features: Some(vec!["columnMapping".into()]),
    };
    for (text, mode) in
        [("id", ColumnMappingMode::Id), ("NAME", ColumnMappingMode::Name), ("none", ColumnMappingMode::None)]
    {
        for protocol in [legacy(2), listing(&["columnMapping"])] {
            assert_eq!(ColumnMappingMode::of(&protocol, &with_mode(text)).unwrap(), mode);
        }
        for protocol in [legacy(1), listing(&[])] {
            assert_eq!(ColumnMappingMode::of(&protocol, &with_mode(text)).unwrap(), ColumnMappingMode::None);
        }
    }
    assert_eq!(
        ColumnMappingMode::of(&legacy(2), &with_mode("both")).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

/// Returns `schema` with a physical name and an id for every field.
fn numbered(schema: &StructType, next: &mut i32) -> StructType {
    fn inside(data_type: &DataType, next: &mut i32) -> DataType {
        match data_type {
            DataType::Struct(fields) => numbered(fields, next).into(),
            DataType::Array(array) => DataType::Array(Box::new(ArrayType {
                element_type: inside(&array.element_type, next),
                ..array.as_ref().clone()
            })),
            DataType::Map(map) => DataType::Map(Box::new(MapType {
                key_type: inside(&map.key_type, next),
                value_type: inside(&map.value_type, next),
                ..map.as_ref().clone()
            })),
            leaf => leaf.clone(),
        }
    }
    let field = |field: &StructField| {
        *next += 1;
        let json = format!(
            r#"{{"delta.columnMapping.id":{next},"delta.columnMapping.physicalName":"p{next}","other":[1.0]}}"#
        );
        StructField {
            data_type: inside(&field.data_type, next),
            metadata: FieldMetadata::parse(&json).unwrap(),
            ..field.clone()
        }
    };
    StructType::try_new(schema.fields().iter().map(field).collect()).unwrap()
}

proptest! {
    /// "every column - nested or leaf": both schemas have the same shape and different names; fields have
    /// distinct ids in `id` mode and none in `name` mode.
    #[test]
    fn both_schemas_have_the_same_shape(schema in any_schema(), by_id: bool) {
        let mut count = 0;
        let schema = numbered(&schema, &mut count);
        let mode = if by_id { ColumnMappingMode::Id } else { ColumnMappingMode::Name };
        let mapped = MappedSchema::new(schema.clone(), mode).unwrap();
        let pairs = mapped.arrow().fields().iter().zip(mapped.physical_arrow().fields());
        for (logical, physical) in pairs {
            prop_assert!(logical.data_type().equals_datatype(physical.data_type()));
        }
        let (mut names, mut ids) = (Vec::new(), Vec::new());
        mapped.physical().any_field(&mut |field| {
            names.push(field.name.clone());
            ids.extend(field.metadata.get("parquet.field.id").and_then(|id| id.as_i64()));
            false
        });
        prop_assert_eq!(names.iter().filter(|name| name.starts_with('p')).count(), count as usize);
        prop_assert_eq!(ids.len(), if by_id { count as usize } else { 0 });
        for (field, physical) in schema.fields().iter().zip(mapped.physical().fields()) {
            prop_assert_eq!(mapped.physical_name(&field.name), Some(physical.name.as_str()));
        }
        // The Arrow schema has the ids of the Delta schema, at every depth.
        let arrow_ids = format!("{:?}", mapped.physical_arrow()).matches(PARQUET_FIELD_ID_META_KEY).count();
        prop_assert_eq!(arrow_ids, ids.len());
    }
}
