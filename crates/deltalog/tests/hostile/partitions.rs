//! Rows of many partitions in an unfortunate order: memory stays bounded, whatever comes.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use deltalog::engine::write::{DataWriter, TableWriteSpec, WriteOptions};
use deltalog::{Environment, Metadata, Protocol, Storage};
use deltalog_testkit::measure;
use serde_json::json;

use crate::fuzz::Random;

const PARTITIONS: i64 = 2_000;
const BATCHES: usize = 15;
const MEMORY: usize = 2 << 20;

/// Returns a row of each partition, with a text that does not compress. A batch takes 0.8 MB.
fn batch() -> RecordBatch {
    let mut random = Random::new(1);
    let text = |_| (0..25).map(|_| format!("{:016x}", random.next())).collect::<String>();
    let partitions: ArrayRef = Arc::new(Int64Array::from_iter_values(0..PARTITIONS));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..PARTITIONS).map(text)));
    RecordBatch::try_from_iter_with_nullable([("p", partitions, true), ("text", texts, true)]).unwrap()
}

#[test]
fn many_partitions_in_turns_take_bounded_memory() {
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
    let (table, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let storage = Storage::open(table.path().to_str().unwrap(), []).unwrap();
    let mut options = WriteOptions::new(Environment::system());
    options.memory_budget = MEMORY;
    options.temporary_directory = Some(temporary.path().to_owned());
    let spec = TableWriteSpec::new(&protocol, &metadata).unwrap();
    let mut writer = DataWriter::new(storage, spec, options).unwrap();
    let batch = batch();
    let bytes = batch.get_array_memory_size();
    let ((), peak) = measure(|| (0..BATCHES).for_each(|_| writer.write(&batch).unwrap()));
    assert!(writer.overflowed() as usize > BATCHES * bytes / 4, "{} bytes", writer.overflowed());
    // Besides the budget: the copy of a batch in the order of partitions, and what is known of each partition.
    assert!(peak < MEMORY + 3 * bytes, "{peak} bytes at once, for batches of {bytes}");
    writer.abort().unwrap();
}
