//! Sets of files for transactions. An element is a data file, or a data file with a certain deletion vector.

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};

use super::columns::FileColumn;
use super::key::Keys;
use super::seen::Seen;
use crate::error::{Error, Result};
use crate::protocol::PathResolver;

/// A set of files, identified by their resolved paths, with or without their deletion vectors.
#[derive(Debug)]
pub(crate) struct FileSet {
    seen: Seen,
    with_vectors: bool,
}

impl FileSet {
    /// Returns an empty set of data files.
    pub(crate) fn of_paths(resolver: &PathResolver) -> Self {
        Self { seen: Seen::with_capacity(resolver.clone(), 0), with_vectors: false }
    }

    /// Returns an empty set of logical files, that is, of data files with their deletion vectors.
    pub(crate) fn of_logical_files(resolver: &PathResolver) -> Self {
        Self { with_vectors: true, ..Self::of_paths(resolver) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Adds the files of `batch`, which has the log's columns. Returns the path of the first file that was already in
    /// the set, if there is one.
    ///
    /// # Errors
    /// `CorruptLog` for a path that the table must not refer to.
    pub(crate) fn insert(&mut self, batch: &RecordBatch) -> Result<Option<String>> {
        let number = self.seen.add_keys(self.keys(batch)?);
        let mut twice = None;
        for row in 0..batch.num_rows() {
            if !self.seen.mark(number, row)? && twice.is_none() {
                twice = path(batch, row);
            }
        }
        Ok(twice)
    }

    /// Returns the path of the first file of `batch` that is in the set.
    ///
    /// # Errors
    /// Returns the same errors as [`FileSet::insert`].
    pub(crate) fn find(&self, batch: &RecordBatch) -> Result<Option<String>> {
        if self.is_empty() || batch.num_rows() == 0 {
            return Ok(None);
        }
        let keys = self.keys(batch)?;
        for row in 0..batch.num_rows() {
            if self.seen.contains(&keys, row)? {
                return Ok(path(batch, row));
            }
        }
        Ok(None)
    }

    /// Returns which files of `batch` are in the set.
    ///
    /// # Errors
    /// Returns the same errors as [`FileSet::insert`].
    pub(crate) fn contains(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let keys = self.keys(batch)?;
        let found: Result<Vec<bool>> =
            (0..batch.num_rows()).map(|row| self.seen.contains(&keys, row)).collect();
        found.map(BooleanArray::from)
    }

    fn keys(&self, batch: &RecordBatch) -> Result<Keys> {
        if self.with_vectors {
            return Keys::new(batch);
        }
        let columns: Vec<usize> = batch.schema().index_of(FileColumn::Path.name()).into_iter().collect();
        let paths = batch
            .project(&columns)
            .map_err(|error| Error::corrupt_log("file actions have no paths").with_source(error))?;
        Keys::new(&paths)
    }
}

/// Returns the path of a row, spelled as in the log.
pub(crate) fn path(batch: &RecordBatch, row: usize) -> Option<String> {
    let paths = batch.column_by_name(FileColumn::Path.name())?.as_string_opt::<i32>()?;
    (row < paths.len() && paths.is_valid(row)).then(|| paths.value(row).to_owned())
}
