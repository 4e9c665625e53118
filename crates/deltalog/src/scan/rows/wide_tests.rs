//! Tests of wide rows: batches are limited in bytes, even if a footer understates the size, and the rows are the
//! same.

use std::fs::File;
use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use proptest::prelude::*;
use roaring::RoaringTreemap;

use super::file::Opener;
use super::tests::{Table, field, ints};
use super::{FileRows, PartitionRow, RowScan, RowTracking};
use crate::error::ErrorKind;
use crate::log::deletion_vector::DeletionVector;
use crate::protocol::MaterializedRowTracking;
use crate::runtime::row_bytes::{BatchBytes, weight_of};

/// The way a file is written.
#[derive(Debug, Clone)]
struct Written {
    /// The string of each row, as a number and how many times its digits are repeated: (3, 2) stands for "33".
    texts: Vec<(usize, usize)>,
    has_dictionary: bool,
    /// Whether the footer shows the full size of values that a dictionary repeats.
    tells_sizes: bool,
    group_rows: usize,
    chosen: Option<Vec<bool>>,
}

fn written() -> impl Strategy<Value = Written> {
    let lengths = prop_oneof![8 => 0_usize..40, 2 => 200_usize..600, 1 => 2_000_usize..4_000];
    let texts = prop_oneof![
        prop::collection::vec((0..9_usize, lengths), 1..150),
        // All rows have the same string, which a dictionary stores once.
        (1_usize..900, 20_usize..200).prop_map(|(length, rows)| vec![(1, length); rows]),
    ];
    (
        texts,
        any::<bool>(),
        any::<bool>(),
        10..200_usize,
        prop::option::of(prop::collection::vec(any::<bool>(), 200)),
    )
        .prop_map(|(texts, has_dictionary, tells_sizes, group_rows, chosen)| Written {
            texts,
            has_dictionary,
            tells_sizes,
            group_rows,
            chosen,
        })
}

fn element() -> Field {
    field("element", DataType::Utf8)
}

fn table(files: &[Written]) -> Table {
    let list = DataType::List(Arc::new(element()));
    let inner = DataType::Struct(vec![field("doc", DataType::Binary)].into());
    let mut table = Table::new(vec![
        field("id", DataType::Int64),
        field("text", DataType::Utf8),
        field("list", list),
        field("inner", inner),
    ]);
    let mut first = 0;
    for (number, file) in files.iter().enumerate() {
        let rows = file.texts.len();
        let text = |(number, length): &(usize, usize)| number.to_string().repeat(*length);
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter(file.texts.iter().map(|of| (of.1 % 7 > 0).then(|| text(of)))));
        let lengths = file.texts.iter().map(|(number, _)| number % 3);
        let elements: Vec<String> = file.texts.iter().flat_map(|of| vec![text(of); of.0 % 3]).collect();
        let lists = ListArray::new(
            Arc::new(element()),
            OffsetBuffer::from_lengths(lengths),
            Arc::new(StringArray::from_iter_values(elements)),
            None,
        );
        let docs: ArrayRef = Arc::new(BinaryArray::from_iter_values(file.texts.iter().map(text)));
        let batch = RecordBatch::try_from_iter([
            ("id", ints(first..first + rows as i64)),
            ("text", texts),
            ("list", Arc::new(lists)),
            ("inner", Arc::new(StructArray::from(vec![(Arc::new(field("doc", DataType::Binary)), docs)]))),
        ])
        .unwrap();
        let statistics = if file.tells_sizes { EnabledStatistics::Page } else { EnabledStatistics::None };
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(file.has_dictionary)
            .set_statistics_enabled(statistics)
            .set_max_row_group_row_count(Some(file.group_rows))
            .set_data_page_row_count_limit(file.group_rows.div_ceil(3))
            .set_write_batch_size(file.group_rows.div_ceil(3));
        let name = format!("{number}.parquet");
        let target = File::create(table.path(&name)).unwrap();
        let mut writer = ArrowWriter::try_new(target, batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        let footer = writer.close().unwrap();
        let tells =
            |group: usize| footer.row_group(group).column(1).unencoded_byte_array_data_bytes().is_some();
        assert_eq!(tells(0), file.tells_sizes);
        table.add(&name, PartitionRow::empty());
        let added = table.files.last_mut().unwrap();
        added.row_tracking = RowTracking { base_row_id: Some(first), default_row_commit_version: Some(1) };
        if let Some(chosen) = &file.chosen {
            let chosen = (0..rows as u64).filter(|row| chosen[*row as usize % chosen.len()]);
            let chosen: RoaringTreemap = chosen.collect();
            added.rows = FileRows::Chosen(Arc::new(DeletionVector::from(chosen)));
        }
        first += rows as i64;
    }
    table
}

/// Reads the table and returns all batches.
fn read(table: &Table, scan: RowScan) -> Vec<RecordBatch> {
    scan.read(table.files.clone().into_iter().map(Ok)).collect::<Result<_, _>>().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Batches are limited in size, and have the same rows in the same order as unlimited ones. This is tested with
    /// deletion vectors, row ids, views, predicates that read a wide or a narrow column, and threads for files or for
    /// columns.
    #[test]
    fn batches_of_wide_rows_are_bounded(
        files in prop::collection::vec(written(), 1..4),
        target in prop::sample::select(vec![1_usize, 300, 3_000, 40_000]),
        threads in 1..4_usize,
        predicate in prop::sample::select(vec!["", "id % 3 = 1", "text LIKE '1%'", "length(text) + id % 5 > 20"]),
        columns in prop::sample::select(vec![vec!["id", "text", "list", "inner"], vec!["inner"], vec!["text", "id"]]),
        has_views: bool, has_ids: bool,
    ) {
        let table = table(&files);
        let scan = || {
            let scan = if predicate.is_empty() { table.scan() } else { table.where_(predicate) };
            let scan = scan.with_projection(&columns).unwrap().with_threads(threads);
            let scan = if has_views { scan.with_view_types() } else { scan };
            let names = MaterializedRowTracking { row_id: "a".to_owned(), row_commit_version: "b".to_owned() };
            if has_ids { scan.with_row_ids(&names).unwrap() } else { scan }
        };
        let unbounded = read(&table, RowScan { batch_bytes: BatchBytes::of(1 << 30), ..scan() });
        let bounded = read(&table, RowScan { batch_bytes: BatchBytes::of(target), ..scan() });
        let rows = |batches: &[RecordBatch]| concat_batches(&scan().schema(), batches).unwrap();
        prop_assert_eq!(rows(&bounded), rows(&unbounded));
        for batch in &bounded {
            let bytes = weight_of(batch, 0, batch.num_rows());
            // Row ids, which are computed, and converted values take additional memory. If there is a predicate, its
            // columns and the other columns are limited separately.
            let most = 4 * target + 40 * batch.num_rows();
            prop_assert!(batch.num_rows() == 1 || bytes <= most, "{} > {}", bytes, target);
        }
    }
}

/// The decoder fails if a batch exceeds the 32-bit offsets of an array. The file is not damaged: the rows are read
/// again, with fewer rows at once.
#[test]
fn rows_that_exceed_the_offsets_of_an_array_are_read_again() {
    let table = table(&[repeated(3000, 500, 1000)]);
    for threads in [1, 4] {
        // 8,192 rows of 500 bytes far exceed the limit of the offsets in this test, which is 64 times the size of a
        // batch.
        let limits = BatchBytes::of(3_000);
        let scan = RowScan { batch_bytes: limits, ..table.scan().with_threads(threads) };
        let batches = read(&table, scan);
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3000);
        assert!(batches.iter().all(|batch| weight_of(batch, 0, batch.num_rows()) <= 6_000));
    }
}

fn repeated(rows: usize, length: usize, group_rows: usize) -> Written {
    Written {
        texts: vec![(1, length); rows],
        has_dictionary: true,
        tells_sizes: false,
        group_rows,
        chosen: None,
    }
}

/// The predicate's columns are kept for the matching rows of a row group, unless they are large. The real size
/// decides, not the size in the footer.
#[test]
fn columns_of_a_predicate_are_only_kept_if_they_are_small() {
    let table = table(&[repeated(3000, 500, 1000)]);
    for (predicate, has_ids) in [("text LIKE '1%'", false), ("text LIKE '1%' AND id % 2 = 0", true)] {
        let scan = table.where_(predicate).with_projection(&["id", "text", "inner"]).unwrap();
        let names = MaterializedRowTracking { row_id: "a".to_owned(), row_commit_version: "b".to_owned() };
        let scan = if has_ids { scan.with_row_ids(&names).unwrap() } else { scan };
        let expected =
            read(&table, RowScan { batch_bytes: BatchBytes::of(1 << 30), ..scan.clone().with_threads(1) });
        let opener = Arc::new(Opener::new(RowScan { batch_bytes: BatchBytes::of(10_000), ..scan }));
        let file = Arc::new(opener.open(&table.files[0]).unwrap().unwrap());
        let mut batches = opener.batches(Arc::clone(&file), file.groups.clone(), 1).unwrap();
        let (mut found, mut most) = (Vec::new(), 0);
        while let Some(batch) = batches.next_batch().unwrap() {
            found.push(batch);
            most = most.max(batches.kept_bytes());
        }
        let schema = expected[0].schema();
        assert_eq!(concat_batches(&schema, &found).unwrap(), concat_batches(&schema, &expected).unwrap());
        // The row ids are always kept.
        assert!(most <= 4 * 10_000 + 20_000, "{most}");
    }
}

/// After a few wide rows, many of the other rows are still read at once.
#[test]
fn narrow_rows_after_wide_ones_are_read_many_at_once() {
    let texts = (0..4_000).map(|row| (row % 9, if row % 200 == 100 { 6_000 } else { 10 })).collect();
    let file = Written { texts, has_dictionary: false, tells_sizes: true, group_rows: 2_000, chosen: None };
    let table = table(&[file]);
    for (threads, predicate) in [(1, ""), (3, ""), (1, "id >= 0")] {
        let scan = if predicate.is_empty() { table.scan() } else { table.where_(predicate) };
        let scan = scan.with_projection(&["id", "text"]).unwrap().with_threads(threads);
        let batches = read(&table, RowScan { batch_bytes: BatchBytes::of(2_000), ..scan });
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 4_000);
        // The file has 96 KB of narrow rows, and 20 wide rows.
        assert!(batches.len() < 500, "{}", batches.len());
    }
}

/// A worker that is ahead of the caller waits if its batches are large, even if the footer understates their size.
#[test]
fn the_size_of_waiting_batches_is_limited() {
    let table = table(&[repeated(500, 100_000, 1 << 20)]);
    let scan = table.scan().with_projection(&["id", "text"]).unwrap().with_threads(2);
    let scan = RowScan { batch_bytes: BatchBytes::of(1 << 20), ..scan };
    let mut rows = scan.read(table.files.clone().into_iter().map(Ok));
    let mut found = rows.next().unwrap().unwrap().num_rows();
    let (mut before, mut waiting) = (0, rows.waiting_bytes());
    while waiting == 0 || before < waiting {
        std::thread::sleep(std::time::Duration::from_millis(300));
        (before, waiting) = (waiting, rows.waiting_bytes());
    }
    assert!(waiting <= (32 << 20) + (2 << 20), "{waiting}");
    found += rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>();
    assert_eq!(found, 500);
}

/// A dictionary stores a value of 300 KB once. 8,192 rows with this value would be a batch of 2.4 GB.
#[test]
#[ignore = "takes 2 GiB of memory"]
fn two_gigabytes_of_one_value_are_read() {
    let table = table(&[repeated(8192, 300_000, 1 << 20)]);
    let scan = table.scan().with_projection(&["text"]).unwrap().with_threads(1);
    let mut rows = 0;
    for batch in scan.read(table.files.clone().into_iter().map(Ok)) {
        rows += batch
            .map_err(|error| assert_ne!(error.kind(), ErrorKind::CorruptData, "{error}"))
            .unwrap()
            .num_rows();
    }
    assert_eq!(rows, 8192);
}
