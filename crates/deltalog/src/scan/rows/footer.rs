//! The footer of a data file: its Arrow schema, and checks for unsupported features.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{Compression, Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::schema::types::SchemaDescriptor;

use super::faults::{WatchedFile, guarded};
use crate::error::{Error, ErrorKind, Result};

/// Reads the footer. Ignores the Arrow schema that some writers store there: it describes the writer's memory
/// layout, whereas the Parquet schema describes the values.
pub(super) fn read_footer(file: &WatchedFile) -> Result<ArrowReaderMetadata> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file).map_err(|error| file.error(error))?;
    as_arrow(Arc::new(metadata)).map_err(|error| file.error(error))
}

/// Adds the page indexes of the file to `metadata`. Returns `metadata` unchanged if they cannot be read,
/// which only costs time.
pub(super) fn with_page_indexes(metadata: ArrowReaderMetadata, file: &WatchedFile) -> ArrowReaderMetadata {
    let read = || {
        let mut reader = ParquetMetaDataReader::new_with_metadata(metadata.metadata().as_ref().clone())
            .with_page_index_policy(PageIndexPolicy::Optional);
        reader.read_page_indexes(file)?;
        as_arrow(Arc::new(reader.finish()?))
    };
    guarded(|| read().map_err(|error| file.error(error))).unwrap_or(metadata)
}

/// Returns `metadata` with the types of columns replaced by those of `type_of`.
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
    let columns = metadata.parquet_schema();
    if columns.columns().iter().all(|column| column.physical_type() != Type::INT96) {
        return Ok(metadata);
    }
    let fields = int96_as_micros(metadata.schema().fields(), columns, &mut 0);
    let schema = Schema::new_with_metadata(fields, metadata.schema().metadata().clone());
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options.with_schema(Arc::new(schema)))
}

/// Refuses a compression codec without a decoder.
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

/// Replaces the type of INT96 in `fields` by microseconds, because nanoseconds only cover 1677 to 2262.
/// `leaf` counts the leaf columns.
fn int96_as_micros(fields: &Fields, columns: &SchemaDescriptor, leaf: &mut usize) -> Fields {
    let mut convert_field = |field: &FieldRef| -> FieldRef {
        let mut inner =
            |inner: &FieldRef| int96_as_micros(&Fields::from(vec![Arc::clone(inner)]), columns, leaf);
        let data_type = match field.data_type() {
            DataType::Struct(inner) => DataType::Struct(int96_as_micros(inner, columns, leaf)),
            DataType::List(element) => inner(element)
                .first()
                .map_or_else(|| field.data_type().clone(), |e| DataType::List(Arc::clone(e))),
            DataType::Map(entries, sorted) => inner(entries)
                .first()
                .map_or_else(|| field.data_type().clone(), |e| DataType::Map(Arc::clone(e), *sorted)),
            other => {
                let column = columns.columns().get(*leaf);
                *leaf += 1;
                match column.is_some_and(|column| column.physical_type() == Type::INT96) {
                    true => DataType::Timestamp(TimeUnit::Microsecond, None),
                    false => other.clone(),
                }
            }
        };
        Arc::new(Field::clone(field).with_data_type(data_type))
    };
    fields.iter().map(&mut convert_field).collect()
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
