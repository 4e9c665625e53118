//! `UPDATE`: assigns new values to the rows for which a predicate is true.
//!
//! - To find the rows, only the columns of the predicate are read. If the table has deletion vectors, the found rows
//!   are then read completely, deleted from their files and added to a new file. Otherwise the files are rewritten.
//! - If the change data feed is on, change data files contain the changed rows with their values before and after the
//!   update. (PROTOCOL, "Change Data Files".)

use super::assignments::{Assignments, Rows};
use super::metrics::RowCounts;
use super::row_change::RowChangeOutcome;
use super::run::{Request, condition_of_statement, run, take_rows};
use super::statement::Statement;
use crate::error::{Error, Result};
use crate::expression::constraints::ensure_bytes;
use crate::expression::predicate::Scope;
use crate::operations::rewrite::{Candidate, Finder, RowWriter, candidates};
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;
use crate::write::TableWriteSpec;

/// Assigns new values to columns in the rows of `base` for which `predicate` is true, or in all rows if it is `None`.
/// `values` are pairs of a column and its value, an expression in Spark's SQL. Times without a zone are in UTC.
///
/// # Errors
/// Returns `InvalidArgument` for a predicate or a value that cannot be evaluated, for a row that the table does not
/// allow, and for an append-only table. Returns `SchemaMismatch` for values that a column cannot store. Also returns
/// `CommitConflict`, `CommitStateUnknown`, `CorruptData`, and errors from the store.
pub fn update(
    base: &Snapshot,
    values: &[(String, String)],
    predicate: Option<&str>,
    request: Request,
) -> Result<RowChangeOutcome> {
    let statement = Statement::Update { predicate: predicate.map(str::to_owned) };
    let environment = request.environment.clone();
    run(base, request, &statement, |change| {
        if values.is_empty() {
            return Err(Error::invalid_argument("an UPDATE without new values")
                .with_hint("give at least one column a value"));
        }
        let condition = condition_of_statement(predicate)?;
        let finder = Finder::new(base, &condition)?;
        let scope = Scope::new(&[("target", base.arrow_schema())], "UTC");
        let assignments =
            Assignments::bind(Rows::Changed, values, &TableWriteSpec::of(base)?, "target", &scope)?;
        ensure_bytes(&assignments.computed_from(), base.schema())?;
        change.reads(Some(condition.clone()));
        let by_vectors = base.deletes_by_vectors()?;
        let mut writer = RowWriter::new(base, &environment, base.metadata().has_change_feed())?;
        let mut counts = RowCounts::default();
        let limits = base.storage().batch_bytes();
        let candidates = candidates(base, &condition, finder.condition())?;
        let progress = Progress::new("UPDATE", base.storage().url(), candidates.len() as u64, "files");
        for some in candidates.chunks(base.storage().most_readers()) {
            let started_ms = environment.now_ms();
            let found = finder.find_all(some, &progress)?;
            counts.scan_ms += environment.ms_since(started_ms);
            let found_ms = environment.now_ms();
            for (Candidate { listed, .. }, found) in some.iter().zip(found) {
                if found.rows.is_empty() {
                    continue;
                }
                counts.updated += found.rows.len();
                let rows = found.rows.clone();
                let copied =
                    take_rows(change, &mut writer, listed, found, &rows, by_vectors, |writer, rows, _| {
                        assignments
                            .update_all(limits, rows, rows, |before, after| writer.update(before, after))
                    });
                counts.copied += copied.map_err(|error| error.at_path(&listed.add.path))?;
            }
            counts.rewrite_ms += environment.ms_since(found_ms);
        }
        change.finish(writer)?;
        Ok(counts)
    })
}
