//! Removes features from a table. (Protocol: "Supported Features", and "Checkpoint Protection", a proposed section.)
//!
//! ```text
//!   what the newest version has of the feature is removed, in commits of its own (`removal`, `traces`)
//!     ──► for features of readers, what earlier versions have of it (`history`)
//!           nothing ──────────────────────────► the protocol without the feature
//!           something ── truncate history ────► the log before is deleted when it is old enough (`truncation`),
//!                     │                         and then the same
//!                     └─ keep history ────────► checkpoints without a trace, then the protocol without the feature and
//!                                               with `checkpointProtection` (`checkpoints`)
//! ```
//!
//! - A client without the feature must be able to use the table afterwards. Nothing may remain that only a client
//!   with the feature understands.
//! - Traces that only affect how the table is stored, such as row ids, deletion vectors or physical names, are
//!   removed by the drop. Definitions that users have made, such as constraints, must first be removed by the users.
//! - Every step leaves a table that readers can read, so a drop that was interrupted can simply be started again.
//! - The metadata is committed as well, even if it does not change: a concurrent commit that begins to use the
//!   feature is then a conflict. After the first step, a drop that conflicts starts over from the newest version. It
//!   also starts over, at any time, if it conflicts only with rows that other writers added or removed, because these
//!   rows do not matter to it.
//! - Other writers may commit all the time. Files that they add are no conflict if they do not use the feature
//!   (`commit::objection`). Each version is examined only once, and each footer only once as long as the schema stays
//!   the same. If a commit that rewrites files conflicts, the rewritten files are reused as long as other writers
//!   have only added files. If other writers have removed one of the files or deleted rows in it, as a DELETE or a
//!   compaction of selected files does, all files are rewritten again.
//! - A drop gives up only if commits conflict again and again, if other writers keep undoing its steps, or if another
//!   writer deliberately enables the feature again.
//! - The steps and the names of their operations are the same as in the JVM implementation. Unlike this module, the
//!   JVM implementation does not check whether earlier versions use the feature when it keeps the history.

mod checkpoints;
mod history;
mod older_types;
mod removal;
mod traces;
mod truncation;

use serde_json::{Map, Value};

use self::history::History;
use self::removal::Removal;
use super::draft::Draft;
use super::features;
use crate::commit::{Committed, Operation, Transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{FeatureKind, TableFeature, protected_before};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;

/// The maximum number of times that a drop starts over because of conflicts without making a commit in between.
const MOST_CONFLICTS: u32 = 10;

/// The maximum number of commits before the last commit of a drop. It is only reached if other writers undo the
/// steps.
const MOST_STEPS: u32 = 50;

/// The kinds of conflicts that only concern rows of other writers.
const OF_ROWS: [&str; 3] = ["concurrent_append", "concurrent_delete_read", "concurrent_delete_delete"];

/// Drops a table feature, so that clients without it can work with the table.
///
/// Traces that only affect how the table is stored are removed first, in separate commits before the one that removes
/// the feature from the protocol: files are rewritten without deletion vectors, with the current types, or with the
/// logical column names. Definitions that users have made, such as constraints, default values or columns of a
/// certain type, must first be removed by the users.
///
/// Earlier versions that use a reader feature remain readable: the table gets checkpoints which hide these versions
/// from clients without the feature, and the feature `checkpointProtection`, which makes writers keep the
/// checkpoints. With `truncate_history`, the older part of the log is deleted instead, once it is older than
/// `delta.dropFeatureTruncateHistory.retentionDuration` (24 hours by default). Until then, the drop is refused, and the
/// error says when it will be possible.
///
/// `custom_metadata` is added to the `commitInfo` of the last commit, which is returned.
///
/// # Errors
/// Returns `InvalidArgument` if there is no such feature, if the table does not support it, if another feature
/// requires it, if a use of it remains that only users can remove, or if the history is not old enough. Returns
/// `Unsupported` for a feature that this crate cannot drop. Also returns `CommitConflict`, `CommitStateUnknown`,
/// `CorruptLog`, `CorruptData`, and errors from the store. After an error, some of the commits before the last one may
/// have been made.
pub fn drop_feature(
    base: &Snapshot,
    name: &str,
    truncate_history: bool,
    custom_metadata: Map<String, Value>,
    environment: &Environment,
) -> Result<Committed> {
    let located = |error: Error| error.in_table(base.storage().url());
    let feature = features::named(name).map_err(|error| located(error).at_version(base.version()))?;
    FeatureDrop { feature, truncate_history, custom_metadata, environment }.run(base).map_err(located)
}

/// A request to drop one feature from a table.
struct FeatureDrop<'a> {
    feature: TableFeature,
    truncate_history: bool,
    custom_metadata: Map<String, Value>,
    environment: &'a Environment,
}

/// The outcome of one step of a drop.
enum Progress {
    /// A commit was made, and the drop continues from the newest version.
    Committed,
    /// The table no longer supports the feature.
    Dropped(Committed),
    /// Another writer has deliberately enabled the feature again.
    Undone(Error),
}

/// The progress of a drop, including everything that it has learned about the table.
struct Course<'a> {
    removal: Removal<'a>,
    history: History<'a>,
    /// The number of commits that were made.
    steps: u32,
    /// The number of conflicts since the last commit.
    conflicts: u32,
    has_unset_property: bool,
}

impl Course<'_> {
    /// Records a commit.
    fn note_step(&mut self) {
        (self.steps, self.conflicts) = (self.steps + 1, 0);
    }
}

impl FeatureDrop<'_> {
    fn run(&self, opened: &Snapshot) -> Result<Committed> {
        let mut course = Course {
            removal: Removal::of(&self.feature, opened, self.environment),
            history: History::of(&self.feature, opened),
            steps: 0,
            conflicts: 0,
            has_unset_property: false,
        };
        let mut base = opened.clone();
        loop {
            let located = |error: Error| error.at_version(base.version());
            self.ensure_possible(&base).map_err(located)?;
            match self.step(&base, &mut course) {
                Ok(Progress::Dropped(committed)) => return Ok(committed),
                Ok(Progress::Committed) if course.steps < MOST_STEPS => {}
                Ok(Progress::Committed) => return Err(located(self.undone("other writers undo the steps"))),
                Ok(Progress::Undone(error)) => return Err(located(error)),
                Err(error) if error.kind() != ErrorKind::CommitConflict => return Err(located(error)),
                Err(error) if course.steps >= MOST_STEPS => {
                    return Err(located(self.undone("other writers undo the steps").with_source(error)));
                }
                Err(error) => {
                    if course.conflicts == MOST_CONFLICTS || !(self.is_of_rows(&error) || course.steps > 0) {
                        return Err(error);
                    }
                    course.conflicts += 1;
                }
            }
            let newest = base.refresh()?;
            // Another table has replaced this one, so it is not known what should be dropped from it.
            if newest.metadata().id != base.metadata().id {
                return Err(newest.segment().replaced(newest.storage()));
            }
            base = newest;
        }
    }

    /// Commits the next step of the drop, which may be the last one.
    fn step(&self, base: &Snapshot, course: &mut Course<'_>) -> Result<Progress> {
        if traces::property_in_use(&self.feature, base.metadata()).is_some() && course.has_unset_property {
            return Ok(Progress::Undone(self.undone("a property that the drop has unset was set again")));
        }
        if course.removal.unset_property(base)? {
            course.has_unset_property = true;
            course.note_step();
            return Ok(Progress::Committed);
        }
        if course.removal.step(base)? {
            course.note_step();
            return Ok(Progress::Committed);
        }
        // At this point, no file of `base` uses the feature. If other writers add files that use it from now on,
        // their commits conflict with this one.
        let protects = match self.newest_use(base, &mut course.history)? {
            None => false,
            Some(version) if self.truncate_history => {
                checkpoints::ensure_after(base, version, 1, self.environment, || course.note_step())?;
                truncation::truncate(base, version, &self.feature, self.environment)?;
                // Another writer may have restored an earlier version since then.
                if let Some(version) = course.history.newest_use(base)? {
                    let what = format!("version {version} makes use of it again");
                    return Ok(Progress::Undone(self.undone(&what)));
                }
                false
            }
            Some(version) => {
                let count = checkpoints::BARRIERS;
                checkpoints::ensure_after(base, version, count, self.environment, || course.note_step())?;
                true
            }
        };
        let committed = self.last(base, protects)?.commit_or_fail()?;
        if protects {
            checkpoints::write_last(base, &committed, self.environment);
        }
        Ok(Progress::Dropped(committed))
    }

    /// Returns whether the conflict only concerns rows of other writers. If the feature is row tracking, this includes
    /// conflicts over its metadata domain, which changes whenever other writers add rows.
    fn is_of_rows(&self, conflict: &Error) -> bool {
        conflict.reason().is_some_and(|reason| {
            OF_ROWS.contains(&reason)
                || (self.feature == TableFeature::RowTracking && reason == "domain_changed")
        })
    }

    /// Returns the error for a drop whose steps other writers have undone.
    fn undone(&self, what: &str) -> Error {
        Error::new(
            ErrorKind::CommitConflict,
            format!("the feature '{}' cannot be dropped while others use it: {what}", self.feature),
        )
        .with_hint("stop the other use, and drop the feature again: it continues where it stopped")
    }

    /// Returns the newest readable version that uses the feature.
    fn newest_use(&self, base: &Snapshot, history: &mut History<'_>) -> Result<Option<u64>> {
        if !self.leaves_history() {
            return Ok(None);
        }
        match history.newest_use(base) {
            // A version that cannot be read may use the feature. If the history is kept, checkpoints hide that
            // version, so it does not prevent the drop.
            Err(error) if error.kind() == ErrorKind::Unsupported && !self.truncate_history => {
                history.give_up_to(base)?;
                Ok(Some(base.version()))
            }
            found => found,
        }
    }

    /// Returns whether clients without the feature may be unable to read earlier versions, or to preserve them.
    fn leaves_history(&self) -> bool {
        match self.feature {
            // This feature leaves no traces in any version.
            TableFeature::VacuumProtocolCheck => false,
            TableFeature::CheckpointProtection => true,
            _ => self.feature.kind() == Some(FeatureKind::ReaderWriter),
        }
    }

    /// Refuses a drop that cannot succeed, before its first step.
    fn ensure_possible(&self, base: &Snapshot) -> Result<()> {
        let feature = &self.feature;
        let supported = base.protocol().writer_features();
        if !supported.contains(feature) {
            return Err(Error::invalid_argument(format!(
                "the table does not support the feature '{feature}'"
            )));
        }
        if let Some(other) = supported.iter().find(|other| other.requires().contains(feature)) {
            return Err(Error::invalid_argument(format!(
                "the feature '{feature}' cannot be dropped, because the feature '{other}' needs it"
            ))
            .with_hint(format!("drop the feature '{other}' first")));
        }
        if self.truncate_history
            && feature.kind() != Some(FeatureKind::ReaderWriter)
            && !self.leaves_history()
        {
            return Err(Error::invalid_argument(format!(
                "the history is not truncated when the feature '{feature}' is dropped, because readers do not need it"
            ))
            .with_hint("drop the feature without truncating the history"));
        }
        let is_protected = *feature == TableFeature::CheckpointProtection
            && protected_before(base.protocol(), base.metadata())? > 0;
        if is_protected && !self.truncate_history {
            return Err(Error::invalid_argument(format!(
                "the feature '{feature}' cannot be dropped while the history has versions that it protects"
            ))
            .with_hint("drop the feature and truncate the history"));
        }
        traces::ensure_removable(base, feature)
    }

    /// Returns the transaction that drops the feature from a table that does not use it. If `protects` is true, it
    /// also protects the earlier checkpoints.
    fn last(&self, base: &Snapshot, protects: bool) -> Result<Transaction> {
        let mut draft = Draft::of(base, self.environment)?;
        traces::remove(&mut draft, &self.feature)?;
        draft.objection = removal::objection(base, &self.feature)?;
        draft.dropped = Some(self.feature.clone());
        if protects {
            draft.features.push(TableFeature::CheckpointProtection);
        }
        let operation = Operation::new("DROP FEATURE")
            .parameter("featureName", self.feature.name())
            .parameter("truncateHistory", self.truncate_history)
            .custom_metadata(self.custom_metadata.clone())?;
        let mut transaction = draft.finish(operation)?.ok_or_else(removal::unchanged)?;
        if protects {
            transaction.protect_checkpoints();
            if self.feature == TableFeature::DeletionVectors {
                removal::keep_vectors(&mut transaction, base, self.environment.now_ms())?;
            }
        }
        Ok(transaction)
    }
}
