//! The checksum file of a version, `N.crc`: what the version holds, counted by its writer.
//!
//! Protocol: "Version Checksum File". It answers questions that would otherwise need the checkpoint, and it
//! can be compared with the replay.
//!
//! - A file that is no JSON object, lacks its counts, or counts what cannot be is passed over; that costs a
//!   read of the checkpoint.
//! - Fields of older writers (`histogramOpt`, without metadata and protocol) are read, too. A field that is
//!   not understood is as if it were absent.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::take;
use crate::error::{Error, Result};
use crate::protocol::{Add, DomainMetadata, Metadata, Protocol, SetTransaction};

/// What a version holds, in the words of its checksum file.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionChecksum {
    /// The transaction that made the version.
    pub txn_id: Option<String>,
    /// Bytes of the live data files.
    pub table_size_bytes: u64,
    /// Live data files.
    pub num_files: u64,
    /// Transaction identifiers, as early writers counted them.
    pub num_transactions: Option<i64>,
    /// The version's time, where in-commit timestamps are enabled, in milliseconds since the epoch.
    pub in_commit_timestamp: Option<i64>,
    /// Progress of applications.
    pub set_transactions: Option<Vec<SetTransaction>>,
    /// Metadata domains.
    pub domain_metadata: Option<Vec<DomainMetadata>>,
    /// The table's metadata.
    pub metadata: Option<Metadata>,
    /// The table's protocol.
    pub protocol: Option<Protocol>,
    /// How large the files are.
    pub file_size_histogram: Option<FileSizeHistogram>,
    /// Every live file.
    pub all_files: Option<Vec<Add>>,
    /// Rows that deletion vectors hide.
    pub num_deleted_records: Option<i64>,
    /// Files with a deletion vector.
    pub num_deletion_vectors: Option<i64>,
    /// How many rows deletion vectors hide of how many files, by powers of ten.
    pub deleted_record_counts: Option<Vec<i64>>,
}

/// How many files there are of what size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSizeHistogram {
    /// The least size of each bin, ascending.
    pub sorted_bin_boundaries: Vec<i64>,
    /// Files in each bin.
    pub file_counts: Vec<i64>,
    /// Their bytes.
    pub total_bytes: Vec<i64>,
}

impl VersionChecksum {
    /// Reads the text of a checksum file.
    ///
    /// # Errors
    /// `CorruptLog` if it is no JSON object, lacks its counts, or counts what cannot be.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut fields: Map<String, Value> = serde_json::from_slice(bytes)
            .map_err(|error| Error::corrupt_log("the checksum file is no JSON object").with_source(error))?;
        let lacks = |name: &str| Error::corrupt_log(format!("the checksum file lacks a sound '{name}'"));
        for name in ["numMetadata", "numProtocol"] {
            // A version has just one of each.
            take::<i64>(&mut fields, name).filter(|count| *count == 1).ok_or_else(|| lacks(name))?;
        }
        let num_transactions = take(&mut fields, "numTransactions");
        Ok(Self {
            txn_id: take(&mut fields, "txnId"),
            table_size_bytes: take(&mut fields, "tableSizeBytes").ok_or_else(|| lacks("tableSizeBytes"))?,
            num_files: take(&mut fields, "numFiles").ok_or_else(|| lacks("numFiles"))?,
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
        fn changed_bytes_are_an_error_or_a_checksum(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
            let text = r#"{"tableSizeBytes":1,"numFiles":2,"numMetadata":1,"numProtocol":1,"setTransactions":[{"appId":"a","version":1}],
                "allFiles":[{"path":"x","partitionValues":{},"size":1,"modificationTime":1,"dataChange":false}],"inCommitTimestampOpt":1}"#;
            let mut changed = text.as_bytes().to_vec();
            changed[at.index(text.len())] = byte;
            let _ = VersionChecksum::parse(&changed);
            prop_assert!(VersionChecksum::parse(&text.as_bytes()[..cut.index(text.len())]).is_err());
        }
    }

    #[test]
    fn what_is_no_checksum() {
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
