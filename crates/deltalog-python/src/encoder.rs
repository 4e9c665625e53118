//! `Encoder`: rows as the bytes of a file, for output that needs no Arrow library.
//!
//! - JSON lines: an object per row, with all columns. Decimals are numbers with all of their digits, times have the
//!   form of RFC 3339, and bytes are hexadecimal. As Spark writes them, `NaN`, `Infinity` and `-Infinity` are texts,
//!   since JSON has no such numbers. A map is an object; keys that are not text are written as text.
//! - Arrow: a stream of Arrow IPC without compression.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, Fields, Float16Type, Float32Type, Float64Type, Schema, SchemaRef,
};
use arrow::error::ArrowError;
use arrow::json::writer::{LineDelimited, NullableEncoder};
use arrow::json::{Encoder as ValueEncoder, EncoderFactory, EncoderOptions, WriterBuilder};
use arrow_ipc::writer::StreamWriter;
use deltalog::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PySchema;

use crate::batch::ArrowBatch;
use crate::call::call;
use crate::error::IntoPython;

/// Encodes batches of one schema.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct Encoder(Mutex<Form>);

/// The format of the output, with the state of its encoder.
enum Form {
    Json { schema: SchemaRef },
    Arrow(Box<StreamWriter<Vec<u8>>>),
}

#[pymethods]
impl Encoder {
    #[new]
    fn new(form: &str, schema: PySchema) -> PyResult<Self> {
        Form::new(form, schema.into_inner()).map(|form| Self(Mutex::new(form))).into_python()
    }

    /// Returns the bytes of a batch.
    fn encode<'py>(&self, py: Python<'py>, batch: &Bound<'py, ArrowBatch>) -> PyResult<Bound<'py, PyBytes>> {
        let batch = batch.get();
        let bytes = call(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).encode(&batch.0))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the bytes after the last batch.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = call(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).finish())?;
        Ok(PyBytes::new(py, &bytes))
    }
}

impl Form {
    fn new(form: &str, schema: SchemaRef) -> Result<Self> {
        match form {
            "json" => Ok(Self::Json { schema: with_text_keys(&schema) }),
            "arrow" => StreamWriter::try_new(Vec::new(), &schema)
                .map(|writer| Self::Arrow(Box::new(writer)))
                .map_err(not_encoded),
            _ => Err(Error::invalid_argument(format!("there is no format {form:?}"))
                .with_hint("pass 'json' or 'arrow'")),
        }
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        match self {
            Self::Json { schema } => json_lines(schema, batch),
            Self::Arrow(writer) => writer.write(batch).map(|()| mem::take(writer.get_mut())),
        }
        .map_err(not_encoded)
    }

    fn finish(&mut self) -> Result<Vec<u8>> {
        match self {
            Self::Json { .. } => Ok(Vec::new()),
            Self::Arrow(writer) => writer.finish().map(|()| mem::take(writer.get_mut())).map_err(not_encoded),
        }
    }
}

fn not_encoded(failure: ArrowError) -> Error {
    Error::invalid_argument("rows cannot be written in this format").with_source(failure)
}

fn json_lines(schema: &SchemaRef, batch: &RecordBatch) -> std::result::Result<Vec<u8>, ArrowError> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| cast(column, field.data_type()))
        .collect::<std::result::Result<Vec<ArrayRef>, _>>()?;
    let rows = RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows())),
    )?;
    let mut writer = WriterBuilder::new()
        .with_explicit_nulls(true)
        .with_encoder_factory(Arc::new(SpecialFloats))
        .build::<_, LineDelimited>(Vec::new());
    writer.write(&rows)?;
    Ok(writer.into_inner())
}

/// Returns the schema in which the keys of all maps are text, as JSON has no others.
fn with_text_keys(schema: &SchemaRef) -> SchemaRef {
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
            // The shortest text that is read as the same number.
            format!("{value:?}")
        };
        out.extend_from_slice(text.as_bytes());
    }
}
