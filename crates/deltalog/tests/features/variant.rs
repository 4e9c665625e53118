//! Shredded and unshredded variants are read in the same form. Parquet's `VariantShredding.md` defines the shredded
//! forms.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use deltalog::ErrorKind;
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::scan::{FileListing, ListColumn};
use parquet_variant_compute::{VariantArray, json_to_variant, shred_variant, variant_to_json};
use serde_json::{Value, json};

use crate::crafted::{Crafted, Definition, field, fields, listed, rows};

fn definition(schema: &Value) -> Definition<'_> {
    Definition {
        schema,
        partition_columns: &[],
        reader_features: &["variantType", "variantShredding-preview"],
        writer_features: &[],
        configuration: json!({}),
    }
}

const TEXTS: [Option<&str>; 8] = [
    Some(r#"{"id":1,"name":"one","tags":[1,"x"]}"#),
    Some(r#"{"id":"not a number"}"#),
    None,
    Some("null"),
    Some("7"),
    Some(r#"{"other":{"deep":[true,null]},"id":9223372036854775807}"#),
    Some(r#"[{"id":1},2.5]"#),
    Some(r#"{"id":null,"name":null}"#),
];

fn variants() -> VariantArray {
    let texts: ArrayRef = Arc::new(StringArray::from(TEXTS.to_vec()));
    json_to_variant(&texts).unwrap()
}

/// Returns the variants with `{id: long, name: string}` shredded, as a writer may do.
fn shredded() -> VariantArray {
    let typed =
        Fields::from(vec![Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8, true)]);
    shred_variant(&variants(), &DataType::Struct(typed)).unwrap()
}

/// Returns the form in which Spark first stored variants: `value` before `metadata`.
fn value_first() -> StructArray {
    let variants = variants();
    let part = |array: &ArrayRef| arrow::compute::cast(array, &DataType::Binary).unwrap();
    let parts = Fields::from(vec![
        Field::new("value", DataType::Binary, true),
        Field::new("metadata", DataType::Binary, false),
    ]);
    StructArray::new(
        parts,
        vec![part(variants.value_column()), part(variants.metadata_column())],
        variants.nulls().cloned(),
    )
}

fn file(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let schema: Vec<_> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(schema)), columns.into_iter().map(|(_, array)| array).collect())
        .unwrap()
}

fn ids() -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(0..8))
}

/// Returns the JSON of variants that a scan has returned.
fn texts(array: &ArrayRef) -> Vec<Option<Value>> {
    let parts = array.as_struct();
    assert_eq!(parts.column_names(), ["metadata", "value"]);
    assert!(parts.columns().iter().all(|part| part.data_type() == &DataType::Binary));
    let texts = variant_to_json(&(array.clone())).unwrap();
    texts.iter().map(|text| text.map(|text| serde_json::from_str(text).unwrap())).collect()
}

fn expected() -> Vec<Option<Value>> {
    TEXTS.iter().map(|text| text.map(|text| serde_json::from_str(text).unwrap())).collect()
}

fn is_marked(field: &Field) -> bool {
    field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.parquet.variant")
}

#[test]
fn every_storage_form_of_a_variant_reads_the_same() {
    let schema = fields(vec![field("v", json!("variant"), json!({})), field("id", json!("long"), json!({}))]);
    for stored in [
        Arc::new(value_first()) as ArrayRef,
        Arc::new(variants().into_inner()),
        Arc::new(shredded().into_inner()),
    ] {
        let mut table = Crafted::new(&definition(&schema));
        table.add("0.parquet", &file(vec![("id", ids()), ("V", stored)]), 3, json!({}));
        table.commit();
        let snapshot = table.open().unwrap();
        let found = rows(&snapshot, None, None).unwrap();
        assert_eq!(texts(found.column(0)), expected());
        assert!(is_marked(found.schema().field(0)) && !is_marked(found.schema().field(1)));
        let found = rows(&snapshot, Some(&["v"]), Some("id = 5")).unwrap();
        assert_eq!(texts(found.column(0)), expected()[5..6]);
        // A variant null counts as a value, not as NULL.
        let found = rows(&snapshot, Some(&["id"]), Some("v IS NULL")).unwrap();
        assert_eq!(found.column(0).as_primitive::<arrow::datatypes::Int64Type>().values(), &[2]);
        let error = rows(&snapshot, None, Some("v = 1")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn variants_in_structs_lists_and_maps() {
    let list = json!({"type": "array", "elementType": "variant", "containsNull": true});
    let map = json!({"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": true});
    let schema = fields(vec![
        field("s", fields(vec![field("v", json!("variant"), json!({}))]), json!({})),
        field("l", list, json!({})),
        field("m", map, json!({})),
    ]);
    for stored in [Arc::new(value_first()) as ArrayRef, Arc::new(shredded().into_inner())] {
        let item = |name: &str| Arc::new(Field::new(name, stored.data_type().clone(), true));
        let offsets = || arrow::buffer::OffsetBuffer::from_lengths([8]);
        let list: ArrayRef = Arc::new(ListArray::new(item("element"), offsets(), stored.clone(), None));
        let structs: ArrayRef = Arc::new(StructArray::from(vec![(item("v"), stored.clone())]).slice(0, 1));
        let keys: ArrayRef =
            Arc::new(StringArray::from_iter_values(["a", "b", "c", "d", "e", "f", "g", "h"]));
        let pairs = StructArray::from(vec![
            (Arc::new(Field::new("key", DataType::Utf8, false)), keys),
            (item("value"), stored.clone()),
        ]);
        let entries = Arc::new(Field::new("key_value", pairs.data_type().clone(), false));
        let map: ArrayRef = Arc::new(MapArray::new(entries, offsets(), pairs, None, false));
        let mut table = Crafted::new(&definition(&schema));
        table.add("0.parquet", &file(vec![("s", structs), ("l", list), ("m", map)]), 10, json!({}));
        table.commit();
        let found = rows(&table.open().unwrap(), None, None).unwrap();
        assert_eq!(texts(found.column(0).as_struct().column(0)), expected()[..1]);
        assert_eq!(texts(found.column(1).as_list::<i32>().values()), expected());
        assert_eq!(texts(found.column(2).as_map().values()), expected());
        let DataType::List(element) = found.column(1).data_type() else { panic!("no list") };
        assert!(is_marked(element));
    }
}

/// "It is technically invalid for both value and typed_value to be null": it is a variant null where a value is
/// required.
#[test]
fn a_variant_without_a_value_is_the_variant_null() {
    let schema = fields(vec![field("v", json!("variant"), json!({}))]);
    let metadata: ArrayRef = Arc::new(BinaryArray::from_iter_values([[1u8, 0, 0]]));
    let metadata_field = || Arc::new(Field::new("metadata", DataType::Binary, false));
    let value: (Arc<Field>, ArrayRef) =
        (Arc::new(Field::new("value", DataType::Binary, true)), Arc::new(BinaryArray::from(vec![None])));
    let typed: (Arc<Field>, ArrayRef) =
        (Arc::new(Field::new("typed_value", DataType::Int64, true)), Arc::new(Int64Array::from(vec![None])));
    for rest in [vec![value.clone()], vec![value, typed.clone()], vec![typed]] {
        let stored = StructArray::from([vec![(metadata_field(), metadata.clone())], rest].concat());
        let mut table = Crafted::new(&definition(&schema));
        table.add("0.parquet", &file(vec![("v", Arc::new(stored))]), 10, json!({}));
        table.commit();
        let found = rows(&table.open().unwrap(), None, None).unwrap();
        assert_eq!(texts(found.column(0)), [Some(Value::Null)]);
    }
}

#[test]
fn a_malformed_variant_is_an_error() {
    let schema = fields(vec![field("v", json!("variant"), json!({}))]);
    let binary = |name: &str, bytes: &[u8]| -> (Arc<Field>, ArrayRef) {
        (Arc::new(Field::new(name, DataType::Binary, true)), Arc::new(BinaryArray::from_iter_values([bytes])))
    };
    let empty_long: (Arc<Field>, ArrayRef) =
        (Arc::new(Field::new("typed_value", DataType::Int64, true)), Arc::new(Int64Array::from(vec![None])));
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    for stored in [
        whole,
        Arc::new(StructArray::from(vec![binary("metadata", &[1, 0, 0])])),
        Arc::new(StructArray::from(vec![binary("value", &[0])])),
        // A shredded variant is reassembled, which checks its bytes. Here the metadata or the value is truncated.
        Arc::new(StructArray::from(vec![
            binary("metadata", &[1, 9]),
            binary("value", &[0]),
            empty_long.clone(),
        ])),
        Arc::new(StructArray::from(vec![
            binary("metadata", &[1, 0, 0]),
            binary("value", &[2, 200]),
            empty_long,
        ])),
    ] {
        let mut table = Crafted::new(&definition(&schema));
        table.add("0.parquet", &file(vec![("v", stored)]), 10, json!({}));
        table.commit();
        let error = rows(&table.open().unwrap(), None, None).unwrap_err();
        assert!(error.kind() == ErrorKind::CorruptData && error.path() == Some("0.parquet"), "{error}");
    }
}

/// Statistics of a variant say nothing about its parts.
#[test]
fn statistics_of_other_columns_still_prune() {
    let schema = fields(vec![field("v", json!("variant"), json!({})), field("id", json!("long"), json!({}))]);
    let mut table = Crafted::new(&definition(&schema));
    let stats = json!({
        "numRecords": 8, "minValues": {"id": 0, "v": "0rJlc5f$Ecz"},
        "maxValues": {"id": 7, "v": "0rJlc5f$Ecz"}, "nullCount": {"id": 0, "v": 1},
    });
    table.add(
        "0.parquet",
        &file(vec![("id", ids()), ("v", Arc::new(value_first()))]),
        10,
        json!({"stats": stats.to_string()}),
    );
    table.commit();
    let snapshot = table.open().unwrap();
    assert_eq!(listed(&snapshot, &[ListColumn::Path], Some("id > 7")).num_rows(), 0);
    assert_eq!(listed(&snapshot, &[ListColumn::Path], Some("v IS NULL AND id > 1")).num_rows(), 1);
    let found = listed(&snapshot, &[ListColumn::Stats], None);
    assert_eq!(
        found.column(0).as_struct().column_by_name("minValues").unwrap().as_struct().column_names(),
        ["id"]
    );
}

/// IS NULL finds exactly the NULLs, whatever statistics the log or the footer has for the variant or its parts.
#[test]
fn a_predicate_can_test_whether_a_variant_is_null() {
    let inner = fields(vec![field("v", json!("variant"), json!({}))]);
    let schema = fields(vec![
        field("v", json!("variant"), json!({})),
        field("id", json!("long"), json!({})),
        field("s", inner, json!({})),
    ]);
    let null_counts =
        [json!(null), json!(1), json!({"metadata": 0, "value": 0}), json!({"metadata": 8, "value": 8})];
    for null_count in null_counts {
        for stored in [
            Arc::new(value_first()) as ArrayRef,
            Arc::new(variants().into_inner()),
            Arc::new(shredded().into_inner()),
        ] {
            // With row groups of one row, `value` or `typed_value` may be NULL for all rows of a group.
            for group_rows in [1, 3, 8] {
                let item = Arc::new(Field::new("v", stored.data_type().clone(), true));
                let nested: ArrayRef = Arc::new(StructArray::from(vec![(item, stored.clone())]));
                let stats = json!({
                    "numRecords": 8, "minValues": {"id": 0}, "maxValues": {"id": 7},
                    "nullCount": {"id": 0, "v": null_count},
                });
                let mut table = Crafted::new(&definition(&schema));
                let batch = file(vec![("id", ids()), ("v", stored.clone()), ("s", nested)]);
                table.add("0.parquet", &batch, group_rows, json!({"stats": stats.to_string()}));
                table.commit();
                let snapshot = table.open().unwrap();
                for (predicate, expected) in [
                    ("v IS NULL", vec![2]),
                    ("V IS NOT NULL", vec![0, 1, 3, 4, 5, 6, 7]),
                    ("NOT v IS NULL AND id < 4", vec![0, 1, 3]),
                    ("v <=> NULL", vec![2]),
                    ("s.v IS NULL", vec![2]),
                    ("s.v IS NOT NULL AND v IS NOT NULL AND id > 5", vec![6, 7]),
                ] {
                    let found = rows(&snapshot, Some(&["id"]), Some(predicate)).unwrap();
                    assert_eq!(
                        found.column(0).as_primitive::<arrow::datatypes::Int64Type>().values(),
                        &expected,
                        "{predicate} {null_count}"
                    );
                    assert_eq!(listed(&snapshot, &[ListColumn::Path], Some(predicate)).num_rows(), 1);
                }
            }
        }
    }
}

/// A file without the variant column has NULL in each row.
#[test]
fn a_variant_absent_from_a_file_is_null() {
    let schema = fields(vec![field("v", json!("variant"), json!({})), field("id", json!("long"), json!({}))]);
    let mut table = Crafted::new(&definition(&schema));
    table.add("0.parquet", &file(vec![("id", ids())]), 3, json!({}));
    table.commit();
    let snapshot = table.open().unwrap();
    assert_eq!(rows(&snapshot, None, Some("v IS NULL")).unwrap().num_rows(), 8);
    assert_eq!(rows(&snapshot, None, Some("v IS NOT NULL")).unwrap().num_rows(), 0);
}

/// A variant can hold any type, and its parts are not columns of files. Predicates on a variant's value or parts are
/// refused with an error that names the column.
#[test]
fn a_predicate_on_the_value_of_a_variant_is_refused() {
    let inner = fields(vec![field("v", json!("variant"), json!({}))]);
    let schema = fields(vec![
        field("v", json!("variant"), json!({})),
        field("w", json!("variant"), json!({})),
        field("s", inner, json!({})),
    ]);
    let mut table = Crafted::new(&definition(&schema));
    table.add("0.parquet", &file(vec![("v", Arc::new(shredded().into_inner()))]), 3, json!({}));
    table.commit();
    let snapshot = table.open().unwrap();
    for (predicate, column) in [
        ("v = 1", "v"),
        ("1 < V", "v"),
        ("v <=> 'a'", "v"),
        ("v = w", "v"),
        ("v IN (1, NULL)", "v"),
        ("v BETWEEN 1 AND 2", "v"),
        ("v LIKE 'a%'", "v"),
        ("v", "v"),
        ("NOT v", "v"),
        ("year(v) = 2024", "v"),
        ("CAST(v AS INT) = 1", "v"),
        ("v.value IS NULL", "v"),
        ("v.metadata IS NOT NULL", "v"),
        ("v.id = 1", "v"),
        ("s.v = 1", "s.v"),
        ("s.v.value IS NOT NULL", "s.v"),
    ] {
        let error = rows(&snapshot, None, Some(predicate)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{predicate}: {error}");
        assert!(error.to_string().contains(&format!("column {column} is a variant")), "{predicate}: {error}");
        // If an engine applies the filter itself, no file may be skipped.
        let lenient = parse(predicate, "UTC", ParseMode::Pruning).unwrap();
        assert_eq!(
            FileListing::new(&snapshot)
                .pruning(&lenient)
                .read()
                .unwrap()
                .map(|batch| batch.unwrap().num_rows())
                .sum::<usize>(),
            1
        );
    }
}
