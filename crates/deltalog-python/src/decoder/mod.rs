//! `Decoder`: reads rows from a file of CSV, JSON lines or Arrow IPC, whose bytes arrive in pieces.
//!
//! - A value that does not fit its column exactly is an error. The error states the line, and has the attribute `line`.
//! - A batch ends after a few thousand rows, or a few MiB of text.

mod column;
mod csv;
mod scalar;

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_ipc::reader::StreamDecoder;
use deltalog::{Error, Result};
use pyo3::prelude::*;
use pyo3_arrow::PySchema;

use self::column::{Column, members_of, push_members};
use self::csv::{Failure, Record, Records};
use self::scalar::shown;
use crate::batch::ArrowBatch;
use crate::call::call;
use crate::delimiter::delimiter_of;
use crate::error::IntoPython;

const ROWS_OF_BATCH: usize = 8192;
const BYTES_OF_BATCH: usize = 8 << 20;

/// Decodes the bytes of a file.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct Decoder(Mutex<Form>);

enum Form {
    Csv(Csv),
    Json(JsonLines),
    Arrow(ArrowIpc),
}

#[pymethods]
impl Decoder {
    /// Reads CSV into columns of `schema`. The first line names the columns, unless `columns` is given.
    #[staticmethod]
    #[pyo3(signature = (schema, columns = None, delimiter = ",", null = ""))]
    fn csv(schema: PySchema, columns: Option<Vec<String>>, delimiter: &str, null: &str) -> PyResult<Self> {
        let csv = Csv::new(schema.into_inner(), columns, delimiter, null).into_python()?;
        Ok(Self(Mutex::new(Form::Csv(csv))))
    }

    /// Reads JSON lines into columns of `schema`. The columns in `optional` are only read if the first object has
    /// them.
    #[staticmethod]
    fn json(schema: PySchema, optional: Vec<String>) -> Self {
        let schema = schema.into_inner();
        Self(Mutex::new(Form::Json(JsonLines { schema, optional, line: 1, partial: Vec::new(), rows: None })))
    }

    /// Reads a stream or a file in Arrow's IPC format.
    #[staticmethod]
    fn arrow() -> Self {
        Self(Mutex::new(Form::Arrow(ArrowIpc::default())))
    }

    /// Adds a piece of the file, and returns the batches that are now complete.
    fn feed(&self, py: Python<'_>, piece: &[u8]) -> PyResult<Vec<ArrowBatch>> {
        let batches = call(py, || match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Form::Csv(csv) => csv.feed(piece),
            Form::Json(lines) => lines.feed(piece),
            Form::Arrow(arrow) => arrow.feed(piece),
        })?;
        Ok(batches.into_iter().map(ArrowBatch).collect())
    }

    /// Ends the file, and returns the last batches. There is at least one batch per file, so that the columns are
    /// known.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<ArrowBatch>> {
        let batches = call(py, || match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Form::Csv(csv) => csv.finish(),
            Form::Json(lines) => lines.finish(),
            Form::Arrow(arrow) => arrow.finish(),
        })?;
        Ok(batches.into_iter().map(ArrowBatch).collect())
    }
}

/// The columns that are being read, and the completed batches.
struct Rows {
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
    complete: Vec<RecordBatch>,
}

impl Rows {
    fn new<'a>(schema: &Schema, names: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut columns: Vec<Column> = Vec::new();
        for name in names {
            if columns.iter().any(|column| column.field.name() == name) {
                return Err(Error::schema_mismatch(format!("the column {} occurs twice", shown(name))));
            }
            let field = schema.field_with_name(name).map_err(|_| {
                let known = schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>();
                Error::schema_mismatch(format!("there is no column {}", shown(name)))
                    .with_hint(format!("the columns are: {}", known.join(", ")))
            })?;
            columns.push(Column::new(field)?);
        }
        Ok(Self { columns, rows: 0, bytes: 0, complete: Vec::new() })
    }

    fn has_row(&mut self, bytes: usize) -> Result<()> {
        self.rows += 1;
        self.bytes += bytes;
        if self.rows >= ROWS_OF_BATCH || self.bytes >= BYTES_OF_BATCH { self.end_batch() } else { Ok(()) }
    }

    fn end_batch(&mut self) -> Result<()> {
        let schema =
            Schema::new(self.columns.iter().map(|column| Arc::clone(&column.field)).collect::<Vec<_>>());
        let arrays = self.columns.iter_mut().map(Column::finish).collect::<std::result::Result<_, _>>();
        let batch = arrays.and_then(|arrays| RecordBatch::try_new(Arc::new(schema), arrays));
        let failed =
            |failure: ArrowError| Error::schema_mismatch("rows could not be read").with_source(failure);
        self.complete.push(batch.map_err(failed)?);
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

/// Returns the error for a line of the file.
fn in_line((line, text): Failure) -> Error {
    Error::schema_mismatch(text).at_line(line)
}

struct Csv {
    records: Records,
    schema: SchemaRef,
    null: String,
    rows: Option<Rows>,
    /// The bytes seen so far that may be a byte-order mark; `None` after the beginning of the file.
    mark: Option<Vec<u8>>,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Csv {
    fn new(schema: SchemaRef, columns: Option<Vec<String>>, delimiter: &str, null: &str) -> Result<Self> {
        let delimiter = delimiter_of(delimiter)?;
        let rows =
            columns.map(|columns| csv_rows(&schema, columns.iter().map(String::as_str))).transpose()?;
        let records = Records::new(delimiter);
        Ok(Self { records, schema, null: null.to_owned(), rows, mark: Some(Vec::new()) })
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<RecordBatch>> {
        let Self { records, schema, null, rows, mark } = self;
        let first = mark.take().map(|mut seen| {
            seen.extend_from_slice(bytes);
            seen
        });
        let bytes = match &first {
            None => bytes,
            Some(first) if first.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(first) => {
                *mark = Some(first.clone());
                return Ok(Vec::new());
            }
            Some(first) => first.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first),
        };
        let mut failure = None;
        let fed = records.feed(bytes, |record| take_record(schema, null, rows, record, &mut failure));
        ended(fed, failure)?;
        Ok(rows.as_mut().map(|rows| std::mem::take(&mut rows.complete)).unwrap_or_default())
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>> {
        let Self { records, schema, null, rows, .. } = self;
        let mut failure = None;
        let fed = records.finish(|record| take_record(schema, null, rows, record, &mut failure));
        ended(fed, failure)?;
        let rows = self.rows.as_mut().ok_or_else(|| {
            Error::schema_mismatch("there is no first line that names the columns")
                .with_hint("name them with --columns and --no-header")
        })?;
        rows.end_batch()?;
        Ok(std::mem::take(&mut rows.complete))
    }
}

/// Returns the result of reading records. If there is a `failure`, it is the error; the one in `fed` is only a
/// placeholder for it.
fn ended(fed: std::result::Result<(), Failure>, failure: Option<Error>) -> Result<()> {
    match (fed, failure) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(failure)) => Err(failure),
        (Err(failure), None) => Err(in_line(failure)),
    }
}

fn csv_rows<'a>(schema: &Schema, names: impl Iterator<Item = &'a str>) -> Result<Rows> {
    let rows = Rows::new(schema, names)?;
    match rows.columns.iter().find(|column| !column.is_simple()) {
        None => Ok(rows),
        Some(column) => Err(Error::unsupported(format!(
            "column '{}' has nested values, which CSV cannot hold",
            column.field.name()
        ))
        .with_hint("use JSON lines")),
    }
}

/// Processes a record. While the columns are unknown, it is the header with their names; otherwise it is a row.
fn take_record(
    schema: &Schema,
    null: &str,
    rows: &mut Option<Rows>,
    record: Record<'_>,
    failure: &mut Option<Error>,
) -> std::result::Result<(), Failure> {
    let wrong = |text: String| (record.line, text);
    let mut fail = |error: Error| {
        *failure = Some(error);
        (record.line, String::new())
    };
    let Some(rows) = rows else {
        let names: Vec<&str> = record
            .values()
            .map(|value| Ok(value?.0))
            .collect::<std::result::Result<_, String>>()
            .map_err(wrong)?;
        *rows = Some(csv_rows(schema, names.into_iter()).map_err(|error| fail(error.at_line(record.line)))?);
        return Ok(());
    };
    if record.len() != rows.columns.len() {
        return Err(wrong(format!("there are {} values for {} columns", record.len(), rows.columns.len())));
    }
    let mut bytes = 0;
    for (column, value) in rows.columns.iter_mut().zip(record.values()) {
        let (text, is_quoted) = value.map_err(wrong)?;
        bytes += text.len();
        let pushed = if text == null && !is_quoted { column.push_null() } else { column.push_text(text) };
        pushed.map_err(|text| wrong(format!("column {}: {text}", shown(column.field.name()))))?;
    }
    rows.has_row(bytes).map_err(fail)
}

struct JsonLines {
    schema: SchemaRef,
    optional: Vec<String>,
    line: usize,
    /// The beginning of a line whose end has not arrived yet.
    partial: Vec<u8>,
    rows: Option<Rows>,
}

impl JsonLines {
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<RecordBatch>> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, after) = rest.split_at(at);
            rest = after.get(1..).unwrap_or_default();
            if self.partial.is_empty() {
                self.take(line)?;
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.take(&whole)?;
            }
            self.line += 1;
        }
        self.partial.extend_from_slice(rest);
        Ok(self.rows.as_mut().map(|rows| std::mem::take(&mut rows.complete)).unwrap_or_default())
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>> {
        let last = std::mem::take(&mut self.partial);
        self.take(&last)?;
        if self.rows.is_none() {
            self.rows = Some(self.rows_for(&[])?);
        }
        let Some(rows) = &mut self.rows else { return Ok(Vec::new()) };
        rows.end_batch()?;
        Ok(std::mem::take(&mut rows.complete))
    }

    fn take(&mut self, line: &[u8]) -> Result<()> {
        let number = self.line;
        let wrong = |text: String| in_line((number, text));
        let text = std::str::from_utf8(line).map_err(|_| wrong("it is not text in UTF-8".to_owned()))?;
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
        if text.trim().is_empty() {
            return Ok(());
        }
        let members = members_of(text).map_err(wrong)?;
        if self.rows.is_none() {
            let names: Vec<&str> = members.iter().map(|(name, _)| name.as_ref()).collect();
            self.rows = Some(self.rows_for(&names)?);
        }
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let late = members.iter().find(|(name, _)| {
            self.optional.iter().any(|optional| optional == name)
                && !rows.columns.iter().any(|column| column.field.name() == name)
        });
        if let Some((name, _)) = late {
            return Err(wrong(format!(
                "it has the column {}, but the first line does not: the table computes this column if all lines leave \
                 it out",
                shown(name)
            ))
            .with_hint("add it to the first line, or remove it from the others"));
        }
        push_members(&mut rows.columns, &members).map_err(wrong)?;
        rows.has_row(text.len())
    }

    /// Begins to read rows, with the columns that the first object has or that are not optional.
    fn rows_for(&self, given: &[&str]) -> Result<Rows> {
        let fields = self.schema.fields().iter().map(|field| field.name().as_str());
        let is_read =
            |name: &&str| given.contains(name) || !self.optional.iter().any(|optional| optional == name);
        Rows::new(&self.schema, fields.filter(is_read))
    }
}

/// Arrow IPC: a stream, or a file, which is a stream between a mark at the beginning and a list of its parts at the
/// end.
#[derive(Default)]
struct ArrowIpc {
    decoder: StreamDecoder,
    /// The first bytes, which are kept until it is known whether this is a stream or a file.
    first: Option<Vec<u8>>,
    has_begun: bool,
    is_file: bool,
    has_ended: bool,
    /// The last bytes of the file seen so far.
    last: Vec<u8>,
    has_batch: bool,
}

const FILE_MARK: &[u8] = b"ARROW1\0\0";
const END_OF_STREAM: &[u8] = b"\xff\xff\xff\xff\0\0\0\0";

impl ArrowIpc {
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<RecordBatch>> {
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        self.last.extend_from_slice(bytes.get(bytes.len().saturating_sub(8)..).unwrap_or_default());
        self.last.drain(..self.last.len().saturating_sub(8));
        if self.has_ended {
            return Ok(Vec::new());
        }
        if !self.has_begun {
            let mut first = self.first.take().unwrap_or_default();
            first.extend_from_slice(bytes);
            if first.len() < FILE_MARK.len() {
                self.first = Some(first);
                return Ok(Vec::new());
            }
            self.has_begun = true;
            self.is_file = first.starts_with(FILE_MARK);
            let start = if self.is_file { FILE_MARK.len() } else { 0 };
            return self.decode(first.get(start..).unwrap_or_default());
        }
        self.decode(bytes)
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<Vec<RecordBatch>> {
        let (mut buffer, mut batches) = (Buffer::from(bytes), Vec::new());
        loop {
            match self.decoder.decode(&mut buffer) {
                Ok(Some(batch)) => batches.push(batch),
                Ok(None) => break,
                // In an Arrow file, a footer follows the end of the stream.
                Err(_) if self.is_file && self.decoder.finish().is_ok() => {
                    self.has_ended = true;
                    break;
                }
                Err(failure) => return Err(not_arrow(failure)),
            }
        }
        self.has_batch |= !batches.is_empty();
        Ok(batches)
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>> {
        let (mark, length) = if self.is_file { (&FILE_MARK[..6], 6) } else { (END_OF_STREAM, 8) };
        let is_whole = self.last.ends_with(mark) && self.last.len() >= length;
        if !is_whole || self.decoder.finish().is_err() {
            return Err(Error::schema_mismatch("the Arrow IPC data ends too early, or is in another format"));
        }
        let schema = self
            .decoder
            .schema()
            .ok_or_else(|| Error::schema_mismatch("the Arrow IPC data has no schema"))?;
        Ok(if self.has_batch { Vec::new() } else { vec![RecordBatch::new_empty(schema)] })
    }
}

fn not_arrow(failure: ArrowError) -> Error {
    Error::schema_mismatch("the data is not an Arrow IPC stream or file").with_source(failure)
}
