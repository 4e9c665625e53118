//! `domainMetadata`. (PROTOCOL, "Domain Metadata".)

use serde::{Deserialize, Serialize};

/// The configuration of a named domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainMetadata {
    /// Name of the domain.
    pub domain: String,
    /// Its configuration; the last one when `removed`.
    pub configuration: String,
    /// Whether this is the domain's tombstone.
    pub removed: bool,
}

impl DomainMetadata {
    /// Whether the domain is reserved for the protocol, so that users must not touch it.
    pub fn is_system_controlled(&self) -> bool {
        self.domain.starts_with("delta.")
    }
}
