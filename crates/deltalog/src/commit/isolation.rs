//! Isolation levels: which commits of other writers conflict with what a transaction has read.

use std::fmt;

use super::changes::Changes;
use crate::protocol::Metadata;

/// The degree to which a transaction is isolated from the commits made since its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IsolationLevel {
    /// The result is as if the transactions had run one after another, in the order of their versions.
    Serializable,
    /// The result is as if the transactions had run one after another, but a blind append may have run earlier or later
    /// than its version suggests.
    WriteSerializable,
    /// For transactions that only move rows. Rows added by other writers do not matter to them.
    SnapshotIsolation,
}

impl IsolationLevel {
    /// Returns the level of a transaction: the `requested` one if there is one; `SnapshotIsolation` if the transaction
    /// only moves rows; otherwise the level in the table's property `delta.isolationLevel`, or `WriteSerializable`.
    pub(super) fn of(requested: Option<Self>, metadata: &Metadata, changes: &Changes) -> Self {
        let by_default = || {
            if changes.only_moves_rows() {
                return Self::SnapshotIsolation;
            }
            let name = metadata.property("delta.isolationLevel").unwrap_or_default().trim();
            let levels = [Self::Serializable, Self::WriteSerializable, Self::SnapshotIsolation];
            let named = levels.into_iter().find(|level| name.eq_ignore_ascii_case(level.name()));
            named.unwrap_or(Self::WriteSerializable)
        };
        requested.unwrap_or_else(by_default)
    }

    /// Returns the name that is recorded in commits.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serializable => "Serializable",
            Self::WriteSerializable => "WriteSerializable",
            Self::SnapshotIsolation => "SnapshotIsolation",
        }
    }
}

impl fmt::Display for IsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
