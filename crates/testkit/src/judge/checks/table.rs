//! Checks metadata, applications, times, and numbers that no two commits may both assign.

use std::collections::BTreeMap;

use super::Case;
use crate::judge::commit::RowIds;
use crate::judge::history::{MINE, Write};

/// Each commit changes only the metadata that its write concerns, and keeps what other writers have set. (Protocol:
/// "Change Metadata".)
pub(super) fn metadata(case: &Case) -> Result<(), String> {
    let writes = case.writes();
    let Some(first) = case.log.states.first().map(|first| &first.metadata) else { return Ok(()) };
    let mut expected = first.clone();
    for (version, commit) in (0..).zip(&case.log.commits) {
        let Some(found) = commit.metadata.as_ref().filter(|_| version > 0) else { continue };
        let Some(write) = writes.get(&version) else { continue };
        if write.redefines {
            // The write defines the table again. Its definition equals the first version's, but the table must have a
            // new id.
            if expected.id == found.id {
                return Err(format!("version {version} is a new table with the old id"));
            }
            expected = first.clone();
            expected.id.clone_from(&found.id);
        }
        if let Some((earlier, _)) = &write.restores {
            let Some(earlier) = case.state(*earlier) else { continue };
            expected = earlier.metadata.clone();
        }
        if let Some(value) = &write.property {
            expected.properties.insert(MINE.to_owned(), value.clone());
        }
        expected.columns.extend(write.column.clone());
        // The check `identities` covers this value.
        expected.identity_mark = found.identity_mark;
        if *found != expected {
            return Err(format!("version {version} has the metadata {found:?}, not {expected:?}"));
        }
    }
    Ok(())
}

pub(super) fn progress(case: &Case) -> Result<(), String> {
    let mut newest: BTreeMap<&str, i64> = BTreeMap::new();
    for (version, commit) in case.log.commits.iter().enumerate() {
        for (app, progress) in &commit.progress {
            let before = newest.insert(app, *progress).unwrap_or_default();
            // Each application in the simulation counts from 1, and records every number.
            if *progress != before + 1 {
                return Err(format!("version {version} records {progress} of '{app}' after {before}"));
            }
        }
    }
    Ok(())
}

/// A version has the clustering columns that were set last. A table that replaces a clustered table is not clustered.
/// (Protocol: "Clustered Table".)
pub(super) fn clustering(case: &Case) -> Result<(), String> {
    let writes = case.writes();
    let mut expected: Vec<String> = Vec::new();
    for (version, state) in (0..).zip(&case.log.states) {
        match writes.get(&version) {
            Some(Write { clusters: Some((columns, _)), .. }) => expected.clone_from(columns),
            Some(Write { redefines: true, .. }) => expected.clear(),
            Some(Write { restores: Some((earlier, _)), .. }) => {
                let Some(earlier) = case.state(*earlier) else { continue };
                expected.clone_from(&earlier.clustering);
            }
            _ => {}
        }
        if state.clustering != expected {
            return Err(format!(
                "version {version} is clustered by {:?}, not {expected:?}",
                state.clustering
            ));
        }
    }
    Ok(())
}

/// In-commit timestamps increase from version to version. (Protocol: "In-Commit Timestamps".)
pub(super) fn timestamps(case: &Case) -> Result<(), String> {
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

/// No row id is assigned twice. (Protocol: "Row Tracking".)
pub(super) fn row_ids(case: &Case) -> Result<(), String> {
    if !case.log.is_enabled("delta.enableRowTracking") {
        return Ok(());
    }
    let (mut mark, mut known) = (-1, BTreeMap::<&str, &RowIds>::new());
    for (version, commit) in case.log.commits.iter().enumerate() {
        // A file that gets another deletion vector keeps its row ids. So does a file that is restored or gets new
        // statistics.
        let may_be_known = commit.is_restore || commit.is_description;
        let (kept, new): (Vec<_>, Vec<_>) = commit.row_ids.iter().partition(|(path, _)| {
            commit.removed_paths.contains(*path) || (may_be_known && known.contains_key(path.as_str()))
        });
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
            return Err(format!("version {version} records {:?}, not {mark}", commit.high_water_mark));
        }
    }
    Ok(())
}

/// The values of a write come directly after the high water mark of the previous version, without a gap inside of a
/// file, and the greatest value becomes the new mark. Copied rows keep their values. (Protocol: "Identity Columns".)
pub(super) fn identities(case: &Case) -> Result<(), String> {
    let writes = case.writes();
    let mut mark = None;
    for (version, (commit, state)) in (0..).zip(case.log.commits.iter().zip(&case.log.states)) {
        let Some(write) = writes.get(&version) else { continue };
        if write.redefines {
            mark = None;
        }
        let mut counted: Vec<_> =
            commit.counted.iter().filter(|(path, _)| write.files.contains_key(*path)).collect();
        counted.sort_by_key(|(_, bounds)| **bounds);
        for (path, (least, greatest)) in counted {
            let rows = write.files.get(path).map_or(0, |rows| rows.len() as i64);
            if mark.is_some_and(|mark| *least <= mark) || greatest - least + 1 != rows {
                return Err(format!(
                    "version {version}: the {rows} rows of '{path}' count from {least} to {greatest} after {mark:?}"
                ));
            }
            mark = Some(*greatest);
        }
        if state.metadata.identity_mark != mark {
            let found = state.metadata.identity_mark;
            return Err(format!("version {version} has the high water mark {found:?}, not {mark:?}"));
        }
    }
    Ok(())
}
