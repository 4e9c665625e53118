//! The content of a log file that follows the checkpoint: a commit, or a compaction that replaces several commits.
//!
//! A compaction has only the newest action for each file, application and domain, and the newest protocol and metadata.
//! They suffice for the state of a table, but do not show what each commit has changed: if one commit adds a file and a
//! later one removes it, the compaction only has the `remove` action, and it never has `commitInfo` or `cdc` actions.
//! Protocol: "Log Compaction Files".

use std::sync::Arc;

use super::commit::Commit;

/// A file of the log after the checkpoint.
#[derive(Debug, Clone)]
pub(crate) enum Replayed {
    /// The commit of one version, with all its actions.
    Commit(Arc<Commit>),
    /// A compaction of several versions, with only the newest of their actions.
    Compaction(Compaction),
}

/// A log compaction. It has its own type, so that code that needs every single commit cannot take it for a commit.
#[derive(Debug, Clone)]
pub(crate) struct Compaction {
    start: u64,
    actions: Arc<Commit>,
}

impl Compaction {
    /// Returns the compaction that begins with version `start`. `actions` are its parsed lines.
    pub(super) fn new(start: u64, actions: Arc<Commit>) -> Self {
        Self { start, actions }
    }
}

impl Replayed {
    /// Returns the first version.
    pub(crate) fn start(&self) -> u64 {
        match self {
            Self::Commit(commit) => commit.version,
            Self::Compaction(compaction) => compaction.start,
        }
    }

    /// Returns the last version.
    pub(crate) fn version(&self) -> u64 {
        self.newest_actions().version
    }

    /// Returns the commit, if this is one.
    pub(crate) fn commit(&self) -> Option<&Arc<Commit>> {
        match self {
            Self::Commit(commit) => Some(commit),
            Self::Compaction(_) => None,
        }
    }

    /// Returns the newest actions of the versions. They show how the versions together change the state of the table,
    /// but not what each version has changed.
    pub(crate) fn newest_actions(&self) -> &Arc<Commit> {
        match self {
            Self::Commit(commit) => commit,
            Self::Compaction(compaction) => &compaction.actions,
        }
    }
}
