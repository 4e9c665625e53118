//! The promises, each as a function of the final log and the history.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Found, Intent, MINE, Operation, Outcome, Write};
use super::replay::{Commit, Log, RowIds};

/// What is judged.
#[derive(Debug)]
pub struct Case {
    /// The final log.
    pub log: Log,
    /// What processes were told.
    pub operations: Vec<Operation>,
    /// The paths of the data files that exist in the end.
    pub data_files: BTreeSet<String>,
    /// Whether a listing shows every file that existed when it began.
    pub listings_are_strong: bool,
}

type Check = fn(&Case) -> Result<(), String>;

/// Each promise with its check. The names are those of the table in the design.
const CHECKS: [(&str, Check); 15] = [
    ("an acknowledged commit is in the log exactly once, as a whole", acknowledged),
    ("what failed is not in the log", failed),
    ("what is unknown is in the log at most once, as a whole, and is found there", unknown),
    ("no commit is in the log that nobody wanted", wanted),
    ("the versions have the order of real time", real_time),
    ("a reader sees what the log says", views),
    ("a handle does not go back, and a strong store's newest version is seen", freshness),
    ("an overwrite replaces what it has read, and nothing else", overwrites),
    ("a deletion vector deletes as many rows as were to be deleted", row_deletes),
    ("a change of the properties changes nothing else", properties),
    ("the progress of an application is recorded once and in order", progress),
    ("in-commit timestamps increase", timestamps),
    ("each row id is given once", row_ids),
    ("a data file of the log exists", data_files),
    ("errors are true", errors),
];

/// Returns what is wrong.
pub fn check(case: &Case) -> Vec<String> {
    let broken =
        |(promise, check): &(&str, Check)| check(case).err().map(|error| format!("{promise}: {error}"));
    CHECKS.iter().filter_map(broken).collect()
}

impl Case {
    fn commit(&self, version: u64) -> Option<&Commit> {
        self.log.commits.get(usize::try_from(version).ok()?)
    }

    /// Returns the versions that add one of the files of `operation`, or have the mark of its row deletes, or its
    /// property.
    fn places(&self, operation: &Operation) -> Vec<u64> {
        let Some(write) = operation.write() else { return Vec::new() };
        let is_place = |commit: &Commit| {
            let is_marked = write.deletes.is_some()
                && write.progress.as_ref().is_some_and(|(app, _)| commit.progress.contains_key(app));
            let is_set = write.property.is_some() && commit.properties.get(MINE) == write.property.as_ref();
            is_marked || is_set || write.files.iter().any(|path| commit.is_new(path))
        };
        (0..)
            .zip(&self.log.commits)
            .filter(|(_, commit)| is_place(commit))
            .map(|(version, _)| version)
            .collect()
    }

    /// Returns the write that deletes rows in a commit, if it is one.
    fn row_delete(&self, commit: &Commit) -> Option<&(String, BTreeSet<u64>)> {
        let is_its = |write: &&Write| {
            write.deletes.is_some()
                && write.progress.as_ref().is_some_and(|(app, _)| commit.progress.contains_key(app))
        };
        self.operations.iter().filter_map(Operation::write).find(is_its)?.deletes.as_ref()
    }

    /// Returns the newest version that was committed or seen by a process before `operation` began.
    fn known_before(&self, operation: &Operation) -> Option<u64> {
        let before =
            self.operations.iter().filter(|other| other.ended.is_some_and(|ended| ended < operation.began));
        before.filter_map(Operation::known).max()
    }

    /// Checks that version `version` is `operation` as a whole.
    fn is_whole(&self, operation: &Operation, version: u64) -> Result<(), String> {
        let Some(write) = operation.write() else { return Ok(()) };
        let commit =
            self.commit(version).ok_or_else(|| format!("{operation}: there is no version {version}"))?;
        let progress: BTreeMap<String, i64> = write.progress.iter().cloned().collect();
        let of_deletes = write.deletes.iter().map(|(path, _)| path.clone()).collect::<BTreeSet<_>>();
        let is_whole = match write.deletes {
            // Rows that are deleted already change nothing, and a file without rows is removed.
            Some(_) => commit.paths.is_subset(&of_deletes) && commit.removed_paths.is_subset(&of_deletes),
            None => commit.paths == write.files,
        };
        if !is_whole
            || commit.progress != progress
            || (version > 0 && commit.has_metadata != write.property.is_some())
        {
            return Err(format!("{operation}: version {version} is {commit:?}"));
        }
        if write.replaces.is_none() && write.deletes.is_none() && !commit.removes.is_empty() {
            return Err(format!("{operation}: version {version} removes {:?}", commit.removes));
        }
        Ok(())
    }
}

fn acknowledged(case: &Case) -> Result<(), String> {
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

fn failed(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let places = case.places(operation);
        if matches!(operation.outcome, Some(Outcome::Failed { .. } | Outcome::Done)) && !places.is_empty() {
            return Err(format!("{operation}: its files are in the versions {places:?}"));
        }
    }
    Ok(())
}

fn unknown(case: &Case) -> Result<(), String> {
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
        {
            return Err(format!("{operation}"));
        }
    }
    Ok(())
}

fn wanted(case: &Case) -> Result<(), String> {
    let files: BTreeSet<&String> =
        case.operations.iter().filter_map(Operation::write).flat_map(|w| &w.files).collect();
    let mut ids = BTreeSet::new();
    for (version, commit) in case.log.commits.iter().enumerate() {
        if let Some(path) = commit.paths.iter().find(|path| !files.contains(path)) {
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
        let properties =
            case.operations.iter().filter_map(Operation::write).filter_map(|w| w.property.as_ref());
        let mine = commit.properties.get(MINE);
        if version > 0
            && commit.has_metadata
            && !properties.into_iter().any(|property| mine == Some(property))
        {
            return Err(format!("version {version} changes the metadata"));
        }
    }
    Ok(())
}

/// Whatever was acknowledged before a write began has a lower version.
fn real_time(case: &Case) -> Result<(), String> {
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

fn views(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let Some(Outcome::Saw(view)) = &operation.outcome else { continue };
        let state = usize::try_from(view.version).ok().and_then(|version| case.log.states.get(version));
        let Some(state) = state else { return Err(format!("{operation}: there is no such version")) };
        if matches!(operation.intent, Intent::Read(Some(wanted)) if wanted != view.version) {
            return Err(format!("{operation}: the version is another"));
        }
        if state.files != view.files || state.progress != view.progress {
            return Err(format!("{operation}: the version is {state:?}"));
        }
    }
    Ok(())
}

fn freshness(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let (Intent::Read(None), Some(Outcome::Saw(view))) = (&operation.intent, &operation.outcome) else {
            continue;
        };
        if view.before.is_some_and(|before| before > view.version) {
            return Err(format!("{operation}: the handle was newer before"));
        }
        let newest = case.known_before(operation);
        if case.listings_are_strong && newest > Some(view.version) {
            return Err(format!("{operation}: version {newest:?} was known before"));
        }
    }
    Ok(())
}

fn overwrites(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let Some(base) = operation.write().and_then(|write| write.replaces) else { continue };
        for version in case.places(operation) {
            let index = usize::try_from(version).unwrap_or(usize::MAX);
            let live = usize::try_from(base).ok().and_then(|base| case.log.states.get(base));
            let Some((commit, live)) = case.log.commits.get(index).zip(live) else { continue };
            if commit.removes != live.files {
                return Err(format!(
                    "{operation}: version {version} removes {:?}, not {live:?}",
                    commit.removes
                ));
            }
            if commit.read_version != Some(base) {
                return Err(format!("{operation}: version {version} has read {:?}", commit.read_version));
            }
            for between in base + 1..version {
                let other =
                    case.commit(between).filter(|other| !other.adds.is_empty() || !other.removes.is_empty());
                if other.is_some() {
                    return Err(format!("{operation}: version {between} has changed files before {version}"));
                }
            }
        }
    }
    Ok(())
}

/// Protocol: "Deletion Vectors". The vector of a file deletes as many rows as the union of what was to be deleted has:
/// its cardinality is compared, not its bitmap.
fn row_deletes(case: &Case) -> Result<(), String> {
    // The number of rows of each file, and those that are deleted.
    let mut files: BTreeMap<&str, (i64, BTreeSet<u64>)> = BTreeMap::new();
    for (version, commit) in case.log.commits.iter().enumerate() {
        for (path, ids) in &commit.row_ids {
            files.entry(path).or_insert((ids.rows, BTreeSet::new()));
        }
        if let Some((path, rows)) = case.row_delete(commit) {
            let Some((count, deleted)) = files.get_mut(path.as_str()) else {
                return Err(format!("version {version} deletes rows of '{path}', which was never added"));
            };
            let before = deleted.len();
            deleted.extend(rows);
            // Rows that are deleted already change nothing, and a file without rows is removed.
            let (has_effect, is_empty) = (deleted.len() > before, deleted.len() as i64 == *count);
            let found = (commit.removed_paths.contains(path), commit.paths.contains(path));
            if found != (has_effect, has_effect && !is_empty) {
                return Err(format!(
                    "version {version} deletes {rows:?} of the {count} rows of '{path}': {found:?}"
                ));
            }
        }
        for (path, deleted) in &commit.deleted {
            let wanted = files.get(path.as_str()).map_or(0, |(_, deleted)| deleted.len() as i64);
            if *deleted != wanted {
                return Err(format!(
                    "version {version}: {deleted} rows of '{path}' are deleted, not {wanted}"
                ));
            }
        }
    }
    Ok(())
}

/// Protocol: "Change Metadata".
fn properties(case: &Case) -> Result<(), String> {
    let others = |commit: &Commit| {
        let others = commit.properties.iter().filter(|(name, _)| name.as_str() != MINE);
        others.map(|(name, value)| (name.clone(), value.clone())).collect::<BTreeMap<_, _>>()
    };
    let mut changes = case.log.commits.iter().enumerate().filter(|(_, commit)| commit.has_metadata);
    let Some((_, first)) = changes.next() else { return Ok(()) };
    match changes.find(|(_, commit)| others(commit) != others(first)) {
        Some((version, commit)) => {
            Err(format!("version {version} has the properties {:?}", commit.properties))
        }
        None => Ok(()),
    }
}

fn progress(case: &Case) -> Result<(), String> {
    let mut newest: BTreeMap<&str, i64> = BTreeMap::new();
    for (version, commit) in case.log.commits.iter().enumerate() {
        for (app, progress) in &commit.progress {
            let before = newest.insert(app, *progress).unwrap_or_default();
            // The applications of the simulation count from 1, and record each number.
            if *progress != before + 1 {
                return Err(format!("version {version} records {progress} of '{app}' after {before}"));
            }
        }
    }
    Ok(())
}

/// Protocol: "In-Commit Timestamps".
fn timestamps(case: &Case) -> Result<(), String> {
    if !case.log.is_enabled("delta.enableInCommitTimestamps") {
        return Ok(());
    }
    let mut last = None;
    for (version, commit) in case.log.commits.iter().enumerate() {
        if commit.timestamp_ms <= last {
            return Err(format!("version {version} has {:?} after {last:?}", commit.timestamp_ms));
        }
        last = commit.timestamp_ms;
    }
    Ok(())
}

/// Protocol: "Row Tracking".
fn row_ids(case: &Case) -> Result<(), String> {
    if !case.log.is_enabled("delta.enableRowTracking") {
        return Ok(());
    }
    let (mut mark, mut known) = (-1, BTreeMap::<&str, &RowIds>::new());
    for (version, commit) in case.log.commits.iter().enumerate() {
        // A file that gets another deletion vector keeps its row ids.
        let (kept, new): (Vec<_>, Vec<_>) =
            commit.row_ids.iter().partition(|(path, _)| commit.removed_paths.contains(*path));
        if let Some((path, ids)) = kept.into_iter().find(|(path, ids)| known.get(path.as_str()) != Some(ids))
        {
            return Err(format!("version {version} gives '{path}' {ids:?}"));
        }
        known.extend(new.iter().map(|(path, ids)| (path.as_str(), *ids)));
        let mut given: Vec<RowIds> = new.into_iter().map(|(_, ids)| *ids).collect();
        given.sort();
        for ids in &given {
            if ids.base != Some(mark + 1) || ids.commit_version != i64::try_from(version).ok() {
                return Err(format!("version {version} gives {ids:?} above {mark}"));
            }
            mark += ids.rows;
        }
        if !given.is_empty() && commit.high_water_mark != Some(mark) {
            return Err(format!("version {version} notes {:?}, not {mark}", commit.high_water_mark));
        }
    }
    Ok(())
}

fn data_files(case: &Case) -> Result<(), String> {
    for (version, commit) in case.log.commits.iter().enumerate() {
        if let Some(path) = commit.paths.iter().find(|path| !case.data_files.contains(*path)) {
            return Err(format!("'{path}' of version {version} was deleted"));
        }
    }
    Ok(())
}

/// A failure has a reason that can be seen: a fault, or a commit that conflicts.
fn errors(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let (kind, version) = match &operation.outcome {
            Some(Outcome::Failed { kind, version, .. }) => (kind.as_str(), *version),
            Some(Outcome::Unknown { .. }) => ("CommitStateUnknown", None),
            _ => continue,
        };
        let is_true = match kind {
            "Unavailable" | "PermissionDenied" | "CommitStateUnknown" => operation.faults > 0,
            "CommitConflict" => conflicts(case, operation, version),
            "TableAlreadyExists" => !case.log.commits.is_empty(),
            "NotATable" => !case.listings_are_strong || case.known_before(operation).is_none(),
            "VersionNotFound" => !case.listings_are_strong,
            _ => false,
        };
        if !is_true {
            return Err(format!("{operation} with {} faults", operation.faults));
        }
    }
    Ok(())
}

/// Returns whether `operation` may conflict with version `version`.
fn conflicts(case: &Case, operation: &Operation, version: Option<u64>) -> bool {
    let Some((write, version)) = operation.write().zip(version) else { return false };
    let Some(commit) = case.commit(version) else { return false };
    let is_own = write.files.iter().any(|path| commit.is_new(path));
    let changes_files = !commit.adds.is_empty() || !commit.removes.is_empty();
    let overwrites_too = write.replaces.is_some_and(|base| base < version) && changes_files;
    // A conflict that is found before the commit names the newest version instead of that of the application.
    let state = case.log.states.get(usize::try_from(version).unwrap_or(usize::MAX));
    let records_too = write.progress.as_ref().is_some_and(|(app, progress)| {
        let recorded = state.and_then(|state| state.progress.get(app));
        commit.progress.contains_key(app) || recorded.is_some_and(|recorded| recorded >= progress)
    });
    let deletes_too = write.deletes.as_ref().is_some_and(|(path, rows)| {
        let theirs = case.row_delete(commit);
        let is_overlap = theirs.is_none_or(|(_, theirs)| !rows.is_disjoint(theirs));
        commit.removed_paths.contains(path) && is_overlap
    });
    let changes_too = write.property.is_some()
        && commit.has_metadata
        && commit.properties.get(MINE) != write.property.as_ref();
    !is_own && (overwrites_too || records_too || deletes_too || changes_too)
}
