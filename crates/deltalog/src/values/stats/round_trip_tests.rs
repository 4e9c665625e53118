//! Tests that collect statistics from Parquet files and decode them again, and tests with malformed JSON texts.

use super::{CollectOptions, IndexedColumns, NANS, StatsBounds, collect_stats, decode_stats, leaf_columns};
use crate::expression::predicate::{ColumnPath, FileBounds, ParseMode, filter_mask, parse, prune};
use arrow::array::*;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Field, Fields, Float32Type, Int64Type, Schema, TimeUnit,
};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use std::sync::Arc;

/// Writes `batch` to a Parquet file in the same way as this crate. If `without_nan` is set, the file states that no
/// column has NaN. Returns the file's footer.
fn written(batch: &RecordBatch, rows_per_group: usize, without_nan: bool) -> ParquetMetaData {
    let nans = KeyValue::new(NANS.to_owned(), "[]".to_owned());
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows_per_group))
        .set_created_by("deltalog version 0".to_owned())
        .set_key_value_metadata(without_nan.then(|| vec![nans]))
        .build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(file)).unwrap().metadata().as_ref().clone()
}

fn all() -> CollectOptions {
    CollectOptions { columns: IndexedColumns::All, is_own: true }
}

fn paths(schema: &Schema) -> Vec<ColumnPath> {
    leaf_columns(schema).into_iter().map(|(path, _)| path).collect()
}

type Row = (Option<i32>, Option<i64>, Option<i64>, Option<f32>, Option<String>, Option<bool>, Option<i64>);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let text = prop::option::of("[a~\u{e9}\u{7f}\u{10ffff}]{0,70}");
    let decimal = -10i64.pow(17)..10i64.pow(17);
    let micros = prop::option::of(-62_135_596_800_000_000i64..253_402_300_799_000_000);
    let float = prop::option::of(
        prop_oneof![9 => any::<f32>().prop_filter("finite", |f| f.is_finite()), 1 => Just(f32::NAN)],
    );
    let row = (
        any::<Option<i32>>(),
        any::<Option<i64>>(),
        prop::option::of(decimal),
        float,
        text,
        any::<Option<bool>>(),
        micros,
    );
    prop::collection::vec(row, 1..12)
}

fn batch(rows: &[Row]) -> RecordBatch {
    let inner = Int32Array::from_iter(rows.iter().map(|r| r.0));
    let outer_valid: Vec<bool> = rows.iter().map(|r| r.5.is_some()).collect();
    let fields = Fields::from(vec![Field::new("x", DataType::Int32, true)]);
    let decimals = Decimal128Array::from_iter(rows.iter().map(|r| r.2.map(i128::from)));
    let wide = Decimal128Array::from_iter(rows.iter().map(|r| r.2.map(|v| i128::from(v) * 10i128.pow(20))));
    let micros = TimestampMicrosecondArray::from_iter(rows.iter().map(|r| r.6));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i32", Arc::new(inner.clone())),
        ("i64", Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.1)))),
        ("d18", Arc::new(decimals.with_precision_and_scale(18, 2).unwrap())),
        ("d38", Arc::new(wide.with_precision_and_scale(38, 10).unwrap())),
        ("f32", Arc::new(Float32Array::from_iter(rows.iter().map(|r| r.3)))),
        ("f64", Arc::new(Float64Array::from_iter(rows.iter().map(|r| r.3.map(f64::from))))),
        ("s", Arc::new(StringArray::from_iter(rows.iter().map(|r| r.4.as_deref())))),
        ("b", Arc::new(BooleanArray::from_iter(rows.iter().map(|r| r.5)))),
        ("ts", Arc::new(micros.clone().with_timezone("UTC"))),
        ("ntz", Arc::new(micros)),
        (
            "dt",
            Arc::new(Date32Array::from_iter(rows.iter().map(|r| r.6.map(|v| (v / 86_400_000_000) as i32)))),
        ),
        ("bin", Arc::new(BinaryArray::from_iter(rows.iter().map(|r| r.4.as_deref().map(str::as_bytes))))),
        ("n", Arc::new(StructArray::new(fields, vec![Arc::new(inner)], Some(outer_valid.into())))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap()
}

/// Asserts that the rows of each column are within the column's bounds, and that its number of NULLs is right.
fn assert_bounds_hold(bounds: &StatsBounds, batch: &RecordBatch) -> Result<(), TestCaseError> {
    for (path, data_type) in leaf_columns(&batch.schema()) {
        let column = match path.parts() {
            [outer, inner] => {
                let outer = batch.column_by_name(outer).unwrap().as_struct();
                let nulls = arrow::buffer::NullBuffer::union(
                    outer.nulls(),
                    outer.column_by_name(inner).unwrap().nulls(),
                );
                make_array(
                    outer
                        .column_by_name(inner)
                        .unwrap()
                        .to_data()
                        .into_builder()
                        .nulls(nulls)
                        .build()
                        .unwrap(),
                )
            }
            parts => batch.column_by_name(&parts[0]).unwrap().clone(),
        };
        let counted = bounds.null_count(&path).unwrap();
        prop_assert_eq!(counted.value(0), column.null_count() as i64, "nullCount of {}", path);
        let order = make_comparator_of(&column);
        for (bound, wrong) in
            [(bounds.min(&path), std::cmp::Ordering::Less), (bounds.max(&path), std::cmp::Ordering::Greater)]
        {
            let Some(bound) = bound.filter(|b| b.is_valid(0)) else { continue };
            for row in (0..column.len()).filter(|row| column.is_valid(*row)) {
                prop_assert_ne!(order(&bound, row), wrong, "{} of type {}", path, data_type);
            }
        }
    }
    Ok(())
}

/// Returns a function that compares a row of `column` with the first row of a bound.
fn make_comparator_of(column: &ArrayRef) -> impl Fn(&ArrayRef, usize) -> std::cmp::Ordering {
    let column = column.clone();
    move |bound, row| arrow::array::make_comparator(&column, bound, Default::default()).unwrap()(row, 0)
}

/// Returns the first value of `array`, or `None` if it is NULL.
fn first<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<T::Native> {
    array.as_primitive::<T>().iter().next().flatten()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn collected_statistics_are_bounds(rows in rows(), rows_per_group in 1usize..6) {
        let batch = batch(&rows);
        let without_nan = rows.iter().all(|r| !r.3.is_some_and(f32::is_nan));
        let text = collect_stats(&written(&batch, rows_per_group, without_nan), &batch.schema(), &all()).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        let columns = paths(&batch.schema());
        let stats = decode_stats([Some(text.as_str())], &batch.schema(), &columns).unwrap();
        let bounds = StatsBounds::new(stats.clone(), None).unwrap();
        prop_assert_eq!(bounds.num_records().unwrap().value(0), rows.len() as i64);
        assert_bounds_hold(&bounds, &batch)?;
        // Integers are not truncated, so their bounds are the exact values.
        let min = bounds.min(&ColumnPath::new(["i64"])).unwrap();
        let expected = rows.iter().filter_map(|r| r.1).min();
        prop_assert_eq!(first::<Int64Type>(&min), expected);
        // This reads the decoded statistics, because the bounds of long decimals are wider than the decoded values:
        // other writers may have rounded them.
        let max = stats.column_by_name("maxValues").unwrap().as_struct().column_by_name("d38").unwrap();
        let expected = rows.iter().filter_map(|r| r.2).max().map(|v| i128::from(v) * 10i128.pow(20));
        prop_assert_eq!(first::<Decimal128Type>(max), expected);
        let max = bounds.max(&ColumnPath::new(["f32"])).unwrap();
        let expected = rows.iter().filter_map(|r| r.3).reduce(f32::max).filter(|_| without_nan);
        prop_assert_eq!(first::<Float32Type>(&max), expected);
        let min = bounds.min(&ColumnPath::new(["s"])).unwrap();
        let least = rows.iter().filter_map(|r| r.4.as_ref()).min();
        let expected = least.map(|s| s.chars().take(32).collect::<String>());
        let min = min.as_string::<i32>().iter().next().flatten();
        prop_assert_eq!(min.is_some(), expected.is_some());
        // The Parquet writer itself truncates values after 64 bytes.
        let is_tight = |min: &str, least: &str| {
            min == least || (least.starts_with(min) && least.len() > 64 && min.len() > 60)
        };
        prop_assert!(min.zip(expected.as_deref()).is_none_or(|(min, least)| is_tight(min, least)));
    }

    #[test]
    fn no_text_causes_an_error(text in r#"(\{|\}|"numRecords"|"minValues"|"a"|:|,|1|-|"|\[|null|\PC){0,20}"#) {
        let schema = Schema::new(vec![Field::new("a", DataType::Decimal128(5, 2), true)]);
        prop_assert_eq!(decode_stats([Some(text.as_str())], &schema, &paths(&schema)).unwrap().len(), 1);
    }
}

fn decoded(data_type: DataType, json: &str) -> ArrayRef {
    let schema = Schema::new(vec![Field::new("a", data_type, true)]);
    let text =
        format!(r#"{{"numRecords":3,"minValues":{{"other":[1,{{}}],"a":{json}}},"nullCount":{{"a":1}}}}"#);
    let stats = decode_stats([Some(text.as_str())], &schema, &paths(&schema)).unwrap();
    let bounds = StatsBounds::new(stats, None).unwrap();
    assert_eq!(bounds.num_records().unwrap().value(0), 3);
    bounds.min(&ColumnPath::new(["a"])).unwrap()
}

#[test]
fn an_invalid_value_only_affects_its_own_statistic() {
    let utc = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let ntz = || DataType::Timestamp(TimeUnit::Microsecond, None);
    let decimal = || DataType::Decimal128(10, 2);
    for (data_type, json, expected) in [
        (DataType::Int8, "127", Some("127")),
        (DataType::Int8, "128", None),
        (DataType::Int64, "1.5", None),
        (DataType::Int64, "\"5\"", None),
        (DataType::Int64, "{\"x\":1}", None),
        (DataType::Int64, "null", None),
        (DataType::Float64, "\"NaN\"", Some("NaN")),
        (DataType::Float64, "1e999", None),
        (decimal(), "12345678.91", Some("12345678.91")),
        (decimal(), "\"-1.5\"", Some("-1.50")),
        (decimal(), "1.5E+3", Some("1500.00")),
        (decimal(), "1.005", None),
        (decimal(), "123456789.00", None),
        (DataType::Date32, "\"2020-02-29\"", Some("2020-02-29")),
        (DataType::Date32, "\"2021-02-29\"", None),
        (utc(), "\"1970-01-01T01:00:00.123456789+01:00:00\"", Some("1970-01-01T00:00:00.123456Z")),
        (utc(), "\"1970-01-01T01:00:00.123456789+01:00\"", Some("1969-12-31T23:59:01.123456Z")),
        (utc(), "\"1900-01-01T00:53:00.000+00:53\"", Some("1899-12-31T23:59:01Z")),
        (utc(), "\"1900-01-01T00:53:28.000+00:53:28\"", Some("1900-01-01T00:00:00Z")),
        (utc(), "\"1900-01-01T00:00:00.000Z\"", Some("1900-01-01T00:00:00Z")),
        (utc(), "\"1970-01-01T00:00:00\"", None),
        (ntz(), "\"1970-01-01T00:00:00.5\"", Some("1970-01-01T00:00:00.500")),
        (DataType::Utf8, "\"a\\u00e9\\n\"", Some("aé\n")),
        (DataType::Utf8, "5", None),
        (DataType::Boolean, "true", Some("true")),
    ] {
        let array = decoded(data_type.clone(), json);
        assert_eq!(array.data_type(), &data_type);
        let shown = arrow::util::display::array_value_to_string(&array, 0).unwrap();
        assert_eq!(array.is_valid(0).then_some(shown.as_str()), expected, "{json} as {data_type}");
    }
}

/// Returns the bounds of one column, decoded from its minimum and maximum in JSON.
fn bounds_of(data_type: DataType, min: &str, max: &str) -> [Option<String>; 2] {
    let schema = Schema::new(vec![Field::new("a", data_type, true)]);
    let text = format!(r#"{{"numRecords":2,"minValues":{{"a":{min}}},"maxValues":{{"a":{max}}}}}"#);
    let stats = decode_stats([Some(text.as_str())], &schema, &paths(&schema)).unwrap();
    let bounds = StatsBounds::new(stats, None).unwrap();
    let path = ColumnPath::new(["a"]);
    [bounds.min(&path), bounds.max(&path)].map(|bound| {
        let bound = bound.unwrap();
        bound.is_valid(0).then(|| arrow::util::display::array_value_to_string(&bound, 0).unwrap())
    })
}

#[test]
fn an_offset_without_seconds_widens_both_bounds() {
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    for (offset, expected) in [
        ("+00:53", ["1899-12-31T23:06:01Z", "1899-12-31T23:07:59.000999Z"]),
        ("-00:44", ["1900-01-01T00:43:01Z", "1900-01-01T00:44:59.000999Z"]),
        ("-00:44:30", ["1900-01-01T00:44:30Z", "1900-01-01T00:44:30.000999Z"]),
        ("Z", ["1900-01-01T00:00:00Z", "1900-01-01T00:00:00.000999Z"]),
    ] {
        let text = format!("\"1900-01-01T00:00:00.000{offset}\"");
        assert_eq!(
            bounds_of(utc.clone(), &text, &text),
            expected.map(|text| Some(text.to_owned())),
            "{offset}"
        );
    }
}

#[test]
fn an_end_of_the_64_bit_range_is_not_a_bound_of_a_long_decimal() {
    let unknown = [None, None];
    let (min, max) = ("-9223372036854775808", "9223372036854775807");
    for precision in [19, 38] {
        assert_eq!(bounds_of(DataType::Decimal128(precision, 0), min, max), unknown, "{precision}");
    }
    let of_38 = |scale, min: &str, max: &str| bounds_of(DataType::Decimal128(38, scale), min, max);
    assert_eq!(of_38(0, "-9.223372036854775808e18", "9223372036854775808"), unknown);
    assert_eq!(of_38(2, "-9.223372036854776e18", "9.223372036854775807e18"), unknown);
    // The maximum is a double that has the digits of an end of the range.
    assert_eq!(of_38(2, "-92233720368547758.08", "9.223372036854776e16"), unknown);
    // Bounds are known for another number with equally many digits, and for a type whose numbers all fit in 64 bits.
    let [min, max] = of_38(0, "-9223372036854000000", "9223372036854000000");
    assert!(min.unwrap().starts_with("-922337203685400") && max.unwrap().starts_with("922337203685400"));
    let all_of_18 = ["-999999999999999999", "999999999999999999"];
    let bounds = bounds_of(DataType::Decimal128(18, 0), all_of_18[0], all_of_18[1]);
    assert_eq!(bounds, all_of_18.map(|text| Some(text.to_owned())));
}

#[test]
fn tight_bounds_is_true_by_default() {
    let schema = Schema::new(vec![Field::new("a", DataType::Int32, true)]);
    let texts = [
        Some(r#"{"numRecords":1}"#),
        Some(r#"{"numRecords":1,"tightBounds":false}"#),
        None,
        Some(r#"{"numRecords":1"#),
        Some("[]"),
    ];
    let stats = decode_stats(texts, &schema, &paths(&schema)).unwrap();
    let tight: Vec<_> = stats.column_by_name("tightBounds").unwrap().as_boolean().iter().collect();
    assert_eq!(tight, [Some(true), Some(false), None, None, None]);
    let records = StatsBounds::new(stats, None).unwrap().num_records().unwrap();
    assert_eq!(records.iter().collect::<Vec<_>>(), [Some(1), Some(1), None, None, None]);
}

#[test]
fn pruning_uses_partition_values_and_truncated_timestamps() {
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let schema = Schema::new(vec![Field::new("p", DataType::Utf8, true), Field::new("t", utc, true)]);
    let stats = r#"{"numRecords":2,"maxValues":{"t":"1970-01-01T00:00:01.000Z"}}"#;
    let stats = decode_stats([Some(stats); 2], &schema, &[ColumnPath::new(["t"])]).unwrap();
    let partitions =
        RecordBatch::try_from_iter([("p", Arc::new(StringArray::from(vec![Some("eu"), None])) as ArrayRef)])
            .unwrap();
    let bounds = StatsBounds::new(stats, Some(partitions.into())).unwrap();
    for (sql, expected) in [
        ("p = 'eu'", [true, false]),
        ("NOT p = 'eu'", [false, false]),
        ("p IS NULL", [false, true]),
        ("t > TIMESTAMP '1970-01-01 00:00:01.0009'", [true, true]),
        ("t > TIMESTAMP '1970-01-01 00:00:01.000999'", [false, false]),
    ] {
        let predicate = parse(sql, "UTC", ParseMode::Strict).unwrap().bind(&schema).unwrap();
        let kept = prune(&predicate, &bounds).unwrap();
        assert_eq!([kept.value(0), kept.value(1)], expected, "{sql}");
    }
}

#[test]
fn only_indexed_columns_have_statistics() {
    let batch = batch(&[(Some(1), Some(2), Some(3), Some(4.0), Some("x".into()), Some(true), Some(1_500))]);
    let of = |columns| {
        let options = CollectOptions { columns, is_own: false };
        collect_stats(&written(&batch, 10, true), &batch.schema(), &options).unwrap()
    };
    assert_eq!(
        of(IndexedColumns::First(2)),
        r#"{"numRecords":1,"minValues":{"i32":1,"i64":2},"maxValues":{"i32":1,"i64":2},"nullCount":{"i32":0,"i64":0}}"#
    );
    let chosen = ["n", "b", "d18", "ts", "bin"].map(|name| ColumnPath::new([name])).to_vec();
    assert_eq!(
        of(IndexedColumns::Chosen(chosen)),
        concat!(
            r#"{"numRecords":1,"minValues":{"d18":0.03,"ts":"1970-01-01T00:00:00.001Z","n":{"x":1}},"#,
            r#""maxValues":{"d18":0.03,"ts":"1970-01-01T00:00:00.002Z","n":{"x":1}},"#,
            r#""nullCount":{"d18":0,"b":0,"ts":0,"bin":0,"n":{"x":0}}}"#
        )
    );
    let matching =
        parse("n.x = 1 AND d18 = 0.03", "UTC", ParseMode::Strict).unwrap().bind(&batch.schema()).unwrap();
    assert_eq!(filter_mask(&matching, &batch).unwrap().true_count(), 1);
}
