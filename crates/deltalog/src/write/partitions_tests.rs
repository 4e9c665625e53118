//! Tests how many files a write with many partitions creates, and how much memory and how many open files it needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use super::{DataWriter, TableWriteSpec, WriteOptions};
use crate::protocol::{Add, path};
use crate::storage::Storage;
use crate::values::stats::IndexedColumns;
use crate::{Environment, ErrorKind};

/// A table's directory, and the directory for temporary files.
struct Place {
    table: TempDir,
    temporary: TempDir,
    storage: Storage,
}

impl Place {
    fn new() -> Self {
        let (table, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let storage = Storage::open(table.path().to_str().unwrap(), []).unwrap();
        Self { table, temporary, storage }
    }

    fn options(&self, memory_budget: usize) -> WriteOptions {
        let mut options = WriteOptions::new(Environment::system());
        options.memory_budget = memory_budget;
        options.temporary_directory = Some(self.temporary.path().to_owned());
        options
    }

    /// Returns a writer for a table that is partitioned by its first column.
    fn writer(&self, rows: &RecordBatch, options: WriteOptions) -> DataWriter {
        let columns = [rows.schema_ref().field(0).name().clone()];
        let spec = TableWriteSpec::unmapped(&rows.schema(), &columns, IndexedColumns::All);
        DataWriter::new(self.storage.clone(), spec, options).unwrap()
    }

    fn bytes(&self, add: &Add) -> Vec<u8> {
        self.storage.read(&path::decode(&add.path).unwrap()).unwrap().to_vec()
    }

    /// Returns the contents of all files, by partition. The files of a partition are in the order of its rows.
    fn files(&self, adds: &[Add]) -> BTreeMap<String, Vec<Vec<u8>>> {
        let mut files: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for add in adds {
            let partition = add.partition_values.values().next().unwrap().clone().unwrap();
            files.entry(partition).or_default().push(self.bytes(add));
        }
        files
    }

    fn names(&self) -> usize {
        self.storage.list_after("", "").unwrap().len()
    }

    /// Returns the number of files below `directory` that this process has open.
    #[cfg(target_os = "linux")]
    fn open_below(directory: &TempDir) -> usize {
        let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        targets.filter(|target| target.starts_with(directory.path()) && !target.is_dir()).count()
    }
}

/// Returns rows of the given partitions, each with a row number and an incompressible string of `length` characters.
fn rows(partitions: &[usize], length: usize) -> RecordBatch {
    let mut texts = StringBuilder::new();
    let mut state = 1u64;
    for _ in partitions {
        let text: String = (0..length.div_ceil(8))
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                format!("{:08x}", state >> 32)
            })
            .collect();
        texts.append_value(text);
    }
    RecordBatch::try_from_iter([
        ("p", Arc::new(Int64Array::from_iter_values(partitions.iter().map(|p| *p as i64))) as ArrayRef),
        ("id", Arc::new(Int64Array::from_iter_values(0..partitions.len() as i64))),
        ("text", Arc::new(texts.finish())),
    ])
    .unwrap()
}

/// Returns the same rows with the partitions in a different order. The rows of each partition keep their order.
fn reordered(rows: &RecordBatch, partitions: &[usize]) -> RecordBatch {
    let values = rows.column(0).as_primitive::<Int64Type>().values();
    let mut of: BTreeMap<i64, std::collections::VecDeque<u64>> = BTreeMap::new();
    for (row, value) in (0u64..).zip(values) {
        of.entry(*value).or_default().push_back(row);
    }
    let order = partitions.iter().map(|p| of.get_mut(&(*p as i64)).unwrap().pop_front().unwrap());
    take_record_batch(rows, &UInt64Array::from_iter_values(order)).unwrap()
}

/// Writes `rows` in batches of `size` rows.
fn write(place: &Place, rows: &RecordBatch, size: usize, options: WriteOptions) -> (Vec<Add>, u64) {
    let mut writer = place.writer(rows, options);
    for start in (0..rows.num_rows()).step_by(size) {
        writer.write(&rows.slice(start, size.min(rows.num_rows() - start))).unwrap();
    }
    let overflowed = writer.overflowed();
    (writer.finish().unwrap(), overflowed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// The files of a partition depend only on its own rows, and not on the order of the partitions, the batches, or
    /// the memory.
    #[test]
    fn files_depend_on_the_rows_of_their_partition_alone(
        partitions in prop::collection::vec(0usize..7, 1..3000),
        seed in any::<u64>(),
        size in prop::sample::select(vec![3usize, 500, 3000]),
        memory_budget in prop::sample::select(vec![1usize, 20_000, 100_000, 256 << 20]),
    ) {
        let mut sorted = partitions.clone();
        sorted.sort_unstable();
        let rows = rows(&sorted, 40);
        let place = Place::new();
        let (expected, _) = write(&place, &rows, rows.num_rows(), place.options(256 << 20));
        let expected = place.files(&expected);
        let mut shuffled = partitions;
        let mut state = seed;
        for place in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(place, (state >> 33) as usize % (place + 1));
        }
        let other = Place::new();
        let (adds, overflowed) = write(&other, &reordered(&rows, &shuffled), size, other.options(memory_budget));
        prop_assert!(overflowed > 0 || memory_budget > 1 || rows.num_rows() < 2_000, "everything was in memory");
        prop_assert!(other.files(&adds) == expected, "the files differ");
        prop_assert_eq!(other.names(), adds.len());
    }
}

/// Files reach their target size. Files that do not all fit in memory are written while rows are still being added.
#[test]
fn the_number_of_files_follows_from_their_size() {
    let sorted: Vec<usize> = (0..36_000).map(|row| row / 12_000).collect();
    let rows = rows(&sorted, 400);
    let target = 2 << 20;
    let options =
        |place: &Place, budget| WriteOptions { target_file_size: Some(target), ..place.options(budget) };
    let place = Place::new();
    let (adds, _) = write(&place, &rows, 36_000, options(&place, 256 << 20));
    let expected = place.files(&adds);
    for files in expected.values() {
        let bytes: usize = files.iter().map(Vec::len).sum();
        assert_eq!(files.len(), bytes.div_ceil(target as usize + (1 << 19)), "{bytes} bytes");
        assert!(files.iter().rev().skip(1).all(|file| file.len() as u64 >= target), "a file is too small");
    }
    let in_turns: Vec<usize> = (0..36_000).map(|row| row % 3).collect();
    let others = Place::new();
    let (adds, overflowed) = write(&others, &reordered(&rows, &in_turns), 2_000, options(&others, 8 << 20));
    assert!(overflowed > 0);
    assert!(others.files(&adds) == expected, "the files differ");
}

/// A file is completed early because another partition needs a file. Then more rows of its own partition arrive.
#[test]
fn late_rows_join_the_file_of_their_partition() {
    let place = Place::new();
    let some = super::data_writer_tests::every_type();
    let numbers: Vec<u64> = (0..18_000).map(|row| row % 3).collect();
    let many = take_record_batch(&some, &UInt64Array::from(numbers)).unwrap();
    let with = |partition: i64, rows: &RecordBatch| {
        let partition: ArrayRef = Arc::new(Int64Array::from_value(partition, rows.num_rows()));
        let named = |(field, column): (&Arc<arrow::datatypes::Field>, &ArrayRef)| {
            (field.name().clone(), Arc::clone(column), field.is_nullable())
        };
        let columns = rows.schema_ref().fields().iter().zip(rows.columns()).map(named);
        let first = ("p".to_owned(), partition, false);
        RecordBatch::try_from_iter_with_nullable(std::iter::once(first).chain(columns)).unwrap()
    };
    let batches = [with(1, &many), with(2, &many), with(1, &some), with(3, &many), with(1, &some)];
    let mut files = Vec::new();
    for budget in [8 << 20, 256 << 20] {
        let place = Place::new();
        let mut writer = place.writer(&batches[0], place.options(budget));
        for batch in &batches {
            writer.write(batch).unwrap();
        }
        let had_to_wait = place.names() == 3 && writer.open_files() == 1;
        assert_eq!(had_to_wait, budget < 16 << 20, "{} files", place.names());
        let adds = writer.finish().unwrap();
        assert_eq!(place.names(), 3, "the file that was replaced is still there");
        files.push(place.files(&adds));
    }
    assert!(files[0] == files[1], "the files differ");
    assert_eq!(place.names(), 0);
}

/// Rows of every type are unchanged after they have waited in the temporary file.
#[test]
fn rows_of_every_type_can_wait() {
    let place = Place::new();
    let batch = super::data_writer_tests::every_type();
    let spec = TableWriteSpec::unmapped(&batch.schema(), &["long".to_owned()], IndexedColumns::All);
    let mut writer = DataWriter::new(place.storage.clone(), spec, place.options(1)).unwrap();
    for _ in 0..200 {
        writer.write(&batch).unwrap();
    }
    assert!(writer.overflowed() > 0);
    let adds = writer.finish().unwrap();
    assert_eq!(adds.len(), 3);
    for (row, add) in adds.iter().enumerate() {
        let file = place.storage.open_file(&path::decode(&add.path).unwrap()).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let found: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        let found = concat_batches(found[0].schema_ref(), &found).unwrap();
        let mut one = batch.slice(row, 1);
        one.remove_column(4);
        let expected = concat_batches(one.schema_ref(), &vec![one.clone(); 200]).unwrap();
        assert_eq!(super::fit(&found, &one.schema()).unwrap(), expected);
    }
}

/// No file is started for a few rows, so only the temporary file is open.
#[cfg(target_os = "linux")]
#[test]
fn many_partitions_need_few_open_files() {
    let place = Place::new();
    let partitions: Vec<usize> = (0..8_000).map(|row| row * 7919 % 2_000).collect();
    let rows = rows(&partitions, 40);
    let mut writer = place.writer(&rows, place.options(200_000));
    for start in (0..8_000).step_by(2_000) {
        writer.write(&rows.slice(start, 2_000)).unwrap();
        assert!(writer.memory() <= 200_000, "{}", writer.memory());
        assert_eq!((Place::open_below(&place.table), place.names()), (0, 0));
    }
    assert_eq!(Place::open_below(&place.temporary), 1);
}

/// At the end of the write, at most the maximum number of files is open, and each partition has one file.
#[cfg(target_os = "linux")]
#[test]
fn completing_many_partitions_needs_few_open_files() {
    let place = Place::new();
    let rows = rows(&(0..4_000).map(|row| row * 7919 % 80).collect::<Vec<_>>(), 40);
    let mut writer = place.writer(&rows, place.options(100_000));
    writer.write(&rows).unwrap();
    let written = std::thread::scope(|scope| {
        let finishing = scope.spawn(|| writer.finish().unwrap().len());
        let mut most = 0;
        while !finishing.is_finished() {
            most = most.max(Place::open_below(&place.table));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // For each file, the directory that is synced together with it is open as well.
        assert!((1..=32).contains(&most), "{most} files were open at once");
        finishing.join().unwrap()
    });
    assert_eq!((written, place.names()), (80, 80));
    assert_eq!(Place::open_below(&place.temporary), 0);
}

/// The temporary file has no name, so it always disappears with the writer.
#[cfg(target_os = "linux")]
#[test]
fn the_temporary_file_disappears() {
    let place = Place::new();
    let rows = rows(&(0..2_000).map(|row| row % 5).collect::<Vec<_>>(), 40);
    let begin = || {
        let mut writer = place.writer(&rows, place.options(10_000));
        writer.write(&rows).unwrap();
        assert!(writer.overflowed() > 0);
        assert_eq!(Place::open_below(&place.temporary), 1);
        assert_eq!(std::fs::read_dir(place.temporary.path()).unwrap().count(), 0);
        writer
    };
    let is_gone = || Place::open_below(&place.temporary) == 0;
    begin().abort().unwrap();
    assert!(is_gone());
    drop(begin());
    assert!(is_gone());
    let source_panics = || {
        let _writer = begin();
        std::panic::resume_unwind(Box::new("the source"));
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(source_panics)).is_err());
    assert!(is_gone());
    std::fs::write(place.table.path().join("p=3"), "a file where the directory should be").unwrap();
    assert_eq!(begin().finish().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(is_gone());
    assert_eq!(place.names(), 1, "files of a write that failed are left");
    std::fs::remove_file(place.table.path().join("p=3")).unwrap();
    assert_eq!(begin().finish().unwrap().len(), 5);
    assert!(is_gone());
}

/// If the temporary file cannot be written, the write fails with an error that names the directory and says what to
/// do.
#[test]
fn a_write_fails_if_the_temporary_file_cannot_be_written() {
    let place = Place::new();
    let missing = place.temporary.path().join(Uuid::new_v4().to_string());
    let options = WriteOptions { temporary_directory: Some(missing.clone()), ..place.options(10_000) };
    let rows = rows(&(0..2_000).map(|row| row % 5).collect::<Vec<_>>(), 40);
    let mut writer = place.writer(&rows, options);
    let error = writer.write(&rows).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains(missing.to_str().unwrap()), "{error}");
    assert!(error.hint().unwrap().contains("TMPDIR"), "{error}");
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(place.names(), 0);
}
