//! Streams of rows: they stop when they are dropped, and errors come in order and name their file.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::datatypes::DataType;

use super::PartitionRow;
use super::tests::{Table, field, ints, texts};
use crate::error::{Error, ErrorKind};

#[test]
fn a_dropped_stream_stops_reading() {
    let mut table = Table::new(vec![field("id", DataType::Int64)]);
    table.write_groups(vec![("id", ints(0..1000))], PartitionRow::empty(), 100);
    let (file, taken) = (table.files[0].clone(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&taken);
    let endless = std::iter::repeat_with(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(file.clone())
    });
    let mut stream = table.scan().with_threads(3).with_batch_rows(10).read(endless);
    assert_eq!(stream.next().unwrap().unwrap().column(0), &ints(0..10));
    std::thread::sleep(Duration::from_millis(50));
    assert!(taken.load(Ordering::SeqCst) < 20, "memory is bounded");
    drop(stream);
    // The iterator is dropped, together with the counter in it, when the last thread ends.
    let deadline = Instant::now() + Duration::from_secs(20);
    while Arc::strong_count(&taken) > 1 {
        assert!(Instant::now() < deadline, "the threads did not stop");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn rows_before_an_error_are_returned_and_nothing_after_it() {
    let mut table = Table::new(vec![field("id", DataType::Int64)]);
    for first in 0..6 {
        table.write(vec![("id", ints(first * 10..first * 10 + 10))]);
    }
    fs::remove_file(table.path("part 3.parquet")).unwrap();
    for threads in 1..5 {
        let mut stream = table.scan().with_threads(threads).read(table.files.clone().into_iter().map(Ok));
        for first in 0..3 {
            assert_eq!(stream.next().unwrap().unwrap().column(0), &ints(first * 10..first * 10 + 10));
        }
        let error = stream.next().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::FileNotFound, Some("part 3.parquet")));
        assert!(error.hint().unwrap().contains("vacuumed") && error.table().is_some());
        assert!(stream.next().is_none());

        let files = table.files.clone().into_iter().take(2).map(Ok).chain([Err(Error::corrupt_log("torn"))]);
        let outcome: Vec<_> = table
            .scan()
            .with_threads(threads)
            .read(files)
            .map(|batch| batch.map_err(|error| error.kind()))
            .collect();
        assert_eq!(outcome.len(), 3);
        assert_eq!(outcome[2], Err(ErrorKind::CorruptLog));

        let files = table
            .files
            .clone()
            .into_iter()
            .take(2)
            .map(Ok)
            .chain(std::iter::from_fn(|| std::panic::panic_any("the list broke")));
        let outcome: Vec<_> = table.scan().with_threads(threads).read(files).collect();
        assert!(outcome.last().unwrap().as_ref().unwrap_err().to_string().contains("the list broke"));
    }
}

#[test]
fn a_stream_can_be_sent_to_another_thread() {
    let mut table = Table::new(vec![field("id", DataType::Int64)]);
    table.write(vec![("id", ints(0..5))]);
    let stream = table.scan().read(table.files.clone().into_iter().map(Ok));
    assert!(format!("{stream:?}").contains("not started"));
    let rows = std::thread::spawn(move || stream.map(|batch| batch.unwrap().num_rows()).sum::<usize>());
    assert_eq!(rows.join().unwrap(), 5);
}

#[test]
fn errors_of_damaged_files_name_the_file() {
    let mut table = Table::new(vec![field("id", DataType::Int64), field("s", DataType::Utf8)]);
    table.write(vec![("id", ints(0..50)), ("s", texts(&["x"; 50]))]);
    let whole = fs::read(table.path("part 0.parquet")).unwrap();
    for length in (0..whole.len()).step_by(7) {
        fs::write(table.path("part 0.parquet"), &whole[..length]).unwrap();
        let error = table.error();
        assert_eq!((error.kind(), error.path()), (ErrorKind::CorruptData, Some("part 0.parquet")));
        assert!(error.hint().unwrap().contains(&format!("{length} bytes")), "{error}");
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(table.path("part 0.parquet"), bytes).unwrap();
        match table.rows(table.scan()) {
            Ok(_) => {}
            Err(error) => assert_eq!(
                (error.kind(), error.path()),
                (ErrorKind::CorruptData, Some("part 0.parquet")),
                "{error}"
            ),
        }
    }
}
