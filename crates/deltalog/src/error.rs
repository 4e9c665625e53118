//! The error type of the crate. Errors are classified by what a caller can do about them.
//!
//! The whole crate uses one opaque [`Error`] type. Its [`ErrorKind`] is what callers branch on; the rest is context:
//! the table, the version, the file, the line, a hint, and the source. As the error is passed up, each layer adds what
//! it knows (`in_table`, `at_version`, `at_path`, `at_line`). It never overwrites a detail that is already set, because
//! the layer closest to the fault knows most about it.
//!
//! - No message contains a credential: locations are shown without user information and query string.
//! - If a commit conflicts with a commit of another writer, the commit loop returns the conflict as a value, not as an
//!   error; see [`crate::commit`].

use std::fmt;

/// The result type of the crate's functions that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn std::error::Error + Send + Sync + 'static>;

/// What a caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no Delta table at the location. A failed request is never reported as this kind.
    NotATable,
    /// The table that was opened no longer exists: it was dropped and another one was created in its place.
    TableReplaced,
    /// There is already a table at the location where one should be created.
    TableAlreadyExists,
    /// The requested version or timestamp is outside the range that can be read.
    VersionNotFound,
    /// The log breaks the protocol: for example, a gap between commits, a truncated line, an action without a required
    /// field, or an unreadable checkpoint that the rest of the log cannot replace.
    CorruptLog,
    /// A data file breaks the protocol or its format, or does not fit the table's schema.
    CorruptData,
    /// A file that the log names does not exist.
    FileNotFound,
    /// The table needs a feature, type or option that is not implemented; the message names it.
    Unsupported,
    /// The caller's arguments are invalid.
    InvalidArgument,
    /// The data to be written does not fit the schema or the constraints of the table.
    SchemaMismatch,
    /// A commit of another writer conflicts with this one. Nothing was committed.
    CommitConflict,
    /// The store's answer was lost and the commit could not be read back: it may or may not be in the log. To find out,
    /// pass [`Error::transaction_id`] to [`find_commit`](crate::commit::find_commit).
    CommitStateUnknown,
    /// The store refused a request, or failed. The same call may succeed later.
    Unavailable,
    /// The store refused the caller's credentials or permissions.
    PermissionDenied,
    /// The call was interrupted, for example by Ctrl-C in Python. Its commit was not made.
    Interrupted,
}

/// An error with its context. See [`ErrorKind`] for what to branch on.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    table: Option<String>,
    version: Option<u64>,
    path: Option<String>,
    line: Option<usize>,
    transaction_id: Option<String>,
    hint: Option<String>,
    reason: Option<&'static str>,
    source: Option<Source>,
}

impl Error {
    /// Creates an error of `kind`. `message` says what happened, in one sentence without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            table: None,
            version: None,
            path: None,
            line: None,
            transaction_id: None,
            hint: None,
            reason: None,
            source: None,
        }))
    }

    /// [`ErrorKind::CorruptLog`] with `message`.
    pub fn corrupt_log(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::CorruptLog, message)
    }

    /// [`ErrorKind::CorruptData`] with `message`.
    pub fn corrupt_data(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::CorruptData, message)
    }

    /// [`ErrorKind::Unsupported`] with `message`.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::InvalidArgument`] with `message`.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// [`ErrorKind::SchemaMismatch`] with `message`.
    pub fn schema_mismatch(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::SchemaMismatch, message)
    }

    /// Prepends `what` and a colon to the message.
    #[must_use]
    pub(crate) fn within(mut self, what: impl fmt::Display) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Adds the table's location, unless the error already has one.
    #[must_use]
    pub fn in_table(mut self, table: impl Into<String>) -> Self {
        self.0.table.get_or_insert_with(|| table.into());
        self
    }

    /// Adds the table version, unless the error already has one.
    #[must_use]
    pub fn at_version(mut self, version: u64) -> Self {
        self.0.version.get_or_insert(version);
        self
    }

    /// Adds the path of the file at fault, unless the error already has one.
    #[must_use]
    pub fn at_path(mut self, path: impl Into<String>) -> Self {
        self.0.path.get_or_insert_with(|| path.into());
        self
    }

    /// Adds the number of the line at fault, counted from 1, unless the error already has one.
    #[must_use]
    pub fn at_line(mut self, line: usize) -> Self {
        self.0.line.get_or_insert(line);
        self
    }

    /// Adds the id of the transaction concerned, unless the error already has one.
    #[must_use]
    pub fn with_transaction_id(mut self, transaction_id: impl Into<String>) -> Self {
        self.0.transaction_id.get_or_insert_with(|| transaction_id.into());
        self
    }

    /// Adds a hint, which says what the user can do about the error, unless the error already has one.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Adds the machine-readable name of the reason, unless the error already has one. See [`Error::reason`].
    #[must_use]
    pub fn with_reason(mut self, reason: &'static str) -> Self {
        self.0.reason.get_or_insert(reason);
        self
    }

    /// Sets the error that caused this one, unless the error already has a source.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.0.source.get_or_insert_with(|| source.into());
        self
    }

    /// Returns a copy of the error for another caller that waits for the result of the same request. The copy has only
    /// the text of the source, because the source cannot be cloned.
    pub(crate) fn again(&self) -> Self {
        let inner = &self.0;
        Self(Box::new(Inner {
            kind: inner.kind,
            message: inner.message.clone(),
            table: inner.table.clone(),
            version: inner.version,
            path: inner.path.clone(),
            line: inner.line,
            transaction_id: inner.transaction_id.clone(),
            hint: inner.hint.clone(),
            reason: inner.reason,
            source: inner.source.as_ref().map(|source| source.to_string().into()),
        }))
    }

    /// Returns whether the commit may be in the log although it failed. If so, its files must be kept.
    pub(crate) fn is_commit_state_unknown(&self) -> bool {
        self.0.kind == ErrorKind::CommitStateUnknown
    }

    /// The kind of the error, for branching.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The table's location, if known.
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// The affected table version, if known.
    pub fn version(&self) -> Option<u64> {
        self.0.version
    }

    /// The file at fault, if known.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// The line at fault, counted from 1, if known.
    pub fn line(&self) -> Option<usize> {
        self.0.line
    }

    /// The id of the transaction concerned, which is also in its `commitInfo.txnId`. Every `CommitStateUnknown` error
    /// has one; pass it to [`find_commit`](crate::commit::find_commit) to look for the commit in the log.
    pub fn transaction_id(&self) -> Option<&str> {
        self.0.transaction_id.as_deref()
    }

    /// The hint: what the user can do about the error, if anything.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The machine-readable name of the reason, for kinds of errors that have several possible reasons.
    ///
    /// - For `CommitConflict`, and for `TableAlreadyExists` if another writer created the table first: `table_created`,
    ///   `table_replaced`, `log_cleaned_up`, `protocol_changed`, `metadata_changed`, `concurrent_append`,
    ///   `concurrent_delete_read`, `concurrent_delete_delete`, `app_transaction` or `domain_changed`.
    /// - For `CommitStateUnknown`, the reason why the commit could not be read back: `no_answer` if the store did not
    ///   answer, `access_denied` if it refused the request, `contradiction` if its answers contradict each other, and
    ///   `unreadable` if its answer is not a commit.
    pub fn reason(&self) -> Option<&'static str> {
        self.0.reason
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        f.write_str(&inner.message)?;
        let mut separator = " (";
        let mut context = |f: &mut fmt::Formatter<'_>, name: &str, value: &dyn fmt::Display| -> fmt::Result {
            write!(f, "{separator}{name} {value}")?;
            separator = ", ";
            Ok(())
        };
        if let Some(table) = &inner.table {
            context(f, "table", table)?;
        }
        if let Some(version) = &inner.version {
            context(f, "version", version)?;
        }
        if let Some(path) = &inner.path {
            context(f, "file", path)?;
        }
        if let Some(line) = &inner.line {
            context(f, "line", line)?;
        }
        if separator == ", " {
            f.write_str(")")?;
        }
        if let Some(source) = &inner.source {
            write!(f, ": {source}")?;
        }
        if let Some(hint) = &inner.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_table_version_file_line_source_and_hint() {
        let error = Error::corrupt_log("line is not JSON")
            .at_line(3)
            .at_path("_delta_log/00000000000000000007.json")
            .at_version(7)
            .in_table("file:///t")
            .with_source("unexpected end")
            .with_hint("restore the file");
        assert_eq!(
            error.to_string(),
            "line is not JSON (table file:///t, version 7, file _delta_log/00000000000000000007.json, line 3): \
             unexpected end; restore the file"
        );
        assert_eq!(error.kind(), ErrorKind::CorruptLog);
    }

    #[test]
    fn the_detail_that_is_set_first_is_kept() {
        assert_eq!(Error::corrupt_log("x").at_version(1).at_version(2).version(), Some(1));
    }
}
