//! The commits that were made since a transaction's base.
//!
//! A put of `N + 1` would succeed in three cases in which the commit would be invisible or would mix two
//! tables: the commits after the base were cleaned up behind a checkpoint; the table was dropped; the table
//! was dropped and created again. So the log is examined before the first put:
//!
//! - One listing that starts at the base shows that the base's commit is still the same object, and which versions
//!   follow. See [`Snapshot::refresh`].
//! - These versions are read, several at once, except for the versions that this process has committed: the tag of the
//!   listing shows that they are still the same. If one of them was cleaned up, its changes are unknown. If one is
//!   missing otherwise, the log is damaged; a file with a version that is far too high leaves such a gap.

use bytes::Bytes;

use crate::error::{ErrorKind, Result};
use crate::log::NewerVersions;
use crate::log::replay::Commit;
use crate::runtime::environment::Environment;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

use super::put::{located, read};

/// The number of commits that are read at once. Their threads wait for the store, not for a core.
const AT_ONCE: usize = 8;

/// The size in bytes up to which a commit is parsed with the statistics of its files, even if the rules do not need
/// them. A checksum lists the few files of a small table with their statistics.
const SMALL_COMMIT: usize = 16 << 10;

/// The most commits that are read by a transaction which need not know them. A newer checkpoint takes fewer requests.
const MOST_READ: u64 = 50;

/// The most file actions of winners that are kept for the checksum of the own commit.
const MOST_KEPT_ACTIONS: usize = 100_000;

/// The winners that a transaction has taken note of, oldest first, as far as they are worth their memory.
#[derive(Debug, Default)]
pub(super) struct Winners {
    commits: Vec<Commit>,
    actions: usize,
    has_gaps: bool,
}

impl Winners {
    /// Adds the next one.
    pub(super) fn push(&mut self, winner: Commit) {
        self.actions += winner.adds.num_rows() + winner.removes.num_rows();
        if self.actions > MOST_KEPT_ACTIONS {
            self.forget();
        }
        if !self.has_gaps {
            self.commits.push(winner);
        }
    }

    /// Forgets all winners, because some are not known.
    pub(super) fn forget(&mut self) {
        self.commits.clear();
        self.has_gaps = true;
    }

    /// Returns the winners; `None` unless all of them were kept.
    pub(super) fn into_all(self) -> Option<Vec<Commit>> {
        (!self.has_gaps).then_some(self.commits)
    }
}

/// A step from a transaction's base to the newest version.
pub(super) enum Step {
    /// The commit of the next version.
    Winner(Box<Commit>),
    /// The commits from this version on were cleaned up, at least some of them, or need not be read.
    CleanedUp(u64),
    /// The table no longer exists.
    Replaced,
}

/// Returns a commit that this process has made, if the listing shows that it is still the same.
fn own_commit(base: &Snapshot, newer: &NewerVersions, version: u64) -> Option<Bytes> {
    base.left_over().own_commit(version, newer.entries.get(&version)?)
}

/// Calls `visit` with each step from `base` to the newest version, in order, until it returns false. After a step that
/// is not a commit there is no other one. A transaction that `may_skip` commits does so if there are very many.
///
/// # Errors
/// `CorruptLog`; also errors of the store and the errors of `visit`.
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
        // The newest version may come from a stray file: there is no list of all versions up to it.
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

/// Finds out why the commit of `version` does not exist, although there are newer versions.
///
/// # Errors
/// `CorruptLog` if the newer versions cannot be read without it; also errors of the store.
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
/// `CorruptLog`; also errors of the store.
fn read_commit(
    storage: &Storage,
    version: u64,
    with_statistics: bool,
    environment: &Environment,
) -> Result<Option<Commit>> {
    let Some(bytes) = read(storage, version, environment)? else { return Ok(None) };
    parse(storage, version, &bytes, with_statistics).map(Some)
}

/// Parses the bytes of a commit. A large one has the statistics of its files only `with_statistics`.
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
