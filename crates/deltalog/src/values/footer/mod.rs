//! Decodes the footers of Parquet files. No other code may decode a footer, because the decoder of the crate `parquet`
//! trusts what a footer claims: it handles nested groups by recursion, and reserves memory for as many children as a
//! group claims to have. This module checks the footer first.

mod shape;
#[cfg(test)]
mod tests;
mod thrift;

use std::io::Read;

use parquet::basic::Type as PhysicalType;
use parquet::errors::{ParquetError, Result};
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{ColumnChunkMetaData, FooterTail, ParquetMetaData, ParquetMetaDataReader};
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
    let footer = ParquetMetaDataReader::decode_metadata(&bytes)?;
    check_places(&footer)?;
    Ok(footer)
}

/// Checks that no column chunk has a negative offset or size, because this would make the decoder panic.
fn check_places(footer: &ParquetMetaData) -> Result<()> {
    let chunks = footer.row_groups().iter().flat_map(|group| group.columns());
    let is_negative = |chunk: &ColumnChunkMetaData| {
        let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        start < 0 || chunk.data_page_offset() < 0 || chunk.compressed_size() < 0
    };
    match chunks.into_iter().find(|chunk| is_negative(chunk)) {
        None => Ok(()),
        Some(chunk) => Err(ParquetError::General(format!(
            "the column '{}' has a negative offset or size in the file",
            chunk.column_path().string()
        ))),
    }
}

/// Estimates the size in bytes of the values of a column chunk after decoding.
pub(crate) fn decoded_bytes(chunk: &ColumnChunkMetaData) -> f64 {
    let values = chunk.num_values().max(0) as f64;
    match chunk.column_type() {
        PhysicalType::BYTE_ARRAY => {
            let encoded = chunk.uncompressed_size().max(0) as f64;
            // Some writers only record the encoded size. It counts a repeated value only once if a dictionary or
            // another encoding stores it once.
            let decoded = chunk.unencoded_byte_array_data_bytes().map(|bytes| bytes.max(0) as f64);
            decoded.map_or(encoded, |bytes| bytes + values * size_of::<i32>() as f64)
        }
        PhysicalType::FIXED_LEN_BYTE_ARRAY => values * f64::from(chunk.column_descr().type_length().max(1)),
        PhysicalType::BOOLEAN => values,
        PhysicalType::INT32 | PhysicalType::FLOAT => values * 4.0,
        PhysicalType::INT64 | PhysicalType::DOUBLE | PhysicalType::INT96 => values * 8.0,
    }
}
