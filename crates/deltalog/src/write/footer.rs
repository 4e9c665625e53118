//! Reads the footers of other writers' data files.

use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use crate::error::{Error, ErrorKind, Result};
use crate::runtime::panics::caught;
use crate::storage::FileReader;
use crate::values::footer;

/// The number of footers that are read at once. It may exceed the number of cores, because the threads wait for the
/// store.
pub(crate) const THREADS: usize = 8;

/// Reads a footer without the page indexes.
///
/// # Errors
/// `CorruptData` for a file that is not Parquet, or whose footer makes its decoder panic; `Unsupported` for one that
/// is encrypted, or whose footer has a codec, a type or an encoding that is not known; errors of the store.
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

/// Returns whether a footer may be intact and merely not understood. The crate `parquet` reports encryption and unknown
/// enum values only in its error texts.
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
