//! Tests with the "Example of storing identifiers for nested fields in ArrayType and MapType", with damaged ids, and of
//! the rules for assigning ids.

use std::collections::BTreeSet;

use ::arrow::datatypes::{DataType as ArrowType, Field, Fields};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::part_ids::{
    PARQUET_PART_IDS, PART_IDS, greatest_id, part_paths, with_part_ids, with_part_ids_by_physical_name,
};
use super::tests::any_schema;
use super::*;
use crate::ErrorKind;

/// The section's example, with mapped columns. The ids of parts are stored under physical names if `key` is the key of
/// newer editions, otherwise under logical names.
fn example(key: &str) -> StructType {
    let named = |name: &str, ids: Value| {
        let prefix = if key == PART_IDS { format!("physical-{name}") } else { name.to_owned() };
        let ids: serde_json::Map<String, Value> = ids
            .as_object()
            .unwrap()
            .iter()
            .map(|(path, id)| (format!("{prefix}.{path}"), id.clone()))
            .collect();
        json!({
            "delta.columnMapping.id": name.bytes().map(i64::from).sum::<i64>(),
            "delta.columnMapping.physicalName": format!("physical-{name}"),
            key: ids,
        })
    };
    let array = |element: Value| json!({"type": "array", "elementType": element, "containsNull": true});
    let map = |value: Value| {
        let (kind, key) = ("map", "integer");
        json!({"type": kind, "keyType": key, "valueType": value, "valueContainsNull": true})
    };
    let field = |name: &str, data_type: Value, ids: Value| {
        let metadata = named(name, ids);
        json!({"name": name, "type": data_type, "nullable": true, "metadata": metadata})
    };
    let inner = field("subcol1", array(json!("integer")), json!({"element": 107}));
    let schema = json!({"type": "struct", "fields": [
        field("col1", array(array(json!("integer"))), json!({"element": 100, "element.element": 101})),
        field("col2", map(array(json!("integer"))), json!({"key": 102, "value": 103, "value.element": 104})),
        field("col3", map(json!({"type": "struct", "fields": [inner]})), json!({"key": 105, "value": 106})),
    ]});
    StructType::from_json(&schema.to_string()).unwrap()
}

/// Returns the ids of `fields` and of everything inside them, by path.
fn arrow_ids(fields: &Fields, parent: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let visit = |field: &Field, found: &mut Vec<(String, String)>| {
        let place = format!("{parent}{}", field.name());
        if let Some(id) = field.metadata().get(PARQUET_FIELD_ID_META_KEY) {
            found.push((place.clone(), id.clone()));
        }
        found.extend(match field.data_type() {
            ArrowType::Struct(inner) => arrow_ids(inner, &format!("{place}.")),
            ArrowType::List(element) => arrow_ids(&Fields::from(vec![element.clone()]), &format!("{place}.")),
            ArrowType::Map(entries, _) => match entries.data_type() {
                ArrowType::Struct(pair) => arrow_ids(pair, &format!("{place}.")),
                other => panic!("{other}"),
            },
            _ => Vec::new(),
        });
    };
    fields.iter().for_each(|field| visit(field, &mut found));
    found
}

#[test]
fn the_example_is_read_in_both_forms() {
    for key in [PART_IDS, PARQUET_PART_IDS] {
        let schema = example(key);
        let mut last_id = 1000;
        let kept = with_part_ids(&schema, &mut last_id).unwrap();
        assert_eq!(last_id, 1000, "no id is new");
        assert_eq!(kept, example(PART_IDS));
        let mapped = MappedSchema::with_part_ids(schema).unwrap();
        let column = |name: &str| name.bytes().map(u32::from).sum::<u32>().to_string();
        let own = |path: &str, name: &str| (path.to_owned(), column(name));
        let part = |path: &str, id: u32| (path.to_owned(), id.to_string());
        assert_eq!(
            arrow_ids(mapped.physical_arrow().fields(), ""),
            [
                own("physical-col1", "col1"),
                part("physical-col1.element", 100),
                part("physical-col1.element.element", 101),
                own("physical-col2", "col2"),
                part("physical-col2.key", 102),
                part("physical-col2.value", 103),
                part("physical-col2.value.element", 104),
                own("physical-col3", "col3"),
                part("physical-col3.key", 105),
                part("physical-col3.value", 106),
                own("physical-col3.value.physical-subcol1", "subcol1"),
                part("physical-col3.value.physical-subcol1.element", 107),
            ]
        );
        // Spark's tasks read the same ids from the schema that is passed to them.
        let metadata = &mapped.physical().fields()[1].metadata;
        assert_eq!(
            metadata.get(PARQUET_PART_IDS),
            Some(json!({
                "physical-col2.key": 102, "physical-col2.value": 103, "physical-col2.value.element": 104
            }))
        );
        // Readers do not see the ids of parts.
        let read = MappedSchema::new(example(key), ColumnMappingMode::Id).unwrap();
        assert_eq!(arrow_ids(read.physical_arrow().fields(), "").len(), 4);
    }
}

/// "These identifiers must be unique and different from those used in Column Mapping"
#[test]
fn damaged_ids_are_errors() {
    let text = example(PART_IDS).to_json();
    let column = "col1".bytes().map(u32::from).sum::<u32>().to_string();
    for (from, to, expected) in [
        ("\"physical-col2.value.element\":104", "\"x\":104", "'col2.value.element' has no id"),
        ("101", "100", "'col1.element.element' has the same id (100) as 'col1.element'"),
        ("107", column.as_str(), "has the same id ("),
        ("103", "4294967296", "not a 32-bit integer"),
        ("103", "\"a\"", "not a 32-bit integer"),
    ] {
        let damaged = StructType::from_json(&text.replace(from, to)).unwrap();
        assert_ne!(damaged, example(PART_IDS));
        let error = MappedSchema::with_part_ids(damaged).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptLog, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// Returns the number of parts of arrays and maps, and all ids of columns and parts.
fn ids_of(schema: &StructType) -> (usize, Vec<i64>) {
    let (mut parts, mut ids) = (0, Vec::new());
    schema.any_field(&mut |field| {
        parts += part_paths(&field.data_type).len();
        ids.extend(field.metadata.get("delta.columnMapping.id").and_then(|id| id.as_i64()));
        if let Some(Value::Object(of_parts)) = field.metadata.get(PART_IDS) {
            ids.extend(of_parts.values().filter_map(Value::as_i64));
        }
        false
    });
    (parts, ids)
}

proptest! {
    #[test]
    fn each_part_has_a_unique_id_and_keeps_it(old in any_schema(), new in any_schema()) {
        let mut names = 0;
        let mut mapping = NewMapping::new(0, |_: &StructField| {
            names += 1;
            format!("p{names}")
        });
        let old = mapping.assign(&old).unwrap();
        let columns = mapping.last_id();
        let mut last_id = columns;
        let identified = with_part_ids(&old, &mut last_id).unwrap();
        let (parts, ids) = ids_of(&identified);
        prop_assert_eq!(last_id, columns + parts as i64);
        prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        prop_assert_eq!(ids.len(), columns as usize + parts);
        // A second assignment changes nothing, byte for byte.
        let mut again = last_id;
        prop_assert_eq!(&with_part_ids(&identified, &mut again).unwrap(), &identified);
        prop_assert_eq!(again, last_id);
        // Each id is in the schema of files, once.
        let mapped = MappedSchema::with_part_ids(identified.clone()).unwrap();
        let in_files = arrow_ids(mapped.physical_arrow().fields(), "");
        prop_assert_eq!(in_files.len(), ids.len());
        // New columns get ids that follow all existing ones, and existing ids do not change.
        let mut more = NewMapping::new(last_id, |field: &StructField| format!("new-{}", field.name));
        let added = more.assign(&new).unwrap();
        let mut last_id = more.last_id();
        let fields = identified.fields().iter().chain(added.fields()).cloned();
        let both = StructType::of_distinct(fields.collect());
        let both = with_part_ids(&both, &mut last_id).unwrap();
        prop_assert_eq!(&both.fields()[..identified.fields().len()], identified.fields());
        let (_, all) = ids_of(&both);
        prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}

/// The names that users see can change, but the names in files never change.
#[test]
fn ids_under_the_logical_name_can_be_stored_under_the_physical_name() {
    for key in [PART_IDS, PARQUET_PART_IDS] {
        let mut schema = example(key);
        let before = with_part_ids(&schema, &mut 1000).unwrap();
        for field in &mut schema.fields {
            field.metadata = with_part_ids_by_physical_name(field);
            field.name = format!("renamed {}", field.name);
        }
        let after = with_part_ids(&schema, &mut 1000).unwrap();
        for (before, after) in before.fields().iter().zip(after.fields()) {
            assert_eq!(before.metadata.get(PART_IDS), after.metadata.get(PART_IDS), "{key}");
        }
    }
}

#[test]
fn the_highest_id_may_belong_to_a_part() {
    let schema = example(PARQUET_PART_IDS);
    let of_columns = "subcol1".bytes().map(i64::from).sum::<i64>();
    assert!(of_columns > 107);
    assert_eq!(greatest_id(&schema), of_columns);
    let only_col1 = StructType::of_distinct(schema.fields[..1].to_vec());
    let column = "col1".bytes().map(i64::from).sum::<i64>();
    assert_eq!(greatest_id(&only_col1), column.max(101));
    assert_eq!(greatest_id(&StructType::default()), 0);
}
