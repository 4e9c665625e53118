//! Rows of all types, with NULLs, quotes, and NaNs and zeros of both signs.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int32Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field};

/// Returns rows in which all columns have values and NULLs.
pub(crate) fn batch() -> RecordBatch {
    let nan = f64::NAN;
    let floats = [
        Some(1.5),
        Some(nan),
        Some(-nan),
        Some(0.0),
        Some(-0.0),
        None,
        Some(f64::INFINITY),
        Some(f64::NEG_INFINITY),
        Some(2.5),
        Some(-1.0),
        Some(0.1),
        Some(f64::MIN_POSITIVE),
    ];
    let texts = [
        Some("a"),
        Some("a%b"),
        Some("it's"),
        Some("a\\b"),
        Some(""),
        None,
        Some("é"),
        Some("😀"),
        Some("a\nb"),
        Some("100%"),
        Some("B"),
        Some("xab"),
    ];
    let integers = [
        Some(1),
        Some(2),
        None,
        Some(3),
        Some(5),
        Some(4),
        Some(-7),
        Some(i32::MAX),
        Some(i32::MIN),
        None,
        Some(0),
        Some(9),
    ];
    let booleans = [
        Some(true),
        Some(false),
        None,
        Some(true),
        Some(false),
        None,
        Some(true),
        Some(true),
        Some(false),
        None,
        Some(false),
        Some(true),
    ];
    let decimals = [
        Some(150),
        Some(-1),
        None,
        Some(225),
        Some(-2),
        Some(0),
        Some(300),
        Some(99_999),
        Some(400),
        None,
        Some(1),
        Some(-150),
    ];
    let days = [
        Some(0),
        Some(-1),
        None,
        Some(19_782),
        Some(19_783),
        Some(1),
        Some(-719_162),
        None,
        Some(5),
        Some(6),
        Some(7),
        Some(8),
    ];
    let micros = [
        Some(0),
        Some(-1),
        None,
        Some(1_704_067_200_000_000),
        Some(1_704_067_200_000_001),
        Some(1_704_067_199_999_999),
        Some(5),
        None,
        Some(6),
        Some(7),
        Some(8),
        Some(9),
    ];
    let bytes: [Option<&[u8]>; 12] = [
        Some(&[0, 255]),
        Some(&[]),
        None,
        Some(&[127]),
        Some(&[128]),
        Some(&[127, 0]),
        Some(&[255]),
        None,
        Some(&[1]),
        Some(&[2]),
        Some(&[3]),
        Some(&[4]),
    ];
    let int = |values: &[Option<i32>]| Arc::new(Int32Array::from(values.to_vec())) as ArrayRef;
    let structs = StructArray::from(vec![
        (Arc::new(Field::new("k", DataType::Int32, true)), int(&integers)),
        (
            Arc::new(Field::new("v", DataType::Float64, true)),
            Arc::new(Float64Array::from(floats.to_vec())) as ArrayRef,
        ),
    ]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..12))),
        ("i", int(&integers)),
        ("f", Arc::new(Float64Array::from(floats.to_vec()))),
        ("g", Arc::new(floats.iter().map(|value| value.map(|value| value as f32)).collect::<Float32Array>())),
        ("h", Arc::new(floats.iter().rev().copied().collect::<Float64Array>())),
        ("s", Arc::new(StringArray::from(texts.to_vec()))),
        ("b", Arc::new(BooleanArray::from(booleans.to_vec()))),
        ("d", Arc::new(Decimal128Array::from(decimals.to_vec()).with_precision_and_scale(10, 2).unwrap())),
        ("day", Arc::new(Date32Array::from(days.to_vec()))),
        ("t", Arc::new(TimestampMicrosecondArray::from(micros.to_vec()).with_timezone("UTC"))),
        ("n", Arc::new(TimestampMicrosecondArray::from(micros.to_vec()))),
        ("x", Arc::new(BinaryArray::from(bytes.to_vec()))),
        ("o", Arc::new(structs)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
        .unwrap()
}
