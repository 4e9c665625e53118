//! What the protocol says: actions, schema, table features, paths. No I/O.

pub mod action;
pub mod features;
pub mod partition_value;
pub mod path;
pub mod schema;
pub(crate) mod text;

pub use action::{
    Action, Add, AddCdcFile, CheckpointMetadata, CommitInfo, DeletionVectorDescriptor, DeletionVectorStorage, DomainMetadata, Format,
    Metadata, PartitionValues, Protocol, Remove, SetTransaction, Sidecar, Tags,
};
pub use features::{
    FeatureKind, TableFeature, ensure_readable, ensure_writable, is_append_only, protocol_for, reader_refusals, writer_refusals,
};
pub use partition_value::{PartitionColumnBuilder, to_log_string};
pub use path::{AbsolutePath, LogPath, PathResolver};
pub use schema::{ArrayType, DataType, FieldMetadata, MapType, PrimitiveType, StructField, StructType};
