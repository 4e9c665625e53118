//! Malicious tables whose logs name files outside of the table: these files are never read.
//!
//! Protocol: "Add File and Remove File", "Deletion Vector Descriptor Schema", "Sidecar Files".

use deltalog::{ErrorKind, Snapshot, Storage};
use deltalog_testkit::store::FaultyStore;
use futures::executor::block_on;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use serde_json::{Value, json};
use url::Url;

use crate::bytes::read_all;

/// Paths that lead out of the table at `/secret/t`, or to another system.
const PATHS: [&str; 22] = [
    "../x.parquet",
    "a/../../x.parquet",
    "%2e%2e/x.parquet",
    "%2E%2E%2Fx.parquet",
    "..%2fx.parquet",
    "a/%2e%2e/%2e%2e/x.parquet",
    "/secret/x.parquet",
    "/secret/t/../x.parquet",
    "/secret/tt/x.parquet",
    "//secret/x.parquet",
    "file:///secret/x.parquet",
    "file:/secret/x.parquet",
    "memory:///secret/x.parquet",
    "memory:/secret/t/%2e%2e/x.parquet",
    "memory://other/secret/t/x.parquet",
    "s3://bucket/secret/t/x.parquet",
    "http://127.0.0.1/x.parquet",
    "data:,x",
    "x\u{0}.parquet",
    "",
    ".",
    "_delta_log/../../x.parquet",
];

fn table(actions: &[Value]) -> (FaultyStore, Storage) {
    let schema = r#"{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":{}}]}"#;
    let mut lines = vec![
        json!({"protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"],
        }}),
        json!({"metaData": {
            "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
            "partitionColumns": [], "configuration": {},
        }}),
    ];
    lines.extend_from_slice(actions);
    let store = FaultyStore::default();
    let connection = store.connect();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let put = |path: &str, bytes: Vec<u8>| {
        block_on(connection.put(&Path::parse(path).unwrap(), bytes.into())).unwrap()
    };
    put("secret/t/_delta_log/00000000000000000000.json", text.into_bytes());
    for secret in ["secret/x.parquet", "x.parquet", "secret/tt/x.parquet", "secret/deletion_vector_x.bin"] {
        put(secret, b"PAR1 secret PAR1".to_vec());
    }
    let storage =
        Storage::with_immediate_store(Url::parse("memory:///secret/t").unwrap(), connection).unwrap();
    store.take_calls();
    (store, storage)
}

fn add(path: &str, rest: Value) -> Value {
    let mut add =
        json!({"path": path, "partitionValues": {}, "size": 16, "modificationTime": 0, "dataChange": true});
    add.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    json!({"add": add})
}

/// Reads everything in a table, and asserts that no file outside of the table was requested.
fn stays_inside(name: &str, actions: &[Value]) {
    let (store, storage) = table(actions);
    read_all(&storage);
    for call in store.take_calls() {
        let inside =
            call.path.strip_prefix("secret/t").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        assert!(inside && !call.path.contains(".."), "{name:?} led to {}", call.path);
    }
}

#[test]
fn no_path_leads_outside() {
    for path in PATHS {
        stays_inside(path, &[add(path, json!({}))]);
        let (_, storage) = table(&[add(path, json!({}))]);
        let rows = Snapshot::open(&storage, None).and_then(|snapshot| {
            deltalog::engine::scan::TableScan::new(&snapshot).read()?.collect::<Result<Vec<_>, _>>()
        });
        assert!(rows.is_err(), "{path:?} was read");
    }
}

#[test]
fn no_deletion_vector_lies_outside() {
    for path in PATHS {
        let vector = json!({
            "storageType": "p", "pathOrInlineDv": path, "offset": 1, "sizeInBytes": 10, "cardinality": 1,
        });
        stays_inside(
            path,
            &[add("a.parquet", json!({"deletionVector": vector, "stats": "{\"numRecords\":2}"}))],
        );
    }
    for prefix in ["../", "%2e%2e/", "/", "a/../../", "file:///"] {
        let path = format!("{prefix}ab^-aqEH.-t@S}}K{{vb[*k^");
        let vector = json!({
            "storageType": "u", "pathOrInlineDv": path, "offset": 1, "sizeInBytes": 10, "cardinality": 1,
        });
        stays_inside(&path, &[add("a.parquet", json!({"deletionVector": vector}))]);
    }
}

#[test]
fn no_tombstone_leads_outside() {
    for path in PATHS {
        stays_inside(path, &[json!({"remove": {"path": path, "deletionTimestamp": 0, "dataChange": true}})]);
    }
}

#[test]
fn no_hint_leads_outside() {
    for (name, hint) in [
        ("version", json!({"version": u64::MAX, "size": 1})),
        ("parts", json!({"version": 0, "size": 1, "parts": i64::MAX})),
        (
            "path",
            json!({
                "version": 0, "size": 1,
                "v2Checkpoint": {"path": "../../x.parquet", "sizeInBytes": 1, "modificationTime": 0},
            }),
        ),
        (
            "sidecar",
            json!({
                "version": 0, "size": 1,
                "v2Checkpoint": {
                    "path": "00000000000000000000.checkpoint.a.json",
                    "sidecarFiles": [{"path": "../../../x.parquet"}],
                },
            }),
        ),
    ] {
        let (store, storage) = table(&[]);
        block_on(
            store.connect().put(
                &Path::from("secret/t/_delta_log/_last_checkpoint"),
                hint.to_string().into_bytes().into(),
            ),
        )
        .unwrap();
        read_all(&storage);
        assert!(store.take_calls().iter().all(|call| call.path.starts_with("secret/t")), "{name}");
        // A wrong hint is not an error.
        assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 0, "{name}");
    }
}

#[test]
fn no_sidecar_leads_outside() {
    for path in PATHS.into_iter().chain(["honest.parquet"]) {
        let (store, storage) = table(&[]);
        let features = ["v2Checkpoint"];
        let schema = r#"{"type":"struct","fields":[]}"#;
        let lines = [
            json!({"checkpointMetadata": {"version": 1}}),
            json!({"protocol": {
                "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
            }}),
            json!({"metaData": {
                "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
                "partitionColumns": [], "configuration": {},
            }}),
            json!({"sidecar": {"path": path, "sizeInBytes": 16, "modificationTime": 0}}),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let name = "00000000000000000001.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json";
        for (file, text) in [(name, text.as_str()), ("00000000000000000001.json", "{\"commitInfo\":{}}\n")] {
            storage.put(&format!("_delta_log/{file}"), text.as_bytes().to_vec().into()).unwrap();
        }
        read_all(&storage);
        let calls = store.take_calls();
        for call in &calls {
            assert!(
                call.path.starts_with("secret/t/_delta_log") && !call.path.contains(".."),
                "{path:?} led to {}",
                call.path
            );
        }
        let asked = |path: &str| {
            calls.iter().any(|call| call.path == format!("secret/t/_delta_log/_sidecars/{path}"))
        };
        assert!(path != "honest.parquet" || asked(path), "the checkpoint was not read at all");
    }
}

#[test]
fn absurd_numbers_are_not_used_as_sizes() {
    for size in [-1, i64::MIN, i64::MAX] {
        let stats = json!({"numRecords": size, "nullCount": {"n": i64::MIN}}).to_string();
        stays_inside(
            "size",
            &[add("a.parquet", json!({"size": size, "modificationTime": size, "stats": stats}))],
        );
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let (_, storage) = table(&[]);
    storage
        .put("_delta_log/00000000000000000001.json", format!("{{\"add\":{deep}}}\n").into_bytes().into())
        .unwrap();
    assert_eq!(
        Snapshot::open(&storage, None).and_then(|snapshot| snapshot.totals()).unwrap_err().kind(),
        ErrorKind::CorruptLog
    );
}
