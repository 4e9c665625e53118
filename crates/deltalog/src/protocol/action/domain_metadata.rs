//! `domainMetadata`. (PROTOCOL, "Domain Metadata".)

use serde::{Deserialize, Serialize};

/// The configuration of a named domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DomainMetadata {
    /// The name of the domain.
    pub domain: String,
    /// The domain's configuration; the last one if `removed`.
    pub configuration: String,
    /// Whether this action is the domain's tombstone.
    pub removed: bool,
}

impl DomainMetadata {
    /// Returns whether the domain is reserved for the protocol, so that users must not modify it.
    pub fn is_system_controlled(&self) -> bool {
        self.domain.starts_with("delta.")
    }
}
