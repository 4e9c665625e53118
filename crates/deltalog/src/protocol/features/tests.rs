//! "Table Features", "Reader Version Requirements", "Writer Version Requirements".

use super::*;
use crate::ErrorKind;
use crate::protocol::action::{Format, Metadata};

const PLAIN: &str =
    r#"{"type":"struct","fields":[{"name":"x","type":"long","nullable":true,"metadata":{}}]}"#;

fn metadata(properties: &[(&str, &str)], field_metadata: &str) -> Metadata {
    Metadata {
        id: "id".into(),
        name: None,
        description: None,
        format: Format::default(),
        schema_string: PLAIN.replace(r#""metadata":{}"#, &format!(r#""metadata":{field_metadata}"#)),
        partition_columns: Vec::new(),
        created_time: None,
        configuration: properties.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
    }
}

fn legacy(reader: i32, writer: i32) -> Protocol {
    Protocol { min_reader_version: reader, min_writer_version: writer, ..Protocol::default() }
}

fn listing(reader: &[&str], writer: &[&str]) -> Protocol {
    let owned = |names: &[&str]| Some(names.iter().map(|name| name.to_string()).collect());
    Protocol {
        min_reader_version: 3,
        min_writer_version: 7,
        reader_features: owned(reader),
        writer_features: owned(writer),
    }
}

#[test]
fn names_are_unique_and_round_trip() {
    let mut names = std::collections::HashSet::new();
    for feature in TableFeature::known() {
        assert_eq!(TableFeature::from_name(feature.name()), feature);
        assert!(names.insert(feature.name().to_owned()));
        // "Reader Version Requirements": column mapping is the only feature that a reader version implies.
        assert_eq!(feature.legacy_reader_version().is_some(), feature == TableFeature::ColumnMapping);
    }
    assert_eq!(TableFeature::from_name("liquid"), TableFeature::Unknown("liquid".into()));
}

#[test]
fn legacy_versions_imply_the_features_of_the_protocol_tables() {
    let names =
        |writer| legacy(1, writer).writer_features().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(1), [""; 0]);
    assert_eq!(names(2), ["appendOnly", "invariants"]);
    assert_eq!(names(3).last().map(String::as_str), Some("checkConstraints"));
    assert_eq!(names(4)[3..], ["changeDataFeed", "generatedColumns"]);
    assert_eq!(names(5).last().map(String::as_str), Some("columnMapping"));
    assert_eq!(names(6).last().map(String::as_str), Some("identityColumns"));
}

#[test]
fn legacy_tables_without_active_features_are_read_and_written() {
    let plain =
        metadata(&[("delta.columnMapping.mode", "none"), ("delta.enableChangeDataFeed", "false")], "{}");
    for reader in 1..=2 {
        for writer in 1..=6 {
            ensure_readable(&legacy(reader, writer), &plain).unwrap();
            ensure_writable(&legacy(reader, writer), &plain).unwrap();
        }
    }
}

#[test]
fn features_for_readers_and_writers_are_reported_once() {
    assert_eq!(
        writer_refusals(&listing(
            &["geospatial"],
            &["geospatial", "redirectWriterOnly-preview", "identityColumns"]
        )),
        [TableFeature::Geospatial, TableFeature::RedirectWriterOnlyPreview]
    );
}

#[test]
fn column_mapping_only_applies_if_the_protocol_supports_it() {
    for mode in ["id", "name"] {
        let mapped = metadata(&[("delta.columnMapping.mode", mode)], "{}");
        for protocol in [legacy(2, 5), listing(&["columnMapping"], &["columnMapping"])] {
            ensure_readable(&protocol, &mapped).unwrap();
            ensure_writable(&protocol, &mapped).unwrap();
        }
        // "Column Mapping": "The table property should only be honored if the table's protocol has …"
        ensure_readable(&legacy(1, 2), &mapped).unwrap();
    }
}

#[test]
fn unimplemented_features_in_lists_are_refused() {
    let plain = metadata(&[], "{}");
    for name in ["timestampNtz", "vacuumProtocolCheck", "columnMapping", "deletionVectors", "v2Checkpoint"] {
        ensure_writable(&listing(&[name], &[name, "appendOnly", "invariants", "domainMetadata"]), &plain)
            .unwrap();
    }
    for name in ["catalogManaged", "geospatial", "fromTheFuture"] {
        let error =
            ensure_readable(&listing(&[name, "timestampNtz"], &[name, "timestampNtz"]), &plain).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(
            error.to_string().contains(&format!("'{name}'")) && !error.to_string().contains("timestampNtz"),
            "{error}"
        );
    }
    for name in ["rowTracking", "inCommitTimestamp", "clustering", "collations", "checkpointProtection"] {
        ensure_writable(&listing(&[], &[name, "domainMetadata"]), &plain).unwrap();
    }
    for name in ["coordinatedCommits-preview", "icebergWriterCompatV1", "liquid"] {
        let protocol = listing(&[], &[name, "redirectWriterOnly-preview"]);
        ensure_readable(&protocol, &plain).unwrap();
        let error = ensure_writable(&protocol, &plain).unwrap_err().to_string();
        assert!(
            error.contains(&format!("'{name}', 'redirectWriterOnly-preview' are not implemented")),
            "{error}"
        );
    }
}

/// PROTOCOL, "Writer Requirements for AddCDCFile": a writer that only adds or removes whole files has nothing
/// to record.
#[test]
fn the_change_data_feed_has_no_requirements_for_whole_files() {
    let fed = metadata(&[("delta.enableChangeDataFeed", "true")], "{}");
    ensure_writable(&legacy(1, 4), &fed).unwrap();
    ensure_writable(&listing(&[], &["changeDataFeed"]), &fed).unwrap();
}

#[test]
fn an_unimplemented_feature_is_reported_before_its_type() {
    let mut geo = metadata(&[], "{}");
    geo.schema_string = geo.schema_string.replace("long", "geometry(OGC:CRS84)");
    let error = ensure_writable(&listing(&["geospatial"], &["geospatial", "invariants"]), &geo)
        .unwrap_err()
        .to_string();
    assert!(error.contains("'geospatial'"), "{error}");
}

#[test]
fn versions_must_match_feature_lists() {
    let plain = metadata(&[], "{}");
    let mut future = listing(&[], &[]);
    future.min_writer_version = 8;
    ensure_readable(&future, &plain).unwrap();
    assert_eq!(ensure_writable(&future, &plain).unwrap_err().kind(), ErrorKind::Unsupported);
    future.min_reader_version = 4;
    assert_eq!(ensure_readable(&future, &plain).unwrap_err().kind(), ErrorKind::Unsupported);
    let mut early = listing(&["columnMapping"], &["columnMapping"]);
    early.min_reader_version = 2;
    for corrupt in [legacy(0, 2), legacy(1, 0), legacy(3, 7), legacy(3, 5), legacy(1, 7), early] {
        assert_eq!(
            ensure_readable(&corrupt, &plain).unwrap_err().kind(),
            ErrorKind::CorruptLog,
            "{corrupt:?}"
        );
    }
    // The example of "Protocol Evolution" that lists features for writers only.
    ensure_readable(
        &Protocol { min_reader_version: 2, ..listing(&[], &["columnMapping", "identityColumns"]) },
        &plain,
    )
    .unwrap();
}

#[test]
fn other_formats_are_refused() {
    let mut orc = metadata(&[], "{}");
    orc.format.provider = "orc".into();
    assert_eq!(ensure_readable(&legacy(1, 2), &orc).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn append_only_is_read_from_the_property() {
    assert!(ensure_removable(&metadata(&[("delta.appendOnly", "true")], "{}")).is_err());
    assert!(ensure_removable(&metadata(&[("delta.appendOnly", "false")], "{}")).is_ok());
    assert!(ensure_removable(&metadata(&[], "{}")).is_ok());
}
