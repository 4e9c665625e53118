//! Reads timestamps in INT96, the format of Hive, Impala and old Spark versions. (Parquet, "INT96".)

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::schema::types::SchemaDescriptor;

/// Makes the reader decode INT96 to microseconds in the time zone `zone`. By default, it decodes to nanoseconds, which
/// only cover the years 1677 to 2262.
///
/// `options` are the options with which `footer` was read.
pub(crate) fn int96_as_micros(
    footer: ArrowReaderMetadata,
    options: ArrowReaderOptions,
    zone: Option<&str>,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let columns = footer.parquet_schema();
    if columns.columns().iter().all(|column| column.physical_type() != Type::INT96) {
        return Ok(footer);
    }
    let fields = fields_with_micros(footer.schema().fields(), columns, zone);
    let schema = Schema::new_with_metadata(fields, footer.schema().metadata().clone());
    ArrowReaderMetadata::try_new(Arc::clone(footer.metadata()), options.with_schema(Arc::new(schema)))
}

/// Returns the `fields` of a file, with microseconds in the time zone `zone` as the type of INT96 columns.
pub(crate) fn fields_with_micros(fields: &Fields, columns: &SchemaDescriptor, zone: Option<&str>) -> Fields {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.map(Arc::from));
    with_micros(fields, columns, &micros, &mut 0)
}

/// Sets the type of the INT96 columns in `fields` to `micros`. `leaf` is the number of leaf columns counted so far.
fn with_micros(fields: &Fields, columns: &SchemaDescriptor, micros: &DataType, leaf: &mut usize) -> Fields {
    let mut convert_field = |field: &FieldRef| -> FieldRef {
        let mut inner =
            |inner: &FieldRef| with_micros(&Fields::from(vec![Arc::clone(inner)]), columns, micros, leaf);
        let data_type = match field.data_type() {
            DataType::Struct(inner) => DataType::Struct(with_micros(inner, columns, micros, leaf)),
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
                    true => micros.clone(),
                    false => other.clone(),
                }
            }
        };
        Arc::new(Field::clone(field).with_data_type(data_type))
    };
    fields.iter().map(&mut convert_field).collect()
}
