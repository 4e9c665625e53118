//! The checksum file of a version, `N.crc`: totals and other state of the version, recorded by its writer.
//! (PROTOCOL, "Version Checksum File".)
//!
//! The file answers questions that would otherwise need the checkpoint, and can be compared with the replay.
//!
//! - A file that is not a JSON object, lacks a required count, or has an impossible one is ignored. The
//!   checkpoint is read instead.
//! - Files of older writers are accepted: with `histogramOpt`, or without metadata and protocol. A field that
//!   is not understood is treated as absent.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::take;
use crate::error::{Error, Result};
use crate::protocol::{Add, DomainMetadata, Metadata, Protocol, SetTransaction};

/// The content of a checksum file.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionChecksum {
    /// The id of the transaction that committed the version.
    pub txn_id: Option<String>,
    /// The total size of the live data files in bytes.
    pub table_size_bytes: u64,
    /// The number of live data files.
    pub num_files: u64,
    /// The number of transaction identifiers, which early writers recorded.
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
    /// The number of files by their number of deleted rows, in bins of powers of ten.
    pub deleted_record_counts: Option<Vec<i64>>,
}

/// The distribution of file sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSizeHistogram {
    /// The lower bound of each bin in bytes, ascending.
    pub sorted_bin_boundaries: Vec<i64>,
    /// The number of files in each bin.
    pub file_counts: Vec<i64>,
    /// The total size of the files in each bin in bytes.
    pub total_bytes: Vec<i64>,
}

impl VersionChecksum {
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
            // A version has exactly one of each.
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
        fn changed_bytes_cause_no_panic_and_truncated_text_is_an_error(
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
