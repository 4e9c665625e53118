//! Looks for problems of a single file in the log.
//!
//! ```text
//!   exists? ──► size ──► footer: columns within the file, number of rows ──► rows, statistics
//!                              │ the number of rows
//!                              ▼
//!   deletion vector: exists? ──► checksum, cardinality, positions
//! ```
//!
//! A failure of the store is returned as an error, and is never reported as a problem of the file.

use parquet::file::metadata::ParquetMetaData;

use super::CheckLevel;
use super::problem::{FileProblem, Finding};
use super::rows::RowCheck;
use super::stored::Stored;
use crate::error::{Error, ErrorKind, Result};
use crate::log::deletion_vector::{DeletionVectors, VectorPlace};
use crate::operations::rewrite::ListedFile;
use crate::protocol::DeletionVectorDescriptor;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::values::stats::num_records;
use crate::write::read_footer;

/// Inspects the files of a version. Several threads may use it at the same time.
pub(super) struct Inspector<'a> {
    snapshot: &'a Snapshot,
    stored: &'a Stored,
    level: CheckLevel,
    vectors: DeletionVectors,
    rows: Option<RowCheck>,
}

impl<'a> Inspector<'a> {
    /// # Errors
    /// Returns `CorruptLog` if the log is invalid.
    pub(super) fn new(snapshot: &'a Snapshot, stored: &'a Stored, level: CheckLevel) -> Result<Self> {
        let vectors = DeletionVectors::new(snapshot.storage().clone(), snapshot.resolver().clone());
        let rows = (level == CheckLevel::Rows).then(|| RowCheck::of(snapshot)).transpose()?;
        Ok(Self { snapshot, stored, level, vectors, rows })
    }

    /// Returns the problems of a file.
    ///
    /// # Errors
    /// Returns `CorruptLog`, `Unsupported` for a file in another store, and errors from the store.
    pub(super) fn inspect(&self, file: &ListedFile) -> Result<Vec<Finding>> {
        self.try_inspect(file).map_err(|error| self.snapshot.located(error.at_path(&file.add.path)))
    }

    fn try_inspect(&self, file: &ListedFile) -> Result<Vec<Finding>> {
        let mut found = Vec::new();
        let footer = match self.stored.size_of(&file.file.path)? {
            None => {
                found.push(missing());
                None
            }
            Some(size) => {
                if size != file.file.size {
                    let detail = format!("it has {size} bytes instead of the {} in the log", file.file.size);
                    found.push(Finding::new(FileProblem::WrongSize, detail));
                }
                self.footer(file, &mut found)?
            }
        };
        let rows = footer.as_ref().map(rows_of).transpose()?;
        if let (Some(rows), Some(recorded)) = (rows, file.add.stats.as_deref().and_then(num_records))
            && rows != recorded
        {
            let detail = format!("it has {rows} rows instead of the {recorded} in its statistics");
            found.push(Finding::new(FileProblem::WrongRowCount, detail));
        }
        let problem = match &file.add.deletion_vector {
            Some(descriptor) => self.vector(descriptor, rows)?,
            None => None,
        };
        let vector_fits = problem.is_none();
        found.extend(problem);
        if let (Some(check), Some(_)) = (&self.rows, &footer) {
            found.extend(check.check(&file.add, &file.file, vector_fits)?);
        }
        Ok(found)
    }

    /// Returns the footer of an existing file. Returns `None` if footers are not checked, or if the footer cannot be
    /// read. In the latter case, the problem is added to `found`.
    fn footer(&self, file: &ListedFile, found: &mut Vec<Finding>) -> Result<Option<ParquetMetaData>> {
        if self.level == CheckLevel::Files {
            return Ok(None);
        }
        match whole_footer(self.snapshot.storage(), file) {
            Ok(footer) => return Ok(Some(footer)),
            Err(error) if error.kind() == ErrorKind::CorruptData => {
                found.push(Finding::of_error(FileProblem::DamagedFile, &error));
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                found.push(Finding::of_error(FileProblem::UnsupportedFile, &error));
            }
            // The file was deleted after the store was listed.
            Err(error) if error.kind() == ErrorKind::FileNotFound => found.push(missing()),
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    /// Returns the problem of a deletion vector; `None` if it is valid. `rows` is the number of rows in the data
    /// file, if it is known.
    fn vector(&self, descriptor: &DeletionVectorDescriptor, rows: Option<u64>) -> Result<Option<Finding>> {
        let place = match VectorPlace::of(descriptor, self.snapshot.resolver()) {
            Ok(place) => place,
            Err(error) if error.kind() == ErrorKind::CorruptLog => {
                return Ok(Some(Finding::of_error(FileProblem::DamagedVector, &error)));
            }
            Err(error) => return Err(error),
        };
        if let VectorPlace::File { path, .. } = &place
            && self.stored.size_of(path)?.is_none()
        {
            let detail = format!("its deletion vector '{path}' does not exist");
            return Ok(Some(Finding::new(FileProblem::MissingVector, detail)));
        }
        if self.level == CheckLevel::Files {
            return Ok(None);
        }
        match self.vectors.read(descriptor, rows) {
            Ok(_) => Ok(None),
            Err(error) => match error.kind() {
                ErrorKind::FileNotFound => Ok(Some(Finding::of_error(FileProblem::MissingVector, &error))),
                // A vector in an unsupported store is refused above, so `Unsupported` can only mean that the version
                // of the deletion vector's format is not supported.
                ErrorKind::CorruptData | ErrorKind::CorruptLog | ErrorKind::Unsupported => {
                    Ok(Some(Finding::of_error(FileProblem::DamagedVector, &error)))
                }
                _ => Err(error),
            },
        }
    }
}

fn missing() -> Finding {
    Finding::new(FileProblem::MissingFile, "the log names it, but it does not exist")
}

fn rows_of(footer: &ParquetMetaData) -> Result<u64> {
    u64::try_from(footer.file_metadata().num_rows())
        .map_err(|_| Error::corrupt_data("the footer has a negative number of rows"))
}

/// Reads the footer, and checks that all column chunks lie within the file.
fn whole_footer(storage: &Storage, file: &ListedFile) -> Result<ParquetMetaData> {
    let reader = storage.open_log_path(&file.file.path)?;
    let footer = read_footer(&reader)?;
    rows_of(&footer)?;
    let size = i64::try_from(reader.size()).unwrap_or(i64::MAX);
    let is_within = footer.row_groups().iter().flat_map(|group| group.columns()).all(|column| {
        let start = column.dictionary_page_offset().unwrap_or(i64::MAX).min(column.data_page_offset());
        let end = start.checked_add(column.compressed_size());
        start >= 0 && column.compressed_size() >= 0 && end.is_some_and(|end| end <= size)
    });
    let rows: i128 = footer.row_groups().iter().map(|group| i128::from(group.num_rows())).sum();
    match (is_within, rows == footer.file_metadata().num_rows().into()) {
        (true, true) => Ok(footer),
        (false, _) => Err(Error::corrupt_data("the footer names pages beyond the end of the file")),
        (_, false) => {
            Err(Error::corrupt_data("the row groups do not have the number of rows that the footer states"))
        }
    }
}
