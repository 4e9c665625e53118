//! Tests that each type can be read in every encoding in which a writer may store it. Each value is either returned in
//! the table's type or refused.

use std::fs;
use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::*;
use parquet::data_type::{
    ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type as PInt32, Int96, Int96Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::PartitionRow;
use super::tests::Table;
use crate::error::ErrorKind;

fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn ntz() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

/// Returns the values of a table column of type `data_type`, read from a file that stores `stored`.
fn read(stored: ArrayRef, data_type: &DataType) -> Result<ArrayRef, crate::Error> {
    let mut table = Table::new(vec![Field::new("c", data_type.clone(), true)]);
    table.write(vec![("c", stored)]);
    table.rows(table.scan()).map(|rows| rows.column(0).clone())
}

fn reads(stored: impl Array + 'static, expected: impl Array + 'static) {
    let from = stored.data_type().clone();
    let found = read(Arc::new(stored), expected.data_type())
        .unwrap_or_else(|e| panic!("{from} as {}: {e}", expected.data_type()));
    assert_eq!(found.as_ref(), &expected as &dyn Array, "{from}");
}

fn refuses(stored: impl Array + 'static, data_type: &DataType) {
    let from = stored.data_type().clone();
    let error = read(Arc::new(stored), data_type).expect_err(&format!("{from} as {data_type}"));
    assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
    assert!(error.to_string().contains("column 'c") && error.path() == Some("part 0.parquet"), "{error}");
}

/// Reads all primitive types of the protocol's section "Schema Serialization Format".
#[test]
fn every_primitive_type_round_trips() {
    let decimals = Decimal128Array::from(vec![Some(-12_345), None, Some(0)]);
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(i8::MAX)])),
        Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(i16::MAX)])),
        Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX)])),
        Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)])),
        Arc::new(Float32Array::from(vec![Some(f32::MIN), None, Some(f32::INFINITY)])),
        Arc::new(Float64Array::from(vec![Some(-0.0), None, Some(f64::MIN_POSITIVE)])),
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        Arc::new(StringArray::from(vec![Some("é"), None, Some("")])),
        Arc::new(BinaryArray::from(vec![Some(&b"\xff"[..]), None, Some(b"")])),
        Arc::new(Date32Array::from(vec![Some(-719_162), None, Some(2_932_896)])),
        Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(i64::MAX)]).with_timezone("UTC")),
        Arc::new(TimestampMicrosecondArray::from(vec![Some(i64::MIN), None, Some(1)])),
        Arc::new(decimals.clone().with_precision_and_scale(5, 0).unwrap()),
        Arc::new(decimals.clone().with_precision_and_scale(18, 7).unwrap()),
        Arc::new(decimals.with_precision_and_scale(38, 38).unwrap()),
    ];
    for array in arrays {
        assert_eq!(&read(array.clone(), array.data_type()).unwrap(), &array);
    }
}

#[test]
fn strings_and_binary_of_any_layout_are_read() {
    let expected = StringArray::from(vec![Some("a"), None, Some("longer than twelve")]);
    reads(LargeStringArray::from_iter(expected.iter()), expected.clone());
    reads(StringViewArray::from_iter(expected.iter()), expected.clone());
    reads(DictionaryArray::<Int8Type>::from_iter(expected.iter()), expected.clone());
    reads(BinaryArray::from_iter(expected.iter()), expected);
    reads(BinaryViewArray::from_iter_values([b"ab"]), BinaryArray::from_iter_values([b"ab"]));
    reads(
        FixedSizeBinaryArray::try_from_iter([[1u8, 2]].iter()).unwrap(),
        BinaryArray::from_iter_values([[1u8, 2]]),
    );
    refuses(BinaryArray::from_iter_values([b"\xff"]), &DataType::Utf8);
    refuses(StringArray::from(vec!["1"]), &DataType::Int64);
    refuses(Int64Array::from(vec![1]), &DataType::Utf8);
}

#[test]
fn numbers_of_other_widths_are_read_if_they_fit() {
    reads(Int32Array::from(vec![-128, 127]), Int8Array::from(vec![-128, 127]));
    reads(Int32Array::from(vec![-300, 300]), Int16Array::from(vec![-300, 300]));
    reads(Int16Array::from(vec![-300, 300]), Int64Array::from(vec![-300, 300]));
    reads(UInt32Array::from(vec![u32::MAX]), Int64Array::from(vec![i64::from(u32::MAX)]));
    reads(Int32Array::from(vec![i32::MAX]), Float64Array::from(vec![f64::from(i32::MAX)]));
    reads(Float32Array::from(vec![0.1]), Float64Array::from(vec![f64::from(0.1f32)]));
    reads(NullArray::new(2), Int32Array::from(vec![None, None]));
    refuses(Int32Array::from(vec![128]), &DataType::Int8);
    refuses(Int64Array::from(vec![1 << 40]), &DataType::Int32);
    refuses(UInt64Array::from(vec![u64::MAX]), &DataType::Int64);
    refuses(Int64Array::from(vec![1]), &DataType::Float64);
    refuses(Float64Array::from(vec![1.0]), &DataType::Float32);
    refuses(Float64Array::from(vec![1.0]), &DataType::Int64);
    refuses(BooleanArray::from(vec![true]), &DataType::Int32);
}

#[test]
fn decimals_of_other_precisions_are_read_if_they_fit() {
    let decimal = |value: i128, precision, scale| {
        Decimal128Array::from(vec![value]).with_precision_and_scale(precision, scale).unwrap()
    };
    reads(decimal(-12_345, 9, 2), decimal(-123_450, 20, 3));
    reads(decimal(99_999, 18, 2), decimal(99_999, 5, 2));
    reads(Int32Array::from(vec![-7]), decimal(-700, 12, 2));
    reads(
        Decimal256Array::from(vec![i256::from(5)]).with_precision_and_scale(50, 1).unwrap(),
        decimal(50, 9, 2),
    );
    refuses(decimal(100_000, 18, 2), &DataType::Decimal128(5, 2));
    refuses(decimal(1, 18, 2), &DataType::Decimal128(18, 1));
    refuses(Int32Array::from(vec![1000]), &DataType::Decimal128(5, 2));
}

#[test]
fn timestamps_of_other_units_and_kinds_are_read() {
    let micros = |values: Vec<i64>| TimestampMicrosecondArray::from(values);
    reads(TimestampMillisecondArray::from(vec![-1, 2]), micros(vec![-1000, 2000]));
    reads(TimestampMillisecondArray::from(vec![-1]).with_timezone("UTC"), micros(vec![-1000]));
    reads(
        TimestampNanosecondArray::from(vec![-1, 1999]).with_timezone("UTC"),
        micros(vec![-1, 1]).with_timezone("UTC"),
    );
    reads(micros(vec![5]), micros(vec![5]).with_timezone("UTC"));
    reads(micros(vec![5]).with_timezone("Europe/Zurich"), micros(vec![5]).with_timezone("UTC"));
    reads(Date32Array::from(vec![-1]), micros(vec![-86_400_000_000]));
    refuses(TimestampMillisecondArray::from(vec![i64::MAX]), &utc());
    refuses(Date32Array::from(vec![i32::MAX]), &ntz());
    refuses(Date32Array::from(vec![1]), &utc());
    refuses(Int64Array::from(vec![1]), &utc());
}

fn strukt(fields: Vec<(&str, DataType, bool)>) -> Fields {
    fields.into_iter().map(|(name, data_type, nullable)| Field::new(name, data_type, nullable)).collect()
}

#[test]
fn struct_fields_may_be_added_removed_and_reordered() {
    let nulls = NullBuffer::from(vec![true, false, true]);
    let stored = StructArray::try_new(
        strukt(vec![
            ("gone", DataType::Int32, true),
            ("B", DataType::Int16, true),
            ("a", DataType::LargeUtf8, true),
        ]),
        vec![
            Arc::new(Int32Array::from(vec![1, 2, 3])),
            Arc::new(Int16Array::from(vec![Some(4), Some(5), None])),
            Arc::new(LargeStringArray::from(vec!["x", "y", "z"])),
        ],
        Some(nulls.clone()),
    )
    .unwrap();
    let expected = StructArray::try_new(
        strukt(vec![
            ("a", DataType::Utf8, true),
            ("new", DataType::Date32, true),
            ("b", DataType::Int64, true),
        ]),
        vec![
            Arc::new(StringArray::from(vec![Some("x"), None, Some("z")])),
            Arc::new(Date32Array::new_null(3)),
            Arc::new(Int64Array::from(vec![Some(4), None, None])),
        ],
        Some(nulls.clone()),
    )
    .unwrap();
    reads(stored.clone(), expected);
    // The file's struct and the table's struct have no field in common, but the NULLs of the struct itself are still
    // known.
    let fields = strukt(vec![("new", DataType::Int32, true)]);
    reads(stored.clone(), StructArray::new(fields, vec![Arc::new(Int32Array::new_null(3))], Some(nulls)));
    // The missing field would be NULL, but it is NOT NULL in the table.
    refuses(stored.clone(), &DataType::Struct(strukt(vec![("new", DataType::Int32, false)])));
    refuses(stored.clone(), &DataType::Struct(strukt(vec![("b", DataType::Int16, false)])));
    refuses(stored.clone(), &DataType::Struct(strukt(vec![("a", DataType::Int32, true)])));
    refuses(stored, &DataType::Int32);
}

#[test]
fn lists_and_maps_with_other_inner_names_are_read() {
    let offsets = || OffsetBuffer::new(vec![0, 2, 2, 3].into());
    let nulls = || Some(NullBuffer::from(vec![true, false, true]));
    let list = |name: &str, values: ArrayRef| {
        ListArray::new(
            Arc::new(Field::new(name, values.data_type().clone(), true)),
            offsets(),
            values,
            nulls(),
        )
    };
    let expected = list("element", Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])));
    reads(list("item", Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]))), expected.clone());
    let element = Arc::new(Field::new("x", DataType::Int64, true));
    let large = LargeListArray::new(
        element,
        OffsetBuffer::new(vec![0, 2, 2, 3].into()),
        expected.values().clone(),
        nulls(),
    );
    reads(large, expected.clone());

    let map = |names: [&str; 3], keys: ArrayRef, values: ArrayRef| {
        let fields = strukt(vec![
            (names[1], keys.data_type().clone(), false),
            (names[2], values.data_type().clone(), true),
        ]);
        let entries = StructArray::new(fields, vec![keys, values], None);
        MapArray::new(
            Arc::new(Field::new(names[0], entries.data_type().clone(), false)),
            offsets(),
            entries,
            nulls(),
            false,
        )
    };
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let inner = |names: [&str; 2]| -> ArrayRef {
        let x: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let columns =
            names.iter().map(|name| (Arc::new(Field::new(*name, DataType::Int32, true)), x.clone()));
        Arc::new(StructArray::from(columns.collect::<Vec<_>>()))
    };
    let only_y: ArrayRef = Arc::new(inner(["x", "y"]).as_struct().clone());
    let stored = map(["entries", "keys", "values"], keys.clone(), only_y);
    reads(stored.clone(), map(["key_value", "key", "value"], keys.clone(), inner(["y", "X"])));
    refuses(stored, expected.data_type());
    let twice = map(["key_value", "key", "value"], Arc::new(Int32Array::from(vec![1, 2, 3])), keys.clone());
    reads(twice, map(["key_value", "key", "value"], Arc::new(Int64Array::from(vec![1, 2, 3])), keys));
}

#[test]
fn missing_required_columns_and_ambiguous_names_are_errors() {
    let mut table = Table::new(vec![Field::new("c", DataType::Int32, false)]);
    table.write(vec![("c", Arc::new(Int32Array::from(vec![Some(1), None])))]);
    assert_eq!(table.error().kind(), ErrorKind::CorruptData);
    assert!(table.error().to_string().contains("'c' must not be NULL"));

    let mut table = Table::new(vec![Field::new("Cc", DataType::Int32, true)]);
    let one = || Arc::new(Int32Array::from(vec![1]));
    let two = Arc::new(Int32Array::from(vec![2]));
    table.write(vec![("cc", one()), ("Cc", two.clone())]);
    assert_eq!(table.rows(table.scan()).unwrap().column(0).as_ref(), two.as_ref() as &dyn Array);
    table.files.clear();
    table.write(vec![("cc", one()), ("CC", two)]);
    assert_eq!(table.error().kind(), ErrorKind::CorruptData);
}

#[test]
fn missing_nested_columns_are_null() {
    let required = strukt(vec![("r", DataType::Int32, false)]);
    let list = DataType::List(Arc::new(Field::new("element", DataType::Struct(required.clone()), false)));
    let mut table = Table::new(vec![
        Field::new("s", DataType::Struct(required), true),
        Field::new("l", list, true),
        Field::new("v", DataType::Null, true),
    ]);
    table.write(vec![("other", Arc::new(Int32Array::from(vec![1, 2, 3])))]);
    let rows = table.rows(table.scan()).unwrap();
    assert!(rows.num_rows() == 3 && rows.columns().iter().all(|column| column.logical_null_count() == 3));
}

/// Writes a file with Parquet's low-level writer. `write` is called for each column in turn.
fn parquet_file(
    table: &mut Table,
    schema: &str,
    write: impl Fn(usize, &mut parquet::file::writer::SerializedColumnWriter<'_>),
) {
    let file = fs::File::create(table.directory.path().join("own.parquet")).unwrap();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut index = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        write(index, &mut column);
        column.close().unwrap();
        index += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
    table.add("own.parquet", PartitionRow::empty());
}

/// An INT96 timestamp consists of the nanoseconds of the day, followed by the Julian day.
#[test]
fn int96_keeps_the_years_1_to_9999() {
    let micros = [-62_135_596_800_000_000, -1, 0, 1_600_000_000_123_456, 253_402_300_799_999_999];
    let int96: Vec<Int96> = micros
        .iter()
        .map(|micros: &i64| {
            let (day, nanos) =
                (micros.div_euclid(86_400_000_000) + 2_440_588, micros.rem_euclid(86_400_000_000) * 1000);
            let mut value = Int96::new();
            value.set_data(nanos as u32, (nanos >> 32) as u32, day as u32);
            value
        })
        .collect();
    let expected = TimestampMicrosecondArray::from(micros.to_vec()).with_timezone("UTC");
    let inner = strukt(vec![("n", DataType::Int64, true), ("t", utc(), true)]);
    let list = DataType::List(Arc::new(Field::new("element", utc(), true)));
    let mut table = Table::new(vec![
        Field::new("t", utc(), true),
        Field::new("s", DataType::Struct(inner), true),
        Field::new("l", list, true),
    ]);
    let schema = "message m { required int32 before;
        optional group l (LIST) { repeated group list { optional int96 element; } }
        required group s { required int32 n; required int96 t; } required int96 t; }";
    parquet_file(&mut table, schema, |index, column| {
        match index {
            0 | 2 => column.typed::<PInt32>().write_batch(&[1, 2, 3, 4, 5], None, None),
            1 => column.typed::<Int96Type>().write_batch(&int96, Some(&[3; 5]), Some(&[0; 5])),
            _ => column.typed::<Int96Type>().write_batch(&int96, None, None),
        }
        .unwrap();
    });
    let rows = table.rows(table.scan()).unwrap();
    assert_eq!(rows.column(0).as_ref(), &expected as &dyn Array);
    assert_eq!(rows.column(1).as_struct().column_by_name("t").unwrap().as_ref(), &expected as &dyn Array);
    assert_eq!(rows.column(2).as_list::<i32>().values().as_ref(), &expected as &dyn Array);
}

/// Reads two-level lists, and decimals in byte arrays, as old writers stored them (Parquet's "Backward-compatibility
/// rules").
#[test]
fn encodings_of_old_writers_are_read() {
    let list = DataType::List(Arc::new(Field::new("element", DataType::Int32, true)));
    let map = Fields::from(vec![
        Field::new("key", DataType::Int32, false),
        Field::new("value", DataType::Int32, true),
    ]);
    let map = DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(map), false)), false);
    let decimal = DataType::Decimal128(10, 2);
    let names = [
        ("two", &list),
        ("bare", &list),
        ("three", &list),
        ("m", &map),
        ("fixed", &decimal),
        ("bytes", &decimal),
    ];
    let mut table = Table::new(
        names.iter().map(|(name, data_type)| Field::new(*name, (*data_type).clone(), true)).collect(),
    );
    let schema = "message m { optional group two (LIST) { repeated int32 array; } repeated int32 bare;
        optional group three (LIST) { repeated group bag { optional int32 array_element; } }
        optional group m (MAP_KEY_VALUE) { repeated group map { required int32 key; optional int32 value; } }
        required fixed_len_byte_array(5) fixed (DECIMAL(10,2)); required binary bytes (DECIMAL(10,2)); }";
    parquet_file(&mut table, schema, |index, column| {
        let [defined_1, defined_2, defined_3] = [[1; 3], [2; 3], [3; 3]];
        let repeated = Some(&[0, 1, 0][..]);
        let bytes = [ByteArray::from(vec![0xff]), ByteArray::from(vec![1, 0])];
        match index {
            0 => column.typed::<PInt32>().write_batch(&[1, 2, 3], Some(&defined_2), repeated),
            1 => column.typed::<PInt32>().write_batch(&[1, 2, 3], Some(&defined_1), repeated),
            2 => column.typed::<PInt32>().write_batch(&[1, 2, 3], Some(&defined_3), repeated),
            3 => column.typed::<PInt32>().write_batch(&[1, 2, 3], Some(&defined_2), repeated),
            4 => column.typed::<PInt32>().write_batch(&[1, 2, 3], Some(&defined_3), repeated),
            5 => {
                let padded =
                    [[0xffu8; 5], [0, 0, 0, 1, 0]].map(|value| FixedLenByteArray::from(value.to_vec()));
                column.typed::<FixedLenByteArrayType>().write_batch(&padded, None, None)
            }
            _ => column.typed::<ByteArrayType>().write_batch(&bytes, None, None),
        }
        .unwrap();
    });
    let rows = table.rows(table.scan()).unwrap();
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        Some(vec![Some(3)]),
    ]);
    for index in 0..3 {
        let found = rows.column(index).as_list::<i32>();
        assert_eq!((found.offsets(), found.values()), (lists.offsets(), lists.values()), "{index}");
    }
    assert_eq!(rows.column(3).as_map().values(), lists.values());
    let decimals = Decimal128Array::from(vec![-1, 256]).with_precision_and_scale(10, 2).unwrap();
    assert_eq!(rows.column(4).as_ref(), &decimals as &dyn Array);
    assert_eq!(rows.column(5).as_ref(), &decimals as &dyn Array);
}

/// A repeated group is itself the element of a list if it has several fields, or if its name is `array` or ends in
/// `_tuple`. (Parquet's "Backward-compatibility rules" for lists.)
#[test]
fn two_level_lists_with_nested_elements_are_read() {
    let ints = |names: &[&str]| {
        DataType::Struct(names.iter().map(|name| Field::new(*name, DataType::Int32, true)).collect())
    };
    let list = |element: DataType| DataType::List(Arc::new(Field::new("element", element, true)));
    let fields = [
        ("pairs", list(ints(&["x", "y"]))),
        ("single", list(ints(&["x"]))),
        ("tuple", list(ints(&["x"]))),
        ("nested", list(list(DataType::Int32))),
    ];
    let mut table = Table::new(fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec());
    let schema = "message m { optional group pairs (LIST) {
        repeated group anything { required int32 x; optional int32 y; } }
        optional group single (LIST) { repeated group array { required int32 x; } }
        optional group tuple (LIST) { repeated group tuple_tuple { required int32 x; } }
        optional group nested (LIST) { repeated group array (LIST) { repeated int32 array; } } }";
    parquet_file(&mut table, schema, |index, column| {
        let (levels, repeated) =
            if index == 1 || index == 4 { ([3; 3], [0, 1, 0]) } else { ([2; 3], [0, 1, 0]) };
        let repeated = if index == 4 { [0, 2, 1] } else { repeated };
        column.typed::<PInt32>().write_batch(&[1, 2, 3], Some(&levels), Some(&repeated)).unwrap();
        if index == 4 {
            // The second row is an empty list.
            column.typed::<PInt32>().write_batch(&[], Some(&[1]), Some(&[0])).unwrap();
        }
    });
    let rows = table.rows(table.scan()).unwrap();
    let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    for (index, columns) in [(0, 2), (1, 1), (2, 1)] {
        let found = rows.column(index).as_list::<i32>();
        assert_eq!(found.value_offsets(), [0, 2, 3]);
        assert!(found.values().as_struct().columns().iter().all(|column| column == &values));
        assert_eq!(found.values().as_struct().num_columns(), columns);
    }
    let nested = rows.column(3).as_list::<i32>();
    assert_eq!(nested.value_offsets(), [0, 2, 2]);
    assert_eq!(
        (nested.values().as_list::<i32>().value_offsets(), nested.values().as_list::<i32>().values()),
        (&[0, 2, 3][..], &values)
    );
}

/// Some systems write map keys as optional. They are valid as long as no key is missing.
#[test]
fn maps_with_optional_keys_are_read() {
    let entries = strukt(vec![("key", DataType::Int32, false), ("value", DataType::Int32, true)]);
    let map = DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries), false)), false);
    for (levels, is_fine) in [([3i16, 3, 3], true), ([3, 2, 3], false)] {
        let mut table = Table::new(vec![Field::new("c", map.clone(), true)]);
        let entries = "repeated group map { optional int32 k; optional int32 v; }";
        let schema = &format!("message m {{ optional group c (MAP) {{ {entries} }} }}");
        parquet_file(&mut table, schema, |index, column| {
            let levels = if index == 0 { levels } else { [3; 3] };
            let values = &[1, 2, 3][..levels.iter().filter(|level| **level == 3).count()];
            column.typed::<PInt32>().write_batch(values, Some(&levels), Some(&[0, 1, 0])).unwrap();
        });
        if !is_fine {
            assert_eq!(table.error().kind(), ErrorKind::CorruptData);
            continue;
        }
        let rows = table.rows(table.scan()).unwrap();
        assert_eq!(rows.column(0).as_map().keys().as_primitive::<Int32Type>().values(), &[1, 2, 3]);
    }
}
