//! Detects that the other commit has added rows that the transaction should have read.
//!
//! | isolation level | added files that may conflict |
//! | --- | --- |
//! | `Serializable` | all that change data |
//! | `WriteSerializable` | the same, except blind appends |
//! | `SnapshotIsolation` | none |
//!
//! If the transaction's new rows were computed from rows of the table, the table's isolation level applies to these
//! rows, even if the transaction uses another level for the rows that it replaces.
//!
//! A file with `dataChange` false holds rows that were moved. If the transaction has read these rows, it has read the
//! file from which they were moved, and [`super::reads`] finds the conflict.

use arrow::array::RecordBatch;

use super::{Mine, Winner};
use crate::commit::changes::path_of_data_change;
use crate::commit::conflict::{ConflictReason, WhatWasRead};
use crate::commit::isolation::IsolationLevel;
use crate::commit::source::RowsRead;
use crate::error::Result;
use crate::expression::predicate::Predicate;
use crate::log::replay::{FileColumn, apply, filtered, with_columns};
use crate::scan::file_filters;

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    if winner.appended.num_rows() == 0 {
        return Ok(None);
    }
    let is_blind = winner.commit.commit_info.as_ref().and_then(|info| info.is_blind_append) == Some(true)
        && winner.commit.removes.num_rows() == 0;
    if counts(mine.isolation, is_blind)
        && let Some(reason) = among_read(mine, winner.appended)?
    {
        return Ok(Some(reason));
    }
    if counts(mine.source_isolation, is_blind) {
        return among_source(mine, winner.appended);
    }
    Ok(None)
}

/// Returns whether the files that a commit adds may conflict at all.
fn counts(isolation: IsolationLevel, is_blind: bool) -> bool {
    match isolation {
        IsolationLevel::Serializable => true,
        IsolationLevel::WriteSerializable => !is_blind,
        IsolationLevel::SnapshotIsolation => false,
    }
}

/// Returns a reason if one of `adds` belongs to the part of the table that the transaction has read.
fn among_read(mine: &Mine<'_>, adds: &RecordBatch) -> Result<Option<ConflictReason>> {
    if mine.reads.whole_table {
        return Ok(in_whole_table(adds));
    }
    if let Some(partitions) = &mine.reads.partitions {
        let read = filtered(adds, &partitions.contains(adds)?)?;
        if let Some(file) = path_of_data_change(&read) {
            return Ok(Some(ConflictReason::ConcurrentAppend { file, read: WhatWasRead::Partition }));
        }
    }
    matching_one(mine, &mine.reads.predicates, adds)
}

/// Returns a reason if one of `adds` may have rows that the query for the new rows would have read.
fn among_source(mine: &Mine<'_>, adds: &RecordBatch) -> Result<Option<ConflictReason>> {
    match &mine.reads.source.rows {
        RowsRead::Nothing => Ok(None),
        RowsRead::Matching(predicates) => matching_one(mine, predicates, adds),
        RowsRead::All => Ok(in_whole_table(adds)),
    }
}

fn in_whole_table(adds: &RecordBatch) -> Option<ConflictReason> {
    let file = path_of_data_change(adds)?;
    Some(ConflictReason::ConcurrentAppend { file, read: WhatWasRead::WholeTable })
}

/// Returns a reason if one of `adds` may hold a row for which one of `predicates` is true.
fn matching_one(
    mine: &Mine<'_>,
    predicates: &[Predicate],
    adds: &RecordBatch,
) -> Result<Option<ConflictReason>> {
    for predicate in predicates {
        if let Some(file) = matching(mine, predicate, adds)? {
            let read = WhatWasRead::Predicate(predicate.to_string());
            return Ok(Some(ConflictReason::ConcurrentAppend { file, read }));
        }
    }
    Ok(None)
}

/// Returns the path of a file of `adds` that may hold a row for which `predicate` is true.
fn matching(mine: &Mine<'_>, predicate: &Predicate, adds: &RecordBatch) -> Result<Option<String>> {
    let adds = with_columns(adds, FileColumn::ALL.map(FileColumn::field).to_vec())?;
    let kept = apply(&file_filters(mine.base, predicate)?, adds)?;
    Ok(path_of_data_change(&kept))
}
