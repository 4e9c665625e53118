//! Writes the checkpoints that are needed to drop a feature. (See "Checkpoint Protection", a proposed section of the
//! protocol.)
//!
//! ```text
//!   keep the history:      … u  [u+1] [u+2] [u+3]  V [V]     u: the newest version that makes use of the feature
//!   truncate the history:    u  [u+1]             V          V: the first version without it
//! ```
//!
//! - Readers that do not know the feature read version V and later versions from a checkpoint that contains no trace
//!   of the feature. Several checkpoints are written, because a reader that cannot read one tries an older one.
//! - Each checkpoint is written for an empty commit, unless there are already checkpoints after `u`. A drop that was
//!   interrupted and starts again therefore only writes the checkpoints that are missing.

use crate::commit::{Committed, Operation, Transaction};
use crate::error::Result;
use crate::log::LogInventory;
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::upkeep::checkpoint;

/// The number of checkpoints before the first version without the feature, as in the JVM implementation.
pub(super) const BARRIERS: usize = 3;

/// Makes sure that there are `count` checkpoints after `version`, making empty commits if necessary. Calls `note`
/// after each of these commits.
///
/// # Errors
/// `CommitConflict`, `CommitStateUnknown`, `CorruptLog`, and errors from the store.
pub(super) fn ensure_after(
    base: &Snapshot,
    version: u64,
    count: usize,
    environment: &Environment,
    mut note: impl FnMut(),
) -> Result<()> {
    let inventory = LogInventory::read(base.storage())?;
    let mut versions: Vec<u64> =
        inventory.checkpoints().iter().map(|checkpoint| checkpoint.version).collect();
    versions.retain(|found| *found > version);
    versions.dedup();
    // Without background work, a commit writes a checkpoint that is due before it returns. A checkpoint in the
    // background would be written a second time below.
    let environment = &environment.without_background();
    for _ in versions.len()..count {
        let newest = base.refresh()?;
        let empty = Transaction::new(&newest, Operation::new("Empty Commit"), environment)?;
        let committed = empty.commit_or_fail()?;
        note();
        checkpoint::of_version(&newest, committed.version, environment)?;
    }
    Ok(())
}

/// Writes the checkpoint of the first version without the feature, so that readers do not need commits that use it.
/// If this fails, the drop has still succeeded, because the earlier checkpoints suffice.
pub(super) fn write_last(base: &Snapshot, committed: &Committed, environment: &Environment) {
    if let Err(error) = checkpoint::of_version(base, committed.version, &environment.without_background()) {
        let (table, version) = (base.storage().url(), committed.version);
        tracing::warn!(table, version, %error, "the feature was dropped, but its checkpoint could not be written");
    }
}
