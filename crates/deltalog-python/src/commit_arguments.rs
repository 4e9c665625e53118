//! What a writer says about its commit.

use deltalog::engine::protocol::SetTransaction;
use deltalog::engine::transaction::Operation;
use deltalog::{Error, PendingWrite, Result};
use pyo3::prelude::*;

/// What to record with a commit beside its data, as `deltalog.commit.CommitArguments` has it.
#[derive(FromPyObject)]
pub(crate) struct CommitArguments {
    /// A JSON object with further fields of `commitInfo`.
    custom_metadata: Option<String>,
    /// Applications with their versions and the times of these.
    app_transactions: Vec<(String, i64, Option<i64>)>,
}

impl CommitArguments {
    /// Returns the operation with the further fields of `commitInfo`, and the write with the progress of the
    /// applications.
    ///
    /// # Errors
    /// Those of [`Operation::custom_metadata`] and [`PendingWrite::with_app_transactions`].
    pub(crate) fn record(
        self,
        operation: Operation,
        pending: PendingWrite,
    ) -> Result<(Operation, PendingWrite)> {
        let operation = match self.custom_metadata {
            Some(json) => {
                let fields = serde_json::from_str(&json).map_err(|error| {
                    Error::invalid_argument("custom_metadata is not a JSON object").with_source(error)
                })?;
                operation.custom_metadata(fields)?
            }
            None => operation,
        };
        let progress = self.app_transactions.into_iter();
        let progress = progress
            .map(|(app_id, version, last_updated)| {
                let mut progress = SetTransaction::new(app_id, version);
                progress.last_updated = last_updated;
                progress
            })
            .collect();
        Ok((operation, pending.with_app_transactions(progress)?))
    }
}
