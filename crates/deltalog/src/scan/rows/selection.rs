//! The selection of rows in a data file. (PROTOCOL, "Reader Requirements for Deletion Vectors".)
//!
//! ```text
//! rows of the file   0 ········· 1000 ········· 2000 ········· 3000
//! row groups         │     0      │      1       │      2       │
//! deleted                 ▪▪          ▪  ▪           ▪
//! groups 0 and 2     ├────  ──────┤              ├───  ────────┤    selection for the Parquet reader
//! ```
//!
//! - Rows are selected while they are decoded, by their position in the file. The selection does not depend on which
//!   row groups are read, or on how many reads they take.
//! - A row group without selected rows is not read.
//! - A selection takes at most about as much memory as the bytes of its deletion vector: it consists of runs if the
//!   deleted rows are few or contiguous, and otherwise of one bit per row.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::BooleanBufferBuilder;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::file::metadata::ParquetMetaData;

use crate::error::{Error, Result};
use crate::log::deletion_vector::{DeletionVector, DeletionVectors};
use crate::protocol::DeletionVectorDescriptor;

/// The memory in bits that a run of rows takes: 16 bytes for the run, and 16 bytes for the gap before the next run.
const BITS_OF_A_RUN: u64 = 256;

/// The rows of a data file to read.
///
/// This enum is exhaustive, because a reader that ignored a new variant would return wrong rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum FileRows {
    /// Every row.
    #[default]
    All,
    /// The rows that a deletion vector does not delete, which are the rows of a logical file.
    Live(DeletionVectorDescriptor),
    /// The rows that one deletion vector marks and another vector does not. These are the rows that a file lost or
    /// gained between two versions.
    Between {
        /// The vector that marks the rows.
        named_by: DeletionVectorDescriptor,
        /// The deletion vector whose rows are excluded.
        not_by: Option<DeletionVectorDescriptor>,
    },
    /// The rows that a statement has chosen, given by their positions.
    Chosen(Arc<DeletionVector>),
}

/// Selects the rows of a logical file with this deletion vector.
impl From<Option<DeletionVectorDescriptor>> for FileRows {
    fn from(vector: Option<DeletionVectorDescriptor>) -> Self {
        vector.map_or(Self::All, Self::Live)
    }
}

/// The rows of [`FileRows`], after the deletion vectors have been loaded.
#[derive(Debug)]
pub(super) enum SelectedRows {
    All,
    Without(DeletionVector),
    Only(Arc<DeletionVector>),
}

impl SelectedRows {
    /// Reads the deletion vectors of a file with `file_rows` rows.
    ///
    /// # Errors
    /// Returns the same errors as [`DeletionVectors::read`].
    pub(super) fn read(rows: &FileRows, vectors: &DeletionVectors, file_rows: u64) -> Result<Self> {
        let read = |descriptor| vectors.read(descriptor, Some(file_rows));
        Ok(match rows {
            FileRows::All => Self::All,
            FileRows::Live(descriptor) => Self::Without(read(descriptor)?),
            FileRows::Between { named_by, not_by: None } => Self::Only(Arc::new(read(named_by)?)),
            FileRows::Between { named_by, not_by: Some(not_by) } => {
                Self::Only(Arc::new(DeletionVector::from(read(named_by)?.bitmap() - read(not_by)?.bitmap())))
            }
            FileRows::Chosen(rows) => {
                rows.ensure_within(file_rows)?;
                Self::Only(Arc::clone(rows))
            }
        })
    }

    /// Returns whether at least one of the rows `group` is selected.
    pub(super) fn has_any(&self, group: &Range<u64>) -> bool {
        match self {
            Self::All => true,
            Self::Without(vector) => vector.count(group.clone()) < group.end - group.start,
            Self::Only(vector) => vector.count(group.clone()) > 0,
        }
    }

    /// Returns the selected rows of `group`.
    pub(super) fn ranges(&self, group: &Range<u64>) -> VecDeque<Range<u64>> {
        let vector = match self {
            Self::All => return [group.clone()].into(),
            Self::Only(vector) => {
                return vector.ranges(group.clone()).map(|range| *range.start()..range.end() + 1).collect();
            }
            Self::Without(vector) => vector,
        };
        let (mut wanted, mut next) = (VecDeque::new(), group.start);
        for range in vector.ranges(group.clone()) {
            wanted.push_back(next..*range.start());
            next = range.end() + 1;
        }
        wanted.push_back(next..group.end);
        wanted
    }

    /// Returns the selection of rows in `groups`, in order; `None` if all rows are selected.
    ///
    /// # Errors
    /// `CorruptData` for impossible row counts.
    pub(super) fn of_groups(&self, groups: &[Range<u64>]) -> Result<Option<RowSelection>> {
        let (vector, names_wanted) = match self {
            Self::All => return Ok(None),
            Self::Without(vector) => (vector, false),
            Self::Only(vector) => (vector.as_ref(), true),
        };
        let rows = groups.iter().map(|group| group.end - group.start).sum::<u64>();
        let most_runs = rows / BITS_OF_A_RUN;
        let runs = groups.iter().flat_map(|group| vector.ranges(group.clone()));
        // Counting stops after `most_runs`, because there may be millions of runs.
        let runs = runs.zip(0..=most_runs).count() as u64;
        if runs == 0 && !names_wanted {
            return Ok(None);
        }
        Ok(Some(if runs > most_runs {
            mask(vector, groups, count(rows)?, names_wanted)?
        } else {
            self::runs(vector, groups, names_wanted)?
        }))
    }
}

/// Returns the selection as one bit for each of the `rows` rows of `groups`.
fn mask(
    vector: &DeletionVector,
    groups: &[Range<u64>],
    rows: usize,
    names_wanted: bool,
) -> Result<RowSelection> {
    let mut mask = BooleanBufferBuilder::new(rows);
    mask.append_n(rows, !names_wanted);
    let mut first = 0;
    for group in groups {
        vector.rows_within(group.clone()).try_for_each(|row| {
            count(first + row - group.start).map(|row| mask.set_bit(row, names_wanted))
        })?;
        first += group.end - group.start;
    }
    Ok(RowSelection::from_boolean_buffer(mask.finish()))
}

/// Returns the selection as runs of rows that are selected or skipped.
fn runs(vector: &DeletionVector, groups: &[Range<u64>], names_wanted: bool) -> Result<RowSelection> {
    let run = |rows, is_wanted| -> Result<RowSelector> {
        Ok(if is_wanted { RowSelector::select(count(rows)?) } else { RowSelector::skip(count(rows)?) })
    };
    let mut runs = Vec::new();
    for group in groups {
        let mut next = group.start;
        for range in vector.ranges(group.clone()) {
            runs.push(run(range.start() - next, !names_wanted)?);
            runs.push(run(range.end() - range.start() + 1, names_wanted)?);
            next = range.end() + 1;
        }
        runs.push(run(group.end - next, !names_wanted)?);
    }
    Ok(runs.into())
}

fn count(rows: u64) -> Result<usize> {
    usize::try_from(rows).map_err(|_| {
        Error::corrupt_data(format!("the file's footer states {rows} rows, which do not fit in a usize"))
    })
}

/// Returns the row numbers of each row group of a file.
///
/// # Errors
/// `CorruptData` for impossible row counts.
pub(super) fn group_rows(metadata: &ParquetMetaData) -> Result<Vec<Range<u64>>> {
    let mut groups = Vec::with_capacity(metadata.num_row_groups());
    let mut start = 0u64;
    for group in metadata.row_groups() {
        let rows = u64::try_from(group.num_rows()).ok();
        let end = rows.and_then(|rows| start.checked_add(rows)).filter(|end| i64::try_from(*end).is_ok());
        let end = end.ok_or_else(|| {
            Error::corrupt_data(format!(
                "a row group states {} rows after {start} earlier rows, which is impossible",
                group.num_rows()
            ))
        })?;
        groups.push(start..end);
        start = end;
    }
    Ok(groups)
}
