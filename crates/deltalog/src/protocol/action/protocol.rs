//! `protocol`. (PROTOCOL, "Protocol Evolution".)

use serde::{Deserialize, Serialize};

/// What a client must be able to do to read or write the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// Version of the read protocol.
    pub min_reader_version: i32,
    /// Version of the write protocol.
    pub min_writer_version: i32,
    /// Features a reader must implement; with reader version 3 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    /// Features a writer must implement; with writer version 7 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}
