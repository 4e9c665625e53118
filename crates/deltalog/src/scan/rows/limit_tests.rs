//! Tests of scans that end after a number of rows.

use std::collections::BTreeSet;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use proptest::prelude::*;

use super::tests::{Table, field, ints};
use super::{PartitionRow, RowScan};

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The number of rows does not depend on threads, batches or row groups. A scan in order returns the first rows.
    #[test]
    fn a_limit_ends_a_scan(
        sizes in prop::collection::vec(0..30i64, 0..9), threads in 1..5usize, batch_rows in 1..20usize,
        group_rows in 1..20usize, limit in 0..120u64, in_any_order: bool, with_predicate: bool,
    ) {
        let mut table = Table::new(vec![field("id", DataType::Int64)]);
        let mut first = 0;
        for size in sizes {
            table.write_groups(vec![("id", ints(first..first + size))], PartitionRow::empty(), group_rows);
            first += size;
        }
        let scan = if with_predicate { table.where_("id % 3 <> 0") } else { table.scan() };
        let all: Vec<i64> = (0..first).filter(|id| !with_predicate || id % 3 != 0).collect();
        let count = all.len().min(limit as usize);
        let scan = scan.with_threads(threads).with_batch_rows(batch_rows).with_limit(limit);
        let scan = if in_any_order { RowScan::in_any_order(scan) } else { scan };
        let batches = scan.read(table.files.clone().into_iter().map(Ok)).collect::<Result<Vec<_>, _>>().unwrap();
        prop_assert!(batches.iter().all(|batch| (1..=batch_rows).contains(&batch.num_rows())));
        let found = ids(&batches);
        if in_any_order {
            let distinct: BTreeSet<i64> = found.iter().copied().collect();
            prop_assert_eq!((found.len(), distinct.len()), (count, count));
            prop_assert!(distinct.iter().all(|id| all.contains(id)));
        } else {
            prop_assert_eq!(&found[..], &all[..count]);
        }
    }
}

/// A file that is needed only for rows beyond the limit may be missing.
#[test]
fn a_limit_reads_no_further_files() {
    let mut table = Table::new(vec![field("id", DataType::Int64)]);
    for file in 0..3 {
        table.write(vec![("id", ints(file * 10..file * 10 + 10))]);
    }
    std::fs::remove_file(table.path("part 1.parquet")).unwrap();
    std::fs::remove_file(table.path("part 2.parquet")).unwrap();
    let read = |limit| {
        let rows =
            table.scan().with_threads(4).with_limit(limit).read(table.files.clone().into_iter().map(Ok));
        rows.collect::<Result<Vec<_>, _>>()
    };
    assert_eq!(ids(&read(10).unwrap()), (0..10).collect::<Vec<_>>());
    assert!(read(0).unwrap().is_empty());
    assert!(read(11).is_err());
}
