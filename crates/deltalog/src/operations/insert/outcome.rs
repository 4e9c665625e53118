//! The outcome of a write.

use crate::commit::{AlreadyApplied, Committed, Conflict, Outcome};
use crate::error::Result;

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The write was committed.
    Committed(Committed),
    /// The same application has already recorded this write, or a later one, in the table, so nothing was done.
    AlreadyApplied(AlreadyApplied),
    /// Another writer has already created the table, and the mode is `Ignore`, so nothing was done.
    TableExists(Conflict),
    /// The write changes nothing, and it skips empty commits ([`PendingWrite::skip_if_empty`]).
    ///
    /// [`PendingWrite::skip_if_empty`]: crate::PendingWrite::skip_if_empty
    Unchanged,
}

impl WriteOutcome {
    /// Converts the outcome of a transaction to the outcome of a write.
    ///
    /// # Errors
    /// Returns `CommitConflict` or `TableAlreadyExists` if the transaction had a conflict.
    pub(super) fn of(outcome: Outcome) -> Result<Self> {
        match outcome {
            Outcome::Committed(committed) => Ok(Self::Committed(committed)),
            Outcome::AlreadyApplied(applied) => Ok(Self::AlreadyApplied(applied)),
            Outcome::Conflict { conflict, transaction } => Err(transaction.failed(conflict)),
        }
    }

    /// Returns the version that was committed, if there is one.
    pub fn version(&self) -> Option<u64> {
        match self {
            Self::Committed(committed) => Some(committed.version),
            Self::AlreadyApplied(_) | Self::TableExists(_) | Self::Unchanged => None,
        }
    }
}
