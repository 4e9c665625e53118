//! Plans which files are rewritten, and which of them are rewritten together.

use std::collections::BTreeMap;

use super::bins::packed;
use super::clustered::columns_of;
use super::cubes::PROVIDER;
use super::dropped_columns::DroppedColumns;
use crate::error::{Error, Result};
use crate::expression::predicate::Predicate;
use crate::log::replay::add_at;
use crate::operations::rewrite::{ListedFile, PartitionChoice, visit_files};
use crate::protocol::{Add, PartitionValues};
use crate::snapshot::Snapshot;
use crate::values::stats::num_records;

/// The files of a version that are to be rewritten.
pub(super) struct Plan {
    /// The files that are rewritten together, ordered by partition.
    pub(super) bins: Vec<Bin>,
    /// The number of files in the selected partitions.
    pub(super) considered_files: u64,
}

/// Which files are rewritten.
pub(super) enum Choice {
    /// Files smaller than three quarters of the target size, if another file fits into the same new file, and files
    /// that have lost at least this share of their rows. Each bin becomes one file.
    SmallOrDeleted(f64),
    /// Files with deletion vectors or with columns that were dropped. Each bin becomes one file.
    Purged,
    /// All files. The files of a partition form one bin.
    All,
}

/// Files of one partition that are rewritten together.
pub(super) struct Bin {
    pub(super) files: Vec<ListedFile>,
    pub(super) order: BinOrder,
}

/// The order in which the rows of a bin are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BinOrder {
    /// File after file, with the rows of each file in their old order, to a single file.
    Kept,
    /// Along a curve, to as many files as are needed.
    Curve,
}

impl Bin {
    /// Returns the total size of the files in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| size(&file.add)).sum()
    }

    /// Returns how many bytes have to be read, plus the bytes that have to be written if the order changes.
    pub(super) fn work(&self) -> u64 {
        match self.order {
            BinOrder::Kept => self.bytes(),
            BinOrder::Curve => self.bytes().saturating_mul(2),
        }
    }

    /// Returns the number of rows, including deleted rows, if the statistics state it.
    pub(super) fn rows(&self) -> Option<u64> {
        self.files.iter().map(|file| file.add.stats.as_deref().and_then(num_records)).sum()
    }

    /// Returns the number of new files of about `target` bytes that the rows are written to.
    pub(super) fn new_files(&self, target: u64) -> usize {
        let files = match self.order {
            BinOrder::Kept => 1,
            BinOrder::Curve => self.files_of(target).clamp(1, self.rows().unwrap_or(u64::MAX).max(1)),
        };
        usize::try_from(files).unwrap_or(usize::MAX)
    }

    /// Returns the number of files of about `target` bytes that can hold the rows.
    pub(super) fn files_of(&self, target: u64) -> u64 {
        self.files.iter().map(|file| live_bytes(&file.add)).sum::<u64>().div_ceil(target.max(1))
    }
}

impl Plan {
    /// Plans to merge files of `base` into files of at most `target` bytes in the partitions for which `predicate`
    /// is true.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a predicate that reads other columns than partition columns, or that cannot be
    /// evaluated; `CorruptLog`; `CorruptData` for a file that is not Parquet; and errors from the store.
    pub(super) fn of(
        base: &Snapshot,
        predicate: Option<&Predicate>,
        target: u64,
        choice: &Choice,
    ) -> Result<Self> {
        let located = |error: Error| base.located(error);
        let partitions = PartitionChoice::of(base, predicate)?;
        let dropped = DroppedColumns::of(base);
        let mut considered_files = 0;
        let mut by_partition: BTreeMap<PartitionValues, Vec<ListedFile>> = BTreeMap::new();
        let is_clustered = !columns_of(base).map_err(located)?.is_empty();
        let mut bins = Vec::new();
        visit_files(base, predicate, |batch, files| {
            let mut unknown = Vec::new();
            // A purge rewrites each clustered file on its own, because mixing its rows with rows of other files would
            // undo the clustering.
            let mut choose = |listed: ListedFile| match &listed.add.clustering_provider {
                Some(_) if matches!(choice, Choice::Purged) => {
                    bins.push(Bin { files: vec![listed], order: BinOrder::Kept });
                }
                _ => by_partition.entry(listed.add.partition_values.clone()).or_default().push(listed),
            };
            for (row, file) in files.into_iter().enumerate() {
                if !partitions.includes(&file)? {
                    continue;
                }
                considered_files += 1;
                let listed = ListedFile { add: add_at(batch, row)?, file };
                let ListedFile { add, .. } = &listed;
                let is_chosen = match choice {
                    Choice::All => true,
                    Choice::SmallOrDeleted(share) => {
                        let is_small = size(add) < target - target / 4;
                        (is_small || has_many_deleted(add, *share)) && can_join(add, is_clustered)
                    }
                    Choice::Purged if add.deletion_vector.is_none() => {
                        unknown.push(listed);
                        continue;
                    }
                    Choice::Purged => true,
                };
                if is_chosen {
                    choose(listed);
                }
            }
            let found = dropped.find(&unknown)?;
            unknown
                .into_iter()
                .zip(found)
                .filter(|(_, is_found)| *is_found)
                .for_each(|(file, _)| choose(file));
            Ok(())
        })?;
        for (_, mut files) in by_partition {
            sort(&mut files);
            if matches!(choice, Choice::All) {
                bins.push(Bin { files, order: BinOrder::Curve });
                continue;
            }
            let packed = packed(files, target, |file| live_bytes(&file.add));
            let is_useful = |bin: &Vec<ListedFile>| {
                let has_many = |share| bin.iter().any(|file| has_many_deleted(&file.add, share));
                match choice {
                    Choice::SmallOrDeleted(share) => bin.len() > 1 || has_many(*share),
                    Choice::Purged | Choice::All => true,
                }
            };
            let useful = packed.into_iter().filter(is_useful);
            bins.extend(useful.map(|files| Bin { files, order: BinOrder::Kept }));
        }
        Ok(Self { bins, considered_files })
    }
}

/// Returns whether the rows of a file may be mixed with rows of other files: if the file is not clustered, or if it
/// belongs to the provider `liquid` and the table is no longer clustered.
fn can_join(add: &Add, is_clustered: bool) -> bool {
    match &add.clustering_provider {
        None => true,
        Some(provider) => !is_clustered && provider == PROVIDER,
    }
}

/// Sorts files into the order in which they were added.
pub(super) fn sort(files: &mut [ListedFile]) {
    files.sort_by(|a, b| {
        let [a, b] = [a, b].map(|file| (file.add.modification_time, file.add.path.as_str()));
        a.cmp(&b)
    });
}

/// Returns the size of a file in bytes.
pub(super) fn size(add: &Add) -> u64 {
    u64::try_from(add.size).unwrap_or_default()
}

/// Returns the number of deleted rows of a file.
pub(super) fn deleted_rows(add: &Add) -> u64 {
    add.deletion_vector.as_ref().map_or(0, |vector| u64::try_from(vector.cardinality).unwrap_or_default())
}

/// Returns the share of a file's rows that are deleted. If some are deleted and the total number is not known, returns
/// 1.
fn deleted_share(add: &Add) -> f64 {
    match (deleted_rows(add), add.stats.as_deref().and_then(num_records)) {
        (0, _) => 0.0,
        (deleted, Some(rows)) if rows > 0 => deleted as f64 / rows as f64,
        _ => 1.0,
    }
}

pub(super) fn has_many_deleted(add: &Add, most_deleted: f64) -> bool {
    add.deletion_vector.is_some() && deleted_share(add) >= most_deleted
}

/// Returns the approximate size in bytes of a file's remaining rows, which is at least one.
pub(super) fn live_bytes(add: &Add) -> u64 {
    let deleted = deleted_share(add);
    let live = if deleted < 1.0 { size(add) as f64 * (1.0 - deleted) } else { size(add) as f64 };
    (live as u64).max(1)
}
