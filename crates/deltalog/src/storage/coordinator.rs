//! The interface of services that decide which writer gets a version. It is for stores that cannot decide this
//! themselves, and for tables whose other writers rely on such a service.

use std::fmt;

use crate::error::Result;

/// Decides which writer gets a version of a table. The service keeps one entry per version, and never replaces it with
/// the entry of another writer.
///
/// Any service with a put-if-absent operation can be used. `Storage::with_coordinator` describes how to pass it. With
/// the feature `s3`, the option `log_store = "dynamodb"` uses DynamoDB in the same way as the JVM's
/// `S3DynamoDBLogStore`.
///
/// - Calls may come from several threads at the same time.
/// - When a call has returned, it has taken effect for all processes: every later [`get`](Self::get) and
///   [`newest`](Self::newest) sees it.
/// - An error of [`put_if_absent`](Self::put_if_absent) does not show whether the put has taken effect. The caller
///   calls [`get`](Self::get) to find out, and may put the same entry again.
pub trait CommitCoordinator: fmt::Debug + Send + Sync {
    /// Puts an entry, unless there already is one for its table and file. Returns whether it was put.
    ///
    /// # Errors
    /// If the service has failed. The entry may have been put nevertheless.
    fn put_if_absent(&self, entry: &CoordinatorEntry) -> Result<bool>;

    /// Returns the entry for a file of a table.
    ///
    /// # Errors
    /// If the service has failed.
    fn get(&self, table_path: &str, file_name: &str) -> Result<Option<CoordinatorEntry>>;

    /// Returns the table's entry with the greatest file name, or `None` if the table has no entries.
    ///
    /// # Errors
    /// If the service has failed.
    fn newest(&self, table_path: &str) -> Result<Option<CoordinatorEntry>>;

    /// Records that the file of an entry is in the log, unless the entry no longer exists or belongs to another writer.
    /// The entry may be deleted after a day or more, because by then, every writer that is still running has seen the
    /// file.
    ///
    /// # Errors
    /// If the service has failed. The entry may have been changed nevertheless.
    fn complete(&self, entry: &CoordinatorEntry) -> Result<()>;
}

/// The coordinator's entry for one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoordinatorEntry {
    /// The location of the table, such as `s3a://bucket/path`. It is decoded, and has no slash at its end unless the
    /// table is the whole bucket. For S3, the scheme is `s3a` however the location is spelled, unless an option sets
    /// another one.
    pub table_path: String,
    /// The name of the commit in `_delta_log`, such as `00000000000000000007.json`.
    pub file_name: String,
    /// The path of a file with the content of the commit, relative to `_delta_log`.
    pub temp_path: String,
    /// Whether the commit is known to be in the log.
    pub is_complete: bool,
}

impl CoordinatorEntry {
    /// Creates an entry that is not complete.
    pub fn new(
        table_path: impl Into<String>,
        file_name: impl Into<String>,
        temp_path: impl Into<String>,
    ) -> Self {
        Self {
            table_path: table_path.into(),
            file_name: file_name.into(),
            temp_path: temp_path.into(),
            is_complete: false,
        }
    }

    /// Returns a copy of the entry that is marked as complete, or as not complete.
    #[must_use]
    pub fn with_complete(self, is_complete: bool) -> Self {
        Self { is_complete, ..self }
    }
}
