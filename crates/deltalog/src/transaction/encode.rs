//! Changes as lines of a commit. Protocol: "Delta Log Entries", "Actions".

use bytes::Bytes;

use super::changes::Changes;
use super::row_ids::RowIds;
use crate::error::Result;
use crate::protocol::Action;
use crate::replay::{adds_of, removes_of};

/// The size in bytes at which a chunk of lines ends.
const CHUNK: usize = 8 << 20;

/// Lines of a commit, in chunks.
#[derive(Default)]
pub(super) struct Lines {
    chunks: Vec<Bytes>,
    last: Vec<u8>,
}

impl Lines {
    /// Appends the line of `action`.
    pub(super) fn push(&mut self, action: &Action) -> Result<()> {
        self.last.extend_from_slice(action.to_json_line()?.as_bytes());
        self.last.push(b'\n');
        if self.last.len() >= CHUNK {
            self.chunks.push(std::mem::take(&mut self.last).into());
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Vec<Bytes> {
        if !self.last.is_empty() {
            self.chunks.push(self.last.into());
        }
        self.chunks
    }
}

impl Changes {
    /// Returns the lines that are the same in every attempt: all but those of `commitInfo` and `add`.
    pub(super) fn fixed_lines(&self) -> Result<Vec<Bytes>> {
        let mut lines = Lines::default();
        if let Some(protocol) = &self.protocol {
            lines.push(&Action::Protocol(protocol.clone()))?;
        }
        if let Some(metadata) = &self.metadata {
            lines.push(&Action::Metadata(metadata.clone()))?;
        }
        for progress in &self.transactions {
            lines.push(&Action::Txn(progress.clone()))?;
        }
        for domain in &self.domains {
            lines.push(&Action::DomainMetadata(domain.clone()))?;
        }
        for remove in self.removes.iter().map(removes_of) {
            remove?.into_iter().try_for_each(|remove| lines.push(&Action::Remove(remove)))?;
        }
        Ok(lines.finish())
    }

    /// Returns the lines of the `add` actions. With row tracking, `row_ids` gives ids to the rows of new files.
    pub(super) fn add_lines(&self, mut row_ids: Option<&mut RowIds>) -> Result<Vec<Bytes>> {
        let mut lines = Lines::default();
        for batch in &self.adds {
            for mut add in adds_of(batch)? {
                if let Some(row_ids) = &mut row_ids {
                    row_ids.assign(&mut add)?;
                }
                lines.push(&Action::Add(add))?;
            }
        }
        Ok(lines.finish())
    }
}
