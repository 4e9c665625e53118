//! Decides which files of a clustered table are rewritten by a run of OPTIMIZE. (Protocol: "Clustered Table".)
//!
//! ```text
//!   unclustered files ─────────────────────────┐
//!   the smallest cubes, up to twice as large ──┴──► ordered along the curve ──► new cubes
//!   other cubes ─────────────────────────────────► stay
//! ```
//!
//! - Unless it is a run for all files, a run orders rows only if there are unclustered files, so a second such run has
//!   nothing to order.
//! - Existing cubes take part in order of size, beginning with the smallest, as long as their total size is at most
//!   twice the size of the unclustered files. At most three times the added bytes are therefore written. Small cubes
//!   take part even if they exceed this limit, up to a total size of [`FEW_FILES`] files but at most [`LITTLE`] bytes.
//!   Otherwise, each small append would remain a small file.
//! - A cube is finished when it reaches two thirds of the maximum size of a cube. With the default, this is the same
//!   size as in the JVM implementation, 100 GiB, so both agree on which cubes are finished. Unlike this crate, the
//!   JVM implementation orders all unfinished cubes in each run.
//! - Columns are identified by their names: if another writer renames a column, it counts as a different column, as
//!   in the JVM implementation.
//! - Files that were clustered by other columns remain until a run for all files (`OPTIMIZE … FULL`). Such a run
//!   orders all files by the current columns, except the files of finished cubes, and does nothing if all files are
//!   in a single cube. The JVM implementation does the same.
//! - Files of other clustering providers are never changed: "a clustering implementation must only recluster files
//!   that have the field `clusteringProvider` set to the name of the same clustering implementation".
//! - If a clustered file that does not take part has many deleted rows, it is rewritten on its own, and stays in its
//!   cube.

use std::collections::BTreeMap;

use super::bins::packed;
use super::cubes::{Cube, PROVIDER, names};
use super::metrics::{ClusteringStats, FileCount};
use super::plan::{Bin, BinOrder, Plan, has_many_deleted, live_bytes, size, sort};
use crate::commit::Operation;
use crate::error::Result;
use crate::expression::predicate::ColumnPath;
use crate::log::replay::add_at;
use crate::operations::rewrite::{ListedFile, visit_files};
use crate::protocol::TableFeature;
use crate::snapshot::Snapshot;

/// If there are unclustered files, the smallest unfinished cubes take part at least up to this total size, in files of
/// the target size.
const FEW_FILES: u64 = 8;

/// The maximum of that total size, in bytes.
const LITTLE: u64 = 1 << 30;

/// The default for the maximum size of a cube, which is the same as in the JVM implementation.
pub(super) const CUBE_SIZE: u64 = 150 << 30;

/// The settings for clustering a table's files.
pub(super) struct Clustering {
    /// The clustering columns, spelled as in the schema.
    pub(super) columns: Vec<ColumnPath>,
    /// Whether all files take part, except for the files of finished cubes.
    pub(super) is_full: bool,
    /// The size of new files, in bytes.
    pub(super) target: u64,
    /// The maximum size of a cube in bytes.
    pub(super) cube_size: u64,
    /// The share of deleted rows at which a file is rewritten.
    pub(super) most_deleted: f64,
}

/// The files that are clustered already, or can be clustered.
#[derive(Default)]
struct Found {
    unclustered: Vec<ListedFile>,
    cubes: BTreeMap<String, CubeFiles>,
    /// Files that have many deleted rows but do not take part.
    deleted: Vec<ListedFile>,
    stats: ClusteringStats,
    files: u64,
}

/// The files of a cube. If the cube is finished, `files` contains only the files with many deleted rows.
#[derive(Default)]
struct CubeFiles {
    files: Vec<ListedFile>,
    /// The size in bytes of the rows that are not deleted.
    live: u64,
    bytes: u64,
}

/// Returns the columns by which a table is clustered; empty if it is not clustered.
///
/// # Errors
/// Returns `CorruptLog` if the log does not list them correctly.
pub(super) fn columns_of(base: &Snapshot) -> Result<Vec<ColumnPath>> {
    if !base.protocol().supports(&TableFeature::Clustering) {
        return Ok(Vec::new());
    }
    Ok(base.clustering_columns()?.into_iter().map(ColumnPath::new).collect())
}

impl Clustering {
    /// Plans which files of `base` are combined into new cubes.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store.
    pub(super) fn plan(&self, base: &Snapshot) -> Result<(Plan, ClusteringStats)> {
        let Found { mut unclustered, cubes, deleted, mut stats, files } = self.find(base)?;
        let (finished, mut open): (Vec<_>, Vec<_>) =
            cubes.into_values().partition(|cube| self.is_finished(cube));
        open.sort_by_key(|cube| cube.bytes);
        let new = unclustered.iter().map(|file| size(&file.add)).sum();
        let sizes: Vec<u64> = open.iter().map(|cube| cube.bytes).collect();
        let others = open.split_off(self.taking_part(!unclustered.is_empty(), new, &sizes));
        sort(&mut unclustered);
        unclustered.extend(open.into_iter().flat_map(|cube| cube.files));
        unclustered.iter().for_each(|file| stats.merged_files.add(size(&file.add)));
        let bins = packed(unclustered, self.cube_size, |file| live_bytes(&file.add));
        stats.output_cubes = bins.len() as u64;
        let ordered = bins.into_iter().map(|files| Bin { files, order: BinOrder::Curve });
        let stay = others.into_iter().chain(finished).flat_map(|cube| cube.files).chain(deleted);
        let deleted = stay.filter(|file| has_many_deleted(&file.add, self.most_deleted));
        let alone = deleted.map(|file| Bin { files: vec![file], order: BinOrder::Kept });
        Ok((Plan { bins: ordered.chain(alone).collect(), considered_files: files }, stats))
    }

    /// Adds the fields that the JVM implementation records to the description of a commit.
    pub(super) fn describe(&self, operation: &mut Operation) {
        let columns = serde_json::Value::from(names(&self.columns)).to_string();
        let described = std::mem::take(operation).parameter("clusterBy", columns);
        *operation = described.parameter("isFull", self.is_full);
    }

    fn find(&self, base: &Snapshot) -> Result<Found> {
        let mut found = Found::default();
        visit_files(base, None, |batch, files| {
            for (row, file) in files.into_iter().enumerate() {
                self.note(&mut found, ListedFile { add: add_at(batch, row)?, file });
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn note(&self, found: &mut Found, file: ListedFile) {
        let Found { unclustered, cubes, deleted, stats, files } = found;
        *files += 1;
        let add = &file.add;
        let bytes = size(add);
        let is_other = |provider: &String| provider != PROVIDER;
        if add.clustering_provider.as_ref().is_some_and(is_other) {
            stats.input_other_files.add(bytes);
            return;
        }
        match Cube::of(add) {
            Some(Cube { id, columns }) if columns == self.columns => {
                stats.input_cube_files.add(bytes);
                let cube = cubes.entry(id).or_insert_with(|| {
                    stats.input_cubes += 1;
                    CubeFiles::default()
                });
                let was_finished = self.is_finished(cube);
                cube.bytes += bytes;
                cube.live += live_bytes(add);
                // A finished cube may contain very many files, so only its files with many deleted rows are kept in
                // memory.
                let is_kept = |file: &ListedFile| has_many_deleted(&file.add, self.most_deleted);
                if !was_finished || is_kept(&file) {
                    cube.files.push(file);
                }
                if !was_finished && self.is_finished(cube) {
                    cube.files.retain(is_kept);
                }
            }
            Some(_) if !self.is_full => {
                stats.input_other_files.add(bytes);
                if has_many_deleted(add, self.most_deleted) {
                    deleted.push(file);
                }
            }
            _ => {
                stats.input_other_files.add(bytes);
                unclustered.push(file);
            }
        }
    }

    fn is_finished(&self, cube: &CubeFiles) -> bool {
        cube.live >= self.cube_size - self.cube_size / 3
    }

    /// Returns how many of the unfinished cubes take part. `cubes` are their sizes in ascending order. `has_new` says
    /// whether there are unclustered files, and `new` is their size.
    fn taking_part(&self, has_new: bool, new: u64, cubes: &[u64]) -> usize {
        match (has_new, self.is_full) {
            (false, true) if cubes.len() > 1 => cubes.len(),
            (false, _) => 0,
            (true, true) => cubes.len(),
            (true, false) => {
                let little = self.target.saturating_mul(FEW_FILES).min(LITTLE);
                let most = new.saturating_mul(2).max(little);
                let mut sum = 0_u64;
                let fits = |bytes: &&u64| {
                    sum = sum.saturating_add(**bytes);
                    sum <= most
                };
                cubes.iter().take_while(fits).count()
            }
        }
    }
}

impl FileCount {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clustering(is_full: bool) -> Clustering {
        Clustering { columns: Vec::new(), is_full, target: 10, cube_size: 6_000, most_deleted: 0.05 }
    }

    #[test]
    fn the_smallest_cubes_take_part() {
        let cases: [(u64, &[u64], usize); 7] = [
            (0, &[5, 10], 0),
            (100, &[4_000], 0),
            (100, &[200, 4_000], 1),
            (100, &[201, 4_000], 0),
            (100, &[1, 90, 110], 2),
            // Small cubes always take part.
            (1, &[40, 40, 40], 2),
            (1, &[81], 0),
        ];
        for (new, cubes, expected) in cases {
            assert_eq!(clustering(false).taking_part(new > 0, new, cubes), expected, "{new} {cubes:?}");
        }
        // With a large target size, adding 1 GB to a table of 40 GB still writes at most 3 GB.
        let large = Clustering { target: 4 << 30, cube_size: CUBE_SIZE, ..clustering(false) };
        assert_eq!(large.taking_part(true, 1 << 30, &[3 << 30, 40 << 30]), 0);
        assert_eq!(large.taking_part(true, 1 << 30, &[2 << 30, 40 << 30]), 1);
        assert_eq!(clustering(true).taking_part(true, 1, &[4_000, 5_000]), 2);
        assert_eq!(clustering(true).taking_part(false, 0, &[1, 1]), 2);
        assert_eq!(clustering(true).taking_part(false, 0, &[1]), 0);
    }

    proptest! {
        /// At most three times the added bytes are written, unless the cubes are small.
        #[test]
        fn few_bytes_are_rewritten(new in 40..3_000_u64, mut cubes in prop::collection::vec(1..4_000_u64, 0..40)) {
            cubes.sort_unstable();
            let part = clustering(false).taking_part(true, new, &cubes);
            prop_assert!(cubes[..part].iter().sum::<u64>() + new <= 3 * new);
        }
    }
}
