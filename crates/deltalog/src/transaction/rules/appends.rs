//! Rows that the other commit has added and the transaction should have read.
//!
//! | isolation level | added files that count |
//! | --- | --- |
//! | `Serializable` | all that change data |
//! | `WriteSerializable` | the same, except those of blind appends |
//! | `SnapshotIsolation` | none |
//!
//! A file that changes no data holds rows that were moved. If the transaction has read them, it has read the file they
//! were moved from, and [`super::reads`] finds the conflict.

use arrow::array::RecordBatch;

use super::{Mine, Winner};
use crate::error::Result;
use crate::predicate::Predicate;
use crate::replay::{FileColumn, apply, filtered, with_columns};
use crate::scan::file_filters;
use crate::transaction::changes::path_of_data_change;
use crate::transaction::conflict::{ConflictReason, WhatWasRead};
use crate::transaction::isolation::IsolationLevel;

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let is_blind = winner.commit.commit_info.as_ref().and_then(|info| info.is_blind_append) == Some(true)
        && winner.commit.removes.num_rows() == 0;
    let counts = match mine.isolation {
        IsolationLevel::Serializable => true,
        IsolationLevel::WriteSerializable => !is_blind,
        IsolationLevel::SnapshotIsolation => false,
    };
    if !counts || winner.appended.num_rows() == 0 {
        return Ok(None);
    }
    if mine.reads.whole_table {
        let file = path_of_data_change(winner.appended);
        return Ok(file.map(|file| ConflictReason::ConcurrentAppend { file, read: WhatWasRead::WholeTable }));
    }
    if let Some(partitions) = &mine.reads.partitions {
        let read = filtered(winner.appended, &partitions.contains(winner.appended)?)?;
        if let Some(file) = path_of_data_change(&read) {
            return Ok(Some(ConflictReason::ConcurrentAppend { file, read: WhatWasRead::Partition }));
        }
    }
    for predicate in &mine.reads.predicates {
        if let Some(file) = matching(mine, predicate, winner.appended)? {
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
