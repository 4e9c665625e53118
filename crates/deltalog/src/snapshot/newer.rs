//! Opens other versions of a snapshot's table.
//!
//! - To find the newest version, the log is always listed from the snapshot's own checkpoint on, and everything that is
//!   still valid is reused ([`LogSegment::newer_in`]). If the newest version has a newer checkpoint, the commits before
//!   that checkpoint are dropped.
//! - The commit of the snapshot must still be the same object in the store. If it is not, the table may have been
//!   replaced, or a clean-up may have deleted the version. Unless the listing shows that the table was replaced, the
//!   newest version is then opened from scratch, and its metadata shows whether this is still the same table.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::open::Source;
use super::{Inner, Snapshot};
use crate::error::{ErrorKind, Result};
use crate::log::replay::Commit;
use crate::log::{CommitFile, LogSegment, Look, Newer, NewerVersions, StagedCommit};

impl Snapshot {
    /// Returns the newest version, or a clone of `self` if it is the newest. Makes one listing and reads the new
    /// commits.
    ///
    /// If a catalog manages the table, the published versions and those that the catalog has already reported are
    /// considered.
    ///
    /// # Errors
    /// `TableReplaced` if the table was dropped and another one was created in its place. This error is also returned
    /// if a commit has replaced the table and the commits since this version were cleaned up, because the two cases
    /// look the same. Otherwise as [`Snapshot::open`].
    pub fn refresh(&self) -> Result<Self> {
        self.refresh_from(&self.0.source)
    }

    /// Refreshes the snapshot of a table that a catalog manages. `staged` are the commits that the catalog has accepted
    /// but not yet published.
    ///
    /// # Errors
    /// Returns the same errors as [`SnapshotBuilder::open`](crate::SnapshotBuilder::open).
    pub fn refresh_with(&self, staged: impl IntoIterator<Item = StagedCommit>) -> Result<Self> {
        self.refresh_from(&Source::new(
            &self.0.source.storage,
            self.resolver().clone(),
            Some(staged.into_iter().collect()),
        )?)
    }

    fn refresh_from(&self, source: &Source) -> Result<Self> {
        let look = if self.0.state.has_lost_checkpoint() { Look::Lost } else { Look::Newest };
        if let Some(newest) = self.newest_in(source, look)? {
            return Ok(newest);
        }
        let newest = Self::load(source, source.find(None)?, None)?;
        if newest.version() < self.version() || newest.metadata().id != self.metadata().id {
            return Err(self.segment().replaced(self.storage()));
        }
        Ok(newest)
    }

    /// Returns the newest version, reusing what was read for this one. The new snapshot starts from the newest
    /// checkpoint; earlier commits are dropped, because they may be deleted at any time. Returns `None` if the metadata
    /// must be read to know whether the table is still the same.
    fn newest_in(&self, source: &Source, look: Look) -> Result<Option<Self>> {
        let Inner { source: own, state, facts, .. } = &*self.0;
        let knows_all = |segment: &LogSegment| {
            segment.version == self.version() && segment.checksum == self.segment().checksum
        };
        match self.segment().newer_in(source.segments(), look)? {
            Newer::Unchanged => Ok(Some(self.clone())),
            Newer::Segment(segment) if knows_all(&segment) => {
                let state = own.state(*segment, Some(state))?;
                Ok(Some(Self::of(own.clone(), state, Arc::clone(facts))))
            }
            Newer::Segment(segment) => Self::load(source, *segment, Some((state, Some(self)))).map(Some),
            Newer::Unknown => Ok(None),
        }
    }

    /// Opens the newest version of the table that is now at this location. If the listed commits still have the same
    /// sizes and times, reuses what was read for this version.
    ///
    /// Makes one listing and reads the new commits. Unlike [`Snapshot::refresh`], this method also opens a table that
    /// was dropped and created again.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::open`].
    #[doc(hidden)]
    pub fn reopen(&self) -> Result<Self> {
        let source = &self.0.source;
        match self.newest_in(source, Look::Place) {
            Ok(Some(newest)) => Ok(newest),
            Err(error) if !matches!(error.kind(), ErrorKind::TableReplaced | ErrorKind::NotATable) => {
                Err(error)
            }
            Ok(None) | Err(_) => Self::load(source, source.find(None)?, None),
        }
    }

    /// Returns the number of the newest version of the same table. This takes one listing; new commits are not read.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::refresh`].
    pub(crate) fn newest_version(&self) -> Result<u64> {
        self.newer_versions().map(|newer| newer.newest)
    }

    /// Returns the newer versions of the same table. This takes one listing; new commits are not read.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::refresh`].
    pub(crate) fn newer_versions(&self) -> Result<NewerVersions> {
        match self.segment().newer_versions_in(self.0.source.segments())? {
            Some(newer) => Ok(newer),
            None => Ok(NewerVersions { newest: self.refresh()?.version(), entries: BTreeMap::new() }),
        }
    }

    /// Opens another version of the same table. If a catalog manages the table, the commits that the catalog has
    /// reported are included.
    ///
    /// # Errors
    /// `TableReplaced` if the table was dropped and another one was created in its place; otherwise as
    /// [`Snapshot::open`].
    pub fn at_version(&self, version: u64) -> Result<Self> {
        if version == self.version() {
            return Ok(self.clone());
        }
        self.of_same_table(|| Self::load(&self.0.source, self.0.source.find(Some(version))?, None))
    }

    /// Opens the version of the same table that was the newest at `timestamp_ms`, in milliseconds since the epoch. If a
    /// catalog manages the table, the commits that the catalog has reported are included.
    ///
    /// # Errors
    /// `TableReplaced` if the table was dropped and another one was created in its place; otherwise as
    /// [`Snapshot::open_at`].
    pub fn at_timestamp_ms(&self, timestamp_ms: i64) -> Result<Self> {
        self.of_same_table(|| Self::load_at(&self.0.source, timestamp_ms))
    }

    /// Opens another version by calling `open`, and checks that the table is still the same.
    fn of_same_table(&self, open: impl FnOnce() -> Result<Self>) -> Result<Self> {
        let opened = open();
        // The result of `open`, or its error, may belong to another table.
        self.newest_version()?;
        opened
    }

    /// Finds the files that make up this version again, in the log as it is now.
    ///
    /// # Errors
    /// Returns the same errors as [`LogSegment::find`].
    pub(crate) fn found_again(&self) -> Result<LogSegment> {
        self.0.source.find(Some(self.version()))
    }

    /// Checks that the log still has this version, unchanged. If this returns without an error, a file that is written
    /// from now on for this version appears in the same log.
    ///
    /// # Errors
    /// `VersionNotFound` if the version was cleaned up; otherwise as [`Snapshot::refresh`].
    pub(crate) fn check_still_there(&self) -> Result<()> {
        if self.segment().newer_versions_in(self.0.source.segments())?.is_none() {
            self.refresh()?;
            self.found_again()?;
        }
        Ok(())
    }

    /// Returns `version`, which the caller has committed after opening this snapshot. May also return a later version
    /// with the same rows, protocol and metadata, for example after an OPTIMIZE. Returns a clone of `self` if `version`
    /// is not newer.
    ///
    /// Changes that other writers made after `version` are not included. There is one exception: if a clean-up of the
    /// log has deleted all versions without such changes, the newest version is returned.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::refresh`] and [`Snapshot::at_version`].
    #[doc(hidden)]
    pub fn after_commit(&self, version: u64) -> Result<Self> {
        if self.version() >= version {
            return Ok(self.clone());
        }
        let newest = self.refresh()?;
        match newest.at_version(newest.unchanged_since(version, &[])?) {
            Err(error) if error.kind() == ErrorKind::VersionNotFound && newest.version() > version => {
                Ok(newest)
            }
            found => found,
        }
    }

    /// Returns the last version up to which there are no changes by other writers since version `seen`. The caller has
    /// committed the versions `own`. A caller that has read the rows of `seen` may therefore overwrite the returned
    /// version.
    ///
    /// # Errors
    /// Errors from the store, and `CorruptLog`.
    #[doc(hidden)]
    pub fn unchanged_since(&self, seen: u64, own: &[u64]) -> Result<u64> {
        let mut last = seen;
        while last < self.version() && (own.contains(&(last + 1)) || self.only_moves_rows(last + 1)?) {
            last += 1;
        }
        Ok(last)
    }

    /// Returns whether the commit of a version changes neither the rows nor the protocol nor the metadata.
    fn only_moves_rows(&self, version: u64) -> Result<bool> {
        let known = self.0.state.commits().find(|commit| commit.version == version);
        if let Some(commit) = known {
            return Ok(!commit.changes_table());
        }
        match Commit::read_without_stats(self.storage(), CommitFile::named(version)) {
            Err(error) if error.kind() == ErrorKind::FileNotFound => Ok(false),
            commit => Ok(!commit?.changes_table()),
        }
    }
}
