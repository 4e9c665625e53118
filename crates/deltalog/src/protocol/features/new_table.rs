//! The protocol of a new table: the oldest that suffices for its columns and properties.

use super::TableFeature;
use super::gate::{ensure_features, is_writable_when_active};
use crate::Result;
use crate::protocol::action::{Metadata, Protocol};
use crate::protocol::schema::{DataType, PrimitiveType, StructType};

/// Features whose use the metadata shows, see [`TableFeature::is_active`].
const TRACED: [TableFeature; 12] = [
    TableFeature::Invariants,
    TableFeature::CheckConstraints,
    TableFeature::ChangeDataFeed,
    TableFeature::GeneratedColumns,
    TableFeature::ColumnMapping,
    TableFeature::IdentityColumns,
    TableFeature::AllowColumnDefaults,
    TableFeature::RowTracking,
    TableFeature::IcebergCompatV1,
    TableFeature::IcebergCompatV2,
    TableFeature::IcebergCompatV3,
    TableFeature::InCommitTimestamp,
];

/// The protocol for a new table with this schema and these properties.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) names every feature that a property or a column asks for and that cannot be written.
pub fn protocol_for(schema: &StructType, metadata: &Metadata) -> Result<Protocol> {
    let mut asked: Vec<TableFeature> = Vec::new();
    for feature in TRACED {
        if feature.is_active(metadata)? {
            asked.push(feature);
        }
    }
    let properties =
        [("delta.enableDeletionVectors", TableFeature::DeletionVectors), ("delta.enableTypeWidening", TableFeature::TypeWidening)];
    asked.extend(properties.into_iter().filter(|(property, _)| metadata.is_enabled(property)).map(|(_, feature)| feature));
    if metadata.property("delta.checkpointPolicy").is_some_and(|policy| policy.trim().eq_ignore_ascii_case("v2")) {
        asked.push(TableFeature::V2Checkpoint);
    }
    let by_name = metadata.configuration.keys().filter_map(|key| key.strip_prefix("delta.feature.")).map(TableFeature::from_name);
    asked.extend(by_name);
    asked.retain(|feature| !is_writable_when_active(feature));
    ensure_features("write", &asked)?;
    if !schema.any_primitive(&|primitive| primitive == PrimitiveType::TimestampNtz) {
        return Ok(Protocol { min_reader_version: 1, min_writer_version: 2, reader_features: None, writer_features: None });
    }
    let names = |features: &[TableFeature]| Some(features.iter().map(TableFeature::to_string).collect());
    Ok(Protocol {
        min_reader_version: 3,
        min_writer_version: 7,
        reader_features: names(&[TableFeature::TimestampNtz]),
        writer_features: names(&[TableFeature::AppendOnly, TableFeature::Invariants, TableFeature::TimestampNtz]),
    })
}

impl StructType {
    /// Whether a primitive type, nested ones included, fulfils `matches`.
    pub fn any_primitive(&self, matches: &dyn Fn(PrimitiveType) -> bool) -> bool {
        self.fields().iter().any(|field| field.data_type.any_primitive(matches))
    }
}

impl DataType {
    /// Whether a primitive type in it fulfils `matches`.
    pub fn any_primitive(&self, matches: &dyn Fn(PrimitiveType) -> bool) -> bool {
        match self {
            Self::Primitive(primitive) => matches(*primitive),
            Self::Struct(fields) => fields.any_primitive(matches),
            Self::Array(array) => array.element_type.any_primitive(matches),
            Self::Map(map) => map.key_type.any_primitive(matches) || map.value_type.any_primitive(matches),
            Self::Variant => false,
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
            schema_string: format!(r#"{{"type":"struct","fields":[{{"name":"a","type":"{type_name}","nullable":true,"metadata":{{}}}}]}}"#),
            partition_columns: Vec::new(),
            created_time: None,
            configuration: property.iter().map(|(key, value)| (String::from(*key), String::from(*value))).collect(),
        }
    }

    /// PROTOCOL, "Timestamp without timezone (TimestampNtz)".
    #[test]
    fn a_table_asks_for_what_its_columns_need() {
        let plain = metadata("long", None);
        assert_eq!(protocol_for(&plain.schema().unwrap(), &plain).unwrap().min_reader_version, 1);
        let ntz = metadata("timestamp_ntz", None);
        let made = protocol_for(&ntz.schema().unwrap(), &ntz).unwrap();
        assert_eq!(made.reader_features.as_deref(), Some(["timestampNtz".to_owned()].as_slice()));
        assert!(super::super::ensure_writable(&made, &ntz).is_ok());
    }

    #[test]
    fn properties_that_ask_for_missing_features_are_refused_by_name() {
        for (property, feature) in [
            (("delta.enableDeletionVectors", "true"), "deletionVectors"),
            (("delta.feature.rowTracking", "supported"), "rowTracking"),
            (("delta.checkpointPolicy", "v2"), "v2Checkpoint"),
            (("delta.constraints.positive", "a > 0"), "checkConstraints"),
            (("delta.columnMapping.mode", "name"), "columnMapping"),
        ] {
            let asking = metadata("long", Some(property));
            let error = protocol_for(&asking.schema().unwrap(), &asking).unwrap_err();
            assert!(error.to_string().contains(feature), "{error}");
        }
    }
}
