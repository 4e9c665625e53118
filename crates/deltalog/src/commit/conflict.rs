//! Conflicts as values: the winning commit, the violated rule, and a hint.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// A conflict that prevents a transaction from being committed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The version that the transaction conflicts with.
    pub version: u64,
    /// The reason of the conflict.
    pub reason: ConflictReason,
}

/// The reason of a conflict: the violated rule, and what violated it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConflictReason {
    /// Another writer created the table.
    TableCreated,
    /// The table was dropped after it was read. Another table may have been created in its place.
    TableReplaced,
    /// Commits made after the table was read were cleaned up, so their changes are unknown.
    LogCleanedUp,
    /// The other commit changed the protocol.
    ProtocolChanged,
    /// The other commit changed the schema, the partitioning or the configuration in a way that affects this
    /// transaction.
    MetadataChanged,
    /// The other commit added rows that this transaction should have read.
    ConcurrentAppend {
        /// The path of an added file.
        file: String,
        /// The part of what this transaction has read that the added file may affect.
        read: WhatWasRead,
    },
    /// The other commit removed a file that this transaction has read.
    ConcurrentDeleteRead {
        /// The path of the file.
        file: String,
    },
    /// The other commit removed a file that this transaction removes as well.
    ConcurrentDeleteDelete {
        /// The path of the file.
        file: String,
    },
    /// The other commit deleted or changed a row that this transaction deletes or changes as well, or it restored rows.
    ConcurrentRowDelete {
        /// The path of the file that has the row.
        file: String,
        /// The position of the row in the data file, counted from zero.
        row: u64,
    },
    /// The other commit belongs to a VACUUM, which may have deleted files that this transaction adds again.
    FilesVacuumed,
    /// The other commit recorded progress of the same application.
    AppTransaction(String),
    /// The other commit changed the same metadata domain, or one that this transaction depends on.
    DomainChanged(String),
}

/// What a transaction has read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhatWasRead {
    /// The whole table.
    WholeTable,
    /// The partition of the file.
    Partition,
    /// The rows for which this predicate is true.
    Predicate(String),
    /// The fact that no file has a certain property, such as the use of a table feature.
    NoFilesThat(String),
}

impl ConflictReason {
    /// Returns the machine-readable name of the reason, such as `concurrent_append`. See [`Error::reason`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::TableCreated => "table_created",
            Self::TableReplaced => "table_replaced",
            Self::LogCleanedUp => "log_cleaned_up",
            Self::ProtocolChanged => "protocol_changed",
            Self::MetadataChanged => "metadata_changed",
            Self::ConcurrentAppend { .. } => "concurrent_append",
            Self::ConcurrentDeleteRead { .. } => "concurrent_delete_read",
            Self::ConcurrentDeleteDelete { .. } | Self::ConcurrentRowDelete { .. } => {
                "concurrent_delete_delete"
            }
            Self::FilesVacuumed => "files_vacuumed",
            Self::AppTransaction(_) => "app_transaction",
            Self::DomainChanged(_) => "domain_changed",
        }
    }

    /// Returns the path of the file concerned, as the log spells it.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::ConcurrentAppend { file, .. }
            | Self::ConcurrentDeleteRead { file }
            | Self::ConcurrentDeleteDelete { file }
            | Self::ConcurrentRowDelete { file, .. } => Some(file),
            _ => None,
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::TableCreated => "nothing was committed; append to the table, or choose another location",
            Self::AppTransaction(_) => {
                "nothing was committed; read which version the application has recorded, and skip this write if \
                 that is this write's version or a later one"
            }
            _ => "nothing was committed; read the table again and repeat the write",
        }
    }
}

impl Conflict {
    /// Creates the conflict with `version` for this reason.
    pub fn new(version: u64, reason: ConflictReason) -> Self {
        Self { version, reason }
    }

    /// Returns whether the conflict is about files that the transaction removes, not about the table.
    pub(crate) fn is_about_files(&self) -> bool {
        matches!(
            self.reason,
            ConflictReason::ConcurrentDeleteDelete { .. } | ConflictReason::ConcurrentDeleteRead { .. }
        )
    }

    /// Returns the conflict as an error of `kind`.
    pub fn into_error(self, kind: ErrorKind, table: String) -> Error {
        let error = Error::new(kind, self.to_string())
            .in_table(table)
            .at_version(self.version)
            .with_reason(self.reason.name())
            .with_hint(self.reason.hint());
        match self.reason.file() {
            Some(file) => error.at_path(file),
            None => error,
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let winner = format!("version {}, committed in the meantime,", self.version);
        match &self.reason {
            ConflictReason::TableCreated => {
                f.write_str("another writer has created the table in the meantime")
            }
            ConflictReason::TableReplaced => {
                f.write_str("the table was dropped, or dropped and created again, since it was read")
            }
            ConflictReason::LogCleanedUp => write!(
                f,
                "version {}, committed after the table was read, was cleaned up: its changes are unknown",
                self.version
            ),
            ConflictReason::ProtocolChanged => write!(f, "{winner} changed the table's protocol"),
            ConflictReason::MetadataChanged => write!(f, "{winner} changed the table's metadata"),
            ConflictReason::ConcurrentAppend { read, .. } => match read {
                WhatWasRead::WholeTable => {
                    write!(f, "{winner} added files, and this transaction had read the whole table")
                }
                WhatWasRead::Partition => {
                    write!(f, "{winner} added files to a partition that this transaction replaces")
                }
                WhatWasRead::Predicate(predicate) => {
                    write!(f, "{winner} added files that may have rows for which {predicate} is true")
                }
                WhatWasRead::NoFilesThat(what) => write!(f, "{winner} added files that {what}"),
            },
            ConflictReason::ConcurrentDeleteRead { .. } => {
                write!(f, "{winner} removed files that this transaction had read")
            }
            ConflictReason::ConcurrentDeleteDelete { .. } => {
                write!(f, "{winner} removed files that this transaction removes as well")
            }
            ConflictReason::ConcurrentRowDelete { row, .. } => {
                write!(
                    f,
                    "{winner} deleted, changed or restored row {row} of a file, which this transaction depends on"
                )
            }
            ConflictReason::FilesVacuumed => {
                write!(
                    f,
                    "{winner} belongs to a VACUUM, which may delete files that this transaction adds again"
                )
            }
            ConflictReason::AppTransaction(app) => {
                write!(f, "{winner} recorded progress of the same application '{app}'")
            }
            ConflictReason::DomainChanged(domain) => {
                write!(
                    f,
                    "{winner} changed the metadata domain '{domain}', which this transaction changes or depends on"
                )
            }
        }
    }
}
