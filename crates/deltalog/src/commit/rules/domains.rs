//! Detects conflicting changes of metadata domains. Protocol: "Domain Metadata", "Two overlapping transactions conflict
//! if they both contain a domain metadata action for the same metadata domain".
//!
//! The domain of row tracking never causes a conflict, because no transaction contains it. Instead, each attempt to
//! commit computes that domain again from the winning commit's value.
//!
//! Some transactions depend on domains that they do not change:
//!
//! - Files have statistics of the clustering columns (protocol: "Writer Requirements for Clustered Table"), and the
//!   schema must have these columns. So a transaction that adds files or sets the metadata conflicts with a change of
//!   the clustering columns.
//! - When a feature is dropped, no domain may remain that belongs only to this feature. So a transaction that drops a
//!   feature conflicts with a change of any domain.
//! - A transaction that restores or copies domains only writes those that differ from what it has read, so it depends
//!   on all of them.

use super::{Mine, Winner};
use crate::commit::conflict::ConflictReason;
use crate::commit::row_ids::RowIds;
use crate::error::Result;
use crate::protocol::{CLUSTERING_DOMAIN, DomainMetadata};

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let changes = mine.changes;
    let needs_clustering = !changes.adds.is_empty() || changes.metadata.is_some();
    let drops_feature = drops_feature(mine);
    let is_conflict = |theirs: &&DomainMetadata| {
        changes.domains.iter().any(|own| own.domain == theirs.domain)
            || (needs_clustering && theirs.domain == CLUSTERING_DOMAIN)
            || ((drops_feature || mine.reads.domains) && !RowIds::is_own_domain(theirs))
    };
    let found = winner.commit.domains.iter().find(is_conflict);
    Ok(found.map(|theirs| ConflictReason::DomainChanged(theirs.domain.clone())))
}

/// Returns whether the transaction sets a protocol that lacks a feature which the table has supported.
fn drops_feature(mine: &Mine<'_>) -> bool {
    mine.changes.protocol.as_ref().is_some_and(|protocol| {
        let kept = protocol.writer_features();
        mine.base.protocol().writer_features().iter().any(|feature| !kept.contains(feature))
    })
}
