//! Cleans up the logs of tables with protected checkpoints. (Table feature `checkpointProtection`; "Writer Requirements
//! for Checkpoint Protection" in the section "Checkpoint Protection", which is proposed for the protocol.)
//!
//! ```text
//!   readable and writable here      unknown         protected before P
//!   0 ─────────────────────── 6 │ 7 ──────────── 12 │ 13 ────────────►
//!   may be deleted up to a checkpoint in here       or up to one in here
//! ```
//!
//! - "Writers must not clean up any checkpoints for table versions before" the protected version, and no "version
//!   history for table versions for which they do not support the protocol", unless all of this history is deleted.
//! - "Writers must remove commits before removing the associated checkpoints."
//! - A version that cannot be read may need an unknown protocol, so it is kept. This is logged once per table handle.
//! - Checking the versions takes no longer than the clean-up itself may take. When the time is up, only the versions
//!   that were checked are deleted, and the next clean-up starts with the first version that was not checked.

use std::cell::OnceCell;

use super::plan::{Plan, is_checkpoint};
use crate::error::{Error, ErrorKind, Result};
use crate::log::replay::visit_commits;
use crate::log::{CommitFile, LogInventory};
use crate::protocol::log_name::LogFileName;
use crate::protocol::{Protocol, ensure_writable, protected_before};
use crate::snapshot::Snapshot;

/// The versions whose checkpoints a table protects, and which of these versions this crate may delete nevertheless.
pub(super) struct Protection<'a> {
    snapshot: &'a Snapshot,
    inventory: &'a LogInventory,
    /// Returns whether the clean-up has used up its time.
    is_over: &'a dyn Fn() -> bool,
    /// The version before which checkpoints are protected; 0 if there is no protection.
    protected_before: u64,
    supported_before: OnceCell<u64>,
}

impl<'a> Protection<'a> {
    /// Returns the protection that the metadata of the newest version states.
    ///
    /// # Errors
    /// `CorruptLog` if the property is not a version.
    pub(super) fn of(
        snapshot: &'a Snapshot,
        inventory: &'a LogInventory,
        is_over: &'a dyn Fn() -> bool,
    ) -> Result<Self> {
        let protected_before = protected_before(snapshot.protocol(), snapshot.metadata())?;
        Ok(Self { snapshot, inventory, is_over, protected_before, supported_before: OnceCell::new() })
    }

    /// Returns whether all versions before `version` may be deleted.
    ///
    /// # Errors
    /// Errors from the store.
    pub(super) fn allows(&self, version: u64) -> Result<bool> {
        if version >= self.protected_before {
            return Ok(true);
        }
        if let Some(supported) = self.supported_before.get() {
            return Ok(version <= *supported);
        }
        let supported = self.find_supported(version)?;
        Ok(version <= *self.supported_before.get_or_init(|| supported))
    }

    /// If there is a protected version, moves the checkpoints in `plan` to the end, because the commits must be deleted
    /// before them.
    pub(super) fn order(&self, plan: &mut Plan) {
        if self.protected_before > 0 {
            plan.files
                .sort_by_key(|file| LogFileName::parse(&file.name).is_some_and(|name| is_checkpoint(&name)));
        }
    }

    /// Returns the first version that this crate cannot read or write, or `end` if there is none before it.
    fn find_supported(&self, end: u64) -> Result<u64> {
        let commits: Vec<CommitFile> =
            self.inventory.commits().take_while(|commit| commit.version < end).collect();
        let is_whole = commits.first().is_some_and(|first| first.version == 0);
        // If the log no longer begins with version 0, its first protocol is in the oldest checkpoint. The commits show
        // how the protocol has changed since.
        if !is_whole && !self.is_oldest_checkpoint_supported()? {
            return Ok(0);
        }
        let mut supported = end;
        visit_commits(self.snapshot.storage(), &commits, |file, commit| {
            let goes_on = !(self.is_over)()
                && match commit {
                    Ok(commit) => commit.protocol.is_none_or(|protocol| self.is_supported(&protocol)),
                    Err(error) => self.doubt(file.version, error)?,
                };
            if !goes_on {
                supported = file.version;
            }
            Ok(goes_on)
        })?;
        Ok(supported)
    }

    fn is_oldest_checkpoint_supported(&self) -> Result<bool> {
        let Some(oldest) = self.inventory.checkpoints().pop() else { return Ok(false) };
        match Snapshot::open(self.snapshot.storage(), Some(oldest.version)) {
            Ok(opened) => Ok(self.is_supported(opened.protocol())),
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(false),
            Err(error) => self.doubt(oldest.version, error),
        }
    }

    fn is_supported(&self, protocol: &Protocol) -> bool {
        ensure_writable(protocol, self.snapshot.metadata()).is_ok()
    }

    /// Treats a version that cannot be read as not supported. Logs this the first time.
    ///
    /// # Errors
    /// `error` itself if the version may be readable later, so that the next clean-up can try again.
    fn doubt(&self, version: u64, error: Error) -> Result<bool> {
        if !matches!(
            error.kind(),
            ErrorKind::CorruptLog | ErrorKind::FileNotFound | ErrorKind::VersionNotFound
        ) {
            return Err(error);
        }
        if self.snapshot.left_over().is_first_warning() {
            tracing::warn!(
                table = self.snapshot.storage().url(),
                version,
                protected_before = self.protected_before,
                %error,
                "the log before a protected version is kept, because one of its versions cannot be read"
            );
        }
        Ok(false)
    }
}
