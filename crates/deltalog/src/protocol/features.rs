//! Table features, and the two gates: what this crate can read, and what it can write. Protocol: "Table Features", "Valid Feature Names in Table Features".
//!
//! - A feature that is not implemented is refused by name, and so is a name that nobody here knows: never guessed at.
//! - Reader versions 1 and 2 and writer versions 1 to 6 stand for fixed sets of features ("Reader Version Requirements", "Writer Version Requirements"). A feature
//!   of such a set that the metadata does not use asks nothing of us ("Active Features").
//! - Opening a gate is one line in [`TableFeature::is_readable`] or [`TableFeature::is_writable`].

use super::action::{Metadata, Protocol};
use super::schema::{PrimitiveType, StructType};
use crate::error::{Error, Result};

/// A table feature.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs, reason = "named as in the protocol")]
pub enum TableFeature {
    AppendOnly,
    Invariants,
    CheckConstraints,
    GeneratedColumns,
    AllowColumnDefaults,
    ChangeDataFeed,
    ColumnMapping,
    IdentityColumns,
    DeletionVectors,
    RowTracking,
    TimestampNtz,
    DomainMetadata,
    V2Checkpoint,
    IcebergCompatV1,
    IcebergCompatV2,
    IcebergCompatV3,
    Clustering,
    VacuumProtocolCheck,
    InCommitTimestamp,
    TypeWidening,
    TypeWideningPreview,
    VariantType,
    VariantTypePreview,
    VariantShredding,
    VariantShreddingPreview,
    CatalogManaged,
    CatalogOwnedPreview,
    CheckpointProtection,
    MaterializePartitionColumns,
    /// A name that this crate does not know.
    Unknown(String),
}

/// Every feature that has a name here, with that name and whether readers must know it as well.
const NAMES: [(TableFeature, &str, bool); 29] = {
    use TableFeature as F;
    [
        (F::AppendOnly, "appendOnly", false),
        (F::Invariants, "invariants", false),
        (F::CheckConstraints, "checkConstraints", false),
        (F::GeneratedColumns, "generatedColumns", false),
        (F::AllowColumnDefaults, "allowColumnDefaults", false),
        (F::ChangeDataFeed, "changeDataFeed", false),
        (F::ColumnMapping, "columnMapping", true),
        (F::IdentityColumns, "identityColumns", false),
        (F::DeletionVectors, "deletionVectors", true),
        (F::RowTracking, "rowTracking", false),
        (F::TimestampNtz, "timestampNtz", true),
        (F::DomainMetadata, "domainMetadata", false),
        (F::V2Checkpoint, "v2Checkpoint", true),
        (F::IcebergCompatV1, "icebergCompatV1", false),
        (F::IcebergCompatV2, "icebergCompatV2", false),
        (F::IcebergCompatV3, "icebergCompatV3", false),
        (F::Clustering, "clustering", false),
        (F::VacuumProtocolCheck, "vacuumProtocolCheck", true),
        (F::InCommitTimestamp, "inCommitTimestamp", false),
        (F::TypeWidening, "typeWidening", true),
        (F::TypeWideningPreview, "typeWidening-preview", true),
        (F::VariantType, "variantType", true),
        (F::VariantTypePreview, "variantType-preview", true),
        (F::VariantShredding, "variantShredding", true),
        (F::VariantShreddingPreview, "variantShredding-preview", true),
        (F::CatalogManaged, "catalogManaged", true),
        (F::CatalogOwnedPreview, "catalogOwned-preview", true),
        (F::CheckpointProtection, "checkpointProtection", false),
        (F::MaterializePartitionColumns, "materializePartitionColumns", false),
    ]
};

/// The writer versions that stand for features, with what each adds.
const LEGACY_WRITER: [(i32, &[TableFeature]); 5] = {
    use TableFeature as F;
    [
        (2, &[F::AppendOnly, F::Invariants]),
        (3, &[F::CheckConstraints]),
        (4, &[F::ChangeDataFeed, F::GeneratedColumns]),
        (5, &[F::ColumnMapping]),
        (6, &[F::IdentityColumns]),
    ]
};

impl TableFeature {
    /// The feature of this name.
    pub fn parse(name: &str) -> Self {
        NAMES.iter().find(|(_, known, _)| *known == name).map_or_else(|| Self::Unknown(name.to_owned()), |(feature, ..)| feature.clone())
    }

    /// The protocol's name of it.
    pub fn name(&self) -> &str {
        match self {
            Self::Unknown(name) => name,
            known => NAMES.iter().find(|(feature, ..)| feature == known).map_or("", |(_, name, _)| name),
        }
    }

    /// Whether readers must know it; of an unknown name nobody can say, so they must.
    pub fn concerns_readers(&self) -> bool {
        NAMES.iter().find(|(feature, ..)| feature == self).is_none_or(|(.., reader)| *reader)
    }

    /// Whether the metadata makes use of it; `None` for a feature that the metadata does not tell of.
    fn activity(&self, metadata: &Metadata, schema: &StructType) -> Option<bool> {
        let is_true = |name: &str| metadata.configuration.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let on_a_field = |key: &str| schema.any_field(&|field| field.has_metadata(key));
        Some(match self {
            Self::Invariants => on_a_field("delta.invariants"),
            Self::CheckConstraints => metadata.configuration.keys().any(|key| key.starts_with("delta.constraints.")),
            Self::GeneratedColumns => on_a_field("delta.generationExpression"),
            Self::IdentityColumns => on_a_field("delta.identity.start"),
            Self::AllowColumnDefaults => on_a_field("CURRENT_DEFAULT"),
            Self::ChangeDataFeed => is_true("delta.enableChangeDataFeed"),
            Self::ColumnMapping => metadata.configuration.get("delta.columnMapping.mode").is_some_and(|mode| mode != "none"),
            Self::InCommitTimestamp => is_true("delta.enableInCommitTimestamps"),
            Self::RowTracking => is_true("delta.enableRowTracking"),
            Self::DeletionVectors => is_true("delta.enableDeletionVectors"),
            Self::TypeWidening => is_true("delta.enableTypeWidening"),
            Self::IcebergCompatV1 => is_true("delta.enableIcebergCompatV1"),
            Self::IcebergCompatV2 => is_true("delta.enableIcebergCompatV2"),
            Self::IcebergCompatV3 => is_true("delta.enableIcebergCompatV3"),
            Self::V2Checkpoint => metadata.configuration.get("delta.checkpointPolicy").is_some_and(|policy| policy == "v2"),
            _ => return None,
        })
    }

    fn is_active(&self, metadata: &Metadata, schema: &StructType) -> bool {
        self.activity(metadata, schema).unwrap_or(true)
    }

    /// Whether a table that has the feature can be read.
    fn is_readable(&self, metadata: &Metadata, schema: &StructType) -> bool {
        match self {
            Self::TimestampNtz | Self::VacuumProtocolCheck => true,
            Self::ColumnMapping => !self.is_active(metadata, schema),
            feature => !feature.concerns_readers(),
        }
    }

    /// Whether a table that has the feature can be written.
    fn is_writable(&self, metadata: &Metadata, schema: &StructType) -> bool {
        match self {
            // Appends and overwrites have nothing to do for these, or do it.
            Self::AppendOnly | Self::TimestampNtz | Self::VacuumProtocolCheck | Self::DomainMetadata => true,
            Self::Invariants
            | Self::CheckConstraints
            | Self::GeneratedColumns
            | Self::IdentityColumns
            | Self::AllowColumnDefaults
            | Self::ChangeDataFeed
            | Self::ColumnMapping
            | Self::InCommitTimestamp
            | Self::IcebergCompatV1
            | Self::IcebergCompatV2
            | Self::IcebergCompatV3 => !self.is_active(metadata, schema),
            _ => false,
        }
    }
}

/// The features that a reader of the table must know.
pub fn reader_features(protocol: &Protocol) -> Vec<TableFeature> {
    match protocol.min_reader_version {
        3 => protocol.reader_features.iter().flatten().map(|name| TableFeature::parse(name)).collect(),
        2 => vec![TableFeature::ColumnMapping],
        _ => Vec::new(),
    }
}

/// The features that a writer of the table must know.
pub fn writer_features(protocol: &Protocol) -> Vec<TableFeature> {
    if protocol.min_writer_version == 7 {
        return protocol.writer_features.iter().flatten().map(|name| TableFeature::parse(name)).collect();
    }
    LEGACY_WRITER
        .iter()
        .filter(|(version, _)| *version <= protocol.min_writer_version)
        .flat_map(|(_, features)| features.iter().cloned())
        .collect()
}

/// Refuses a table that this crate cannot read.
///
/// # Errors
/// `Unsupported`, with the name of every feature that is missing.
pub fn ensure_readable(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    if !(1..=3).contains(&protocol.min_reader_version) {
        return Err(Error::unsupported(format!(
            "the table needs reader version {}, and this is deltalog for versions 1 to 3",
            protocol.min_reader_version
        ))
        .with_hint("upgrade deltalog"));
    }
    if metadata.format.provider != "parquet" {
        return Err(Error::unsupported(format!("the table's data files are of the format '{}', not parquet", metadata.format.provider)));
    }
    let features = reader_features(protocol);
    if features.is_empty() {
        return Ok(());
    }
    // A schema with types of a missing feature does not parse: then the feature is the better answer.
    let schema = metadata.schema();
    let empty = StructType::empty();
    let known = schema.as_ref().unwrap_or(&empty);
    let missing: Vec<_> = features.iter().filter(|feature| !feature.is_readable(metadata, known)).collect();
    refuse(&missing, "read").and(schema.map(drop))
}

/// Refuses a table that this crate cannot write.
///
/// # Errors
/// `Unsupported`, with the name of every feature that is missing.
pub fn ensure_writable(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    ensure_readable(protocol, metadata)?;
    if !(1..=7).contains(&protocol.min_writer_version) {
        return Err(Error::unsupported(format!(
            "the table needs writer version {}, and this is deltalog for versions 1 to 7",
            protocol.min_writer_version
        ))
        .with_hint("upgrade deltalog"));
    }
    let schema = metadata.schema()?;
    let missing: Vec<_> = writer_features(protocol).into_iter().filter(|feature| !feature.is_writable(metadata, &schema)).collect();
    refuse(&missing.iter().collect::<Vec<_>>(), "write")
}

fn refuse(missing: &[&TableFeature], to: &str) -> Result<()> {
    let names: Vec<_> = missing.iter().map(|feature| feature.name()).collect();
    match names.as_slice() {
        [] => Ok(()),
        [name] => Err(Error::unsupported(format!("the table has the feature {name}, which deltalog cannot {to} yet"))),
        _ => Err(Error::unsupported(format!("the table has the features {}, which deltalog cannot {to} yet", names.join(", ")))),
    }
    .map_err(|error| error.with_hint(format!("{to} the table with a client that knows it, or drop the feature")))
}

/// Whether files may only ever be added. Protocol: "Append-only Tables".
pub fn is_append_only(metadata: &Metadata) -> bool {
    metadata.configuration.get("delta.appendOnly").is_some_and(|value| value == "true")
}

/// The protocol of a new table with this schema and these properties: the oldest that suffices.
///
/// # Errors
/// `Unsupported` if a property or a column asks for a feature that cannot be written.
pub fn protocol_for(schema: &StructType, metadata: &Metadata) -> Result<Protocol> {
    let by_use = NAMES.iter().map(|(feature, ..)| feature.clone()).filter(|feature| feature.activity(metadata, schema) == Some(true));
    let by_name = metadata.configuration.keys().filter_map(|key| key.strip_prefix("delta.feature.")).map(TableFeature::parse);
    let missing: Vec<_> = by_use.chain(by_name).filter(|feature| !feature.is_writable(metadata, schema)).collect();
    refuse(&missing.iter().collect::<Vec<_>>(), "write")?;
    if !schema.any_type(&|primitive| *primitive == PrimitiveType::TimestampNtz) {
        return Ok(Protocol { min_reader_version: 1, min_writer_version: 2, reader_features: None, writer_features: None });
    }
    let names = |features: &[TableFeature]| Some(features.iter().map(|feature| feature.name().to_owned()).collect());
    Ok(Protocol {
        min_reader_version: 3,
        min_writer_version: 7,
        reader_features: names(&[TableFeature::TimestampNtz]),
        writer_features: names(&[TableFeature::AppendOnly, TableFeature::Invariants, TableFeature::TimestampNtz]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(schema: &str, configuration: &[(&str, &str)]) -> Metadata {
        Metadata {
            id: "id".to_owned(),
            name: None,
            description: None,
            format: Default::default(),
            schema_string: format!(r#"{{"type":"struct","fields":[{schema}]}}"#),
            partition_columns: Vec::new(),
            created_time: None,
            configuration: configuration.iter().map(|(key, value)| (String::from(*key), String::from(*value))).collect(),
        }
    }

    fn protocol(reader: i32, writer: i32, features: &[&str]) -> Protocol {
        let features: Vec<String> = features.iter().map(|name| String::from(*name)).collect();
        let readers = features.iter().filter(|name| TableFeature::parse(name).concerns_readers()).cloned().collect();
        Protocol {
            min_reader_version: reader,
            min_writer_version: writer,
            reader_features: (reader == 3).then_some(readers),
            writer_features: (writer == 7).then_some(features),
        }
    }

    const LONG: &str = r#"{"name":"a","type":"long","nullable":true,"metadata":{}}"#;

    /// Protocol: "Table Features": "must only read tables whose features it supports".
    #[test]
    fn missing_features_are_named() {
        let error = ensure_readable(&protocol(3, 7, &["deletionVectors", "somethingNew", "appendOnly"]), &metadata(LONG, &[])).unwrap_err();
        assert!(error.to_string().contains("deletionVectors, somethingNew"), "{error}");
        assert!(!error.to_string().contains("appendOnly"), "{error}");
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
    }

    #[test]
    fn unknown_versions_are_refused() {
        assert!(ensure_readable(&protocol(4, 7, &[]), &metadata(LONG, &[])).is_err());
        assert!(ensure_readable(&protocol(0, 2, &[]), &metadata(LONG, &[])).is_err());
        assert!(ensure_writable(&protocol(1, 8, &[]), &metadata(LONG, &[])).is_err());
    }

    /// Protocol: "Active Features": what a legacy version merely allows asks nothing of us.
    #[test]
    fn legacy_features_count_when_used() {
        assert!(ensure_writable(&protocol(2, 6, &[]), &metadata(LONG, &[])).is_ok());
        let constrained = metadata(LONG, &[("delta.constraints.positive", "a > 0")]);
        assert!(ensure_writable(&protocol(1, 3, &[]), &constrained).unwrap_err().to_string().contains("checkConstraints"));
        let mapped = metadata(LONG, &[("delta.columnMapping.mode", "name")]);
        assert!(ensure_readable(&protocol(2, 5, &[]), &mapped).unwrap_err().to_string().contains("columnMapping"));
        let invariant = metadata(r#"{"name":"a","type":"long","nullable":true,"metadata":{"delta.invariants":"{}"}}"#, &[]);
        assert!(ensure_writable(&protocol(1, 2, &[]), &invariant).unwrap_err().to_string().contains("invariants"));
        assert!(ensure_readable(&protocol(1, 2, &[]), &invariant).is_ok());
    }

    /// Protocol: "Timestamp without timezone (TimestampNtz)".
    #[test]
    fn a_new_table_asks_for_what_it_needs() {
        let plain = metadata(LONG, &[]);
        assert_eq!(protocol_for(&plain.schema().unwrap(), &plain).unwrap().min_reader_version, 1);
        let ntz = metadata(r#"{"name":"a","type":"timestamp_ntz","nullable":true,"metadata":{}}"#, &[]);
        let made = protocol_for(&ntz.schema().unwrap(), &ntz).unwrap();
        assert_eq!(made.reader_features.as_deref(), Some(["timestampNtz".to_owned()].as_slice()));
        assert!(ensure_writable(&made, &ntz).is_ok());
        for property in
            [("delta.enableDeletionVectors", "true"), ("delta.feature.rowTracking", "supported"), ("delta.checkpointPolicy", "v2")]
        {
            let asking = metadata(LONG, &[property]);
            assert!(protocol_for(&asking.schema().unwrap(), &asking).is_err(), "{property:?}");
        }
    }
}
