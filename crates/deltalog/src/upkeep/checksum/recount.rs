//! Computes the checksum of a version by counting the files in its file list.

use super::live_files::MOST_LISTED_FILES;
use super::running::MOST_LISTED_NAMES;
use crate::error::Result;
use crate::log::replay::{FileColumns, add_at};
use crate::log::{FileSizeHistogram, InCommitTimestamps, VersionChecksum};
use crate::protocol::Add;
use crate::snapshot::Snapshot;

/// Counts everything that a checksum records.
///
/// # Errors
/// Errors of replaying the log.
pub(super) fn of(snapshot: &Snapshot) -> Result<VersionChecksum> {
    let totals = snapshot.count_files(FileSizeHistogram::empty())?;
    let is_listed = totals.files <= MOST_LISTED_FILES as u64;
    let (protocol, metadata) = (snapshot.protocol(), snapshot.metadata());
    let info = snapshot.commit_info()?.unwrap_or_default();
    let has_timestamps = InCommitTimestamps::of(protocol, metadata)? != InCommitTimestamps::Never;
    // The transaction identifiers are left out, because which of them have expired depends on when the checksum is
    // read.
    let transactions = match metadata.property("delta.setTransactionRetentionDuration") {
        Some(_) => None,
        None => Some(snapshot.app_transactions()?),
    };
    let mut checksum = VersionChecksum {
        txn_id: info.txn_id,
        in_commit_timestamp: info.in_commit_timestamp.filter(|_| has_timestamps),
        set_transactions: transactions.filter(|listed| listed.len() <= MOST_LISTED_NAMES),
        domain_metadata: Some(snapshot.domain_metadata()?).filter(|listed| listed.len() <= MOST_LISTED_NAMES),
        metadata: Some(metadata.clone()),
        protocol: Some(protocol.clone()),
        all_files: if is_listed { Some(all_files(snapshot)?) } else { None },
        ..VersionChecksum::default()
    };
    totals.record_in(&mut checksum);
    Ok(checksum)
}

/// Returns the live files for the list in a checksum.
fn all_files(snapshot: &Snapshot) -> Result<Vec<Add>> {
    let mut files = Vec::new();
    for batch in snapshot.replay_files(FileColumns::all())? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            files.push(Add { data_change: false, ..add_at(&batch, row)? });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}
