//! The files that make up a batch.

use std::sync::Arc;

use arrow::array::RecordBatch;

use super::admission::StreamLimits;
use super::commits::{Content, StreamCommit};
use super::offset::Index;
use super::table_stream::{State, TableStream};
use super::walk::{Part, Position, Way};
use crate::error::{Error, Result};
use crate::log::CommitTimes;
use crate::scan::changes::{ChangeSequence, FeedCommit, FeedPruner};

impl TableStream {
    /// Returns the files of the batch between two positions, as one part for each version.
    pub(super) fn parts(&self, from: Position, until: Position) -> Result<Vec<Part>> {
        self.located(|| {
            let mut state = self.state();
            let mut parts = Vec::new();
            let until = (until.version, until.index.unwrap_or(Index::Base));
            if (from.version, from.index) >= (until.0, Some(until.1)) {
                return Ok(parts);
            }
            self.check_start(&mut state, from)?;
            let mut admission = StreamLimits::unlimited().admission();
            self.walk(&mut state, from, Some(until), Way::Again, &mut admission, &mut |part| {
                parts.push(part)
            })?;
            Ok(parts)
        })
    }

    /// Returns the files of a part as rows with the columns of the log. If statistics are requested and still
    /// available, the files have them.
    pub(super) fn files(&self, part: &Part, with_statistics: bool) -> Result<Vec<RecordBatch>> {
        self.located(|| {
            let mut state = self.state();
            if part.is_initial {
                return self.initial(&mut state, part.version)?.files(part.files.clone());
            }
            match &self.commit(&mut state, part.version, with_statistics)?.content {
                Content::Files { files, .. } => Ok(vec![files.slice(part.files.start, part.files.len())]),
                Content::Changes(_) => Err(Error::invalid_argument(
                    "the changes of a table are not a list of files: ask the batch for its changes",
                )),
            }
        })
    }

    /// Returns the changes in `parts`, without files that `pruner` excludes.
    pub(super) fn changes(&self, parts: &[Part], pruner: Option<&FeedPruner>) -> Result<Vec<FeedCommit>> {
        self.located(|| {
            let mut state = self.state();
            let excluded = self.options().excluded.as_ref();
            let is_excluded = |path: &str| excluded.is_some_and(|excluded| excluded.is_match(path));
            let mut times = None;
            let mut commits = Vec::with_capacity(parts.len());
            for Part { version, is_initial, files } in parts {
                let (version, files) = (*version, files.clone());
                if *is_initial {
                    let timestamp_ms = self.snapshot().at_version(version)?.timestamp_ms()?;
                    for files in self.initial(&mut state, version)?.files(files)? {
                        let all = 0..files.num_rows();
                        let changes = ChangeSequence::of_snapshot(version, &files)?;
                        commits.push(changes.part(all, is_excluded, timestamp_ms, pruner)?);
                    }
                    continue;
                }
                let with_statistics = pruner.is_some_and(FeedPruner::reads_statistics) && files.len() > 1;
                let commit = self.commit(&mut state, version, with_statistics)?;
                // A commit that no longer exists has no changes to return.
                let Content::Changes(changes) = &commit.content else { continue };
                if times.is_none() {
                    times = Some(state.commits.times()?);
                }
                let in_commit_ms = changes.in_commit_timestamp_ms();
                let shown =
                    times.as_ref().and_then(|times: &CommitTimes| times.shown_of(version, in_commit_ms));
                let timestamp_ms = shown.unwrap_or_else(|| changes.timestamp_ms());
                commits.push(changes.part(files, is_excluded, timestamp_ms, pruner)?);
            }
            Ok(commits)
        })
    }

    fn commit(&self, state: &mut State, version: u64, with_statistics: bool) -> Result<Arc<StreamCommit>> {
        match with_statistics {
            true => state.commits.with_statistics(version, self.options()),
            false => state.commits.commit(version, self.options()),
        }
    }
}
