//! An OPTIMIZE whose files are written by the tasks of an engine, such as Spark on its executors.
//!
//! ```text
//!   OptimizePlan ── files(batch) ──► the engine reads the files of a bin, and writes their rows: in the order in which
//!        ▲          outputs(batch)   they are to one new file, or along a curve to as many as the plan says
//!        │          ordering               │ each task reports: its new file, and how many rows of each old one it has
//!        └──────── commit_reported ◄───────┘
//! ```
//!
//! - The files of a batch are numbered in the order of [`OptimizePlan::files`], where the bins follow one another;
//!   each new file has the number of the task that writes it.
//! - The reports of the tasks are compared with the plan before anything is committed ([`super::reported`]).
//! - If a batch cannot be committed, its new files are deleted. Batches that were committed are kept.
//! - This crate does not know how an engine has ordered the rows. If another writer deletes rows of an ordered bin
//!   concurrently, the engine is asked for their new positions ([`Locate`]).

use super::commit::Committer;
use super::curve::{Curve, bits};
use super::metrics::OptimizeMetrics;
use super::plan::{Bin, BinOrder};
use super::search::{Locate, RowSearch};
use super::{OptimizeRequest, Optimized, ordered, plan};
use crate::commit::Committed;
use crate::commit::own_files::OwnFiles;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::operations::rewrite::ListedFile;
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::write::{Reported, TableWriteSpec, partition_directory};

/// The plan of an OPTIMIZE. It is carried out by this process, or batch by batch by an engine.
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

/// Where the rows of a bin are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinOutput {
    /// The number of the old files.
    pub files: usize,
    /// The number of the new files: one, unless the rows are ordered.
    pub new_files: usize,
    /// Whether the rows are ordered along the curve of [`OptimizePlan::ordering`]. Each new file then has a section of
    /// the curve, with about the same number of rows. Otherwise the rows keep their order.
    pub is_ordered: bool,
    /// How many rows the old files have, deleted ones included, if their statistics say so.
    pub rows: Option<u64>,
    /// The directory of the new files, decoded and relative to the table's root, with a slash at its end; empty for the
    /// root.
    pub directory: String,
    /// The value of each partition column, in their order, in the form of the log.
    pub partition_values: Vec<Option<String>>,
}

/// How an engine orders rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOrdering<'a> {
    /// The columns, in the spelling of the schema.
    pub columns: &'a [ColumnPath],
    /// The curve through the ranks of their values.
    pub curve: Curve,
    /// How many bits the rank of a value has.
    pub bits: u32,
}

/// What an engine that has ordered rows reports in addition to the reports of its tasks.
pub struct OrderedByEngine<'a> {
    /// The number of rows that the engine has counted in each old file before. The same number must have been shuffled.
    pub counted: &'a [u64],
    /// Tells where rows are in the new files.
    pub locate: &'a mut Locate<'a>,
}

impl OptimizePlan {
    /// Returns whether there are files for an engine to write.
    pub fn is_for_engines(&self) -> bool {
        !self.request.dry_run
    }

    /// Returns how the rows of ordered bins are ordered; `None` if the request does not order rows.
    pub fn ordering(&self) -> Option<EngineOrdering<'_>> {
        self.ordering.as_ref().map(|ordering| {
            let (columns, curve) = ordering.along();
            EngineOrdering { columns, curve, bits: bits(columns.len()) }
        })
    }

    /// Returns the number of batches, which are one commit each.
    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    /// Returns the number of new files of all batches, and so of the tasks of an engine.
    pub fn tasks(&self) -> usize {
        self.batches.iter().flatten().map(|bin| bin.new_files(self.target)).sum()
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

    /// Returns where the rows of each bin of a batch are written.
    pub fn outputs(&self, batch: usize) -> Vec<BinOutput> {
        let output = |bin: &Bin| {
            let partition_values = self.values_of(bin);
            let columns = self.spec.physical_partition_columns().iter();
            let named = columns.zip(&partition_values);
            let directory = partition_directory(named.map(|(name, value)| (name.as_str(), value.as_deref())));
            BinOutput {
                files: bin.files.len(),
                new_files: bin.new_files(self.target),
                is_ordered: bin.order == BinOrder::Curve,
                rows: bin.rows(),
                directory,
                partition_values,
            }
        };
        self.batches.get(batch).into_iter().flatten().map(output).collect()
    }

    /// Commits a batch that the tasks of an engine have written, according to their `reports`. Returns the version;
    /// `None` if the whole batch had to be given up because other writers have removed the rows. An engine that has
    /// `ordered` rows passes more about them.
    ///
    /// # Errors
    /// `CorruptData` for a report that does not fit the plan, and the errors of commits of [`super::optimize`]. The new
    /// files are deleted then, unless they may be part of the table.
    pub fn commit_reported<'a>(
        &'a mut self,
        batch: usize,
        reported: Reported,
        ordered: Option<OrderedByEngine<'a>>,
    ) -> Result<Option<u64>> {
        let files = OwnFiles::of(&self.base, reported.files.iter().map(|add| &add.path));
        let (counted, locate) = ordered.map(|told| (told.counted, told.locate)).unzip();
        let refused = || Error::invalid_argument("a dry run is not written");
        let rewritten = match self.is_for_engines() {
            true => self.rewritten(batch, reported, counted),
            false => Err(refused()),
        };
        let written = files.settle(rewritten).map_err(|error| self.base.located(error))?;
        let committer = Committer::new(&self.base, &self.request, self.target, &self.environment);
        let mut committer = committer.with_search(RowSearch::of(locate));
        let committed = committer.commit(written, &mut self.metrics)?;
        let version = committed.as_ref().map(|committed| committed.version);
        self.commits.extend(committed);
        Ok(version)
    }

    /// Returns the commits and the metrics. Must be called after the last batch.
    pub fn finish(self) -> Optimized {
        Optimized { commits: self.commits, metrics: self.metrics.ended(self.environment.now_ms()) }
    }

    /// Returns the partition values of a bin. An empty one is NULL (protocol, "Partition Value Serialization").
    pub(super) fn values_of(&self, bin: &Bin) -> Vec<Option<String>> {
        let of_bin = bin.files.first().map(|file| &file.add.partition_values);
        let value = |name: &String| of_bin.and_then(|values| values.get(name)).cloned().flatten();
        let columns = self.spec.physical_partition_columns().iter();
        columns.map(|name| value(name).filter(|text| !text.is_empty())).collect()
    }
}
