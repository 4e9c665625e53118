//! The `protocol` action. (PROTOCOL, "Protocol Evolution".)

use serde::{Deserialize, Serialize};

/// The requirements for clients that read or write the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Protocol {
    /// The version of the protocol that readers must implement.
    pub min_reader_version: i32,
    /// The version of the protocol that writers must implement.
    pub min_writer_version: i32,
    /// The features that readers must implement. Only present with reader version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    /// The features that writers must implement. Only present with writer version 7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}
