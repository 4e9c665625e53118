//! Clean-up of tables with protected checkpoints. (Table feature `checkpointProtection`; the section "Checkpoint
//! Protection" that is proposed for the protocol, "Writer Requirements for Checkpoint Protection".)
//!
//! - "Writers must not clean up any checkpoints for table versions before" the protected version, and no "version
//!   history for table versions for which they do not support the protocol", unless all of that history is deleted.
//! - "Writers must remove commits before removing the associated checkpoints."

use super::plan::{Plan, is_checkpoint};
use crate::error::{ErrorKind, Result};
use crate::log::LogInventory;
use crate::log::name::LogFileName;
use crate::protocol::{Protocol, ensure_writable, protected_before};
use crate::replay::Commit;
use crate::snapshot::Snapshot;

/// Returns what may be deleted of `plan`, in an order that is allowed: all of it, or nothing.
///
/// # Errors
/// `CorruptLog`, and errors of the store.
pub(super) fn respected(
    mut plan: Plan,
    snapshot: &Snapshot,
    inventory: &LogInventory,
) -> Result<Option<Plan>> {
    let protected = protected_before(snapshot.protocol(), snapshot.metadata())?;
    if protected == 0 {
        return Ok(Some(plan));
    }
    if plan.oldest_version < protected && !is_supported(snapshot, inventory, plan.oldest_version)? {
        return Ok(None);
    }
    plan.files.sort_by_key(|file| LogFileName::parse(&file.name).is_some_and(|name| is_checkpoint(&name)));
    Ok(Some(plan))
}

/// Returns whether all versions before `end` that are in the log can be read and written here.
fn is_supported(snapshot: &Snapshot, inventory: &LogInventory, end: u64) -> Result<bool> {
    let storage = snapshot.storage();
    let is_supported = |protocol: &Protocol| ensure_writable(protocol, snapshot.metadata()).is_ok();
    // The commits since the oldest checkpoint say how its protocol has changed.
    if let Some(oldest) = inventory.checkpoints().last().filter(|oldest| oldest.version < end) {
        match Snapshot::open(storage, Some(oldest.version)) {
            Ok(oldest) if is_supported(oldest.protocol()) => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    for commit in inventory.commits().take_while(|commit| commit.version < end) {
        let protocol = Commit::read_without_stats(storage, commit)?.protocol;
        if protocol.is_some_and(|protocol| !is_supported(&protocol)) {
            return Ok(false);
        }
    }
    Ok(true)
}
