//! The `domainMetadata` action. (PROTOCOL, "Domain Metadata".)

use serde::{Deserialize, Serialize};

/// The configuration of a metadata domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DomainMetadata {
    /// The name of the domain.
    pub domain: String,
    /// The domain's configuration. If `removed` is true, this is the last configuration before the removal.
    pub configuration: String,
    /// Whether this action removes the domain.
    pub removed: bool,
}

impl DomainMetadata {
    /// Returns whether the domain is reserved for the protocol, so that users must not set it.
    pub fn is_system_controlled(&self) -> bool {
        self.domain.starts_with("delta.")
    }
}
