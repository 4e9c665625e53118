//! `DELETE`: deletes the rows for which a predicate is true.
//!
//! ```text
//!   files that may have such a row
//!     │  partition values or our statistics show that all rows match ──► removed unread
//!     ▼  else the columns that the predicate reads are read
//!   no such row ─────────► the file stays
//!   only such rows ──────► it is removed
//!   some such rows ──────► they are deleted by a deletion vector, if the table has these; else the others are copied
//! ```
//!
//! - Removed files and deletion vectors show readers of the change data feed which rows were deleted. Change data files
//!   are written only if remaining rows are copied to new files; they then contain all changes of the version.
//!   (PROTOCOL, "Change Data Files".)

use arrow::array::RecordBatch;
use roaring::RoaringTreemap;

use super::metrics::RowCounts;
use super::row_change::RowChangeOutcome;
use super::run::{Request, condition_of_statement, run, take_rows};
use super::statement::Statement;
use crate::error::Result;
use crate::operations::rewrite::{Candidate, Finder, RowWriter, candidates, live_rows, read_file};
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;

/// Deletes the rows of `base` for which `predicate`, a condition in Spark's SQL, is true, or all rows if there is no
/// predicate. Times without a zone are in UTC.
///
/// # Errors
/// Returns `InvalidArgument` for a predicate that cannot be evaluated, and for an append-only table. Also returns
/// `CommitConflict`, `CommitStateUnknown`, `CorruptData`, and errors from the store.
pub fn delete(base: &Snapshot, predicate: Option<&str>, request: Request) -> Result<RowChangeOutcome> {
    let statement = Statement::Delete { predicate: predicate.map(str::to_owned) };
    let environment = request.environment.clone();
    run(base, request, &statement, |change| {
        let condition = condition_of_statement(predicate)?;
        let finder = Finder::new(base, &condition)?;
        change.reads(Some(condition.clone()));
        let started_ms = environment.now_ms();
        let (whole, others): (Vec<Candidate>, Vec<Candidate>) =
            candidates(base, &condition, finder.condition())?
                .into_iter()
                .partition(|candidate| candidate.matches_whole);
        let progress = Progress::new("DELETE", base.storage().url(), others.len() as u64, "files");
        let found = finder.find_all(&others, &progress)?;
        let found = others.into_iter().zip(found).filter(|(_, found)| !found.rows.is_empty());
        let (emptied, partial): (Vec<_>, Vec<_>) = found.partition(|(_, found)| found.is_whole());
        let mut counts = RowCounts { deleted: Some(0), ..RowCounts::default() };
        let listed: Vec<_> = whole.iter().map(|candidate| &candidate.listed).collect();
        for rows in live_rows(base, &listed) {
            counts.deleted = counts.deleted.zip(rows).map(|(all, rows)| all + rows);
        }
        let rows = emptied.iter().chain(&partial).map(|(_, found)| found.rows.len()).sum::<u64>();
        counts.deleted = counts.deleted.map(|deleted| deleted + rows);
        counts.scan_ms = environment.ms_since(started_ms);
        let found_ms = environment.now_ms();
        let by_vectors = base.deletes_by_vectors()?;
        let records = base.metadata().has_change_feed() && !by_vectors && !partial.is_empty();
        let mut writer = RowWriter::new(base, &environment, records)?;
        for candidate in whole.into_iter().chain(emptied.into_iter().map(|(candidate, _)| candidate)) {
            if records {
                for batch in read_file(writer.scan(), &candidate.listed.file) {
                    writer.delete(&batch?)?;
                }
            }
            change.empty_file(candidate.listed);
        }
        for (Candidate { listed, .. }, found) in partial {
            let none = RoaringTreemap::new();
            let delete = |writer: &mut RowWriter, rows: &RecordBatch, _: &[u64]| writer.delete(rows);
            let copied = take_rows(change, &mut writer, &listed, found, &none, by_vectors, delete);
            counts.copied += copied.map_err(|error| error.at_path(&listed.add.path))?;
        }
        change.finish(writer)?;
        counts.rewrite_ms = environment.ms_since(found_ms);
        Ok(counts)
    })
}
