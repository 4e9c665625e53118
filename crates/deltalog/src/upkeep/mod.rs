//! What is kept beside the log: checksums, checkpoints, compactions, and the removal of what has expired.
//!
//! ```text
//!   commit N ──► N.crc ──► checkpoint, if due ──► clean-up of the log before the retention
//!                     └──► compaction, if due
//! ```
//!
//! - All of it is optional for readers. Failing to write one of these files is logged and never fails the commit.
//! - Nothing here is written before the commit that it describes.

mod checksum;
mod cleanup;
mod compaction;

pub use cleanup::{CleanedLog, clean_up_log};
pub use compaction::compact_log;

use crate::checkpoint;
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::panics::caught;
use crate::replay::Commit;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// A version that this process has just committed.
#[derive(Debug)]
pub(crate) struct CommittedVersion<'a> {
    /// The version that the transaction was based on; `None` if it created the table.
    pub(crate) base: Option<&'a Snapshot>,
    pub(crate) storage: &'a Storage,
    pub(crate) version: u64,
    /// The size of the commit in bytes.
    pub(crate) bytes: u64,
    /// The commits after the base up to this version, oldest first; `None` if they are not all in memory. The last one
    /// is of this version and has its provenance. Others before it may have a part of its file actions.
    pub(crate) since: Option<Vec<&'a Commit>>,
    pub(crate) environment: &'a Environment,
}

/// Does what is due after a commit. Failures are logged.
pub(crate) fn after_commit(committed: &CommittedVersion<'_>) {
    let has_checksum = attempt(committed, "its checksum could not be written", || checksum::keep(committed))
        .unwrap_or(false);
    let Some(base) = committed.base else { return };
    checkpoint::after_commit(base, committed.version, committed.environment);
    if !checkpoint::is_due(base, committed.version) {
        attempt(committed, "its log compaction could not be written", || compaction::keep(committed, base));
        return;
    }
    if !has_checksum {
        attempt(committed, "its checksum could not be written", || checksum::recount(committed, base));
    }
    attempt(committed, "its expired log could not be cleaned up", || {
        cleanup::after_checkpoint(committed, base)
    });
}

/// Does `work`; logs its failure, because a commit that stands must not fail afterwards.
fn attempt<T>(
    committed: &CommittedVersion<'_>,
    failure: &'static str,
    work: impl FnOnce() -> Result<T>,
) -> Option<T> {
    // Even if an Arrow array exceeds 2 GiB.
    let done = caught(work, |panic| {
        Error::new(ErrorKind::Unavailable, format!("the work after the commit panicked with '{panic}'"))
    });
    let warn = |error: &Error| {
        let (table, version) = (committed.storage.url(), committed.version);
        tracing::warn!(table, version, %error, "the commit succeeded, but {failure}");
    };
    done.inspect_err(warn).ok()
}
