//! Writes the report of a task that is part of a statement of this crate, in the format that `task_report` reads. The
//! files that the task wrote are reported separately.

use std::collections::BTreeMap;

use roaring::RoaringTreemap;

use super::task_report::{REMOVED_ROWS, ROW_COUNTS, STAYING_ROWS, StatementCounts, VERSION};
use crate::error::{Error, Result};

/// Rows, as positions in their file, by the number of the file.
pub(crate) type RowsByFile = BTreeMap<u32, RoaringTreemap>;

/// Returns the report of one task: the rows that it removes, the rows that match and stay, and the numbers of rows
/// that it processed. If a row occurs twice in `removed`, or twice in `staying`, it was matched twice.
///
/// # Errors
/// Returns `Unsupported` for a task that removes more rows than a report can contain.
pub(crate) fn statement_report(
    removed: &[RowsByFile],
    staying: &[RowsByFile],
    counts: &StatementCounts,
) -> Result<Vec<u8>> {
    let mut report = vec![VERSION];
    for (kind, rows) in [(REMOVED_ROWS, removed), (STAYING_ROWS, staying)] {
        for (file, rows) in rows.iter().flatten() {
            for (upper, lower) in rows.bitmaps() {
                let mut record = [file.to_be_bytes(), upper.to_be_bytes()].concat();
                let mut lower = lower.clone();
                lower.optimize();
                lower.serialize_into(&mut record).map_err(too_large)?;
                add(&mut report, kind, &record)?;
            }
        }
    }
    let StatementCounts { updated, deleted, updated_by_source, deleted_by_source, inserted, copied } = counts;
    let counts = [updated, deleted, updated_by_source, deleted_by_source, inserted, copied];
    let counts: Vec<u8> = counts.into_iter().flat_map(|count| count.to_be_bytes()).collect();
    add(&mut report, ROW_COUNTS, &counts)?;
    let mut framed = length(report.len())?.to_vec();
    framed.extend(report);
    Ok(framed)
}

fn add(report: &mut Vec<u8>, kind: u8, record: &[u8]) -> Result<()> {
    report.push(kind);
    report.extend(length(record.len())?);
    report.extend(record);
    Ok(())
}

fn length(bytes: usize) -> Result<[u8; 4]> {
    i32::try_from(bytes).map(i32::to_be_bytes).map_err(too_large)
}

fn too_large(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::unsupported("a task of a statement has removed too many rows to report them").with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::removed_rows;
    use crate::write::task_report::read;

    #[test]
    fn written_reports_are_read_back() {
        let rows = |numbers: &[u64]| numbers.iter().copied().collect::<RoaringTreemap>();
        let removed = BTreeMap::from([(0, rows(&[1, 5, 1 << 40])), (7, rows(&[0]))]);
        let counts = StatementCounts {
            updated: 1,
            deleted: 2,
            updated_by_source: 3,
            deleted_by_source: 4,
            inserted: 5,
            copied: u64::from(u32::MAX) + 6,
        };
        let report = statement_report(std::slice::from_ref(&removed), &[], &counts).unwrap();
        assert_eq!(read(&report).unwrap().counts, counts);
        assert_eq!(removed_rows(&report).unwrap(), removed);
        let both = [report.clone(), report].concat();
        assert_eq!(read(&both).unwrap().counts.updated, 2);
        assert_eq!(removed_rows(&both).unwrap(), removed);
    }
}
