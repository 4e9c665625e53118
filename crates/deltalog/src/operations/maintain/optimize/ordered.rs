//! Orders the rows of bins along a curve through the ranks of the values in some columns.
//!
//! ```text
//!   the columns of all rows ── sample ──► boundaries of ranks
//!   all rows ── place on the curve ──► sorted, in a temporary file if need be ──► files with equal numbers of rows
//! ```
//!
//! - The rows are read twice. At any time, memory contains at most the rows that fit into the budget, and one block
//!   of each run in the temporary file.
//! - The number of new files is determined by the size of the old files.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;

use super::cubes::Cube;
use super::curve::{Curve, MOST_DIMENSIONS};
use super::moved::{Numbers, RowOrder};
use super::plan::Bin;
use super::ranks::Sample;
use super::rewrite::{BinRewriter, NewFile, Rewritten};
use super::sorted::Sorter;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::operations::define::columns_with_bounds;
use crate::runtime::environment::Environment;
use crate::runtime::parallel;
use crate::scan::RowScan;
use crate::snapshot::Snapshot;
use crate::write::{Dictionaries, WriteOptions};

/// The maximum number of batches of sorted rows that wait to be encoded.
const AHEAD: usize = 4;

/// How the rows of bins are ordered.
pub(super) struct Ordering {
    /// The columns by which rows are ordered, spelled as in the schema.
    columns: Vec<ColumnPath>,
    curve: Curve,
    /// The size of new files, in bytes.
    target: u64,
    /// Whether the files of each bin become a cube of a clustered table.
    makes_cubes: bool,
}

impl Ordering {
    /// Returns the ordering of the rows of `base` by `columns`.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a column that does not exist, that is a partition column, that is named twice,
    /// or that has no minimum and maximum in the statistics; for too many columns; and for a clustered table.
    pub(super) fn of(base: &Snapshot, columns: &[ColumnPath], curve: Curve, target: u64) -> Result<Self> {
        let refused = |message: String, hint: &str| Err(Error::invalid_argument(message).with_hint(hint));
        let clustered: Vec<String> =
            base.clustering_columns()?.iter().map(|path| ColumnPath::new(path).to_string()).collect();
        if !clustered.is_empty() {
            return refused(
                format!(
                    "the table is clustered (by {}), and cannot be ordered in another way",
                    clustered.join(", ")
                ),
                "leave out the columns",
            );
        }
        if columns.len() > MOST_DIMENSIONS {
            return refused(
                format!("a table can be ordered by at most {MOST_DIMENSIONS} columns, not {}", columns.len()),
                "choose the columns that filters use most",
            );
        }
        let schema = base.schema();
        if let Some(column) = columns.iter().find(|column| is_partition(base, column)) {
            return refused(
                format!("the table cannot be ordered by '{column}', which is a partition column"),
                "choose columns whose values differ within a partition",
            );
        }
        let paths = columns_with_bounds(columns, schema, &base.metadata().configuration, "ordered")?;
        let columns = paths.into_iter().map(ColumnPath::new).collect();
        Ok(Self { columns, curve, target, makes_cubes: false })
    }

    /// Returns the ordering of rows in a table that is clustered by `columns`.
    pub(super) fn of_cubes(columns: Vec<ColumnPath>, target: u64) -> Self {
        Self { columns, curve: Curve::Hilbert, target, makes_cubes: true }
    }

    /// Returns the columns, and the curve through the ranks of their values.
    pub(super) fn along(&self) -> (&[ColumnPath], Curve) {
        (&self.columns, self.curve)
    }

    /// Marks the new files of a bin as a cube, if the table is clustered.
    pub(super) fn mark(&self, new: &mut [NewFile], environment: &Environment) {
        if self.makes_cubes {
            let cube = Cube { id: environment.uuid().to_string(), columns: self.columns.clone() };
            new.iter_mut().for_each(|new| cube.mark(&mut new.add));
        }
    }
}

fn is_partition(base: &Snapshot, column: &ColumnPath) -> bool {
    let [name] = column.parts() else { return false };
    let found = base.schema().field(name);
    found.is_some_and(|field| base.metadata().partition_columns.contains(&field.name))
}

impl BinRewriter<'_> {
    /// Writes the rows of a bin to files, in the order of the curve.
    ///
    /// # Errors
    /// Returns `CorruptData`, errors from the store, and `Unavailable` or `PermissionDenied` if rows that do not fit in
    /// memory cannot be written to a temporary file.
    pub(super) fn order(&self, bin: &Bin, ordering: &Ordering, memory: usize) -> Result<Rewritten> {
        let places = self.sample(bin, ordering)?.places(ordering.curve);
        let mut sorter = Sorter::new(memory / 2, std::env::temp_dir());
        let mut read = self.read_rows();
        let sources = self.read(&bin.files, |batch| {
            read.add(&batch)?;
            let keys = places.of(&batch)?;
            sorter.add(batch, keys)
        })?;
        let mut numbers = Numbers::new(self.numbers.clone());
        let mut new = Vec::new();
        let files = bin.files_of(ordering.target).clamp(1, sorter.rows().max(1));
        let options =
            WriteOptions { dictionaries: Some(Dictionaries::default()), ..self.options(memory / 2) };
        self.write(sorter, files, bin.bytes() / files, &options, &mut numbers, &mut new)?;
        ordering.mark(&mut new, self.environment);
        self.checked(&bin.files, &read, Rewritten { sources, new, order: RowOrder::Changed(numbers) })
    }

    fn sample(&self, bin: &Bin, ordering: &Ordering) -> Result<Sample> {
        let names: BTreeSet<&str> =
            ordering.columns.iter().filter_map(|path| path.parts().first()).map(String::as_str).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let scan = RowScan::of(self.base)?.with_projection(&names)?;
        let mut sample = Sample::new(&scan.schema(), &ordering.columns)?;
        let files: Vec<_> = bin.files.iter().map(|file| Ok(file.file.clone())).collect();
        for batch in scan.read(files.into_iter()) {
            sample.add(&batch?)?;
        }
        Ok(sample)
    }

    /// Writes sorted rows to the given number of files, of about `bytes` bytes each, and adds the files to `new`.
    fn write(
        &self,
        sorter: Sorter,
        files: u64,
        bytes: u64,
        options: &WriteOptions,
        numbers: &mut Numbers,
        new: &mut Vec<NewFile>,
    ) -> Result<()> {
        let all = u128::from(sorter.rows());
        // Returns the number of rows in all files up to this one.
        let end_of = |file: u64| (all * u128::from(file) / u128::from(files)) as u64;
        let (mut row, mut begun) = (0, None);
        let write = |(batch, own): (RecordBatch, Vec<u64>)| {
            numbers.extend(&own)?;
            let mut rest = batch;
            while rest.num_rows() > 0 {
                let (mut writer, start, end) = match begun.take() {
                    Some(begun) => begun,
                    None => (self.writer(options.clone())?, row, end_of(new.len() as u64 + 1)),
                };
                let rows =
                    usize::try_from(end - row).map_or(rest.num_rows(), |left| left.min(rest.num_rows()));
                writer.write(&rest.slice(0, rows))?;
                rest = rest.slice(rows, rest.num_rows() - rows);
                row += rows as u64;
                if row < end {
                    begun = Some((writer, start, end));
                } else {
                    new.extend(self.finished(writer, end - start)?);
                    self.progress.add(bytes);
                }
            }
            Ok(())
        };
        // The next rows are merged in another thread while the previous rows are encoded.
        parallel::relay(AHEAD, |send| sorter.finish(|batch, own| send((batch, own))), write)?;
        numbers.finish()
    }
}
