//! Tests that the files of a write depend only on its rows, not on the batches in which they arrive.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Int32Type};
use arrow::record_batch::RecordBatch;
use proptest::prelude::*;

use super::chunk::Chunk;
use super::{DataWriter, TableWriteSpec, WriteOptions};
use crate::protocol::path;
use crate::runtime::environment::Environment;
use crate::storage::Storage;
use crate::values::stats::IndexedColumns;

/// Returns rows with columns of several types, including nested ones, with NULLs and values of different lengths.
fn rows(count: usize) -> RecordBatch {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut texts = StringBuilder::new();
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut ids = Int64Builder::new();
    for row in 0..count {
        // The first rows contain no NULL, so that some batches have no null buffer.
        let is_null = row > count / 2 && random().is_multiple_of(5);
        ids.append_option((!is_null).then(|| random() as i64));
        let text: String = (0..random() % 40).map(|_| format!("{:06x}", random())).collect();
        texts.append_option((!is_null).then_some(text));
        lists.append_option(
            (!is_null).then(|| (0..random() % 9).map(|_| Some(random() as i32)).collect::<Vec<_>>()),
        );
    }
    let flags: ArrayRef = Arc::new((0..count).map(|row| Some(row % 3 == 0)).collect::<BooleanArray>());
    let nulls = NullBuffer::from_iter((0..count).map(|row| row % 7 != 0));
    let field = Arc::new(Field::new("flag", DataType::Boolean, true));
    let nested = StructArray::new(vec![field].into(), vec![flags], Some(nulls));
    RecordBatch::try_from_iter_with_nullable([
        (
            "p",
            Arc::new((0..count).map(|row| Some((row / 900 % 2) as i32)).collect::<Int32Array>()) as ArrayRef,
            true,
        ),
        ("id", Arc::new(ids.finish()), true),
        ("text", Arc::new(texts.finish()), true),
        ("list", Arc::new(lists.finish()), true),
        ("nested", Arc::new(nested), true),
    ])
    .unwrap()
}

/// Writes `rows` in batches that have the given sizes in turn. Returns the partition, size and bytes of each file.
fn written(
    rows: &RecordBatch,
    sizes: &[usize],
    partition_by: &[&str],
) -> Vec<(Option<String>, i64, Vec<u8>)> {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let columns: Vec<String> = partition_by.iter().map(|name| (*name).to_owned()).collect();
    let spec = TableWriteSpec::unmapped(&rows.schema(), &columns, IndexedColumns::All);
    let mut options = WriteOptions::new(Environment::system());
    options.target_file_size = Some(500_000);
    let mut writer = DataWriter::new(storage.clone(), spec, options).unwrap();
    let (mut start, mut turn) = (0, 0);
    while start < rows.num_rows() {
        let size = sizes[turn % sizes.len()].min(rows.num_rows() - start);
        writer.write(&rows.slice(start, size)).unwrap();
        (start, turn) = (start + size, turn + 1);
    }
    let mut files: Vec<_> = writer
        .finish()
        .unwrap()
        .into_iter()
        .map(|add| {
            let bytes = storage.read(&path::decode(&add.path).unwrap()).unwrap().to_vec();
            (add.partition_values.get("p").cloned().flatten(), add.size, bytes)
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

#[test]
fn the_same_rows_in_different_batches_give_the_same_files() {
    let rows = rows(16_000);
    for partition_by in [&[][..], &["p"]] {
        let expected = written(&rows, &[16_000], partition_by);
        assert!(expected.len() >= 3, "{} files", expected.len());
        for sizes in [&[1, 2, 3][..], &[5_000, 777]] {
            let found = written(&rows, sizes, partition_by);
            let shapes = |files: &[(Option<String>, i64, Vec<u8>)]| {
                files.iter().map(|(partition, size, _)| (partition.clone(), *size)).collect::<Vec<_>>()
            };
            assert_eq!(shapes(&found), shapes(&expected), "{sizes:?} {partition_by:?}");
            assert!(found == expected, "the bytes differ: {sizes:?} {partition_by:?}");
        }
    }
}

/// Returns the number of rows in each chunk.
fn chunks(rows: &RecordBatch, sizes: &[usize]) -> Vec<usize> {
    let (mut chunk, mut found, mut current) = (Chunk::default(), Vec::new(), 0);
    let (mut start, mut turn) = (0, 0);
    while start < rows.num_rows() {
        let size = sizes[turn % sizes.len()].min(rows.num_rows() - start);
        let mut batch = rows.slice(start, size);
        (start, turn) = (start + size, turn + 1);
        while batch.num_rows() > 0 {
            let taken = chunk.missing(&batch).unwrap_or(batch.num_rows());
            chunk.add(&batch.slice(0, taken));
            current += taken;
            batch = batch.slice(taken, batch.num_rows() - taken);
            if chunk.is_complete() {
                chunk.end();
                found.push(std::mem::take(&mut current));
            }
        }
    }
    found
}

/// Returns rows that contain strings and lists of the given lengths.
fn of_lengths(lengths: &[usize]) -> RecordBatch {
    let text = "x".repeat(lengths.iter().copied().max().unwrap_or_default());
    let texts: StringArray = lengths.iter().map(|length| text.get(..*length)).collect();
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(
        lengths.iter().map(|length| Some((0..*length / 1000).map(|value| Some(value as i32)))),
    );
    RecordBatch::try_from_iter([("text", Arc::new(texts) as ArrayRef), ("list", Arc::new(lists))]).unwrap()
}

#[test]
fn large_rows_end_a_chunk_early() {
    let rows = of_lengths(&[400_000; 130]);
    assert_eq!(chunks(&rows, &[130]), [32, 32, 32, 32]);
    assert_eq!(chunks(&of_lengths(&[520; 4096]), &[4096]), [2048, 2048]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn chunks_do_not_depend_on_batches(
        runs in prop::collection::vec((prop::sample::select(vec![0usize, 9, 900, 90_000]), 1usize..700), 1..12),
        sizes in prop::collection::vec(1usize..3000, 1..5),
    ) {
        let lengths = runs.iter().flat_map(|(length, count)| std::iter::repeat_n(*length, *count));
        let lengths: Vec<usize> = lengths.collect();
        let rows = of_lengths(&lengths);
        prop_assert_eq!(chunks(&rows, &sizes), chunks(&rows, &[rows.num_rows()]));
    }
}
