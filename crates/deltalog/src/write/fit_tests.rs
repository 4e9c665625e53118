//! Tests that values which fit are preserved, and that others are refused with an error that names their column.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Int32Type, Schema, SchemaRef, TimeUnit, i256};
use arrow::record_batch::RecordBatch;
use proptest::prelude::*;

use super::fit;
use crate::ErrorKind;

fn schema(fields: impl IntoIterator<Item = Field>) -> SchemaRef {
    Arc::new(Schema::new(fields.into_iter().collect::<Vec<_>>()))
}

fn batch(column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap()
}

/// Fits `column` to a table with one column of type `to`.
fn fitted(column: ArrayRef, to: DataType) -> crate::Result<ArrayRef> {
    let table = schema([Field::new("c", to, true)]);
    let batch = fit(&batch(column), &table)?;
    assert_eq!(batch.schema(), table);
    Ok(Arc::clone(batch.column(0)))
}

fn wide(unscaled: Vec<i256>, precision: u8, scale: i8) -> Decimal256Array {
    Decimal256Array::from(unscaled).with_precision_and_scale(precision, scale).unwrap()
}

fn decimals(unscaled: Vec<i128>, precision: u8, scale: i8) -> Decimal128Array {
    Decimal128Array::from(unscaled).with_precision_and_scale(precision, scale).unwrap()
}

/// Returns the error message of `result`, which must name the column `name`.
fn refusal(result: crate::Result<impl std::fmt::Debug>, name: &str) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    let message = error.to_string();
    assert!(message.contains(&format!("'{name}'")), "{message}");
    message
}

fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn ntz() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

#[test]
fn columns_are_matched_by_name() {
    let table = schema([
        Field::new("A", DataType::Int32, true),
        Field::new("ß", DataType::Utf8, true),
        Field::new("gone", utc(), true),
    ]);
    let data = RecordBatch::try_from_iter([
        ("ß", Arc::new(StringArray::from(vec!["x"])) as ArrayRef),
        ("a", Arc::new(Int32Array::from(vec![1]))),
    ]);
    let fitted = fit(&data.unwrap(), &table).unwrap();
    assert_eq!(fitted.schema(), table);
    assert_eq!(fitted.column(0).as_primitive::<Int32Type>().values(), &[1]);
    assert_eq!(fitted.column(1).as_string::<i32>().value(0), "x");
    assert_eq!(fitted.column(2).null_count(), 1);
}

#[test]
fn missing_extra_and_duplicate_columns() {
    let one: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let data = |names: &[&str]| {
        RecordBatch::try_from_iter(names.iter().map(|name| (*name, Arc::clone(&one)))).unwrap()
    };
    let table = schema([Field::new("a", DataType::Int32, false)]);
    assert!(refusal(fit(&data(&["a", "b"]), &table), "b").contains("no column"));
    assert!(refusal(fit(&data(&["a", "A"]), &table), "A").contains("the same column"));
    let required = schema([Field::new("a", DataType::Int32, false), Field::new("r", DataType::Int32, false)]);
    assert!(refusal(fit(&data(&["a"]), &required), "r").contains("required"));
    let nested = |inner: Vec<Field>| Field::new("s", DataType::Struct(Fields::from(inner)), true);
    let int = |name: &str, nullable| Field::new(name, DataType::Int32, nullable);
    let from: ArrayRef = Arc::new(StructArray::from(vec![(Arc::new(int("x", true)), one.clone())]));
    let data = RecordBatch::try_from_iter([("s", from)]).unwrap();
    refusal(fit(&data, &schema([nested(vec![int("y", true)])])), "s.x");
    refusal(fit(&data, &schema([nested(vec![int("x", true), int("y", false)])])), "s.y");
    let fitted = fit(&data, &schema([nested(vec![int("y", true), int("X", true)])])).unwrap();
    assert_eq!(fitted.column(0).as_struct().column(0).null_count(), 1);
}

#[test]
fn every_layout_of_the_same_values_gives_the_same_array() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("bb"), Some("a")]));
    let dictionary = DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8View));
    for layout in [DataType::LargeUtf8, DataType::Utf8View, dictionary] {
        let other = cast(&texts, &layout).unwrap();
        assert_eq!(&fitted(other.slice(1, 3), DataType::Utf8).unwrap(), &texts.slice(1, 3), "{layout}");
    }
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&b"xy"[..]), None]));
    for layout in [DataType::LargeBinary, DataType::BinaryView, DataType::FixedSizeBinary(2)] {
        assert_eq!(&fitted(cast(&bytes, &layout).unwrap(), DataType::Binary).unwrap(), &bytes, "{layout}");
    }
    let runs =
        RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3]), &Int64Array::from(vec![Some(7), None]))
            .unwrap();
    assert_eq!(
        &fitted(Arc::new(runs), DataType::Int64).unwrap(),
        &(Arc::new(Int64Array::from(vec![Some(7), Some(7), None])) as ArrayRef)
    );
    let nulls: ArrayRef = Arc::new(NullArray::new(2));
    assert_eq!(fitted(nulls, DataType::Int64).unwrap().null_count(), 2);
}

#[test]
fn lists_of_every_layout_give_the_same_array() {
    let element = |data_type| Arc::new(Field::new("item", data_type, true));
    let target = DataType::List(Arc::new(Field::new("element", DataType::Int64, true)));
    let source = FixedSizeListArray::new(
        element(DataType::Int32),
        2,
        Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(3), None, Some(5), Some(6)])),
        Some(NullBuffer::from(vec![true, true, false])),
    );
    let expected = ListArray::new(
        Arc::new(Field::new("element", DataType::Int64, true)),
        OffsetBuffer::from_lengths([2, 2, 0]),
        Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(3), None])),
        Some(NullBuffer::from(vec![true, true, false])),
    );
    let source: ArrayRef = Arc::new(source);
    let inner = || element(DataType::Int32);
    let layouts = [
        DataType::List(inner()),
        DataType::LargeList(inner()),
        DataType::ListView(inner()),
        DataType::LargeListView(inner()),
    ];
    for layout in layouts.into_iter().chain([source.data_type().clone()]) {
        let other = cast(&source, &layout).unwrap();
        assert_eq!(
            fitted(Arc::clone(&other), target.clone()).unwrap().as_list::<i32>(),
            &expected,
            "{layout}"
        );
        assert_eq!(
            fitted(other.slice(1, 2), target.clone()).unwrap().as_list::<i32>(),
            &expected.slice(1, 2),
            "{layout}"
        );
    }
    refusal(
        fitted(source, DataType::List(Arc::new(Field::new("element", DataType::Utf8, true)))),
        "c.element",
    );
}

#[test]
fn maps_are_matched_by_the_position_of_key_and_value() {
    let entries = |key: &str, text: DataType, value: &str, number: DataType| {
        Fields::from(vec![Field::new(key, text, false), Field::new(value, number, true)])
    };
    let from = entries("keys", DataType::LargeUtf8, "values", DataType::Int32);
    let keys: ArrayRef = Arc::new(LargeStringArray::from(vec!["a", "b", "c"]));
    let pairs = StructArray::new(
        from.clone(),
        vec![keys, Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]))],
        None,
    );
    let map = MapArray::new(
        Arc::new(Field::new("entries", DataType::Struct(from), false)),
        OffsetBuffer::from_lengths([1, 1, 1]),
        pairs,
        Some(NullBuffer::from(vec![true, true, false])),
        true,
    );
    let to = entries("key", DataType::Utf8, "value", DataType::Int64);
    let target = DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(to), false)), false);
    let fitted = fitted(Arc::new(map.slice(1, 2)), target).unwrap();
    let fitted = fitted.as_map();
    assert_eq!((fitted.len(), fitted.null_count()), (2, 1));
    assert_eq!(fitted.keys().as_string::<i32>(), &StringArray::from(vec!["b"]));
    assert_eq!(fitted.values().as_ref(), &Int64Array::from(vec![None]) as &dyn Array);
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let cases: Vec<(ArrayRef, DataType)> = vec![
        (Arc::new(UInt64Array::from(vec![1 << 63])), DataType::Int64),
        (Arc::new(UInt8Array::from(vec![128])), DataType::Int8),
        (Arc::new(Int64Array::from(vec![1 << 31])), DataType::Int32),
        (Arc::new(Int64Array::from(vec![(1 << 53) + 1])), DataType::Float64),
        (Arc::new(Int64Array::from(vec![i64::MAX])), DataType::Float64),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), DataType::Float64),
        (Arc::new(Int32Array::from(vec![i32::MAX])), DataType::Float32),
        (Arc::new(Float64Array::from(vec![1.0])), DataType::Float32),
        (Arc::new(Float64Array::from(vec![1.0])), DataType::Int64),
        (Arc::new(Int32Array::from(vec![1000])), DataType::Decimal128(4, 1)),
        (
            Arc::new(Decimal128Array::from(vec![105]).with_precision_and_scale(5, 2).unwrap()),
            DataType::Decimal128(5, 1),
        ),
        (
            Arc::new(Decimal128Array::from(vec![99_999]).with_precision_and_scale(5, 0).unwrap()),
            DataType::Decimal128(5, 1),
        ),
        (
            Arc::new(Decimal128Array::from(vec![99_999]).with_precision_and_scale(5, 1).unwrap()),
            DataType::Decimal128(4, 1),
        ),
        (Arc::new(wide(vec![i256::MAX], 76, 0)), DataType::Decimal128(38, 0)),
        (Arc::new(decimals(vec![1 << 63], 20, 0)), DataType::Int64),
        (Arc::new(decimals(vec![10], 5, 1)), DataType::Int64),
        (cast(&decimals(vec![128], 9, 0), &DataType::Decimal32(9, 0)).unwrap(), DataType::Int8),
        (Arc::new(decimals(vec![(1 << 53) + 1], 20, 0)), DataType::Float64),
        (Arc::new(StringArray::from(vec!["1"])), DataType::Int32),
        (Arc::new(Int32Array::from(vec![1])), DataType::Utf8),
        (Arc::new(StringArray::from(vec!["1"])), DataType::Binary),
        (Arc::new(BooleanArray::from(vec![true])), DataType::Int32),
        (Arc::new(Int32Array::from(vec![1])), DataType::Date32),
        (
            Arc::new(Int32Array::from(vec![1])),
            DataType::List(Arc::new(Field::new("element", DataType::Int32, true))),
        ),
    ];
    for (column, to) in cases {
        refusal(fitted(column, to), "c");
    }
}

/// Arrow does not check that the decimals of an array have as few digits as its type.
#[test]
fn decimals_with_more_digits_than_their_type_are_refused() {
    let nested = |decimals: &Decimal128Array| -> ArrayRef {
        let fields = vec![Field::new("d", decimals.data_type().clone(), true)];
        let pairs = StructArray::new(fields.into(), vec![Arc::new(decimals.clone())], None);
        let offsets = OffsetBuffer::from_repeated_length(1, pairs.len());
        let element = Arc::new(Field::new("element", pairs.data_type().clone(), true));
        Arc::new(ListArray::new(element, offsets, Arc::new(pairs), None))
    };
    let same = |column: ArrayRef| fitted(Arc::clone(&column), column.data_type().clone());
    for digits in [5, 15, 38] {
        let most = 10_i128.pow(digits.into()) - 1;
        let fits = decimals(vec![most, -most], digits, 2);
        assert_eq!(&*same(Arc::new(fits.clone())).unwrap(), &fits);
        assert_eq!(&same(nested(&fits)).unwrap(), &nested(&fits));
        for value in [most + 1, -most - 1] {
            let other = decimals(vec![0, value], digits, 2);
            refusal(same(nested(&other)), "c.element.d");
            let said = refusal(same(Arc::new(other.clone())), "c");
            assert!(
                said.contains(&format!("a value of type decimal({digits},2), which does not fit")),
                "{said}"
            );
            // Memory of NULLs may have any content.
            let hidden = decimals(vec![0, value], digits, 2).into_parts();
            let nulls = NullBuffer::from(vec![true, false]);
            let hidden =
                Decimal128Array::new(hidden.1, Some(nulls)).with_precision_and_scale(digits, 2).unwrap();
            assert_eq!(same(Arc::new(hidden)).unwrap().null_count(), 1);
        }
    }
}

#[test]
fn numbers_that_fit_are_preserved() {
    let equal = |column: ArrayRef, expected: ArrayRef| {
        assert_eq!(&fitted(column, expected.data_type().clone()).unwrap(), &expected);
    };
    equal(Arc::new(UInt64Array::from(vec![u64::MAX >> 1])), Arc::new(Int64Array::from(vec![i64::MAX])));
    equal(
        Arc::new(Int64Array::from(vec![Some(1 << 53), None, Some(i64::MIN)])),
        Arc::new(Float64Array::from(vec![
            Some(9_007_199_254_740_992.0),
            None,
            Some(-9.223_372_036_854_776e18),
        ])),
    );
    equal(Arc::new(UInt64Array::from(vec![1 << 63])), Arc::new(Float32Array::from(vec![9.223_372e18])));
    equal(Arc::new(UInt32Array::from(vec![Some(7), None])), Arc::new(Int32Array::from(vec![Some(7), None])));
    equal(Arc::new(Float32Array::from(vec![0.1])), Arc::new(Float64Array::from(vec![f64::from(0.1f32)])));
    let decimal = |value, precision, scale| decimals(vec![value], precision, scale);
    let largest = || Arc::new(UInt64Array::from(vec![u64::MAX]));
    equal(largest(), Arc::new(decimal(u64::MAX.into(), 20, 0)));
    equal(largest(), Arc::new(decimal(i128::from(u64::MAX) * 10, 21, 1)));
    equal(Arc::new(decimal(i64::MIN.into(), 38, 0)), Arc::new(Int64Array::from(vec![i64::MIN])));
    equal(Arc::new(decimal(1 << 24, 20, 0)), Arc::new(Float32Array::from(vec![16_777_216.0])));
    let narrow: ArrayRef = Arc::new(decimal(-7, 9, 0));
    for width in [DataType::Decimal32(9, 0), DataType::Decimal64(9, 0)] {
        equal(cast(&narrow, &width).unwrap(), Arc::new(Int8Array::from(vec![-7])));
        equal(cast(&narrow, &width).unwrap(), Arc::new(Float64Array::from(vec![-7.0])));
    }
    for width in [DataType::Decimal32(9, -5), DataType::Decimal256(40, -5)] {
        let thousands = || cast(&decimals(vec![2_900_000, -99_999_900_000], 20, 0), &width).unwrap();
        equal(thousands(), Arc::new(Int64Array::from(vec![2_900_000, -99_999_900_000])));
        equal(thousands(), Arc::new(Float64Array::from(vec![2.9e6, -9.99999e10])));
        equal(thousands(), Arc::new(decimals(vec![29_000_000, -999_999_000_000], 38, 1)));
    }
    equal(Arc::new(decimal(150, 5, 2)), Arc::new(decimal(15, 5, 1)));
    equal(Arc::new(decimal(-15, 5, 1)), Arc::new(decimal(-1500, 10, 3)));
    equal(Arc::new(Int32Array::from(vec![-7])), Arc::new(decimal(-700, 5, 2)));
    equal(Arc::new(wide(vec![i256::from_i128(5)], 40, 0)), Arc::new(decimal(50, 3, 1)));
}

#[test]
fn an_error_names_the_first_value_that_does_not_fit() {
    let cases: Vec<(ArrayRef, DataType, &str)> = vec![
        (
            Arc::new(UInt16Array::from(vec![Some(127), None, Some(128), Some(300)])),
            DataType::Int8,
            "has the value 128 of type UInt16, which does not fit type byte",
        ),
        (
            Arc::new(UInt64Array::from(vec![1, 1 << 63])),
            DataType::Int64,
            "has the value 9223372036854775808 of type UInt64, which does not fit type long",
        ),
        (
            Arc::new(UInt64Array::from(vec![9, u64::MAX])),
            DataType::Decimal128(19, 0),
            "has the value 18446744073709551615 of type UInt64, which does not fit type decimal(19,0)",
        ),
        (
            Arc::new(UInt64Array::from(vec![u64::MAX])),
            DataType::Float64,
            "has the value 18446744073709551615 of type UInt64, which does not fit type double",
        ),
        (
            Arc::new(UInt64Array::from(vec![2, (1 << 53) + 1])),
            DataType::Float64,
            "has the value 9007199254740993 of type UInt64, which would be rounded to fit type double",
        ),
        (
            Arc::new(decimals(vec![1 << 31, 1], 20, 0)),
            DataType::Int32,
            "has the value 2147483648 of type decimal(20,0), which does not fit type integer",
        ),
        (
            Arc::new(decimals(vec![1, 13], 3, -1)),
            DataType::Int8,
            "has the value 130 of type decimal(3,-1), which does not fit type byte",
        ),
        (
            Arc::new(decimals(vec![1, 90_071_992_547_409_939], 20, -1)),
            DataType::Float64,
            "has the value 900719925474099390 of type decimal(20,-1), which would be rounded to fit type double",
        ),
        (
            Arc::new(decimals(vec![1, 12], 3, -1)),
            DataType::Decimal128(3, 1),
            "has the value 120 of type decimal(3,-1), which does not fit type decimal(3,1)",
        ),
        (
            Arc::new(wide(vec![i256::ONE, i256::from_i128(10).wrapping_pow(40)], 60, 2)),
            DataType::Decimal128(38, 2),
            "has the value 100000000000000000000000000000000000000.00 of type decimal(60,2), which does not fit type \
             decimal(38,2)",
        ),
        (
            Arc::new(wide(vec![i256::from_i128(100), i256::from_i128(125)], 60, 2)),
            DataType::Decimal128(38, 1),
            "has the value 1.25 of type decimal(60,2), which would be rounded to fit type decimal(38,1)",
        ),
    ];
    for (column, to, said) in cases {
        let plain = refusal(fitted(Arc::clone(&column), to.clone()), "c");
        assert!(plain.contains(said), "{plain}");
        let keys = Int32Array::from_iter_values(0..column.len() as i32);
        let encoded: ArrayRef = Arc::new(DictionaryArray::new(keys, column));
        assert_eq!(refusal(fitted(encoded, to), "c"), plain);
    }
}

/// An instant is the same in every zone. A local time cannot become an instant.
#[test]
fn times_are_preserved_or_refused() {
    let micros = |values: Vec<i64>| TimestampMicrosecondArray::from(values);
    let instants: ArrayRef = Arc::new(micros(vec![-1_000_000, 0, 5_000_000]).with_timezone("UTC"));
    let zoned = TimestampSecondArray::from(vec![-1, 0, 5]).with_timezone("America/New_York");
    assert_eq!(&fitted(Arc::new(zoned), utc()).unwrap(), &instants);
    let nanos =
        TimestampNanosecondArray::from(vec![-1_000_000_000, 0, 5_000_000_000]).with_timezone("+02:00");
    assert_eq!(&fitted(Arc::new(nanos), utc()).unwrap(), &instants);
    assert_eq!(
        &fitted(Arc::new(TimestampMillisecondArray::from(vec![1])), ntz()).unwrap(),
        &(Arc::new(micros(vec![1000])) as ArrayRef)
    );
    assert!(
        refusal(fitted(Arc::new(TimestampNanosecondArray::from(vec![1001])), ntz()), "c").contains("rounded")
    );
    refusal(fitted(Arc::new(TimestampNanosecondArray::from(vec![-1])), ntz()), "c");
    refusal(fitted(Arc::new(TimestampSecondArray::from(vec![i64::MAX])), ntz()), "c");
    assert!(refusal(fitted(Arc::new(micros(vec![0])), utc()), "c").contains("zone"));
    assert!(refusal(fitted(Arc::new(micros(vec![0]).with_timezone("UTC")), ntz()), "c").contains("zone"));
    assert_eq!(
        &fitted(Arc::new(Date64Array::from(vec![86_400_000])), DataType::Date32).unwrap(),
        &(Arc::new(Date32Array::from(vec![1])) as ArrayRef)
    );
    refusal(fitted(Arc::new(Date64Array::from(vec![86_400_001])), DataType::Date32), "c");
    // A date becomes midnight, in UTC if the target type has a time zone.
    let midnights = vec![-86_400_000_000, 0, 86_400_000_000];
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![-1, 0, 1]));
    assert_eq!(
        &fitted(Arc::clone(&dates), ntz()).unwrap(),
        &(Arc::new(micros(midnights.clone())) as ArrayRef)
    );
    assert_eq!(
        &fitted(dates, utc()).unwrap(),
        &(Arc::new(micros(midnights).with_timezone("UTC")) as ArrayRef)
    );
    refusal(fitted(Arc::new(Date32Array::from(vec![i32::MAX])), utc()), "c");
    refusal(fitted(Arc::new(Date64Array::from(vec![1])), utc()), "c");
}

/// NOT NULL applies at every depth, except inside of a struct, list or map that is NULL itself. Hidden values inside
/// of such a NULL do not have to fit either.
#[test]
fn nulls_in_required_columns_are_refused() {
    let int = |nullable| Field::new("x", DataType::Int32, nullable);
    let required = schema([Field::new("c", DataType::Int32, false)]);
    refusal(fit(&batch(Arc::new(Int32Array::from(vec![Some(1), None]))), &required), "c");
    refusal(fit(&batch(Arc::new(Int64Array::from(vec![Some(1), None]))), &required), "c");
    refusal(fit(&batch(Arc::new(NullArray::new(1))), &required), "c");
    let dictionary: DictionaryArray<Int32Type> = vec![Some("a"), None].into_iter().collect();
    refusal(fit(&batch(Arc::new(dictionary)), &schema([Field::new("c", DataType::Utf8, false)])), "c");

    let to = DataType::Struct(Fields::from(vec![int(false)]));
    let nested = |values: ArrayRef, valid: Vec<bool>| {
        let field = Field::new("x", values.data_type().clone(), true);
        Arc::new(StructArray::new(Fields::from(vec![field]), vec![values], Some(NullBuffer::from(valid))))
            as ArrayRef
    };
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    assert_eq!(fitted(nested(ints.clone(), vec![true, false]), to.clone()).unwrap().null_count(), 1);
    refusal(fitted(nested(ints.clone(), vec![false, true]), to.clone()), "c.x");
    let hidden: ArrayRef = Arc::new(Int64Array::from(vec![1, i64::MAX]));
    assert_eq!(fitted(nested(hidden.clone(), vec![true, false]), to.clone()).unwrap().null_count(), 1);
    refusal(fitted(nested(hidden, vec![true, true]), to), "c.x");

    let to = DataType::List(Arc::new(Field::new("element", DataType::Int32, false)));
    let list = |lengths: [usize; 2], valid: Vec<bool>| {
        let field = Arc::new(Field::new("item", DataType::Int32, true));
        Arc::new(ListArray::new(
            field,
            OffsetBuffer::from_lengths(lengths),
            ints.clone(),
            Some(NullBuffer::from(valid)),
        )) as ArrayRef
    };
    assert_eq!(fitted(list([1, 1], vec![true, false]), to.clone()).unwrap().null_count(), 1);
    assert_eq!(fitted(list([1, 1], vec![true, true]).slice(0, 1), to.clone()).unwrap().len(), 1);
    let once = fitted(list([1, 1], vec![true, false]), to.clone()).unwrap();
    assert_eq!(&fitted(once.clone(), to.clone()).unwrap(), &once);
    refusal(fitted(list([1, 1], vec![true, true]), to), "c.element");
}

#[test]
fn unused_values_of_a_list_view_are_ignored() {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let field = Arc::new(Field::new("item", DataType::Int64, true));
    let view = ListViewArray::new(
        field,
        ScalarBuffer::from(vec![2, 0, 2]),
        ScalarBuffer::from(vec![1, 1, 1]),
        values,
        None,
    );
    let to = DataType::List(Arc::new(Field::new("element", DataType::Int32, false)));
    let found = fitted(Arc::new(view), to).unwrap();
    assert_eq!(found.as_list::<i32>().values().as_primitive::<Int32Type>().values(), &[3, 1, 3]);
}

proptest! {
    #[test]
    fn integers_are_preserved_or_refused(
        values in prop::collection::vec(prop::option::of(any::<i64>().prop_map(|v| v >> (v & 63))), 0..20),
    ) {
        let from: ArrayRef = Arc::new(Int64Array::from(values.clone()));
        let fits = values.iter().flatten().all(|value| i16::try_from(*value).is_ok());
        let result = fitted(from, DataType::Int16);
        prop_assert_eq!(result.is_ok(), fits);
        if let Ok(found) = result {
            let expected: Int16Array = values.iter().map(|value| value.map(|value| value as i16)).collect();
            prop_assert_eq!(found.as_ref(), &expected as &dyn Array);
        }
    }

    #[test]
    fn nanoseconds_are_preserved_or_refused(
        values in prop::collection::vec((any::<i32>(), prop::sample::select(vec![0i64, 0, 0, 1, 999])), 0..5),
    ) {
        let nanos: Vec<i64> = values.iter().map(|(micros, rest)| i64::from(*micros) * 1000 + rest).collect();
        let result = fitted(Arc::new(TimestampNanosecondArray::from(nanos)), ntz());
        prop_assert_eq!(result.is_ok(), values.iter().all(|(_, rest)| *rest == 0));
        if let Ok(found) = result {
            let micros = values.iter().map(|(micros, _)| i64::from(*micros));
            let expected = TimestampMicrosecondArray::from_iter_values(micros);
            prop_assert_eq!(found.as_ref(), &expected as &dyn Array);
        }
    }
}

/// A slice with a few rows is fitted, although the whole column is too large for the offsets of a table's arrays.
#[test]
fn slices_of_very_large_columns_fit() {
    let end = 3_i64 << 30;
    // Only the end of this memory is touched, so most of it is never allocated.
    let mut values = vec![0_u8; end as usize];
    values[end as usize - 5..].copy_from_slice(b"abcde");
    let offsets = OffsetBuffer::new(vec![0, end - 5, end - 3, end - 3, end].into());
    let nulls = NullBuffer::from(vec![true, true, false, true]);
    let large: ArrayRef = Arc::new(LargeBinaryArray::new(offsets, values.into(), Some(nulls)));
    let expected: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![Some(b"ab"), None, Some(b"cde")]));
    let inside = |array: &ArrayRef| -> Vec<ArrayRef> {
        let field = Arc::new(Field::new("x", array.data_type().clone(), true));
        let parts = StructArray::from(vec![(Arc::clone(&field), Arc::clone(array))]);
        let lengths = OffsetBuffer::from_lengths(vec![1; array.len()]);
        let list = ListArray::new(field, lengths, Arc::clone(array), None);
        vec![Arc::clone(array), Arc::new(parts), Arc::new(list)]
    };
    for (from, to) in inside(&large.slice(1, 3)).into_iter().zip(inside(&expected)) {
        let schema = Arc::new(Schema::new(vec![Field::new("c", to.data_type().clone(), true)]));
        let batch = RecordBatch::try_from_iter_with_nullable([("c", from, true)]).unwrap();
        assert_eq!(fit(&batch, &schema).unwrap().column(0), &to, "{}", to.data_type());
    }
    let whole_list = inside(&large).remove(2).slice(1, 3);
    let list = inside(&expected).remove(2);
    let schema = Arc::new(Schema::new(vec![Field::new("c", list.data_type().clone(), true)]));
    let batch = RecordBatch::try_from_iter_with_nullable([("c", whole_list, true)]).unwrap();
    assert_eq!(fit(&batch, &schema).unwrap().column(0), &list);
}
