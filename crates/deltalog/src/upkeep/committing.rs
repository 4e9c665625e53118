//! Commits transactions, and does the work that follows a commit.

use super::after_commit;
use crate::commit::{Committed, Conflict, Outcome, Transaction};
use crate::error::{Error, Result};

/// A conflict, together with the transaction that was not committed because of it.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) conflict: Conflict,
    pub(crate) transaction: Box<Transaction>,
}

impl Lost {
    pub(crate) fn into_error(self) -> Error {
        self.transaction.failed(self.conflict)
    }
}

impl Transaction {
    /// Commits the transaction. If a checkpoint is due after the new version, it is written as well.
    ///
    /// # Errors
    /// `CommitStateUnknown` if the store gave no answer and the commit cannot be read back. Any other error means that
    /// nothing was committed. `InvalidArgument` if the changes must not be in one commit.
    pub fn commit(self) -> Result<Outcome> {
        self.commit_then(after_commit)
    }

    /// Commits the transaction like [`Transaction::commit`], but returns a conflict as an error. If an application has
    /// already recorded its progress, this also counts as a conflict.
    ///
    /// # Errors
    /// `CommitConflict`, or `TableAlreadyExists` if the transaction creates the table; also the errors of
    /// [`Transaction::commit`].
    pub fn commit_or_fail(self) -> Result<Committed> {
        self.attempt()?.map_err(Lost::into_error)
    }

    /// Commits the transaction. If there is a conflict, returns it together with the transaction, which may be repeated
    /// on a newer version. If an application has already recorded its progress, returns an error.
    ///
    /// # Errors
    /// The errors of [`Transaction::commit`]; `CommitConflict` if an application has already recorded its progress.
    pub(crate) fn attempt(self) -> Result<Result<Committed, Lost>> {
        let url = self.storage().url();
        match self.commit()? {
            Outcome::Committed(committed) => Ok(Ok(committed)),
            Outcome::AlreadyApplied(applied) => Err(applied.into_error(url)),
            Outcome::Conflict { conflict, transaction } => Ok(Err(Lost { conflict, transaction })),
        }
    }
}
