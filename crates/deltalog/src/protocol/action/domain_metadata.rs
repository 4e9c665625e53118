//! `domainMetadata`: configuration of a named domain.

use serde::{Deserialize, Serialize};

/// Configuration of a named domain. Protocol: "Domain Metadata".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainMetadata {
    /// The domain; names that start with `delta.` are the protocol's.
    pub domain: String,
    /// Its configuration as text.
    #[serde(default)]
    pub configuration: String,
    /// Whether this is a tombstone.
    #[serde(default)]
    pub removed: bool,
}
