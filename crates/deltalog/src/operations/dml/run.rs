//! The parts that DELETE, UPDATE and MERGE share when this crate runs them itself.

use arrow::array::RecordBatch;
use roaring::RoaringTreemap;

use super::metrics::RowCounts;
use super::row_change::{RowChange, RowChangeOutcome};
use super::statement::Statement;
use crate::commit::{Operation, RowsRead, SaveMode, SchemaMode};
use crate::error::{Error, Result};
use crate::expression::predicate::{ParseMode, Predicate, lit, parse};
use crate::operations::insert::PendingWrite;
use crate::operations::insert::write_request::WriteRequest;
use crate::operations::rewrite::{Found, ListedFile, RowWriter, copy_others, read_file};
use crate::protocol::{SetTransaction, StructType};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::values::stats::with_num_records;

/// The settings of a statement: what its commit records, and which rows it depends on.
#[derive(Debug, Clone)]
pub struct Request {
    /// Additional fields of the commit, such as user metadata.
    pub operation: Operation,
    /// The progress of applications to record.
    pub app_transactions: Vec<SetTransaction>,
    /// The rows of the changed table from which the source of a MERGE was computed, at the version that the statement
    /// is based on.
    pub source: RowsRead,
    /// The columns of the source of a MERGE, if columns that the table lacks should be added to it in the same
    /// commit.
    pub new_columns: Option<StructType>,
    /// The source of times and ids.
    pub environment: Environment,
}

impl Request {
    /// Creates a request with defaults for all other settings.
    pub fn new(environment: &Environment) -> Self {
        Self {
            operation: Operation::default(),
            app_transactions: Vec::new(),
            source: RowsRead::Nothing,
            new_columns: None,
            environment: environment.clone(),
        }
    }
}

/// Runs a statement on `base`: `work` finds and writes the rows. If it fails, all new files are deleted.
///
/// # Errors
/// Returns the errors of `work` and of [`RowChange::commit`].
pub(super) fn run(
    base: &Snapshot,
    request: Request,
    statement: &Statement,
    work: impl FnOnce(&mut RowChange) -> Result<RowCounts>,
) -> Result<RowChangeOutcome> {
    let mut change = RowChange::new(base, &request.environment)?;
    change.record(request.app_transactions);
    change.computed_from(request.source);
    if let Some(applied) = change.already_applied()? {
        return Ok(RowChangeOutcome::AlreadyApplied(applied));
    }
    match work(&mut change) {
        Ok(rows) => change.commit(statement, request.operation, &rows),
        Err(error) => {
            change.abort();
            Err(base.located(error))
        }
    }
}

/// Prepares a write of the new files of a statement on exactly `base`. The statement itself commits these files.
/// Columns of the schema `data` that the table lacks are added to the table.
///
/// # Errors
/// Returns the same errors as [`PendingWrite::on`].
pub fn files_of_statement(
    base: &Snapshot,
    data: Option<StructType>,
    environment: &Environment,
) -> Result<PendingWrite> {
    let schema_mode = if data.is_some() { SchemaMode::Merge } else { SchemaMode::default() };
    let schema = data.map_or_else(|| base.metadata().schema(), Ok)?;
    let request = WriteRequest { schema_mode, ..WriteRequest::new(schema, SaveMode::Append) };
    PendingWrite::on(base.storage(), Some(base.clone()), request, environment)?.ok_or_else(|| {
        Error::invalid_argument("the statement has no table to change").in_table(base.storage().url())
    })
}

/// Parses the condition of a DELETE or an UPDATE. A missing condition is always true.
///
/// # Errors
/// Returns `InvalidArgument` for a condition that is not understood.
pub(super) fn condition_of_statement(predicate: Option<&str>) -> Result<Predicate> {
    predicate.map_or_else(|| Ok(Predicate::Value(lit(true))), |sql| parse(sql, "UTC", ParseMode::Strict))
}

/// Removes all rows `found` from a file. If `by_vectors` is true, a deletion vector deletes them, and `chosen` gets the
/// rows at the positions `read`. Otherwise, the other rows are copied to a new file, and `chosen` gets all rows in
/// `found`. The rows are passed in batches, with their positions. Returns how many rows were copied.
///
/// # Errors
/// Returns the errors of `chosen`, `CorruptData`, and errors from the store.
pub(super) fn take_rows(
    change: &mut RowChange,
    writer: &mut RowWriter,
    file: &ListedFile,
    found: Found,
    read: &RoaringTreemap,
    by_vectors: bool,
    mut chosen: impl FnMut(&mut RowWriter, &RecordBatch, &[u64]) -> Result<()>,
) -> Result<u64> {
    if !by_vectors {
        let copied = copy_others(change.base(), writer, file, &found.rows, chosen)?;
        change.remove_file(file.add.clone());
        return Ok(copied);
    }
    if !read.is_empty() {
        let mut positions = read.iter();
        for batch in read_file(writer.scan(), &file.of_rows(read)) {
            let batch = batch?;
            let taken: Vec<u64> = positions.by_ref().take(batch.num_rows()).collect();
            chosen(writer, &batch, &taken)?;
        }
    }
    change.delete_rows(with_num_records(file.add.clone(), found.all)?, found.rows);
    Ok(0)
}
