//! The files of a version, with the properties that statements need.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use roaring::RoaringTreemap;

use crate::error::Result;
use crate::expression::predicate::Predicate;
use crate::log::deletion_vector::{DeletionVector, DeletionVectors};
use crate::log::replay::{AddRequest, FileColumn, FileColumns, FileFilter, FileSet, add_at, batches_of_adds};
use crate::protocol::{Add, LogPath};
use crate::scan::{DataFile, FileRows, PartitionColumns, certain_file_filters, data_files, file_filters};
use crate::snapshot::Snapshot;
use crate::values::stats::{is_own, num_records, with_num_records};
use crate::write::row_counts::{has_certain_count, rows_in_footer};

/// A file of a snapshot: its `add` action, and the same file in the form that a scan reads.
#[derive(Debug, Clone)]
pub struct ListedFile {
    /// The action that adds the file.
    pub add: Add,
    /// The file, as a scan reads it.
    pub file: DataFile,
}

impl ListedFile {
    /// Returns the rows of the file that are deleted in `base`.
    ///
    /// # Errors
    /// Returns the errors of [`DeletionVectors::read`].
    pub(crate) fn deleted(&self, base: &Snapshot) -> Result<RoaringTreemap> {
        let vectors = DeletionVectors::new(base.storage().clone(), base.resolver().clone());
        vectors.deleted(self.add.deletion_vector.as_ref(), None)
    }

    /// Returns whether this crate has computed the file's statistics.
    pub(crate) fn has_own_statistics(&self) -> bool {
        self.add.stats.as_deref().is_some_and(is_own)
    }

    /// Returns the number of rows that are not deleted, if the statistics state the number of rows.
    pub(crate) fn live_rows(&self) -> Option<u64> {
        self.live_among(self.num_records()?)
    }

    /// Returns the number of rows that are not deleted, according to the footer. Returns `None` if the deletion
    /// vector has more rows than the file.
    ///
    /// # Errors
    /// Returns `CorruptData` for a file that is not Parquet, and errors from the store.
    pub(crate) fn live_rows_by_footer(&self, base: &Snapshot) -> Result<Option<u64>> {
        Ok(self.live_among(self.rows_in_footer(base)?))
    }

    /// Returns how many of `rows` rows are not deleted.
    fn live_among(&self, rows: u64) -> Option<u64> {
        let deleted = self.add.deletion_vector.as_ref().map_or(0, |vector| vector.cardinality);
        rows.checked_sub(u64::try_from(deleted).ok()?)
    }

    /// Returns the same file, restricted to the given rows.
    pub(crate) fn of_rows(&self, rows: &RoaringTreemap) -> DataFile {
        let chosen = FileRows::Chosen(Arc::new(DeletionVector::from(rows.clone())));
        DataFile { rows: chosen, ..self.file.clone() }
    }

    /// Returns the number of rows, including deleted rows, if the statistics state it.
    pub(crate) fn num_records(&self) -> Option<u64> {
        self.add.stats.as_deref().and_then(num_records)
    }

    /// Returns the action with the file's number of rows, which is required to delete rows. The number is taken from
    /// the statistics. If they lack it, the footer is read. The footer is also read, to confirm the number, if no rows
    /// would remain after `removed` rows are deleted.
    ///
    /// # Errors
    /// Returns `CorruptData` for a file that is not Parquet, or whose number of rows differs from its statistics, and
    /// errors from the store.
    pub(crate) fn counted(&self, base: &Snapshot, removed: u64) -> Result<Add> {
        let deleted = self.add.deletion_vector.as_ref().map_or(0, |vector| vector.cardinality);
        let deleted = u64::try_from(deleted).unwrap_or_default().saturating_add(removed);
        match self.num_records() {
            Some(rows) if deleted < rows => Ok(self.add.clone()),
            _ => self.counted_in_footer(base),
        }
    }

    /// Returns the action with the exact number of rows: from statistics that this crate has computed, or else from
    /// the footer.
    ///
    /// # Errors
    /// Returns the same errors as [`ListedFile::counted_in_footer`].
    pub(crate) fn counted_certainly(&self, base: &Snapshot) -> Result<Add> {
        match has_certain_count(&self.add) {
            true => Ok(self.add.clone()),
            false => self.counted_in_footer(base),
        }
    }

    /// Returns all deleted rows, including `removed`; `None` if no rows remain. If the number of rows is not known,
    /// some rows are assumed to remain.
    ///
    /// # Errors
    /// Returns the errors of [`DeletionVectors::read`], `CorruptData` for a file that is not Parquet, or whose number
    /// of rows differs from its statistics, and errors from the store.
    pub fn deleted_with(&self, base: &Snapshot, removed: &RoaringTreemap) -> Result<Option<DeletionVector>> {
        let deleted = self.deleted(base)? | removed;
        if self.num_records().is_none_or(|rows| deleted.len() < rows) {
            return Ok(Some(DeletionVector::from(deleted)));
        }
        self.counted_in_footer(base).map(|_| None)
    }

    /// Returns the action with the number of rows that the footer states.
    ///
    /// # Errors
    /// Returns `CorruptData` for a file that is not Parquet, or whose number of rows differs from its statistics, and
    /// errors from the store.
    pub(crate) fn counted_in_footer(&self, base: &Snapshot) -> Result<Add> {
        with_num_records(self.add.clone(), self.rows_in_footer(base)?)
    }

    fn rows_in_footer(&self, base: &Snapshot) -> Result<u64> {
        rows_in_footer(base, &self.add.path)
    }
}

/// Returns the files of `base` that may contain rows for which `predicate` is true; all files if there is no
/// predicate.
///
/// # Errors
/// Returns `CorruptLog`, and errors from the store.
pub fn listed_files(base: &Snapshot, predicate: Option<&Predicate>) -> Result<Vec<ListedFile>> {
    list(base, predicate, |_| true)
}

/// Returns the files of `base` that may contain rows for which `predicate` is true. Statistics of other writers are
/// not trusted.
///
/// # Errors
/// Returns the same errors as [`listed_files`].
pub(crate) fn files_in_doubt(base: &Snapshot, predicate: &Predicate) -> Result<Vec<DataFile>> {
    let filters = certain_file_filters(base, predicate).map_err(|error| base.located(error))?;
    let mut found = Vec::new();
    visit_kept(base, filters, |_, files| {
        found.extend(files);
        Ok(())
    })?;
    Ok(found)
}

/// Returns those files of `base` that may contain rows for which `predicate` is true, and whose paths, as the log
/// spells them, are in `wanted`.
///
/// # Errors
/// Returns the same errors as [`listed_files`].
pub(crate) fn list(
    base: &Snapshot,
    predicate: Option<&Predicate>,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<ListedFile>> {
    let mut found = Vec::new();
    visit_files(base, predicate, |batch, files| {
        for (row, file) in files.into_iter().enumerate() {
            let add = add_at(batch, row)?;
            if wanted(&add.path) {
                found.push(ListedFile { add, file });
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns the `add` actions that `base` has for the data files in `files`, by their paths. Their deletion vectors may
/// differ from the deletion vectors in `files`.
///
/// # Errors
/// Returns `CorruptLog`, and errors from the store.
pub(crate) fn current_actions(base: &Snapshot, files: &[Add]) -> Result<HashMap<LogPath, Add>> {
    let resolver = base.resolver();
    let mut wanted = FileSet::of_paths(resolver);
    for batch in batches_of_adds(files)? {
        wanted.insert(&batch)?;
    }
    let mut found = HashMap::new();
    visit_files(base, None, |batch, _| {
        for (row, is_wanted) in wanted.contains(batch)?.values().iter().enumerate() {
            if is_wanted {
                let add = add_at(batch, row)?;
                found.insert(resolver.parse(&add.path)?, add);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Calls `visit` with the files of `base` that may contain rows for which `predicate` is true, or with all files if
/// there is no predicate. Each batch is passed both with the columns of the log and as the files that a scan reads.
///
/// # Errors
/// Returns the errors of `visit`, `CorruptLog`, and errors from the store.
pub(crate) fn visit_files(
    base: &Snapshot,
    predicate: Option<&Predicate>,
    visit: impl FnMut(&RecordBatch, Vec<DataFile>) -> Result<()>,
) -> Result<()> {
    let filters = predicate.map(|predicate| file_filters(base, predicate)).transpose();
    visit_kept(base, filters.map_err(|error| base.located(error))?.unwrap_or_default(), visit)
}

/// Calls `visit` with the files of `base` that `filters` keep.
fn visit_kept(
    base: &Snapshot,
    filters: Vec<FileFilter>,
    mut visit: impl FnMut(&RecordBatch, Vec<DataFile>) -> Result<()>,
) -> Result<()> {
    let located = |error| base.located(error);
    let mut request = AddRequest::new(FileColumns::of(&FileColumn::ALL));
    request.filters = filters;
    let partitions = PartitionColumns::of(base).map_err(located)?;
    for batch in base.replay(request)? {
        let batch = batch?;
        let files = data_files(&batch, base.resolver(), &partitions).map_err(located)?;
        visit(&batch, files).map_err(located)?;
    }
    Ok(())
}
