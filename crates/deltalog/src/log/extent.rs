//! Determines which versions of a log can be read, and why the others cannot.
//!
//! ```text
//!   [3]  4.json         [10] 10.json 11.json 12.json     the readable versions are 3 to 4 and 10 to 12
//!   a late checkpoint    a checkpoint and its commits
//! ```
//!
//! - A version can be read if all commits since a checkpoint, or since version 0, exist. A clean-up of the log keeps
//!   the versions from a checkpoint on. A slow writer may add a checkpoint of an older version after the clean-up.
//! - A commit that is missing at or below the newest checkpoint was cleaned up. A commit that is missing above this
//!   checkpoint is damage, because the newest version needs it.

use std::fmt;
use std::ops::RangeInclusive;

use super::checkpoint_files::CheckpointFiles;
use super::listing::{Listing, SegmentSource, not_a_table};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::log_name::LogFileName;
use crate::storage::Storage;

/// The maximum number of ranges in a message.
const MOST_SHOWN: usize = 8;

/// The hint for a version that was cleaned up. It follows a message that lists the readable versions.
const CHOOSE_ANOTHER: &str = "choose one of these versions: other parts of the log were cleaned up";

/// Versions as ranges, oldest first. The ranges neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Versions(Vec<RangeInclusive<u64>>);

impl Versions {
    /// Adds a version, which must not be older than those added before.
    fn push(&mut self, version: u64) {
        match self.0.last_mut() {
            Some(last) if version <= last.end().saturating_add(1) => {
                *last = *last.start()..=version.max(*last.end());
            }
            _ => self.0.push(version..=version),
        }
    }

    pub(super) fn contains(&self, version: u64) -> bool {
        let after = self.0.partition_point(|range| *range.start() <= version);
        after.checked_sub(1).and_then(|index| self.0.get(index)).is_some_and(|range| range.contains(&version))
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        self.0.first().map(|range| *range.start())
    }

    pub(super) fn newest(&self) -> Option<u64> {
        self.0.last().map(|range| *range.end())
    }

    pub(super) fn is_one(&self) -> bool {
        self.oldest().is_some() && self.oldest() == self.newest()
    }

    /// Returns the part of a message that lists these versions as the readable ones.
    fn listed(&self) -> String {
        let noun = if self.is_one() { "version is" } else { "versions are" };
        format!("the readable {noun} {self}")
    }
}

impl FromIterator<u64> for Versions {
    /// Collects versions, oldest first.
    fn from_iter<I: IntoIterator<Item = u64>>(versions: I) -> Self {
        let mut found = Self::default();
        versions.into_iter().for_each(|version| found.push(version));
        found
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out = self.0.len().saturating_sub(MOST_SHOWN);
        let shown = self.0.get(left_out..).unwrap_or_default();
        if shown.is_empty() {
            return out.write_str("none");
        }
        if left_out > 0 {
            out.write_str("…, ")?;
        }
        for (index, range) in shown.iter().enumerate() {
            match index {
                0 => {}
                _ if index + 1 == shown.len() => out.write_str(" and ")?,
                _ => out.write_str(", ")?,
            }
            match range.start() == range.end() {
                true => write!(out, "{}", range.start())?,
                false => write!(out, "{} to {}", range.start(), range.end())?,
            }
        }
        Ok(())
    }
}

/// The versions of a log that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extent {
    /// The versions that can be read.
    pub(super) readable: Versions,
    newest_checkpoint: Option<u64>,
}

impl Extent {
    /// Determines the readable versions of a log with these commits and complete checkpoints. The commits are sorted.
    pub(super) fn new(commits: impl IntoIterator<Item = u64>, mut checkpoints: Vec<u64>) -> Self {
        checkpoints.sort_unstable();
        let newest_checkpoint = checkpoints.last().copied();
        let mut readable = Versions::default();
        let mut checkpoints = checkpoints.into_iter().peekable();
        for commit in commits {
            while let Some(checkpoint) = checkpoints.next_if(|checkpoint| *checkpoint <= commit) {
                readable.push(checkpoint);
            }
            if commit.checked_sub(1).is_none_or(|before| readable.newest() == Some(before)) {
                readable.push(commit);
            }
        }
        checkpoints.for_each(|checkpoint| readable.push(checkpoint));
        Self { readable, newest_checkpoint }
    }

    /// Determines the readable versions of a log from its listing, ignoring the checkpoints `without`, which cannot be
    /// read.
    pub(super) fn of(listing: &Listing, without: &[CheckpointFiles]) -> Self {
        let commits = listing.commits.iter().map(|commit| commit.version);
        Self::new(commits, listing.checkpoints.versions(without).collect())
    }

    /// Returns whether newer versions do not need the commit of `version`, because a checkpoint replaces it.
    fn is_superseded(&self, version: u64) -> bool {
        self.newest_checkpoint.is_some_and(|checkpoint| version <= checkpoint)
    }

    /// Returns the error for a missing commit of `version`, which is not above the newest version: `VersionNotFound` if
    /// newer versions do not need the commit, otherwise `CorruptLog`. `commits` describes the commits that exist.
    pub(super) fn missing(&self, storage: &Storage, version: u64, commits: &str) -> Error {
        if !self.is_superseded(version) {
            return missing_commit(storage, version);
        }
        not_found(storage, format!("the commit of version {version} no longer exists: {commits}"))
            .at_version(version)
            .with_hint(CHOOSE_ANOTHER)
    }

    /// Returns the error for a time whose version is unknown, because the time lies in a gap between existing commits.
    pub(super) fn unknown_at(&self, storage: &Storage, time: &str) -> Error {
        let readable = self.readable.listed();
        not_found(storage, format!("the version at {time} can no longer be read: {readable}"))
            .with_hint("choose the time of one of these versions: other parts of the log were cleaned up")
    }
}

/// Returns the error for a version that cannot be read: `wanted`, or the newest version if `wanted` is `None`. The
/// message lists the readable versions. `missing` is the first commit that was needed but not found.
pub(super) fn no_such_version(source: SegmentSource<'_>, wanted: Option<u64>, missing: Option<u64>) -> Error {
    explain(source, wanted, missing).unwrap_or_else(|error| error)
}

fn explain(source: SegmentSource<'_>, wanted: Option<u64>, missing: Option<u64>) -> Result<Error> {
    let storage = source.storage;
    let listing = Listing::from(source, 0, None)?;
    if !listing.has_files {
        return Ok(not_a_table(storage));
    }
    let Some(newest) = listing.newest_version() else {
        return Ok(Error::corrupt_log("the log has neither commits nor a complete checkpoint")
            .in_table(storage.url())
            .with_hint("restore them; if the table was dropped, delete what is left of its log"));
    };
    let extent = Extent::of(&listing, source.without);
    let is_damage = |missing: &u64| wanted.is_none() || !extent.is_superseded(*missing);
    if let Some(missing) = missing.filter(is_damage) {
        return Ok(missing_commit(storage, missing));
    }
    let Some(wanted) = wanted else {
        let message = "the newest version cannot be read".to_owned();
        return Ok(not_found(storage, message).at_version(newest));
    };
    let readable = extent.readable.listed();
    Ok(if wanted > newest {
        not_found(storage, format!("version {wanted} does not exist yet: {readable}"))
            .with_hint("choose one of these versions")
    } else if extent.is_superseded(wanted) {
        not_found(storage, format!("version {wanted} can no longer be read: {readable}"))
            .with_hint(CHOOSE_ANOTHER)
    } else {
        missing_commit(storage, wanted)
    })
}

fn not_found(storage: &Storage, message: String) -> Error {
    Error::new(ErrorKind::VersionNotFound, message).in_table(storage.url())
}

/// Returns the error for a missing commit that the newest version needs.
pub(super) fn missing_commit(storage: &Storage, version: u64) -> Error {
    Error::corrupt_log(format!("the commit of version {version} is missing"))
        .in_table(storage.url())
        .at_version(version)
        .at_path(LogFileName::Commit(version).path())
        .with_hint(
            "restore the file, or read an earlier version; if files of later versions are there by mistake, \
             remove them",
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// PROTOCOL, "Delta Log Entries", "Checkpoints": a version consists of a checkpoint and all commits since, or
        /// of all commits since version 0.
        #[test]
        fn a_version_is_readable_if_all_commits_since_a_checkpoint_exist(
            commits in proptest::collection::btree_set(0..14u64, 0..14),
            checkpoints in proptest::collection::btree_set(0..14u64, 0..4),
        ) {
            let extent = Extent::new(commits.iter().copied(), checkpoints.iter().copied().collect());
            for version in 0..16 {
                let bases = checkpoints.iter().map(|base| base + 1).chain([0]);
                let expected = bases
                    .filter(|first| *first <= version + 1)
                    .any(|first| (first..=version).all(|commit| commits.contains(&commit)));
                prop_assert_eq!(extent.readable.contains(version), expected, "{} of {}", version, extent.readable);
            }
        }
    }

    #[test]
    fn versions_are_shown_as_ranges() {
        for (versions, text) in [
            (&[][..], "none"),
            (&[3], "3"),
            (&[3, 10, 11, 12], "3 and 10 to 12"),
            (&[0, 1, 3, 5, 5, 6], "0 to 1, 3 and 5 to 6"),
            (&[0, 2, 4, 6, 8, 10, 12, 14, 16, 17], "…, 2, 4, 6, 8, 10, 12, 14 and 16 to 17"),
        ] {
            assert_eq!(versions.iter().copied().collect::<Versions>().to_string(), text);
        }
    }

    /// No code visits the versions of a range one by one, because a stray file may have any version, however high.
    #[test]
    fn a_very_high_version_is_handled_quickly() {
        let extent = Extent::new([0, 1, u64::MAX - 1, u64::MAX], vec![u64::MAX - 2]);
        assert_eq!(extent.readable.to_string(), format!("0 to 1 and {} to {}", u64::MAX - 2, u64::MAX));
    }
}
