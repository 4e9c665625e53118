//! Compares the files that the tasks of an engine have written with the plan of an OPTIMIZE.
//!
//! - Each new file must have been written by exactly one task. All of its rows must come from the old files of its
//!   bin, and it must have as many rows as were copied.
//! - If the log states the number of rows in an old file, all of its rows that are not deleted must have been copied.
//!   If the engine has counted the rows beforehand, the copied rows must match that number, even if the log states no
//!   number.
//! - If a bin keeps the order of its rows, they come file after file, and the rows of each file are in their old
//!   order. This determines the position of each row in the new file ([`super::moved`]).

use std::ops::Range;

use super::cubes::keep;
use super::external::OptimizePlan;
use super::moved::{EngineOrder, Moved, RowOrder};
use super::plan::{Bin, BinOrder, deleted_rows};
use super::rewrite::{NewFile, Rewritten, Source};
use crate::error::{Error, Result};
use crate::operations::rewrite::ListedFile;
use crate::protocol::Add;
use crate::values::stats::num_records;
use crate::write::{Reported, ReportedBin};

/// The output of one task: the new file, and how many of its rows come from each old file.
struct Task {
    number: usize,
    rows: Vec<(u32, u64)>,
    new: Option<Add>,
}

impl OptimizePlan {
    /// Returns the bins of a batch as the tasks have written them, in the order of the plan.
    ///
    /// # Errors
    /// Returns `CorruptData` for a report that does not match the plan.
    pub(super) fn rewritten(
        &self,
        batch: usize,
        reported: Reported,
        counted: Option<&[u64]>,
    ) -> Result<Vec<Rewritten>> {
        let bins = self
            .batches
            .get(batch)
            .ok_or_else(|| faulty(format!("there is no batch {batch} in the plan")))?;
        if !reported.removed.is_empty() || !reported.changes.is_empty() {
            return Err(faulty("a task has changed rows".to_owned()));
        }
        let new_files: Vec<usize> = bins.iter().map(|bin| bin.new_files(self.target)).collect();
        let mut tasks = tasks(reported, new_files.iter().sum())?.into_iter();
        let (mut rewritten, mut first) = (Vec::with_capacity(bins.len()), 0);
        for (number, (bin, new_files)) in bins.iter().zip(new_files).enumerate() {
            let of_bin = tasks.by_ref().take(new_files).collect();
            let files = first..first + bin.files.len();
            let counted = counted.map(|counted| counted.get(files.clone()).unwrap_or_default());
            first = files.end;
            rewritten.push(self.written_bin(bin, number, files, of_bin, counted)?);
        }
        Ok(rewritten)
    }

    /// Checks the output of the tasks of the bin with the number `number`, and returns the rewritten bin. `files` are
    /// the numbers of its old files in the batch.
    fn written_bin(
        &self,
        bin: &Bin,
        number: usize,
        files: Range<usize>,
        tasks: Vec<Task>,
        counted: Option<&[u64]>,
    ) -> Result<Rewritten> {
        let mut rows = vec![0_u64; bin.files.len()];
        let mut new = Vec::with_capacity(tasks.len());
        let mut order = EngineOrder { first_file: files.start, tasks: Vec::new() };
        for task in tasks {
            let (mut copied, mut next) = (0_u64, files.start);
            for (file, of_file) in task.rows {
                let file = usize::try_from(file).unwrap_or(usize::MAX);
                if !(next..files.end).contains(&file) {
                    return Err(faulty(format!(
                        "a task of bin {number} reported rows of the file {file}, which is not in that bin or is out \
                         of order"
                    )));
                }
                next = file + 1;
                if let Some(all) = rows.get_mut(file - files.start) {
                    *all = all.saturating_add(of_file);
                }
                copied = copied.saturating_add(of_file);
            }
            let written =
                task.new.as_ref().map_or(0, |add| add.stats.as_deref().and_then(num_records).unwrap_or(0));
            if written != copied || task.new.is_some() != (copied > 0) {
                return Err(faulty(format!(
                    "a task of bin {number} has read {copied} rows, but its new file has {written}"
                )));
            }
            if let Some(add) = task.new {
                new.push(self.new_file(bin, add, written)?);
                order.tasks.push(task.number);
            }
        }
        if counted.is_some_and(|counted| counted.len() != rows.len()) {
            return Err(faulty(format!("the rows of files outside of bin {number} were counted")));
        }
        let (mut sources, mut start) = (Vec::with_capacity(bin.files.len()), 0_u64);
        for (index, (ListedFile { add, .. }, rows)) in bin.files.iter().zip(rows).enumerate() {
            let read = counted.and_then(|counted| counted.get(index)).copied();
            if let Some(read) = read.filter(|read| *read != rows) {
                return Err(faulty(format!("tasks have written {rows} rows of a file, but read {read}"))
                    .at_path(&add.path));
            }
            let in_log = add.stats.as_deref().and_then(num_records);
            let live = in_log.map(|all| all.saturating_sub(deleted_rows(add)));
            if let Some(live) = live.filter(|live| *live != rows) {
                return Err(faulty(format!(
                    "tasks have read {rows} rows of a file that has {live} by its statistics in the log"
                ))
                .with_hint("check the files with FSCK")
                .at_path(&add.path));
            }
            sources.push(Source { add: add.clone(), moved: Moved { start, rows } });
            start = start.saturating_add(rows);
        }
        let order = match bin.order {
            BinOrder::Kept => RowOrder::Kept,
            BinOrder::Curve => {
                if let Some(ordering) = &self.ordering {
                    ordering.mark(&mut new, &self.environment);
                }
                RowOrder::Engine(order)
            }
        };
        Ok(Rewritten { sources, new, order })
    }

    fn new_file(&self, bin: &Bin, add: Add, rows: u64) -> Result<NewFile> {
        let columns = self.spec.physical_partition_columns();
        let values = columns.iter().map(|name| add.partition_values.get(name).cloned().flatten());
        if values.collect::<Vec<_>>() != self.values_of(bin) {
            return Err(faulty("a task has written a bin to another partition".to_owned()).at_path(&add.path));
        }
        let mut add = Add { data_change: false, ..add };
        // A single file that keeps its order is clustered as well as before.
        if let ([file], BinOrder::Kept) = (bin.files.as_slice(), bin.order) {
            keep(&file.add, &mut add);
        }
        Ok(NewFile { add, rows })
    }
}

/// Returns the output of each of `count` tasks, ordered by task number.
fn tasks(reported: Reported, count: usize) -> Result<Vec<Task>> {
    let mut files: Vec<Option<Add>> = reported.files.into_iter().map(Some).collect();
    let mut found: Vec<Option<ReportedBin>> = (0..count).map(|_| None).collect();
    for task in reported.bins {
        let number = task.bin;
        let place = usize::try_from(number).ok().and_then(|number| found.get_mut(number));
        let place = place.ok_or_else(|| {
            faulty(format!("a task has written file number {number}, which is not planned"))
        })?;
        if place.replace(task).is_some() {
            return Err(faulty(format!("two tasks have written the file {number}")));
        }
    }
    let mut tasks = Vec::with_capacity(count);
    for (number, found) in found.into_iter().enumerate() {
        let found = found.ok_or_else(|| faulty(format!("no task has written the file {number}")))?;
        let new = found.file.and_then(|index| files.get_mut(index)).and_then(Option::take);
        tasks.push(Task { number, rows: found.rows, new });
    }
    match files.into_iter().flatten().next() {
        Some(file) => {
            Err(faulty("a task has written a file that belongs to no bin".to_owned()).at_path(&file.path))
        }
        None => Ok(tasks),
    }
}

/// Returns the error for tasks that did not do what was planned. Their batch is not committed.
fn faulty(what: String) -> Error {
    Error::corrupt_data(format!("{what}; nothing of this batch was committed"))
}
