//! Writes the new files of a statement: data files, and files for the change data feed. (Protocol: "Row Tracking",
//! "Change Data Files".)
//!
//! | kind of row | in the data file | in the change data file |
//! | --- | --- | --- |
//! | copied | unchanged, with its row id and commit version | |
//! | changed | checked, with its row id and the version of this commit | before and after |
//! | inserted | checked, with default and generated values | yes |
//! | deleted | | yes |

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Field};

use crate::error::Result;
use crate::protocol::{Add, AddCdcFile, Metadata};
use crate::runtime::environment::Environment;
use crate::runtime::row_bytes::is_too_large;
use crate::scan::{ROW_COMMIT_VERSION, RowScan};
use crate::snapshot::Snapshot;
use crate::write::change_files::{Change, ChangeFiles, with_column};
use crate::write::row_copy::RowCopy;
use crate::write::{DataWriter, RowCompletion, TableWriteSpec, WriteOptions};

/// Writes the rows of a statement to new files.
pub(crate) struct RowWriter {
    base: Snapshot,
    environment: Environment,
    /// The table's requirements for its files, without the columns for row ids.
    spec: TableWriteSpec,
    copy: RowCopy,
    /// Converts changed rows to the table's schema, computes their generated columns, and checks the table's rules. It
    /// is created when the first row changes.
    changed: Option<RowCompletion>,
    /// Does the same for inserted rows. It is created when the first row is inserted.
    inserted: Option<RowCompletion>,
    data: Option<DataWriter>,
    /// The change data files, if changes are recorded.
    changes: Option<ChangeFiles>,
}

impl RowWriter {
    /// Creates a writer for a statement on `base`. `records` says whether it writes change data files.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and `InvalidArgument` for a table with row tracking that has a column with the name of a
    /// row id column. Returns `Unsupported` if changes are recorded and the table has a column with the reserved name
    /// for the kind of change.
    pub(crate) fn new(base: &Snapshot, environment: &Environment, records: bool) -> Result<Self> {
        let spec = TableWriteSpec::of(base)?;
        let changes = records.then(|| ChangeFiles::new(base.storage(), environment, &spec)).transpose()?;
        Ok(Self {
            base: base.clone(),
            environment: environment.clone(),
            copy: RowCopy::of(base, spec.clone())?,
            spec,
            changed: None,
            inserted: None,
            data: None,
            changes,
        })
    }

    /// Returns a scan that reads the rows to rewrite: all columns and, if the table has row tracking, the row ids.
    pub(crate) fn scan(&self) -> &RowScan {
        &self.copy.scan
    }

    /// Writes rows that the scan has returned, without changing them.
    ///
    /// # Errors
    /// Returns errors from the store.
    pub(crate) fn copy(&mut self, rows: &RecordBatch) -> Result<()> {
        self.write(rows)
    }

    /// Records that rows which the scan has returned are deleted.
    ///
    /// # Errors
    /// Returns errors from the store.
    pub(crate) fn delete(&mut self, rows: &RecordBatch) -> Result<()> {
        self.record(rows, Change::Delete)
    }

    /// Replaces the rows `before`, which the scan has returned, with the rows `after`, in the same order. `after`
    /// includes the row ids, but not the generated columns, which are computed again.
    ///
    /// # Errors
    /// Returns `SchemaMismatch` and `InvalidArgument` for rows that the table does not allow, and errors from the
    /// store.
    pub(crate) fn update(&mut self, before: &RecordBatch, after: &RecordBatch) -> Result<()> {
        let completion = match &mut self.changed {
            Some(completion) => completion,
            None => self.changed.insert(RowCompletion::new(RowCopy::with_ids(
                &self.base,
                self.spec.clone().with_given_identities(),
            )?)?),
        };
        let after = match completion.complete(&without_commit_versions(after)?) {
            // Values that are computed again may be far larger than the old values, so fewer rows are written at once.
            Err(error) if is_too_large(&error) && after.num_rows() > 1 => {
                let (former, new) = (halves(before), halves(after));
                self.update(&former.0, &new.0)?;
                return self.update(&former.1, &new.1);
            }
            after => after?,
        };
        self.write(&after)?;
        self.record(before, Change::Before)?;
        self.record(&after, Change::After)
    }

    /// Adds new rows, which may lack some columns.
    ///
    /// # Errors
    /// Returns the same errors as [`RowWriter::update`].
    pub(crate) fn insert(&mut self, rows: &RecordBatch) -> Result<()> {
        let completion = match &mut self.inserted {
            Some(completion) => completion,
            None => {
                self.inserted.insert(RowCompletion::new(RowCopy::with_ids(&self.base, self.spec.clone())?)?)
            }
        };
        let rows = match completion.complete(rows) {
            Err(error) if is_too_large(&error) && rows.num_rows() > 1 => {
                let (first, second) = halves(rows);
                self.insert(&first)?;
                return self.insert(&second);
            }
            rows => rows?,
        };
        self.write(&rows)?;
        self.record(&rows, Change::Insert)
    }

    /// Completes the new data files and returns them. No more rows may be written after this call.
    ///
    /// # Errors
    /// Returns errors from the store, after deleting the files.
    pub(crate) fn finish_data(&mut self) -> Result<Vec<Add>> {
        self.data.take().map(DataWriter::finish).transpose().map(Option::unwrap_or_default)
    }

    /// Completes the new change data files and returns them. No more rows may be written after this call.
    ///
    /// # Errors
    /// Returns errors from the store, after deleting the files.
    pub(crate) fn finish_changes(&mut self) -> Result<Vec<AddCdcFile>> {
        self.changes.take().map(ChangeFiles::finish).transpose().map(Option::unwrap_or_default)
    }

    /// Returns the metadata with the new high water marks of identity columns, if there are such columns.
    ///
    /// # Errors
    /// Returns `CorruptLog` for an invalid schema.
    pub(crate) fn counted_metadata(&self) -> Result<Option<Metadata>> {
        self.spec.counted_metadata(self.base.metadata())
    }

    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let writer = match &mut self.data {
            Some(writer) => writer,
            None => {
                let options = WriteOptions::new(self.environment.clone());
                let storage = self.base.storage().clone();
                self.data.insert(DataWriter::new(storage, self.copy.spec.clone(), options)?)
            }
        };
        writer.write(rows)
    }

    fn record(&mut self, rows: &RecordBatch, change: Change) -> Result<()> {
        self.changes.as_mut().map_or(Ok(()), |changes| changes.record(rows, change))
    }
}

/// Splits rows into two halves.
fn halves(rows: &RecordBatch) -> (RecordBatch, RecordBatch) {
    let middle = rows.num_rows() / 2;
    (rows.slice(0, middle), rows.slice(middle, rows.num_rows() - middle))
}

/// Removes the commit versions from changed rows, so that they get the version of this commit. (PROTOCOL, "Row
/// Tracking".)
fn without_commit_versions(rows: &RecordBatch) -> Result<RecordBatch> {
    let Ok(index) = rows.schema_ref().index_of(ROW_COMMIT_VERSION) else { return Ok(rows.clone()) };
    let mut rows = rows.clone();
    rows.remove_column(index);
    let nulls = new_null_array(&DataType::Int64, rows.num_rows());
    with_column(&rows, Field::new(ROW_COMMIT_VERSION, DataType::Int64, true), nulls)
}
