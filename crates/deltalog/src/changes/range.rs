//! The range of versions that a request means.

use std::ops::RangeInclusive;

use crate::error::{Error, ErrorKind, Result};
use crate::log::{CommitFile, CommitTimes};

/// An inclusive bound of a range of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeBound {
    /// This version.
    Version(u64),
    /// The first version committed at or after this time (as a start), or the last version committed at or
    /// before it (as an end), in milliseconds since the epoch.
    Timestamp(i64),
}

/// The requested range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) start: ChangeBound,
    pub(super) end: Option<ChangeBound>,
    /// Whether a range after the newest version, or with its end before its start, is empty.
    pub(super) may_be_empty: bool,
}

impl Wanted {
    /// Returns the versions in the range; `None` if it is empty.
    ///
    /// # Errors
    /// `VersionNotFound` for a start after the newest version or an end before the oldest commit,
    /// `InvalidArgument` for an end before the start.
    pub(super) fn versions(&self, times: &CommitTimes) -> Result<Option<RangeInclusive<u64>>> {
        let (Some(oldest), Some(newest)) = (times.commits().first(), times.commits().last()) else {
            return Err(Error::new(
                ErrorKind::VersionNotFound,
                "the log has no commits, so no changes can be read",
            ));
        };
        let (oldest, newest) = (oldest.version, newest.version);
        let by_time = matches!(self.start, ChangeBound::Timestamp(_))
            || matches!(self.end, Some(ChangeBound::Timestamp(_)));
        let readable = || match by_time {
            true => times.span(),
            false => Ok(format!("the log has the commits of versions {oldest} to {newest}")),
        };
        let empty_or = |kind: ErrorKind, what: String| match self.may_be_empty {
            true => Ok(None),
            false => Err(Error::new(kind, format!("{what}: {}", readable()?)).with_hint(
                "choose a range of these versions, or allow one without changes: allow_out_of_range",
            )),
        };
        let start = match self.start {
            ChangeBound::Version(version) => Some(version).filter(|version| *version <= newest),
            ChangeBound::Timestamp(time) => times.first_at_or_after(time)?,
        };
        let Some(start) = start else {
            return empty_or(
                ErrorKind::VersionNotFound,
                "the range of changes starts after the newest version".to_owned(),
            );
        };
        let end = match self.end {
            None => Some(newest),
            Some(ChangeBound::Version(version)) => Some(version.min(newest)),
            Some(ChangeBound::Timestamp(time)) => times.last_at_or_before(time)?,
        };
        let Some(end) = end else {
            return empty_or(
                ErrorKind::VersionNotFound,
                "the range of changes ends before the oldest commit".to_owned(),
            );
        };
        match start <= end {
            true => Ok(Some(start..=end)),
            false => empty_or(
                ErrorKind::InvalidArgument,
                format!("the range of changes ends at version {end}, before its start at version {start}"),
            ),
        }
    }
}

/// Returns the commits of `versions`, oldest first.
///
/// # Errors
/// `VersionNotFound` if the first ones were cleaned up, `CorruptLog` for a gap.
pub(super) fn commits_of(times: &CommitTimes, versions: &RangeInclusive<u64>) -> Result<Vec<CommitFile>> {
    let commits = times.commits();
    let from = commits.partition_point(|commit| commit.version < *versions.start());
    let upto = commits.partition_point(|commit| commit.version <= *versions.end());
    let found = commits.get(from..upto).unwrap_or_default();
    let mut expected = *versions.start();
    for commit in found {
        if commit.version != expected {
            return Err(missing(commits, expected));
        }
        expected += 1;
    }
    // The listing contains all commits up to the end.
    if expected <= *versions.end() { Err(missing(commits, expected)) } else { Ok(found.to_vec()) }
}

fn missing(commits: &[CommitFile], version: u64) -> Error {
    match (commits.first(), commits.last()) {
        (Some(oldest), Some(newest)) if version < oldest.version => Error::new(
            ErrorKind::VersionNotFound,
            format!(
                "the changes of version {version} cannot be read: the log has only the versions {} to {}",
                oldest.version, newest.version
            ),
        )
        .at_version(version)
        .with_hint("start at one of these versions: the earlier commits were cleaned up"),
        _ => Error::corrupt_log(format!("the commit of version {version} is missing"))
            .at_version(version)
            .with_hint("restore the file"),
    }
}
