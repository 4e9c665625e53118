//! Checks that each error has a valid reason.

use std::collections::BTreeSet;

use super::Case;
use crate::judge::commit::Commit;
use crate::judge::history::{Intent, Operation, Outcome, Write, class_of};

/// A version that is read after all writers have ended must exist, unless it has expired. (Protocol: "Metadata
/// Cleanup".)
pub(super) fn retained(case: &Case) -> Result<(), String> {
    for operation in case.operations.iter().filter(|operation| operation.process.starts_with("auditor")) {
        let Intent::Read(version) = operation.intent else { continue };
        let may_be_gone = version.is_some_and(|version| case.has_expired(version));
        if !matches!(operation.outcome, Some(Outcome::Saw(_))) && !may_be_gone {
            return Err(operation.to_string());
        }
    }
    Ok(())
}

/// The message of the error that occurs if a listing of the log shows only compactions.
const ONLY_COMPACTIONS: &str = "the log has neither commits nor a complete checkpoint";

/// Each failure must have a recorded reason: a fault, a conflicting commit, or a cleanup of the log.
pub(super) fn errors(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let (kind, version, reason, message) = match &operation.outcome {
            Some(Outcome::Failed { kind, version, reason, message }) => {
                (kind.as_str(), *version, reason.as_deref(), message.as_str())
            }
            Some(Outcome::Unknown { .. }) => ("CommitStateUnknown", None, None, ""),
            _ => continue,
        };
        let is_true = match (kind, reason) {
            ("Unavailable" | "PermissionDenied" | "CommitStateUnknown", _) => operation.faults > 0,
            ("CommitConflict", Some("log_cleaned_up")) => {
                version.is_some_and(|version| case.has_expired(version))
            }
            ("CommitConflict", Some("table_replaced")) | ("TableReplaced", _) => {
                version.is_some_and(|version| case.may_be_another_table(version))
            }
            ("CommitConflict", _) => case.conflicts(operation, version),
            ("TableAlreadyExists", _) => !case.log.commits.is_empty(),
            ("NotATable", _) => !case.listings_are_strong || case.known_before(operation).is_none(),
            ("VersionNotFound", _) => !case.listings_are_strong || case.may_miss(operation, version),
            // A VACUUM deleted a file that the operation still needed.
            ("FileNotFound", _) if case.may_lack_files(operation) => true,
            // The listing contains a log compaction, but not its commits yet.
            ("CorruptLog", _) if message.starts_with(ONLY_COMPACTIONS) => !case.listings_are_strong,
            // If a checkpoint was delayed until after a cleanup, expired versions look like a gap in the log.
            ("CorruptLog" | "FileNotFound", _) => case.may_miss(operation, version),
            _ => false,
        };
        if !is_true {
            return Err(format!("{operation} with {} faults", operation.faults));
        }
    }
    Ok(())
}

impl Case {
    /// Returns whether `operation` may have failed to find a version because a cleanup has deleted it.
    fn may_miss(&self, operation: &Operation, version: Option<u64>) -> bool {
        let wanted = match &operation.intent {
            Intent::Read(Some(version)) => Some(*version),
            // The newest version can always be read.
            Intent::Read(None) => None,
            Intent::Write(write) => write.restores.as_ref().map(|(earlier, _)| *earlier).or(version),
            _ => version,
        };
        let ended = operation.ended.unwrap_or(u64::MAX);
        wanted.is_some_and(|version| self.has_expired(version))
            && self.deletions.iter().any(|deleted| *deleted < ended)
    }

    /// Returns whether a VACUUM may have deleted files of the version on which `operation` is based, or which it
    /// restores: some versions are no longer retained, and files were deleted before the operation ended. The check
    /// `data_files` makes sure that only files of such versions were deleted.
    fn may_lack_files(&self, operation: &Operation) -> bool {
        let ended = operation.ended.unwrap_or(u64::MAX);
        let second_ms = self.commit(1).and_then(|commit| commit.written_ms);
        operation.write().is_some()
            && second_ms.zip(self.vacuumed_before_ms).is_some_and(|(next_ms, before_ms)| next_ms < before_ms)
            && self.deletions.iter().any(|deleted| *deleted < ended)
    }

    /// Returns whether `operation` may conflict with version `version`.
    fn conflicts(&self, operation: &Operation, version: Option<u64>) -> bool {
        let Some((write, version)) = operation.write().zip(version) else { return false };
        let Some(commit) = self.commit(version) else { return false };
        let is_own = match &write.restores {
            Some((_, mark)) => commit.mark.as_ref() == Some(mark),
            None => {
                write.clusters.as_ref().is_some_and(|(_, mark)| commit.mark.as_ref() == Some(mark))
                    || write.files.keys().any(|path| commit.is_new(path)) && !commit.is_restore
            }
        };
        let overwrites_too = write.replaces.is_some_and(|base| base < version) && commit.changes_files();
        // A conflict that is found before the commit names the newest version, and not the version that recorded the
        // application's progress.
        let state = self.log.states.get(usize::try_from(version).unwrap_or(usize::MAX));
        let records_too = write.progress.as_ref().is_some_and(|(app, progress)| {
            let recorded = state.and_then(|state| state.progress.get(app));
            commit.progress.contains_key(app) || recorded.is_some_and(|recorded| recorded >= progress)
        });
        // A RESTORE must not add files that a VACUUM is about to delete.
        let vacuums_too = write.restores.is_some() && commit.is_vacuum;
        // Files need statistics for the clustering columns, and a change of the metadata must not drop these columns.
        let sets_clustering = commit.clustering.is_some();
        let clusters_too = match &write.clusters {
            Some(_) => sets_clustering || commit.changes_files(),
            None => {
                let depends = !write.files.is_empty() || write.sets_metadata() || write.restores.is_some();
                sets_clustering && depends
            }
        };
        let changes_too = commit.metadata.is_some()
            // A RESTORE may set clustering columns, and may remove columns.
            && (write.sets_metadata()
                || write.restores.is_some()
                || write.clusters.is_some()
                || commit.is_restore
                || self.is_another_table(version))
            && !self.changes_metadata(usize::try_from(version).unwrap_or(usize::MAX), write);
        !is_own
            && (overwrites_too
                || records_too
                || vacuums_too
                || changes_too
                || clusters_too
                || self.deletes_too(write, version, commit)
                || self.replaces_too(write, commit)
                || self.changes_what_was_read(write, commit))
    }

    /// Returns whether a handle of `version` cannot know that the table is still the same: the version was deleted by
    /// a cleanup, and a later version defines another table at the same location.
    fn may_be_another_table(&self, version: u64) -> bool {
        let newest = self.log.commits.len() as u64;
        self.has_expired(version) && (version + 1..newest).any(|later| self.is_another_table(later))
    }

    /// Returns whether `version` is the first version of a table that replaces another one.
    fn is_another_table(&self, version: u64) -> bool {
        let Ok(index) = usize::try_from(version) else { return false };
        let ids = |version: usize| self.log.states.get(version).map(|state| &state.metadata.id);
        index > 0 && ids(index) != ids(index - 1)
    }

    /// Returns whether `commit` removes a file with rows that `write` deletes, or deletes one of these rows itself.
    /// Rows that are only moved are found at their new positions, if they keep their order.
    fn deletes_too(&self, write: &Write, version: u64, commit: &Commit) -> bool {
        let Some(own) = self.deleted_rows(write) else { return false };
        if let Some(theirs) = self.writes().get(&version).and_then(|theirs| self.deleted_rows(theirs)) {
            return !own.is_disjoint(&theirs);
        }
        let files = self.files();
        let rows = |path: &String| files.get(path.as_str()).into_iter().copied().flatten();
        (!commit.is_move || commit.reorders)
            && commit.removed_paths.iter().any(|path| rows(path).any(|row| own.contains(row)))
    }

    /// Returns the rows that `write` deletes by their positions in files.
    fn deleted_rows(&self, write: &Write) -> Option<BTreeSet<i64>> {
        let (path, positions) = write.deletes.as_ref()?;
        let files = self.files();
        let file = files.get(path.as_str())?;
        Some(positions.iter().filter_map(|at| file.get(usize::try_from(*at).ok()?)).copied().collect())
    }

    /// Returns whether `commit` removes a file that contains rows of the class which `write` replaces, or adds a file
    /// that may contain some.
    fn replaces_too(&self, write: &Write, commit: &Commit) -> bool {
        let Some(class) = write.replaces_class else { return false };
        commit.removed_paths.iter().any(|path| self.classes_in(path).any(|found| found == class))
            || commit.paths.iter().any(|path| self.may_have(path, class))
    }

    /// Returns whether `commit` removes or adds a file that may have rows of the class that `write` has read.
    fn changes_what_was_read(&self, write: &Write, commit: &Commit) -> bool {
        let Some(class) = write.reads_class else { return false };
        commit.removed_paths.iter().chain(&commit.paths).any(|path| self.may_have(path, class))
    }

    /// Returns whether the file may contain rows of `class`, according to the least and the greatest class of its
    /// rows.
    fn may_have(&self, path: &str, class: i64) -> bool {
        self.classes_in(path).min().is_some_and(|least| least <= class)
            && self.classes_in(path).max().is_some_and(|greatest| greatest >= class)
    }

    /// Returns the classes of a file's rows.
    fn classes_in(&self, path: &str) -> impl Iterator<Item = i64> {
        self.files().get(path).copied().unwrap_or_default().iter().map(|row| class_of(*row))
    }
}
