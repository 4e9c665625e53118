//! What the protocol says: actions, schema, table features, paths. No I/O.

pub mod action;

pub use action::{
    Action, Add, AddCdcFile, CheckpointMetadata, CommitInfo, DeletionVectorDescriptor, DomainMetadata, Format, Metadata, Protocol, Remove,
    SetTransaction, Sidecar,
};
