//! Derives the checksum of a version from an earlier checksum and the commits since then.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};

use super::live_files::{FileChange, LiveFiles};
use crate::commit::{OwnCommit, names_this_crate};
use crate::error::Result;
use crate::log::replay::{Commit, FileColumn};
use crate::log::{FileTotals, InCommitTimestamps, VersionChecksum};
use crate::protocol::{DomainMetadata, Metadata, PathResolver, SetTransaction, TableFeature};

/// The maximum number of applications that a checksum lists, and also of domains. It is low because a checksum is
/// written with each commit.
pub(super) const MOST_LISTED_NAMES: usize = 100;

/// The operation of this crate that only adds live files again, with new statistics. A commit that removes one of these
/// files, or adds one again, is a conflict.
const COMPUTE_STATS: &str = "COMPUTE STATS";

/// Returns the checksum of the version that `own` has committed. The commits `earlier` are between that version and the
/// version of `checksum`, without a gap. Also returns whether all totals of the files are known. Returns `None` if the
/// exact value of a required field is unknown.
///
/// # Errors
/// `CorruptLog` for a commit that breaks the protocol.
pub(super) fn extended(
    checksum: VersionChecksum,
    earlier: &[&Commit],
    own: &OwnCommit,
    resolver: &PathResolver,
) -> Result<Option<(VersionChecksum, bool)>> {
    let batches = own.batches();
    let without_vectors = checksum
        .protocol
        .as_ref()
        .is_some_and(|protocol| !protocol.reader_features().contains(&TableFeature::DeletionVectors));
    let mut totals = FileTotals::of(&checksum, without_vectors);
    let mut live = LiveFiles::of(&checksum, resolver)?;
    let own_change = change_of(&own.others, &own.adds, &own.removes);
    let changes = earlier.iter().map(|commit| {
        let (adds, removes) = (std::slice::from_ref(&commit.adds), std::slice::from_ref(&commit.removes));
        (*commit, change_of(commit, adds, removes))
    });
    for (commit, change) in changes.chain(batches.iter().map(|batch| (batch, own_change))) {
        let applied = live.apply(commit, change, &mut totals, resolver);
        if !applied.map_err(|error| error.at_version(commit.version))? {
            return Ok(None);
        }
    }
    let commits: Vec<&Commit> = earlier.iter().copied().chain([&own.others]).collect();
    let newest = || commits.iter().rev();
    let metadata = newest().find_map(|commit| commit.metadata.clone()).or_else(|| checksum.metadata.clone());
    let protocol = newest().find_map(|commit| commit.protocol.clone()).or_else(|| checksum.protocol.clone());
    let has_timestamps = match (&protocol, &metadata) {
        (Some(protocol), Some(metadata)) => {
            InCommitTimestamps::of(protocol, metadata)? != InCommitTimestamps::Never
        }
        _ => false,
    };
    let info = own.others.commit_info.as_ref();
    let mut extended = VersionChecksum {
        txn_id: info.and_then(|info| info.txn_id.clone()),
        in_commit_timestamp: info.and_then(|info| info.in_commit_timestamp).filter(|_| has_timestamps),
        set_transactions: transactions(&checksum, metadata.as_ref(), &commits),
        domain_metadata: domains(&checksum, &commits),
        all_files: live.all(totals.files)?,
        metadata,
        protocol,
        ..VersionChecksum::default()
    };
    let is_complete = totals.are_complete();
    totals.record_in(&mut extended);
    Ok(Some((extended, is_complete)))
}

/// Returns the effect of a commit on live files. A commit of this crate adds files that are not live. There is one
/// exception: if it removes no files and does not mark all its files as new data, its files may already be live and
/// only get new statistics or row ids. Nothing is assumed about the commits of other writers.
fn change_of(commit: &Commit, adds: &[RecordBatch], removes: &[RecordBatch]) -> FileChange {
    let info = commit.commit_info.as_ref();
    let is_of_this_crate = info.and_then(|info| info.engine_info.as_deref()).is_some_and(names_this_crate);
    let has_rows = |batches: &[RecordBatch]| batches.iter().any(|batch| batch.num_rows() > 0);
    match (has_rows(adds), has_rows(removes)) {
        (false, false) => FileChange::Exact,
        _ if !is_of_this_crate => FileChange::Unknown,
        (_, true) => FileChange::Exact,
        _ if have_data_change(adds, true) => FileChange::Exact,
        _ if info.and_then(|info| info.operation.as_deref()) == Some(COMPUTE_STATS)
            && have_data_change(adds, false) =>
        {
            FileChange::LiveAgain
        }
        _ => FileChange::Unknown,
    }
}

/// Returns whether every file action has the given `dataChange`.
fn have_data_change(adds: &[RecordBatch], value: bool) -> bool {
    adds.iter().filter(|adds| adds.num_rows() > 0).all(|adds| {
        let changes =
            adds.column_by_name(FileColumn::DataChange.name()).and_then(|column| column.as_boolean_opt());
        let expected = if value { adds.num_rows() } else { 0 };
        changes.is_some_and(|changes| changes.null_count() == 0 && changes.true_count() == expected)
    })
}

/// Returns the newest progress of each application. Returns `None` if identifiers expire in this table, because which
/// of them have expired depends on when the file is read.
fn transactions(
    checksum: &VersionChecksum,
    metadata: Option<&Metadata>,
    commits: &[&Commit],
) -> Option<Vec<SetTransaction>> {
    let expires = |metadata: &Metadata| metadata.property("delta.setTransactionRetentionDuration").is_some();
    if checksum.metadata.as_ref().is_some_and(expires) || metadata.is_some_and(expires) {
        return None;
    }
    let mut newest: BTreeMap<String, SetTransaction> = BTreeMap::new();
    let listed = checksum.set_transactions.as_ref()?.iter();
    // Within a commit, the newest action comes first.
    let later = commits.iter().flat_map(|commit| commit.transactions.iter().rev());
    for transaction in listed.chain(later) {
        newest.insert(transaction.app_id.clone(), transaction.clone());
    }
    (newest.len() <= MOST_LISTED_NAMES).then(|| newest.into_values().collect())
}

/// Returns the configurations of the domains that were not removed.
fn domains(checksum: &VersionChecksum, commits: &[&Commit]) -> Option<Vec<DomainMetadata>> {
    let mut newest: BTreeMap<String, DomainMetadata> = BTreeMap::new();
    let listed = checksum.domain_metadata.as_ref()?.iter();
    let later = commits.iter().flat_map(|commit| commit.domains.iter().rev());
    for domain in listed.chain(later) {
        newest.insert(domain.domain.clone(), domain.clone());
    }
    newest.retain(|_, domain| !domain.removed);
    (newest.len() <= MOST_LISTED_NAMES).then(|| newest.into_values().collect())
}
