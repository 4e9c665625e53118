//! The binary format in which an engine's tasks report their results.
//!
//! ```text
//! reports = for each task whose work counts: i32 length, report
//! report  = u8 version of the form, then records until the end: u8 kind, i32 length, content
//!     1  a data file: text path, i64 size, i64 modification time in ms, i64 rows,
//!        i32 n, n partition values: u8 present, then (if 1) text in the form of the log
//!        the rest: the bytes of the footer, from its metadata to the end of the file
//!     2  rows that a statement removes from a file: i32 number of the file in the statement's plan,
//!        i32 upper half of the rows' positions, the rest: the lower halves as a Roaring bitmap in its portable form
//!     3  the numbers of rows that a statement has changed, deleted, changed and deleted because no row of the source
//!        matches, inserted, and copied: six i64
//!     4  what only the driver's JVM reads
//!     5  a change data file: as a data file
//!     6  rows that match a row of the source of a MERGE and stay: as those that a statement removes
//!     7  a bin of an OPTIMIZE that was written, as the data file of this report if it has rows: i32 number of the bin,
//!        then for each old file that has rows: i32 number of the file, i64 rows
//! text    = i32 length, UTF-8
//! ```
//!
//! - Numbers are big endian. Paths are decoded, and relative to the table's root.
//! - A task that is repeated reports again. The engine decides which report of a task counts, and passes on only that
//!   one.
//! - All input is checked: lengths are compared with the number of available bytes.

use std::str;

use crate::error::{Error, Result};

/// The version of the format. The Java and the Rust code come from the same wheel, so a different version is an
/// error.
pub(super) const VERSION: u8 = 1;

const DATA_FILE: u8 = 1;
pub(super) const REMOVED_ROWS: u8 = 2;
pub(super) const ROW_COUNTS: u8 = 3;
const FOR_DRIVER: u8 = 4;
const CHANGE_FILE: u8 = 5;
pub(super) const STAYING_ROWS: u8 = 6;
const BIN: u8 = 7;

/// The combined results of all tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TaskReports<'a> {
    pub(super) files: Vec<FileReport<'a>>,
    pub(super) changes: Vec<FileReport<'a>>,
    pub(super) removed: Vec<RemovedRows<'a>>,
    pub(super) staying: Vec<RemovedRows<'a>>,
    pub(super) counts: StatementCounts,
    pub(super) bins: Vec<ReportedBin>,
}

/// A bin of an OPTIMIZE, as reported by the task that wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportedBin {
    /// The number of the bin within its batch.
    pub bin: u32,
    /// The index of the new file among all files that were reported; `None` if no row was written.
    pub file: Option<usize>,
    /// The numbers of the old files whose rows were copied, and the number of rows from each, in the order of the
    /// rows.
    pub rows: Vec<(u32, u64)>,
}

/// Rows of a file that a task has removed or matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemovedRows<'a> {
    /// The number of the file in the statement's plan.
    pub(super) file: u32,
    /// The upper 32 bits of the rows' positions.
    pub(super) upper: u32,
    /// The lower 32 bits of the rows' positions, as a Roaring bitmap.
    pub(super) bitmap: &'a [u8],
}

/// The numbers of rows that the tasks of a statement have changed, deleted, inserted and copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatementCounts {
    /// Rows that were changed.
    pub updated: u64,
    /// Rows that were deleted.
    pub deleted: u64,
    /// The number of updated rows that no row of the source matches.
    pub updated_by_source: u64,
    /// The number of deleted rows that no row of the source matches.
    pub deleted_by_source: u64,
    /// Rows that were added.
    pub inserted: u64,
    /// Rows that were copied without changes.
    pub copied: u64,
}

/// A file that a task has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileReport<'a> {
    /// The decoded path, relative to the table's root.
    pub(super) path: &'a str,
    pub(super) size: i64,
    pub(super) modification_time_ms: i64,
    pub(super) rows: u64,
    /// The values of the partition columns, in their order, as the log spells them.
    pub(super) partition_values: Vec<Option<&'a str>>,
    /// The end of the file, from the beginning of the footer's metadata.
    pub(super) footer: &'a [u8],
}

/// Reads the reports of all tasks.
///
/// # Errors
/// Returns `CorruptData` for bytes that do not have the expected format.
pub(super) fn read(reports: &[u8]) -> Result<TaskReports<'_>> {
    let mut read = TaskReports::default();
    let mut reports = Bytes(reports);
    while !reports.0.is_empty() {
        let mut report = Bytes(reports.block()?);
        let version = report.u8()?;
        if version != VERSION {
            return Err(Error::corrupt_data(format!(
                "a task sent a report in version {version} of the format, but this version of deltalog reads version \
                 {VERSION}"
            ))
            .with_hint("install the same version of deltalog on the driver and on the executors"));
        }
        let before = read.files.len();
        let mut bin = None;
        while !report.0.is_empty() {
            let kind = report.u8()?;
            let mut record = Bytes(report.block()?);
            match kind {
                DATA_FILE => read.files.push(record.file()?),
                REMOVED_ROWS => read.removed.push(record.removed()?),
                ROW_COUNTS => record.add_counts(&mut read.counts)?,
                FOR_DRIVER => {}
                CHANGE_FILE => read.changes.push(record.file()?),
                STAYING_ROWS => read.staying.push(record.removed()?),
                BIN if bin.is_none() => bin = Some(record.bin()?),
                BIN => return Err(malformed("it has two bins")),
                _ => return Err(malformed(&format!("it has a record of the unknown kind {kind}"))),
            }
        }
        if let Some(mut bin) = bin {
            bin.file = match read.files.len() - before {
                0 => None,
                1 => Some(before),
                count => return Err(malformed(&format!("a bin was written as {count} files"))),
            };
            read.bins.push(bin);
        }
    }
    Ok(read)
}

fn malformed(what: &str) -> Error {
    Error::corrupt_data(format!("the report of a task cannot be read: {what}"))
}

/// A sequence of bytes that is read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| malformed("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| malformed("it ends too early"))
    }

    fn u8(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    fn length(&mut self) -> Result<usize> {
        let length = self.array().map(i32::from_be_bytes)?;
        usize::try_from(length).map_err(|_| malformed("a length is negative"))
    }

    /// Reads a length, followed by that many bytes.
    fn block(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn text(&mut self) -> Result<&'a str> {
        str::from_utf8(self.block()?).map_err(|_| malformed("a text is not UTF-8"))
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn count(&mut self) -> Result<u64> {
        u64::try_from(self.i64()?).map_err(|_| malformed("a number of rows is negative"))
    }

    fn removed(mut self) -> Result<RemovedRows<'a>> {
        Ok(RemovedRows { file: self.u32()?, upper: self.u32()?, bitmap: self.0 })
    }

    fn add_counts(&mut self, counts: &mut StatementCounts) -> Result<()> {
        let StatementCounts { updated, deleted, updated_by_source, deleted_by_source, inserted, copied } =
            counts;
        for count in [updated, deleted, updated_by_source, deleted_by_source, inserted, copied] {
            *count = count.saturating_add(self.count()?);
        }
        Ok(())
    }

    fn bin(mut self) -> Result<ReportedBin> {
        let mut bin = ReportedBin { bin: self.u32()?, ..ReportedBin::default() };
        while !self.0.is_empty() {
            bin.rows.push((self.u32()?, self.count()?));
        }
        Ok(bin)
    }

    fn file(mut self) -> Result<FileReport<'a>> {
        let path = self.text()?;
        let (size, modification_time_ms, rows) = (self.i64()?, self.i64()?, self.count()?);
        let count = self.length()?;
        let mut partition_values = Vec::new();
        for _ in 0..count {
            partition_values.push(if self.u8()? == 0 { None } else { Some(self.text()?) });
        }
        Ok(FileReport {
            path,
            size: if size < 0 { return Err(malformed("a size is negative")) } else { size },
            modification_time_ms,
            rows,
            partition_values,
            footer: self.0,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(bytes: &[u8]) -> Vec<u8> {
        [&i32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
    }

    /// Returns the report of one task, as the Java code writes it.
    pub(crate) fn written(files: &[FileReport<'_>]) -> Vec<u8> {
        written_with_changes(files, &[])
    }

    /// Returns the report of one task that has also written change data files, as the Java code writes it.
    pub(crate) fn written_with_changes(files: &[FileReport<'_>], changes: &[FileReport<'_>]) -> Vec<u8> {
        let mut report = vec![VERSION];
        let data = files.iter().map(|file| (DATA_FILE, file));
        for (kind, file) in data.chain(changes.iter().map(|file| (CHANGE_FILE, file))) {
            let mut record = block(file.path.as_bytes());
            let rows = i64::try_from(file.rows).unwrap();
            for number in [file.size, file.modification_time_ms, rows] {
                record.extend(number.to_be_bytes());
            }
            record.extend(i32::try_from(file.partition_values.len()).unwrap().to_be_bytes());
            for value in &file.partition_values {
                record.push(u8::from(value.is_some()));
                record.extend(value.map(|text| block(text.as_bytes())).unwrap_or_default());
            }
            record.extend(file.footer);
            report.push(kind);
            report.extend(block(&record));
        }
        block(&report)
    }

    #[test]
    fn files_of_all_tasks_are_read() {
        let file = |path, rows| FileReport {
            path,
            size: 10,
            modification_time_ms: -1,
            rows,
            partition_values: vec![None, Some(""), Some("é")],
            footer: b"PAR1",
        };
        let bytes =
            [written(&[file("a", 1), file("b/c", 2)]), written(&[]), written(&[file("d", 3)])].concat();
        assert_eq!(read(&bytes).unwrap().files, [file("a", 1), file("b/c", 2), file("d", 3)]);
        assert_eq!(read(&[]).unwrap(), TaskReports::default());
    }

    #[test]
    fn rows_of_a_statement_are_read_and_counts_are_summed() {
        let removed =
            |file: u32, upper: u32| [&file.to_be_bytes()[..], &upper.to_be_bytes(), b"map"].concat();
        let counts = |first: i64| (first..first + 6).flat_map(i64::to_be_bytes).collect::<Vec<u8>>();
        let report = |records: &[(u8, Vec<u8>)]| {
            let records = records.iter().flat_map(|(kind, content)| [vec![*kind], block(content)].concat());
            block(&std::iter::once(VERSION).chain(records).collect::<Vec<u8>>())
        };
        let first = report(&[(2, removed(7, 0)), (4, b"anything".to_vec()), (3, counts(1))]);
        let bytes = [first, report(&[(3, counts(10)), (2, removed(8, 1))])].concat();
        let found = read(&bytes).unwrap();
        let rows = |file, upper| RemovedRows { file, upper, bitmap: b"map" };
        assert_eq!(found.removed, [rows(7, 0), rows(8, 1)]);
        let expected = StatementCounts {
            updated: 11,
            deleted: 13,
            updated_by_source: 15,
            deleted_by_source: 17,
            inserted: 19,
            copied: 21,
        };
        assert_eq!(found.counts, expected);
        assert!(read(&report(&[(3, counts(-1))])).is_err());
    }

    #[test]
    fn another_version_of_the_format_is_refused() {
        let message = |report: &[u8]| read(&block(report)).unwrap_err().to_string();
        assert!(message(&[2]).contains("in version 2 of the format"), "{}", message(&[2]));
        let unknown = [&[VERSION, 9][..], &block(b"x")].concat();
        assert!(message(&unknown).contains("unknown kind 9"), "{}", message(&unknown));
        assert!(message(&[]).contains("ends too early"), "{}", message(&[]));
    }

    proptest! {
        #[test]
        fn damaged_reports_are_errors(at in 0..60_usize, byte in any::<u8>(), length in 0..60_usize) {
            let file = FileReport {
                path: "part",
                size: 10,
                modification_time_ms: 5,
                rows: 3,
                partition_values: vec![Some("x")],
                footer: b"",
            };
            let mut bytes = written(std::slice::from_ref(&file));
            let last = bytes.len() - 1;
            bytes[at.min(last)] = byte;
            // Reading must not panic, and must detect truncated bytes.
            let _ = read(&bytes);
            let cut = &written(&[file])[..length.min(last)];
            prop_assert!(cut.is_empty() || read(cut).is_err());
        }
    }
}
