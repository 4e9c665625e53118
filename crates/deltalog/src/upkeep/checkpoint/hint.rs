//! Moving `_last_checkpoint` forward. Protocol: "Last Checkpoint File".
//!
//! - The hint is replaced only if it is still the one that was read ([`crate::storage::Storage::put_if_unchanged`]), so
//!   that a writer with an older checkpoint never replaces the hint of a newer one, regardless of the order in which
//!   they write.
//! - A store that cannot do that may keep the older hint. Readers then list the log from an older version on and find
//!   the newer checkpoint there: a hint that is behind only costs a longer listing.
//! - A hint that is ahead of every complete checkpoint is replaced as well: it is of a table that is gone, or damaged.

use crate::error::Result;
use crate::log::{LastCheckpoint, LogSegment};
use crate::storage::Storage;

/// How often a hint is tried that other writers keep replacing. They write newer ones, as a rule.
const TRIES: u32 = 8;

/// Writes `hint`, unless the existing hint points at a newer checkpoint.
pub(super) fn advance(storage: &Storage, hint: &LastCheckpoint) -> Result<()> {
    for _ in 0..TRIES {
        let (found, state) = LastCheckpoint::read_with_state(storage)?;
        if let Some(found) = found
            && found.version > hint.version
            && newest_checkpoint(storage)? >= Some(found.version)
        {
            return Ok(());
        }
        if hint.write_over(storage, state.as_ref())? {
            return Ok(());
        }
    }
    tracing::debug!(table = storage.url(), version = hint.version, "other writers keep replacing the hint");
    Ok(())
}

fn newest_checkpoint(storage: &Storage) -> Result<Option<u64>> {
    Ok(LogSegment::find(storage, None)?.checkpoint.map(|checkpoint| checkpoint.version))
}
