//! Writes the same checkpoint in every form that the protocol defines. Protocol: "Checkpoint Naming Scheme", "V2 Spec".

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use deltalog::Storage;
use deltalog::engine::protocol::log_name::{CheckpointFormat, LogFileName};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use uuid::Uuid;

/// A form of a checkpoint, with the number of its parts or sidecars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Classic,
    Parts(u32),
    ClassicV2(usize),
    UuidParquet(usize),
    UuidJson(usize),
}

/// Every form.
pub const FORMS: [Form; 10] = [
    Form::Classic,
    Form::Parts(1),
    Form::Parts(3),
    Form::ClassicV2(0),
    Form::ClassicV2(2),
    Form::UuidParquet(0),
    Form::UuidParquet(1),
    Form::UuidParquet(3),
    Form::UuidJson(0),
    Form::UuidJson(3),
];

/// Rewrites the classic checkpoint of `version` in another form; returns its files, with the sidecars last.
pub fn rewrite(storage: &Storage, version: u64, form: Form) -> Vec<String> {
    let classic = LogFileName::ClassicCheckpoint(version).path();
    if form == Form::Classic {
        return vec![classic];
    }
    let batch = read(storage, &classic);
    storage.delete(&classic).unwrap();
    let uuid = Uuid::from_u128(version.into());
    let (files, others) = (rows(&batch, true), rows(&batch, false));
    match form {
        Form::Classic => unreachable!(),
        Form::Parts(parts) => {
            let part = |part: u32| {
                let batch = if part == 1 {
                    concat_batches(&batch.schema(), [&others, &share(&files, 0, parts as usize)]).unwrap()
                } else {
                    share(&files, part as usize - 1, parts as usize)
                };
                put(storage, LogFileName::CheckpointPart { version, part, parts }.path(), &batch)
            };
            (1..=parts).map(part).collect()
        }
        Form::ClassicV2(sidecars) | Form::UuidParquet(sidecars) | Form::UuidJson(sidecars) => {
            let sidecars: Vec<String> = (0..sidecars)
                .map(|index| {
                    put(
                        storage,
                        format!(
                            "_delta_log/_sidecars/{version}-{index} of {}.parquet",
                            format!("{form:?}").to_lowercase().replace(['(', ')'], "")
                        ),
                        &file_columns(&share(&files, index, sidecars)),
                    )
                })
                .collect();
            let mut lines = vec![json!({"checkpointMetadata": {"version": version, "tags": {}}}).to_string()];
            for path in &sidecars {
                let name = path.rsplit('/').next().unwrap().replace(' ', "%20");
                let size = storage.read(path).unwrap().len();
                let sidecar = json!({"path": name, "sizeInBytes": size, "modificationTime": 1});
                lines.push(json!({ "sidecar": sidecar }).to_string());
            }
            lines.extend(json_lines(&others));
            if sidecars.is_empty() {
                lines.extend(json_lines(&files));
            }
            let top = match form {
                Form::UuidJson(_) => {
                    let path =
                        LogFileName::UuidCheckpoint { version, uuid, format: CheckpointFormat::Json }.path();
                    storage.put(&path, (lines.join("\n") + "\n").into()).unwrap();
                    path
                }
                Form::UuidParquet(_) => put(
                    storage,
                    LogFileName::UuidCheckpoint { version, uuid, format: CheckpointFormat::Parquet }.path(),
                    &v2_batch(&batch.schema(), &lines),
                ),
                _ => put(storage, classic, &v2_batch(&batch.schema(), &lines)),
            };
            [top].into_iter().chain(sidecars).collect()
        }
    }
}

fn read(storage: &Storage, path: &str) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(storage.read(path).unwrap())
        .unwrap()
        .with_batch_size(1 << 20)
        .build()
        .unwrap();
    let batches: Vec<_> = reader.map(|batch| batch.unwrap()).collect();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

/// Writes `batch` in row groups of two rows.
pub fn put(storage: &Storage, path: String, batch: &RecordBatch) -> String {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    for start in (0..batch.num_rows()).step_by(2) {
        writer.write(&batch.slice(start, 2.min(batch.num_rows() - start))).unwrap();
        writer.flush().unwrap();
    }
    storage.put(&path, writer.into_inner().unwrap().into()).unwrap();
    path
}

/// Returns the rows of a checkpoint that have file actions, or the other rows if `with_files` is false.
fn rows(batch: &RecordBatch, with_files: bool) -> RecordBatch {
    let of = |name: &str, row: usize| batch.column_by_name(name).is_some_and(|column| column.is_valid(row));
    let keep: BooleanArray =
        (0..batch.num_rows()).map(|row| Some((of("add", row) || of("remove", row)) == with_files)).collect();
    filter_record_batch(batch, &keep).unwrap()
}

fn share(batch: &RecordBatch, index: usize, of: usize) -> RecordBatch {
    let keep: BooleanArray = (0..batch.num_rows()).map(|row| Some(row % of == index)).collect();
    filter_record_batch(batch, &keep).unwrap()
}

/// Returns the columns of file actions, which are the only columns of sidecars.
fn file_columns(batch: &RecordBatch) -> RecordBatch {
    let indices: Vec<_> =
        ["add", "remove"].iter().map(|name| batch.schema().index_of(name).unwrap()).collect();
    batch.project(&indices).unwrap()
}

fn json_lines(batch: &RecordBatch) -> Vec<String> {
    let mut writer = arrow::json::LineDelimitedWriter::new(Vec::new());
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    let text = String::from_utf8(writer.into_inner()).unwrap();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap().to_string()).collect()
}

fn v2_batch(schema: &SchemaRef, lines: &[String]) -> RecordBatch {
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    let tags = Field::new(
        "tags",
        DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries), false)), false),
        true,
    );
    let long = |name: &str| Field::new(name, DataType::Int64, true);
    let own = [
        ("checkpointMetadata", vec![long("version"), tags.clone()]),
        (
            "sidecar",
            vec![
                Field::new("path", DataType::Utf8, true),
                long("sizeInBytes"),
                long("modificationTime"),
                tags,
            ],
        ),
    ];
    let own = own.map(|(name, fields)| Arc::new(Field::new(name, DataType::Struct(fields.into()), true)));
    let schema = Arc::new(Schema::new(schema.fields().iter().cloned().chain(own).collect::<Fields>()));
    let mut reader = arrow::json::ReaderBuilder::new(schema)
        .with_batch_size(1 << 20)
        .build(Cursor::new(lines.join("\n")))
        .unwrap();
    reader.next().unwrap().unwrap()
}
