//! Compares deletion vectors with a naive implementation. (PROTOCOL, "Reader Requirements for Deletion Vectors".)

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::filter_record_batch;
use arrow::datatypes::DataType;
use proptest::prelude::*;

use super::tests::{Table, field, ints};
use super::{FileRows, PartitionRow};
use crate::error::ErrorKind;
use crate::expression::predicate::{ParseMode, filter_mask, parse};
use crate::log::deletion_vector::testing::write_vectors;
use crate::protocol::DeletionVectorDescriptor;
use crate::runtime::row_bytes::BatchBytes;

pub(super) fn vectors(table: &Table, rows: &[BTreeSet<u64>]) -> Vec<DeletionVectorDescriptor> {
    write_vectors(table.directory.path(), rows)
}

/// Generates sets of rows below `rows` that are contiguous, isolated, or spread over the whole file.
fn deleted(rows: u64) -> impl Strategy<Value = BTreeSet<u64>> {
    let all = 0..rows.max(1);
    let within =
        move |set: BTreeSet<u64>| set.into_iter().filter(|row| *row < rows).collect::<BTreeSet<u64>>();
    prop_oneof![
        prop::collection::btree_set(all.clone(), 0..6),
        prop::collection::btree_set(all.clone(), 0..200),
        (all.clone(), all).prop_map(|(start, length)| (start..start + length).collect()),
        Just((0..rows).collect()),
    ]
    .prop_map(within)
}

pub(super) fn file() -> impl Strategy<Value = (u64, BTreeSet<u64>, BTreeSet<u64>)> {
    (0..400u64).prop_flat_map(|rows| (Just(rows), deleted(rows), deleted(rows)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// The selected rows do not depend on row groups, batches, threads, predicates or projections.
    #[test]
    fn selected_rows_agree_with_a_naive_reader(
        files in prop::collection::vec(file(), 1..5), group_rows in 1..300usize,
        batch_rows in 1..90usize, batch_bytes in 1..4_000usize, threads in 1..5usize,
        kind in 0..3u8, low in 0..1600i64, only_partition: bool,
    ) {
        let mut table = Table::new(vec![field("id", DataType::Int64), field("k", DataType::Int64)]);
        let named: Vec<_> = files.iter().flat_map(|(_, a, b)| [a.clone(), b.clone()]).collect();
        let descriptors = vectors(&table, &named);
        let (mut first, mut expected) = (0i64, Vec::new());
        for (index, (rows, a, b)) in files.iter().enumerate() {
            let next = first + *rows as i64;
            let keys = ints((first..next).map(|id| id * 7 % 13));
            table.write_groups(vec![("id", ints(first..next)), ("k", keys)], PartitionRow::empty(), group_rows);
            let (named_by, not_by) = (descriptors[2 * index].clone(), descriptors[2 * index + 1].clone());
            let is_wanted: Box<dyn Fn(&u64) -> bool> = match kind {
                0 => Box::new(|row| !a.contains(row)),
                1 => Box::new(|row| a.contains(row)),
                _ => Box::new(|row| a.contains(row) && !b.contains(row)),
            };
            table.files[index].rows = match kind {
                0 => FileRows::Live(named_by),
                1 => FileRows::Between { named_by, not_by: None },
                _ => FileRows::Between { named_by, not_by: Some(not_by) },
            };
            expected.extend((0..*rows).filter(is_wanted).map(|row| first + row as i64));
            first = next;
        }
        let expected = RecordBatch::try_new(
            table.schema.clone(),
            vec![ints(expected.clone()), ints(expected.iter().map(|id| id * 7 % 13))],
        ).unwrap();
        let settings = |scan: super::RowScan| {
            let scan = scan.with_threads(threads).with_batch_rows(batch_rows);
            super::RowScan { batch_bytes: BatchBytes::of(batch_bytes), ..scan }
        };
        prop_assert_eq!(&table.rows(settings(table.scan())).unwrap(), &expected);
        for sql in [format!("id >= {low}"), "k = 3".to_owned(), format!("id < {low} AND k <> 0")] {
            let predicate = parse(&sql, "UTC", ParseMode::Strict).unwrap().bind(&table.schema).unwrap();
            let matching = filter_record_batch(&expected, &filter_mask(&predicate, &expected).unwrap()).unwrap();
            prop_assert_eq!(table.rows(settings(table.where_(&sql))).unwrap(), matching, "{}", sql);
        }
        // Rows are counted even if no column is decoded.
        let none: [&str; 0] = [];
        let names: &[&str] = if only_partition { &none } else { &["k"] };
        let projected = table.rows(settings(table.scan().with_projection(names).unwrap())).unwrap();
        prop_assert_eq!(projected.num_rows(), expected.num_rows());
    }
}

/// A selection may consist of runs or of one bit per row. The selected rows are the same in both cases.
#[test]
fn sparse_and_dense_deletions_are_applied_to_many_rows() {
    for (step, count) in [(2u64, 60_000u64), (10, 30_000), (5_000, 30), (1, 100_000)] {
        let mut table = Table::new(vec![field("id", DataType::Int64)]);
        let deleted: BTreeSet<u64> =
            (0..count).map(|row| 10 + row * step).filter(|row| *row < 150_000).collect();
        table.write_groups(vec![("id", ints(0..150_000))], PartitionRow::empty(), 40_000);
        table.files[0].rows = FileRows::Live(vectors(&table, std::slice::from_ref(&deleted)).remove(0));
        let expected = ints((0..150_000).filter(|row| !deleted.contains(&(*row as u64))));
        for threads in [1, 4] {
            assert_eq!(table.rows(table.scan().with_threads(threads)).unwrap().column(0), &expected);
        }
    }
}

/// Every second row is deleted, and then so many rows that they are skipped instead of decoded.
#[test]
fn rows_around_long_gaps_are_returned() {
    let mut table = Table::new(vec![field("id", DataType::Int64), field("k", DataType::Int64)]);
    let keys = ints((0..120_000).map(|id| id % 10));
    table.write_groups(vec![("id", ints(0..120_000)), ("k", keys)], PartitionRow::empty(), 50_000);
    let is_live = |id: &i64| (*id % 50_000 < 10_000 && id % 2 == 0) || id % 10_000 > 9_990;
    let deleted: BTreeSet<u64> = (0..120_000).filter(|id| !is_live(id)).map(|id| id as u64).collect();
    table.files[0].rows = FileRows::Live(vectors(&table, std::slice::from_ref(&deleted)).remove(0));
    for (threads, batch_rows) in [(1, 100), (4, 100), (1, 33), (1, 8192)] {
        let settings = |scan: super::RowScan| scan.with_threads(threads).with_batch_rows(batch_rows);
        let all = table.rows(settings(table.scan())).unwrap();
        assert_eq!(all.column(0), &ints((0..120_000).filter(is_live)));
        assert_eq!(all.column(1), &ints((0..120_000).filter(is_live).map(|id| id % 10)));
        for (sql, step) in [("k = 4", 10), ("id % 4 = 0", 4)] {
            let found = table.rows(settings(table.where_(sql))).unwrap();
            let is_wanted = |id: &i64| is_live(id) && id % step == if step == 10 { 4 } else { 0 };
            assert_eq!(found.column(0), &ints((0..120_000).filter(is_wanted)), "{sql}");
        }
        let none: [&str; 0] = [];
        let counted = table.rows(settings(table.scan().with_projection(&none).unwrap())).unwrap();
        assert_eq!(counted.num_rows(), all.num_rows());
    }
}

/// A column can become NOT NULL after its rows with NULL have been deleted. A predicate reads the same rows as before,
/// and NULLs in other rows are an error.
#[test]
fn values_that_do_not_fit_are_ignored_in_deleted_rows() {
    for (step, batch_rows) in [(3, 8192), (3, 100), (900, 100)] {
        let mut table =
            Table::new(vec![field("id", DataType::Int64), field("k", DataType::Int64).with_nullable(false)]);
        let is_null = |id: i64| id % step == 1;
        let keys = (0..1000).map(|id| (!is_null(id)).then_some(id % 10)).collect::<Int64Array>();
        table.write_groups(vec![("id", ints(0..1000)), ("k", Arc::new(keys))], PartitionRow::empty(), 300);
        let nulls: BTreeSet<u64> = (0..1000).filter(|id| is_null(*id)).map(|id| id as u64).collect();
        table.files[0].rows = FileRows::Live(vectors(&table, std::slice::from_ref(&nulls)).remove(0));
        let expected: Vec<i64> = (0..1000).filter(|id| !is_null(*id) && id % 10 < 5).collect();
        for columns in [["id", "k"].as_slice(), &["id"], &["k"]] {
            let scan = table.where_("k < 5").with_batch_rows(batch_rows).with_projection(columns).unwrap();
            let rows = table.rows(scan).unwrap();
            assert_eq!(rows.num_rows(), expected.len());
            if let Some(ids) = rows.column_by_name("id") {
                assert_eq!(ids, &ints(expected.clone()));
            }
        }
        let others: BTreeSet<u64> = nulls.iter().map(|id| id - 1).collect();
        table.files[0].rows = FileRows::Live(vectors(&table, &[others]).remove(0));
        let error = table.rows(table.where_("k < 5")).unwrap_err();
        assert!(error.to_string().contains("column 'k' must not be NULL"), "{error}");
    }
}

#[test]
fn errors_name_the_data_file_and_its_deletion_vector_file() {
    let mut table = Table::new(vec![field("id", DataType::Int64)]);
    table.write(vec![("id", ints(0..10))]);
    table.files[0].rows = FileRows::Live(vectors(&table, &[[3, 10].into()]).remove(0));
    let error = table.error();
    assert_eq!((error.kind(), error.path()), (ErrorKind::CorruptData, Some("part 0.parquet")));
    assert!(
        error.to_string().contains("deletion_vector_") && error.to_string().contains("row 10"),
        "{error}"
    );

    let FileRows::Live(descriptor) = &table.files[0].rows else { panic!() };
    fs::remove_file(url::Url::parse(&descriptor.path_or_inline_dv).unwrap().to_file_path().unwrap()).unwrap();
    let error = table.error();
    assert_eq!((error.kind(), error.path()), (ErrorKind::FileNotFound, Some("part 0.parquet")));
    assert!(
        error.to_string().contains("deletion_vector_") && error.hint().unwrap().contains("vacuumed"),
        "{error}"
    );

    // The deletion vector's file is outside of the table's directory and outside of the allowed roots.
    let FileRows::Live(descriptor) = &mut table.files[0].rows else { panic!() };
    descriptor.path_or_inline_dv = "file:///etc/passwd".to_owned();
    assert_eq!(table.error().kind(), ErrorKind::Unsupported);
}
