//! Compares a version with its checksum file. (PROTOCOL, "Version Checksum File", "State Validation".)
//!
//! - The log is replayed without using anything from the checksum file.
//! - All fields of the checksum file are compared. A field that the file lacks is not a difference.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::log::replay::{DeletionVectorColumn, FileColumn, FileColumns};
use crate::log::{FileSizeHistogram, VersionChecksum};
use crate::protocol::{Add, Protocol};
use crate::snapshot::Snapshot;

/// The result of comparing a version with its checksum file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Verification {
    /// The version.
    pub version: u64,
    /// The path of the checksum file, relative to the table's root. `None` if the version has no readable checksum
    /// file, in which case nothing was compared.
    pub file: Option<String>,
    /// The names of the compared fields, as they are in the checksum file.
    pub checked: Vec<&'static str>,
    /// The fields that differ.
    pub differences: Vec<Difference>,
}

/// A field whose value in the checksum file differs from the log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The name of the field.
    pub field: &'static str,
    /// The value in the checksum file, as JSON.
    pub checksum: String,
    /// The value from the log, as JSON.
    pub replay: String,
}

impl Verification {
    /// Returns whether all fields are equal.
    pub fn is_ok(&self) -> bool {
        self.differences.is_empty()
    }

    fn compare_known<T: Serialize + PartialEq>(
        &mut self,
        field: &'static str,
        checksum: &Option<T>,
        replay: &Option<T>,
    ) {
        if let Some(replay) = replay {
            self.compare(field, checksum.as_ref(), replay);
        }
    }

    fn compare<T: Serialize + PartialEq>(&mut self, field: &'static str, checksum: Option<&T>, replay: &T) {
        let Some(checksum) = checksum else { return };
        self.checked.push(field);
        if checksum != replay {
            let json = |value: &T| serde_json::to_value(value).unwrap_or(Value::Null).to_string();
            self.differences.push(Difference { field, checksum: json(checksum), replay: json(replay) });
        }
    }
}

/// Compares `snapshot` with the checksum file of its version, field by field.
///
/// # Errors
/// Errors of replaying the log.
pub(crate) fn verify(snapshot: &Snapshot) -> Result<Verification> {
    let mut found = Verification {
        version: snapshot.version(),
        file: None,
        checked: Vec::new(),
        differences: Vec::new(),
    };
    let Some((file, checksum)) = snapshot.checksum_file()? else { return Ok(found) };
    found.file = Some(file);
    let (protocol, metadata) = snapshot.replay_table_actions()?;
    found.compare("protocol", checksum.protocol.clone().map(in_order).as_ref(), &in_order(protocol));
    found.compare("metadata", checksum.metadata.as_ref(), &metadata);
    compare_commit(snapshot, &checksum, &mut found)?;
    compare_transactions_and_domains(snapshot, &checksum, &mut found)?;
    let bins = checksum.file_size_histogram.as_ref().map(|sizes| sizes.sorted_bin_boundaries.clone());
    let files = snapshot.count_files(FileSizeHistogram::with_bins(bins.unwrap_or_default()))?;
    let mut replay = VersionChecksum::default();
    files.record_in(&mut replay);
    found.compare("numFiles", Some(&checksum.num_files), &replay.num_files);
    found.compare("tableSizeBytes", Some(&checksum.table_size_bytes), &replay.table_size_bytes);
    found.compare_known("numDeletedRecordsOpt", &checksum.num_deleted_records, &replay.num_deleted_records);
    found.compare_known(
        "numDeletionVectorsOpt",
        &checksum.num_deletion_vectors,
        &replay.num_deletion_vectors,
    );
    found.compare_known(
        "deletedRecordCountsHistogramOpt",
        &checksum.deleted_record_counts,
        &replay.deleted_record_counts,
    );
    found.compare_known("fileSizeHistogram", &checksum.file_size_histogram, &replay.file_size_histogram);
    if let Some(files) = &checksum.all_files {
        let listed = files.iter().map(listed).collect::<BTreeMap<_, _>>();
        found.compare("allFiles", Some(&listed), &live(snapshot)?);
    }
    Ok(found)
}

/// Returns the protocol with its features sorted by name, because each writer chooses their order.
fn in_order(mut protocol: Protocol) -> Protocol {
    for features in [&mut protocol.reader_features, &mut protocol.writer_features].into_iter().flatten() {
        features.sort_unstable();
        features.dedup();
    }
    protocol
}

/// Compares the fields that are about the commit itself.
fn compare_commit(snapshot: &Snapshot, checksum: &VersionChecksum, found: &mut Verification) -> Result<()> {
    if checksum.txn_id.is_none() && checksum.in_commit_timestamp.is_none() {
        return Ok(());
    }
    let info = snapshot.commit_info()?.unwrap_or_default();
    // Whether a commit has an id is up to its writer.
    if info.txn_id.is_some() {
        found.compare("txnId", Some(&checksum.txn_id), &info.txn_id);
    }
    if checksum.in_commit_timestamp.is_some() {
        found.compare("inCommitTimestampOpt", Some(&checksum.in_commit_timestamp), &info.in_commit_timestamp);
    }
    Ok(())
}

/// Compares the transaction identifiers of applications and the metadata domains.
fn compare_transactions_and_domains(
    snapshot: &Snapshot,
    checksum: &VersionChecksum,
    found: &mut Verification,
) -> Result<()> {
    let transactions: BTreeMap<_, _> =
        snapshot.app_transactions()?.into_iter().map(|txn| (txn.app_id, txn.version)).collect();
    if let Some(listed) = &checksum.set_transactions {
        let listed: BTreeMap<_, _> = listed.iter().map(|txn| (txn.app_id.clone(), txn.version)).collect();
        let mut kept = transactions.clone();
        // Writers leave out expired identifiers, and which ones have expired depends on the time of writing.
        if snapshot.metadata().property("delta.setTransactionRetentionDuration").is_some() {
            kept.retain(|app_id, _| listed.contains_key(app_id));
        }
        found.compare("setTransactions", Some(&listed), &kept);
    }
    // Writers that list the identifiers omit their number or write 0, so the number is only compared if there is no
    // list.
    if let (None, Some(count)) = (&checksum.set_transactions, checksum.num_transactions) {
        found.compare(
            "numTransactions",
            Some(&count),
            &i64::try_from(transactions.len()).unwrap_or(i64::MAX),
        );
    }
    if let Some(listed) = &checksum.domain_metadata {
        let listed: BTreeMap<_, _> = listed
            .iter()
            .filter(|domain| !domain.removed)
            .map(|domain| (domain.domain.clone(), domain.configuration.clone()))
            .collect();
        let domains = snapshot
            .domain_metadata()?
            .into_iter()
            .map(|domain| (domain.domain, domain.configuration))
            .collect();
        found.compare("domainMetadata", Some(&listed), &domains);
    }
    Ok(())
}

/// Returns the live files with their sizes, by path and deletion vector.
fn live(snapshot: &Snapshot) -> Result<BTreeMap<String, i64>> {
    let mut files = BTreeMap::new();
    let columns = FileColumns::of(&[FileColumn::Path, FileColumn::Size, FileColumn::DeletionVector]);
    for batch in snapshot.replay_files(columns)? {
        let batch = batch?;
        let lacks = || {
            Error::corrupt_log("an add action lacks a required field")
                .in_table(snapshot.storage().url())
                .at_version(snapshot.version())
        };
        let column = |column: FileColumn| batch.column_by_name(column.name()).ok_or_else(lacks);
        let paths = column(FileColumn::Path)?.as_string_opt::<i32>().ok_or_else(lacks)?;
        let sizes = column(FileColumn::Size)?.as_primitive_opt::<Int64Type>().ok_or_else(lacks)?;
        let vectors = DeletionVectorColumn::of_log(&batch)?;
        for row in 0..batch.num_rows() {
            let vector = vectors.get(row)?.map(|vector| vector.unique_id());
            files.insert(key(paths.value(row), vector.as_deref()), sizes.value(row));
        }
    }
    Ok(files)
}

fn key(path: &str, vector: Option<&str>) -> String {
    format!("{path}{}{}", if vector.is_some() { " with " } else { "" }, vector.unwrap_or_default())
}

fn listed(add: &Add) -> (String, i64) {
    let vector = add.deletion_vector.as_ref().map(|vector| vector.unique_id());
    (key(&add.path, vector.as_deref()), add.size)
}
