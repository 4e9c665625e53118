//! Encodes changes as lines of a commit. Protocol: "Delta Log Entries", "Actions".

use arrow::array::RecordBatch;
use bytes::Bytes;

use super::changes::Changes;
use super::row_ids::RowIds;
use crate::error::Result;
use crate::log::replay::{adds_of, batches_of_adds, removes_of};
use crate::protocol::Action;

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

/// The `add` actions of a commit.
#[derive(Debug, Clone)]
pub(super) struct EncodedAdds {
    /// The lines of these actions in the commit.
    pub(super) lines: Vec<Bytes>,
    /// The `add` actions as record batches with the log's columns.
    pub(super) batches: Vec<RecordBatch>,
}

impl Changes {
    /// Returns the lines that are the same in every attempt: all except `commitInfo`, `protocol`,
    /// `metaData` and `add`.
    pub(super) fn fixed_lines(&self) -> Result<Vec<Bytes>> {
        let mut lines = Lines::default();
        for progress in &self.transactions {
            lines.push(&Action::Txn(progress.clone()))?;
        }
        for domain in &self.domains {
            lines.push(&Action::DomainMetadata(domain.clone()))?;
        }
        for file in &self.change_files {
            lines.push(&Action::Cdc(file.clone()))?;
        }
        for remove in self.removes.iter().map(removes_of) {
            remove?.into_iter().try_for_each(|remove| lines.push(&Action::Remove(remove)))?;
        }
        Ok(lines.finish())
    }

    /// Returns the `add` actions. If the table supports row tracking, `row_ids` assigns ids to the rows of new files.
    pub(super) fn encode_adds(&self, mut row_ids: Option<&mut RowIds>) -> Result<EncodedAdds> {
        let (mut lines, mut batches) = (Lines::default(), Vec::with_capacity(self.adds.len()));
        for batch in &self.adds {
            let mut adds = adds_of(batch)?;
            match &mut row_ids {
                Some(row_ids) => {
                    adds.iter_mut().try_for_each(|add| row_ids.assign(add))?;
                    batches.extend(batches_of_adds(&adds)?);
                }
                None => batches.push(batch.clone()),
            }
            adds.into_iter().try_for_each(|add| lines.push(&Action::Add(add)))?;
        }
        Ok(EncodedAdds { lines: lines.finish(), batches })
    }
}
