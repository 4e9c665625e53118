//! The range of versions that a request for changes covers.

use std::ops::RangeInclusive;

use crate::error::{Error, ErrorKind, Result};
use crate::log::CommitTimes;

/// An inclusive bound of a range of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeBound {
    /// This version.
    Version(u64),
    /// A time in milliseconds since the epoch. As a start, it means the first version that was committed at or after
    /// it; as an end, the last version that was committed at or before it.
    Timestamp(i64),
}

/// The requested range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) start: ChangeBound,
    pub(super) end: Option<ChangeBound>,
    /// Whether a range that starts after the newest version, or ends before it starts, counts as empty.
    pub(super) may_be_empty: bool,
}

impl Wanted {
    /// Returns the versions in the range; `None` if it is empty.
    ///
    /// # Errors
    /// Returns `VersionNotFound` for a start after the newest version, for an end before the oldest commit, and for a
    /// time for which commits are missing. Returns `InvalidArgument` for an end before the start.
    pub(super) fn versions(&self, times: &CommitTimes) -> Result<Option<RangeInclusive<u64>>> {
        let Some(newest) = times.commits().last().map(|newest| newest.version) else {
            return Err(Error::new(
                ErrorKind::VersionNotFound,
                "the log has no commits, so no changes can be read",
            ));
        };
        let mut by_time = false;
        for bound in [Some(self.start), self.end] {
            if let Some(ChangeBound::Timestamp(time)) = bound {
                times.check_known(time)?;
                by_time = true;
            }
        }
        let readable = || match by_time {
            true => times.span(),
            false => Ok(times.described()),
        };
        let empty_or = |kind: ErrorKind, what: String| match self.may_be_empty {
            true => Ok(None),
            false => Err(Error::new(kind, format!("{what}: {}", readable()?)).with_hint(
                "choose a range within these versions, or set allow_out_of_range to get an empty result",
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
