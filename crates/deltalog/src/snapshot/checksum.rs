//! Reads the checksum file of a version once. It is only used if no commit contradicts it. (PROTOCOL, "Version Checksum
//! File".)

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Snapshot, is_checksum_doubted};
use crate::error::{ErrorKind, Result};
use crate::log::replay::{Commit, State};
use crate::log::{LogSegment, VersionChecksum};
use crate::protocol::log_name::LogFileName;
use crate::storage::{FileMeta, Storage};

/// Returns the path of the checksum file of a segment's version.
pub(super) fn path(segment: &LogSegment) -> String {
    LogFileName::Checksum(segment.version).path()
}

/// Returns the checksum file of a segment's version, if the listing shows one and it can be read.
pub(super) fn understood(storage: &Storage, segment: &LogSegment) -> Result<Option<VersionChecksum>> {
    let Some(file) = &segment.checksum else { return Ok(None) };
    read(storage, segment.version, file)
}

/// Reads the checksum file of `version`, which is `file` in a listing. Returns `None` if it does not exist or is
/// invalid.
fn read(storage: &Storage, version: u64, file: &FileMeta) -> Result<Option<VersionChecksum>> {
    let path = LogFileName::Checksum(version).path();
    let bytes = match storage.read_listed(&path, file.listed()) {
        Err(error) if error.kind() == ErrorKind::FileNotFound => return Ok(None),
        bytes => bytes?,
    };
    let warn = |error: &crate::error::Error| {
        tracing::warn!(table = storage.url(), file = path, %error, "an invalid checksum file is ignored");
    };
    Ok(VersionChecksum::parse(&bytes).inspect_err(warn).ok())
}

/// Returns whether the commits are consistent with the checksum file of `version`. If they are not, the file belongs to
/// another commit or another table.
pub(super) fn believable(storage: &Storage, state: &State, version: u64, checksum: &VersionChecksum) -> bool {
    fn differ<T: PartialEq>(log: Option<&T>, checksum: Option<&T>) -> bool {
        matches!((log, checksum), (Some(log), Some(checksum)) if log != checksum)
    }
    let info = state
        .commits()
        .find(|commit| commit.version == version)
        .and_then(|commit| commit.commit_info.as_ref());
    let mut until = state.newest_actions().filter(|actions| actions.version <= version);
    let protocol = until.clone().find_map(|actions| actions.protocol.as_ref());
    let metadata = until.find_map(|actions| actions.metadata.as_ref());
    let is_foreign = differ(info.and_then(|info| info.txn_id.as_ref()), checksum.txn_id.as_ref())
        || differ(protocol, checksum.protocol.as_ref())
        || differ(metadata, checksum.metadata.as_ref());
    if is_foreign {
        let file = LogFileName::Checksum(version).path();
        tracing::warn!(
            table = storage.url(),
            file,
            "a checksum file is ignored: it does not belong to the commit of its version"
        );
    }
    !is_foreign
}

/// A checksum that is known without reading the file list, and the commits after it, oldest first.
pub(crate) struct KnownChecksum {
    pub(crate) checksum: VersionChecksum,
    pub(crate) since: Vec<Arc<Commit>>,
}

impl Snapshot {
    /// Returns the checksum of this version, or of an earlier version if all commits since then are in memory.
    ///
    /// # Errors
    /// Errors from the store.
    pub(crate) fn known_checksum(&self) -> Result<Option<KnownChecksum>> {
        let is_doubtful = |version| is_checksum_doubted(self.storage(), version);
        if let Some(checksum) = self.derived_checksum() {
            return Ok(Some(KnownChecksum { checksum, since: Vec::new() }));
        }
        if !is_doubtful(self.version())
            && let Some(checksum) = self.checksum()?
        {
            return Ok(Some(KnownChecksum { checksum: checksum.clone(), since: Vec::new() }));
        }
        // If this version's checksum is wrong, the earlier one is probably wrong, too, because wrong numbers are
        // carried over.
        if self.0.facts.is_checksum_wrong.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let older = self.segment().older_checksum.as_ref().filter(|(version, _)| !is_doubtful(*version));
        let Some((version, file)) = older else { return Ok(None) };
        let version = *version;
        let state = &self.0.state;
        let mut since: Vec<_> = state.commits().filter(|commit| commit.version > version).cloned().collect();
        since.reverse();
        // If a compaction was read instead of commits, the individual commits are not known.
        if since.len() as u64 != self.version() - version {
            return Ok(None);
        }
        let found = read(self.storage(), version, file)?;
        let found = found.filter(|found| believable(self.storage(), state, version, found));
        Ok(found.map(|checksum| KnownChecksum { checksum, since }))
    }

    /// Returns the checksum of this version, if this process has derived it for a commit of its own.
    fn derived_checksum(&self) -> Option<VersionChecksum> {
        let is_wrong = || {
            is_checksum_doubted(self.storage(), self.version())
                || self.0.facts.is_checksum_wrong.load(Ordering::Relaxed)
        };
        let checksum = self.left_over().derived_checksum(self.version()).filter(|_| !is_wrong())?;
        // Another table may have replaced the table to which the commit belonged.
        let is_own = checksum.metadata.as_ref() == Some(self.metadata())
            && checksum.protocol.as_ref() == Some(self.protocol())
            && believable(self.storage(), &self.0.state, self.version(), &checksum);
        is_own.then_some(checksum)
    }

    /// Compares the checksum of this version with `files`, the counted number of live files. If the numbers differ,
    /// this checksum is ignored, and no checksums of later commits are derived from it.
    ///
    /// # Errors
    /// Errors from the store.
    pub(crate) fn compare_checksum_with(&self, files: u64) -> Result<()> {
        let Some(recorded) = self.checksum()?.map(|checksum| checksum.num_files) else { return Ok(()) };
        if recorded != files {
            tracing::warn!(
                table = self.storage().url(),
                version = self.version(),
                recorded,
                files,
                "a checksum file is ignored: its number of files differs from the version's"
            );
            self.0.facts.is_checksum_wrong.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
