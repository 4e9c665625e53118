//! An OPTIMIZE whose files are written by the tasks of an engine, such as Spark on its executors.
//!
//! ```text
//!   OptimizePlan ── files(batch) ──► the engine reads the files of a bin one after another, and writes their rows
//!        ▲          outputs(batch)   to one new file
//!        │                                 │ reports: the new file, and how many rows of each old file it has
//!        └──────── commit_reported ◄───────┘
//! ```
//!
//! - The files of a batch are numbered in the order of [`OptimizePlan::files`], in which the bins follow one another.
//! - What the tasks report is compared with the plan before anything is committed: each bin was written by exactly one
//!   task, all of its rows come from its own files, in their order, and the new file has as many rows as were copied.
//!   So the position of each row in the new file is known ([`super::moved`]). If the log has the number of rows of an
//!   old file, all of those that are not deleted must have been copied.
//! - If a batch cannot be committed, its new files are deleted. Batches that were committed stay.

use super::commit::Committer;
use super::cubes::keep;
use super::metrics::OptimizeMetrics;
use super::moved::{Moved, RowOrder};
use super::plan::{Bin, deleted_rows};
use super::rewrite::{NewFile, Rewritten, Source};
use super::{OptimizeRequest, Optimized, ordered, plan};
use crate::dml::ListedFile;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::protocol::Add;
use crate::snapshot::Snapshot;
use crate::stats::num_records;
use crate::transaction::Committed;
use crate::unused_files::delete_unused;
use crate::write::{Reported, ReportedBin, TableWriteSpec, partition_directory};

/// What an OPTIMIZE is going to do. It is carried out in this process, or batch by batch by an engine.
pub struct OptimizePlan {
    pub(super) base: Snapshot,
    pub(super) request: OptimizeRequest,
    pub(super) environment: Environment,
    pub(super) spec: TableWriteSpec,
    pub(super) target: u64,
    pub(super) ordering: Option<ordered::Ordering>,
    pub(super) batches: Vec<Vec<plan::Bin>>,
    pub(super) metrics: OptimizeMetrics,
    pub(super) commits: Vec<Committed>,
}

/// Where the rows of a bin go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinOutput {
    /// The number of the old files.
    pub files: usize,
    /// The directory of the new file, decoded and relative to the table's root, with a slash at its end; empty for the
    /// root.
    pub directory: String,
    /// The value of each partition column, in their order, in the form of the log.
    pub partition_values: Vec<Option<String>>,
}

impl OptimizePlan {
    /// Returns whether an engine can write the files: they are to be written, and their rows keep their order.
    pub fn is_for_engines(&self) -> bool {
        self.ordering.is_none() && !self.request.dry_run
    }

    /// Returns the number of batches, which are one commit each.
    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    /// Returns the number of bins of all batches.
    pub fn bins(&self) -> usize {
        self.batches.iter().map(Vec::len).sum()
    }

    /// Returns the size of all files that are written again, in bytes.
    pub fn bytes(&self) -> u64 {
        self.batches.iter().flatten().map(Bin::bytes).sum()
    }

    /// Returns the old files of a batch, bin after bin, in the order of their rows in the new files.
    pub fn files(&self, batch: usize) -> impl Iterator<Item = &ListedFile> {
        self.batches.get(batch).into_iter().flatten().flat_map(|bin| &bin.files)
    }

    /// Returns where the rows of each bin of a batch go.
    pub fn outputs(&self, batch: usize) -> Vec<BinOutput> {
        let output = |bin: &Bin| {
            let partition_values = self.values_of(bin);
            let columns = self.spec.physical_partition_columns().iter();
            let named = columns.zip(&partition_values);
            let directory = partition_directory(named.map(|(name, value)| (name.as_str(), value.as_deref())));
            BinOutput { files: bin.files.len(), directory, partition_values }
        };
        self.batches.get(batch).into_iter().flatten().map(output).collect()
    }

    /// Commits a batch that the tasks of an engine have written, as they report. Returns the version; `None` if all of
    /// it had to be given up, because others have removed the rows meanwhile.
    ///
    /// # Errors
    /// `CorruptData` for a report that does not fit the plan, and the errors of commits of [`super::optimize`]. The new
    /// files are deleted then, unless they may be part of the table.
    pub fn commit_reported(&mut self, batch: usize, reported: Reported) -> Result<Option<u64>> {
        let paths: Vec<String> = reported.files.iter().map(|add| add.path.clone()).collect();
        let refused = || {
            Error::invalid_argument(
                "only an OPTIMIZE that keeps the order of rows, and that is not a dry run, can be written by an engine",
            )
        };
        let rewritten = match self.is_for_engines() {
            true => self.rewritten(batch, reported),
            false => Err(refused()),
        };
        let written = match rewritten {
            Ok(written) => written,
            Err(error) => {
                delete_unused(self.base.storage(), paths);
                return Err(self.base.located(error));
            }
        };
        let mut committer = Committer::new(&self.base, &self.request, self.target, &self.environment);
        let committed = committer.commit(written, &mut self.metrics)?;
        let version = committed.as_ref().map(|committed| committed.version);
        self.commits.extend(committed);
        Ok(version)
    }

    /// Returns what was done, after the last batch.
    pub fn finish(self) -> Optimized {
        Optimized { commits: self.commits, metrics: self.metrics.ended(self.environment.now_ms()) }
    }

    /// Returns the partition values of a bin. An empty one is NULL (protocol, "Partition Value Serialization").
    fn values_of(&self, bin: &Bin) -> Vec<Option<String>> {
        let of_bin = bin.files.first().map(|file| &file.add.partition_values);
        let value = |name: &String| of_bin.and_then(|values| values.get(name)).cloned().flatten();
        let columns = self.spec.physical_partition_columns().iter();
        columns.map(|name| value(name).filter(|text| !text.is_empty())).collect()
    }

    /// Returns the bins of a batch as they were written, in their order.
    fn rewritten(&self, batch: usize, reported: Reported) -> Result<Vec<Rewritten>> {
        let bins = self
            .batches
            .get(batch)
            .ok_or_else(|| faulty(format!("there is no batch {batch} in the plan")))?;
        if !reported.removed.is_empty() || !reported.changes.is_empty() {
            return Err(faulty("a task has changed rows".to_owned()));
        }
        let mut files: Vec<Option<Add>> = reported.files.into_iter().map(Some).collect();
        let mut found: Vec<Option<ReportedBin>> = bins.iter().map(|_| None).collect();
        for bin in reported.bins {
            let number = bin.bin;
            let place = usize::try_from(number).ok().and_then(|number| found.get_mut(number));
            let place =
                place.ok_or_else(|| faulty(format!("a task has written the unknown bin {number}")))?;
            if place.replace(bin).is_some() {
                return Err(faulty(format!("two tasks have written bin {number}")));
            }
        }
        let mut rewritten = Vec::with_capacity(bins.len());
        let mut first = 0;
        for (number, (bin, found)) in bins.iter().zip(found).enumerate() {
            let found = found.ok_or_else(|| faulty(format!("no task has written bin {number}")))?;
            let new = found.file.and_then(|index| files.get_mut(index)).and_then(Option::take);
            rewritten.push(self.written_bin(bin, first, &found, new)?);
            first += bin.files.len();
        }
        match files.into_iter().flatten().next() {
            Some(file) => {
                Err(faulty("a task has written a file that belongs to no bin".to_owned()).at_path(&file.path))
            }
            None => Ok(rewritten),
        }
    }

    /// Returns a bin, the first of whose files has the number `first`, with its new file.
    fn written_bin(
        &self,
        bin: &Bin,
        first: usize,
        found: &ReportedBin,
        new: Option<Add>,
    ) -> Result<Rewritten> {
        let mut counted = found.rows.iter().peekable();
        let (mut sources, mut start) = (Vec::with_capacity(bin.files.len()), 0_u64);
        for (index, ListedFile { add, .. }) in bin.files.iter().enumerate() {
            let is_its = |(number, _): &&(u32, u64)| usize::try_from(*number) == Ok(first + index);
            let rows = counted.next_if(is_its).map_or(0, |(_, rows)| *rows);
            let in_log = add.stats.as_deref().and_then(num_records);
            let live = in_log.map(|all| all.saturating_sub(deleted_rows(add)));
            if let Some(live) = live.filter(|live| *live != rows) {
                return Err(faulty(format!(
                    "a task has read {rows} rows of a file that has {live} by its statistics in the log"
                ))
                .with_hint("check the files with FSCK")
                .at_path(&add.path));
            }
            sources.push(Source { add: add.clone(), moved: Moved { start, rows } });
            start = start.saturating_add(rows);
        }
        if let Some((number, _)) = counted.next() {
            return Err(faulty(format!(
                "the task of bin {} has read rows of the file {number}, which is not next in that bin",
                found.bin
            )));
        }
        let rows_of = |add: &Add| add.stats.as_deref().and_then(num_records).unwrap_or_default();
        let written = new.as_ref().map_or(0, rows_of);
        if written != start || new.is_some() != (start > 0) {
            return Err(faulty(format!(
                "the task of bin {} has read {start} rows, but its new file has {written}",
                found.bin
            )));
        }
        let new = new.map(|add| self.new_file(bin, add, written)).transpose()?;
        Ok(Rewritten { sources, new: new.into_iter().collect(), order: RowOrder::Kept })
    }

    fn new_file(&self, bin: &Bin, add: Add, rows: u64) -> Result<NewFile> {
        let columns = self.spec.physical_partition_columns();
        let values = columns.iter().map(|name| add.partition_values.get(name).cloned().flatten());
        if values.collect::<Vec<_>>() != self.values_of(bin) {
            return Err(faulty("a task has written a bin to another partition".to_owned()).at_path(&add.path));
        }
        let mut add = Add { data_change: false, ..add };
        // Its rows are as close together as before.
        if let [file] = bin.files.as_slice() {
            keep(&file.add, &mut add);
        }
        Ok(NewFile { add, rows })
    }
}

/// Returns the error of tasks that have not done what was planned. Nothing of their batch is committed.
fn faulty(what: String) -> Error {
    Error::corrupt_data(format!("{what}; nothing of this batch was committed"))
}
