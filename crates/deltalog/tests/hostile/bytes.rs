//! One test for each function that parses bytes from a table.

use std::sync::Arc;

use arrow::array::AsArray;
use deltalog::engine::deletion_vector::DeletionVectors;
use deltalog::engine::log::{CommitTimes, InCommitTimestamps};
use deltalog::engine::predicate::{ParseMode, filter_mask, parse, prune};
use deltalog::engine::protocol::{
    Action, DeletionVectorDescriptor, PartitionColumnBuilder, PathResolver, PrimitiveType, StructType,
};
use deltalog::engine::scan::{Answers, DataFiles, FileListing, RowScan, TableScan};
use deltalog::engine::stats::{
    CollectOptions, IndexedColumns, StatsBounds, collect_stats, decode_stats, leaf_columns, normalize_stats,
};
use deltalog::{Snapshot, Storage, StreamOffset};
use futures::executor::block_on;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use parquet::file::metadata::ParquetMetaDataReader;
use url::Url;

use crate::corpus::{self, Files, TABLES, is_checkpoint, is_commit, is_data};
use crate::fuzz::fuzz;

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn resolver() -> PathResolver {
    PathResolver::new(&Url::parse("memory:///t").unwrap()).unwrap()
}

/// Returns a table in memory.
pub fn storage<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Storage {
    let store = InMemory::new();
    for (path, bytes) in files {
        block_on(store.put(&Path::parse(format!("t/{path}")).unwrap(), bytes.to_vec().into())).unwrap();
    }
    Storage::with_immediate_store(Url::parse("memory:///t").unwrap(), Arc::new(store)).unwrap()
}

/// Reads everything that a table can return.
pub fn read_all(storage: &Storage) {
    let _ = CommitTimes::read(storage, None, InCommitTimestamps::Always).map(|times| times.version_at(0));
    let Ok(snapshot) = Snapshot::open(storage, None) else { return };
    let _ = (snapshot.history(None), snapshot.verify());
    let _ = (
        snapshot.totals(),
        snapshot.timestamp_ms(),
        snapshot.domain_metadata(),
        snapshot.app_transaction("a"),
    );
    for batch in FileListing::new(&snapshot).read().into_iter().flatten() {
        if batch.is_err() {
            break;
        }
    }
    let _ = FileListing::new(&snapshot).paths().map(|paths| paths.take(1000).count());
    let _ = (Answers::new(&snapshot).count(), Answers::new(&snapshot).count_by_partition());
    for (path, _) in leaf_columns(snapshot.arrow_schema()).into_iter().take(3) {
        let _ = Answers::new(&snapshot).min_max(&path.to_string());
        let predicate = deltalog::engine::predicate::col(&path.to_string()).is_not_null();
        let _ = FileListing::new(&snapshot)
            .predicate(&predicate)
            .and_then(FileListing::read)
            .map(|list| list.take(100).count());
    }
    for batch in TableScan::new(&snapshot).read().into_iter().flatten().take(100) {
        if batch.is_err() {
            break;
        }
    }
}

/// Returns `table` with `bytes` as the content of the last file that `wanted` accepts.
fn with_file(table: &Files, wanted: impl Fn(&str) -> bool, bytes: &[u8]) -> Option<Storage> {
    let changed = table.keys().rev().find(|path| wanted(path))?;
    Some(storage(
        table.iter().map(|(path, old)| (path.as_str(), if path == changed { bytes } else { old.as_slice() })),
    ))
}

/// Reads everything in the log of a table, but no rows.
fn read_log(storage: &Storage) {
    let Ok(snapshot) = Snapshot::open(storage, None) else { return };
    let _ = (snapshot.totals(), snapshot.domain_metadata(), snapshot.app_transaction("a"));
    let Ok(list) = FileListing::new(&snapshot).read() else { return };
    let rows = list.take_while(Result::is_ok).flatten().map(|batch| batch.num_rows()).sum::<usize>();
    let _ = format!("{rows} {:?}", snapshot.metadata());
    if let Some((path, _)) = leaf_columns(snapshot.arrow_schema()).first() {
        let predicate = deltalog::engine::predicate::col(&path.to_string()).is_not_null();
        let _ = FileListing::new(&snapshot)
            .predicate(&predicate)
            .and_then(FileListing::read)
            .map(|list| list.take(100).count());
    }
}

/// Reads the rows on the thread whose memory is measured.
fn read_rows(storage: &Storage) {
    let Ok(snapshot) = Snapshot::open(storage, None) else { return };
    let files = DataFiles::new(&snapshot, FileListing::new(&snapshot));
    let (Ok(files), Ok(scan)) = (files, RowScan::of(&snapshot)) else { return };
    let _ = scan.with_threads(1).read(files).take_while(Result::is_ok).take(1000).count();
}

/// Calls `read` on mutated tables. Each table has one damaged file.
fn fuzz_tables(target: &str, wanted: impl Fn(&str) -> bool + Copy, read: impl Fn(&Storage)) {
    let is_small = |table: &&Files| table.len() < 24 && table.values().map(Vec::len).sum::<usize>() < 200_000;
    let tables: Vec<&Files> =
        TABLES.iter().filter(is_small).filter(|table| table.keys().any(|path| wanted(path))).collect();
    // The first two bytes of the input are the number of its table.
    let inputs: Vec<Vec<u8>> = tables
        .iter()
        .enumerate()
        .filter_map(|(number, table)| {
            let (_, bytes) = table.iter().rev().find(|(path, _)| wanted(path))?;
            Some([&(number as u16).to_le_bytes(), bytes.as_slice()].concat())
        })
        .collect();
    fuzz(target, &inputs, |input| {
        let Some((number, bytes)) = input.split_first_chunk::<2>() else { return };
        let table = tables[usize::from(u16::from_le_bytes(*number)) % tables.len()];
        if let Some(storage) = with_file(table, wanted, bytes) {
            read(&storage);
        }
    });
}

#[test]
fn action_line() {
    let lines = corpus::files(is_commit);
    let lines: Vec<Vec<u8>> =
        lines.iter().flat_map(|file| file.split(|byte| *byte == b'\n').map(<[u8]>::to_vec)).collect();
    fuzz("action_line", &lines, |input| {
        if let Ok(Some(action)) = Action::parse_line(input) {
            let _ = format!("{action:?}");
        }
    });
}

#[test]
fn commit() {
    fuzz_tables("commit", is_commit, read_log);
}

#[test]
fn checkpoint() {
    fuzz_tables("checkpoint", is_checkpoint, read_log);
}

#[test]
fn last_checkpoint() {
    fuzz_tables(
        "last_checkpoint",
        |path| path == "_delta_log/_last_checkpoint",
        |storage| drop(Snapshot::open(storage, None)),
    );
}

#[test]
fn checksum() {
    fuzz_tables(
        "checksum",
        |path| path.starts_with("_delta_log/") && path.ends_with(".crc"),
        |storage| {
            let Ok(snapshot) = Snapshot::open(storage, None) else { return };
            let _ = (snapshot.totals(), snapshot.verify());
        },
    );
}

#[test]
fn data_file() {
    fuzz_tables("data_file", is_data, read_rows);
}

#[test]
fn deletion_vector_file() {
    fuzz_tables("deletion_vector_file", |path| path.ends_with(".bin"), read_rows);
}

#[test]
fn path() {
    let mut paths: Vec<Vec<u8>> = [corpus::members("add", "path"), corpus::members("remove", "path")]
        .concat()
        .into_iter()
        .map(String::into_bytes)
        .collect();
    paths.extend(
        ["s3a://bucket/t/x", "file:/t/%41", "/t/../x", "a//./b", "memory:///t/x"]
            .map(|path| path.as_bytes().to_vec()),
    );
    let resolver = resolver();
    fuzz("path", &paths, |input| {
        let text = text(input);
        if let Ok(path) = resolver.resolve(&text) {
            let shown = path.to_string();
            assert!(!shown.split('/').any(|segment| segment == ".."), "{text} is {shown}");
        }
        let _ = resolver.parse(&text);
    });
}

#[test]
fn deletion_vector_descriptor() {
    let blobs: Vec<Vec<u8>> = corpus::files(|path| path.ends_with(".bin"));
    let descriptors = corpus::members("add", "deletionVector");
    let mut inputs: Vec<Vec<u8>> = descriptors.into_iter().map(String::into_bytes).collect();
    inputs.push(
        br#"{"storageType":"i","pathOrInlineDv":"wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
            "sizeInBytes":40,"cardinality":6}"#
            .to_vec(),
    );
    let storage = storage(
        blobs
            .iter()
            .take(1)
            .map(|blob| ("deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin", blob.as_slice())),
    );
    let vectors = DeletionVectors::new(storage, resolver());
    fuzz("deletion_vector_descriptor", &inputs, |input| {
        let Ok(descriptor) = serde_json::from_slice::<DeletionVectorDescriptor>(input) else { return };
        if let Ok(vector) = vectors.read(&descriptor, None) {
            assert_eq!(vector.cardinality(), vector.rows().count() as u64);
        }
    });
}

#[test]
fn deletion_vector_blob() {
    let mut inputs = corpus::files(|path| path.ends_with(".bin"));
    // The file has version 1, a size, the magic number without a bitmap, and a checksum.
    inputs.push(
        [&[1u8, 0, 0, 0, 12][..], &1_681_511_377u32.to_le_bytes(), &[0; 8], &[0x4c, 0xd1, 0x0c, 0x1b]]
            .concat(),
    );
    fuzz("deletion_vector_blob", &inputs, |input| {
        let storage = storage([("x.bin", input)]);
        let vectors = DeletionVectors::new(storage, resolver());
        for cardinality in [0, 2, 10] {
            let size =
                input.get(1..5).map_or(0, |size| i32::from_be_bytes([size[0], size[1], size[2], size[3]]));
            let descriptor: DeletionVectorDescriptor = serde_json::from_value(serde_json::json!({
                "storageType": "p",
                "pathOrInlineDv": "memory:///t/x.bin",
                "offset": 1,
                "sizeInBytes": size,
                "cardinality": cardinality,
            }))
            .unwrap();
            if let Ok(vector) = vectors.read(&descriptor, Some(1000)) {
                assert_eq!(
                    (vector.cardinality(), cardinality as u64),
                    (vector.rows().count() as u64, vector.cardinality())
                );
            }
        }
    });
}

const SCHEMA: &str = r#"{"type":"struct","fields":[
    {"name":"l","type":"long","nullable":true,"metadata":{}},
    {"name":"d","type":"decimal(10,2)","nullable":true,"metadata":{}},
    {"name":"f","type":"double","nullable":true,"metadata":{}},
    {"name":"s","type":"string","nullable":true,"metadata":{}},
    {"name":"dt","type":"date","nullable":true,"metadata":{}},
    {"name":"ts","type":"timestamp","nullable":true,"metadata":{}},
    {"name":"ntz","type":"timestamp_ntz","nullable":true,"metadata":{}},
    {"name":"n","type":{"type":"struct","fields":[
        {"name":"x","type":"long","nullable":true,"metadata":{}}
    ]},"nullable":true,"metadata":{}}
]}"#;

#[test]
fn statistics() {
    let mut inputs: Vec<Vec<u8>> =
        corpus::members("add", "stats").into_iter().map(String::into_bytes).collect();
    inputs.push(
        br#"{"numRecords":3,"minValues":{"l":1,"d":1.25,"f":-0.5,"s":"a","dt":"2020-01-01",
            "ts":"2020-01-01T00:00:00.000Z","ntz":"2020-01-01T00:00:00","n":{"x":2}},
            "maxValues":{"l":9,"d":2,"f":1e3,"s":"b\u00e9","dt":"2020-01-02","n":{"x":3}},
            "nullCount":{"l":0,"n":{"x":1}}}"#
            .to_vec(),
    );
    let schema = StructType::from_json(SCHEMA).unwrap().to_arrow().unwrap();
    let columns: Vec<_> = leaf_columns(&schema).into_iter().map(|(path, _)| path).collect();
    let sql = "l > 1 OR d < 2.5 OR f > 0 OR s LIKE 'a%' OR year(dt) = 2020 \
               OR date_trunc('HOUR', ts) > TIMESTAMP '2020-01-01' OR n.x IS NULL";
    let predicate = parse(sql, "Europe/Berlin", ParseMode::Strict).unwrap().bind(&schema).unwrap();
    fuzz("statistics", &inputs, |input| {
        let text = text(input);
        let stats = decode_stats([Some(text.as_ref()), None], &schema, &columns).unwrap();
        assert_eq!(normalize_stats(&stats, &schema, &columns).unwrap(), stats);
        prune(&predicate, &StatsBounds::new(stats, None).unwrap()).unwrap();
    });
}

#[test]
fn partition_values() {
    let inputs = [
        "12",
        "-1.50",
        "1e3",
        "2020-01-01",
        "+12020-01-01",
        "2020-01-01 10:00:00.123456",
        "2020-01-01T00:00:00+05:30",
        "true",
        "NaN",
        "é",
    ];
    let names = [
        "string",
        "long",
        "byte",
        "float",
        "double",
        "decimal(10,2)",
        "decimal(38,38)",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    ];
    fuzz("partition_values", &inputs.map(|input| input.as_bytes().to_vec()), |input| {
        for name in names {
            let mut column = PartitionColumnBuilder::new("p", &PrimitiveType::from_name(name).unwrap());
            let _ = column.append(Some(&text(input)));
            let _ = column.finish();
        }
    });
}

#[test]
fn predicate() {
    let inputs = [
        "l > 5L AND (s IN ('a', 'b\\'', NULL) OR NOT (d <= 1.50BD)) AND s LIKE 'a_%' ESCAPE '/'",
        "date_trunc('MONTH', ts) = TIMESTAMP '2020-01-01 00:00:00' \
         AND CAST(ts AS DATE) BETWEEN DATE '2020-01-01' AND DATE '2021-01-01'",
        "year(dt) <=> 2020 OR add_months(dt, 3) < DATE '2020-01-01' OR `n`.x IS NOT NULL \
         OR startswith(s, 'x') IS UNKNOWN",
        "substring(s, 1, 3) = 'abc' AND f = CAST('NaN' AS DOUBLE) AND X'00FF' = s AND ntz > TIMESTAMP_NTZ '2020-01-01'",
        "hash(l) % 3 = 1 || case when a[1] then 2 end",
    ];
    let schema = Arc::new(StructType::from_json(SCHEMA).unwrap().to_arrow().unwrap());
    let empty = arrow::array::RecordBatch::new_empty(Arc::clone(&schema));
    fuzz("predicate", &inputs.map(|input| input.as_bytes().to_vec()), |input| {
        let text = text(input);
        let pruning = parse(&text, "America/St_Johns", ParseMode::Pruning).unwrap();
        let _ = (pruning.to_string(), pruning.bind_for_pruning(&schema));
        if let Ok(strict) = parse(&text, "UTC", ParseMode::Strict) {
            let shown = strict.to_string();
            let again = parse(&shown, "UTC", ParseMode::Strict).unwrap();
            assert_eq!(again.to_string(), shown);
            // A string in double quotes is displayed in single quotes.
            if !text.contains('"') {
                assert_eq!(again, strict, "{shown}");
            }
            if let Ok(bound) = strict.bind(&schema) {
                filter_mask(&bound, &empty).unwrap();
            }
        }
    });
}

#[test]
fn schema() {
    let mut inputs: Vec<Vec<u8>> =
        corpus::members("metaData", "schemaString").into_iter().map(String::into_bytes).collect();
    inputs.push(SCHEMA.as_bytes().to_vec());
    inputs.push(
        format!(
            "{}\"long\"{}",
            r#"{"type":"array","elementType":"#.repeat(200),
            r#","containsNull":true}"#.repeat(200)
        )
        .into_bytes(),
    );
    fuzz("schema", &inputs, |input| {
        if let Ok(schema) = StructType::from_json(&text(input)) {
            let again = StructType::from_json(&schema.to_json()).unwrap();
            assert_eq!(again.to_json(), schema.to_json());
            let _ = schema.to_arrow();
        }
    });
}

#[test]
fn stream_offset() {
    let inputs = [
        r#"{"sourceVersion":1,"reservoirId":"9b1f","reservoirVersion":3,"index":-1,"isStartingVersion":false}"#,
        r#"{"sourceVersion":1,"reservoirId":"9b1f","reservoirVersion":0,"index":119,"isStartingVersion":true}"#,
        r#"{"sourceVersion":3,"reservoirId":"9b1f","reservoirVersion":3,"index":-100,"isStartingVersion":false}"#,
    ];
    fuzz("stream_offset", &inputs.map(|input| input.as_bytes().to_vec()), |input| {
        if let Ok(offset) = StreamOffset::parse(&text(input)) {
            assert_eq!(StreamOffset::parse(&offset.to_string()).unwrap(), offset);
        }
    });
}

#[test]
fn footer_statistics() {
    fuzz("footer_statistics", &corpus::files(is_data), |input| {
        let bytes = bytes::Bytes::copy_from_slice(input);
        // Panics of the Parquet library are ignored here. The test `data_file` checks that no panic leaves the crate.
        let read = std::panic::catch_unwind(|| ParquetMetaDataReader::new().parse_and_finish(&bytes));
        let Ok(Ok(metadata)) = read else { return };
        let Ok(schema) =
            parquet::arrow::parquet_to_arrow_schema(metadata.file_metadata().schema_descr(), None)
        else {
            return;
        };
        let options = CollectOptions { columns: IndexedColumns::All, is_own: true };
        if let Ok(stats) = collect_stats(&metadata, &schema, &options) {
            let columns: Vec<_> = leaf_columns(&schema).into_iter().map(|(path, _)| path).collect();
            let stats = decode_stats([Some(stats.as_str())], &schema, &columns).unwrap();
            assert!(
                stats
                    .column_by_name("numRecords")
                    .unwrap()
                    .as_primitive::<arrow::datatypes::Int64Type>()
                    .value(0)
                    >= 0
            );
        }
    });
}
