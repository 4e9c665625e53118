//! `protocol`. (PROTOCOL, "Protocol Evolution".)

use serde::{Deserialize, Serialize};

/// The requirements for clients that read or write the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Protocol {
    /// The version of the reader protocol.
    pub min_reader_version: i32,
    /// The version of the writer protocol.
    pub min_writer_version: i32,
    /// The features that a reader must implement; present with reader version 3 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    /// The features that a writer must implement; present with writer version 7 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}
