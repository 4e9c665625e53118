//! Decides in which files a statement looks for rows.
//!
//! - A file is skipped if its partition values or statistics show that none of its rows match, even if another writer
//!   computed them. A statement then finds the same rows as a read: if another writer's bounds are wrong, both miss
//!   some rows. A MERGE that misses a row inserts it again, as in any other engine. Reading every file with
//!   statistics from other writers would make each MERGE a scan of the whole table.
//! - A file does not have to be read if partition values, or statistics that this crate has computed, show that all
//!   its rows match. Bounds from other writers are not trusted for this, because the rows would be removed without
//!   looking at them. ([`crate::values::stats::is_own`].)
//! - The number of rows in such a file is taken from statistics that this crate has computed, or else from its
//!   footer.

use std::convert::Infallible;

use arrow::array::{BooleanArray, RecordBatch};

use super::finder::{condition_of, truth};
use super::listed::{ListedFile, visit_files};
use crate::error::{ErrorKind, Result};
use crate::expression::predicate::{BoundColumn, BoundPredicate, Expr, Predicate};
use crate::log::replay::{FileFilter, add_at};
use crate::protocol::Metadata;
use crate::runtime::parallel;
use crate::scan::{DataFile, file_filters};
use crate::snapshot::Snapshot;
use crate::write::FOOTER_THREADS;

/// A file in which a statement may find rows.
pub(crate) struct Candidate {
    pub(crate) listed: ListedFile,
    /// Whether all rows of the file are known to match.
    pub(crate) matches_whole: bool,
}

/// Returns the files of `base` that may contain rows for which `predicate` is true. `bound` is the same predicate,
/// bound to the table.
///
/// # Errors
/// Returns `InvalidArgument` if the predicate has no value for some partition values, `CorruptLog`, and errors from the
/// store.
pub(crate) fn candidates(
    base: &Snapshot,
    predicate: &Predicate,
    bound: &BoundPredicate,
) -> Result<Vec<Candidate>> {
    let by_partition = reads_partitions_only(bound, base.metadata());
    let others = match bound.is_null_only_by_columns() && !by_partition {
        true => {
            let others = file_filters(base, &may_not_be_true(predicate, bound));
            Some(others.map_err(|error| base.located(error))?)
        }
        false => None,
    };
    let mut found = Vec::new();
    visit_files(base, Some(predicate), |batch, files| {
        let has_others = others.as_ref().map(|others| kept(others, batch)).transpose()?;
        for (row, file) in files.into_iter().enumerate() {
            if by_partition && !truth_in_partition(bound, &file)? {
                continue;
            }
            let listed = ListedFile { add: add_at(batch, row)?, file };
            let matches_whole = match &has_others {
                Some(has_others) => !has_others.value(row) && listed.has_own_statistics(),
                None => by_partition,
            };
            found.push(Candidate { listed, matches_whole });
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns for each of `files` the number of rows that are not deleted; `None` for a file that cannot be read.
pub(crate) fn live_rows(base: &Snapshot, files: &[&ListedFile]) -> Vec<Option<u64>> {
    let rows = |file: &ListedFile| {
        if file.has_own_statistics() {
            return file.live_rows();
        }
        file.live_rows_by_footer(base).unwrap_or_else(|error| {
            let (table, file) = (base.storage().url(), &file.add.path);
            tracing::debug!(table, %error, file, "the number of rows in a file is unknown: its footer cannot be read");
            None
        })
    };
    let Ok(all) = parallel::each(files, FOOTER_THREADS, |file| Ok::<_, Infallible>(rows(file)));
    all
}

/// Returns whether a condition reads only partition columns, whose values are the same in all rows of a file.
pub(crate) fn reads_partitions_only(condition: &BoundPredicate, metadata: &Metadata) -> bool {
    let is_partition = |name: &String| metadata.partition_columns.contains(name);
    condition.columns().iter().all(|column| matches!(column.path.parts(), [name] if is_partition(name)))
}

/// Returns whether a condition that reads only partition columns is true for the rows of a file.
///
/// # Errors
/// Returns `InvalidArgument` if the condition has no value for the file's partition.
pub(crate) fn truth_in_partition(condition: &BoundPredicate, file: &DataFile) -> Result<bool> {
    let (values, row) = file.partition_values.parts();
    Ok(truth(condition, &RecordBatch::from(values.slice(row, 1)))?.value(0))
}

/// Returns a condition that is true for every row for which `predicate` is false, or NULL because a column is NULL.
fn may_not_be_true(predicate: &Predicate, bound: &BoundPredicate) -> Predicate {
    let is_null = |column: &BoundColumn| Predicate::IsNull(Expr::Column(column.path.clone()));
    let mut any: Vec<Predicate> = bound.columns().iter().map(is_null).collect();
    any.push(Predicate::Not(Box::new(predicate.clone())));
    Predicate::Or(any)
}

/// Returns for each file in the batch whether all `filters` keep it.
fn kept(filters: &[FileFilter], batch: &RecordBatch) -> Result<BooleanArray> {
    let mut all = vec![true; batch.num_rows()];
    for filter in filters {
        for (all, keep) in all.iter_mut().zip((filter.keep)(batch)?.values()) {
            *all &= keep;
        }
    }
    Ok(all.into())
}

/// The files that may contain rows for which a condition is true. A statement that removes all such rows treats the
/// two kinds of files differently.
#[derive(Debug, Default)]
pub struct FilesApart {
    /// Files in which only some rows may match, and files with an unknown number of rows.
    pub others: Vec<ListedFile>,
    /// Files in which all rows match, so that they do not have to be read.
    pub whole: Vec<ListedFile>,
    /// The total number of rows in the files in `whole`.
    pub whole_rows: u64,
}

/// Returns the files of `base` that may contain rows for which `condition` is true; `None` if this crate cannot
/// evaluate the condition.
///
/// # Errors
/// Returns `CorruptLog`, and errors from the store.
pub fn listed_apart(base: &Snapshot, condition: &Predicate) -> Result<Option<FilesApart>> {
    let found = match condition_of(base, condition).and_then(|bound| candidates(base, condition, &bound)) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::InvalidArgument => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut apart = FilesApart::default();
    let (whole, others): (Vec<Candidate>, Vec<Candidate>) =
        found.into_iter().partition(|candidate| candidate.matches_whole);
    apart.others.extend(others.into_iter().map(|candidate| candidate.listed));
    let rows = live_rows(base, &whole.iter().map(|candidate| &candidate.listed).collect::<Vec<_>>());
    for (candidate, rows) in whole.into_iter().zip(rows) {
        match rows {
            // If the number of rows is not known, the file must be read, because the statement reports how many rows
            // it has removed.
            None => apart.others.push(candidate.listed),
            Some(rows) => {
                apart.whole_rows += rows;
                apart.whole.push(candidate.listed);
            }
        }
    }
    Ok(Some(apart))
}
