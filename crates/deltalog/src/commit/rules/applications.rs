//! Progress of applications. Protocol: "Transaction Identifiers".

use super::{Mine, Winner};
use crate::commit::conflict::ConflictReason;
use crate::error::Result;

/// Two commits of one application: two instances of it write at the same time. If the other one has recorded the same
/// version or a later one, the transaction is not a conflict but was done before. See [`AlreadyApplied`].
///
/// [`AlreadyApplied`]: crate::commit::AlreadyApplied
pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let is_winners = |app: &&String| winner.commit.transactions.iter().any(|other| other.app_id == **app);
    let mut apps = mine.changes.transactions.iter().map(|progress| &progress.app_id);
    Ok(apps.find(is_winners).map(|app| ConflictReason::AppTransaction(app.clone())))
}
