//! The commits `VACUUM START` and `VACUUM END`, with the names, parameters and metrics of the JVM implementation.
//!
//! These commits change nothing and depend on nothing. If the metadata changes concurrently, they are simply
//! committed again after that change. The first commit announces the deletion, so that the history explains missing
//! files even if there is never a second commit.

use serde_json::{Map, Value};

use super::request::Retention;
use crate::commit::{Operation, Transaction};
use crate::error::Result;
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;

/// The maximum number of times that a commit is tried again because another writer has changed the metadata.
const MOST_CONFLICTS: u32 = 20;

/// The data that both commits share.
#[derive(Debug)]
pub(super) struct Commits {
    pub(super) custom_metadata: Map<String, Value>,
    pub(super) environment: Environment,
}

impl Commits {
    /// Commits the start of a VACUUM. Returns the version.
    ///
    /// # Errors
    /// Returns the errors of a commit.
    pub(super) fn start(
        &self,
        base: &Snapshot,
        retention: Retention,
        is_enforced: bool,
        files: u64,
        bytes: u64,
    ) -> Result<u64> {
        let operation = Operation::new("VACUUM START")
            .parameter("retentionCheckEnabled", is_enforced)
            .parameter("defaultRetentionMillis", retention.configured_ms)
            .metric("numFilesToDelete", files)
            .metric("sizeOfDataToDelete", bytes);
        let operation = match retention.specified_ms {
            Some(ms) => operation.parameter("specifiedRetentionMillis", ms),
            None => operation,
        };
        self.commit(base, operation)
    }

    /// Commits the end of a VACUUM. Returns the version.
    ///
    /// # Errors
    /// Returns the errors of a commit.
    pub(super) fn completed(&self, base: &Snapshot, files: u64, directories: u64) -> Result<u64> {
        let operation = Operation::new("VACUUM END")
            .parameter("status", "COMPLETED")
            .metric("numDeletedFiles", files)
            .metric("numVacuumedDirectories", directories);
        self.commit(base, operation)
    }

    /// Commits the end of a VACUUM that may have failed to delete some files.
    ///
    /// # Errors
    /// Returns the errors of a commit.
    pub(super) fn failed(&self, base: &Snapshot) -> Result<u64> {
        self.commit(base, Operation::new("VACUUM END").parameter("status", "FAILED"))
    }

    fn commit(&self, base: &Snapshot, operation: Operation) -> Result<u64> {
        let operation = operation.custom_metadata(self.custom_metadata.clone())?;
        let mut base = base.clone();
        for _ in 0..MOST_CONFLICTS {
            let transaction = Transaction::new(&base, operation.clone(), &self.environment)?;
            match transaction.attempt()? {
                Ok(committed) => return Ok(committed.version),
                Err(_) => base = base.refresh()?,
            }
        }
        let transaction = Transaction::new(&base, operation, &self.environment)?;
        transaction.commit_or_fail().map(|committed| committed.version)
    }
}
