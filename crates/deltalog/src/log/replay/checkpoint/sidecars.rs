//! Opens the sidecars of a checkpoint one by one, for a writer that reuses some of them in a new checkpoint. Protocol:
//! "Sidecar Files", "Sidecar File Information".
//!
//! - A sidecar can be reused if no commit after the checkpoint has an action for one of the files in it.
//! - The Bloom filters of the sidecar's paths nearly always show this. They are only used if the sidecar's writer has
//!   recorded that all paths are plain ([`PLAIN_PATHS`]), because a Bloom filter does not recognize a path in another
//!   spelling.
//! - If the Bloom filters do not decide it, paths and deletion vectors are decoded until such a file is found.
//! - The number of actions in a sidecar is read from its footer.

use arrow::array::RecordBatch;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;

use super::parquet_file::{ParquetFile, Piece};
use super::references::References;
use super::rows::{AddRequest, RowBatches, RowRequest};
use super::{Checkpoint, open_all};
use crate::error::Result;
use crate::log::replay::columns::FileColumns;
use crate::log::replay::tail::Tail;
use crate::protocol::Sidecar;

/// The name of an entry in the footer of a sidecar. The entry is `true` if every path in the sidecar is plain, so that
/// the path itself is the key of its file action.
pub(crate) const PLAIN_PATHS: &str = "deltalog.plainPaths";

/// An open sidecar of a checkpoint.
pub(crate) struct SidecarFile {
    action: Sidecar,
    file: ParquetFile,
}

/// The kind of file action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAction {
    Add,
    Remove,
}

impl FileAction {
    /// Returns the name of the action's column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
        }
    }
}

impl Checkpoint {
    /// Opens all sidecars. Returns `None` if the checkpoint has none, or if other files of the log replace the
    /// checkpoint.
    ///
    /// # Errors
    /// Returns `CorruptLog`, `FileNotFound` or an error from the store if the checkpoint cannot be read.
    pub(crate) fn open_sidecars(&self) -> Result<Option<Vec<SidecarFile>>> {
        if self.replacement().is_some() {
            return Ok(None);
        }
        let top = self.top()?;
        let References { actions, paths } = self.references(&top)?;
        let files = open_all(&self.storage, paths)?.into_iter().zip(actions);
        let sidecars: Vec<_> =
            files.map(|(file, action)| SidecarFile { action: action.clone(), file }).collect();
        Ok((!sidecars.is_empty()).then_some(sidecars))
    }
}

impl SidecarFile {
    /// Returns the action in the checkpoint that refers to this sidecar.
    pub(crate) fn action(&self) -> &Sidecar {
        &self.action
    }

    /// Returns the columns of the sidecar.
    pub(crate) fn schema(&self) -> &SchemaDescriptor {
        self.file.metadata().file_metadata().schema_descr()
    }

    /// Returns the number of actions of one kind. Returns `None` if the footer does not show it.
    pub(crate) fn count(&self, action: FileAction) -> Option<u64> {
        let Some(leaf) = self.file.leaf(&[action.name(), "path"]) else { return Some(0) };
        let of_group = |group: &RowGroupMetaData| {
            let nulls = group.columns().get(leaf)?.statistics()?.null_count_opt()?;
            u64::try_from(group.num_rows()).ok()?.checked_sub(nulls)
        };
        self.file.metadata().row_groups().iter().map(of_group).sum()
    }

    /// Returns the time of the newest tombstone. Returns `None` if the footer does not show it.
    pub(crate) fn newest_tombstone_ms(&self) -> Option<i64> {
        let leaf = self.file.leaf(&["remove", "deletionTimestamp"])?;
        let of_group = |group: &RowGroupMetaData| match group.columns().get(leaf)?.statistics()? {
            Statistics::Int64(times) => times.max_opt().copied(),
            _ => None,
        };
        let times: Option<Vec<i64>> = self.file.metadata().row_groups().iter().map(of_group).collect();
        times?.into_iter().max()
    }

    /// Returns whether no commit of `tail` has an action for one of the files in the sidecar. `paths` has the paths of
    /// these actions, or is `None` if there are too many.
    ///
    /// # Errors
    /// `CorruptLog` if the sidecar cannot be read; also errors from the store.
    pub(crate) fn is_current(&self, tail: &Tail, paths: Option<&[String]>) -> Result<bool> {
        if paths.is_some_and(|paths| self.has_none_of(paths)) {
            return Ok(true);
        }
        for action in [FileAction::Add, FileAction::Remove] {
            for batch in self.rows(RowRequest::keys(action.name())) {
                if tail.concerns(&batch?)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns whether the sidecar certainly contains none of the resolved paths `paths`.
    fn has_none_of(&self, paths: &[String]) -> bool {
        let has_none = |action: FileAction| {
            let Some(leaf) = self.file.leaf(&[action.name(), "path"]) else { return true };
            self.file.groups_with(action.name(), "path").into_iter().all(|group| {
                let filter = self.file.bloom_filter(group, leaf);
                filter.is_some_and(|filter| !paths.iter().any(|path| filter.check(path.as_str())))
            })
        };
        self.file.note(PLAIN_PATHS) == Some("true")
            && has_none(FileAction::Add)
            && has_none(FileAction::Remove)
    }

    /// Returns the `add` actions with `columns`, including those that later commits supersede.
    pub(crate) fn adds(&self, columns: FileColumns) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        self.rows(RowRequest::adds(&AddRequest::new(columns)))
    }

    /// Returns the `remove` actions, including those that later commits supersede.
    pub(crate) fn removes(&self) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        self.rows(RowRequest::removes())
    }

    fn rows(&self, request: RowRequest) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        let file = self.file.clone();
        let groups = request.groups(&file);
        groups.into_iter().flat_map(move |group| Rows(Some(request.open(&file, Piece::from(group)))))
    }
}

/// The batches of a row group. After an error, there are no more batches.
struct Rows(Option<Result<RowBatches>>);

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batches = match self.0.take()? {
            Ok(batches) => batches,
            Err(error) => return Some(Err(error)),
        };
        let next = batches.next_batch().transpose();
        if matches!(next, Some(Ok(_))) {
            self.0 = Some(Ok(batches));
        }
        next
    }
}
