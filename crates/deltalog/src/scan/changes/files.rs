//! The files of a change data feed, with the rows to read from each and the kind of change.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, StructArray};
use arrow::datatypes::Int64Type;

use super::commits::{FeedActions, FeedCommit, FileActions, Kept, paths};
use super::values::values;
use crate::error::{Error, Result};
use crate::log::replay::{DeletionVectorColumn, FileColumn};
use crate::protocol::{LogPath, PathResolver};
use crate::scan::{DataFile, FileRows, PartitionColumns, PartitionRow, RowTracking};
use crate::storage::Storage;

/// The kind of change to the rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// The rows were inserted.
    Insert,
    /// The rows were deleted.
    Delete,
    /// The file's own column `_change_type` states the change of each row.
    Recorded,
}

impl ChangeKind {
    /// Returns the value of the column `_change_type` if it is the same for all rows of the file.
    pub fn change_type(self) -> Option<&'static str> {
        match self {
            Self::Insert => Some("insert"),
            Self::Delete => Some("delete"),
            Self::Recorded => None,
        }
    }
}

/// A file with changed rows.
#[derive(Debug, Clone)]
pub struct ChangeFile {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The version of the table that changed the rows.
    pub version: u64,
    /// The time at which that version was committed, in milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// The file with the rows to read from it, the values of its partition columns, and those columns of the feed
    /// that have the same value in all its rows.
    pub file: DataFile,
}

/// An iterator over the files of a [`ChangePlan`](super::ChangePlan), in the order of the versions.
#[derive(Debug)]
pub struct ChangeFiles {
    pub(super) storage: Storage,
    pub(super) resolver: PathResolver,
    pub(super) partitions: PartitionColumns,
    pub(super) commits: Arc<Vec<FeedCommit>>,
    pub(super) next: usize,
    pub(super) current: std::vec::IntoIter<ChangeFile>,
}

impl Iterator for ChangeFiles {
    type Item = Result<ChangeFile>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(file) = self.current.next() {
                return Some(Ok(file));
            }
            let commit = self.commits.get(self.next)?;
            self.next += 1;
            match self.files_of(commit) {
                Ok(files) => self.current = files.into_iter(),
                Err(error) => {
                    let error = error.at_version(commit.version).in_table(self.storage.url());
                    // The iterator ends after an error.
                    self.next = usize::MAX;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl ChangeFiles {
    fn files_of(&self, commit: &FeedCommit) -> Result<Vec<ChangeFile>> {
        match &commit.actions {
            FeedActions::Recorded { files, partition_values, kept } => {
                let partitions = self.partitions.parse(partition_values)?;
                let values =
                    Arc::new(values(commit.version, commit.timestamp_ms, &partitions, ChangeKind::Recorded)?);
                let file = |(row, file): (usize, &crate::protocol::AddCdcFile)| {
                    Ok(ChangeFile {
                        kind: ChangeKind::Recorded,
                        version: commit.version,
                        timestamp_ms: commit.timestamp_ms,
                        file: DataFile {
                            path: self.resolver.resolve(&file.path)?,
                            size: size(file.size, &file.path)?,
                            partition_values: PartitionRow::new(Arc::clone(&values), row)?,
                            rows: FileRows::All,
                            // Rows of change data files have no row ids.
                            row_tracking: RowTracking::default(),
                        },
                    })
                };
                files.iter().enumerate().filter(|(row, _)| kept.has(*row)).map(file).collect()
            }
            FeedActions::Inferred { adds, removes } => self.inferred(commit, adds, removes),
        }
    }

    fn inferred(
        &self,
        commit: &FeedCommit,
        adds: &FileActions,
        removes: &FileActions,
    ) -> Result<Vec<ChangeFile>> {
        let adds = self.actions(commit, adds)?;
        let removes = self.actions(commit, removes)?;
        let added: HashMap<&LogPath, usize> =
            adds.paths.iter().enumerate().map(|(row, path)| (path.as_ref(), row)).collect();
        let mut is_paired = vec![false; adds.paths.len()];
        let (mut deleted, mut inserted) = (Vec::new(), Vec::new());
        for (row, path) in removes.paths.iter().enumerate() {
            let Some(add) = added.get(path.as_ref()) else {
                if removes.kept.has(row) {
                    deleted.push(removes.file(
                        self,
                        row,
                        ChangeKind::Delete,
                        removes.vectors.get(row)?.into(),
                    )?);
                }
                continue;
            };
            if let Some(is_paired) = is_paired.get_mut(*add) {
                *is_paired = true;
            }
            // The two actions refer to the same file and differ only in their deletion vectors.
            let (old, new) = (removes.vectors.get(row)?, adds.vectors.get(*add)?);
            if old == new {
                continue;
            }
            if let Some(named_by) = new.clone().filter(|_| removes.kept.has(row)) {
                let rows = FileRows::Between { named_by, not_by: old.clone() };
                deleted.push(adds.file(self, *add, ChangeKind::Delete, rows)?);
            }
            if let Some(named_by) = old.filter(|_| adds.kept.has(*add)) {
                inserted.push(adds.file(
                    self,
                    *add,
                    ChangeKind::Insert,
                    FileRows::Between { named_by, not_by: new },
                )?);
            }
        }
        let is_alone = |row: &usize| is_paired.get(*row) == Some(&false) && adds.kept.has(*row);
        for row in (0..adds.paths.len()).filter(is_alone) {
            inserted.push(adds.file(self, row, ChangeKind::Insert, adds.vectors.get(row)?.into())?);
        }
        deleted.append(&mut inserted);
        Ok(deleted)
    }

    fn actions<'a>(&self, commit: &'a FeedCommit, actions: &'a FileActions) -> Result<Actions<'a>> {
        let batch = &actions.batch;
        let column = |column: FileColumn| {
            batch
                .column_by_name(column.name())
                .ok_or_else(|| Error::corrupt_log(format!("file actions have no column '{}'", column.name())))
        };
        let map = column(FileColumn::PartitionValues)?
            .as_map_opt()
            .ok_or_else(|| Error::corrupt_log("the column 'partitionValues' does not hold maps"))?;
        let sizes = column(FileColumn::Size)?
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| Error::corrupt_log("the column 'size' does not hold integers"))?;
        let paths = paths(batch, &self.resolver)?;
        if let Some(path) = paths
            .iter()
            .zip(0..)
            .find(|(_, row)| map.is_null(*row) && !self.partitions.is_empty())
            .map(|(path, _)| path)
        {
            return Err(Error::unsupported(
                "the commit removes a file without recording its partition values",
            )
            .at_path(path.to_string())
            .with_hint("start the range after this version"));
        }
        let partitions = self.partitions.parse(map)?;
        Ok(Actions {
            commit,
            paths,
            sizes,
            vectors: DeletionVectorColumn::of_log(batch)?,
            kept: &actions.kept,
            deleted: Arc::new(values(commit.version, commit.timestamp_ms, &partitions, ChangeKind::Delete)?),
            inserted: Arc::new(values(commit.version, commit.timestamp_ms, &partitions, ChangeKind::Insert)?),
        })
    }
}

/// The `add` actions, or the `remove` actions, of a commit.
struct Actions<'a> {
    commit: &'a FeedCommit,
    paths: Vec<Arc<LogPath>>,
    sizes: &'a Int64Array,
    vectors: DeletionVectorColumn<'a>,
    kept: &'a Kept,
    /// The constant columns of the feed, for files whose rows were deleted.
    deleted: Arc<StructArray>,
    /// The constant columns of the feed, for files whose rows were inserted.
    inserted: Arc<StructArray>,
}

impl Actions<'_> {
    fn file(&self, of: &ChangeFiles, row: usize, kind: ChangeKind, rows: FileRows) -> Result<ChangeFile> {
        let path = self
            .paths
            .get(row)
            .ok_or_else(|| Error::corrupt_log("the columns of file actions differ in length"))?;
        // The protocol requires a size in `add` actions only.
        let size = match self.sizes.is_valid(row) {
            true => size(self.sizes.value(row), &path.to_string())?,
            false => of.storage.open_log_path(path)?.size(),
        };
        let values = if kind == ChangeKind::Delete { &self.deleted } else { &self.inserted };
        Ok(ChangeFile {
            kind,
            version: self.commit.version,
            timestamp_ms: self.commit.timestamp_ms,
            file: DataFile {
                path: path.as_ref().clone(),
                size,
                partition_values: PartitionRow::new(Arc::clone(values), row)?,
                rows,
                row_tracking: RowTracking::default(),
            },
        })
    }
}

fn size(size: i64, path: &str) -> Result<u64> {
    u64::try_from(size).map_err(|_| Error::corrupt_log("a file has a negative size").at_path(path))
}
