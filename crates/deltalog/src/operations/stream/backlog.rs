//! Measures how much of a table a stream has not read yet.

use super::offset::{Index, StreamOffset};
use super::table_stream::TableStream;

/// The part of a stream that comes after an offset, as far as the stream knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StreamBacklog {
    /// The number of versions, including the version that contains the offset.
    pub versions: u64,
    /// The number of files that the stream knows: the files of the snapshot with which it began, and of the commits
    /// that it has read.
    pub files: u64,
    /// The total size in bytes of the files that the stream knows.
    pub bytes: u64,
}

impl TableStream {
    /// Returns the size of the part after `offset`. Sends no requests to the store.
    pub fn backlog(&self, offset: &StreamOffset) -> StreamBacklog {
        let state = self.state();
        let next = state.commits.newest_version() + 1;
        // The files of the snapshot are counted from `state.initial`, so its commit is left out.
        let first = offset.version().saturating_add(u64::from(offset.is_initial()));
        let mut backlog =
            StreamBacklog { versions: next.saturating_sub(offset.version()), ..StreamBacklog::default() };
        let mut add = |sizes: &[u64], done: usize| {
            let left = sizes.get(done..).unwrap_or_default();
            backlog.files += left.len() as u64;
            backlog.bytes = left.iter().fold(backlog.bytes, |sum, size| sum.saturating_add(*size));
        };
        let done = match offset.index() {
            Index::Base | Index::SchemaChange | Index::AfterSchemaChange => 0,
            Index::File(index) => usize::try_from(index).unwrap_or(usize::MAX).saturating_add(1),
            Index::End => usize::MAX,
        };
        if let Some((version, files)) = &state.initial
            && offset.is_initial()
            && *version == offset.version()
        {
            add(files.sizes(), done);
        }
        for (version, commit) in state.commits.read_from(first) {
            add(commit.content.sizes(), if version == offset.version() { done } else { 0 });
        }
        backlog
    }

    /// Returns the offset after all versions that the stream has seen. Sends no requests to the store.
    pub fn newest(&self) -> StreamOffset {
        StreamOffset::new(self.table_id(), self.state().commits.newest_version(), Index::End, false)
    }
}
