//! The list of table features. It has the specification's features, and others that writers use.

use std::fmt;

use crate::error::Result;
use crate::protocol::action::Metadata;

/// The metadata key of a field that contains strings with a collation, which are not compared byte by byte. Its value
/// maps the path of each such string, beginning with the name of the field, to a collation.
pub(crate) const COLLATIONS: &str = "__COLLATIONS";

/// The clients that must implement a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureKind {
    /// Readers and writers.
    ReaderWriter,
    /// Writers only.
    Writer,
}

macro_rules! table_features {
    ($(
        $(#[$doc:meta])* $variant:ident = $name:literal, $kind:ident
        $(, reader $reader:literal)? $(, writer $writer:literal)?;
    )*) => {
        /// A table feature.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum TableFeature {
            $($(#[$doc])* $variant,)*
            /// A feature with an unknown name.
            Unknown(String),
        }

        impl TableFeature {
            const KNOWN: &[Self] = &[$(Self::$variant),*];

            /// Returns the feature with this name, or [`TableFeature::Unknown`] if no feature has it.
            pub fn from_name(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    _ => Self::Unknown(name.to_owned()),
                }
            }

            /// Returns the name of the feature in a `protocol` action.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Unknown(name) => name,
                }
            }

            /// Returns which clients must implement the feature; `None` for an unknown feature.
            pub fn kind(&self) -> Option<FeatureKind> {
                match self {
                    $(Self::$variant => Some(FeatureKind::$kind),)*
                    Self::Unknown(_) => None,
                }
            }

            /// Returns the lowest reader version that includes the feature without `readerFeatures`; `None` if there is
            /// none.
            pub fn legacy_reader_version(&self) -> Option<i32> {
                match self {
                    $($(Self::$variant => Some($reader),)?)*
                    _ => None,
                }
            }

            /// Returns the lowest writer version that includes the feature without `writerFeatures`; `None` if there is
            /// none.
            pub fn legacy_writer_version(&self) -> Option<i32> {
                match self {
                    $($(Self::$variant => Some($writer),)?)*
                    _ => None,
                }
            }
        }
    };
}

table_features! {
    /// "Append-only Tables": rows can be added, but not changed or deleted.
    AppendOnly = "appendOnly", Writer, writer 2;
    /// "Column Invariants": conditions on single columns, such as NOT NULL.
    Invariants = "invariants", Writer, writer 2;
    /// "CHECK Constraints": conditions that each row must satisfy.
    CheckConstraints = "checkConstraints", Writer, writer 3;
    /// "Add CDC File": commits record which rows they have changed.
    ChangeDataFeed = "changeDataFeed", Writer, writer 4;
    /// "Generated Columns": columns that are computed from other columns.
    GeneratedColumns = "generatedColumns", Writer, writer 4;
    /// "Column Mapping": columns can be renamed and dropped without rewriting files.
    ColumnMapping = "columnMapping", ReaderWriter, reader 2, writer 5;
    /// "Identity Columns": columns whose values are numbers that writers generate.
    IdentityColumns = "identityColumns", Writer, writer 6;
    /// "Default Columns": columns with default values.
    AllowColumnDefaults = "allowColumnDefaults", Writer;
    /// "Deletion Vectors": rows are marked as deleted without rewriting files.
    DeletionVectors = "deletionVectors", ReaderWriter;
    /// "Row Tracking": rows have ids that stay the same when the rows are moved or updated.
    RowTracking = "rowTracking", Writer;
    /// "Timestamp without timezone": the type `timestamp_ntz`.
    TimestampNtz = "timestampNtz", ReaderWriter;
    /// "Domain Metadata": named metadata, such as the columns of a clustered table.
    DomainMetadata = "domainMetadata", Writer;
    /// "V2 Checkpoint Table Feature": checkpoints of several files, which the next checkpoint may use again.
    V2Checkpoint = "v2Checkpoint", ReaderWriter;
    /// "Iceberg Compatibility V1": data files that Iceberg readers can read.
    IcebergCompatV1 = "icebergCompatV1", Writer;
    /// "Iceberg Compatibility V2": data files that Iceberg readers can read, with lists and maps.
    IcebergCompatV2 = "icebergCompatV2", Writer;
    /// Compatibility with version 3 of the Iceberg format.
    IcebergCompatV3 = "icebergCompatV3", Writer;
    /// Data files that an Iceberg writer could have written.
    IcebergWriterCompatV1 = "icebergWriterCompatV1", Writer;
    /// Like `icebergWriterCompatV1`, but for version 3 of the Iceberg format.
    IcebergWriterCompatV3 = "icebergWriterCompatV3", Writer;
    /// "Clustered Table": rows with similar values in the clustering columns are stored together. These columns can be
    /// changed.
    Clustering = "clustering", Writer;
    /// "VACUUM Protocol Check": before it deletes files, VACUUM checks whether it knows the table's features.
    VacuumProtocolCheck = "vacuumProtocolCheck", ReaderWriter;
    /// "In-Commit Timestamps": the time of a commit is recorded in the commit itself.
    InCommitTimestamp = "inCommitTimestamp", Writer;
    /// The preview of `inCommitTimestamp`.
    InCommitTimestampPreview = "inCommitTimestamp-preview", Writer;
    /// Columns whose type was changed to a wider one.
    TypeWidening = "typeWidening", ReaderWriter;
    /// The preview of `typeWidening`.
    TypeWideningPreview = "typeWidening-preview", ReaderWriter;
    /// The type `variant`.
    VariantType = "variantType", ReaderWriter;
    /// The preview of `variantType`.
    VariantTypePreview = "variantType-preview", ReaderWriter;
    /// Variants that are partly stored in columns of their own.
    VariantShredding = "variantShredding", ReaderWriter;
    /// The preview of `variantShredding`.
    VariantShreddingPreview = "variantShredding-preview", ReaderWriter;
    /// Commits are made through a catalog.
    CatalogManaged = "catalogManaged", ReaderWriter;
    /// An earlier name of `catalogManaged`.
    CatalogOwned = "catalogOwned", ReaderWriter;
    /// The preview of `catalogOwned`.
    CatalogOwnedPreview = "catalogOwned-preview", ReaderWriter;
    /// Commits are made through a coordinator.
    CoordinatedCommitsPreview = "coordinatedCommits-preview", Writer;
    /// Checkpoints that must be kept after a feature was dropped.
    CheckpointProtection = "checkpointProtection", Writer;
    /// Data files that contain the partition columns too.
    MaterializePartitionColumns = "materializePartitionColumns", Writer;
    /// String columns with a collation.
    Collations = "collations", Writer;
    /// The preview of `collations`.
    CollationsPreview = "collations-preview", Writer;
    /// The types `geometry` and `geography`.
    Geospatial = "geospatial", ReaderWriter;
    /// A table that has moved to another location; for readers and writers.
    RedirectReaderWriterPreview = "redirectReaderWriter-preview", ReaderWriter;
    /// A table that has moved to another location; for writers only.
    RedirectWriterOnlyPreview = "redirectWriterOnly-preview", Writer;
}

impl TableFeature {
    /// Returns every known feature.
    pub fn known() -> impl Iterator<Item = Self> {
        Self::KNOWN.iter().cloned()
    }

    /// Returns the other features that a table with this feature must support.
    pub fn requires(&self) -> &'static [Self] {
        match self {
            // The domain `delta.rowTracking` holds the high water mark of row ids, and `delta.clustering` the
            // clustering columns.
            Self::RowTracking | Self::Clustering => &[Self::DomainMetadata],
            // The domain `collations` may hold the versions of collations for which statistics were computed.
            Self::Collations | Self::CollationsPreview => &[Self::DomainMetadata],
            Self::IcebergCompatV1 | Self::IcebergCompatV2 => &[Self::ColumnMapping],
            Self::IcebergCompatV3 => &[Self::ColumnMapping, Self::RowTracking, Self::DomainMetadata],
            Self::CatalogManaged => &[Self::InCommitTimestamp],
            _ => &[],
        }
    }

    /// Returns whether the metadata of a table that supports this feature shows that the table uses it.
    ///
    /// Also returns `true` if the metadata cannot show it. For example, the log may contain deletion vectors although
    /// the property that allows new ones is off.
    ///
    /// # Errors
    /// Returns the same errors as [`Metadata::schema`], for features that are recognized by the schema.
    pub fn is_active(&self, metadata: &Metadata) -> Result<bool> {
        let field_has = |matches: fn(&str) -> bool| {
            Ok(metadata
                .schema()?
                .any_field(&mut |field| field.metadata.entries().keys().any(|key| matches(key))))
        };
        match self {
            Self::AppendOnly => Ok(metadata.is_enabled("delta.appendOnly")),
            Self::Invariants => field_has(|key| key == "delta.invariants"),
            Self::CheckConstraints => {
                Ok(metadata.configuration.keys().any(|key| key.starts_with("delta.constraints.")))
            }
            Self::ChangeDataFeed => Ok(metadata.has_change_feed()),
            Self::GeneratedColumns => field_has(|key| key == "delta.generationExpression"),
            Self::ColumnMapping => Ok(metadata
                .property("delta.columnMapping.mode")
                .is_some_and(|mode| !mode.trim().eq_ignore_ascii_case("none"))),
            Self::IdentityColumns => field_has(|key| key.starts_with("delta.identity.")),
            Self::Collations => field_has(|key| key == COLLATIONS),
            Self::AllowColumnDefaults => field_has(|key| key == "CURRENT_DEFAULT"),
            Self::RowTracking => Ok(metadata.is_enabled("delta.enableRowTracking")),
            Self::IcebergCompatV1 => Ok(metadata.is_enabled("delta.enableIcebergCompatV1")),
            Self::IcebergCompatV2 => Ok(metadata.is_enabled("delta.enableIcebergCompatV2")),
            Self::IcebergCompatV3 => Ok(metadata.is_enabled("delta.enableIcebergCompatV3")),
            Self::InCommitTimestamp => Ok(metadata.is_enabled("delta.enableInCommitTimestamps")),
            _ => Ok(true),
        }
    }
}

/// Formats the name of the feature in a `protocol` action.
impl fmt::Display for TableFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
