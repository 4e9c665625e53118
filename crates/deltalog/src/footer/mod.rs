//! The footers of Parquet files. All of them are decoded here, because the decoder trusts what they claim: it descends
//! into groups by recursion, and reserves memory for as many children as a group is said to have.

mod shape;
#[cfg(test)]
mod tests;
mod thrift;

use std::io::Read;

use parquet::errors::{ParquetError, Result};
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;

/// Reads and decodes the footer of `file`, without the page indexes.
pub(crate) fn decode(file: &impl ChunkReader) -> Result<ParquetMetaData> {
    let size = file.len();
    let too_small = |needed: usize| {
        ParquetError::EOF(format!("Parquet file too small. Size is {size} but need {needed}"))
    };
    let end = size.checked_sub(FOOTER_SIZE as u64).ok_or_else(|| too_small(FOOTER_SIZE))?;
    let mut tail = [0; FOOTER_SIZE];
    file.get_read(end)?.read_exact(&mut tail)?;
    let tail = FooterTail::try_new(&tail)?;
    if tail.is_encrypted_footer() {
        return Err(ParquetError::General("the file has an encrypted footer".to_owned()));
    }
    let length = tail.metadata_length();
    let start =
        end.checked_sub(length as u64).ok_or_else(|| too_small(length.saturating_add(FOOTER_SIZE)))?;
    let bytes = file.get_bytes(start, length)?;
    shape::check(&bytes).map_err(ParquetError::General)?;
    ParquetMetaDataReader::decode_metadata(&bytes)
}
