//! Checks acknowledged writes, failed writes, and the order of the versions.

use std::collections::{BTreeMap, BTreeSet};

use super::Case;
use crate::judge::history::{Found, Intent, Operation, Outcome, Write};

impl Case {
    /// Checks that version `version` contains the whole of `operation`.
    fn is_whole(&self, operation: &Operation, version: u64) -> Result<(), String> {
        let Some(write) = operation.write() else { return Ok(()) };
        let commit =
            self.commit(version).ok_or_else(|| format!("{operation}: there is no version {version}"))?;
        let progress: BTreeMap<String, i64> = write.progress.iter().cloned().collect();
        let files: BTreeSet<String> = write.files.keys().cloned().collect();
        let of_deletes: BTreeSet<String> = write.deletes.iter().map(|(path, _)| path.clone()).collect();
        let is_whole = if write.deletes.is_some() {
            // Deleting rows that were already deleted changes nothing, and a file without remaining rows is removed.
            // The rows may also have been moved to other files in between.
            let mut of_deletes = of_deletes;
            of_deletes.extend(self.moved_paths());
            let others: BTreeSet<String> = commit.paths.difference(&of_deletes).cloned().collect();
            others == files && commit.removed_paths.is_subset(&of_deletes)
        } else if let Some((earlier, _)) = &write.restores {
            let states = self.state(*earlier).zip(self.state(version));
            states.is_some_and(|(earlier, restored)| earlier.files == restored.files)
        } else if write.replaces_class.is_some() {
            // The rows of other classes are kept, in files with different deletion vectors or in copies.
            commit.paths.is_superset(&files)
        } else {
            commit.paths == files
        };
        // A RESTORE sets the metadata only if it has changed since the restored version.
        let sets_metadata = commit.metadata.is_some();
        let sets_wrong = write.restores.is_none() && version > 0 && sets_metadata != write.sets_metadata();
        if !is_whole || commit.progress != progress || sets_wrong {
            return Err(format!("{operation}: version {version} is {commit:?}"));
        }
        let removes = write.replaces.is_some() || write.replaces_class.is_some() || write.deletes.is_some();
        if !removes && !commit.removes.is_empty() {
            return Err(format!("{operation}: version {version} removes {:?}", commit.removes));
        }
        Ok(())
    }
}

pub(super) fn acknowledged(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let Some(Outcome::Committed { version, txn_id }) = &operation.outcome else { continue };
        is_at(case, operation, *version, txn_id)?;
    }
    Ok(())
}

fn is_at(case: &Case, operation: &Operation, version: u64, txn_id: &str) -> Result<(), String> {
    let places = case.places(operation);
    if places != [version] {
        return Err(format!("{operation}: its files are in the versions {places:?}"));
    }
    case.is_whole(operation, version)?;
    let found = case.commit(version).and_then(|commit| commit.txn_id.as_deref());
    if found != Some(txn_id) {
        return Err(format!("{operation}: version {version} has the id {found:?}"));
    }
    Ok(())
}

pub(super) fn failed(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let places = case.places(operation);
        if matches!(operation.outcome, Some(Outcome::Failed { .. } | Outcome::Done)) && !places.is_empty() {
            return Err(format!("{operation}: its files are in the versions {places:?}"));
        }
    }
    Ok(())
}

pub(super) fn unknown(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let places = case.places(operation);
        match &operation.outcome {
            Some(Outcome::Unknown { txn_id, found: Some(Found::At(version)) }) => {
                is_at(case, operation, *version, txn_id)?;
            }
            Some(Outcome::Unknown { found: Some(Found::Nowhere), .. }) if !places.is_empty() => {
                return Err(format!("{operation}: its files are in the versions {places:?}"));
            }
            Some(Outcome::Unknown { .. }) | None => match places[..] {
                [] => {}
                [version] => case.is_whole(operation, version)?,
                _ => return Err(format!("{operation}: its files are in the versions {places:?}")),
            },
            _ => {}
        }
        if let (Intent::Find(_, version), Some(Outcome::Found(found))) =
            (&operation.intent, &operation.outcome)
            && *found != Found::At(*version)
            // A commit that a cleanup has deleted can no longer be found.
            && !(*found == Found::Nowhere && case.has_expired(*version))
        {
            return Err(format!("{operation}"));
        }
    }
    Ok(())
}

pub(super) fn wanted(case: &Case) -> Result<(), String> {
    let writes = case.writes();
    let mut ids = BTreeSet::new();
    for (version, commit) in (0..).zip(&case.log.commits) {
        let nothing = Write::default();
        let is_maintenance = commit.is_vacuum || commit.is_move || commit.is_description;
        let Some(write) = writes.get(&version).copied().or(is_maintenance.then_some(&nothing)) else {
            return Err(format!("version {version} was written without a request: {commit:?}"));
        };
        let restored = write.restores.as_ref().and_then(|(earlier, _)| case.state(*earlier));
        let is_wanted = |path: &&String| {
            let is_restored = |file: &String| file.split('#').next() == Some(path.as_str());
            write.files.contains_key(*path)
                || commit.removed_paths.contains(*path)
                || restored.is_some_and(|earlier| earlier.files.iter().any(is_restored))
        };
        // All other files of a replacement are copies of rows, whose names were not known in advance. The same is
        // true of all files that an OPTIMIZE adds.
        let copies = commit.is_move || commit.is_description || write.replaces_class.is_some();
        if let Some(path) = commit.paths.iter().find(|path| !is_wanted(path) && !copies) {
            return Err(format!("version {version} adds '{path}'"));
        }
        if !commit.txn_id.as_ref().is_some_and(|id| ids.insert(id)) {
            return Err(format!(
                "version {version} has the id {:?}, which is missing or used twice",
                commit.txn_id
            ));
        }
        if version > 0 && commit.has_protocol {
            return Err(format!("version {version} changes the protocol"));
        }
    }
    Ok(())
}

/// A commit that was acknowledged before a write began has a lower version than the write.
pub(super) fn real_time(case: &Case) -> Result<(), String> {
    let mut writes: Vec<(u64, u64, u64, &Operation)> = Vec::new();
    for operation in &case.operations {
        if let (Some(ended), Some((version, _))) = (operation.ended, operation.committed()) {
            writes.push((operation.began, ended, version, operation));
        }
    }
    for (began, _, version, later) in &writes {
        if let Some((.., earlier)) =
            writes.iter().find(|(_, ended, other, _)| ended < began && other > version)
        {
            return Err(format!("{later} began after {earlier} had ended"));
        }
    }
    Ok(())
}
