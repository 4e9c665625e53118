//! The newest version that an attempt to commit takes into account, and what the next commit needs to know about it.
//!
//! The next commit's in-commit timestamp must be later than the timestamp of this version, and its row ids must be
//! higher than the high water mark of this version, so each attempt is prepared from it again. (Protocol: "In-Commit
//! Timestamps", "Row Tracking".)

use super::row_ids::RowIds;
use crate::error::Result;
use crate::log::replay::Commit;
use crate::log::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION, InCommitTimestamps};
use crate::protocol::log_name::LogFileName;
use crate::protocol::{Metadata, Protocol};
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// The newest version that a transaction has taken into account.
#[derive(Debug)]
pub(super) struct Head {
    /// The version; `None` if the table does not exist yet.
    version: Option<u64>,
    has_timestamps: bool,
    /// Whether the transaction enables in-commit timestamps in a table that has versions without them.
    begins_timestamps: bool,
    /// The in-commit timestamp of the version, in milliseconds since the epoch.
    timestamp_ms: Option<i64>,
    row_ids: Option<RowIds>,
}

impl Head {
    /// Returns the head of a transaction on `base`. `protocol` and `metadata` are the ones after the transaction.
    ///
    /// # Errors
    /// `CorruptLog` for invalid properties or an invalid high water mark; also errors from the store.
    pub(super) fn of(base: Option<&Snapshot>, protocol: &Protocol, metadata: &Metadata) -> Result<Self> {
        let has_timestamps = InCommitTimestamps::of(protocol, metadata)? != InCommitTimestamps::Never;
        let begins_timestamps = match base.filter(|_| has_timestamps) {
            Some(base) => {
                InCommitTimestamps::of(base.protocol(), base.metadata())? == InCommitTimestamps::Never
            }
            None => false,
        };
        let timestamp_ms = match base.filter(|_| has_timestamps) {
            Some(base) => base.in_commit_timestamp()?,
            None => None,
        };
        Ok(Self {
            version: base.map(Snapshot::version),
            has_timestamps,
            begins_timestamps,
            timestamp_ms,
            row_ids: RowIds::of(base, protocol)?,
        })
    }

    /// Advances to the version of `winner`.
    ///
    /// # Errors
    /// `CorruptLog` for an invalid high water mark.
    pub(super) fn advance(&mut self, winner: &Commit) -> Result<()> {
        self.version = Some(winner.version);
        let timestamp_ms = winner.commit_info.as_ref().and_then(|info| info.in_commit_timestamp);
        self.timestamp_ms = self.timestamp_ms.max(timestamp_ms);
        self.row_ids.as_mut().map_or(Ok(()), |row_ids| row_ids.advance(&winner.domains))
    }

    /// If the next commit is the first one with an in-commit timestamp, records when the file of this version was
    /// written, because the timestamp must be later. (Protocol: "Writer Requirements for In-Commit Timestamps", 5.)
    ///
    /// # Errors
    /// Returns errors from the store.
    pub(super) fn note_file_time(&mut self, storage: &Storage) -> Result<()> {
        if let Some(version) = self.version.filter(|_| self.begins_timestamps) {
            let file = storage.head(&LogFileName::Commit(version).path())?;
            self.timestamp_ms = self.timestamp_ms.max(file.map(|file| file.modified_ms));
        }
        Ok(())
    }

    /// Returns `metadata` for the next version. If the next version is the first one with an in-commit timestamp,
    /// records its version and `timestamp_ms` in the metadata. (Protocol: "Writer Requirements for In-Commit
    /// Timestamps", 4.)
    pub(super) fn metadata(&self, metadata: &Metadata, timestamp_ms: Option<i64>) -> Metadata {
        let mut metadata = metadata.clone();
        if let Some(timestamp_ms) = timestamp_ms.filter(|_| self.begins_timestamps) {
            let properties = &mut metadata.configuration;
            properties.insert(ENABLEMENT_VERSION.to_owned(), self.next_version().to_string());
            properties.insert(ENABLEMENT_TIMESTAMP.to_owned(), timestamp_ms.to_string());
        }
        metadata
    }

    /// Returns the version that comes next.
    pub(super) fn next_version(&self) -> u64 {
        self.version.map_or(0, |version| version + 1)
    }

    /// Returns the in-commit timestamp of the next version, if the table has them: `now_ms`, or a later time if the
    /// timestamp of the previous version is not earlier than that.
    pub(super) fn next_timestamp_ms(&self, now_ms: i64) -> Option<i64> {
        let earliest = self.timestamp_ms.map_or(i64::MIN, |last| last.saturating_add(1));
        self.has_timestamps.then(|| now_ms.max(earliest))
    }

    /// Returns the object that assigns row ids in the next version, if the table tracks rows.
    ///
    /// # Errors
    /// `CorruptLog` if the version does not fit in an `i64`.
    pub(super) fn next_row_ids(&self) -> Result<Option<RowIds>> {
        self.row_ids.as_ref().map(|row_ids| row_ids.at(self.next_version())).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(has_timestamps: bool, timestamp_ms: Option<i64>) -> Head {
        Head { version: Some(4), has_timestamps, begins_timestamps: false, timestamp_ms, row_ids: None }
    }

    /// Protocol: "In-Commit Timestamps", "strictly greater than the previous".
    #[test]
    fn timestamps_increase_even_if_clocks_differ() {
        assert_eq!(head(false, None).next_timestamp_ms(10), None);
        assert_eq!(head(true, None).next_timestamp_ms(10), Some(10));
        assert_eq!(head(true, Some(9)).next_timestamp_ms(10), Some(10));
        assert_eq!(head(true, Some(10)).next_timestamp_ms(10), Some(11));
        let mut late = head(true, Some(10));
        let text = r#"{"commitInfo":{"inCommitTimestamp":90}}"#;
        late.advance(&Commit::parse(text.as_bytes(), 5, 0).unwrap()).unwrap();
        assert_eq!((late.next_version(), late.next_timestamp_ms(10)), (6, Some(91)));
    }
}
