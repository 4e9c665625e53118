//! Checks the promises of the crate. Each check is a function of the final log and the history of operations.
//!
//! | file | what it checks |
//! | --- | --- |
//! | `commits` | acknowledged writes, failed writes, and the order of the versions |
//! | `reads` | the versions that readers have seen |
//! | `rows` | the rows of each version |
//! | `table` | metadata, applications, times, and numbers that no two commits may share |
//! | `streams` | the files that streams have returned |
//! | `errors` | that each error has a valid reason |

mod commits;
mod errors;
mod reads;
mod rows;
mod streams;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use super::commit::Commit;
use super::history::{MINE, Operation, Write};
use super::replay::{Log, State};

/// The history and the log that are checked.
#[derive(Debug, Default)]
pub struct Case {
    /// The final log.
    pub log: Log,
    /// The operations of processes, with the results that they received.
    pub operations: Vec<Operation>,
    /// The paths of the data files that exist at the end.
    pub data_files: BTreeSet<String>,
    /// The rows, in order, of the data files that replacements have written as copies, and of the files that OPTIMIZE
    /// has written.
    pub copied: BTreeMap<String, Vec<i64>>,
    /// Whether a listing always contains every file that existed when it began.
    pub listings_are_strong: bool,
    /// The time up to which commits may have been deleted by a cleanup; `None` if nothing expires.
    pub expired_before_ms: Option<i64>,
    /// The time before which removed files may have been deleted by VACUUM; `None` if all files are kept.
    pub vacuumed_before_ms: Option<i64>,
    /// The times at which files were deleted, by the clock of the history.
    pub deletions: Vec<u64>,
}

type Check = fn(&Case) -> Result<(), String>;

/// Each promise, and the function that checks it. The names are the same as in the table of the design document.
const CHECKS: [(&str, Check); 19] = [
    ("an acknowledged commit is in the log exactly once, as a whole", commits::acknowledged),
    ("what failed is not in the log", commits::failed),
    ("an unknown commit is in the log at most once, as a whole, and is found there", commits::unknown),
    ("every commit in the log was requested", commits::wanted),
    ("the versions have the order in which they were committed in real time", commits::real_time),
    ("a reader sees what the log says", reads::views),
    ("a handle does not go back, and a strong store's newest version is seen", reads::freshness),
    ("a stream returns each file of each version once", streams::once),
    ("an overwrite replaces exactly the version that it has read", rows::overwrites),
    ("a version has the rows that result from its commits, each based on what it has seen", rows::rows),
    ("a change of the metadata changes nothing else", table::metadata),
    ("the clustering columns are the ones that were set last", table::clustering),
    ("the progress of an application is recorded once and in order", table::progress),
    ("in-commit timestamps increase", table::timestamps),
    ("each row id is given once", table::row_ids),
    ("each value of an identity column is used once", table::identities),
    ("a data file of the log exists", rows::data_files),
    ("a version that has not expired can be read", errors::retained),
    ("errors are true", errors::errors),
];

/// Returns the promises that were broken, with an explanation.
pub fn check(case: &Case) -> Vec<String> {
    let broken =
        |(promise, check): &(&str, Check)| check(case).err().map(|error| format!("{promise}: {error}"));
    CHECKS.iter().filter_map(broken).collect()
}

impl Case {
    fn commit(&self, version: u64) -> Option<&Commit> {
        self.log.commits.get(usize::try_from(version).ok()?)
    }

    fn state(&self, version: u64) -> Option<&State> {
        self.log.states.get(usize::try_from(version).ok()?)
    }

    /// Returns the versions that contain `operation`. Such a version adds one of its files, sets its property, adds
    /// its column, or has the mark of its row deletes, its RESTORE or its clustering.
    fn places(&self, operation: &Operation) -> Vec<u64> {
        let Some(write) = operation.write() else { return Vec::new() };
        let is_place = |(version, commit): &(usize, &Commit)| {
            // A RESTORE adds files again that other writers have written, so it is found only by its mark.
            if commit.is_restore || write.restores.is_some() {
                return write.restores.as_ref().is_some_and(|(_, mark)| commit.mark.as_ref() == Some(mark));
            }
            let is_marked = write.deletes.is_some()
                && write.progress.as_ref().is_some_and(|(app, _)| commit.progress.contains_key(app));
            let is_clustered =
                write.clusters.as_ref().is_some_and(|(_, mark)| commit.mark.as_ref() == Some(mark));
            is_marked
                || is_clustered
                || self.changes_metadata(*version, write)
                || write.files.keys().any(|path| commit.is_new(path))
        };
        let places = self.log.commits.iter().enumerate().filter(is_place);
        places.map(|(version, _)| version as u64).collect()
    }

    /// Returns whether `version` sets the property of `write`, or adds its column.
    fn changes_metadata(&self, version: usize, write: &Write) -> bool {
        let Some((commit, before)) = self.log.commits.get(version).zip(self.log.before(version)) else {
            return false;
        };
        let Some(metadata) = commit.metadata.as_ref().filter(|_| !commit.is_restore) else { return false };
        let is_set = write.property.as_ref().is_some_and(|value| {
            let is_value = |found: Option<&String>| found == Some(value);
            is_value(metadata.properties.get(MINE)) && !is_value(before.metadata.properties.get(MINE))
        });
        let is_added = write.column.as_ref().is_some_and(|column| {
            metadata.columns.contains(column) && !before.metadata.columns.contains(column)
        });
        is_set || is_added
    }

    /// Returns the writes that are in the log, by version.
    fn writes(&self) -> BTreeMap<u64, &Write> {
        let mut writes = BTreeMap::new();
        for operation in &self.operations {
            let Some(write) = operation.write() else { continue };
            writes.extend(self.places(operation).into_iter().map(|version| (version, write)));
        }
        writes
    }

    /// Returns the rows of each data file, including deleted rows.
    fn files(&self) -> BTreeMap<&str, &[i64]> {
        let written = self.operations.iter().filter_map(Operation::write).flat_map(|write| &write.files);
        written.chain(&self.copied).map(|(path, rows)| (path.as_str(), rows.as_slice())).collect()
    }

    /// Returns how many commits delete rows by positions in files from which the rows were moved in the meantime.
    pub fn followed(&self) -> u64 {
        let is_followed = |(version, write): &(&u64, &&Write)| {
            let of = write.deletes.as_ref().map(|(path, _)| path);
            let commit = of.and_then(|_| self.commit(**version));
            commit.is_some_and(|commit| {
                !commit.removed_paths.is_empty()
                    && !of.is_some_and(|path| commit.removed_paths.contains(path))
            })
        };
        self.writes().iter().filter(is_followed).count() as u64
    }

    /// Returns the data files to which rows were moved.
    fn moved_paths(&self) -> impl Iterator<Item = String> {
        self.log
            .commits
            .iter()
            .filter(|commit| commit.is_move)
            .flat_map(|commit| commit.paths.iter().cloned())
    }

    /// Returns whether the commit of `version` may have been deleted by a cleanup.
    fn has_expired(&self, version: u64) -> bool {
        let written_ms = self.commit(version).and_then(|commit| commit.written_ms);
        written_ms.zip(self.expired_before_ms).is_some_and(|(written_ms, before_ms)| written_ms < before_ms)
    }

    /// Returns the newest version that was committed or seen by a process before `operation` began.
    fn known_before(&self, operation: &Operation) -> Option<u64> {
        let before =
            self.operations.iter().filter(|other| other.ended.is_some_and(|ended| ended < operation.began));
        before.filter_map(Operation::known).max()
    }
}
