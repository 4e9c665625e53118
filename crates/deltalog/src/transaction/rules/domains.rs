//! Metadata domains. Protocol: "Domain Metadata", "Two overlapping transactions conflict if they both contain a domain
//! metadata action for the same metadata domain".
//!
//! The domain of row tracking is no exception, but no transaction holds it: each attempt writes it anew, on top of the
//! winner's.
//!
//! Files have statistics of the clustering columns (protocol: "Writer Requirements for Clustered Table"), so whoever
//! adds files conflicts with a change of these columns.

use super::{Mine, Winner};
use crate::error::Result;
use crate::protocol::CLUSTERING_DOMAIN;
use crate::transaction::conflict::ConflictReason;

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let is_winners = |name: &&String| winner.commit.domains.iter().any(|other| other.domain == **name);
    let mut names = mine.changes.domains.iter().map(|domain| &domain.domain);
    let adds_files = !mine.changes.adds.is_empty();
    if adds_files && winner.commit.domains.iter().any(|domain| domain.domain == CLUSTERING_DOMAIN) {
        return Ok(Some(ConflictReason::DomainChanged(CLUSTERING_DOMAIN.to_owned())));
    }
    Ok(names.find(is_winners).map(|name| ConflictReason::DomainChanged(name.clone())))
}
