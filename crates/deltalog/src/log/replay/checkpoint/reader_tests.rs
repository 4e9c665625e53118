//! The threads that decode a checkpoint stay close to the caller.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

use super::reader::{MOST_THREADS, PIECES_PER_THREAD};
use super::wide_tests::{FILES, checkpoint, opened};
use super::{AddRequest, CheckpointReader};
use crate::log::replay::columns::FileColumns;

const ROWS_PER_GROUP: usize = 5;

/// Rewrites the checkpoint with small row groups.
fn divide(directory: &Path) {
    let path = directory.join("_delta_log/00000000000000000000.checkpoint.parquet");
    let rows = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap().build().unwrap();
    let rows: Vec<RecordBatch> = rows.collect::<Result<_, _>>().unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(ROWS_PER_GROUP)).build();
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), rows[0].schema(), Some(properties)).unwrap();
    rows.iter().for_each(|rows| writer.write(rows).unwrap());
    assert!(writer.close().unwrap().num_row_groups() > FILES / ROWS_PER_GROUP);
}

/// Waits until the count does not change for a while. Returns it.
fn settled(count: &AtomicU64) -> u64 {
    let mut before = u64::MAX;
    loop {
        let now = count.load(Ordering::Relaxed);
        if now == before {
            return now;
        }
        before = now;
        sleep(Duration::from_millis(200));
    }
}

/// Many small row groups must not be decoded into memory while the caller processes the first rows.
#[test]
fn small_row_groups_are_not_decoded_far_ahead() {
    let directory = tempfile::tempdir().unwrap();
    let storage = checkpoint(directory.path(), |file| file.to_string());
    divide(directory.path());
    let request = AddRequest::new(FileColumns::all());
    let decoded = Arc::clone(&request.looked_at);
    let mut reader = CheckpointReader::adds_of(&opened(&storage), request);
    let mut returned = reader.next().unwrap().unwrap().num_rows();
    // The caller is still at the first piece, so only the first pieces were passed on.
    let most = MOST_THREADS * PIECES_PER_THREAD * ROWS_PER_GROUP;
    assert!(settled(&decoded) <= most as u64, "{} files were decoded", settled(&decoded));
    returned += reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>();
    assert_eq!((returned, settled(&decoded)), (FILES, FILES as u64));
}
