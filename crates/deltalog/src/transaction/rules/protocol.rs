//! Changes of the protocol. Protocol: "Protocol Evolution".

use super::{Mine, Winner};
use crate::error::Result;
use crate::transaction::conflict::ConflictReason;

/// A changed protocol may require something that the transaction did not do.
pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let has_changed = winner
        .commit
        .protocol
        .as_ref()
        .is_some_and(|protocol| protocol != mine.base.protocol() || mine.changes.protocol.is_some());
    Ok(has_changed.then_some(ConflictReason::ProtocolChanged))
}
