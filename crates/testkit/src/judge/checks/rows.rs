//! Checks the rows of each version.

use std::collections::{BTreeMap, BTreeSet};

use super::Case;
use crate::judge::commit::Commit;
use crate::judge::history::{Write, class_of};
use crate::judge::replay::State;

impl Case {
    /// Returns the state of the version that a RESTORE restores.
    fn restored(&self, write: &Write) -> Option<&State> {
        self.state(write.restores.as_ref()?.0)
    }
}

/// An overwrite of the whole table is serializable, and so is a RESTORE: no commit between the version that it read
/// and its own version may have changed files.
pub(super) fn overwrites(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let Some(base) = operation.write().and_then(|write| write.replaces) else { continue };
        for version in case.places(operation) {
            let index = usize::try_from(version).unwrap_or(usize::MAX);
            let live = usize::try_from(base).ok().and_then(|base| case.log.states.get(base));
            let Some((commit, live)) = case.log.commits.get(index).zip(live) else { continue };
            let restored = operation.write().and_then(|write| case.restored(write));
            let kept = restored.map(|earlier| &earlier.files & &live.files).unwrap_or_default();
            if commit.removes != &live.files - &kept {
                return Err(format!(
                    "{operation}: version {version} removes {:?}, not {live:?} but {kept:?}",
                    commit.removes
                ));
            }
            if restored.is_some_and(|earlier| commit.adds != &earlier.files - &kept) {
                return Err(format!("{operation}: version {version} adds {:?}", commit.adds));
            }
            if commit.read_version != Some(base) {
                return Err(format!("{operation}: version {version} has read {:?}", commit.read_version));
            }
            for between in base + 1..version {
                if case.commit(between).is_some_and(Commit::changes_files) {
                    return Err(format!("{operation}: version {between} has changed files before {version}"));
                }
            }
        }
    }
    Ok(())
}

/// The result must be the same as if the writes were done one after another, in the order of the versions. The check
/// applies the removed and added rows of each write to the rows of the previous version. It then compares the result
/// with the rows in the files of the version, without the rows that deletion vectors delete. (Protocol: "Deletion
/// Vectors".)
pub(super) fn rows(case: &Case) -> Result<(), String> {
    let (writes, files) = (case.writes(), case.files());
    let mut expected = BTreeSet::new();
    let mut versions: Vec<BTreeSet<i64>> = Vec::new();
    for (version, (commit, state)) in (0..).zip(case.log.commits.iter().zip(&case.log.states)) {
        if let Some(write) = writes.get(&version) {
            let before = expected.clone();
            let seen = commit.read_version.and_then(|read| versions.get(usize::try_from(read).ok()?));
            has_read(write, &writes, seen, &before).map_err(|error| format!("version {version}: {error}"))?;
            apply(write, &files, seen, &mut expected)
                .map_err(|error| format!("version {version}: {error}"))?;
            if let Some((earlier, _)) = &write.restores {
                expected = usize::try_from(*earlier)
                    .ok()
                    .and_then(|earlier| versions.get(earlier).cloned())
                    .ok_or_else(|| format!("version {version} restores {earlier}"))?;
            }
            // Deleting rows that were already deleted must change nothing.
            if write.deletes.is_some() && before == expected && commit.changes_files() {
                return Err(format!("version {version} deletes no row, but changes files: {commit:?}"));
            }
        }
        let found =
            live_rows(case, &files, &state.files).map_err(|error| format!("version {version}: {error}"))?;
        if found != expected {
            let (lost, more) = (&expected - &found, &found - &expected);
            return Err(format!(
                "version {version} lacks the rows {lost:?} and has {more:?} too: {commit:?}"
            ));
        }
        versions.push(found);
    }
    Ok(())
}

/// Checks what a write has read, if its own rows were computed from a class of rows: it must have `seen` exactly the
/// rows of this class that existed `before` it. Blind appends may be ordered differently, as the isolation level
/// `WriteSerializable` allows.
fn has_read(
    write: &Write,
    writes: &BTreeMap<u64, &Write>,
    seen: Option<&BTreeSet<i64>>,
    before: &BTreeSet<i64>,
) -> Result<(), String> {
    let Some((class, seen)) = write.reads_class.zip(seen) else { return Ok(()) };
    let changed: BTreeSet<i64> =
        seen.symmetric_difference(before).copied().filter(|row| class_of(*row) == class).collect();
    let blind: BTreeSet<i64> =
        writes.values().filter(|write| write.is_blind()).flat_map(|write| write.rows()).collect();
    match changed.iter().find(|row| seen.contains(row) || !blind.contains(row)) {
        Some(row) => Err(format!("its rows were computed from class {class}, without the change of {row}")),
        None => Ok(()),
    }
}

/// Applies a write, which has seen the rows `seen`, to the rows of the previous version. Deleting a row that no
/// longer existed when the write began has no effect, even if a RESTORE has returned the row since.
fn apply(
    write: &Write,
    files: &BTreeMap<&str, &[i64]>,
    seen: Option<&BTreeSet<i64>>,
    rows: &mut BTreeSet<i64>,
) -> Result<(), String> {
    if write.replaces.is_some() {
        rows.clear();
    }
    if let Some(class) = write.replaces_class {
        rows.retain(|row| class_of(*row) != class);
    }
    if let Some((path, positions)) = &write.deletes {
        let file = files.get(path.as_str()).ok_or_else(|| format!("no process wrote '{path}'"))?;
        for position in positions {
            let row = usize::try_from(*position).ok().and_then(|position| file.get(position));
            let row = row.ok_or_else(|| format!("'{path}' has no row {position}"))?;
            if seen.is_none_or(|seen| seen.contains(row)) {
                rows.remove(row);
            }
        }
    }
    rows.extend(write.rows());
    Ok(())
}

/// Returns the rows in the given logical files.
fn live_rows(
    case: &Case,
    files: &BTreeMap<&str, &[i64]>,
    live: &BTreeSet<String>,
) -> Result<BTreeSet<i64>, String> {
    let (none, mut rows) = (BTreeSet::new(), BTreeSet::new());
    for file in live {
        let path = file.split('#').next().unwrap_or_default();
        let written = files.get(path).ok_or_else(|| format!("no process wrote '{path}'"))?;
        let deleted = case.log.deleted.get(file).unwrap_or(&none);
        if deleted.last().is_some_and(|last| *last >= written.len() as u64) {
            return Err(format!("rows of '{file}' are deleted that it does not have: {deleted:?}"));
        }
        if !written.is_empty() && deleted.len() == written.len() {
            return Err(format!("'{file}' has no rows left, and was not removed"));
        }
        for (position, row) in (0..).zip(*written) {
            if !deleted.contains(&position) && !rows.insert(*row) {
                return Err(format!("the row {row} occurs twice, the second time in '{file}'"));
            }
        }
    }
    Ok(rows)
}

pub(super) fn data_files(case: &Case) -> Result<(), String> {
    let vectors: BTreeMap<&String, _> = case.log.commits.iter().flat_map(|commit| &commit.vectors).collect();
    // A version is retained until the version after it is older than the retention.
    let is_retained = |version: &usize| {
        let next = case.log.commits.get(version + 1);
        next.zip(case.vacuumed_before_ms)
            .is_none_or(|(next, before_ms)| next.written_ms.is_none_or(|time_ms| time_ms >= before_ms))
    };
    for (version, state) in case.log.states.iter().enumerate().filter(|(version, _)| is_retained(version)) {
        for file in &state.files {
            let path = file.split('#').next().unwrap_or_default().to_owned();
            let vector = vectors.get(file).map(|vector| vector.path()).transpose()?.flatten();
            if let Some(path) =
                [Some(path), vector].into_iter().flatten().find(|path| !case.data_files.contains(path))
            {
                return Err(format!("'{path}' of version {version} was deleted"));
            }
        }
    }
    Ok(())
}
