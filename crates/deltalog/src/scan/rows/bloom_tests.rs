//! Tests that Bloom filters skip row groups and never lose a row. (Parquet: "Bloom Filter".)

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{BloomFilterPosition, EnabledStatistics, WriterProperties};
use proptest::prelude::*;

use super::PartitionRow;
use super::tests::{Table, field};
use crate::error::ErrorKind;
use crate::expression::predicate::{ParseMode, filter_mask, parse};
use crate::log::deletion_vector::DeletionVector;
use crate::scan::FileRows;

/// A kind of column: its name, its type in the table, the values that a file stores for numbers, and the SQL literal
/// of a number.
struct Kind {
    name: &'static str,
    table: DataType,
    stored: fn(&[Option<i64>]) -> ArrayRef,
    literal: fn(i64) -> String,
    /// Whether scans use the column's filters.
    is_used: bool,
}

fn decimals(numbers: &[Option<i64>], precision: u8, scale: i8) -> ArrayRef {
    let unscaled = numbers.iter().map(|number| number.map(i128::from));
    Arc::new(Decimal128Array::from_iter(unscaled).with_precision_and_scale(precision, scale).unwrap())
}

fn decimal(number: i64, scale: u32) -> String {
    let (sign, number) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
    let unit = 10u64.pow(scale);
    format!("{sign}{}.{:0width$}", number / unit, number % unit, width = scale as usize)
}

fn time(number: i64) -> String {
    let (sign, number) = if number < 0 { (59, 1_000_000 + number) } else { (0, number) };
    let day = if sign == 0 { "1970-01-01 00:00" } else { "1969-12-31 23:59" };
    format!("{day}:{sign:02}.{number:06}")
}

fn micros(numbers: &[Option<i64>]) -> TimestampMicrosecondArray {
    TimestampMicrosecondArray::from_iter(numbers.iter().copied())
}

fn kinds() -> Vec<Kind> {
    let utc = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let kind = |name, table, stored, literal, is_used| Kind { name, table, stored, literal, is_used };
    macro_rules! whole {
        ($array:ty, $native:ty) => {
            |numbers| Arc::new(<$array>::from_iter(numbers.iter().map(|n| n.map(|n| n as $native))))
        };
    }
    vec![
        kind("byte", DataType::Int8, whole!(Int8Array, i8), |n| n.to_string(), true),
        kind("long", DataType::Int64, whole!(Int64Array, i64), |n| n.to_string(), true),
        kind("byte_as_long", DataType::Int64, whole!(Int8Array, i8), |n| n.to_string(), true),
        kind("int_as_long", DataType::Int64, whole!(Int32Array, i32), |n| n.to_string(), true),
        kind("long_as_int", DataType::Int32, whole!(Int64Array, i64), |n| n.to_string(), true),
        kind(
            "int_as_decimal",
            DataType::Decimal128(12, 2),
            whole!(Int32Array, i32),
            |n| n.to_string(),
            false,
        ),
        kind("int_as_double", DataType::Float64, whole!(Int32Array, i32), |n| format!("{n}D"), false),
        kind(
            "date",
            DataType::Date32,
            whole!(Date32Array, i32),
            |n| format!("date_add(DATE '1970-01-01', {n})"),
            true,
        ),
        kind(
            "time",
            utc(),
            |numbers| Arc::new(micros(numbers).with_timezone("UTC")),
            |n| format!("TIMESTAMP '{}Z'", time(n)),
            true,
        ),
        kind(
            "time_without_zone",
            DataType::Timestamp(TimeUnit::Microsecond, None),
            |numbers| Arc::new(micros(numbers)),
            |n| format!("TIMESTAMP_NTZ '{}'", time(n)),
            true,
        ),
        kind(
            "millis",
            utc(),
            |numbers| Arc::new(TimestampMillisecondArray::from_iter(numbers.iter().copied())),
            |n| format!("TIMESTAMP '{}Z'", time(n * 1000)),
            false,
        ),
        kind("decimal4", DataType::Decimal128(4, 1), |n| decimals(n, 4, 1), |n| decimal(n, 1), true),
        kind("decimal15", DataType::Decimal128(15, 2), |n| decimals(n, 15, 2), |n| decimal(n, 2), true),
        kind("decimal30", DataType::Decimal128(30, 3), |n| decimals(n, 30, 3), |n| decimal(n, 3), true),
        kind("longer", DataType::Decimal128(30, 1), |n| decimals(n, 4, 1), |n| decimal(n, 1), true),
        kind("rescaled", DataType::Decimal128(12, 3), |n| decimals(n, 4, 1), |n| decimal(n, 1), false),
        kind(
            "text",
            DataType::Utf8,
            |numbers| Arc::new(StringArray::from_iter(numbers.iter().map(|n| n.map(|n| format!("t{n}"))))),
            |n| format!("'t{n}'"),
            true,
        ),
        kind(
            "binary",
            DataType::Binary,
            |numbers| Arc::new(BinaryArray::from_iter(numbers.iter().map(|n| n.map(|n| [n as u8, 7])))),
            |n| format!("X'{:02X}07'", n as u8),
            true,
        ),
        kind(
            "double",
            DataType::Float64,
            |numbers| {
                let float = |n: i64| if n == 0 { -0.0 } else { n as f64 / 2.0 };
                Arc::new(Float64Array::from_iter(numbers.iter().map(|n| n.map(float))))
            },
            |n| format!("{}D", n as f64 / 2.0),
            false,
        ),
    ]
}

/// Writes a file with Bloom filters, and with statistics if `has_statistics` is true.
fn write(path: &Path, columns: Vec<(&str, ArrayRef)>, group_rows: usize, has_statistics: bool) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, values)| (name, values, true)),
    )
    .unwrap();
    let statistics = if has_statistics { EnabledStatistics::Page } else { EnabledStatistics::None };
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_statistics_enabled(statistics)
        .set_bloom_filter_fpp(1e-6)
        .set_bloom_filter_max_ndv(group_rows as u64)
        .set_bloom_filter_position(BloomFilterPosition::End);
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Returns a table with a column of each kind. Its file stores `numbers` in each column.
fn table(numbers: &[Option<i64>], group_rows: usize, has_statistics: bool) -> Table {
    let fields = kinds().iter().map(|kind| field(kind.name, kind.table.clone())).collect::<Vec<Field>>();
    let mut table = Table::new(fields);
    let columns = kinds().iter().map(|kind| (kind.name, (kind.stored)(numbers))).collect();
    write(&table.path("a.parquet"), columns, group_rows, has_statistics);
    table.add("a.parquet", PartitionRow::empty());
    table
}

fn footer(path: &Path) -> ParquetMetaData {
    ParquetMetaDataReader::new().parse_and_finish(&fs::File::open(path).unwrap()).unwrap()
}

/// Overwrites all pages of a file, so that reading a row fails.
fn destroy_pages(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    for column in footer(path).row_groups().iter().flat_map(|group| group.columns()) {
        let (start, length) = column.byte_range();
        bytes[start as usize..(start + length) as usize].fill(0xff);
    }
    fs::write(path, bytes).unwrap();
}

/// Applies `change` to the bytes of each Bloom filter in a file.
fn change_filters(path: &Path, change: impl Fn(&mut [u8])) {
    let mut bytes = fs::read(path).unwrap();
    for column in footer(path).row_groups().iter().flat_map(|group| group.columns()) {
        let start = column.bloom_filter_offset().unwrap() as usize;
        change(&mut bytes[start..start + column.bloom_filter_length().unwrap() as usize]);
    }
    fs::write(path, bytes).unwrap();
}

/// Returns the number of rows for which `sql` is true.
fn count(table: &Table, sql: &str) -> crate::Result<usize> {
    table.rows(table.where_(sql)).map(|rows| rows.num_rows())
}

/// The pages of the file cannot be read, so the test shows for which columns the Bloom filters suffice. There are
/// enough distinct values for columns to be larger than their filters.
#[test]
fn filters_are_only_used_for_values_with_a_single_binary_form() {
    let numbers = (0..8000).map(|row| (row * row / 7 + row) % 200 - 100);
    let numbers: Vec<Option<i64>> = numbers.map(|n| Some(n).filter(|n: &i64| n.rem_euclid(5) != 1)).collect();
    let table = table(&numbers, 10_000, false);
    destroy_pages(&table.path("a.parquet"));
    for Kind { name, literal, is_used, .. } in kinds() {
        for sql in [
            format!("{name} = {}", literal(6)),
            format!("{name} <=> {}", literal(-4)),
            format!("{name} IN ({}, NULL, {})", literal(1), literal(11)),
            format!("NOT ({name} <> {})", literal(6)),
            format!("NOT ({name} = {}) AND {name} = {}", literal(6), literal(11)),
        ] {
            match count(&table, &sql) {
                Ok(rows) => assert!(rows == 0 && is_used, "{sql}: {rows}"),
                Err(error) => assert!(error.kind() == ErrorKind::CorruptData && !is_used, "{sql}: {error}"),
            }
        }
        // Conditions for a value that the column contains, for one that it lacks, and for one that the column might
        // contain.
        for sql in [
            format!("{name} = {}", literal(7)),
            format!("{name} <> {}", literal(6)),
            format!("{name} = {} OR {name} > {}", literal(6), literal(6)),
            format!("{name} IN ({}, {})", literal(6), literal(7)),
        ] {
            assert_eq!(count(&table, &sql).unwrap_err().kind(), ErrorKind::CorruptData, "{sql}");
        }
    }
}

/// Bloom filters that are obviously damaged are not used.
#[test]
fn damaged_filters_lose_no_rows() {
    let numbers: Vec<Option<i64>> = (0..8000).map(|row| Some((row * row / 7 + row) % 200 - 100)).collect();
    for damage in [
        |filter: &mut [u8]| filter.fill(0),
        |filter: &mut [u8]| filter.fill(0xff),
        |filter: &mut [u8]| filter[0] = 0x16,
        // The stated number of bytes is negative, or differs from the filter's length.
        |filter: &mut [u8]| filter[1] |= 1,
        |filter: &mut [u8]| filter[1] ^= 0x40,
        // The header states a different hash function.
        |filter: &mut [u8]| {
            let end = filter.iter().position(|byte| *byte == 0x1c).unwrap();
            filter[end + 5] = 0x2c;
        },
        // No bit of the filter is set.
        |filter: &mut [u8]| {
            let end = filter.iter().position(|byte| *byte == 0x1c).unwrap() + 13;
            filter[end..].fill(0);
        },
    ] {
        let table = table(&numbers, 10_000, false);
        change_filters(&table.path("a.parquet"), damage);
        for Kind { name, literal, .. } in kinds() {
            let expected = numbers.iter().filter(|number| **number == Some(7)).count();
            assert_eq!(count(&table, &format!("{name} = {}", literal(7))).unwrap(), expected, "{name}");
        }
    }
}

/// The footer may leave out the length of a filter. (Parquet, `bloom_filter_length` of "ColumnMetaData".)
#[test]
fn filters_of_unknown_length_are_used() {
    let numbers: Vec<Option<i64>> = (0..1000).map(|n| Some(n * 2)).collect();
    let mut table = Table::new(vec![field("long", DataType::Int64)]);
    let path = table.path("a.parquet");
    write(&path, vec![("long", Arc::new(Int64Array::from(numbers)) as ArrayRef)], 1000, false);
    destroy_pages(&path);
    let bytes = fs::read(&path).unwrap();
    let metadata = footer(&path);
    let mut builder = metadata.into_builder();
    let groups = builder.take_row_groups().into_iter().map(|group| {
        let columns = group
            .columns()
            .iter()
            .map(|column| column.clone().into_builder().set_bloom_filter_length(None).build().unwrap());
        let columns = columns.collect();
        group.into_builder().set_column_metadata(columns).build().unwrap()
    });
    let metadata = builder.set_row_groups(groups.collect()).build();
    let end =
        bytes.len() - 8 - u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap()) as usize;
    let mut file = bytes[..end].to_vec();
    parquet::file::metadata::ParquetMetaDataWriter::new(&mut file, &metadata).finish().unwrap();
    fs::write(&path, file).unwrap();
    assert!(footer(&path).row_group(0).column(0).bloom_filter_length().is_none());
    table.add("a.parquet", PartitionRow::empty());
    assert_eq!(count(&table, "long = 701").unwrap(), 0);
    assert_eq!(count(&table, "long = 702").unwrap_err().kind(), ErrorKind::CorruptData);
}

/// Generates conditions on columns, of all forms that use Bloom filters, and some that do not.
fn condition() -> impl Strategy<Value = String> {
    let columns = kinds().len();
    let leaf = (0..columns, 0usize..7, -12i64..12, -12i64..12).prop_map(|(column, form, a, b)| {
        let Kind { name, literal, .. } = kinds().swap_remove(column);
        let (a, b) = (literal(a), literal(b));
        match form {
            0 => format!("{name} = {a}"),
            1 => format!("{name} <=> {a}"),
            2 => format!("{name} IN ({a}, {b})"),
            3 => format!("{name} NOT IN ({a}, NULL)"),
            4 => format!("{name} <> {a}"),
            5 => format!("{a} = {name} AND {name} < {b}"),
            _ => format!("{name} IS NULL"),
        }
    });
    leaf.prop_recursive(3, 6, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| format!("NOT ({inner})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) AND ({b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}) OR ({b})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A filtered scan must return exactly the rows of a full scan that match the predicate.
    #[test]
    fn scans_with_bloom_filters_return_all_matching_rows(
        numbers in prop::collection::vec(prop::option::of(-12i64..12), 1..300),
        group_rows in 20usize..200,
        has_statistics: bool,
        deleted in prop::collection::btree_set(0u64..300, 0..20),
        conditions in prop::collection::vec(condition(), 1..6),
    ) {
        let mut table = table(&numbers, group_rows, has_statistics);
        if has_statistics {
            let chosen = (0..numbers.len() as u64).filter(|row| !deleted.contains(row));
            let chosen = DeletionVector::from(chosen.collect::<roaring::RoaringTreemap>());
            table.files[0].rows = FileRows::Chosen(Arc::new(chosen));
        }
        let all = table.rows(table.scan()).unwrap();
        for sql in conditions {
            let bound = parse(&sql, "UTC", ParseMode::Strict).unwrap().bind(&table.schema).unwrap();
            let expected = filter_record_batch(&all, &filter_mask(&bound, &all).unwrap()).unwrap();
            prop_assert_eq!(table.rows(table.where_(&sql)).unwrap(), expected, "{}", sql);
        }
    }
}
