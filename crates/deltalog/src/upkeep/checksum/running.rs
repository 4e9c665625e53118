//! A checksum carried over commits.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, BooleanArray};

use super::live_files::{FileChange, LiveFiles};
use crate::commit::names_this_crate;
use crate::error::Result;
use crate::log::replay::{Commit, FileColumn};
use crate::log::{FileTotals, InCommitTimestamps, VersionChecksum};
use crate::protocol::{DomainMetadata, Metadata, PathResolver, SetTransaction, TableFeature};

/// The most applications, and the most domains, that a checksum lists. A checksum is written with each commit.
pub(super) const MOST_LISTED_NAMES: usize = 100;

/// The operation that only adds live files again, with other statistics, if this crate has committed it, whichever
/// process: it has read them, so that a commit which has changed one of them is a conflict.
const COMPUTE_STATS: &str = "COMPUTE STATS";

/// The operations that add only files which are not live, and remove only live ones. Others, such as recomputing
/// statistics, name live files again.
const EXACT_OPERATIONS: [&str; 13] = [
    "CREATE OR REPLACE TABLE",
    "CREATE OR REPLACE TABLE AS SELECT",
    "CREATE TABLE",
    "CREATE TABLE AS SELECT",
    "DELETE",
    "MERGE",
    "OPTIMIZE",
    "REORG",
    "REPLACE TABLE",
    "REPLACE TABLE AS SELECT",
    "STREAMING UPDATE",
    "UPDATE",
    "WRITE",
];

/// Returns the checksum of the version of the last of `commits`, which follow the version of `checksum` without a
/// gap. The last of them is a commit of this crate. Also returns whether all totals of the files are known.
/// Returns `None` if the exact value of a required field is unknown.
///
/// # Errors
/// `CorruptLog` for a commit that breaks the protocol.
pub(super) fn extended(
    checksum: VersionChecksum,
    commits: &[&Commit],
    resolver: &PathResolver,
) -> Result<Option<(VersionChecksum, bool)>> {
    let Some(own) = commits.last() else { return Ok(None) };
    let without_vectors = checksum
        .protocol
        .as_ref()
        .is_some_and(|protocol| !protocol.reader_features().contains(&TableFeature::DeletionVectors));
    let mut totals = FileTotals::of(&checksum, without_vectors);
    let mut live = LiveFiles::of(&checksum, resolver)?;
    // The own commit may be in several pieces, which say together what it does.
    let is_own = |commit: &Commit| commit.version == own.version;
    let own_removes = commits.iter().any(|commit| is_own(commit) && commit.removes.num_rows() > 0);
    let own_statistics =
        commits.iter().any(|commit| is_own(commit) && operation_of(commit) == Some(COMPUTE_STATS));
    for commit in commits {
        let change = match is_own(commit) {
            _ if has_exact_files(commit) => FileChange::Exact,
            true if own_removes || !may_add_again(commit) => FileChange::Exact,
            true if own_statistics => FileChange::LiveAgain,
            false if is_recomputation(commit) => FileChange::LiveAgain,
            _ => FileChange::Unknown,
        };
        let applied = live.apply(commit, change, &mut totals, resolver);
        if !applied.map_err(|error| error.at_version(commit.version))? {
            return Ok(None);
        }
    }
    let newest = || commits.iter().rev();
    let metadata = newest().find_map(|commit| commit.metadata.clone()).or_else(|| checksum.metadata.clone());
    let protocol = newest().find_map(|commit| commit.protocol.clone()).or_else(|| checksum.protocol.clone());
    let has_timestamps = match (&protocol, &metadata) {
        (Some(protocol), Some(metadata)) => {
            InCommitTimestamps::of(protocol, metadata)? != InCommitTimestamps::Never
        }
        _ => false,
    };
    let info = own.commit_info.as_ref();
    let mut extended = VersionChecksum {
        txn_id: info.and_then(|info| info.txn_id.clone()),
        in_commit_timestamp: info.and_then(|info| info.in_commit_timestamp).filter(|_| has_timestamps),
        set_transactions: transactions(&checksum, metadata.as_ref(), commits),
        domain_metadata: domains(&checksum, commits),
        all_files: live.all(totals.files)?,
        metadata,
        protocol,
        ..VersionChecksum::default()
    };
    let is_complete = totals.are_complete();
    totals.record_in(&mut extended);
    Ok(Some((extended, is_complete)))
}

/// Returns whether a commit of any writer adds only files that are not live, and removes only live ones.
fn has_exact_files(commit: &Commit) -> bool {
    commit.adds.num_rows() + commit.removes.num_rows() == 0
        || operation_of(commit).is_some_and(|operation| EXACT_OPERATIONS.contains(&operation))
}

/// Returns whether a commit is one of this crate that has only computed statistics of live files again. Its writer
/// could be another process: then the commit is in one piece.
fn is_recomputation(commit: &Commit) -> bool {
    let info = commit.commit_info.as_ref();
    let is_of_this_crate = info.and_then(|info| info.engine_info.as_deref()).is_some_and(names_this_crate);
    is_of_this_crate
        && operation_of(commit) == Some(COMPUTE_STATS)
        && commit.removes.num_rows() == 0
        && changes_no_data(commit)
}

fn operation_of(commit: &Commit) -> Option<&str> {
    commit.commit_info.as_ref().and_then(|info| info.operation.as_deref())
}

/// Returns whether a commit of this crate which removes no file may add live files again, with other statistics or row
/// ids: then it changes no rows.
fn may_add_again(commit: &Commit) -> bool {
    let has_changes = |changes: &BooleanArray| changes.null_count() == 0 && !changes.has_false();
    commit.adds.num_rows() > 0 && !data_changes(commit).is_some_and(has_changes)
}

/// Returns whether the files that a commit adds contain no new rows.
fn changes_no_data(commit: &Commit) -> bool {
    data_changes(commit).is_some_and(|changes| changes.null_count() == 0 && !changes.has_true())
}

fn data_changes(commit: &Commit) -> Option<&BooleanArray> {
    commit.adds.column_by_name(FileColumn::DataChange.name()).and_then(|column| column.as_boolean_opt())
}

/// Returns the newest progress of each application. It is unknown if identifiers expire: which of them have then
/// depends on the time at which the file is read.
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
    // The newest action of a commit comes first.
    let later = commits.iter().flat_map(|commit| commit.transactions.iter().rev());
    for transaction in listed.chain(later) {
        newest.insert(transaction.app_id.clone(), transaction.clone());
    }
    (newest.len() <= MOST_LISTED_NAMES).then(|| newest.into_values().collect())
}

/// Returns the configurations of the domains that are not removed.
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
