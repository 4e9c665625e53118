//! Actions: the contents of one line of a commit. (PROTOCOL, "Actions".)
//!
//! Each action has a file of its own, and its fields have the protocol's names. A line is a JSON object with one key,
//! the name of the action:
//!
//! ```text
//! {"add":{"path":"part-0.parquet","partitionValues":{},"size":10,"modificationTime":0,"dataChange":true}}
//!   │      └ Add                                                                                      │
//!   └ Action::Add ────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! - Unknown actions and unknown fields are ignored, as "Protocol Evolution" requires. A change that readers must not
//!   ignore comes with a higher protocol version.
//! - The module [`line`] parses lines. It also has the rules for values that are missing or `null`.
//! - Optional fields that are not set are not written.
//! - JSON nested deeper than serde_json's limit (128) is an error, not a stack overflow.

mod add;
mod cdc;
mod checkpoint_metadata;
mod commit_info;
mod deletion_vector;
mod domain_metadata;
mod lenient;
mod line;
mod metadata;
mod protocol;
mod remove;
mod sidecar;
mod txn;

use serde::Serialize;

pub use add::Add;
pub use cdc::AddCdcFile;
pub use checkpoint_metadata::CheckpointMetadata;
pub use commit_info::CommitInfo;
pub(crate) use deletion_vector::write_unique_id;
pub use deletion_vector::{DeletionVectorDescriptor, DeletionVectorStorage};
pub use domain_metadata::DomainMetadata;
pub(crate) use line::{ActionLine, AddLine, EscapedText, Pairs, RemoveLine, Text};
pub use metadata::{Format, Metadata};
pub use protocol::Protocol;
pub use remove::Remove;
pub use sidecar::Sidecar;
pub use txn::SetTransaction;

use crate::error::{Error, Result};

/// A map from the names of partition columns to values, both strings. `None` is the null partition. (PROTOCOL,
/// "Partition Value Serialization".)
pub type PartitionValues = std::collections::BTreeMap<String, Option<String>>;

/// The tags of an action, which may have any names.
pub type Tags = std::collections::BTreeMap<String, Option<String>>;

/// One action of the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Action {
    /// Adds a logical file to the table.
    Add(Add),
    /// Removes a logical file from the table.
    Remove(Remove),
    /// Names a file with the row-level changes of this version.
    Cdc(AddCdcFile),
    /// The table's schema, partitioning and configuration.
    #[serde(rename = "metaData")]
    Metadata(Metadata),
    /// The requirements for clients that read or write the table.
    Protocol(Protocol),
    /// The progress of an application.
    Txn(SetTransaction),
    /// The provenance of the commit.
    CommitInfo(CommitInfo),
    /// The configuration of a named domain.
    DomainMetadata(DomainMetadata),
    /// The description of a V2 checkpoint.
    CheckpointMetadata(CheckpointMetadata),
    /// A file that holds part of a V2 checkpoint.
    Sidecar(Sidecar),
}

impl Action {
    /// Parses one line of a commit, a compaction or a JSON checkpoint.
    ///
    /// Returns `None` for a line without a known action: it may have an action of a newer protocol, or only `null`
    /// values.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::error::ErrorKind::CorruptLog) if the line is not a JSON object, lacks a required field,
    /// or holds more than one action.
    pub fn parse_line(line: impl AsRef<[u8]>) -> Result<Option<Self>> {
        Ok(ActionLine::parse(line.as_ref())?.map(Self::from))
    }

    /// Returns the action as one line of JSON, without the line feed.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::error::ErrorKind::InvalidArgument) if a value cannot be written as JSON.
    pub fn to_json_line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| {
            Error::invalid_argument(format!("action '{}' cannot be written as JSON", self.name()))
                .with_source(error)
        })
    }

    /// Returns the key of the action in the log's JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Remove(_) => "remove",
            Self::Cdc(_) => "cdc",
            Self::Metadata(_) => "metaData",
            Self::Protocol(_) => "protocol",
            Self::Txn(_) => "txn",
            Self::CommitInfo(_) => "commitInfo",
            Self::DomainMetadata(_) => "domainMetadata",
            Self::CheckpointMetadata(_) => "checkpointMetadata",
            Self::Sidecar(_) => "sidecar",
        }
    }
}

macro_rules! from_action {
    ($($variant:ident($type:ty)),* $(,)?) => {
        $(impl From<$type> for Action {
            fn from(action: $type) -> Self {
                Self::$variant(action)
            }
        })*
    };
}

from_action!(
    Add(Add),
    Remove(Remove),
    Cdc(AddCdcFile),
    Metadata(Metadata),
    Protocol(Protocol),
    Txn(SetTransaction),
    CommitInfo(CommitInfo),
    DomainMetadata(DomainMetadata),
    CheckpointMetadata(CheckpointMetadata),
    Sidecar(Sidecar),
);

#[cfg(test)]
mod tests;
