//! Writes the files that accompany the commits of a log (checksums, checkpoints and compactions), and removes expired
//! files.
//!
//! ```text
//!                 before the commit returns    afterwards, on threads of its own
//!   commit N ─┬─► N.crc ─────────────────────► compaction, if due; the rest of an earlier clean-up
//!             ├─ in a remote store ──────────► N.crc ──► the same
//!             ├─► manifests, if asked for
//!             └──────────────────────────────► checkpoint, if due ──► N.crc ──► clean-up of expired files
//! ```
//!
//! - Readers can do without any of these files. If one cannot be written, this is logged, and the commit does not fail.
//! - No file is written before the commit that it describes.
//! - In a remote store, a version may have no checksum, if the next version was committed before the checksum could be
//!   written.
//! - Without a [`Background`](crate::Background), a commit does all of this work before it returns.

pub(crate) mod checkpoint;
mod checksum;
mod cleanup;
mod committing;
mod compaction;
mod derived;
mod duties;
pub(crate) mod manifest;

pub(crate) use cleanup::truncate_log;
pub use cleanup::{CleanedLog, clean_up_log};
pub(crate) use committing::Lost;
pub use compaction::compact_log;

use crate::commit::CommittedVersion;
use crate::log::replay::Commit;
use crate::snapshot::Snapshot;

use checksum::Since;
use duties::{DueChecksum, Duties, attempt};

/// The log message if the manifests could not be updated after a commit.
const NO_MANIFESTS: &str = "its manifests could not be written; generate them again";

/// The log message if the checksum of a commit could not be written.
const NO_CHECKSUM: &str = "its checksum could not be written";

/// Does the work that is due after a commit, or queues it for the background. Failures are logged.
fn after_commit(committed: CommittedVersion<'_>) {
    let CommittedVersion { base, storage, resolver, version, bytes, winners, own, environment } = committed;
    let sets = |commit: &Commit| commit.metadata.as_ref().is_some_and(manifest::is_asked_for);
    let sets_manifests = winners.iter().flatten().any(sets) || sets(&own.others);
    if sets_manifests || base.is_some_and(|base| manifest::is_asked_for(base.metadata())) {
        attempt((storage, version), NO_MANIFESTS, || manifest::keep(base, storage, resolver, version));
    }
    // When the user closes a handle, its open files must be closed, too. Therefore the background keeps a copy without
    // open files.
    let kept = |base: &Snapshot| match environment.background() {
        Some(_) => base.without_open_files(),
        None => base.clone(),
    };
    let since = Since { storage: storage.clone(), version, base: base.map(kept), winners, own };
    let Some(base) = base else {
        attempt((storage, version), NO_CHECKSUM, || checksum::write_derived(&since));
        return;
    };
    let has_checkpoint = checkpoint::is_due(base, version);
    // If a checkpoint is due, the checksum is not written yet: the checkpoint counts the files, and the checksum is
    // compared with that count first.
    let checksum = if environment.background().is_some() && !storage.has_directories() {
        DueChecksum::Underived(Box::new(since))
    } else {
        let derived = attempt((storage, version), NO_CHECKSUM, || checksum::derive(&since)).flatten();
        match derived {
            Some(derived) if !has_checkpoint => {
                attempt((storage, version), NO_CHECKSUM, || checksum::write(storage, version, &derived));
                DueChecksum::None
            }
            Some(derived) => DueChecksum::Derived(Box::new(derived)),
            None => DueChecksum::None,
        }
    };
    let is_behind = matches!(checksum, DueChecksum::Underived(_));
    let duties = Duties {
        base: kept(base),
        version,
        bytes,
        environment: environment.without_background(),
        committed_ms: match is_behind {
            true => attempt((storage, version), NO_CHECKSUM, || Ok(environment.now_ms())),
            false => None,
        },
        checksum,
    };
    if has_checkpoint {
        duties.submit(environment, "checkpoint", Duties::write_checkpoint);
    } else if compaction::is_due(base, version) || base.left_over().has_files() {
        duties.submit(environment, "compaction", Duties::write_compaction);
    } else if is_behind {
        // A checksum must not wait for the checkpoint of another version, so it uses another lane.
        let lane = format!("checksum {}", storage.url());
        duties.submit_in(lane, environment, "checksum", |duties, _| duties.write_due_checksum());
    }
}
