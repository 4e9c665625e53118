//! Metadata domains. Protocol: "Domain Metadata", "Two overlapping transactions conflict if they both contain a domain
//! metadata action for the same metadata domain".
//!
//! The domain of row tracking is no exception, but no transaction holds it: each attempt writes it anew, on top of the
//! winner's.

use super::{Mine, Winner};
use crate::error::Result;
use crate::transaction::conflict::ConflictReason;

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let is_winners = |name: &&String| winner.commit.domains.iter().any(|other| other.domain == **name);
    let mut names = mine.changes.domains.iter().map(|domain| &domain.domain);
    Ok(names.find(is_winners).map(|name| ConflictReason::DomainChanged(name.clone())))
}
