//! The changes of a commit as a sequence of files, which streams read in sections.
//!
//! - The files have the order of the actions in the log, which is also the order in which the JVM implementation
//!   numbers them. They are the change data files if there are any, and otherwise the files of `add` and `remove`
//!   actions with `dataChange`.
//! - Change data files must be read together. Files of actions must be read together if one of them has a deletion
//!   vector, because the old and the new row of an update are then in different files.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::{Int64Type, Schema};

use super::commits::{ChangedActions, FeedCommit, Selected, with_statistics};
use super::pruner::FeedPruner;
use crate::error::{Error, Result};
use crate::log::replay::{Commit, FileColumn};

/// The changes of a commit, or the files of a snapshot as its changes.
#[derive(Debug)]
pub(crate) struct ChangeSequence {
    version: u64,
    modified_ms: i64,
    in_commit_timestamp_ms: Option<i64>,
    actions: ChangedActions,
    /// For each position in the sequence, whether it is an `add` action or recorded file, and its row among the
    /// actions of its kind.
    order: Vec<(bool, usize)>,
    sizes: Arc<[u64]>,
    has_vectors: bool,
}

impl ChangeSequence {
    /// Returns the changes of a commit. Its files have statistics only if the commit was read with statistics.
    ///
    /// # Errors
    /// Returns `CorruptLog` if an action is invalid.
    pub(crate) fn of_commit(commit: Commit) -> Result<Self> {
        let (version, modified_ms) = (commit.version, commit.modified_ms);
        let in_commit_timestamp_ms = commit.commit_info.as_ref().and_then(|info| info.in_commit_timestamp);
        let order = positions(&commit)?;
        let actions = ChangedActions::of(commit)?;
        let (order, sizes, has_vectors) = match &actions {
            ChangedActions::Recorded(files) => {
                let size = |file: &crate::protocol::AddCdcFile| u64::try_from(file.size).unwrap_or_default();
                ((0..files.len()).map(|row| (true, row)).collect(), files.iter().map(size).collect(), false)
            }
            // A MERGE that changed no row has no changes, although its commit contains file actions.
            ChangedActions::Inferred { adds, removes } if adds.num_rows() + removes.num_rows() == 0 => {
                (Vec::new(), Vec::new(), false)
            }
            ChangedActions::Inferred { adds, removes } => {
                let [of_adds, of_removes] = [sizes(adds)?, sizes(removes)?];
                let size = |(is_add, row): &(bool, usize)| {
                    let sizes = if *is_add { &of_adds } else { &of_removes };
                    sizes.get(*row).copied().unwrap_or_default()
                };
                let sizes = order.iter().map(size).collect();
                (order, sizes, has_vectors(adds) || has_vectors(removes))
            }
        };
        let sizes = sizes.into();
        Ok(Self { version, modified_ms, in_commit_timestamp_ms, actions, order, sizes, has_vectors })
    }

    /// Returns the given files of a snapshot, in this order, as changes that insert their rows in the snapshot's
    /// version.
    ///
    /// # Errors
    /// Returns `CorruptLog` if an action is invalid.
    pub(crate) fn of_snapshot(version: u64, files: &RecordBatch) -> Result<Self> {
        let order = (0..files.num_rows()).map(|row| (true, row)).collect();
        let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let actions =
            ChangedActions::Inferred { adds: with_statistics(files)?, removes: with_statistics(&none)? };
        let sizes = sizes(files)?.into();
        Ok(Self {
            version,
            modified_ms: 0,
            in_commit_timestamp_ms: None,
            actions,
            order,
            sizes,
            has_vectors: false,
        })
    }

    /// Returns the sizes of the files in bytes. The size of a removed file is 0 if the log does not state it.
    pub(crate) fn sizes(&self) -> &Arc<[u64]> {
        &self.sizes
    }

    /// Returns the commit time that is recorded in the commit itself, in milliseconds since the epoch.
    pub(crate) fn in_commit_timestamp_ms(&self) -> Option<i64> {
        self.in_commit_timestamp_ms
    }

    /// Returns the time at which the version was committed: the time in the commit, or else its file's modification
    /// time.
    pub(crate) fn timestamp_ms(&self) -> i64 {
        self.in_commit_timestamp_ms.unwrap_or(self.modified_ms)
    }

    /// Returns whether the files are change data files, in which the writer recorded the changes.
    pub(crate) fn is_recorded(&self) -> bool {
        matches!(self.actions, ChangedActions::Recorded(_))
    }

    /// Returns whether the files must be read together.
    pub(crate) fn is_indivisible(&self) -> bool {
        self.is_recorded() || self.has_vectors
    }

    /// Returns the changes of the files at these positions, except files that are excluded by their path in the log,
    /// and files that cannot contain a requested row.
    ///
    /// # Errors
    /// Returns `CorruptLog` if an action is invalid.
    pub(crate) fn part(
        &self,
        files: Range<usize>,
        is_excluded: impl Fn(&str) -> bool,
        timestamp_ms: i64,
        pruner: Option<&FeedPruner>,
    ) -> Result<FeedCommit> {
        let (mut added, mut removed) = match &self.actions {
            ChangedActions::Recorded(files) => (vec![false; files.len()], Vec::new()),
            ChangedActions::Inferred { adds, removes } => {
                (vec![false; adds.num_rows()], vec![false; removes.num_rows()])
            }
        };
        for (is_add, row) in self.order.get(files).unwrap_or_default() {
            let selected = if *is_add { &mut added } else { &mut removed };
            if let Some(selected) = selected.get_mut(*row) {
                *selected = !is_excluded(self.path(*is_add, *row)?);
            }
        }
        let selected = Selected { files: BooleanArray::from(added), removes: BooleanArray::from(removed) };
        self.actions.feed_commit(self.version, timestamp_ms, pruner, Some(&selected))
    }

    fn path(&self, is_add: bool, row: usize) -> Result<&str> {
        let actions = match &self.actions {
            ChangedActions::Recorded(files) => {
                return Ok(files.get(row).map(|file| file.path.as_str()).unwrap_or_default());
            }
            ChangedActions::Inferred { adds, removes } => {
                if is_add {
                    adds
                } else {
                    removes
                }
            }
        };
        let paths =
            actions.column_by_name(FileColumn::Path.name()).and_then(|paths| paths.as_string_opt::<i32>());
        let paths = paths.ok_or_else(|| Error::corrupt_log("the column 'path' does not hold strings"))?;
        Ok(paths.value(row))
    }
}

/// Returns the file actions with `dataChange` in the order of the log. Each item says whether the action is an `add`,
/// and which row it is among the actions of its kind.
fn positions(commit: &Commit) -> Result<Vec<(bool, usize)>> {
    let (adds, removes) = (rows_of_changing(&commit.adds)?, rows_of_changing(&commit.removes)?);
    let position = |(is_add, row): (bool, usize)| {
        let rows = if is_add { &adds } else { &removes };
        rows.get(row).copied().flatten().map(|row| (is_add, row))
    };
    Ok(commit.file_actions().filter_map(position).collect())
}

/// Numbers the actions with `dataChange`. Returns the number of each action; `None` for actions without `dataChange`.
fn rows_of_changing(actions: &RecordBatch) -> Result<Vec<Option<usize>>> {
    // A batch without actions has no columns.
    if actions.num_rows() == 0 {
        return Ok(Vec::new());
    }
    let changes =
        actions.column_by_name(FileColumn::DataChange.name()).and_then(|changes| changes.as_boolean_opt());
    let changes = changes.ok_or_else(|| Error::corrupt_log("file actions have no column 'dataChange'"))?;
    let mut next = 0;
    let row = |changes: Option<bool>| {
        (changes == Some(true)).then(|| {
            next += 1;
            next - 1
        })
    };
    Ok(changes.iter().map(row).collect())
}

fn sizes(actions: &RecordBatch) -> Result<Vec<u64>> {
    let sizes = actions
        .column_by_name(FileColumn::Size.name())
        .and_then(|sizes| sizes.as_primitive_opt::<Int64Type>());
    let sizes = sizes.ok_or_else(|| Error::corrupt_log("the column 'size' does not hold integers"))?;
    Ok(sizes.iter().map(|size| size.and_then(|size| u64::try_from(size).ok()).unwrap_or_default()).collect())
}

fn has_vectors(actions: &RecordBatch) -> bool {
    let vectors = actions.column_by_name(FileColumn::DeletionVector.name());
    vectors.is_some_and(|vectors| vectors.null_count() < vectors.len())
}
