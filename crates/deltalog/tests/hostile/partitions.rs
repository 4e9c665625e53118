//! Memory stays bounded even if rows of many partitions come in an unfavorable order.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use deltalog::engine::write::{DataWriter, TableWriteSpec, WriteOptions};
use deltalog::{Environment, Metadata, Protocol, Storage};
use deltalog_testkit::measure;
use serde_json::json;

use crate::fuzz::Random;

const MEMORY: usize = 2 << 20;

/// Returns one row for each partition, with a string of 400 bytes that cannot be compressed.
fn batch(count: i64, random: &mut Random) -> RecordBatch {
    let text = |_| (0..25).map(|_| format!("{:016x}", random.next())).collect::<String>();
    let partitions: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..count).map(text)));
    RecordBatch::try_from_iter_with_nullable([("p", partitions, true), ("text", texts, true)]).unwrap()
}

/// Returns a writer that uses at most [`MEMORY`] for rows and writes its files below `table`.
fn writer(table: &Path, temporary: &Path) -> DataWriter {
    let schema = json!({"type": "struct", "fields": [
        {"name": "p", "type": "long", "nullable": true, "metadata": {}},
        {"name": "text", "type": "string", "nullable": true, "metadata": {}},
    ]});
    let metadata: Metadata = serde_json::from_value(json!({
        "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema.to_string(),
        "partitionColumns": ["p"], "configuration": {},
    }))
    .unwrap();
    let protocol: Protocol =
        serde_json::from_value(json!({"minReaderVersion": 1, "minWriterVersion": 2})).unwrap();
    let storage = Storage::open(table.to_str().unwrap(), []).unwrap();
    let mut options = WriteOptions::new(Environment::system());
    options.memory_budget = MEMORY;
    options.temporary_directory = Some(temporary.to_owned());
    DataWriter::new(storage, TableWriteSpec::new(&protocol, &metadata).unwrap(), options).unwrap()
}

#[test]
fn many_partitions_in_turns_take_bounded_memory() {
    const BATCHES: usize = 15;
    let (table, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut writer = writer(table.path(), temporary.path());
    let batch = batch(2_000, &mut Random::new(1));
    let bytes = batch.get_array_memory_size();
    let ((), peak) = measure(|| (0..BATCHES).for_each(|_| writer.write(&batch).unwrap()));
    assert!(writer.overflowed() as usize > BATCHES * bytes / 4, "{} bytes", writer.overflowed());
    // In addition to the budget, the limit allows for a copy of a batch that is sorted by partition, and for the data
    // about each partition.
    assert!(peak < MEMORY + 3 * bytes, "{peak} bytes at once, for batches of {bytes}");
    writer.abort().unwrap();
}

/// The temporary file has so many runs that one block of each does not fit in memory, so some blocks are decoded more
/// than once.
#[test]
fn completing_many_partitions_takes_bounded_memory() {
    let (table, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut writer = writer(table.path(), temporary.path());
    let mut random = Random::new(1);
    (0..250).for_each(|_| writer.write(&batch(200, &mut random)).unwrap());
    assert!(writer.overflowed() > 8 * MEMORY as u64, "{} bytes", writer.overflowed());
    let (files, peak) = measure(|| writer.finish().unwrap().len());
    assert_eq!(files, 200);
    // In addition to the budget, the limit allows for the rows of the small files that are written at the same time,
    // which take at most 16 MiB, and for the encoded files.
    assert!(peak < MEMORY + 3 * (16 << 20), "{peak} bytes at once");
}
