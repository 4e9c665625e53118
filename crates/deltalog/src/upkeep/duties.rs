//! The work after a commit. It is done either by the commit itself or in the background.

use super::checksum::{self, Derived, Since};
use super::cleanup::{self, Pace};
use super::{NO_CHECKSUM, compaction};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::background::{Task, Turn};
use crate::runtime::environment::Environment;
use crate::runtime::panics::caught;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::upkeep::checkpoint;

/// If a checksum is written more than this many milliseconds after its commit, it is first checked that the same table
/// still exists.
const SOON_MS: u64 = 1_000;

/// The checksum of a committed version that may still have to be written.
pub(super) enum DueChecksum {
    /// Nothing has to be done: the checksum was written, or cannot be derived.
    None,
    /// The checksum was derived, but a checkpoint must be written before it.
    Derived(Box<Derived>),
    /// The checksum must still be derived. This may require a request to the store, for which the commit does not wait.
    Underived(Box<Since>),
}

/// A committed version, and the data for the work after it.
pub(super) struct Duties {
    /// The version on which the transaction was based.
    pub(super) base: Snapshot,
    pub(super) version: u64,
    /// The size of the commit in bytes.
    pub(super) bytes: u64,
    /// An environment without a background. Only commits queue work there, and this work makes no commits.
    pub(super) environment: Environment,
    /// The time when the version was committed, in milliseconds since the epoch, if it is needed.
    pub(super) committed_ms: Option<i64>,
    pub(super) checksum: DueChecksum,
}

impl Duties {
    /// Queues `work` for the background of `environment`. If there is no background, does the work immediately.
    pub(super) fn submit(self, environment: &Environment, duty: &'static str, work: fn(&Self, Pace<'_>)) {
        let lane = self.storage().url();
        self.submit_in(lane, environment, duty, work);
    }

    /// Does the same as [`Duties::submit`], but in another lane than the table's own.
    pub(super) fn submit_in(
        self,
        lane: String,
        environment: &Environment,
        duty: &'static str,
        work: fn(&Self, Pace<'_>),
    ) {
        let Some(queue) = environment.background() else { return work(&self, Pace::Brief) };
        let work = move |turn: Option<&Turn<'_>>| work(&self, turn.map_or(Pace::Brief, Pace::Behind));
        if let Err(task) = queue.submit(Task { lane, duty, work: Box::new(work), is_optional: false }) {
            task.run();
        }
    }

    /// Writes the checkpoint and then the checksum, and cleans up the log.
    pub(super) fn write_checkpoint(&self, pace: Pace<'_>) {
        let counted = self.attempt("its checkpoint could not be written", || {
            checkpoint::of_version(&self.base, self.version, &self.environment)
        });
        self.write_checksum(counted.flatten());
        self.attempt("the expired part of its log could not be deleted", || {
            cleanup::after_checkpoint(self, pace)
        });
    }

    /// Writes the derived checksum, unless a checkpoint has `counted` another number of live files. In that case,
    /// computes the checksum by counting. Also counts if no checksum was derived, if the derived one cannot be written,
    /// or if it lacks totals and a checkpoint has counted the files.
    fn write_checksum(&self, counted: Option<u64>) {
        let underived = match &self.checksum {
            DueChecksum::Underived(since) => self.attempt(NO_CHECKSUM, || checksum::derive(since)).flatten(),
            _ => None,
        };
        let derived = match &self.checksum {
            DueChecksum::Derived(derived) => Some(derived.as_ref()),
            _ => underived.as_ref(),
        };
        if let Some(derived) = derived {
            let is_right = counted.is_none_or(|counted| derived.agrees_with(self, counted));
            if !is_right {
                self.attempt(NO_CHECKSUM, || checksum::doubt_others(self));
            }
            let write = || checksum::write_later(self, derived);
            if is_right
                && (derived.is_complete || counted.is_none())
                && self.attempt(NO_CHECKSUM, write).is_some()
            {
                return;
            }
        }
        self.attempt(NO_CHECKSUM, || checksum::recount(self));
    }

    /// Writes the checksum, if this was not done before the commit returned.
    pub(super) fn write_due_checksum(&self) {
        let DueChecksum::Underived(since) = &self.checksum else { return };
        self.attempt(NO_CHECKSUM, || {
            let Some(derived) = checksum::derive(since)? else { return Ok(()) };
            match self.committed_ms.is_some_and(|committed| self.environment.ms_since(committed) < SOON_MS) {
                true => checksum::write_behind(self, &derived),
                false => checksum::write_later(self, &derived),
            }?;
            checksum::take_back_if_doubted(self.storage(), self.version)
        });
    }

    /// Writes the checksum, and a log compaction if one is due, and continues an earlier clean-up.
    pub(super) fn write_compaction(&self, pace: Pace<'_>) {
        self.write_due_checksum();
        self.attempt("its log compaction could not be written", || compaction::keep(self));
        self.attempt("the clean-up of its log could not continue", || cleanup::go_on(self, pace));
    }

    pub(super) fn storage(&self) -> &Storage {
        self.base.storage()
    }

    fn attempt<T>(&self, failure: &'static str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        attempt((self.storage(), self.version), failure, work)
    }
}

/// Does `work`, and logs its failure, because a commit must not fail after it was made.
pub(super) fn attempt<T>(
    (storage, version): (&Storage, u64),
    failure: &'static str,
    work: impl FnOnce() -> Result<T>,
) -> Option<T> {
    // This also catches panics, for example if an Arrow array would exceed 2 GiB or no thread can be started.
    let done = caught(work, |panic| {
        Error::new(ErrorKind::Unavailable, format!("the work after the commit panicked with '{panic}'"))
    });
    let warn = |error: &Error| {
        tracing::warn!(table = storage.url(), version, %error, "the commit succeeded, but {failure}");
    };
    done.inspect_err(warn).ok()
}
