//! Writes the change data files of a version, which contain changed rows and the kind of each change. (Protocol:
//! "Change Data Files".)
//!
//! - If a version has such files, they contain all of its changes, because readers of the change feed then ignore the
//!   version's other actions.
//! - The files have only the table's columns and `_change_type`, without the hidden columns of row tracking.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Field, Schema};

use crate::error::{Error, Result};
use crate::protocol::AddCdcFile;
use crate::runtime::environment::Environment;
use crate::scan::changes::CHANGE_TYPE;
use crate::storage::Storage;
use crate::write::{DataWriter, TableWriteSpec, WriteOptions};

/// The kind of change to a row, as the change data feed shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Insert,
    Delete,
    Before,
    After,
}

impl Change {
    fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Before => "update_preimage",
            Self::After => "update_postimage",
        }
    }
}

/// A writer of change data files. It creates no file before the first change.
pub(crate) struct ChangeFiles {
    storage: Storage,
    environment: Environment,
    /// The table's requirements for its files.
    spec: TableWriteSpec,
    writer: Option<DataWriter>,
}

impl ChangeFiles {
    /// Creates a writer for the table at `storage`, whose files follow `spec` except for the additional column.
    ///
    /// # Errors
    /// Returns the same errors as [`ensure_recordable`].
    pub(crate) fn new(storage: &Storage, environment: &Environment, spec: &TableWriteSpec) -> Result<Self> {
        ensure_recordable(spec)?;
        Ok(Self {
            storage: storage.clone(),
            environment: environment.clone(),
            spec: spec.clone(),
            writer: None,
        })
    }

    /// Writes rows that had the given kind of change. The first columns must be the table's columns.
    ///
    /// # Errors
    /// Returns errors from the store.
    pub(crate) fn record(&mut self, rows: &RecordBatch, change: Change) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let mut options = WriteOptions::new(self.environment.clone());
                options.directory = Some(AddCdcFile::DIRECTORY.to_owned());
                let spec = self.spec.clone().with_change_type(CHANGE_TYPE);
                self.writer.insert(DataWriter::new(self.storage.clone(), spec, options)?)
            }
        };
        let columns: Vec<usize> = (0..self.spec.arrow().fields().len()).collect();
        let rows = rows.project(&columns).map_err(unfit)?;
        let kind = StringArray::from_iter_values(std::iter::repeat_n(change.name(), rows.num_rows()));
        let field = Field::new(CHANGE_TYPE, DataType::Utf8, true);
        writer.write(&with_column(&rows, field, Arc::new(kind))?)
    }

    /// Completes the files, and returns the actions that add them.
    ///
    /// # Errors
    /// Returns errors from the store, after deleting the files.
    pub(crate) fn finish(self) -> Result<Vec<AddCdcFile>> {
        let files = self.writer.map(DataWriter::finish).transpose()?.unwrap_or_default();
        Ok(files.into_iter().map(AddCdcFile::from).collect())
    }
}

/// Refuses a table with a column named `_change_type`, because that name is reserved for the kind of change.
///
/// # Errors
/// Returns `Unsupported` for such a table.
pub fn ensure_recordable(spec: &TableWriteSpec) -> Result<()> {
    let is_taken = |field: &Arc<Field>| field.name().eq_ignore_ascii_case(CHANGE_TYPE);
    if !spec.arrow().fields().iter().any(is_taken) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the column '{CHANGE_TYPE}' of the table has a name that is reserved for the change data feed"
    ))
    .with_hint("rename the column"))
}

/// Returns `rows` with one more column.
///
/// # Errors
/// Returns `InvalidArgument` if the column has a different length.
pub(crate) fn with_column(rows: &RecordBatch, field: Field, column: ArrayRef) -> Result<RecordBatch> {
    let fields = rows.schema_ref().fields().iter().cloned().chain([Arc::new(field)]);
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns = rows.columns().iter().cloned().chain([column]).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(unfit)
}

fn unfit(error: arrow::error::ArrowError) -> Error {
    Error::invalid_argument("changed rows do not fit the table").with_source(error)
}
