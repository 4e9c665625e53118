//! Determines the protocol of a new table: the oldest one that supports its columns and properties.

use std::collections::BTreeSet;

use super::gate::{ensure_features, is_writable};
use super::{FeatureKind, READER_VERSION, TableFeature, WRITER_VERSION};
use crate::error::{Error, Result};
use crate::protocol::action::{Metadata, Protocol};
use crate::protocol::properties::MATERIALIZE_PARTITION_COLUMNS;
use crate::protocol::schema::{DataType, PrimitiveType, StructType};

/// The features whose use can be seen in the metadata. See [`TableFeature::is_active`].
const TRACED: [TableFeature; 13] = [
    TableFeature::Invariants,
    TableFeature::CheckConstraints,
    TableFeature::ChangeDataFeed,
    TableFeature::GeneratedColumns,
    TableFeature::ColumnMapping,
    TableFeature::IdentityColumns,
    TableFeature::AllowColumnDefaults,
    TableFeature::RowTracking,
    TableFeature::Collations,
    TableFeature::IcebergCompatV1,
    TableFeature::IcebergCompatV2,
    TableFeature::IcebergCompatV3,
    TableFeature::InCommitTimestamp,
];

/// Returns the protocol for a new table with this schema and these properties.
///
/// # Errors
/// [`Unsupported`](crate::error::ErrorKind::Unsupported), naming every feature that a property or a column requires but
/// that cannot be written. Also the errors of [`required_features`].
pub fn protocol_for(schema: &StructType, metadata: &Metadata) -> Result<Protocol> {
    let asked = required_features(schema, metadata)?;
    let missing: Vec<_> = asked.iter().filter(|feature| !is_writable(feature)).cloned().collect();
    ensure_features("make", &missing)?;
    Ok(protocol_with(&asked))
}

/// Returns the features that a table with this schema and these properties must support, except those that every
/// protocol implies.
///
/// # Errors
/// `SchemaMismatch` for a column with a name that an active feature reserves.
pub fn required_features(schema: &StructType, metadata: &Metadata) -> Result<Vec<TableFeature>> {
    let mut asked: Vec<TableFeature> = Vec::new();
    for feature in TRACED {
        if feature.is_active(metadata)? {
            asked.push(feature);
        }
    }
    let properties = [
        ("delta.enableDeletionVectors", TableFeature::DeletionVectors),
        (MATERIALIZE_PARTITION_COLUMNS, TableFeature::MaterializePartitionColumns),
        ("delta.enableTypeWidening", TableFeature::TypeWidening),
    ];
    asked.extend(
        properties
            .into_iter()
            .filter(|(property, _)| metadata.is_enabled(property))
            .map(|(_, feature)| feature),
    );
    if metadata.wants_v2_checkpoints() {
        asked.push(TableFeature::V2Checkpoint);
    }
    let by_name = metadata
        .configuration
        .keys()
        .filter_map(|key| key.strip_prefix("delta.feature."))
        .map(TableFeature::from_name);
    asked.extend(by_name);
    if schema.holds_variants() {
        asked.push(TableFeature::VariantType);
    }
    if schema.any_primitive(&|primitive| primitive == PrimitiveType::TimestampNtz) {
        asked.push(TableFeature::TimestampNtz);
    }
    let required_by: Vec<_> = asked.iter().flat_map(TableFeature::requires).cloned().collect();
    asked.extend(required_by);
    if asked.contains(&TableFeature::ChangeDataFeed) {
        ensure_no_feed_columns(schema)?;
    }
    Ok(asked)
}

/// Returns the oldest protocol that supports `features`.
fn protocol_with(features: &[TableFeature]) -> Protocol {
    // The oldest writer protocol implies these features without listing them.
    let legacy = [TableFeature::AppendOnly, TableFeature::Invariants];
    let listed: BTreeSet<&str> =
        features.iter().filter(|feature| !legacy.contains(feature)).map(TableFeature::name).collect();
    if listed.is_empty() {
        return Protocol {
            min_reader_version: 1,
            min_writer_version: 2,
            reader_features: None,
            writer_features: None,
        };
    }
    let is_readers = |name: &&&str| TableFeature::from_name(name).kind() == Some(FeatureKind::ReaderWriter);
    let readers: Vec<String> = listed.iter().filter(is_readers).map(|name| (*name).to_owned()).collect();
    let writers = legacy.iter().map(TableFeature::name).chain(listed).map(str::to_owned).collect();
    Protocol {
        min_reader_version: if readers.is_empty() { 1 } else { READER_VERSION },
        min_writer_version: WRITER_VERSION,
        reader_features: (!readers.is_empty()).then_some(readers),
        writer_features: Some(writers),
    }
}

/// Refuses columns with names that are reserved for the change data feed.
fn ensure_no_feed_columns(schema: &StructType) -> Result<()> {
    match ["_change_type", "_commit_version", "_commit_timestamp"]
        .into_iter()
        .find_map(|name| schema.field(name))
    {
        None => Ok(()),
        Some(field) => Err(Error::schema_mismatch(format!(
            "column '{}' has a name that is reserved for the change data feed",
            field.name
        ))
        .with_hint("rename the column, or leave out the table property 'delta.enableChangeDataFeed'")),
    }
}

impl StructType {
    /// Returns whether `matches` holds for any primitive type, including nested ones.
    pub fn any_primitive(&self, matches: &dyn Fn(PrimitiveType) -> bool) -> bool {
        self.fields().iter().any(|field| field.data_type.any_primitive(matches))
    }

    /// Returns whether any column, including nested ones, has the type `variant`.
    pub fn holds_variants(&self) -> bool {
        self.fields().iter().any(|field| field.data_type.holds_variants())
    }
}

impl DataType {
    /// Returns whether `matches` holds for any primitive type in this type.
    pub fn any_primitive(&self, matches: &dyn Fn(PrimitiveType) -> bool) -> bool {
        match self {
            Self::Primitive(primitive) => matches(*primitive),
            Self::Struct(fields) => fields.any_primitive(matches),
            Self::Array(array) => array.element_type.any_primitive(matches),
            Self::Map(map) => map.key_type.any_primitive(matches) || map.value_type.any_primitive(matches),
            Self::Variant => false,
        }
    }

    /// Returns whether the type is or contains `variant`.
    pub fn holds_variants(&self) -> bool {
        match self {
            Self::Variant => true,
            Self::Primitive(_) => false,
            Self::Struct(fields) => fields.holds_variants(),
            Self::Array(array) => array.element_type.holds_variants(),
            Self::Map(map) => map.key_type.holds_variants() || map.value_type.holds_variants(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(type_name: &str, property: Option<(&str, &str)>) -> Metadata {
        Metadata {
            id: "id".to_owned(),
            name: None,
            description: None,
            format: crate::protocol::Format::default(),
            schema_string: format!(
                r#"{{"type":"struct","fields":[{{"name":"a","type":"{type_name}","nullable":true,"metadata":{{}}}}]}}"#
            ),
            partition_columns: Vec::new(),
            created_time: None,
            configuration: property
                .iter()
                .map(|(key, value)| (String::from(*key), String::from(*value)))
                .collect(),
        }
    }

    /// PROTOCOL, "Timestamp without timezone (TimestampNtz)".
    #[test]
    fn columns_require_their_features() {
        let plain = metadata("long", None);
        assert_eq!(protocol_for(&plain.schema().unwrap(), &plain).unwrap().min_reader_version, 1);
        let ntz = metadata("timestamp_ntz", None);
        let made = protocol_for(&ntz.schema().unwrap(), &ntz).unwrap();
        assert_eq!(made.reader_features.as_deref(), Some(["timestampNtz".to_owned()].as_slice()));
        assert!(super::super::ensure_writable(&made, &ntz).is_ok());
    }

    /// PROTOCOL, "Table Features for New and Existing Tables", "Deletion Vectors", "V2 Checkpoint Table
    /// Feature", "Writer Requirements for AddCDCFile".
    #[test]
    fn properties_require_their_features() {
        let made = |type_name: &str, property| {
            let metadata = metadata(type_name, Some(property));
            let made = protocol_for(&metadata.schema().unwrap(), &metadata).unwrap();
            super::super::ensure_writable(&made, &metadata).unwrap();
            (
                made.min_reader_version,
                made.min_writer_version,
                made.reader_features.unwrap_or_default(),
                made.writer_features.unwrap_or_default(),
            )
        };
        let names = |names: &[&str]| names.iter().map(|name| String::from(*name)).collect::<Vec<_>>();
        let (reader, writer, for_readers, for_writers) =
            made("long", ("delta.enableDeletionVectors", "true"));
        assert_eq!((reader, writer), (3, 7));
        assert_eq!(
            (for_readers, for_writers),
            (names(&["deletionVectors"]), names(&["appendOnly", "invariants", "deletionVectors"]))
        );
        let (.., for_readers, for_writers) = made("timestamp_ntz", ("delta.enableDeletionVectors", "true"));
        assert_eq!(for_readers, names(&["deletionVectors", "timestampNtz"]));
        assert_eq!(for_writers, names(&["appendOnly", "invariants", "deletionVectors", "timestampNtz"]));
        let (reader, writer, for_readers, for_writers) = made("long", ("delta.checkpointPolicy", "v2"));
        assert_eq!((reader, writer), (3, 7));
        assert_eq!(
            (for_readers, for_writers),
            (names(&["v2Checkpoint"]), names(&["appendOnly", "invariants", "v2Checkpoint"]))
        );
        let (reader, writer, for_readers, for_writers) = made("long", ("delta.enableChangeDataFeed", "true"));
        assert_eq!((reader, writer), (1, 7));
        assert_eq!(
            (for_readers, for_writers),
            (names(&[]), names(&["appendOnly", "invariants", "changeDataFeed"]))
        );
        let (reader, writer, for_readers, for_writers) = made("long", ("delta.columnMapping.mode", "name"));
        assert_eq!((reader, writer), (3, 7));
        assert_eq!(
            (for_readers, for_writers),
            (names(&["columnMapping"]), names(&["appendOnly", "invariants", "columnMapping"]))
        );
        assert_eq!(made("long", ("delta.columnMapping.mode", "none")).1, 2);
        for property in [("delta.enableRowTracking", "true"), ("delta.feature.rowTracking", "supported")] {
            let (reader, writer, _, for_writers) = made("long", property);
            assert_eq!((reader, writer), (1, 7));
            assert_eq!(for_writers, names(&["appendOnly", "invariants", "domainMetadata", "rowTracking"]));
        }
        for (property, feature) in [
            ("delta.enableIcebergCompatV1", "icebergCompatV1"),
            ("delta.enableIcebergCompatV2", "icebergCompatV2"),
        ] {
            let (reader, writer, for_readers, for_writers) = made("long", (property, "true"));
            assert_eq!((reader, writer), (3, 7));
            assert_eq!(for_readers, names(&["columnMapping"]));
            assert_eq!(for_writers, names(&["appendOnly", "invariants", "columnMapping", feature]));
        }
        let (.., for_writers) = made("long", ("delta.enableIcebergCompatV3", "true"));
        let of_v3 = ["columnMapping", "domainMetadata", "icebergCompatV3", "rowTracking"];
        assert_eq!(for_writers, names(&[&["appendOnly", "invariants"], of_v3.as_slice()].concat()));
        let (.., for_readers, for_writers) = made("long", (MATERIALIZE_PARTITION_COLUMNS, "true"));
        assert_eq!(for_readers, names(&[]));
        assert_eq!(for_writers, names(&["appendOnly", "invariants", "materializePartitionColumns"]));
        assert_eq!(made("long", ("delta.writePartitionColumnsToParquet", "true")).1, 2);
        for (property, feature) in [
            (("delta.constraints.positive", "a > 0"), "checkConstraints"),
            (("delta.feature.allowColumnDefaults", "supported"), "allowColumnDefaults"),
        ] {
            let (.., for_writers) = made("long", property);
            assert_eq!(for_writers, names(&["appendOnly", "invariants", feature]));
        }
        let (.., for_writers) = made("long", ("delta.enableInCommitTimestamps", "true"));
        assert_eq!(for_writers, names(&["appendOnly", "invariants", "inCommitTimestamp"]));
        assert_eq!(made("long", ("delta.appendOnly", "true")).1, 2);
    }

    #[test]
    fn change_data_feed_columns_are_reserved() {
        let mut metadata = metadata("long", Some(("delta.enableChangeDataFeed", "true")));
        metadata.schema_string = metadata.schema_string.replace("\"a\"", "\"_Commit_Version\"");
        let error = protocol_for(&metadata.schema().unwrap(), &metadata).unwrap_err();
        assert!(error.to_string().contains("'_Commit_Version'"), "{error}");
    }

    #[test]
    fn variants_require_their_feature() {
        let variant = metadata("variant", None);
        let made = protocol_for(&variant.schema().unwrap(), &variant).unwrap();
        assert_eq!(made.reader_features.as_deref(), Some(["variantType".to_owned()].as_slice()));
        assert!(super::super::ensure_writable(&made, &variant).is_ok());
    }

    #[test]
    fn properties_that_require_missing_features_are_refused_by_name() {
        for (property, feature) in [
            (("delta.feature.geospatial", "supported"), "geospatial"),
            (("delta.feature.icebergWriterCompatV1", "supported"), "icebergWriterCompatV1"),
        ] {
            let asking = metadata("long", Some(property));
            let error = protocol_for(&asking.schema().unwrap(), &asking).unwrap_err();
            assert!(
                error.to_string().contains(feature) && error.to_string().contains("leave out"),
                "{error}"
            );
        }
    }
}
