//! The actions of a commit, one file an action.
//!
//! Protocol: "Actions". A line of a commit is a JSON object with one field, named after the action.
//!
//! - Unknown actions and unknown fields are passed over (section "Protocol Evolution").
//! - Optional fields that are absent are not written.
//! - A field that the protocol requires and that is absent is an error that names it.

mod checkpoint;
mod commit_info;
mod domain_metadata;
mod file;
mod metadata;
mod protocol;
mod transaction;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use checkpoint::{CheckpointMetadata, Sidecar};
pub use commit_info::CommitInfo;
pub use domain_metadata::DomainMetadata;
pub use file::{Add, AddCdcFile, DeletionVectorDescriptor, Remove};
pub use metadata::{Format, Metadata};
pub use protocol::Protocol;
pub use transaction::SetTransaction;

/// String keys and nullable string values, in key order so that what is written is reproducible.
pub type StringMap = std::collections::BTreeMap<String, Option<String>>;

/// Any action of the protocol.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// A data file becomes part of the table.
    Add(Add),
    /// A data file leaves the table.
    Remove(Remove),
    /// A file of row-level changes.
    Cdc(AddCdcFile),
    /// The table's metadata as a whole.
    MetaData(Metadata),
    /// What readers and writers must support.
    Protocol(Protocol),
    /// An application's progress.
    Txn(SetTransaction),
    /// Who committed what.
    CommitInfo(CommitInfo),
    /// Configuration of a named domain.
    DomainMetadata(DomainMetadata),
    /// About a V2 checkpoint.
    CheckpointMetadata(CheckpointMetadata),
    /// A file with actions of a V2 checkpoint.
    Sidecar(Sidecar),
}

/// A line as it may stand: any of the actions, each at most once.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    add: Option<Add>,
    remove: Option<Remove>,
    cdc: Option<AddCdcFile>,
    meta_data: Option<Metadata>,
    protocol: Option<Protocol>,
    txn: Option<SetTransaction>,
    commit_info: Option<CommitInfo>,
    domain_metadata: Option<DomainMetadata>,
    checkpoint_metadata: Option<CheckpointMetadata>,
    sidecar: Option<Sidecar>,
}

impl Action {
    /// Reads a line; `None` if it holds no action that is known.
    ///
    /// # Errors
    /// `CorruptLog` if the line is not a JSON object or a required field is missing or of another type.
    pub fn parse_line(line: &str) -> Result<Option<Self>> {
        let line: Line = serde_json::from_str(line).map_err(|error| Error::corrupt_log("the line is not an action").with_source(error))?;
        Ok(line
            .add
            .map(Self::Add)
            .or_else(|| line.remove.map(Self::Remove))
            .or_else(|| line.cdc.map(Self::Cdc))
            .or_else(|| line.meta_data.map(Self::MetaData))
            .or_else(|| line.protocol.map(Self::Protocol))
            .or_else(|| line.txn.map(Self::Txn))
            .or_else(|| line.commit_info.map(Self::CommitInfo))
            .or_else(|| line.domain_metadata.map(Self::DomainMetadata))
            .or_else(|| line.checkpoint_metadata.map(Self::CheckpointMetadata))
            .or_else(|| line.sidecar.map(Self::Sidecar)))
    }

    /// The action as a line of a commit, without the line feed.
    ///
    /// # Errors
    /// `InvalidArgument` if it cannot be JSON (a map of `extra` fields with a key twice, say).
    pub fn to_json_line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::invalid_argument("the action cannot be written as JSON").with_source(error))
    }
}

/// Reads `null` as the default: other writers spell an empty map so.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> std::result::Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(line: &str) -> Action {
        let action = Action::parse_line(line).unwrap().unwrap();
        let again = Action::parse_line(&action.to_json_line().unwrap()).unwrap().unwrap();
        assert_eq!(action, again);
        action
    }

    /// Protocol: "Add File and Remove File", its examples.
    #[test]
    fn add_and_remove() {
        let Action::Add(add) = round_trip(
            r#"{"add":{"path":"date=2017-12-10/part-000...c000.gz.parquet","partitionValues":{"date":"2017-12-10"},"size":841454,"modificationTime":1512909768000,"dataChange":true,"baseRowId":4071,"defaultRowCommitVersion":41,"stats":"{\"numRecords\":1}","unknown":[1]}}"#,
        ) else {
            panic!("not an add")
        };
        assert_eq!((add.size, add.base_row_id, add.default_row_commit_version), (841_454, Some(4071), Some(41)));
        assert_eq!(add.partition_values["date"].as_deref(), Some("2017-12-10"));
        let Action::Remove(remove) = round_trip(r#"{"remove":{"path":"p","deletionTimestamp":1515488792485,"dataChange":true}}"#) else {
            panic!("not a remove")
        };
        assert_eq!(remove.deletion_timestamp, Some(1_515_488_792_485));
    }

    /// Protocol: "Protocol Evolution", "Clients must ignore such unrecognized fields".
    #[test]
    fn unknown_actions_are_passed_over() {
        assert_eq!(Action::parse_line(r#"{"somethingNew":{"a":1}}"#).unwrap(), None);
        assert_eq!(Action::parse_line("{}").unwrap(), None);
    }

    #[test]
    fn a_missing_required_field_is_named() {
        let error = Action::parse_line(r#"{"add":{"partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}"#).unwrap_err();
        assert!(error.to_string().contains("path"), "{error}");
        assert!(Action::parse_line("{\"add\":{\"path\":\"a").is_err());
    }

    /// Protocol: "Commit Provenance Information", "free to store any valid JSON-formatted data".
    #[test]
    fn commit_info_keeps_what_it_does_not_know() {
        let Action::CommitInfo(info) = round_trip(r#"{"commitInfo":{"timestamp":1,"operation":"X","operationParameters":{"mode":"Append","n":3},"notebook":{"id":"7"}}}"#)
        else {
            panic!("not a commitInfo")
        };
        assert_eq!(info.extra["notebook"]["id"], "7");
    }

    /// Protocol: "Deletion Vectors", "Derived Fields".
    #[test]
    fn unique_id_of_a_deletion_vector() {
        let Action::Add(add) = round_trip(
            r#"{"add":{"path":"p","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true,"deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"cardinality":6}}}"#,
        ) else {
            panic!("not an add")
        };
        assert_eq!(add.deletion_vector.unwrap().unique_id(), "uab^-aqEH.-t@S}K{vb[*k^@4");
    }
}
