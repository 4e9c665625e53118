//! Protected checkpoints. (Table feature `checkpointProtection`; the section "Checkpoint Protection", which is proposed
//! for the protocol.)
//!
//! ```text
//!   versions that use a feature   barriers           without the feature
//!   ──────────────────────────── [ ] [ ] [ ] ──────► V ─────────────────►
//! ```
//!
//! Barriers are checkpoints of versions before V that were written when nothing in the table used the feature any more.
//! A reader that does not know the dropped feature can read version V and later versions if it starts from a barrier.
//! The barriers must therefore be kept as long as the history before V is kept.

use super::action::{Metadata, Protocol};
use super::features::TableFeature;
use crate::error::{Error, Result};

/// The property with the version before which checkpoints are protected.
pub(crate) const PROTECTED_BEFORE: &str = "delta.requireCheckpointProtectionBeforeVersion";

/// Returns the version before which the checkpoints of a table are protected; 0 if no checkpoints are.
///
/// # Errors
/// `CorruptLog` if the property is not a version.
pub(crate) fn protected_before(protocol: &Protocol, metadata: &Metadata) -> Result<u64> {
    if !protocol.writer_features().contains(&TableFeature::CheckpointProtection) {
        return Ok(0);
    }
    let Some(text) = metadata.property(PROTECTED_BEFORE) else { return Ok(0) };
    text.trim().parse().map_err(|error| {
        Error::corrupt_log(format!("the table property '{PROTECTED_BEFORE}' is not a version: '{text}'"))
            .with_source(error)
    })
}
