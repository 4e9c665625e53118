//! Type widening: values of a narrower type in old files, partition values and statistics are read as the table's type.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, Schema};
use deltalog::ErrorKind;
use deltalog::engine::scan::ListColumn;
use serde_json::{Value, json};

use crate::crafted::{Crafted, Definition, field, fields, listed, rows};

fn definition<'a>(schema: &'a Value, partition_columns: &'a [&'a str]) -> Definition<'a> {
    Definition {
        schema,
        partition_columns,
        reader_features: &["typeWidening"],
        writer_features: &[],
        configuration: json!({}),
    }
}

fn changed(from: &str, to: &str) -> Value {
    json!({"delta.typeChanges": [{"fromType": from, "toType": to}]})
}

fn decimal(values: &[i128], precision: u8, scale: i8) -> ArrayRef {
    Arc::new(
        Decimal128Array::from_iter_values(values.iter().copied())
            .with_precision_and_scale(precision, scale)
            .unwrap(),
    )
}

/// Returns, for each widening, the narrower and the wider type, and the same extreme values as arrays of both types.
fn widenings() -> Vec<(&'static str, &'static str, ArrayRef, ArrayRef)> {
    let bytes: ArrayRef = Arc::new(Int8Array::from(vec![i8::MIN, 0, i8::MAX]));
    let shorts: ArrayRef = Arc::new(Int16Array::from(vec![i16::MIN, 0, i16::MAX]));
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![i32::MIN, 0, i32::MAX]));
    let longs: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN, 0, i64::MAX]));
    let (min, max) = (i32::MIN, i32::MAX);
    vec![
        ("byte", "short", bytes.clone(), Arc::new(Int16Array::from(vec![-128, 0, 127]))),
        ("byte", "integer", bytes.clone(), Arc::new(Int32Array::from(vec![-128, 0, 127]))),
        ("byte", "long", bytes.clone(), Arc::new(Int64Array::from(vec![-128, 0, 127]))),
        ("byte", "double", bytes.clone(), Arc::new(Float64Array::from(vec![-128., 0., 127.]))),
        ("byte", "decimal(5,2)", bytes, decimal(&[-12_800, 0, 12_700], 5, 2)),
        ("short", "integer", shorts.clone(), Arc::new(Int32Array::from(vec![-32_768, 0, 32_767]))),
        ("short", "long", shorts.clone(), Arc::new(Int64Array::from(vec![-32_768, 0, 32_767]))),
        ("short", "double", shorts.clone(), Arc::new(Float64Array::from(vec![-32_768., 0., 32_767.]))),
        ("short", "decimal(5,0)", shorts, decimal(&[-32_768, 0, 32_767], 5, 0)),
        ("integer", "long", ints.clone(), Arc::new(Int64Array::from(vec![min.into(), 0, max.into()]))),
        ("integer", "double", ints.clone(), Arc::new(Float64Array::from(vec![min.into(), 0., max.into()]))),
        (
            "integer",
            "decimal(38,28)",
            ints,
            decimal(&[i128::from(min) * 10i128.pow(28), 0, i128::from(max) * 10i128.pow(28)], 38, 28),
        ),
        ("long", "decimal(20,0)", longs, decimal(&[i64::MIN.into(), 0, i64::MAX.into()], 20, 0)),
        (
            "float",
            "double",
            Arc::new(Float32Array::from(vec![f32::MIN, 1.1, f32::INFINITY])),
            Arc::new(Float64Array::from(vec![f32::MIN.into(), 1.1f32.into(), f64::INFINITY])),
        ),
        (
            "decimal(3,1)",
            "decimal(20,5)",
            decimal(&[-999, 0, 999], 3, 1),
            decimal(&[-9_990_000, 0, 9_990_000], 20, 5),
        ),
        (
            "date",
            "timestamp_ntz",
            Arc::new(Date32Array::from(vec![-719_162, 0, 2_932_896])),
            Arc::new(TimestampMicrosecondArray::from(vec![
                -719_162 * 86_400_000_000,
                0,
                2_932_896 * 86_400_000_000,
            ])),
        ),
    ]
}

fn batch(column: &ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter([("c", column.clone())]).unwrap()
}

#[test]
fn old_and_new_files_in_one_column() {
    for (from, to, narrow, wide) in widenings() {
        let schema = fields(vec![field("c", json!(to), changed(from, to))]);
        let mut table = Crafted::new(&definition(&schema, &[]));
        table.add("old.parquet", &batch(&narrow), 2, json!({}));
        table.add("new.parquet", &batch(&wide), 2, json!({}));
        table.commit();
        let found = rows(&table.open().unwrap(), None, None).unwrap();
        let expected = concat(&[&wide, &wide]).unwrap();
        assert_eq!(found.column(0), &expected, "{from} to {to}");
    }
}

/// Types are widened in structs, lists, and keys and values of maps.
#[test]
fn nested_columns() {
    let in_files: [ArrayRef; 2] =
        [Arc::new(Int32Array::from(vec![i32::MIN, 7])), Arc::new(Int64Array::from(vec![i64::MAX, 7]))];
    let file = |values: &ArrayRef| {
        let item = |name: &str| Arc::new(Field::new(name, values.data_type().clone(), true));
        let offsets = || arrow::buffer::OffsetBuffer::from_lengths([1, 1]);
        let list: ArrayRef = Arc::new(ListArray::new(item("element"), offsets(), values.clone(), None));
        let structs: ArrayRef = Arc::new(StructArray::from(vec![(item("x"), values.clone())]));
        let key = Arc::new(Field::new("key", values.data_type().clone(), false));
        let pairs = StructArray::from(vec![(key, values.clone()), (item("value"), values.clone())]);
        let entries = Arc::new(Field::new("key_value", pairs.data_type().clone(), false));
        let map: ArrayRef = Arc::new(MapArray::new(entries, offsets(), pairs, None, false));
        RecordBatch::try_from_iter([("l", list), ("s", structs), ("m", map)]).unwrap()
    };
    let change = |path: &str| json!({"fromType": "integer", "toType": "long", "fieldPath": path});
    let schema = fields(vec![
        field(
            "l",
            json!({"type": "array", "elementType": "long", "containsNull": true}),
            json!({"delta.typeChanges": [change("element")]}),
        ),
        field("s", fields(vec![field("x", json!("long"), changed("integer", "long"))]), json!({})),
        field(
            "m",
            json!({"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": true}),
            json!({"delta.typeChanges": [change("key"), change("value")]}),
        ),
    ]);
    let mut table = Crafted::new(&definition(&schema, &[]));
    // A scan returns the rows of the file that was added last first.
    table.add("new.parquet", &file(&in_files[1]), 10, json!({}));
    table.add("old.parquet", &file(&in_files[0]), 10, json!({}));
    table.commit();
    let found = rows(&table.open().unwrap(), None, None).unwrap();
    let expected: ArrayRef = Arc::new(Int64Array::from(vec![i32::MIN.into(), 7, i64::MAX, 7]));
    assert_eq!(found.column(0).as_list::<i32>().values(), &expected);
    assert_eq!(found.column(1).as_struct().column(0), &expected);
    assert_eq!(found.column(2).as_map().keys(), &expected);
    assert_eq!(found.column(2).as_map().values(), &expected);
}

/// "Partition Value Serialization": the text of a narrower type is also valid for the wider type.
#[test]
fn partition_values_of_the_narrower_type() {
    let of = |from: &str, to: &str, texts: [&str; 2]| {
        let schema =
            fields(vec![field("c", json!("long"), json!({})), field("p", json!(to), changed(from, to))]);
        let mut table = Crafted::new(&definition(&schema, &["p"]));
        let data: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        // A scan begins with the file that was added last.
        for (number, text) in texts.iter().rev().enumerate() {
            table.add(
                &format!("{number}.parquet"),
                &batch(&data),
                10,
                json!({"partitionValues": {"p": text}}),
            );
        }
        table.commit();
        rows(&table.open().unwrap(), Some(&["p"]), None).unwrap().column(0).clone()
    };
    let long: ArrayRef = Arc::new(Int64Array::from(vec![-128, 1 << 40]));
    assert_eq!(&of("byte", "long", ["-128", "1099511627776"]), &long);
    let double: ArrayRef = Arc::new(Float64Array::from(vec![7.0, 7.5]));
    assert_eq!(&of("integer", "double", ["7", "7.5"]), &double);
    assert_eq!(&of("long", "decimal(22,2)", ["7", "7.25"]), &decimal(&[700, 725], 22, 2));
    assert_eq!(&of("decimal(3,1)", "decimal(22,2)", ["7.5", "7.25"]), &decimal(&[750, 725], 22, 2));
    let ntz: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![86_400_000_000, 86_400_000_001]));
    assert_eq!(&of("date", "timestamp_ntz", ["1970-01-02", "1970-01-02 00:00:00.000001"]), &ntz);
}

/// Statistics of old files are formatted for the narrower type. They must not make a scan skip a file with a matching
/// row.
#[test]
fn statistics_of_the_narrower_type() {
    for (from, to, narrow, bounds, matching, other) in [
        ("byte", "long", Arc::new(Int8Array::from(vec![5])) as ArrayRef, json!(5), "c = 5", "c > 5"),
        ("integer", "double", Arc::new(Int32Array::from(vec![5])), json!(5), "c = 5.0", "c < 4.5"),
        ("integer", "decimal(12,2)", Arc::new(Int32Array::from(vec![5])), json!(5), "c = 5.00", "c > 5.01"),
        ("decimal(3,1)", "decimal(12,2)", decimal(&[55], 3, 1), json!(5.5), "c = 5.50", "c > 5.51"),
        (
            "date",
            "timestamp_ntz",
            Arc::new(Date32Array::from(vec![1])),
            json!("1970-01-02"),
            "c = TIMESTAMP_NTZ '1970-01-02 00:00:00'",
            "c > TIMESTAMP_NTZ '1970-01-03 00:00:00'",
        ),
        // The float is a little more than 1.1, and a little less than 1.3.
        (
            "float",
            "double",
            Arc::new(Float32Array::from(vec![1.1])),
            json!(1.1),
            "c = 1.1000000238418579e0",
            "c < 1.0",
        ),
        ("float", "double", Arc::new(Float32Array::from(vec![1.3])), json!(1.3), "c < 1.3", "c < 1.2"),
    ] {
        let schema = fields(vec![field("c", json!(to), changed(from, to))]);
        let mut table = Crafted::new(&definition(&schema, &[]));
        let stats = json!({
            "numRecords": 1, "minValues": {"c": bounds}, "maxValues": {"c": bounds}, "nullCount": {"c": 0},
        });
        table.add("old.parquet", &batch(&narrow), 10, json!({"stats": stats.to_string()}));
        table.commit();
        let snapshot = table.open().unwrap();
        assert_eq!(
            rows(&snapshot, None, Some(matching)).unwrap().num_rows(),
            1,
            "{from} to {to}: {matching}"
        );
        assert_eq!(
            listed(&snapshot, &[ListColumn::Path], Some(other)).num_rows(),
            0,
            "{from} to {to}: {other}"
        );
        let found = listed(&snapshot, &[ListColumn::Stats], None);
        let max =
            found.column(0).as_struct().column_by_name("maxValues").unwrap().as_struct().column(0).clone();
        assert!(max.is_valid(0), "{from} to {to}");
    }
}

#[test]
fn other_changes_are_refused() {
    let schema = fields(vec![field(
        "s",
        fields(vec![field("c", json!("string"), changed("integer", "string"))]),
        json!({}),
    )]);
    let mut table = Crafted::new(&definition(&schema, &[]));
    table.commit();
    let error = table.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("'c' was changed from integer to string"), "{error}");
    // The table no longer has the feature.
    let mut table = Crafted::new(&Definition { reader_features: &[], ..definition(&schema, &[]) });
    table.commit();
    table.open().unwrap();
    // The log has no widening from the file's type to the table's type.
    let schema = fields(vec![field("c", json!("long"), json!({}))]);
    for stored in [
        Arc::new(StringArray::from(vec!["1"])) as ArrayRef,
        Arc::new(Float64Array::from(vec![1.0])),
        Arc::new(BooleanArray::from(vec![true])),
    ] {
        let mut table = Crafted::new(&definition(&schema, &[]));
        table.add("0.parquet", &batch(&stored), 10, json!({}));
        table.commit();
        assert_eq!(rows(&table.open().unwrap(), None, None).unwrap_err().kind(), ErrorKind::CorruptData);
    }
}

/// Column mapping and type widening both use a column's metadata.
#[test]
fn with_column_mapping() {
    let mut metadata = changed("float", "double");
    metadata.as_object_mut().unwrap().extend([
        ("delta.columnMapping.id".to_owned(), json!(1)),
        ("delta.columnMapping.physicalName".to_owned(), json!("p")),
    ]);
    let schema = fields(vec![field("c", json!("double"), metadata)]);
    let mut table = Crafted::new(&Definition {
        reader_features: &["typeWidening-preview", "columnMapping"],
        configuration: json!({"delta.columnMapping.mode": "id"}),
        ..definition(&schema, &[])
    });
    let id = HashMap::from([(parquet::arrow::PARQUET_FIELD_ID_META_KEY.to_owned(), "1".to_owned())]);
    let of_file = Schema::new(vec![Field::new("any", DataType::Float32, true).with_metadata(id)]);
    let data =
        RecordBatch::try_new(Arc::new(of_file), vec![Arc::new(Float32Array::from(vec![1.1]))]).unwrap();
    let stats =
        json!({"numRecords": 1, "minValues": {"p": 1.1}, "maxValues": {"p": 1.1}, "nullCount": {"p": 0}});
    table.add("0.parquet", &data, 10, json!({"stats": stats.to_string()}));
    table.commit();
    let snapshot = table.open().unwrap();
    assert_eq!(rows(&snapshot, None, Some("c = 1.1000000238418579e0")).unwrap().num_rows(), 1);
    assert_eq!(listed(&snapshot, &[ListColumn::Path], Some("c < 1.0")).num_rows(), 0);
}
