//! Checkpoints with wide rows: the size of batches in bytes is bounded whatever the footer says, and values that do not
//! fit in one Arrow array are not treated as damage.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use serde_json::json;

use super::{AddRequest, Checkpoint, CheckpointReader};
use crate::log::replay::columns::{FileColumn, FileColumns};
use crate::log::replay::filter::FileFilter;
use crate::protocol::PathResolver;
use crate::runtime::environment::Environment;
use crate::runtime::row_bytes::weight_of;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::upkeep::checkpoint::write_checkpoint;

pub(super) const FILES: usize = 600;
const BYTES: usize = 4_000;

/// Returns a log that consists of one checkpoint. `of` returns the statistics of each file.
pub(super) fn checkpoint(directory: &Path, of: impl Fn(usize) -> String) -> Storage {
    let log = directory.join("_delta_log");
    std::fs::create_dir(&log).unwrap();
    let field = json!({"name": "a", "type": "string", "nullable": true, "metadata": {}});
    let schema = json!({"type": "struct", "fields": [field]}).to_string();
    let mut lines = vec![
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
        json!({"metaData": {
            "id": "x", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
            "partitionColumns": [], "configuration": {},
        }}),
    ];
    for file in 0..FILES {
        let stats = json!({"numRecords": 1, "minValues": {"a": of(file)}}).to_string();
        lines.push(json!({"add": {
            "path": format!("f{file}"), "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": true,
            "stats": stats,
        }}));
    }
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let commit = log.join("00000000000000000000.json");
    std::fs::write(&commit, lines.join("\n")).unwrap();
    let storage = Storage::open(directory.to_str().unwrap(), []).unwrap();
    write_checkpoint(&Snapshot::open(&storage, None).unwrap(), &Environment::system()).unwrap();
    std::fs::remove_file(commit).unwrap();
    storage.with_batch_bytes(BYTES)
}

pub(super) fn opened(storage: &Storage) -> Arc<Checkpoint> {
    let snapshot = Snapshot::open(storage, None).unwrap();
    let files = snapshot.segment().checkpoint.clone().unwrap();
    let resolver = PathResolver::new(storage.root()).unwrap();
    Arc::new(Checkpoint::new(storage, &resolver, files, &[], &Arc::from([])))
}

/// Rewrites the checkpoint with dictionaries, and with a footer that does not show how often a value is repeated.
fn understate(directory: &Path) {
    let path = directory.join("_delta_log/00000000000000000000.checkpoint.parquet");
    let rows = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap().build().unwrap();
    let rows: Vec<RecordBatch> = rows.collect::<Result<_, _>>().unwrap();
    let properties = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None).build();
    let target = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(target, rows[0].schema(), Some(properties)).unwrap();
    rows.iter().for_each(|rows| writer.write(rows).unwrap());
    writer.close().unwrap();
}

/// Reads the files, and checks that the size of each batch is bounded. Returns the lengths of the files' statistics.
fn lengths(storage: &Storage, request: AddRequest) -> Vec<usize> {
    let looked_at = Arc::clone(&request.looked_at);
    let mut found = Vec::new();
    for batch in CheckpointReader::adds_of(&opened(storage), request) {
        let batch = batch.unwrap();
        let bytes = weight_of(&batch, 0, batch.num_rows());
        assert!(batch.num_rows() == 1 || bytes <= 3 * BYTES, "{bytes} bytes in {} rows", batch.num_rows());
        let stats = batch.column_by_name("stats").unwrap().as_string::<i32>();
        found.extend(stats.iter().map(|stats| stats.unwrap().len()));
    }
    assert_eq!(looked_at.load(Ordering::Relaxed), FILES as u64);
    found
}

#[test]
fn wide_statistics_are_read_in_small_batches() {
    for (repeats, understates) in [(false, false), (true, false), (true, true)] {
        let directory = tempfile::tempdir().unwrap();
        let text = |file: usize| format!("{}", if repeats { 1 } else { file % 10 }).repeat(700);
        let storage = checkpoint(directory.path(), text);
        if understates {
            understate(directory.path());
        }
        let expected: Vec<usize> = (0..FILES)
            .map(|file| format!(r#"{{"numRecords":1,"minValues":{{"a":"{}"}}}}"#, text(file)).len())
            .collect();
        let sorted = |mut lengths: Vec<usize>| {
            lengths.sort_unstable();
            lengths
        };
        assert_eq!(sorted(lengths(&storage, AddRequest::new(FileColumns::all()))), sorted(expected.clone()));
        // The filter reads the statistics in the first case, but not in the second.
        for column in [FileColumn::Stats, FileColumn::Path] {
            let filter = FileFilter {
                columns: FileColumns::default().with(column),
                parsed_stats: None,
                prefers_text: true,
                keep: Arc::new(|rows| Ok(BooleanArray::from(vec![true; rows.num_rows()]))),
            };
            let request = AddRequest { filters: vec![filter], ..AddRequest::new(FileColumns::all()) };
            assert_eq!(sorted(lengths(&storage, request)), sorted(expected.clone()));
        }
    }
}

/// Statistics that do not fit in one Arrow array are not damage. In this test, an array can hold at most 64 times
/// [`BYTES`], and no other files of the log can replace the checkpoint.
#[test]
fn statistics_too_large_for_one_array_are_not_damage() {
    let directory = tempfile::tempdir().unwrap();
    let storage = checkpoint(directory.path(), |_| "1".repeat(1_500));
    understate(directory.path());
    assert_eq!(lengths(&storage, AddRequest::new(FileColumns::all())).len(), FILES);
}
