//! Reads the commits that other writers have made since a transaction's base version.
//!
//! There are three cases in which a put of `N + 1` would succeed, but the commit would be invisible or would mix two
//! tables: the commits after the base were cleaned up behind a checkpoint; the table was dropped; the table was dropped
//! and created again. Therefore the log is examined before the first put:
//!
//! - One listing, which starts at the base, shows whether the base's commit is still the same object, and which
//!   versions follow. See [`Snapshot::refresh`].
//! - These versions are read, several at once. Versions that this process has committed itself are not read if the
//!   listing shows that they are unchanged. If a commit was cleaned up, its changes are unknown. If a commit is
//!   missing for another reason, the log is damaged, for example by a stray file with a far too high version.

use bytes::Bytes;

use crate::error::{ErrorKind, Result};
use crate::log::NewerVersions;
use crate::log::replay::Commit;
use crate::runtime::environment::Environment;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

use super::put::{located, read};

/// The number of commits that are read at once. It may exceed the number of cores, because the threads mostly wait for
/// the store.
const AT_ONCE: usize = 8;

/// A commit up to this size in bytes is parsed with the statistics of its files, even if the rules do not need them,
/// because the checksum of a small table lists its few files with their statistics.
const SMALL_COMMIT: usize = 16 << 10;

/// The maximum number of commits that are read for a transaction that does not depend on them. Beyond that, a newer
/// checkpoint is read instead, which takes fewer requests.
const MOST_READ: u64 = 50;

/// The maximum number of file actions from other writers' commits that are kept in memory. The checksum of the
/// transaction's own commit is computed from them.
const MOST_KEPT_ACTIONS: usize = 100_000;

/// The commits that a transaction has examined, oldest first, as long as they do not take too much memory.
#[derive(Debug, Default)]
pub(super) struct Winners {
    commits: Vec<Commit>,
    actions: usize,
    has_gaps: bool,
}

impl Winners {
    /// Adds the next commit.
    pub(super) fn push(&mut self, winner: Commit) {
        self.actions += winner.adds.num_rows() + winner.removes.num_rows();
        if self.actions > MOST_KEPT_ACTIONS {
            self.forget();
        }
        if !self.has_gaps {
            self.commits.push(winner);
        }
    }

    /// Forgets all commits, because some of them are not known.
    pub(super) fn forget(&mut self) {
        self.commits.clear();
        self.has_gaps = true;
    }

    /// Returns the commits; `None` unless all of them were kept.
    pub(super) fn into_all(self) -> Option<Vec<Commit>> {
        (!self.has_gaps).then_some(self.commits)
    }
}

/// A step on the way from a transaction's base to the newest version.
pub(super) enum Step {
    /// The commit of the next version.
    Winner(Box<Commit>),
    /// The commits from this version on were cleaned up at least in part, or need not be read.
    CleanedUp(u64),
    /// The table was dropped, or dropped and created again.
    Replaced,
}

/// Returns the content of a commit of this process, if the listing shows that its file is still the same.
fn own_commit(base: &Snapshot, newer: &NewerVersions, version: u64) -> Option<Bytes> {
    base.left_over().own_commit(version, newer.entries.get(&version)?)
}

/// Calls `visit` with each step from `base` to the newest version, in order, until it returns false. A step that is not
/// a commit ends the calls. If there are very many commits and `may_skip` is set, they are skipped.
///
/// # Errors
/// `CorruptLog`; also errors from the store and the errors of `visit`.
pub(super) fn visit(
    base: &Snapshot,
    with_statistics: bool,
    may_skip: bool,
    environment: &Environment,
    mut visit: impl FnMut(Step) -> Result<bool>,
) -> Result<()> {
    let newer = match base.newer_versions() {
        Ok(newer) => newer,
        Err(error) if matches!(error.kind(), ErrorKind::TableReplaced | ErrorKind::NotATable) => {
            return visit(Step::Replaced).map(drop);
        }
        Err(error) => return Err(error),
    };
    let mut next = base.version() + 1;
    if may_skip && newer.newest - base.version() > MOST_READ {
        return visit(Step::CleanedUp(next)).map(drop);
    }
    while next <= newer.newest {
        // A stray file with a very high version may be taken for the newest version, so memory must not grow with the
        // number of versions up to it.
        let some: Vec<u64> = (next..=newer.newest).take(AT_ONCE).collect();
        next += AT_ONCE as u64;
        let read = |version: &u64| match own_commit(base, &newer, *version) {
            Some(bytes) => parse(base.storage(), *version, &bytes, with_statistics).map(Some),
            None => read_commit(base.storage(), *version, with_statistics, environment),
        };
        for (version, commit) in some.iter().zip(parallel::each(&some, AT_ONCE, read)?) {
            let Some(commit) = commit else { return visit(missing(base, *version)?).map(drop) };
            if !visit(Step::Winner(Box::new(commit)))? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Determines why the commit of `version` does not exist although there are newer versions.
///
/// # Errors
/// `CorruptLog` if the newer versions cannot be read without it; also errors from the store.
fn missing(base: &Snapshot, version: u64) -> Result<Step> {
    match base.refresh() {
        Ok(_) => Ok(Step::CleanedUp(version)),
        Err(error) if matches!(error.kind(), ErrorKind::TableReplaced | ErrorKind::NotATable) => {
            Ok(Step::Replaced)
        }
        Err(error) => Err(error),
    }
}

/// Reads the commit of `version`; `None` if it does not exist.
///
/// # Errors
/// `CorruptLog`; also errors from the store.
fn read_commit(
    storage: &Storage,
    version: u64,
    with_statistics: bool,
    environment: &Environment,
) -> Result<Option<Commit>> {
    let Some(bytes) = read(storage, version, environment)? else { return Ok(None) };
    parse(storage, version, &bytes, with_statistics).map(Some)
}

/// Parses the bytes of a commit. If the commit is large, statistics of files are parsed only if `with_statistics` is
/// set.
///
/// # Errors
/// `CorruptLog` with file and line.
pub(super) fn parse(storage: &Storage, version: u64, bytes: &[u8], with_statistics: bool) -> Result<Commit> {
    let parsed = if with_statistics || bytes.len() <= SMALL_COMMIT {
        Commit::parse(bytes, version, 0)
    } else {
        Commit::parse_without_stats(bytes, version)
    };
    parsed.map_err(|error| located(error, storage, version))
}
