//! A commit, and the work after it.

use super::after_commit;
use crate::commit::{Committed, Outcome, Transaction};
use crate::error::Result;

impl Transaction {
    /// Commits the transaction. If the new version completes the table's checkpoint interval, a checkpoint is
    /// written as well.
    ///
    /// # Errors
    /// `CommitStateUnknown` if the store gave no answer and the commit cannot be read back. Every other error
    /// means that nothing was committed; `InvalidArgument` if the changes must not be in one commit.
    pub fn commit(self) -> Result<Outcome> {
        self.commit_then(after_commit)
    }

    /// Commits the transaction like [`Transaction::commit`], but returns a conflict as an error. That an application
    /// has recorded its progress already is a conflict here.
    ///
    /// # Errors
    /// `CommitConflict`, or `TableAlreadyExists` if the transaction creates the table; also the errors of
    /// [`Transaction::commit`].
    pub fn commit_or_fail(self) -> Result<Committed> {
        let url = self.storage().url();
        match self.commit()? {
            Outcome::Committed(committed) => Ok(committed),
            Outcome::AlreadyApplied(applied) => Err(applied.into_error(url)),
            Outcome::Conflict { conflict, transaction } => Err(transaction.failed(conflict)),
        }
    }
}
