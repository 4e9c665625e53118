//! The file actions of a commit that changed rows.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, MapArray, MapBuilder, MapFieldNames, RecordBatch, StringBuilder,
};
use serde_json::Value;

use super::files::ChangeKind;
use super::pruner::FeedPruner;
use crate::error::{Error, Result};
use crate::log::replay::{Commit, FileColumn, changing, with_columns};
use crate::protocol::{AddCdcFile, CommitInfo, LogPath, PathResolver};

/// A commit that changed rows, with the file actions that made the changes.
#[derive(Debug)]
pub(crate) struct FeedCommit {
    pub(super) version: u64,
    pub(super) timestamp_ms: i64,
    pub(super) actions: FeedActions,
}

#[derive(Debug)]
pub(super) enum FeedActions {
    /// Changes that the writer recorded.
    Recorded { files: Vec<AddCdcFile>, partition_values: MapArray, kept: Kept },
    /// `add` and `remove` actions, from which the changes are inferred.
    Inferred { adds: FileActions, removes: FileActions },
}

/// File actions of one kind.
#[derive(Debug)]
pub(super) struct FileActions {
    /// The actions as Arrow rows, with the required columns of the log (`path`, `size`, …).
    pub(super) batch: RecordBatch,
    /// The actions that may contain a requested change: an inserted row for an `add` action, a deleted row for a
    /// `remove` action. `batch` contains the other actions as well, because the two actions of a path are compared.
    pub(super) kept: Kept,
}

/// The files of a commit that may contain a requested change; `None` means all files.
#[derive(Debug)]
pub(super) struct Kept(Option<BooleanArray>);

impl Kept {
    pub(super) fn has(&self, row: usize) -> bool {
        self.0.as_ref().is_none_or(|kept| kept.is_null(row) || kept.value(row))
    }

    /// Restricts the files to those that are also in `selected`.
    fn and(self, selected: Option<&BooleanArray>) -> Self {
        let Some(selected) = selected else { return self };
        let both = |(row, is_selected)| Some(is_selected == Some(true) && self.has(row));
        Self(Some(selected.iter().enumerate().map(both).collect()))
    }
}

/// The columns of file actions that are kept.
const COLUMNS: [FileColumn; 4] =
    [FileColumn::Path, FileColumn::Size, FileColumn::PartitionValues, FileColumn::DeletionVector];

/// The file actions of a commit that changed rows, as rows with the columns of the log.
#[derive(Debug)]
pub(super) enum ChangedActions {
    /// Changes that the writer recorded.
    Recorded(Vec<AddCdcFile>),
    /// `add` and `remove` actions with `dataChange`, newest first.
    Inferred { adds: RecordBatch, removes: RecordBatch },
}

/// A selection of the actions of a commit.
#[derive(Debug)]
pub(super) struct Selected {
    /// Whether each of the recorded files, or of the `add` actions, is selected.
    pub(super) files: BooleanArray,
    pub(super) removes: BooleanArray,
}

impl ChangedActions {
    /// Collects the file actions of `commit` that changed rows.
    ///
    /// # Errors
    /// Returns `CorruptLog` if an action is invalid.
    pub(super) fn of(commit: Commit) -> Result<Self> {
        if !commit.cdc.is_empty() {
            return Ok(Self::Recorded(commit.cdc));
        }
        let has_changes = !commit.commit_info.as_ref().is_some_and(is_merge_without_changes);
        let actions = |actions: &RecordBatch| -> Result<RecordBatch> {
            let actions = if has_changes { changing(actions)? } else { actions.slice(0, 0) };
            with_statistics(&actions)
        };
        Ok(Self::Inferred { adds: actions(&commit.adds)?, removes: actions(&commit.removes)? })
    }

    /// Returns the commit with all of these actions, or with the selected ones. Actions that cannot contain a
    /// requested row are left out.
    ///
    /// # Errors
    /// Returns `CorruptLog` if an action is invalid.
    pub(super) fn feed_commit(
        &self,
        version: u64,
        timestamp_ms: i64,
        pruner: Option<&FeedPruner>,
        selected: Option<&Selected>,
    ) -> Result<FeedCommit> {
        let kept = |actions: &RecordBatch, kind: ChangeKind, selected: Option<&BooleanArray>| {
            let kept = pruner.map(|pruner| pruner.keep(actions, kind, version, timestamp_ms));
            kept.transpose().map(|kept| Kept(kept.flatten()).and(selected))
        };
        let selected_files = selected.map(|selected| &selected.files);
        let actions = match self {
            Self::Recorded(files) => {
                let partition_values = maps_of(files)?;
                let field = FileColumn::PartitionValues.name();
                let columns =
                    RecordBatch::try_from_iter([(field, Arc::new(partition_values.clone()) as ArrayRef)]);
                let columns = columns.map_err(|error| {
                    Error::corrupt_log("change data files have invalid partition values").with_source(error)
                })?;
                let kept = kept(&columns, ChangeKind::Recorded, selected_files)?;
                FeedActions::Recorded { files: files.clone(), partition_values, kept }
            }
            Self::Inferred { adds, removes } => {
                let selected_removes = selected.map(|selected| &selected.removes);
                FeedActions::Inferred {
                    adds: FileActions {
                        kept: kept(adds, ChangeKind::Insert, selected_files)?,
                        batch: without_statistics(adds)?,
                    },
                    removes: FileActions {
                        kept: kept(removes, ChangeKind::Delete, selected_removes)?,
                        batch: without_statistics(removes)?,
                    },
                }
            }
        };
        Ok(FeedCommit { version, timestamp_ms, actions })
    }
}

impl FeedCommit {
    /// Collects the file actions of `commit` that changed rows.
    ///
    /// # Errors
    /// Returns `CorruptLog` if an action is invalid.
    pub(super) fn new(commit: Commit, timestamp_ms: i64, pruner: Option<&FeedPruner>) -> Result<Self> {
        let version = commit.version;
        ChangedActions::of(commit)?.feed_commit(version, timestamp_ms, pruner, None)
    }
}

/// Returns the columns of file actions that pruning and reading need.
pub(super) fn with_statistics(actions: &RecordBatch) -> Result<RecordBatch> {
    let columns = COLUMNS.iter().chain([&FileColumn::Stats]);
    with_columns(actions, columns.map(|column| column.field()).collect())
}

fn without_statistics(actions: &RecordBatch) -> Result<RecordBatch> {
    with_columns(actions, COLUMNS.iter().map(|column| column.field()).collect())
}

/// Returns whether the commit's metrics report a MERGE that changed no row. Missing metrics report nothing.
fn is_merge_without_changes(info: &CommitInfo) -> bool {
    let metric = |name: &str| info.operation_metrics.as_ref().and_then(|metrics| metrics.get(name));
    let is_zero = |value: &Value| value.as_str() == Some("0") || value.as_u64() == Some(0);
    info.operation.as_deref() == Some("MERGE")
        && ["numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"]
            .iter()
            .all(|name| metric(name).is_some_and(is_zero))
}

/// Returns the partition values of `files` as maps, like the column `partitionValues` of `add` actions.
fn maps_of(files: &[AddCdcFile]) -> Result<MapArray> {
    let names =
        MapFieldNames { entry: "key_value".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
    let mut maps = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for file in files {
        for (key, value) in &file.partition_values {
            maps.keys().append_value(key);
            maps.values().append_option(value.as_deref());
        }
        maps.append(true).map_err(|error| {
            Error::corrupt_log("a map has more entries than an Arrow array can hold").with_source(error)
        })?;
    }
    Ok(maps.finish())
}

/// Returns the decoded and validated paths of a batch of file actions.
pub(super) fn paths(actions: &RecordBatch, resolver: &PathResolver) -> Result<Vec<Arc<LogPath>>> {
    let paths =
        actions.column_by_name(FileColumn::Path.name()).and_then(|paths| paths.as_string_opt::<i32>());
    let paths = paths.ok_or_else(|| Error::corrupt_log("the column 'path' does not hold strings"))?;
    paths.iter().map(|path| resolver.resolve(path.unwrap_or_default()).map(Arc::new)).collect()
}
