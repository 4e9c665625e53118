//! Moves rows that wait in memory to the temporary file.

use super::super::held::{Piece, gather};
use super::super::overflow::Place;
use super::super::split::PartitionId;
use super::{Partitions, at};
use crate::error::Result;

/// The approximate uncompressed size in bytes of a block in the temporary file.
const BLOCK_BYTES: usize = 256 << 10;

impl Partitions {
    /// Writes all rows that wait in memory to the temporary file, as a run. Returns whether there were any rows.
    pub(super) fn set_aside(&mut self) -> Result<bool> {
        let mut ids = std::mem::take(&mut self.waiting);
        ids.sort_unstable();
        ids.dedup();
        if self.pieces == 0 {
            return Ok(false);
        }
        let mut block: Vec<(PartitionId, Piece)> = Vec::new();
        let mut bytes = 0;
        self.overflow.begin_run();
        for id in ids {
            for piece in self.take_pieces(id)? {
                let mut rest = Some(piece);
                while let Some(piece) = rest.take() {
                    let per_row = piece.bytes_per_row().max(1);
                    let (first, others) = piece.cut((BLOCK_BYTES.saturating_sub(bytes) / per_row).max(1));
                    bytes += per_row * first.num_rows();
                    block.push((id, first));
                    rest = others;
                    if bytes >= BLOCK_BYTES || rest.is_some() {
                        self.write_block(&mut block)?;
                        bytes = 0;
                    }
                }
            }
        }
        self.write_block(&mut block)?;
        Ok(true)
    }

    fn write_block(&mut self, block: &mut Vec<(PartitionId, Piece)>) -> Result<()> {
        let (ids, pieces): (Vec<PartitionId>, Vec<Piece>) = block.drain(..).unzip();
        if pieces.is_empty() {
            return Ok(());
        }
        let rows = gather(&pieces)?;
        let block = self.overflow.write(&rows)?;
        let mut start = 0;
        for (id, piece) in ids.into_iter().zip(pieces) {
            let rows = piece.num_rows();
            let places = &mut at(&mut self.partitions, id)?.places;
            match places.last_mut() {
                Some(last) if last.is_followed_by(block, start) => last.grow(rows),
                _ => places.push(Place::new(block, start, rows)),
            }
            start += rows;
        }
        Ok(())
    }
}
