//! Conflict detection: a pure function of what a transaction has read and of the commit that won.

use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::protocol::Action;
use crate::replay::Commit;

/// The part of the table that a transaction has read and depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadSet {
    /// Only the protocol and the metadata, as in a blind append.
    Nothing,
    /// All files.
    WholeTable,
}

/// A conflict that prevents a transaction from being committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The version that the transaction conflicts with.
    pub version: u64,
    /// The reason of the conflict.
    pub reason: ConflictReason,
}

/// The reason of a conflict.
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
    /// The other commit changed the schema, the partitioning or the configuration.
    MetadataChanged,
    /// The other commit added or removed files that this transaction depends on.
    FilesChanged,
    /// The other commit recorded progress of the same application.
    AppTransaction(String),
}

impl ConflictReason {
    /// Returns the machine-readable name of the reason, such as `files_changed`. See [`Error::reason`].
    ///
    /// [`Error::reason`]: crate::Error::reason
    pub fn name(&self) -> &'static str {
        match self {
            Self::TableCreated => "table_created",
            Self::TableReplaced => "table_replaced",
            Self::LogCleanedUp => "log_cleaned_up",
            Self::ProtocolChanged => "protocol_changed",
            Self::MetadataChanged => "metadata_changed",
            Self::FilesChanged => "files_changed",
            Self::AppTransaction(_) => "app_transaction",
        }
    }
}

impl Conflict {
    /// Returns the conflict as an error of `kind`.
    pub fn into_error(self, kind: ErrorKind, table: String) -> Error {
        Error::new(kind, self.to_string())
            .in_table(table)
            .at_version(self.version)
            .with_reason(self.reason.name())
            .with_hint("nothing was committed; read the table again and repeat the write")
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            ConflictReason::TableCreated => {
                f.write_str("another writer has created the table in the meantime")
            }
            ConflictReason::TableReplaced => {
                f.write_str("the table was dropped, or dropped and created again, since it was read")
            }
            ConflictReason::LogCleanedUp => {
                write!(
                    f,
                    "version {}, committed after the table was read, was cleaned up: its changes are unknown",
                    self.version
                )
            }
            ConflictReason::ProtocolChanged => {
                write!(f, "version {}, committed in the meantime, changed the table's protocol", self.version)
            }
            ConflictReason::MetadataChanged => {
                write!(f, "version {}, committed in the meantime, changed the table's metadata", self.version)
            }
            ConflictReason::FilesChanged => {
                write!(f, "version {} added or removed files that this transaction had read", self.version)
            }
            ConflictReason::AppTransaction(app) => {
                write!(
                    f,
                    "version {}, committed in the meantime, recorded progress of the same application '{app}'",
                    self.version
                )
            }
        }
    }
}

/// Returns the conflict of `winner` with a transaction that has read `read` and would commit `actions`, if
/// there is one.
pub(super) fn conflict(
    read: ReadSet,
    actions: &[Action],
    creates: bool,
    winner: &Commit,
) -> Option<Conflict> {
    let reason = if creates {
        Some(ConflictReason::TableCreated)
    } else if winner.protocol.is_some() {
        Some(ConflictReason::ProtocolChanged)
    } else if winner.metadata.is_some() {
        Some(ConflictReason::MetadataChanged)
    } else if let Some(app) = same_application(actions, winner) {
        Some(ConflictReason::AppTransaction(app))
    } else if read == ReadSet::WholeTable && winner.adds.num_rows() + winner.removes.num_rows() > 0 {
        Some(ConflictReason::FilesChanged)
    } else {
        None
    };
    reason.map(|reason| Conflict { version: winner.version, reason })
}

fn same_application(actions: &[Action], winner: &Commit) -> Option<String> {
    let mut apps = actions
        .iter()
        .filter_map(|action| if let Action::Txn(txn) = action { Some(&txn.app_id) } else { None });
    apps.find(|app| winner.transactions.iter().any(|other| other.app_id == **app)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::SetTransaction;

    const ADD: &str =
        r#"{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}"#;

    fn winner(line: &str) -> Commit {
        Commit::parse(line.as_bytes(), 5, 0).unwrap()
    }

    fn reason(read: ReadSet, line: &str) -> Option<ConflictReason> {
        conflict(read, &[], false, &winner(line)).map(|conflict| conflict.reason)
    }

    #[test]
    fn blind_appends_do_not_conflict_with_file_changes() {
        assert_eq!(reason(ReadSet::Nothing, ADD), None);
        assert_eq!(reason(ReadSet::Nothing, r#"{"remove":{"path":"a","dataChange":true}}"#), None);
    }

    #[test]
    fn reads_of_the_whole_table_conflict_with_file_changes() {
        assert_eq!(reason(ReadSet::WholeTable, ADD), Some(ConflictReason::FilesChanged));
        assert_eq!(reason(ReadSet::WholeTable, r#"{"commitInfo":{}}"#), None);
    }

    #[test]
    fn protocol_and_metadata_changes_always_conflict() {
        let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
        let metadata = [
            r#"{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"#,
            r#""schemaString":"{}","partitionColumns":[],"configuration":{}}}"#,
        ]
        .concat();
        for read in [ReadSet::Nothing, ReadSet::WholeTable] {
            assert_eq!(reason(read, protocol), Some(ConflictReason::ProtocolChanged));
            assert_eq!(reason(read, &metadata), Some(ConflictReason::MetadataChanged));
        }
    }

    #[test]
    fn progress_of_the_same_application_conflicts() {
        let mine = [Action::Txn(SetTransaction { app_id: "a".to_owned(), version: 2, last_updated: None })];
        let same = winner(r#"{"txn":{"appId":"a","version":2}}"#);
        let other = winner(r#"{"txn":{"appId":"b","version":2}}"#);
        assert_eq!(
            conflict(ReadSet::Nothing, &mine, false, &same).unwrap().reason,
            ConflictReason::AppTransaction("a".to_owned())
        );
        assert_eq!(conflict(ReadSet::Nothing, &mine, false, &other), None);
    }
}
