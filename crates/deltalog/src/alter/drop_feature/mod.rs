//! Features that a table supports no longer. Protocol: "Supported Features"; the section "Checkpoint Protection" that
//! is proposed for it.
//!
//! ```text
//!   what the newest version has of the feature is removed, in commits of its own (`removal`, `traces`)
//!     ──► for features of readers, what earlier versions have of it (`history`)
//!           nothing ──────────────────────────► the protocol without the feature
//!           something ── truncate history ────► the log before is deleted when it is old enough, and then the same
//!                     └─ keep history ────────► checkpoints without a trace, then the protocol without the feature and
//!                                               with `checkpointProtection` (`checkpoints`)
//! ```
//!
//! - A client without the feature must be able to work with the table afterwards, so nothing may be left that only the
//!   feature explains.
//! - What only tells how the table is kept, such as row ids, deletion vectors or physical names, is removed. What users
//!   have said about their data, such as a constraint, they remove themselves first.
//! - Every step leaves the table as readers had it, so that a drop that was interrupted is begun again.
//! - The metadata are committed as well, even if they stay the same: a commit that makes use of the feature meanwhile
//!   is a conflict. After the first step, a drop that conflicts looks at the table anew.
//! - The steps and the names of their operations are those of the JVM implementation. It keeps history without looking
//!   whether something in it makes use of the feature.

mod checkpoints;
mod history;
mod removal;
mod traces;

use serde_json::{Map, Value};

use super::draft::Draft;
use super::features;
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{FeatureKind, TableFeature, protected_before};
use crate::snapshot::Snapshot;
use crate::transaction::{Committed, Operation, Transaction};

/// How often a drop begins anew because others have committed.
const MOST_CONFLICTS: u32 = 10;

/// Drops a table feature, so that clients without it can work with the table.
///
/// What only tells how the table is kept is removed first, in commits before the one that lowers the protocol: files
/// are rewritten without deletion vectors, with the current types, or with the names that users see. What users have
/// said about their data, such as constraints, default values or columns of a type, they remove themselves.
///
/// Earlier versions that make use of a feature of readers stay readable: the table gets checkpoints that hide them from
/// clients without the feature, and the feature `checkpointProtection`, by which writers keep these checkpoints. With
/// `truncate_history` the log before is deleted instead, as soon as it is older than
/// `delta.dropFeatureTruncateHistory.retentionDuration`, or 24 hours. Until then that is refused, and the error says
/// when it will be possible.
///
/// `custom_metadata` are further fields of the last commit's `commitInfo`. Returns this commit.
///
/// # Errors
/// `InvalidArgument` if there is no such feature, if the table does not support it, if another feature needs it, if
/// something is left of it that only users can remove, or if the history is not old enough. `Unsupported` for a feature
/// that cannot be dropped here. `CommitConflict`; `CommitStateUnknown`; `CorruptLog` and `CorruptData`, and errors of
/// the store. Some of the commits before the last one may have been made then.
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

/// The drop of one feature.
struct FeatureDrop<'a> {
    feature: TableFeature,
    truncate_history: bool,
    custom_metadata: Map<String, Value>,
    environment: &'a Environment,
}

/// How far a drop has come.
enum Progress {
    /// A commit was made, after which the table is looked at anew.
    Committed,
    /// The table does not support the feature any more.
    Dropped(Committed),
}

impl FeatureDrop<'_> {
    fn run(&self, opened: &Snapshot) -> Result<Committed> {
        let (mut base, mut has_begun, mut conflicts) = (opened.clone(), false, 0);
        loop {
            let located = |error: Error| error.at_version(base.version());
            self.ensure_possible(&base).map_err(located)?;
            match self.step(&base, &mut has_begun) {
                Ok(Progress::Dropped(committed)) => return Ok(committed),
                Ok(Progress::Committed) => has_begun = true,
                Err(error) if error.kind() != ErrorKind::CommitConflict => return Err(located(error)),
                Err(_) if has_begun && conflicts < MOST_CONFLICTS => conflicts += 1,
                Err(error) => return Err(error),
            }
            base = base.refresh()?;
        }
    }

    /// Makes the next commit, or the last ones.
    fn step(&self, base: &Snapshot, has_begun: &mut bool) -> Result<Progress> {
        if removal::step(base, &self.feature, self.environment)? {
            return Ok(Progress::Committed);
        }
        // From here on `base` has nothing of the feature in its files: what others add since is a conflict.
        let protects = match self.newest_use(base)? {
            None => false,
            Some(version) if self.truncate_history => {
                *has_begun |= checkpoints::ensure_after(base, version, self.environment)?;
                checkpoints::truncate(base, self.environment)?;
                if let Some(version) = history::newest_use(base, &self.feature)? {
                    return Err(checkpoints::too_young(base, version, &self.feature)?);
                }
                false
            }
            Some(version) => {
                *has_begun |= checkpoints::ensure_barriers(base, version, self.environment)?;
                true
            }
        };
        let committed = self.last(base, protects)?.commit_or_fail()?;
        if protects {
            checkpoints::write_last(base, &committed, self.environment);
        }
        Ok(Progress::Dropped(committed))
    }

    /// Returns the newest version that can be read and makes use of the feature.
    fn newest_use(&self, base: &Snapshot) -> Result<Option<u64>> {
        if !self.leaves_history() {
            return Ok(None);
        }
        match history::newest_use(base, &self.feature) {
            // What cannot be read may make use of it. Checkpoints hide it.
            Err(error) if error.kind() == ErrorKind::Unsupported && !self.truncate_history => {
                Ok(Some(base.version()))
            }
            found => found,
        }
    }

    /// Returns whether earlier versions cannot be read, or not be kept, without the feature.
    fn leaves_history(&self) -> bool {
        match self.feature {
            // It leaves nothing in any version.
            TableFeature::VacuumProtocolCheck => false,
            TableFeature::CheckpointProtection => true,
            _ => self.feature.kind() == Some(FeatureKind::ReaderWriter),
        }
    }

    /// Refuses a drop that is not possible, whatever is done before it.
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

    /// Returns the transaction that drops the feature from a table that has nothing of it. With `protects` the
    /// checkpoints before it are protected.
    fn last(&self, base: &Snapshot, protects: bool) -> Result<Transaction> {
        let mut draft = Draft::of(base, self.environment)?;
        traces::remove(&mut draft, &self.feature)?;
        draft.depends_on_rows |= self.leaves_history();
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
