//! Reads the footers of data files that other writers have written.

use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use crate::error::{Error, ErrorKind, Result};
use crate::runtime::panics::caught;
use crate::storage::FileReader;
use crate::values::footer;

/// The number of footers that are read concurrently. It may exceed the number of cores, because the threads mostly
/// wait for the store.
pub(crate) const THREADS: usize = 8;

/// Reads the footer of a file, without its page indexes.
///
/// # Errors
/// Returns `CorruptData` for a file that is not Parquet, or whose footer makes the decoder panic. Returns
/// `Unsupported` for a file that is encrypted, or whose footer has an unknown codec, type or encoding. Also returns
/// errors from the store.
pub(crate) fn read_footer(file: &FileReader) -> Result<ParquetMetaData> {
    caught(
        || decoded(file),
        |panic| Error::corrupt_data(format!("reading the footer panicked with '{panic}'")),
    )
}

fn decoded(file: &FileReader) -> Result<ParquetMetaData> {
    footer::decode(file).map_err(|error| match (error, file.failure()) {
        (_, Some(failure)) => failure,
        (error @ ParquetError::External(_), None) => {
            Error::new(ErrorKind::Unavailable, "the file's footer could not be read").with_source(error)
        }
        (error, None) if is_of_another_format(&error) => {
            Error::unsupported("the file's Parquet footer cannot be read by this version").with_source(error)
        }
        (error, None) => Error::corrupt_data("the file has no readable Parquet footer").with_source(error),
    })
}

/// Returns whether a footer may be intact and merely use unsupported features. The crate `parquet` reports encryption
/// and unknown enum values only in the text of its errors.
fn is_of_another_format(error: &ParquetError) -> bool {
    const ENUMS: [&str; 4] = ["CompressionCodec", "Encoding", "Type", "ConvertedType"];
    match error {
        ParquetError::NYI(_) => true,
        ParquetError::General(text) => {
            let unknown = text.strip_prefix("Unexpected ").and_then(|rest| rest.split(' ').next());
            text.contains("encrypt") || unknown.is_some_and(|name| ENUMS.contains(&name))
        }
        _ => false,
    }
}
