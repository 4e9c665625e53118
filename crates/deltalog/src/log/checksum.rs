//! The checksum file of a version, `N.crc`: totals and other state of the version, recorded by its writer.
//! (PROTOCOL, "Version Checksum File".)
//!
//! The file answers questions that would otherwise require reading the checkpoint, and the result of a replay can be
//! compared with it. The module `upkeep` writes these files.
//!
//! - A file that is not a JSON object, lacks a required count, or has an impossible count is ignored. The checkpoint is
//!   read instead.
//! - Files of older writers are accepted: those with `histogramOpt`, and those without metadata and protocol. A field
//!   that cannot be parsed is treated as absent.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{FileSizeHistogram, FileTotals, take};
use crate::error::{Error, Result};
use crate::protocol::{Add, DomainMetadata, Metadata, Protocol, SetTransaction};

/// The content of a checksum file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VersionChecksum {
    /// The id of the transaction that committed the version.
    pub txn_id: Option<String>,
    /// The total size of the live data files in bytes.
    pub table_size_bytes: u64,
    /// The number of live data files.
    pub num_files: u64,
    /// The number of transaction identifiers. Only early writers recorded it.
    pub num_transactions: Option<i64>,
    /// The in-commit timestamp of the version in milliseconds since the epoch.
    pub in_commit_timestamp: Option<i64>,
    /// The transaction identifiers of applications.
    pub set_transactions: Option<Vec<SetTransaction>>,
    /// The metadata domains.
    pub domain_metadata: Option<Vec<DomainMetadata>>,
    /// The table's metadata.
    pub metadata: Option<Metadata>,
    /// The table's protocol.
    pub protocol: Option<Protocol>,
    /// The distribution of file sizes.
    pub file_size_histogram: Option<FileSizeHistogram>,
    /// All live files.
    pub all_files: Option<Vec<Add>>,
    /// The number of rows that deletion vectors mark as deleted.
    pub num_deleted_records: Option<i64>,
    /// The number of files with a deletion vector.
    pub num_deletion_vectors: Option<i64>,
    /// The number of files by their number of deleted rows, in bins that grow by powers of ten.
    pub deleted_record_counts: Option<Vec<i64>>,
}

/// The form in which a checksum file is serialized.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    txn_id: Option<&'a str>,
    table_size_bytes: u64,
    num_files: u64,
    num_metadata: u64,
    num_protocol: u64,
    #[serde(rename = "inCommitTimestampOpt", skip_serializing_if = "Option::is_none")]
    in_commit_timestamp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_transactions: Option<&'a [SetTransaction]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain_metadata: Option<&'a [DomainMetadata]>,
    metadata: &'a Metadata,
    protocol: &'a Protocol,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_size_histogram: Option<&'a FileSizeHistogram>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all_files: Option<&'a [Add]>,
    #[serde(rename = "numDeletedRecordsOpt", skip_serializing_if = "Option::is_none")]
    num_deleted_records: Option<i64>,
    #[serde(rename = "numDeletionVectorsOpt", skip_serializing_if = "Option::is_none")]
    num_deletion_vectors: Option<i64>,
    #[serde(rename = "deletedRecordCountsHistogramOpt", skip_serializing_if = "Option::is_none")]
    deleted_record_counts: Option<DeletedRecordCounts<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeletedRecordCounts<'a> {
    deleted_record_counts: &'a [i64],
}

impl VersionChecksum {
    /// Returns the checksum of the empty state before the first version.
    pub(crate) fn of_nothing() -> Self {
        let mut checksum = Self {
            set_transactions: Some(Vec::new()),
            domain_metadata: Some(Vec::new()),
            all_files: Some(Vec::new()),
            ..Self::default()
        };
        FileTotals::empty(FileSizeHistogram::empty()).record_in(&mut checksum);
        checksum
    }

    /// Returns the text of the checksum file. Unknown fields are left out.
    ///
    /// # Errors
    /// `InvalidArgument` if the metadata or the protocol is unknown; both are required.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>> {
        let missing = |name: &str| Error::invalid_argument(format!("a checksum file needs '{name}'"));
        let written = Written {
            txn_id: self.txn_id.as_deref(),
            table_size_bytes: self.table_size_bytes,
            num_files: self.num_files,
            num_metadata: 1,
            num_protocol: 1,
            in_commit_timestamp: self.in_commit_timestamp,
            set_transactions: self.set_transactions.as_deref(),
            domain_metadata: self.domain_metadata.as_deref(),
            metadata: self.metadata.as_ref().ok_or_else(|| missing("metadata"))?,
            protocol: self.protocol.as_ref().ok_or_else(|| missing("protocol"))?,
            file_size_histogram: self.file_size_histogram.as_ref(),
            all_files: self.all_files.as_deref(),
            num_deleted_records: self.num_deleted_records,
            num_deletion_vectors: self.num_deletion_vectors,
            deleted_record_counts: self
                .deleted_record_counts
                .as_deref()
                .map(|deleted_record_counts| DeletedRecordCounts { deleted_record_counts }),
        };
        let mut text = serde_json::to_vec(&written).map_err(|error| {
            Error::invalid_argument("the checksum cannot be written as JSON").with_source(error)
        })?;
        text.push(b'\n');
        Ok(text)
    }

    /// Parses the text of a checksum file.
    ///
    /// # Errors
    /// `CorruptLog` if it is not a JSON object, lacks a required count, or has an impossible one.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut fields: Map<String, Value> = serde_json::from_slice(bytes).map_err(|error| {
            Error::corrupt_log("the checksum file is not a JSON object").with_source(error)
        })?;
        let invalid =
            |name: &str| Error::corrupt_log(format!("'{name}' is missing or invalid in the checksum file"));
        for name in ["numMetadata", "numProtocol"] {
            // Both counts must be 1, because the state of a version has exactly one `metaData` and one `protocol`
            // action.
            take::<i64>(&mut fields, name).filter(|count| *count == 1).ok_or_else(|| invalid(name))?;
        }
        let num_transactions = take(&mut fields, "numTransactions");
        Ok(Self {
            txn_id: take(&mut fields, "txnId"),
            table_size_bytes: take(&mut fields, "tableSizeBytes").ok_or_else(|| invalid("tableSizeBytes"))?,
            num_files: take(&mut fields, "numFiles").ok_or_else(|| invalid("numFiles"))?,
            num_transactions,
            in_commit_timestamp: take(&mut fields, "inCommitTimestampOpt"),
            set_transactions: take(&mut fields, "setTransactions"),
            domain_metadata: take(&mut fields, "domainMetadata"),
            metadata: take(&mut fields, "metadata"),
            protocol: take(&mut fields, "protocol"),
            file_size_histogram: take(&mut fields, "fileSizeHistogram")
                .or_else(|| take(&mut fields, "histogramOpt")),
            all_files: take(&mut fields, "allFiles"),
            num_deleted_records: take(&mut fields, "numDeletedRecordsOpt"),
            num_deletion_vectors: take(&mut fields, "numDeletionVectorsOpt"),
            deleted_record_counts: take::<Map<String, Value>>(&mut fields, "deletedRecordCountsHistogramOpt")
                .and_then(|mut histogram| take(&mut histogram, "deletedRecordCounts")),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn changed_bytes_do_not_panic_and_truncated_text_is_an_error(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let text = r#"{"tableSizeBytes":1,"numFiles":2,"numMetadata":1,"numProtocol":1,
                "setTransactions":[{"appId":"a","version":1}],
                "allFiles":[{"path":"x","partitionValues":{},"size":1,"modificationTime":1,"dataChange":false}],
                "inCommitTimestampOpt":1}"#;
            let mut changed = text.as_bytes().to_vec();
            changed[at.index(text.len())] = byte;
            let _ = VersionChecksum::parse(&changed);
            prop_assert!(VersionChecksum::parse(&text.as_bytes()[..cut.index(text.len())]).is_err());
        }
    }

    #[test]
    fn a_malformed_checksum_file_is_refused() {
        let whole = r#"{"tableSizeBytes":1,"numFiles":2,"numMetadata":1,"numProtocol":1}"#;
        assert_eq!(VersionChecksum::parse(whole.as_bytes()).unwrap().num_files, 2);
        let broken = [
            "",
            "malformed",
            "[]",
            &whole[..whole.len() - 1],
            &whole.replace("\"numFiles\":2", "\"numFiles\":-2"),
            &whole.replace("\"numMetadata\":1", "\"numMetadata\":2"),
            &whole.replace("numProtocol", "numProtocols"),
            &whole.replace("tableSizeBytes", "size"),
        ];
        for text in broken {
            assert!(VersionChecksum::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
