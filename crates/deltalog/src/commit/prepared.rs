//! A commit that is ready to be put: its bytes, and its actions for the work after the commit.
//!
//! Checksums and checkpoints are computed from the actions that were committed. The commit is not read back for this;
//! the transaction keeps its actions in memory as record batches.

use arrow::array::RecordBatch;
use object_store::PutPayload;

use super::changes::Changes;
use crate::log::replay::Commit;
use crate::protocol::{CommitInfo, DomainMetadata, Metadata};

/// The commit of one attempt.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The text of the commit.
    pub(super) payload: PutPayload,
    /// The content of the commit's `commitInfo`.
    pub(super) info: CommitInfo,
    /// The metadata, if the transaction sets it.
    pub(super) metadata: Option<Metadata>,
    /// The `add` actions, including those for files with deleted rows, in batches with the log's columns.
    pub(super) adds: Vec<RecordBatch>,
    /// The logical files that the commit removes because it deletes some of their rows, in batches with the log's
    /// columns.
    pub(super) replaced: Vec<RecordBatch>,
    /// The metadata domains that only this attempt sets, in addition to the transaction's domains.
    pub(super) domains: Vec<DomainMetadata>,
}

impl Prepared {
    /// Returns the actions that were committed as `version`. `changes` are the changes of the transaction.
    pub(super) fn into_commit(self, version: u64, changes: &Changes) -> OwnCommit {
        let mut others = Commit::without_files(version);
        others.protocol.clone_from(&changes.protocol);
        others.metadata = self.metadata;
        others.commit_info = Some(self.info);
        others.transactions.clone_from(&changes.transactions);
        others.cdc.clone_from(&changes.change_files);
        others.domains = changes.domains.iter().cloned().chain(self.domains).collect();
        let removes = changes.removes.iter().cloned().chain(self.replaced).collect();
        OwnCommit { others, adds: self.adds, removes }
    }
}

/// A commit that a transaction has made.
#[derive(Debug)]
pub(crate) struct OwnCommit {
    /// The commit without its file actions.
    pub(crate) others: Commit,
    /// The `add` actions, in batches with the log's columns.
    pub(crate) adds: Vec<RecordBatch>,
    /// The `remove` actions, or the `add` actions of the removed files, in batches with the log's columns.
    pub(crate) removes: Vec<RecordBatch>,
}

impl OwnCommit {
    /// Returns each batch of file actions as a commit of its own, without other actions. The order of these commits
    /// does not matter, because no logical file is both added and removed.
    pub(crate) fn batches(&self) -> Vec<Commit> {
        let version = self.others.version;
        let removes = self.removes.iter().map(|removes| Commit::of_removes(version, removes.clone()));
        removes.chain(self.adds.iter().map(|adds| Commit::of_adds(version, adds.clone()))).collect()
    }
}
