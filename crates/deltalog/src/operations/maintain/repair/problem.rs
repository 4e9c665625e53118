//! The kinds of problems that a table's file can have.

use crate::error::Error;

/// A kind of problem of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FileProblem {
    /// The data file is missing.
    MissingFile,
    /// The size of the data file differs from the size in the log. Its rows may still be readable.
    WrongSize,
    /// The data file cannot be read as Parquet.
    DamagedFile,
    /// The data file uses a feature of Parquet that this version of the crate cannot read, such as encryption. It may
    /// be intact.
    UnsupportedFile,
    /// The number of rows in the data file differs from the number in its statistics.
    WrongRowCount,
    /// The file with the deletion vector is missing, so it is not known which rows are deleted.
    MissingVector,
    /// The deletion vector cannot be read, or does not match the data file or its descriptor in the log.
    DamagedVector,
    /// The statistics in the log exclude rows that the file contains, so a query may miss these rows.
    WrongStatistics,
    /// The newest version neither contains the file nor records its removal. Older versions may still need it.
    UnreferencedFile,
}

impl FileProblem {
    /// Returns the name of the problem: `missing file`, `wrong size`, `damaged file`, `unsupported file`, `wrong row
    /// count`, `missing vector`, `damaged vector`, `wrong statistics` or `unreferenced file`.
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingFile => "missing file",
            Self::WrongSize => "wrong size",
            Self::DamagedFile => "damaged file",
            Self::UnsupportedFile => "unsupported file",
            Self::WrongRowCount => "wrong row count",
            Self::MissingVector => "missing vector",
            Self::DamagedVector => "damaged vector",
            Self::WrongStatistics => "wrong statistics",
            Self::UnreferencedFile => "unreferenced file",
        }
    }
}

/// A problem of one file, with a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) problem: FileProblem,
    pub(super) detail: String,
}

impl Finding {
    pub(super) fn new(problem: FileProblem, detail: impl Into<String>) -> Self {
        Self { problem, detail: detail.into() }
    }

    /// Returns the finding for an error that occurred while reading.
    pub(super) fn of_error(problem: FileProblem, error: &Error) -> Self {
        Self::new(problem, error.to_string())
    }
}
