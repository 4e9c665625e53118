//! An OPTIMIZE whose files are written by the tasks of an engine, such as Spark on its executors.
//!
//! ```text
//!   OptimizePlan ── files(batch) ──► the engine reads the files of a bin, and writes their rows: to one new file in
//!        ▲          outputs(batch)   the old order, or along a curve to the planned number of new files
//!        │          ordering               │ each task reports its new file, and how many rows come from each old file
//!        └──────── commit_reported ◄───────┘
//! ```
//!
//! - The files of a batch are numbered in the order of [`OptimizePlan::files`], bin after bin. Each new file has the
//!   number of the task that writes it.
//! - The reports of the tasks are compared with the plan before anything is committed ([`super::reported`]).
//! - If a batch cannot be committed, its new files are deleted. Batches that were committed before remain.
//! - This crate does not know how an engine has ordered the rows. If another writer concurrently deletes rows of an
//!   ordered bin, the engine is asked for their new positions ([`Locate`]).

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

/// The plan of an OPTIMIZE. Either this process carries it out, or an engine does, batch by batch.
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

/// How the rows of a bin are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinOutput {
    /// The number of old files in the bin.
    pub files: usize,
    /// The number of new files: one, unless the rows are ordered.
    pub new_files: usize,
    /// Whether the rows are ordered along the curve of [`OptimizePlan::ordering`]. Each new file then contains a
    /// section of the curve, with about the same number of rows. Otherwise, the rows keep their order.
    pub is_ordered: bool,
    /// The number of rows in the old files, including deleted rows; `None` if their statistics do not state it.
    pub rows: Option<u64>,
    /// The decoded path of the directory of the new files, relative to the table's root. It ends with a slash, and is
    /// empty for the root.
    pub directory: String,
    /// The values of the partition columns, in their order, as the log spells them.
    pub partition_values: Vec<Option<String>>,
}

/// How an engine should order rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOrdering<'a> {
    /// The columns by which rows are ordered, spelled as in the schema.
    pub columns: &'a [ColumnPath],
    /// The curve through the ranks of the columns' values.
    pub curve: Curve,
    /// The number of bits in the rank of a value.
    pub bits: u32,
}

/// The information that an engine reports after ordering rows, in addition to the reports of its tasks.
pub struct OrderedByEngine<'a> {
    /// The number of rows in each old file, as the engine counted them beforehand. The tasks must have written the
    /// same numbers of rows.
    pub counted: &'a [u64],
    /// Returns the positions of rows in the new files.
    pub locate: &'a mut Locate<'a>,
}

impl OptimizePlan {
    /// Returns whether an engine may write the files, which is not the case for a dry run.
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

    /// Returns the number of batches. Each batch is one commit.
    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    /// Returns the number of new files in all batches, which is also the number of an engine's tasks.
    pub fn tasks(&self) -> usize {
        self.batches.iter().flatten().map(|bin| bin.new_files(self.target)).sum()
    }

    /// Returns the total number of bins in all batches.
    pub fn bins(&self) -> usize {
        self.batches.iter().map(Vec::len).sum()
    }

    /// Returns the total size in bytes of all files that will be rewritten.
    pub fn bytes(&self) -> u64 {
        self.batches.iter().flatten().map(Bin::bytes).sum()
    }

    /// Returns the old files of a batch, bin after bin, in the order that their rows have in the new files.
    pub fn files(&self, batch: usize) -> impl Iterator<Item = &ListedFile> {
        self.batches.get(batch).into_iter().flatten().flat_map(|bin| &bin.files)
    }

    /// Returns how the rows of each bin of a batch are written.
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
    /// `None` if the whole batch had to be given up because other writers have removed its rows. If the engine has
    /// ordered rows, `ordered` contains additional information.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a dry run, `CorruptData` for a report that does not match the plan, and the
    /// errors that [`super::optimize`] returns for a commit. The new files are then deleted, unless they may be part
    /// of the table.
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

    /// Returns the partition values of a bin. An empty string is NULL (protocol, "Partition Value Serialization").
    pub(super) fn values_of(&self, bin: &Bin) -> Vec<Option<String>> {
        let of_bin = bin.files.first().map(|file| &file.add.partition_values);
        let value = |name: &String| of_bin.and_then(|values| values.get(name)).cloned().flatten();
        let columns = self.spec.physical_partition_columns().iter();
        columns.map(|name| value(name).filter(|text| !text.is_empty())).collect()
    }
}
