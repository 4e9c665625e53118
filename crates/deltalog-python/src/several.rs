//! Reads the rows of a list or a generator whose items are Arrow data.
//!
//! - Items are requested one by one, on the thread that reads, which attaches to the interpreter for each item.
//! - The first item determines the columns. An item with different columns is an error, because a missing column
//!   would silently become NULL.

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use deltalog::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::error::to_python;
use crate::stream::reader_of;
use crate::{ending, foreign};

type Reader = Box<dyn RecordBatchReader + Send>;

/// The rows of several items, read one item after the other.
pub(crate) struct Several {
    schema: SchemaRef,
    items: Py<PyIterator>,
    current: Reader,
    /// The number of items that have been opened.
    opened: usize,
}

impl Several {
    /// Opens the first item of an iterable, and returns a reader of all items.
    ///
    /// # Errors
    /// Raises `InvalidArgumentError` if there are no items, or if the first one is not Arrow data. Also raises any
    /// exception that the iterable raises.
    pub(crate) fn open(items: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut items = items.try_iter()?;
        let Some(first) = items.next().transpose()? else {
            return Err(to_python(
                &Error::invalid_argument("the data is an empty list, which has no columns")
                    .with_hint("pass at least one batch, which may have no rows"),
            ));
        };
        let current = reader_of_item(&first, 1)?;
        Ok(Self { schema: current.schema(), items: items.unbind(), current, opened: 1 })
    }

    /// Opens the next item.
    fn advance(&mut self) -> PyResult<bool> {
        let advanced = Python::try_attach(|py| {
            let next = foreign::calling(|| self.items.bind(py).clone().next());
            let Some(item) = next.transpose()? else { return Ok(false) };
            self.opened += 1;
            self.current = reader_of_item(&item, self.opened)?;
            if !have_equal_columns(&self.current.schema(), &self.schema) {
                return Err(to_python(
                    &Error::invalid_argument(format!(
                        "item {} of the data does not have the columns of the first item: {} instead of {}",
                        self.opened,
                        columns(&self.current.schema()),
                        columns(&self.schema)
                    ))
                    .with_hint("pass batches with one schema"),
                ));
            }
            Ok(true)
        });
        advanced.unwrap_or_else(|| Err(PyRuntimeError::new_err(ending::TOO_LATE)))
    }
}

/// Opens an item. A list inside of a list is refused.
fn reader_of_item(item: &Bound<'_, PyAny>, number: usize) -> PyResult<Reader> {
    if item.hasattr("__arrow_c_stream__")? || item.hasattr("__arrow_c_array__")? {
        return reader_of(item);
    }
    let kind = item.get_type().name()?;
    Err(to_python(
        &Error::invalid_argument(format!(
            "item {number} of the data has the type {kind}, which is not Arrow data"
        ))
        .with_hint("pass pyarrow record batches or tables, or objects with __arrow_c_stream__"),
    ))
}

fn have_equal_columns(one: &Schema, other: &Schema) -> bool {
    one.fields().len() == other.fields().len()
        && one.fields().iter().zip(other.fields()).all(|(one, other)| {
            one.name() == other.name() && one.data_type().equals_datatype(other.data_type())
        })
}

fn columns(schema: &Schema) -> String {
    let columns = schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
    columns.collect::<Vec<_>>().join(", ")
}

impl Iterator for Several {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.current.next() {
                // Items may differ in their metadata, and in which columns may be NULL. The first item determines
                // both.
                return Some(batch.and_then(|batch| {
                    RecordBatch::try_new(SchemaRef::clone(&self.schema), batch.columns().to_vec())
                }));
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(exception) => return Some(Err(ArrowError::ExternalError(Box::new(exception)))),
            }
        }
    }
}

impl RecordBatchReader for Several {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}
