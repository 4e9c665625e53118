//! Tests with the protocol's examples, and round trips of lines.

use proptest::prelude::*;

use super::*;
use crate::ErrorKind;

fn parse(line: &str) -> Action {
    Action::parse_line(line).unwrap().unwrap()
}

/// All examples of the sections "Change Metadata" to "Checkpoint Metadata". In the example of `protocol`, the fields
/// have the names that the table in its section gives them.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "metaData",
        concat!(
            r#"{"metaData":{"id":"af23c9d7-fff1-4a5a-a2c8-55c59bd782aa","format":{"provider":"parquet","#,
            r#""options":{}},"schemaString":"...","partitionColumns":[],"#,
            r#""configuration":{"appendOnly":"true"}}}"#,
        ),
    ),
    (
        "add",
        concat!(
            r#"{"add":{"path":"date=2017-12-10/part-000...c000.gz.parquet","#,
            r#""partitionValues":{"date":"2017-12-10"},"size":841454,"modificationTime":1512909768000,"#,
            r#""dataChange":true,"stats":"{\"numRecords\":1,\"minValues\":{\"val...","baseRowId":4071,"#,
            r#""defaultRowCommitVersion":41}}"#,
        ),
    ),
    (
        "add",
        concat!(
            r#"{"add":{"path":"date=2017-12-10/part-000...c000.gz.parquet","partitionValues":{},"#,
            r#""size":841454,"modificationTime":1512909768000,"dataChange":true,"stats":"{}","#,
            r#""baseRowId":4071,"defaultRowCommitVersion":41,"clusteringProvider":"liquid"}}"#,
        ),
    ),
    (
        "remove",
        concat!(
            r#"{"remove":{"path":"part-00001-9…..snappy.parquet","deletionTimestamp":1515488792485,"#,
            r#""dataChange":true,"baseRowId":4071,"defaultRowCommitVersion":41}}"#,
        ),
    ),
    (
        "cdc",
        concat!(
            r#"{"cdc":{"path":"_change_data/cdc-00001-c…..snappy.parquet","partitionValues":{},"#,
            r#""size":1213,"dataChange":false}}"#,
        ),
    ),
    ("txn", r#"{"txn":{"appId":"3ba13872-2d47-4e17-86a0-21afd2a22395","version":364475}}"#),
    ("protocol", r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#),
    (
        "protocol",
        concat!(
            r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["columnMapping"],"#,
            r#""writerFeatures":["columnMapping","identityColumns"]}}"#,
        ),
    ),
    (
        "domainMetadata",
        concat!(
            r#"{"domainMetadata":{"domain":"delta.deltaTableFeatureX","#,
            r#""configuration":"{\"key1\":\"value1\"}","removed":false}}"#,
        ),
    ),
    (
        "sidecar",
        concat!(
            r#"{"sidecar":{"path":"016ae953-37a9-438e-8683-9a9a4a79a395.parquet","sizeInBytes":2304522,"#,
            r#""modificationTime":1512909768000,"tags":{}}}"#,
        ),
    ),
    ("checkpointMetadata", r#"{"checkpointMetadata":{"version":1,"tags":{}}}"#),
];

#[test]
fn protocol_examples_are_written_as_they_were_read() {
    for (name, line) in EXAMPLES {
        let action = parse(line);
        assert_eq!(action.name(), *name);
        assert_eq!(action.to_json_line().unwrap(), *line);
    }
}

#[test]
fn commit_info_keeps_unknown_fields() {
    let line = concat!(
        r#"{"commitInfo":{"timestamp":1515491537026,"userId":"100121","#,
        r#""userName":"michael@databricks.com","operation":"INSERT","#,
        r#""operationParameters":{"mode":"Append","partitionBy":"[]"},"#,
        r#""notebook":{"notebookId":"4443029"},"clusterId":"1027-202406-pooh991"}}"#,
    );
    let action = parse(line);
    let Action::CommitInfo(info) = &action else { panic!("{action:?}") };
    assert_eq!(info.timestamp, Some(1515491537026));
    assert_eq!(info.operation.as_deref(), Some("INSERT"));
    assert_eq!(info.other.keys().collect::<Vec<_>>(), ["clusterId", "notebook", "userId"]);
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    let written: serde_json::Value = serde_json::from_str(&action.to_json_line().unwrap()).unwrap();
    assert_eq!(written, value);
}

#[test]
fn commit_info_may_be_any_json_object() {
    for line in [
        r#"{"commitInfo":{"timestamp":"yesterday","operationParameters":"none","readVersion":null}}"#,
        r#"{"commitInfo":{"timestamp":1.5,"isBlindAppend":"maybe"}}"#,
    ] {
        let action = parse(line);
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let written: serde_json::Value = serde_json::from_str(&action.to_json_line().unwrap()).unwrap();
        let Action::CommitInfo(info) = action else { panic!() };
        assert_eq!(info.timestamp, None);
        for (key, kept) in value["commitInfo"].as_object().unwrap() {
            assert!(kept.is_null() || written["commitInfo"][key] == *kept, "{key}");
        }
    }
    assert_eq!(parse(r#"{"commitInfo":[1]}"#), Action::CommitInfo(CommitInfo::default()));
}

#[test]
fn unknown_actions_and_fields_are_ignored() {
    for line in ["{}", r#"{"newAction":{"add":1}}"#, r#"{"add":null,"remove":null}"#] {
        assert_eq!(Action::parse_line(line).unwrap(), None, "{line}");
    }
    let action = parse(r#"{"txn":{"appId":"a","version":1,"later":{"x":[1]}},"also":2,"add":null}"#);
    assert_eq!(action, Action::Txn(SetTransaction { app_id: "a".into(), version: 1, last_updated: None }));
}

#[test]
fn invalid_action_lines_are_a_corrupt_log() {
    let deep = format!(r#"{{"commitInfo":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    for line in [
        "",
        "null",
        "[]",
        r#"{"add":{"path":"a""#,
        r#"{"add":{"path":"a"}}"#,
        r#"{"add":{"partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}"#,
        r#"{"remove":{"dataChange":true}}"#,
        r#"{"protocol":{"minReaderVersion":1}}"#,
        concat!(
            r#"{"txn":{"appId":"a","version":1},"domainMetadata":{"domain":"d","configuration":"","#,
            r#""removed":false}}"#,
        ),
        r#"{"txn":{"appId":"a","version":1}} {"txn":{"appId":"a","version":1}}"#,
        &deep,
    ] {
        assert_eq!(Action::parse_line(line).unwrap_err().kind(), ErrorKind::CorruptLog);
    }
}

#[test]
fn null_maps_and_options_count_as_absent() {
    let Action::Add(add) = parse(concat!(
        r#"{"add":{"path":"a","partitionValues":null,"size":1,"modificationTime":2,"dataChange":true,"#,
        r#""stats":null,"tags":null,"deletionVector":null}}"#,
    )) else {
        panic!()
    };
    assert_eq!(
        add,
        Add { path: "a".into(), size: 1, modification_time: 2, data_change: true, ..Add::default() }
    );
}

/// The first commit of a Delta Live Tables pipeline has metadata in this form.
#[test]
fn metadata_without_a_schema_has_no_columns() {
    let line = concat!(
        r#"{"metaData":{"id":"a","format":{"provider":"parquet","options":{}},"partitionColumns":[],"#,
        r#""configuration":{},"createdTime":1}}"#,
    );
    let action = parse(line);
    let Action::Metadata(metadata) = &action else { panic!("{action:?}") };
    assert!(metadata.schema().unwrap().fields().is_empty());
    assert!(!action.to_json_line().unwrap().contains("schemaString"));
}

#[test]
fn deletion_vector_unique_ids_follow_the_protocol() {
    let descriptor = |storage: &str, path: &str, offset: &str| {
        let json = format!(
            r#"{{"storageType":"{storage}","pathOrInlineDv":"{path}","sizeInBytes":40,"cardinality":6{offset}}}"#
        );
        serde_json::from_str::<DeletionVectorDescriptor>(&json).unwrap().unique_id()
    };
    assert_eq!(descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", r#","offset":4"#), "uab^-aqEH.-t@S}K{vb[*k^@4");
    assert_eq!(
        descriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", ""),
        "iwi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    );
    assert_eq!(descriptor("p", "s3://b/dv.bin", r#","offset":1"#), "ps3://b/dv.bin@1");
}

proptest! {
    #[test]
    fn add_and_remove_round_trip(
        path in any::<String>(),
        values in prop::collection::btree_map(any::<String>(), any::<Option<String>>(), 0..4),
        size in any::<i64>(),
        stats in any::<Option<String>>(),
        row_id in any::<Option<i64>>(),
        data_change in any::<bool>(),
    ) {
        let add = Add {
            path: path.clone(), partition_values: values.clone(), size, modification_time: !size, data_change,
            stats: stats.clone(), tags: Some(values.clone()), base_row_id: row_id, ..Add::default()
        };
        let remove = Remove {
            path, partition_values: Some(values), size: Some(size), stats, data_change, base_row_id: row_id,
            ..Remove::default()
        };
        for action in [Action::Add(add), Action::Remove(remove)] {
            let line = action.to_json_line().unwrap();
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(Action::parse_line(&line).unwrap(), Some(action));
        }
    }

    #[test]
    fn no_line_panics(line in any::<String>()) {
        let _ = Action::parse_line(&line);
    }
}
