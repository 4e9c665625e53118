//! Compares row ids and commit versions with a naive implementation. (PROTOCOL, "Reader Requirements for Row
//! Tracking".)

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema};
use proptest::prelude::*;

use super::selection_tests::{file, vectors};
use super::tests::{Table, field, ints};
use super::{FileRows, PartitionRow, RowScan, RowTracking};
use crate::error::ErrorKind;
use crate::expression::predicate::{ParseMode, filter_mask, parse};
use crate::protocol::MaterializedRowTracking;

fn names() -> MaterializedRowTracking {
    MaterializedRowTracking {
        row_id: "_row-id-col-1".to_owned(),
        row_commit_version: "_row-commit-version-col-1".to_owned(),
    }
}

fn tracking(base: i64, version: i64) -> RowTracking {
    RowTracking { base_row_id: Some(base), default_row_commit_version: Some(version) }
}

/// Returns the values that a file stores for row `number`: a row id for every third row, and a commit version for
/// every fourth row.
fn materialized(number: i64) -> (Option<i64>, Option<i64>) {
    ((number % 3 == 0).then_some(1_000_000 + number), (number % 4 == 0).then_some(number % 9))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Ids do not depend on row groups, batches, threads, predicates, projections or deletion vectors.
    #[test]
    fn ids_agree_with_a_naive_reader(
        files in prop::collection::vec((file(), 0..3u8, any::<bool>()), 1..5),
        group_rows in 1..300usize, batch_rows in 1..90usize,
        threads in 1..5usize, low in 0..1600i64, without_columns: bool,
    ) {
        let mut table = Table::new(vec![field("id", DataType::Int64)]);
        let deleted: Vec<BTreeSet<u64>> = files.iter().map(|((_, deleted, _), ..)| deleted.clone()).collect();
        let descriptors = vectors(&table, &deleted);
        let (mut first, mut expected) = (0i64, Vec::new());
        for (index, ((rows, deleted, _), has_columns, has_vector)) in files.iter().enumerate() {
            let rows = *rows as i64;
            let mut columns: Vec<(&str, ArrayRef)> = vec![("id", ints(first..first + rows))];
            if *has_columns > 0 {
                let ids = Int64Array::from_iter((0..rows).map(|row| materialized(row).0));
                columns.push(("_row-id-col-1", Arc::new(ids)));
            }
            if *has_columns > 1 {
                let versions = Int64Array::from_iter((0..rows).map(|row| materialized(row).1));
                columns.push(("_row-commit-version-col-1", Arc::new(versions)));
            }
            table.write_groups(columns, PartitionRow::empty(), group_rows);
            let (base, version) = (5_000 * index as i64, 100 + index as i64);
            table.files[index].row_tracking = tracking(base, version);
            if *has_vector {
                table.files[index].rows = FileRows::Live(descriptors[index].clone());
            }
            for row in (0..rows).filter(|row| !has_vector || !deleted.contains(&(*row as u64))) {
                let (id, row_version) = materialized(row);
                let id = id.filter(|_| *has_columns > 0).unwrap_or(base + row);
                expected.push((first + row, id, row_version.filter(|_| *has_columns > 1).unwrap_or(version)));
            }
            first += rows;
        }
        let column = |of: fn(&(i64, i64, i64)) -> i64| ints(expected.iter().map(of));
        let required = |name: &str| Field::new(name, DataType::Int64, false);
        let fields = vec![field("id", DataType::Int64), required("_row_id"), required("_row_commit_version")];
        let schema = Schema::new(Fields::from(fields));
        let columns = vec![column(|row| row.0), column(|row| row.1), column(|row| row.2)];
        let expected = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        let settings = |scan: RowScan| {
            scan.with_row_ids(&names()).unwrap().with_threads(threads).with_batch_rows(batch_rows)
        };
        prop_assert_eq!(&table.rows(settings(table.scan())).unwrap(), &expected);
        let sql = format!("id >= {low} AND id < {}", low + 300);
        let predicate = parse(&sql, "UTC", ParseMode::Strict).unwrap().bind(&expected.schema()).unwrap();
        let matching = filter_record_batch(&expected, &filter_mask(&predicate, &expected).unwrap()).unwrap();
        let mut scan = table.where_(&sql);
        let mut columns = vec![0, 1, 2];
        if without_columns {
            scan = scan.with_projection::<&str>(&[]).unwrap();
            columns.remove(0);
        }
        prop_assert_eq!(table.rows(settings(scan)).unwrap(), matching.project(&columns).unwrap());
    }
}

/// If row ids are requested, an action without one is an error: "Readers must use the default generated Row ID of the
/// `add`".
#[test]
fn an_action_without_row_tracking_fields_is_an_error() {
    let mut table = Table::new(vec![field("id", DataType::Int64)]);
    table.write(vec![("id", ints(0..3))]);
    assert_eq!(table.rows(table.scan()).unwrap().num_rows(), 3);
    for (given, missing) in [
        (RowTracking::default(), "baseRowId"),
        (RowTracking { base_row_id: Some(0), ..RowTracking::default() }, "defaultRowCommitVersion"),
    ] {
        table.files[0].row_tracking = given;
        let error = table.rows(table.scan().with_row_ids(&names()).unwrap()).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::CorruptLog, Some("part 0.parquet")));
        assert!(error.to_string().contains(missing), "{error}");
    }
    // The last id would not fit in an i64.
    table.files[0].row_tracking = tracking(i64::MAX - 1, 0);
    assert_eq!(
        table.rows(table.scan().with_row_ids(&names()).unwrap()).unwrap_err().kind(),
        ErrorKind::CorruptData
    );
}

#[test]
fn row_id_columns_do_not_hide_table_columns() {
    let table = Table::new(vec![field("_ROW_ID", DataType::Int64)]);
    let error = table.scan().with_row_ids(&names()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("'_row_id'"), "{error}");
}

/// In a stored row id column of another type, values that fit are row ids, and all others are errors.
#[test]
fn materialized_ids_are_converted_or_refused() {
    let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None]));
    for (stored, is_fine) in [(column, true), (Arc::new(StringArray::from(vec!["7", "8"])), false)] {
        let mut table = Table::new(vec![field("id", DataType::Int64)]);
        table.write(vec![("id", ints(0..2)), ("_row-id-col-1", stored)]);
        table.files[0].row_tracking = tracking(10, 3);
        let found = table.rows(table.scan().with_row_ids(&names()).unwrap());
        match is_fine {
            true => assert_eq!(found.unwrap().column(1).as_primitive::<Int64Type>().values(), &[7, 11]),
            false => assert_eq!(found.unwrap_err().kind(), ErrorKind::CorruptData),
        }
    }
}
