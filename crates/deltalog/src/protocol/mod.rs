//! What the protocol says: actions, schema, table features, paths. No I/O.

pub mod action;
pub mod path;
pub mod schema;

pub use action::{
    Action, Add, AddCdcFile, CheckpointMetadata, CommitInfo, DeletionVectorDescriptor, DeletionVectorStorage, DomainMetadata, Format,
    Metadata, PartitionValues, Protocol, Remove, SetTransaction, Sidecar, Tags,
};
pub use path::{AbsolutePath, LogPath, PathResolver};
pub use schema::{ArrayType, DataType, FieldMetadata, MapType, PrimitiveType, StructField, StructType};
