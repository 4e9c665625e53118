//! Writes rows as CSV (RFC 4180), so that `Decoder` reads the same rows again.
//!
//! - NULL is written as a text that the caller chooses, without quotes; by default it is empty. A string that equals
//!   this text, such as an empty string, is written in quotes.
//! - Times have the format of RFC 3339, and bytes are hexadecimal.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use deltalog::{Error, Result};

use crate::delimiter::delimiter_of;

/// Writes rows as CSV.
pub(super) struct CsvWriter {
    schema: SchemaRef,
    delimiter: u8,
    null: String,
    /// Whether the line with the names of the columns has not been written yet.
    needs_names: bool,
}

impl CsvWriter {
    /// # Errors
    /// Returns `Unsupported` for a column with nested values, such as arrays. Returns `InvalidArgument` for a delimiter
    /// that is not a single ASCII character or is a quote or line end, and for a NULL text that contains any of these.
    pub(super) fn new(schema: SchemaRef, delimiter: &str, null: String, has_names: bool) -> Result<Self> {
        let delimiter = delimiter_of(delimiter)?;
        if null.bytes().any(|byte| byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r')) {
            return Err(Error::invalid_argument(
                "the text for NULL contains the delimiter, a quote or a line end",
            ));
        }
        if let Some(field) = schema.fields().iter().find(|field| field.data_type().is_nested()) {
            return Err(Error::unsupported(format!(
                "column '{}' has nested values, which CSV cannot hold",
                field.name()
            ))
            .with_hint("leave it out, or use JSON lines, Parquet or Arrow"));
        }
        Ok(Self { schema, delimiter, null, needs_names: has_names })
    }

    /// Returns the line with the names of the columns, if it has not been written yet.
    pub(super) fn names(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if std::mem::take(&mut self.needs_names) {
            for (at, field) in self.schema.fields().iter().enumerate() {
                self.push(&mut out, at, Some(field.name()));
            }
            out.push(b'\n');
        }
        out
    }

    pub(super) fn encode(&mut self, batch: &RecordBatch) -> std::result::Result<Vec<u8>, ArrowError> {
        let mut out = self.names();
        let options = FormatOptions::new().with_display_error(false);
        let columns = batch
            .columns()
            .iter()
            .map(|column| Ok((ArrayFormatter::try_new(column, &options)?, column.logical_nulls())))
            .collect::<std::result::Result<Vec<_>, ArrowError>>()?;
        for row in 0..batch.num_rows() {
            for (at, (formatter, nulls)) in columns.iter().enumerate() {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    self.push(&mut out, at, None);
                    continue;
                }
                self.push(&mut out, at, Some(&formatter.value(row).try_to_string()?));
            }
            out.push(b'\n');
        }
        Ok(out)
    }

    /// Writes a value, or NULL.
    fn push(&self, out: &mut Vec<u8>, at: usize, value: Option<&str>) {
        if at > 0 {
            out.push(self.delimiter);
        }
        let Some(value) = value else { return out.extend_from_slice(self.null.as_bytes()) };
        let needs_quotes = value == self.null
            || value.is_empty()
            || value.bytes().any(|byte| byte == self.delimiter || matches!(byte, b'"' | b'\n' | b'\r'));
        if needs_quotes {
            out.push(b'"');
            out.extend_from_slice(value.replace('"', "\"\"").as_bytes());
            out.push(b'"');
        } else {
            out.extend_from_slice(value.as_bytes());
        }
    }
}
