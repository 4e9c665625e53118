//! Determines the protocol and metadata of a clone.
//!
//! | part of the clone | where it comes from |
//! | --- | --- |
//! | schema, partitioning, clustering columns, domains of users | the source |
//! | properties | the source, or the request |
//! | features of the protocol | the source, and the table that the clone replaces |
//! | table id, time of creation, name, description | the replaced table; new ones if there is none |
//! | when in-commit timestamps began; protection of checkpoints | the replaced table, because they concern its log |
//! | the highest column id | the source or the replaced table, whichever is higher |
//! | columns for the row ids of moved rows | new ones, because row ids of the source are not valid in the clone |
//! | progress of applications, high water mark of row ids | the replaced table |

use std::collections::BTreeMap;

use crate::error::Result;
use crate::log::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION};
use crate::operations::define::alter::with_properties;
use crate::operations::define::{MAX_COLUMN_ID, last_column_id, name_row_tracking_columns};
use crate::protocol::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN, ROW_TRACKING_DOMAIN};
use crate::protocol::{
    CLUSTERING_DOMAIN, DomainMetadata, Metadata, PROTECTED_BEFORE, Protocol, TableFeature, ensure_features,
    writer_refusals,
};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;

/// The properties that belong to the log of a particular table, or to the ids that the table has assigned. A clone
/// does not copy them from its source.
const OF_THE_TABLE: [&str; 5] =
    [ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP, PROTECTED_BEFORE, ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN];

/// The protocol, metadata and metadata domains that the clone's commit sets.
pub(super) struct ClonedTable {
    pub(super) protocol: Protocol,
    pub(super) metadata: Metadata,
    /// The metadata domains that differ from the domains of the replaced table.
    pub(super) domains: Vec<DomainMetadata>,
}

impl ClonedTable {
    /// Returns the protocol, metadata and metadata domains of a clone of `source`. If `base` is given, the clone
    /// replaces it.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for properties that the table cannot have, `Unsupported` if it could not be written,
    /// `CorruptLog`, and errors from the store.
    pub(super) fn of(
        source: &Snapshot,
        base: Option<&Snapshot>,
        properties: &BTreeMap<String, String>,
        environment: &Environment,
    ) -> Result<Self> {
        let (mut protocol, mut metadata) = with_properties(source, properties, environment)?;
        // The feature protects checkpoints of versions that the clone does not have.
        protocol = protocol.without(&TableFeature::CheckpointProtection);
        OF_THE_TABLE.iter().for_each(|name| drop(metadata.configuration.remove(*name)));
        match base {
            None => {
                metadata.id = environment.uuid().to_string();
                metadata.created_time = Some(environment.now_ms());
                (metadata.name, metadata.description) = (None, None);
            }
            Some(base) => {
                protocol = base.protocol().supporting(&protocol.writer_features());
                let old = base.metadata();
                metadata.id.clone_from(&old.id);
                metadata.created_time = old.created_time;
                metadata.name.clone_from(&old.name);
                metadata.description.clone_from(&old.description);
                let has_timestamps = metadata.is_enabled("delta.enableInCommitTimestamps")
                    && old.is_enabled("delta.enableInCommitTimestamps");
                let tracks_rows = metadata.is_enabled("delta.enableRowTracking");
                for name in OF_THE_TABLE {
                    let is_kept = match name {
                        ENABLEMENT_VERSION | ENABLEMENT_TIMESTAMP => has_timestamps,
                        ROW_ID_COLUMN | ROW_COMMIT_VERSION_COLUMN => tracks_rows,
                        _ => true,
                    };
                    if let Some(value) = old.property(name).filter(|_| is_kept) {
                        metadata.configuration.insert(name.to_owned(), value.to_owned());
                    }
                }
                if metadata.configuration.contains_key(MAX_COLUMN_ID) {
                    let highest = last_column_id(&metadata)?.max(last_column_id(old)?);
                    metadata.configuration.insert(MAX_COLUMN_ID.to_owned(), highest.to_string());
                }
            }
        }
        if metadata.is_enabled("delta.enableRowTracking") {
            name_row_tracking_columns(&mut metadata.configuration, environment);
        }
        ensure_features("make", &writer_refusals(&protocol))?;
        Ok(Self { protocol, metadata, domains: domains(source, base)? })
    }

    /// Returns whether `base` already has the same protocol, metadata and domains.
    pub(super) fn is_unchanged(&self, base: &Snapshot) -> bool {
        self.protocol == *base.protocol() && self.metadata == *base.metadata() && self.domains.is_empty()
    }
}

/// Returns the metadata domains that the clone of `source` must set or remove when it replaces `base`. Domains of users
/// that only `base` has are kept.
fn domains(source: &Snapshot, base: Option<&Snapshot>) -> Result<Vec<DomainMetadata>> {
    let wanted = source.domain_metadata()?;
    let found = base.map(Snapshot::domain_metadata).transpose()?.unwrap_or_default();
    let mut domains: Vec<DomainMetadata> = wanted
        .iter()
        .filter(|domain| domain.domain != ROW_TRACKING_DOMAIN && !found.contains(domain))
        .cloned()
        .collect();
    let is_clustering = |domain: &&DomainMetadata| domain.domain == CLUSTERING_DOMAIN;
    if let Some(old) = found.iter().find(is_clustering)
        && !wanted.iter().any(|domain| domain.domain == CLUSTERING_DOMAIN)
    {
        domains.push(DomainMetadata { removed: true, ..old.clone() });
    }
    Ok(domains)
}
