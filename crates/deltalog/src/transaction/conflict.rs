//! Whether a commit that won makes another impossible: a pure function of what was read and what won.

use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::protocol::Action;
use crate::replay::Commit;

/// What a transaction read, and so relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadSet {
    /// Nothing but the protocol and the metadata: a blind append.
    Nothing,
    /// Every file.
    WholeTable,
}

/// Why a commit is impossible, and which version made it so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The version that won.
    pub version: u64,
    /// Why.
    pub reason: ConflictReason,
}

/// Why a commit is impossible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConflictReason {
    /// Another writer has created the table.
    TableCreated,
    /// The table was dropped since it was read; another one may have been created in its place.
    TableReplaced,
    /// The log does not tell any more what was committed since the table was read.
    LogCleanedUp,
    /// The winner changed what writers must support.
    ProtocolChanged,
    /// The winner changed schema, partitioning or configuration.
    MetadataChanged,
    /// The winner added or removed files that this transaction relied on.
    FilesChanged,
    /// The winner recorded progress of the same application.
    AppTransaction(String),
}

impl ConflictReason {
    /// The name of the reason for programs, such as `files_changed`. See [`Error::reason`].
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
            ConflictReason::TableCreated => f.write_str("another writer has created the table meanwhile"),
            ConflictReason::TableReplaced => {
                f.write_str("the table was dropped, or dropped and created again, since it was read")
            }
            ConflictReason::LogCleanedUp => {
                write!(
                    f,
                    "version {} was cleaned up: what it changed since the table was read is not known",
                    self.version
                )
            }
            ConflictReason::ProtocolChanged => {
                write!(f, "version {} changed the table's protocol meanwhile", self.version)
            }
            ConflictReason::MetadataChanged => {
                write!(f, "version {} changed the table's metadata meanwhile", self.version)
            }
            ConflictReason::FilesChanged => {
                write!(f, "version {} added or removed files that this transaction had read", self.version)
            }
            ConflictReason::AppTransaction(app) => {
                write!(
                    f,
                    "version {} recorded progress of the same application '{app}' meanwhile",
                    self.version
                )
            }
        }
    }
}

/// Whether `winner` makes a transaction impossible that read `read` and wants `actions`.
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
    fn a_blind_append_goes_on_over_files() {
        assert_eq!(reason(ReadSet::Nothing, ADD), None);
        assert_eq!(reason(ReadSet::Nothing, r#"{"remove":{"path":"a","dataChange":true}}"#), None);
    }

    #[test]
    fn whoever_read_everything_does_not() {
        assert_eq!(reason(ReadSet::WholeTable, ADD), Some(ConflictReason::FilesChanged));
        assert_eq!(reason(ReadSet::WholeTable, r#"{"commitInfo":{}}"#), None);
    }

    #[test]
    fn nobody_goes_on_over_protocol_and_metadata() {
        let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
        let metadata = r#"{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":[],"configuration":{}}}"#;
        for read in [ReadSet::Nothing, ReadSet::WholeTable] {
            assert_eq!(reason(read, protocol), Some(ConflictReason::ProtocolChanged));
            assert_eq!(reason(read, metadata), Some(ConflictReason::MetadataChanged));
        }
    }

    #[test]
    fn an_application_does_not_overtake_itself() {
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
