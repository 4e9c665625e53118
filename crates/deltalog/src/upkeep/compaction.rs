//! Writes log compaction files. (PROTOCOL, "Log Compaction Files", "Action Reconciliation".)
//!
//! ```text
//!   11.json 12.json … 20.json ──► 11.20.compacted.json
//! ```
//!
//! - A compaction has the newest action for each file, application and domain, the newest protocol and the newest
//!   metadata, copied from the commits as text. It has no `commitInfo`, which readers take from the commits, and no
//!   `cdc`.
//! - It keeps every `remove` action and every removed domain, because each of them may cancel an action in a checkpoint
//!   before the compaction.
//! - It must become visible completely or not at all, because a reader cannot notice that lines are missing at its end.
//! - Commits with unknown actions are not compacted.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::derived::put_derived;
use super::duties::Duties;
use crate::error::{Error, ErrorKind, Result};
use crate::log::CommitKind;
use crate::log::replay::file_key;
use crate::protocol::log_name::LogFileName;
use crate::protocol::{Action, ActionLine, Metadata, PathResolver, ensure_writable};
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::upkeep::checkpoint;

/// The table property with the number of commits after which a compaction is written; 0 for never. The protocol does
/// not define such a property, and other writers ignore this one.
const INTERVAL_PROPERTY: &str = "deltalog.logCompactionInterval";

/// The number of commits in a compaction, for tables without the property. In the JVM implementation's library, the
/// number is an argument of each transaction, and by default nothing is compacted; its tests use this number.
const DEFAULT_INTERVAL: u64 = 10;

/// The maximum total size in bytes of the commits that are compacted after a commit. It is low because a writer may
/// have to wait for the compaction.
const MOST_BYTES: u64 = 16 << 20;

/// The maximum total size in bytes of the commits that are compacted on request. They are held in memory.
const MOST_BYTES_ON_REQUEST: u64 = 1 << 30;

/// Writes the compaction of the versions from `start` to `end`, both included. Returns whether it was written. It is
/// not written if it already exists, or if the commits change nothing.
///
/// # Errors
/// `InvalidArgument` if `start` is not before `end`, if `end` is after the version of `snapshot`, or if the commits
/// have more than 1 GiB; `VersionNotFound` if one of the commits was cleaned up; `Unsupported` if the table cannot be
/// written or a commit has an unknown action; `CorruptLog`; also errors from the store.
pub fn compact_log(snapshot: &Snapshot, start: u64, end: u64) -> Result<bool> {
    let storage = snapshot.storage();
    let located = |error: Error| error.in_table(storage.url());
    if start >= end || end > snapshot.version() {
        return Err(located(
            Error::invalid_argument(format!("versions {start} to {end} cannot be compacted"))
                .with_hint(format!("choose at least two versions up to {}", snapshot.version())),
        ));
    }
    ensure_writable(snapshot.protocol(), snapshot.metadata()).map_err(located)?;
    let sizes = Sizes::of(snapshot);
    match write(snapshot, start, end, &sizes, MOST_BYTES_ON_REQUEST).map_err(located)? {
        Some(is_written) => Ok(is_written),
        None => Err(located(
            Error::invalid_argument(format!(
                "the commits of versions {start} to {end} have more than {MOST_BYTES_ON_REQUEST} bytes"
            ))
            .with_hint("compact fewer versions at once"),
        )),
    }
}

/// Returns whether a compaction is due after `version`, which was committed on top of `base`.
pub(super) fn is_due(base: &Snapshot, version: u64) -> bool {
    start_of(version, interval(base.metadata(), checkpoint::interval(base))).is_some()
}

/// If a compaction is due after the version, writes it.
pub(super) fn keep(duties: &Duties) -> Result<()> {
    let Duties { base, version, bytes, .. } = duties;
    let interval = interval(base.metadata(), checkpoint::interval(base));
    let Some(start) = start_of(*version, interval) else { return Ok(()) };
    let mut sizes = Sizes::of(base);
    sizes.0.insert(*version, *bytes);
    write(base, start, *version, &sizes, MOST_BYTES).map(drop)
}

/// Returns the number of commits in a compaction; 0 if none are written. Without the property, it depends on the
/// checkpoint interval: compactions are read together with an earlier checkpoint, so they are only useful if several of
/// them fit between two checkpoints.
fn interval(metadata: &Metadata, checkpoint_interval: u64) -> u64 {
    let default = if checkpoint_interval > 2 * DEFAULT_INTERVAL { DEFAULT_INTERVAL } else { 0 };
    let wanted = metadata.property(INTERVAL_PROPERTY).and_then(|value| value.trim().parse().ok());
    wanted.unwrap_or(default)
}

/// Returns the first version of the compaction that ends with `version`, if one ends there. Like checkpoints,
/// compactions end at multiples of the interval, so that a compaction may begin right after a checkpoint.
fn start_of(version: u64, interval: u64) -> Option<u64> {
    let is_end = interval >= 2 && version > 0 && version.is_multiple_of(interval);
    is_end.then(|| version + 1 - interval)
}

/// The sizes of commits in bytes, by version.
struct Sizes(HashMap<u64, u64>);

impl Sizes {
    /// Returns the sizes that are known from the listing of `snapshot`.
    fn of(snapshot: &Snapshot) -> Self {
        let commits = snapshot.segment().commits.iter();
        let published = commits.filter(|commit| commit.kind == CommitKind::Published);
        Self(published.map(|commit| (commit.version, commit.size)).collect())
    }

    /// Returns the total size of the commits from `start` to `end`. As soon as the sum exceeds `most`, returns it
    /// without looking at the other commits. Asks the store for sizes that are not known.
    fn total(&self, storage: &Storage, start: u64, end: u64, most: u64) -> Result<u64> {
        let mut total = 0_u64;
        for version in start..=end {
            total = total.saturating_add(match self.0.get(&version) {
                Some(size) => *size,
                None => {
                    let found = storage.head(&LogFileName::Commit(version).path())?;
                    found.ok_or_else(|| cleaned_up(version))?.size
                }
            });
            if total > most {
                break;
            }
        }
        Ok(total)
    }
}

/// Writes the compaction of `start` to `end`. Returns whether this has created the file. Returns `None`, and writes
/// nothing, if the commits have more than `most_bytes`.
fn write(snapshot: &Snapshot, start: u64, end: u64, sizes: &Sizes, most_bytes: u64) -> Result<Option<bool>> {
    let storage = snapshot.storage();
    let Some(text) = text(storage, snapshot.resolver(), start, end, sizes, most_bytes)? else {
        return Ok(None);
    };
    if text.is_empty() {
        return Ok(Some(false));
    }
    // The commits that were read may belong to another table that was created in place of this one.
    snapshot.newest_version()?;
    let path = LogFileName::Compaction { start, end }.path();
    put_derived(snapshot, &path, text.into(), Storage::put_beside_log_if_absent).map(Some)
}

/// Returns the text of the compaction of `start` to `end`. It is empty if the commits change nothing. Returns `None` if
/// they have more than `most_bytes`, which is checked before they are read.
fn text(
    storage: &Storage,
    resolver: &PathResolver,
    start: u64,
    end: u64,
    sizes: &Sizes,
    most_bytes: u64,
) -> Result<Option<Vec<u8>>> {
    if sizes.total(storage, start, end, most_bytes)? > most_bytes {
        return Ok(None);
    }
    let commits = (start..=end)
        .map(|version| Ok((version, read(storage, version)?)))
        .collect::<Result<Vec<(u64, Bytes)>>>()?;
    let mut reconciled = Reconciled { resolver, keys: HashSet::new(), lines: Vec::new() };
    for (version, bytes) in commits.iter().rev() {
        reconciled
            .add(bytes)
            .map_err(|error| error.at_path(LogFileName::Commit(*version).path()).at_version(*version))?;
    }
    Ok(Some(reconciled.text()))
}

fn read(storage: &Storage, version: u64) -> Result<Bytes> {
    let path = LogFileName::Commit(version).path();
    storage.get(&path)?.ok_or_else(|| cleaned_up(version))
}

fn cleaned_up(version: u64) -> Error {
    Error::new(ErrorKind::VersionNotFound, "the commit no longer exists, so it cannot be compacted")
        .at_version(version)
        .at_path(LogFileName::Commit(version).path())
}

/// The newest actions of the commits added so far, newest first.
struct Reconciled<'a> {
    resolver: &'a PathResolver,
    keys: HashSet<Key>,
    lines: Vec<&'a [u8]>,
}

/// The kinds of actions for which only the newest one counts.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Protocol,
    Metadata,
    Application(String),
    Domain(String),
    File(String),
}

impl<'a> Reconciled<'a> {
    /// Adds the actions of a commit that is older than those added before.
    fn add(&mut self, bytes: &'a [u8]) -> Result<()> {
        let lines: Vec<_> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).zip(1..).collect();
        for (line, number) in lines.into_iter().rev().filter(|(line, _)| !line.is_empty()) {
            if let Some(key) = self.key(line).map_err(|error| error.at_line(number))?
                && self.keys.insert(key)
            {
                self.lines.push(line);
            }
        }
        Ok(())
    }

    /// Returns the key of an action; `None` if compactions do not contain actions of this kind.
    fn key(&self, line: &[u8]) -> Result<Option<Key>> {
        let unknown =
            || Error::unsupported("the commit has an unknown action, so the commit is not compacted");
        Ok(Some(match ActionLine::parse(line)?.ok_or_else(unknown)? {
            ActionLine::Add(add) => {
                Key::File(file_key(&add.path, add.deletion_vector.as_ref(), self.resolver)?)
            }
            ActionLine::Remove(remove) => {
                Key::File(file_key(&remove.path, remove.deletion_vector.as_ref(), self.resolver)?)
            }
            ActionLine::Other(Action::Protocol(_)) => Key::Protocol,
            ActionLine::Other(Action::Metadata(_)) => Key::Metadata,
            ActionLine::Other(Action::Txn(transaction)) => Key::Application(transaction.app_id),
            ActionLine::Other(Action::DomainMetadata(domain)) => Key::Domain(domain.domain),
            ActionLine::Other(Action::CommitInfo(_) | Action::Cdc(_)) => return Ok(None),
            ActionLine::Other(_) => return Err(unknown()),
        }))
    }

    /// Returns the lines of the compaction, beginning with the oldest commit.
    fn text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.lines.iter().map(|line| line.len() + 1).sum());
        for line in self.lines.iter().rev() {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_with_too_many_bytes_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("_delta_log")).unwrap();
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        let resolver = PathResolver::new(storage.root()).unwrap();
        for version in [3, 4] {
            storage.put(&LogFileName::Commit(version).path(), r#"{"commitInfo":{}}"#.into()).unwrap();
        }
        let sizes = |known: &[(u64, u64)]| Sizes(known.iter().copied().collect());
        // Versions 2 and 5 do not exist, so the test would fail if they were read.
        for (known, most) in [(sizes(&[(2, 11)]), 10), (sizes(&[(2, 5), (3, 6)]), 10), (sizes(&[(2, 1)]), 17)]
        {
            assert_eq!(text(&storage, &resolver, 2, 5, &known, most).unwrap(), None);
        }
        let all = text(&storage, &resolver, 3, 4, &sizes(&[]), 34).unwrap();
        assert_eq!(all, Some(Vec::new()), "the commits change nothing");
        let missing = text(&storage, &resolver, 3, 5, &sizes(&[]), u64::MAX).unwrap_err();
        assert_eq!((missing.kind(), missing.version()), (ErrorKind::VersionNotFound, Some(5)));
    }

    #[test]
    fn compactions_end_at_multiples_of_the_interval() {
        assert_eq!(start_of(20, 10), Some(11));
        for (version, interval) in [(0, 10), (19, 10), (21, 10), (20, 0), (20, 1)] {
            assert_eq!(start_of(version, interval), None, "{version} {interval}");
        }
    }
}
