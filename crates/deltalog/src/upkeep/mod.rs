//! What is kept beside the log: checksums, checkpoints, compactions, and the removal of what has expired.
//!
//! ```text
//!   commit N ─┬─► N.crc ──► compaction, if due ──► the rest of an earlier clean-up
//!             └─► checkpoint, if due ──► N.crc ──► clean-up of the log before the retention
//! ```
//!
//! - All of it is optional for readers. Failing to write one of these files is logged and never fails the commit.
//! - Nothing here is written before the commit that it describes.

mod checksum;
mod cleanup;
mod compaction;

pub(crate) use cleanup::Backlog;
pub use cleanup::{CleanedLog, clean_up_log};
pub use compaction::compact_log;

use crate::checkpoint;
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::panics::caught;
use crate::replay::Commit;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

use checksum::Told;

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
    const NO_CHECKSUM: &str = "its checksum could not be written";
    let told = attempt(committed, NO_CHECKSUM, || checksum::tell(committed)).flatten();
    let write = |told: Option<Told>| {
        told.and_then(|told| attempt(committed, NO_CHECKSUM, || checksum::write(committed, &told)))
    };
    let Some(base) = committed.base else {
        write(told);
        return;
    };
    if !checkpoint::is_due(base, committed.version) {
        write(told);
        attempt(committed, "its log compaction could not be written", || compaction::keep(committed, base));
        attempt(committed, "the clean-up of its log could not go on", || cleanup::go_on(committed, base));
        return;
    }
    // The checksum is written after the checkpoint, in which the files are counted, because it cannot be corrected.
    let counted = checkpoint::after_commit(base, committed.version, committed.environment);
    let told = told.filter(|told| told.agrees_with(committed, counted));
    if write(told).is_none() {
        attempt(committed, NO_CHECKSUM, || checksum::recount(committed, base));
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
