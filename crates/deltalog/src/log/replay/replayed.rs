//! The content of a log file after a checkpoint: a commit, or a compaction that replaces several.
//!
//! A compaction has the newest action for each file, application and domain, and no other. That suffices for the state
//! of a table, but does not show what each commit has done: a file that one commit has added and a later one has
//! removed is only removed, and `commitInfo` and `cdc` are left out. Protocol: "Log Compaction Files".

use std::sync::Arc;

use super::commit::Commit;

/// A file of the log after the checkpoint.
#[derive(Debug, Clone)]
pub(crate) enum Replayed {
    /// A version, with all its actions.
    Commit(Arc<Commit>),
    /// Several versions, with the newest of their actions.
    Compaction(Compaction),
}

/// A log compaction. It has its own type, so that code that needs every single commit cannot mistake it for a commit.
#[derive(Debug, Clone)]
pub(crate) struct Compaction {
    start: u64,
    actions: Arc<Commit>,
}

impl Compaction {
    /// Returns the compaction that begins with version `start`, and whose parsed lines are `actions`.
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

    /// Returns the commit, if it is one.
    pub(crate) fn commit(&self) -> Option<&Arc<Commit>> {
        match self {
            Self::Commit(commit) => Some(commit),
            Self::Compaction(_) => None,
        }
    }

    /// Returns the newest actions of the versions, which are all that the state of the last version depends on. They do
    /// not show the changes of the individual versions.
    pub(crate) fn newest_actions(&self) -> &Arc<Commit> {
        match self {
            Self::Commit(commit) => commit,
            Self::Compaction(compaction) => &compaction.actions,
        }
    }
}
