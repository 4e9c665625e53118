//! Overwrites that replace only the rows for which a predicate is true (`replaceWhere`).
//!
//! ```text
//!   files that may have such a row
//!     │  the predicate reads partition columns only      its value holds for every row of the file
//!     │  else the columns that it reads are read         positions of the rows for which it is true
//!     ▼
//!   no such row ─────────► the file stays
//!   only such rows ──────► it is removed
//!   some such rows ──────► they are deleted by a deletion vector, if the table has these; else the file is rewritten
//! ```
//!
//! - A row is replaced only if the predicate is true for it, and not if the predicate is false or NULL.
//! - New rows must meet the predicate, just as they must meet a CHECK constraint.
//! - The write depends on the predicate: it conflicts with a concurrent commit that adds a file which may have rows
//!   for which the predicate is true.
//! - Rows that are copied keep their row ids and commit versions (`row_copy`). (PROTOCOL, "Row Tracking".)
//! - If rows are copied, change data files record the deleted and the new rows. The new rows are read back from their
//!   files, because it is only known after they were written whether any rows are copied. (PROTOCOL, "Change Data
//!   Files".)

use serde::{Deserialize, Serialize};

use crate::commit::own_files::OwnFiles;
use crate::commit::{PartitionOverwrite, SaveMode, Transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::constraints::ensure_bytes;
use crate::expression::predicate::{ParseMode, Predicate, parse};
use crate::log::deletion_vector::DeletionVector;
use crate::log::replay::{FileColumn, add_at, batches_of_adds, filtered, with_columns};
use crate::operations::rewrite::{
    Finder, ListedFile, RowWriter, condition_of, copy_others, reads_partitions_only, truth_in_partition,
    visit_files,
};
use crate::protocol::{Add, AddCdcFile, ColumnMappingMode, MappedSchema, Metadata, Protocol};
use crate::runtime::environment::Environment;
use crate::scan::{DataFile, PartitionColumns, RowScan, data_files};
use crate::snapshot::Snapshot;
use crate::values::stats::with_num_records;
use crate::write::TableWriteSpec;
use crate::write::change_files::{Change, ChangeFiles, ensure_recordable};
use crate::write::row_copy::RowCopy;

/// Which rows an overwrite replaces: the rows for which a predicate is true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReplaceWhere {
    /// The predicate, in Spark's SQL.
    pub predicate: String,
    /// The time zone for times in the predicate that do not have one. If it is empty, the time zone is not known, and
    /// the predicate must not depend on it.
    pub time_zone: String,
    /// Whether new rows must meet the predicate.
    pub checks_rows: bool,
}

impl ReplaceWhere {
    /// Requests to replace the rows for which `predicate` is true with new rows that also meet the predicate. Times
    /// without a zone are in UTC.
    pub fn new(predicate: impl Into<String>) -> Self {
        Self { predicate: predicate.into(), time_zone: "UTC".to_owned(), checks_rows: true }
    }

    /// Returns whether the predicate contains times without a zone, so that its meaning depends on `time_zone`.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a predicate that is not understood.
    #[doc(hidden)]
    pub fn depends_on_time_zone(&self) -> Result<bool> {
        let parsed = |zone| {
            let found = parse(&self.predicate, zone, ParseMode::Strict)?;
            // Whether a comparison depends on the time zone is only known once the types of its columns are known.
            Ok::<_, Error>(match found {
                Predicate::InZone { condition, .. } => format!("{condition:?}"),
                found => format!("{found:?}"),
            })
        };
        Ok(parsed("Pacific/Kiritimati")? != parsed("Pacific/Pago_Pago")?)
    }

    /// Checks that a write in this mode can replace rows by a predicate.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a mode other than `Overwrite`, and if the overwrite also replaces partitions.
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

    /// Parses the predicate, and checks it against `base`.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a predicate that cannot be evaluated, and `Unsupported` for a table in which
    /// rows cannot be replaced by a predicate.
    pub(crate) fn resolve(&self, base: &Snapshot) -> Result<Predicate> {
        let predicate = parse(&self.predicate, &self.time_zone, ParseMode::Strict)?;
        let bound = condition_of(base, &predicate)?;
        if !reads_partitions_only(&bound, base.metadata()) {
            ensure_rewritable(base)?;
        }
        Ok(predicate)
    }
}

/// Refuses a table in which rows cannot be copied from one file to another.
fn ensure_rewritable(base: &Snapshot) -> Result<()> {
    const HINT: &str = "set the table property 'delta.enableDeletionVectors' to true, so that the other rows stay \
                        where they are, or use a predicate on partition columns";
    if base.deletes_by_vectors()? {
        return Ok(());
    }
    let spec = TableWriteSpec::of(base)?;
    if base.metadata().has_change_feed() {
        ensure_recordable(&spec)?;
    }
    match RowCopy::of(base, spec) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::InvalidArgument => Err(error.with_hint(HINT)),
        Err(error) => Err(error),
    }
}

/// The table after an overwrite, and the files with its new rows.
pub(crate) struct NewRows<'a> {
    pub(crate) protocol: &'a Protocol,
    pub(crate) metadata: &'a Metadata,
    pub(crate) spec: &'a TableWriteSpec,
    pub(crate) files: &'a [Add],
}

/// Adds actions to `transaction` that replace the rows of `base` for which `predicate` is true with the rows `new`.
/// Files that are written for this are also added to `own`.
///
/// # Errors
/// Returns `CorruptLog`, `CorruptData`, and errors from the store.
pub(crate) fn replace_matching(
    transaction: &mut Transaction,
    base: &Snapshot,
    predicate: &Predicate,
    new: &NewRows<'_>,
    environment: &Environment,
    own: &mut OwnFiles,
) -> Result<()> {
    let located = |error| base.located(error);
    let finder = Finder::new(base, predicate).map_err(located)?;
    let by_partition = reads_partitions_only(finder.condition(), base.metadata());
    let by_vectors = base.deletes_by_vectors().map_err(located)?;
    transaction.read_predicate(predicate.clone());
    let mut remover = Remover { base, finder, environment, by_vectors, writer: None, removed: Vec::new() };
    transaction.add_files(new.files)?;
    visit_files(base, Some(predicate), |batch, files| {
        let removed = files.into_iter().enumerate().map(|(row, file)| {
            if by_partition {
                return truth_in_partition(remover.finder.condition(), &file);
            }
            let add = add_at(batch, row)?;
            let path = add.path.clone();
            remover.visit(ListedFile { add, file }, transaction).map_err(|error| error.at_path(path))
        });
        let removed = removed.collect::<Result<Vec<bool>>>()?.into();
        transaction.remove_files(&filtered(batch, &removed)?)
    })?;
    remover.finish(transaction, new, own)
}

/// The search for the rows to be replaced, and their removal from files that also contain other rows.
struct Remover<'a> {
    base: &'a Snapshot,
    finder: Finder<'a>,
    environment: &'a Environment,
    by_vectors: bool,
    /// Copies the remaining rows of files; `None` until there is a row to copy.
    writer: Option<RowWriter>,
    /// The files that contain the replaced rows, if they may be needed for the change data feed.
    removed: Vec<DataFile>,
}

impl Remover<'_> {
    /// Removes the rows to be replaced from a file that may contain other rows. Returns whether the file itself must
    /// be removed, because it has no other rows or because the other rows were copied.
    fn visit(&mut self, file: ListedFile, transaction: &mut Transaction) -> Result<bool> {
        let found = self.finder.find(&file)?;
        if found.rows.is_empty() {
            return Ok(false);
        }
        let is_whole = found.is_whole();
        if !is_whole && self.by_vectors {
            let add = with_num_records(file.add, found.all)?;
            transaction.delete_rows(add, DeletionVector::from(found.rows));
            return Ok(false);
        }
        if !is_whole {
            let writer = match &mut self.writer {
                Some(writer) => writer,
                None => self.writer.insert(RowWriter::new(self.base, self.environment, false)?),
            };
            copy_others(self.base, writer, &file, &found.rows, |_, _, _| Ok(()))?;
        }
        if self.base.metadata().has_change_feed() {
            self.removed.push(if is_whole { file.file } else { file.of_rows(&found.rows) });
        }
        Ok(true)
    }

    /// Adds the files with copied rows to `transaction` and, if there are such files, change data files for the feed.
    fn finish(self, transaction: &mut Transaction, new: &NewRows<'_>, own: &mut OwnFiles) -> Result<()> {
        let Some(mut writer) = self.writer else { return Ok(()) };
        if self.base.metadata().has_change_feed() {
            let changes = recorded(self.base, self.removed, new, self.environment)?;
            own.add_changes(changes.iter().map(|file| &file.path));
            transaction.add_change_files(changes);
        }
        let files = writer.finish_data()?;
        own.add(files.iter().map(|file| &file.path));
        transaction.add_files(&files)
    }
}

/// Writes change data files that contain the rows `removed` and the new rows.
fn recorded(
    base: &Snapshot,
    removed: Vec<DataFile>,
    new: &NewRows<'_>,
    environment: &Environment,
) -> Result<Vec<AddCdcFile>> {
    let located = |error: Error| error.in_table(base.storage().url());
    let names = &new.metadata.partition_columns;
    let mode = ColumnMappingMode::of(new.protocol, new.metadata)?;
    let schema = new.metadata.schema().and_then(|schema| MappedSchema::new(schema, mode)).map_err(located)?;
    let partitions = PartitionColumns::new(&schema, names).map_err(located)?;
    let scan = RowScan::new(base.storage().clone(), schema.arrow(), names)?
        .with_physical_schema(schema.physical_arrow())?
        .with_resolver(base.resolver().clone());
    let mut changes = ChangeFiles::new(base.storage(), environment, new.spec)?;
    let mut added = Vec::new();
    for batch in batches_of_adds(new.files)? {
        let batch = with_columns(&batch, FileColumn::ALL.iter().map(|column| column.field()).collect())?;
        added.extend(data_files(&batch, base.resolver(), &partitions)?);
    }
    for (files, change) in [(removed, Change::Delete), (added, Change::Insert)] {
        for batch in scan.clone().read(files.into_iter().map(Ok)) {
            changes.record(&batch?, change)?;
        }
    }
    changes.finish()
}

/// Checks that the predicate can be evaluated for the rows of a new table.
///
/// # Errors
/// Returns `InvalidArgument` for a predicate that cannot be evaluated.
pub(crate) fn check_predicate(replaced: &ReplaceWhere, spec: &TableWriteSpec) -> Result<()> {
    let predicate = parse(&replaced.predicate, &replaced.time_zone, ParseMode::Strict)?;
    ensure_bytes(predicate.bind(spec.arrow())?.columns(), spec.schema())
}
