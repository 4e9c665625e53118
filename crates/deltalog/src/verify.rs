//! Comparing a version with its checksum file. (PROTOCOL, "Version Checksum File", "State Validation".)
//!
//! - The log is replayed without using anything from the checksum file.
//! - All fields of the checksum file are compared. Missing fields are not differences.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int32Type, Int64Type};
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::log::{FileSizeHistogram, VersionChecksum};
use crate::protocol::{Add, write_unique_id};
use crate::replay::{FileColumn, FileColumns};
use crate::snapshot::Snapshot;

/// The result of comparing a version with its checksum file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Verification {
    /// The version.
    pub version: u64,
    /// The path of the checksum file relative to the table's root. `None` if the version does not have a
    /// readable checksum file, so nothing was compared.
    pub file: Option<String>,
    /// The names of the compared fields, as in the checksum file.
    pub checked: Vec<&'static str>,
    /// The fields that differ.
    pub differences: Vec<Difference>,
}

/// A field of the checksum file that differs from the log.
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
    /// Returns whether no field differs.
    pub fn is_ok(&self) -> bool {
        self.differences.is_empty()
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
    found.compare("protocol", checksum.protocol.as_ref(), &protocol);
    found.compare("metadata", checksum.metadata.as_ref(), &metadata);
    compare_commit(snapshot, &checksum, &mut found)?;
    compare_transactions_and_domains(snapshot, &checksum, &mut found)?;
    let files = Files::of(snapshot, &checksum)?;
    found.compare("numFiles", Some(&checksum.num_files), &files.count);
    found.compare("tableSizeBytes", Some(&checksum.table_size_bytes), &files.bytes);
    found.compare("numDeletedRecordsOpt", checksum.num_deleted_records.as_ref(), &files.deleted_records);
    found.compare("numDeletionVectorsOpt", checksum.num_deletion_vectors.as_ref(), &files.deletion_vectors);
    found.compare(
        "deletedRecordCountsHistogramOpt",
        checksum.deleted_record_counts.as_ref(),
        &files.deleted_record_counts,
    );
    found.compare("fileSizeHistogram", checksum.file_size_histogram.as_ref(), &files.sizes);
    let all_files =
        checksum.all_files.as_ref().map(|files| files.iter().map(listed).collect::<BTreeMap<_, _>>());
    found.compare("allFiles", all_files.as_ref(), &files.listed);
    Ok(found)
}

/// Compares the fields that come from the commit itself.
fn compare_commit(snapshot: &Snapshot, checksum: &VersionChecksum, found: &mut Verification) -> Result<()> {
    if checksum.txn_id.is_none() && checksum.in_commit_timestamp.is_none() {
        return Ok(());
    }
    let info = snapshot.commit_info()?.unwrap_or_default();
    // The id of a commit is optional.
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
        // The writer leaves out expired identifiers, which depend on the time of writing.
        if snapshot.metadata().property("delta.setTransactionRetentionDuration").is_some() {
            kept.retain(|app_id, _| listed.contains_key(app_id));
        }
        found.compare("setTransactions", Some(&listed), &kept);
    }
    // Writers that list the identifiers omit their number or write 0, so it is compared only without a list.
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

/// The totals of the live files.
#[derive(Default)]
struct Files {
    count: u64,
    bytes: u64,
    deleted_records: i64,
    deletion_vectors: i64,
    deleted_record_counts: Vec<i64>,
    sizes: FileSizeHistogram,
    listed: BTreeMap<String, i64>,
}

impl Files {
    fn of(snapshot: &Snapshot, checksum: &VersionChecksum) -> Result<Self> {
        let bins = checksum
            .file_size_histogram
            .as_ref()
            .map(|histogram| histogram.sorted_bin_boundaries.clone())
            .unwrap_or_default();
        let zeros = vec![0; bins.len()];
        let sizes =
            FileSizeHistogram { sorted_bin_boundaries: bins, file_counts: zeros.clone(), total_bytes: zeros };
        let mut files = Self { sizes, deleted_record_counts: vec![0; 10], ..Self::default() };
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
            let vectors = column(FileColumn::DeletionVector)?.as_struct_opt().ok_or_else(lacks)?;
            let texts = |name: &str| {
                vectors
                    .column_by_name(name)
                    .and_then(|column| column.as_string_opt::<i32>())
                    .ok_or_else(lacks)
            };
            let (storage_type, place) = (texts("storageType")?, texts("pathOrInlineDv")?);
            let offsets = vectors
                .column_by_name("offset")
                .and_then(|column| column.as_primitive_opt::<Int32Type>())
                .ok_or_else(lacks)?;
            let cardinality = vectors
                .column_by_name("cardinality")
                .and_then(|column| column.as_primitive_opt::<Int64Type>())
                .ok_or_else(lacks)?;
            for row in 0..batch.num_rows() {
                let vector = vectors.is_valid(row).then(|| {
                    let offset = offsets.is_valid(row).then(|| offsets.value(row));
                    let mut id = String::new();
                    write_unique_id(&mut id, storage_type.value(row), place.value(row), offset);
                    (id, cardinality.value(row))
                });
                files.add(paths.value(row), sizes.value(row), vector, checksum.all_files.is_some());
            }
        }
        Ok(files)
    }

    fn add(&mut self, path: &str, size: i64, vector: Option<(String, i64)>, is_listed: bool) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(u64::try_from(size).unwrap_or_default());
        let bin =
            self.sizes.sorted_bin_boundaries.partition_point(|boundary| *boundary <= size).checked_sub(1);
        if let Some((count, bytes)) = bin.and_then(|bin| {
            Some((self.sizes.file_counts.get_mut(bin)?, self.sizes.total_bytes.get_mut(bin)?))
        }) {
            *count += 1;
            *bytes = bytes.saturating_add(size);
        }
        let deleted = vector.as_ref().map_or(0, |(_, cardinality)| *cardinality);
        self.deleted_records = self.deleted_records.saturating_add(deleted);
        self.deletion_vectors += i64::from(vector.is_some());
        if let Some(count) = self.deleted_record_counts.get_mut(decade(deleted)) {
            *count += 1;
        }
        if is_listed {
            self.listed.insert(key(path, vector.as_ref().map(|(id, _)| id.as_str())), size);
        }
    }
}

/// Returns the bin of `DeletedRecordCountsHistogram`: 0; 1 to 9; 10 to 99; … ; below 2³¹ - 1; the rest.
fn decade(deleted: i64) -> usize {
    match deleted {
        i64::MIN..=0 => 0,
        1..=9_999_999 => deleted.ilog10() as usize + 1,
        10_000_000..=0x7fff_fffe => 8,
        _ => 9,
    }
}

fn key(path: &str, vector: Option<&str>) -> String {
    format!("{path}{}{}", if vector.is_some() { " with " } else { "" }, vector.unwrap_or_default())
}

fn listed(add: &Add) -> (String, i64) {
    let vector = add.deletion_vector.as_ref().map(|vector| vector.unique_id());
    (key(&add.path, vector.as_deref()), add.size)
}

#[cfg(test)]
mod tests {
    use super::decade;

    /// PROTOCOL, "Deleted Record Counts Histogram Schema".
    #[test]
    fn bins_of_deleted_records() {
        let bins = [
            (0, 0),
            (1, 1),
            (9, 1),
            (10, 2),
            (99, 2),
            (100, 3),
            (9_999, 4),
            (99_999, 5),
            (100_000, 6),
            (9_999_999, 7),
            (10_000_000, 8),
        ];
        for (deleted, bin) in
            bins.into_iter().chain([(i64::from(i32::MAX) - 1, 8), (i64::from(i32::MAX), 9), (i64::MAX, 9)])
        {
            assert_eq!(decade(deleted), bin, "{deleted}");
        }
    }
}
