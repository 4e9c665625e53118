//! Updates `_last_checkpoint`, the hint that names the newest checkpoint. Protocol: "Last Checkpoint File".
//!
//! - The hint is only replaced if it is unchanged since it was read ([`crate::storage::Storage::put_if_unchanged`]). So
//!   in whatever order writers finish, the hint of an older checkpoint never replaces the hint of a newer one.
//! - In a store that cannot do that, or if another writer locks the log's directory for too long, an older hint may
//!   remain. Readers then list the log from an older version on and find the newer checkpoint in the listing, so an
//!   outdated hint only makes the listing longer.
//! - A hint for a version beyond every complete checkpoint is replaced as well, because it is damaged or belongs to a
//!   table that no longer exists.

use crate::error::Result;
use crate::log::{LastCheckpoint, LogSegment};
use crate::storage::{Replacement, Storage};

/// The maximum number of attempts to replace the hint while other writers keep changing it. They usually write newer
/// hints.
const TRIES: u32 = 8;

/// Writes `hint`, unless the existing hint names a newer checkpoint.
pub(super) fn advance(storage: &Storage, hint: &LastCheckpoint) -> Result<()> {
    for _ in 0..TRIES {
        let (found, state) = LastCheckpoint::read_with_state(storage)?;
        if let Some(found) = found
            && found.version > hint.version
            && newest_checkpoint(storage)? >= Some(found.version)
        {
            return Ok(());
        }
        match hint.write_over(storage, state.as_ref())? {
            Replacement::Done => return Ok(()),
            Replacement::Changed => {}
            Replacement::Locked => {
                tracing::warn!(
                    table = storage.url(),
                    version = hint.version,
                    "the hint of the checkpoint is not written, because another writer holds the lock of the log's \
                     directory"
                );
                return Ok(());
            }
        }
    }
    tracing::debug!(table = storage.url(), version = hint.version, "other writers keep replacing the hint");
    Ok(())
}

fn newest_checkpoint(storage: &Storage) -> Result<Option<u64>> {
    Ok(LogSegment::find(storage, None)?.checkpoint.map(|checkpoint| checkpoint.version))
}
