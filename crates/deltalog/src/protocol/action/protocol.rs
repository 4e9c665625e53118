//! `protocol`: what readers and writers must support.

use serde::{Deserialize, Serialize};

/// What readers and writers must support. Protocol: "Protocol Evolution".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// Least version of the read protocol.
    pub min_reader_version: i32,
    /// Least version of the write protocol.
    pub min_writer_version: i32,
    /// Features that a reader must support; with reader version 3 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    /// Features that a writer must support; with writer version 7 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}
