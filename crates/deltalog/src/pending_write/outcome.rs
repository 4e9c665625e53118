//! The outcome of a write.

use crate::error::Result;
use crate::transaction::{AlreadyApplied, Committed, Conflict, Outcome};

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The write was committed.
    Committed(Committed),
    /// There was nothing to do: the table has recorded this write of an application, or a later one.
    AlreadyApplied(AlreadyApplied),
    /// There was nothing to do: another writer has created the table first, and the mode is `Ignore`.
    TableExists(Conflict),
}

impl WriteOutcome {
    /// Returns the outcome of a write for the outcome of its transaction.
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
            Self::AlreadyApplied(_) | Self::TableExists(_) => None,
        }
    }
}
