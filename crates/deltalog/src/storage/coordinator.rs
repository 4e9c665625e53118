//! The interface of services that decide which writer gets a version, for stores that cannot decide it, or for other
//! writers that rely on such a service.

use std::fmt;

use crate::error::Result;

/// Decides which writer gets a version of a table: keeps one entry per version, and never replaces it with another
/// writer's.
///
/// Any service with a put-if-absent operation can be used. `Storage::with_coordinator` says how it is used; with the
/// feature `s3`, the option `log_store = "dynamodb"` uses DynamoDB as the JVM's `S3DynamoDBLogStore` does.
///
/// - Calls may come from several threads at the same time.
/// - A call that returns has taken effect for all processes: every later [`get`](Self::get) and
///   [`newest`](Self::newest) sees it.
/// - An error of [`put_if_absent`](Self::put_if_absent) does not say whether the put took effect. The caller finds out
///   with [`get`](Self::get), and may put the same entry again.
pub trait CommitCoordinator: fmt::Debug + Send + Sync {
    /// Puts an entry unless there is one for its table and file. Returns whether it was put.
    ///
    /// # Errors
    /// The service failed. The entry may have been put.
    fn put_if_absent(&self, entry: &CoordinatorEntry) -> Result<bool>;

    /// Returns the entry of a file of a table.
    ///
    /// # Errors
    /// The service failed.
    fn get(&self, table_path: &str, file_name: &str) -> Result<Option<CoordinatorEntry>>;

    /// Returns the entry of a table with the greatest file name.
    ///
    /// # Errors
    /// The service failed.
    fn newest(&self, table_path: &str) -> Result<Option<CoordinatorEntry>>;

    /// Records that the file of an entry is in the log, unless the entry no longer exists or belongs to another writer.
    /// After a day or more the entry may be deleted: by then every writer still running has seen the file.
    ///
    /// # Errors
    /// The service failed. The entry may have been changed.
    fn complete(&self, entry: &CoordinatorEntry) -> Result<()>;
}

/// The entry of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoordinatorEntry {
    /// The location of the table, such as `s3a://bucket/path`: decoded, without a slash at its end unless the table is
    /// the whole bucket. For S3 the scheme is `s3a`, however the location is spelled, unless an option says otherwise.
    pub table_path: String,
    /// The name of the commit in `_delta_log`, such as `00000000000000000007.json`.
    pub file_name: String,
    /// The path of a file with the bytes of the commit, relative to `_delta_log`.
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

    /// Returns the entry, marked as complete or not.
    #[must_use]
    pub fn with_complete(self, is_complete: bool) -> Self {
        Self { is_complete, ..self }
    }
}
