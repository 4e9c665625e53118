//! Parquet files whose schemas are nested so deeply, or claim so many children, that a careless decoder would crash
//! the process.

use deltalog::{ErrorKind, Snapshot};
use serde_json::json;

use crate::bytes::{read_all, storage};

/// Returns a file whose schema has `levels` nested groups. The innermost group claims to have `children` children.
fn file(levels: usize, children: u32) -> Vec<u8> {
    let varint = |mut value: u64| {
        let mut bytes = Vec::new();
        while value > 127 {
            bytes.push((value & 127 | 128) as u8);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let group = |children: u32| {
        [vec![0x35, 2, 0x18, 1, b'n', 0x15], varint(u64::from(children) * 2), vec![0]].concat()
    };
    let mut footer = [vec![0x15, 2, 0x19, 0xfc], varint(levels as u64 + 1)].concat();
    footer.extend((1..levels).flat_map(|_| group(1)));
    footer.extend(group(children));
    footer.extend([0x15, 4, 0x25, 2, 0x18, 1, b'x', 0, 0x16, 0, 0x19, 0x0c, 0]);
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1".to_vec(), footer, length.to_vec(), b"PAR1".to_vec()].concat()
}

const FORMS: [(usize, u32); 4] = [(1_500, 1), (6_000, 1), (10_000, 1), (1, (1 << 31) - 1)];

fn first_commit(size: usize) -> String {
    let schema = r#"{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":{}}]}"#;
    let lines = [
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
        json!({"metaData": {
            "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
            "partitionColumns": [], "configuration": {},
        }}),
        json!({"add": {
            "path": "a.parquet", "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": true,
        }}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn data_files_are_errors() {
    for (levels, children) in FORMS {
        let bytes = file(levels, children);
        let commit = first_commit(bytes.len());
        let storage = storage([
            ("_delta_log/00000000000000000000.json", commit.as_bytes()),
            ("a.parquet", bytes.as_slice()),
        ]);
        let snapshot = Snapshot::open(&storage, None).unwrap();
        let rows = deltalog::engine::scan::TableScan::new(&snapshot)
            .read()
            .and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
        let error = rows.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptData, "{levels} {children}");
        assert!(format!("{error:#} {error:?}").len() < 4_000, "{levels} {children}: {error}");
        read_all(&storage);
    }
}

#[test]
fn checkpoints_are_replaced_by_the_commits() {
    for (levels, children) in FORMS {
        let bytes = file(levels, children);
        let commit = first_commit(10);
        let storage = storage([
            ("_delta_log/00000000000000000000.json", commit.as_bytes()),
            ("_delta_log/00000000000000000001.json", b"{\"commitInfo\":{}}\n"),
            ("_delta_log/00000000000000000001.checkpoint.parquet", bytes.as_slice()),
            ("_delta_log/_last_checkpoint", b"{\"version\":1,\"size\":1}"),
        ]);
        let snapshot = Snapshot::open(&storage, None).unwrap();
        assert_eq!((snapshot.version(), snapshot.totals().unwrap().files), (1, 1), "{levels} {children}");
    }
}
