//! Writes rows as JSON lines: one object per row, with all columns.
//!
//! Decimals are numbers with all of their digits, times have the format of RFC 3339, and bytes are hexadecimal.
//! `NaN`, `Infinity` and `-Infinity` are strings, as Spark writes them, because JSON has no such numbers. A map is an
//! object, and keys that are not strings are converted to strings.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, Fields, Float16Type, Float32Type, Float64Type, Schema, SchemaRef,
};
use arrow::error::ArrowError;
use arrow::json::writer::{LineDelimited, NullableEncoder};
use arrow::json::{Encoder as ValueEncoder, EncoderFactory, EncoderOptions, WriterBuilder};

pub(super) fn json_lines(
    schema: &SchemaRef,
    batch: &RecordBatch,
) -> std::result::Result<Vec<u8>, ArrowError> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| cast(column, field.data_type()))
        .collect::<std::result::Result<Vec<ArrayRef>, _>>()?;
    let rows = RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &RecordBatchOptions::new().with_row_count(Some(batch.num_rows())),
    )?;
    let mut writer = WriterBuilder::new()
        .with_explicit_nulls(true)
        .with_encoder_factory(Arc::new(SpecialFloats))
        .build::<_, LineDelimited>(Vec::new());
    writer.write(&rows)?;
    Ok(writer.into_inner())
}

/// Returns the schema with the keys of all maps as strings, because JSON has no other keys.
pub(super) fn with_text_keys(schema: &SchemaRef) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(field_with_text_keys).collect();
    Arc::new(Schema::new(fields))
}

fn field_with_text_keys(field: &FieldRef) -> FieldRef {
    let within = |field: &FieldRef| field_with_text_keys(field);
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(within).collect()),
        DataType::List(element) => DataType::List(within(element)),
        DataType::LargeList(element) => DataType::LargeList(within(element)),
        DataType::FixedSizeList(element, length) => DataType::FixedSizeList(within(element), *length),
        DataType::Map(entries, is_sorted) => DataType::Map(entries_with_text_keys(entries), *is_sorted),
        _ => return Arc::clone(field),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

fn entries_with_text_keys(entries: &FieldRef) -> FieldRef {
    let DataType::Struct(fields) = entries.data_type() else { return Arc::clone(entries) };
    let [key, value] = fields.as_ref() else { return Arc::clone(entries) };
    let key: FieldRef = match key.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Arc::clone(key),
        _ => Arc::new(Field::new(key.name(), DataType::Utf8, key.is_nullable())),
    };
    let fields = Fields::from(vec![key, field_with_text_keys(value)]);
    Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(fields)))
}

/// Encodes `NaN` and the infinities, which would otherwise become NULL.
#[derive(Debug)]
struct SpecialFloats;

impl EncoderFactory for SpecialFloats {
    fn make_default_encoder<'a>(
        &self,
        _field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> std::result::Result<Option<NullableEncoder<'a>>, ArrowError> {
        Ok(match array.data_type() {
            DataType::Float16 => Some(floats::<Float16Type>(array)),
            DataType::Float32 => Some(floats::<Float32Type>(array)),
            DataType::Float64 => Some(floats::<Float64Type>(array)),
            _ => None,
        })
    }
}

fn floats<T>(array: &dyn Array) -> NullableEncoder<'_>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64> + std::fmt::Debug,
{
    let array = array.as_primitive::<T>();
    NullableEncoder::new(Box::new(Floats(array)), array.nulls().cloned())
}

struct Floats<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);

impl<T> ValueEncoder for Floats<'_, T>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64> + std::fmt::Debug,
{
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        let value = self.0.value(index);
        let wide: f64 = value.into();
        let text = if wide.is_nan() {
            "\"NaN\"".to_owned()
        } else if wide == f64::INFINITY {
            "\"Infinity\"".to_owned()
        } else if wide == f64::NEG_INFINITY {
            "\"-Infinity\"".to_owned()
        } else {
            // The shortest text that is parsed as the same number.
            format!("{value:?}")
        };
        out.extend_from_slice(text.as_bytes());
    }
}
