//! Overwrites of the rows for which a predicate is true (`replaceWhere`).
//!
//! ```text
//!   files that may have such a row
//!     │  the predicate reads partition columns only      its value is that of every row of the file
//!     │  else the columns that it reads are read         positions of the rows for which it is true
//!     ▼
//!   no such row ─────────► the file stays
//!   only such rows ──────► it is removed
//!   some such rows ──────► they are deleted by a deletion vector, if the table has these; else the file is rewritten
//! ```
//!
//! - A row is replaced only if the predicate is true for it, not if it is false or NULL.
//! - New rows must meet the predicate, as they must meet a CHECK constraint.
//! - What was read is the predicate: a commit that adds a file that may have such a row conflicts.
//! - Rows that are copied keep their row ids and commit versions (`row_copy`). (PROTOCOL, "Row Tracking".)
//! - Tables whose other rows would have to be left out of the change data feed are refused before a row is written.
//!   (PROTOCOL, "Change Data Files".)

use std::iter::once;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::{filter_record_batch, not, prep_null_mask_filter};
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use crate::constraints::ensure_bytes;
use crate::deletion_vector::{DeletionVector, DeletionVectors};
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::predicate::{BoundPredicate, ParseMode, Predicate, filter_mask, parse};
use crate::protocol::{Add, Metadata};
use crate::replay::{AddRequest, FileColumn, FileColumns, add_at, filtered};
use crate::row_copy::RowCopy;
use crate::scan::{DataFile, FileRows, PartitionColumns, RowScan, data_files, file_filters};
use crate::snapshot::Snapshot;
use crate::stats::num_records;
use crate::transaction::{PartitionOverwrite, SaveMode, Transaction};
use crate::write::{DataWriter, TableWriteSpec, WriteOptions};

/// The rows that an overwrite replaces: those for which a predicate is true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReplaceWhere {
    /// The predicate, in Spark's SQL.
    pub predicate: String,
    /// The time zone of times without one in the predicate.
    pub time_zone: String,
    /// Whether new rows must meet the predicate.
    pub checks_rows: bool,
}

impl ReplaceWhere {
    /// Creates a request to replace the rows for which `predicate` is true by rows that meet it. Times without a zone
    /// are in UTC.
    pub fn new(predicate: impl Into<String>) -> Self {
        Self { predicate: predicate.into(), time_zone: "UTC".to_owned(), checks_rows: true }
    }

    /// Returns whether the predicate has times without a zone, so that the rows depend on `time_zone`.
    ///
    /// # Errors
    /// `InvalidArgument` for a predicate that is not understood.
    #[doc(hidden)]
    pub fn depends_on_time_zone(&self) -> Result<bool> {
        let parsed = |zone| parse(&self.predicate, zone, ParseMode::Strict).map(|found| format!("{found:?}"));
        Ok(parsed("Pacific/Kiritimati")? != parsed("Pacific/Pago_Pago")?)
    }

    /// Checks that a write in this mode can replace rows by a predicate.
    ///
    /// # Errors
    /// `InvalidArgument` for a mode other than `Overwrite`, and together with the overwrite of partitions.
    pub(crate) fn check_mode(&self, mode: SaveMode, partitions: PartitionOverwrite) -> Result<()> {
        let refuse = |what: String, hint| Err(Error::invalid_argument(what).with_hint(hint));
        if mode != SaveMode::Overwrite {
            let what = format!(
                "rows are replaced by a predicate ({}) only in the mode overwrite, not in the mode {}",
                self.predicate,
                mode.name().to_ascii_lowercase()
            );
            return refuse(what, "write with the mode overwrite, or leave the predicate out");
        }
        match partitions {
            PartitionOverwrite::Static => Ok(()),
            PartitionOverwrite::Dynamic => refuse(
                format!(
                    "an overwrite replaces either the rows for which a predicate is true ({}) or the partitions that \
                     the data has rows for, not both",
                    self.predicate
                ),
                "leave out the predicate or the mode 'dynamic' of overwriting partitions",
            ),
        }
    }

    /// Returns the predicate, checked against `base`.
    ///
    /// # Errors
    /// `InvalidArgument` for a predicate that cannot be evaluated; `Unsupported` for a table in which rows cannot be
    /// replaced by it.
    pub(crate) fn resolve(&self, base: &Snapshot) -> Result<Predicate> {
        let predicate = parse(&self.predicate, &self.time_zone, ParseMode::Strict)?;
        let bound = predicate.bind(base.arrow_schema())?;
        ensure_bytes(bound.columns(), base.schema())?;
        if !reads_partitions_only(&bound, base.metadata()) {
            ensure_rewritable(base)?;
        }
        Ok(predicate)
    }
}

fn reads_partitions_only(bound: &BoundPredicate, metadata: &Metadata) -> bool {
    let is_partition = |name: &String| metadata.partition_columns.contains(name);
    bound.columns().iter().all(|column| matches!(column.path.parts(), [name] if is_partition(name)))
}

fn has_vectors(metadata: &Metadata) -> bool {
    metadata.is_enabled("delta.enableDeletionVectors")
}

/// Refuses a table in which rows cannot be copied from one file to another.
fn ensure_rewritable(base: &Snapshot) -> Result<()> {
    const HINT: &str = "set the table property 'delta.enableDeletionVectors' to true, so that the other rows stay \
                        where they are, or use a predicate on partition columns";
    if has_vectors(base.metadata()) {
        return Ok(());
    }
    if base.metadata().is_enabled("delta.enableChangeDataFeed") {
        return Err(Error::unsupported(
            "a predicate on columns that are not partition columns replaces some rows of a file, and the others would \
             have to be left out of the change data feed (delta.enableChangeDataFeed), which is not implemented",
        )
        .with_hint(HINT));
    }
    match RowCopy::of(base, TableWriteSpec::of(base)?) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::InvalidArgument => Err(error.with_hint(HINT)),
        Err(error) => Err(error),
    }
}

/// Removes the rows of `base` for which `predicate` is true, as part of `transaction`. Returns the files that other
/// rows were copied to, which belong to the transaction as well; the caller owns them.
///
/// # Errors
/// `CorruptLog`, `CorruptData`, and errors of the store. No file is left then.
pub(crate) fn remove_matching(
    transaction: &mut Transaction,
    base: &Snapshot,
    predicate: &Predicate,
    environment: &Environment,
) -> Result<Vec<Add>> {
    let located = |error: Error| error.in_table(base.storage().url()).at_version(base.version());
    let bound = predicate.bind(base.arrow_schema()).map_err(located)?;
    let by_partition = reads_partitions_only(&bound, base.metadata());
    transaction.read_predicate(predicate.clone());
    let mut request = AddRequest::new(FileColumns::of(&FileColumn::ALL));
    request.filters = file_filters(base, predicate).map_err(located)?;
    let partitions = PartitionColumns::of(base).map_err(located)?;
    let mut remover = Remover { base, bound, environment, scan: None, copier: None };
    for batch in base.replay(request)? {
        let batch = batch?;
        let files = data_files(&batch, base.resolver(), &partitions).map_err(located)?;
        let removed = match by_partition {
            true => remover.truth_of_partitions(&files)?,
            false => {
                let removed = files.into_iter().enumerate().map(|(row, file)| {
                    let add = add_at(&batch, row).map_err(located)?;
                    let path = add.path.clone();
                    remover.visit(add, file, transaction).map_err(|error| error.at_path(path))
                });
                removed.collect::<Result<Vec<bool>>>()?.into()
            }
        };
        transaction.remove_files(&filtered(&batch, &removed)?)?;
    }
    remover.finish(transaction)
}

/// Finds the rows to remove in files, and removes those of files that keep other rows.
struct Remover<'a> {
    base: &'a Snapshot,
    bound: BoundPredicate,
    environment: &'a Environment,
    /// The scan of the columns that the predicate reads.
    scan: Option<RowScan>,
    /// The scan and the writer of rows that are copied.
    copier: Option<(RowScan, DataWriter)>,
}

impl Remover<'_> {
    /// Returns for each file whether the predicate, which reads partition columns only, is true.
    fn truth_of_partitions(&self, files: &[DataFile]) -> Result<BooleanArray> {
        let truth = |file: &DataFile| {
            let (values, row) = file.partition_values.parts();
            let mask = self.truth(&RecordBatch::from(values.slice(row, 1)))?;
            Ok(mask.value(0))
        };
        Ok(files.iter().map(truth).collect::<Result<Vec<bool>>>()?.into())
    }

    /// Removes rows of a file that keeps others. Returns whether the file is to be removed as well: because it has no
    /// other rows, or because they were copied.
    fn visit(&mut self, add: Add, file: DataFile, transaction: &mut Transaction) -> Result<bool> {
        let deleted = match &add.deletion_vector {
            Some(descriptor) => {
                let vectors = DeletionVectors::new(self.base.storage().clone(), self.base.resolver().clone());
                vectors.read(descriptor, None)?.bitmap().clone()
            }
            None => RoaringTreemap::new(),
        };
        let (matching, rows) = self.matching_rows(&file, &deleted)?;
        if deleted.max().is_some_and(|last| last >= rows) {
            return Err(Error::corrupt_data("the deletion vector has a row that the file does not have"));
        }
        let deleted = deleted.len();
        if matching.is_empty() {
            return Ok(false);
        }
        if matching.len() == rows - deleted {
            return Ok(true);
        }
        if has_vectors(self.base.metadata()) {
            transaction.delete_rows(with_num_records(add, rows), DeletionVector::from(matching));
            return Ok(false);
        }
        self.copy_others(file)?;
        Ok(true)
    }

    /// Returns the positions of the rows of a data file for which the predicate is true, without the rows `deleted`,
    /// and the number of all rows. A deleted row is not evaluated: the predicate may have no value for it.
    fn matching_rows(&mut self, file: &DataFile, deleted: &RoaringTreemap) -> Result<(RoaringTreemap, u64)> {
        let scan = match &self.scan {
            Some(scan) => scan.clone(),
            None => {
                let mut names: Vec<&str> = Vec::new();
                for column in self.bound.columns() {
                    if let Some(name) =
                        column.path.parts().first().filter(|name| !names.contains(&name.as_str()))
                    {
                        names.push(name);
                    }
                }
                self.scan.insert(RowScan::of(self.base)?.with_projection(&names)?).clone()
            }
        };
        let all = DataFile { rows: FileRows::All, ..file.clone() };
        let (mut matching, mut next) = (RoaringTreemap::new(), 0);
        for batch in scan.read(once(Ok(all))) {
            let batch = batch?;
            let end = next + batch.num_rows() as u64;
            if deleted.range_cardinality(next..end) == 0 {
                for (start, end) in self.truth(&batch)?.values().set_slices() {
                    matching.insert_range(next + start as u64..next + end as u64);
                }
            } else {
                let live: BooleanArray =
                    (next..end).map(|row| !deleted.contains(row)).collect::<Vec<_>>().into();
                let rows = filter_record_batch(&batch, &live).map_err(|error| {
                    Error::invalid_argument("the rows of the file cannot be selected").with_source(error)
                })?;
                let truth = self.truth(&rows)?;
                let positions = (next..end).filter(|row| !deleted.contains(*row));
                matching.extend(
                    positions.zip(truth.values()).filter(|(_, is_true)| *is_true).map(|(row, _)| row),
                );
            }
            next = end;
        }
        Ok((matching, next))
    }

    /// Copies the live rows of a file for which the predicate is not true.
    fn copy_others(&mut self, file: DataFile) -> Result<()> {
        let (scan, mut writer) = match self.copier.take() {
            Some(copier) => copier,
            None => {
                let RowCopy { scan, spec } = RowCopy::of(self.base, TableWriteSpec::of(self.base)?)?;
                let options = WriteOptions::new(self.environment.clone());
                (scan, DataWriter::new(self.base.storage().clone(), spec, options)?)
            }
        };
        for batch in scan.clone().read(once(Ok(file))) {
            let batch = batch?;
            let others = not(&self.truth(&batch)?).and_then(|others| filter_record_batch(&batch, &others));
            writer.write(&others.map_err(|error| {
                Error::invalid_argument("rows that are not replaced cannot be copied").with_source(error)
            })?)?;
        }
        self.copier = Some((scan, writer));
        Ok(())
    }

    /// Returns where the predicate is true.
    fn truth(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let mask = filter_mask(&self.bound, batch)?;
        Ok(if mask.null_count() > 0 { prep_null_mask_filter(&mask) } else { mask })
    }

    /// Returns the files with copied rows, which `transaction` adds.
    fn finish(self, transaction: &mut Transaction) -> Result<Vec<Add>> {
        let Some((_, writer)) = self.copier else { return Ok(Vec::new()) };
        let files = writer.finish()?;
        transaction.add_files(&files)?;
        Ok(files)
    }
}

/// Returns the action with the number of its rows, without which rows cannot be deleted.
fn with_num_records(mut add: Add, rows: u64) -> Add {
    if add.stats.as_deref().and_then(num_records).is_none() {
        add.stats = Some(format!("{{\"numRecords\":{rows}}}"));
    }
    add
}

/// Checks that the predicate can be evaluated for rows of a new table.
///
/// # Errors
/// `InvalidArgument` for a predicate that cannot be evaluated.
pub(crate) fn check_predicate(replaced: &ReplaceWhere, spec: &TableWriteSpec) -> Result<()> {
    let predicate = parse(&replaced.predicate, &replaced.time_zone, ParseMode::Strict)?;
    ensure_bytes(predicate.bind(spec.arrow())?.columns(), spec.schema())
}
