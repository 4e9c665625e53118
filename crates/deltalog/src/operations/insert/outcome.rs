//! The outcome of a write.

use crate::commit::{AlreadyApplied, Committed, Conflict, Outcome};
use crate::error::Result;

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The write was committed.
    Committed(Committed),
    /// There was nothing to do: the table has already recorded this write, or a later one, of the same application.
    AlreadyApplied(AlreadyApplied),
    /// There was nothing to do: another writer has already created the table, and the mode is `Ignore`.
    TableExists(Conflict),
    /// There was nothing to change, and the write skips empty commits ([`PendingWrite::skip_if_empty`]).
    ///
    /// [`PendingWrite::skip_if_empty`]: crate::PendingWrite::skip_if_empty
    Unchanged,
}

impl WriteOutcome {
    /// Converts the outcome of the transaction to the outcome of the write.
    ///
    /// # Errors
    /// `CommitConflict` or `TableAlreadyExists` for a conflict.
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
