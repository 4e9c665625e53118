//! The footer of a data file: its Arrow schema, and checks for unsupported features.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::faults::{WatchedFile, guarded};
use crate::error::{Error, ErrorKind, Result};
use crate::values::footer;
use crate::values::int96::int96_as_micros;

/// Reads the footer. The Arrow schema that some writers store in it is ignored: it describes the writer's memory
/// layout, whereas the Parquet schema describes the values.
pub(super) fn read_footer(file: &WatchedFile) -> Result<ArrowReaderMetadata> {
    let metadata = footer::decode(file).map_err(|error| file.error(error))?;
    as_arrow(Arc::new(metadata)).map_err(|error| file.error(error))
}

/// Adds the file's page indexes to `metadata`. If they cannot be read, returns `metadata` unchanged, which only makes
/// the scan slower.
pub(super) fn with_page_indexes(metadata: ArrowReaderMetadata, file: &WatchedFile) -> ArrowReaderMetadata {
    let read = || {
        let mut reader = ParquetMetaDataReader::new_with_metadata(metadata.metadata().as_ref().clone())
            .with_page_index_policy(PageIndexPolicy::Optional);
        reader.read_page_indexes(file)?;
        as_arrow(Arc::new(reader.finish()?))
    };
    guarded(|| read().map_err(|error| file.error(error))).unwrap_or(metadata)
}

/// Returns `metadata` with the column types that `type_of` returns.
pub(super) fn with_types(
    metadata: ArrowReaderMetadata,
    type_of: &dyn Fn(&FieldRef) -> DataType,
    file: &WatchedFile,
) -> Result<ArrowReaderMetadata> {
    let fields = metadata.schema().fields().iter();
    let fields: Fields =
        fields.map(|field| Arc::new(Field::clone(field).with_data_type(type_of(field)))).collect();
    let options =
        ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_schema(Arc::new(Schema::new(fields)));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).map_err(|error| file.error(error))
}

fn as_arrow(metadata: Arc<ParquetMetaData>) -> Result<ArrowReaderMetadata, ParquetError> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::try_new(metadata, options.clone())?;
    int96_as_micros(metadata, options, None)
}

/// Refuses columns whose compression codec is not supported.
pub(super) fn check_codecs<'a>(
    metadata: &ArrowReaderMetadata,
    groups: &[usize],
    leaves: impl Iterator<Item = &'a usize> + Clone,
) -> Result<()> {
    for group in groups.iter().filter_map(|group| metadata.metadata().row_groups().get(*group)) {
        for column in leaves.clone().filter_map(|leaf| group.columns().get(*leaf)) {
            if matches!(column.compression(), Compression::LZO) {
                let name = column.column_path().string();
                return Err(Error::unsupported(format!(
                    "column '{name}' is compressed with {}, which is not supported",
                    column.compression()
                )));
            }
        }
    }
    Ok(())
}

/// Adds a hint to the error of a footer if the file's size differs from the size in the log.
pub(super) fn with_sizes(error: Error, expected: u64, file: &WatchedFile) -> Error {
    let actual = parquet::file::reader::Length::len(file);
    match error.kind() {
        ErrorKind::CorruptData if actual != expected => error.with_hint(format!(
            "restore the file: it has {actual} bytes instead of the {expected} bytes in the log"
        )),
        _ => error,
    }
}
