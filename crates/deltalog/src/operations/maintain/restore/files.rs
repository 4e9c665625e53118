//! Computes the files that a RESTORE removes and adds, as record batches with the columns of the log.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::Int64Type;

use super::RestoreMetrics;
use super::unfinished::ensure_none_deletes;
use crate::error::{Error, ErrorKind, Result};
use crate::log::deletion_vector::VectorPlace;
use crate::log::replay::{
    AddRequest, FileColumn, FileColumns, FileSet, adds_of, batches_of_adds, filtered, path_of, without,
};
use crate::protocol::{LogPath, tracks_rows};
use crate::runtime::parallel;
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;
use crate::write::row_counts::{Counted, with_certain_counts};

/// The maximum number of missing files in an error message.
const NAMED: usize = 10;

/// The changes that turn the files of one version into the files of another.
pub(super) struct FileChanges {
    /// The files that are added, as `add` actions.
    pub(super) adds: Vec<RecordBatch>,
    /// The files that are removed, given by their current `add` actions.
    pub(super) removes: Vec<RecordBatch>,
    missing: u64,
    missing_bytes: u64,
}

impl FileChanges {
    /// Returns the changes that turn the files of `base` into the files of `earlier`.
    ///
    /// # Errors
    /// Returns `Unsupported` if rows have been given different row ids since. Also returns `CorruptLog`, and errors
    /// from the store.
    pub(super) fn between(base: &Snapshot, earlier: &Snapshot) -> Result<Self> {
        if tracks_rows(earlier.protocol(), earlier.metadata()) {
            ensure_same_row_ids(base, earlier)?;
        }
        let removes = only_in(base, &files_of(earlier)?, FileColumns::of_removes())?;
        let added = only_in(earlier, &files_of(base)?, FileColumns::of(&FileColumn::ALL))?;
        let adds = added.iter().map(with_data_change).collect::<Result<_>>()?;
        Ok(Self { adds, removes, missing: 0, missing_bytes: 0 })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.adds.is_empty() && self.removes.is_empty()
    }

    /// Checks whether the added files exist in the store. If `may_ignore` is true, missing files are left out.
    ///
    /// # Errors
    /// Returns `FileNotFound` for missing files, and errors from the store.
    pub(super) fn without_missing(mut self, earlier: &Snapshot, may_ignore: bool) -> Result<Self> {
        let mut missing = HashSet::new();
        let mut kept = Vec::with_capacity(self.adds.len());
        let files = self.adds.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
        let progress = Progress::new("RESTORE", earlier.storage().url(), files, "files");
        for batch in self.adds {
            let files = needed_files(earlier, &batch)?;
            let threads = earlier.storage().readers(files.len());
            let is_there = parallel::each(&files, threads, |needed| {
                progress.add(1);
                needed
                    .iter()
                    .try_fold(true, |all, path| Ok::<_, Error>(all && earlier.storage().has_log_path(path)?))
            })?;
            let is_there = BooleanArray::from(is_there);
            if is_there.has_false() {
                let gone = without(&batch, &is_there)?;
                self.missing_bytes += counted(std::slice::from_ref(&gone)).1;
                missing.extend(adds_of(&gone)?.into_iter().map(|add| add.path));
                kept.push(filtered(&batch, &is_there)?);
            } else {
                kept.push(batch);
            }
        }
        self.missing = missing.len() as u64;
        if !missing.is_empty() && !may_ignore {
            let mut names: Vec<String> = missing.into_iter().collect();
            names.sort_unstable();
            let (count, version) = (names.len(), earlier.version());
            names.truncate(NAMED);
            let more = if count > NAMED { ", …" } else { "" };
            return Err(earlier.located(
                Error::new(
                    ErrorKind::FileNotFound,
                    format!(
                        "version {version} cannot be restored: {count} of its files no longer exist: {}{more}",
                        names.join(", ")
                    ),
                )
                .with_hint(
                    "choose a later version, restore the files, or ignore missing files and lose their rows",
                ),
            ));
        }
        self.adds = kept.into_iter().filter(|batch| batch.num_rows() > 0).collect();
        Ok(self)
    }

    /// Returns the same changes for a table with row ids, with the exact number of rows of each added file that will
    /// get new row ids.
    ///
    /// # Errors
    /// Returns the same errors as [`with_certain_counts`].
    pub(super) fn with_counted_rows(mut self, earlier: &Snapshot) -> Result<Self> {
        let mut counted = Vec::with_capacity(self.adds.len());
        for batch in &self.adds {
            let adds = adds_of(batch)?;
            let files: Vec<Counted<'_>> =
                adds.iter().map(|add| Counted { add: add.clone(), path: &add.path }).collect();
            counted.extend(batches_of_adds(&with_certain_counts(earlier, &files)?)?);
        }
        self.adds = counted;
        Ok(self)
    }

    /// Refuses to add files that a VACUUM may still be deleting.
    ///
    /// # Errors
    /// Returns `CommitConflict`, `CorruptLog`, and errors from the store.
    pub(super) fn ensure_none_is_vacuumed(
        &self,
        base: &Snapshot,
        earlier: &Snapshot,
        now_ms: i64,
    ) -> Result<()> {
        let mut needed = Vec::new();
        for batch in &self.adds {
            needed.extend(needed_files(earlier, batch)?);
        }
        match needed.is_empty() {
            true => Ok(()),
            false => ensure_none_deletes(&needed, base, earlier, now_ms),
        }
    }

    /// Returns the numbers and the total sizes of the files.
    pub(super) fn metrics(&self, earlier: &Snapshot) -> Result<RestoreMetrics> {
        let totals = earlier.totals()?;
        let (restored_files, restored_bytes) = counted(&self.adds);
        let (removed_files, removed_bytes) = counted(&self.removes);
        Ok(RestoreMetrics {
            table_bytes: totals.bytes.saturating_sub(self.missing_bytes),
            table_files: totals.files.saturating_sub(self.missing),
            removed_files,
            removed_bytes,
            restored_files,
            restored_bytes,
            missing_files: self.missing,
        })
    }
}

/// Refuses to restore a version if row tracking was dropped and enabled again since. A file that is in both versions
/// then has two different base row ids, and the old ids may now belong to other rows.
fn ensure_same_row_ids(base: &Snapshot, earlier: &Snapshot) -> Result<()> {
    let ids = |snapshot: &Snapshot| -> Result<HashMap<String, i64>> {
        let columns = FileColumns::of(&[FileColumn::Path, FileColumn::BaseRowId]);
        let mut found = HashMap::new();
        for batch in snapshot.replay_files(columns)? {
            let batch = batch?;
            let ids = batch.column_by_name(FileColumn::BaseRowId.name());
            let Some(ids) = ids.and_then(|column| column.as_primitive_opt::<Int64Type>()) else { continue };
            for (row, id) in ids.iter().enumerate() {
                found.extend(path_of(&batch, row).zip(id));
            }
        }
        Ok(found)
    };
    let (now, before) = (ids(base)?, ids(earlier)?);
    let differs = |(path, id): (&String, &i64)| now.get(path).is_some_and(|other| other != id);
    match before.iter().any(differs) {
        false => Ok(()),
        true => Err(earlier.located(
            Error::unsupported(
                "the version cannot be restored: row tracking was dropped and enabled again since, so that its rows \
                 have other ids now",
            )
            .with_hint("read the earlier version, and write its rows to the table instead"),
        )),
    }
}

fn files_of(snapshot: &Snapshot) -> Result<FileSet> {
    let mut files = FileSet::of_logical_files(snapshot.resolver());
    for batch in snapshot.replay_files(FileColumns::of(&[FileColumn::Path, FileColumn::DeletionVector]))? {
        files.insert(&batch?)?;
    }
    Ok(files)
}

/// Returns the files of `snapshot` that are not in `others`.
fn only_in(snapshot: &Snapshot, others: &FileSet, columns: FileColumns) -> Result<Vec<RecordBatch>> {
    let mut found = Vec::new();
    for batch in snapshot.replay(AddRequest::new(columns))? {
        let batch = batch?;
        let batch = without(&batch, &others.contains(&batch)?)?;
        if batch.num_rows() > 0 {
            found.push(batch);
        }
    }
    Ok(found)
}

/// Returns the files that each logical file needs: its data file and, if it has one, the file of its deletion vector.
fn needed_files(snapshot: &Snapshot, batch: &RecordBatch) -> Result<Vec<Vec<LogPath>>> {
    let resolver = snapshot.resolver();
    let needed = |add: crate::protocol::Add| {
        let mut files = vec![resolver.parse(&add.path)?];
        if let Some(vector) = &add.deletion_vector
            && let VectorPlace::File { path, .. } = VectorPlace::of(vector, resolver)?
        {
            files.push(path);
        }
        Ok(files)
    };
    adds_of(batch)?.into_iter().map(needed).collect()
}

fn with_data_change(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let mut columns = batch.columns().to_vec();
    if let Some((at, _)) = schema.column_with_name(FileColumn::DataChange.name())
        && let Some(column) = columns.get_mut(at)
    {
        *column = Arc::new(BooleanArray::from(vec![true; batch.num_rows()])) as ArrayRef;
    }
    RecordBatch::try_new(schema, columns).map_err(unreadable)
}

fn unreadable(error: arrow::error::ArrowError) -> Error {
    Error::corrupt_log("file actions cannot be read").with_source(error)
}

/// Returns the number of files in batches of file actions, and their total size.
pub(crate) fn counted(batches: &[RecordBatch]) -> (u64, u64) {
    let files = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    let sizes = batches.iter().filter_map(|batch| {
        let column = batch.column_by_name(FileColumn::Size.name())?.as_primitive_opt::<Int64Type>()?;
        Some(column.iter().flatten().filter_map(|size| u64::try_from(size).ok()).sum::<u64>())
    });
    (files, sizes.sum())
}
