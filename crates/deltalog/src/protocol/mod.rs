//! The data model of the protocol: actions, schema, table features and paths. This module does no I/O.

pub mod action;
mod checkpoint_protection;
pub mod clustering;
pub mod features;
pub mod iceberg;
pub mod log_name;
pub mod partition_value;
pub mod path;
pub mod properties;
pub mod row_tracking;
pub mod schema;
mod table_header;
pub(crate) mod text;

pub use action::{
    Action, Add, AddCdcFile, CheckpointMetadata, CommitInfo, DeletionVectorDescriptor, DeletionVectorStorage,
    DomainMetadata, Format, Metadata, PartitionValues, Protocol, Remove, SetTransaction, Sidecar, Tags,
};
pub(crate) use action::{ActionLine, AddLine, EscapedText, Pairs, RemoveLine, Text, write_unique_id};
pub(crate) use checkpoint_protection::{PROTECTED_BEFORE, protected_before};
pub use clustering::{CLUSTERING_DOMAIN, clustering_columns, clustering_domain};
pub(crate) use features::{COLLATIONS, ensure_features, ensure_removable};
pub use features::{
    FeatureKind, TableFeature, ensure_checkpointable, ensure_readable, ensure_readable_with_catalog,
    ensure_writable, protocol_for, reader_refusals, required_features, writer_refusals,
};
pub use iceberg::IcebergCompat;
pub use partition_value::{PartitionColumnBuilder, to_log_string};
pub use path::{AbsolutePath, LogPath, PathResolver};
pub(crate) use properties::MATERIALIZE_PARTITION_COLUMNS;
pub use row_tracking::MaterializedRowTracking;
pub(crate) use row_tracking::{PRESERVED_TAG, tracks_rows};
pub use schema::{
    ArrayType, ColumnMappingMode, DataType, FieldMetadata, MapType, MappedSchema, NewMapping, PrimitiveType,
    StructField, StructType, TypeChange,
};
pub use table_header::TableHeader;
