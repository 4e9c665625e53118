//! The commit loop: checks the commits of other writers for conflicts, prepares the next commit on top of them, and
//! puts it. If another writer has created that version first, the loop continues with the next one.

use std::time::Duration;

use bytes::Bytes;

use super::appended::appended;
use super::applied::AlreadyApplied;
use super::conflict::{Conflict, ConflictReason};
use super::encode::{EncodedAdds, Lines};
use super::head::Head;
use super::isolation::IsolationLevel;
use super::prepared::{OwnCommit, Prepared};
use super::put::{Owner, Putter};
use super::row_deletes::RowDeletes;
use super::rules::{Mine, Winner, conflict};
use super::winners::{Step, Winners, parse, visit};
use super::{Transaction, changed_for_writers};
use crate::error::{Error, Result};
use crate::log::deletion_vector::DeletionVectors;
use crate::log::is_table;
use crate::log::replay::{Commit, FileSet, batches_of_adds};
use crate::protocol::{
    Action, Metadata, PRESERVED_TAG, PROTECTED_BEFORE, PathResolver, Protocol, tracks_rows,
};
use crate::runtime::environment::Environment;
use crate::runtime::interrupt;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// The maximum pause of a writer after another writer has created its version first. It doubles each time this happens
/// again.
const MAX_FIRST_PAUSE_MICROS: u64 = 4_000;

/// The number of lost versions after which the maximum pause no longer grows.
const MAX_DOUBLINGS: u32 = 6;

/// A version that this process has just committed.
#[derive(Debug)]
pub(crate) struct CommittedVersion<'a> {
    /// The version that the transaction was based on; `None` if it created the table.
    pub(crate) base: Option<&'a Snapshot>,
    pub(crate) storage: &'a Storage,
    /// Decides to which files outside the table the transaction may refer.
    pub(crate) resolver: &'a PathResolver,
    pub(crate) version: u64,
    /// The size of the commit in bytes.
    pub(crate) bytes: u64,
    /// The commits of other writers between the base and this version, oldest first; `None` if they are not all in
    /// memory.
    pub(crate) winners: Option<Vec<Commit>>,
    /// The commit of this version.
    pub(crate) own: OwnCommit,
    pub(crate) environment: &'a Environment,
}

/// The outcome of a transaction.
#[derive(Debug)]
pub enum Outcome {
    /// The transaction was committed.
    Committed(Committed),
    /// Another commit has already recorded the same progress of an application; nothing was committed.
    AlreadyApplied(AlreadyApplied),
    /// Another commit conflicts with the transaction; nothing was committed.
    Conflict {
        /// The winning commit, and why it conflicts.
        conflict: Conflict,
        /// The transaction, which can be moved to a newer version. See [`Transaction::onto`].
        transaction: Box<Transaction>,
    },
}

/// A successful commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// The version of the commit.
    pub version: u64,
    /// The id of the transaction, as in `commitInfo.txnId`.
    pub txn_id: String,
    /// The number of commits of other writers between the version that was read and this one.
    pub rebased_over: u64,
}

/// Commits `transaction`, and calls `after` with the version that was created.
///
/// # Errors
/// Returns the same errors as [`Transaction::commit`].
pub(super) fn commit(transaction: Transaction, after: fn(CommittedVersion<'_>)) -> Result<Outcome> {
    let mut attempts = Attempts::new(&transaction)?;
    let result = attempts.run(after);
    if !result.as_ref().is_err_and(Error::is_commit_state_unknown) {
        attempts.row_deletes.delete_unused(matches!(result, Ok(Ok(_))));
    }
    drop(attempts);
    match result? {
        Ok(committed) => Ok(Outcome::Committed(committed)),
        Err(Stop::AlreadyApplied(applied)) => Ok(Outcome::AlreadyApplied(applied)),
        Err(Stop::Conflict(conflict)) => {
            Ok(Outcome::Conflict { conflict, transaction: Box::new(transaction) })
        }
    }
}

/// Returns the conflict between `transaction` and the commits since its base, if there is one.
pub(super) fn conflict_so_far(transaction: &Transaction) -> Result<Option<Conflict>> {
    match Attempts::new(transaction)?.catch_up()? {
        Some(Stop::Conflict(conflict)) => Ok(Some(conflict)),
        Some(Stop::AlreadyApplied(_)) | None => Ok(None),
    }
}

/// The reason for not committing a transaction.
enum Stop {
    Conflict(Conflict),
    AlreadyApplied(AlreadyApplied),
}

impl Stop {
    fn conflict(version: u64, reason: ConflictReason) -> Self {
        Self::Conflict(Conflict::new(version, reason))
    }
}

/// The attempts to commit a transaction.
struct Attempts<'a> {
    transaction: &'a Transaction,
    protocol: &'a Protocol,
    metadata: &'a Metadata,
    isolation: IsolationLevel,
    source_isolation: IsolationLevel,
    removed: FileSet,
    row_deletes: RowDeletes<'a>,
    head: Head,
    winners: Winners,
    /// The lines of the commit that are the same in every attempt.
    fixed_lines: Vec<Bytes>,
    /// The `add` actions, if they are the same in every attempt.
    adds: Option<EncodedAdds>,
}

impl<'a> Attempts<'a> {
    fn new(transaction: &'a Transaction) -> Result<Self> {
        let Transaction { storage, base, changes, resolver, environment, .. } = transaction;
        let located = |error: Error| error.in_table(storage.url());
        let missing = || Error::invalid_argument("a new table needs a protocol and metadata");
        let protocol = changes.protocol.as_ref().or(base.as_ref().map(Snapshot::protocol));
        let metadata = changes.metadata.as_ref().or(base.as_ref().map(Snapshot::metadata));
        let (protocol, metadata) = protocol.zip(metadata).ok_or_else(missing).map_err(located)?;
        let before = base.as_ref().map_or(metadata, Snapshot::metadata);
        let removed = changes.check(protocol, metadata, before, resolver).map_err(located)?;
        Ok(Self {
            transaction,
            protocol,
            metadata,
            isolation: IsolationLevel::of(transaction.isolation, metadata, changes),
            source_isolation: IsolationLevel::of(None, metadata, changes),
            removed,
            row_deletes: RowDeletes::new(&changes.row_deletes, storage, resolver, environment)
                .map_err(located)?,
            head: Head::of(base.as_ref(), protocol, metadata).map_err(located)?,
            winners: Winners::default(),
            fixed_lines: Vec::new(),
            adds: None,
        })
    }

    fn run(&mut self, after: fn(CommittedVersion<'_>)) -> Result<Result<Committed, Stop>> {
        if let Some(stop) = self.catch_up()? {
            return Ok(Err(stop));
        }
        let Transaction { storage, environment, id, .. } = self.transaction;
        let putter = Putter { storage, txn_id: id, environment };
        self.fixed_lines =
            self.transaction.changes.fixed_lines().map_err(|error| error.in_table(storage.url()))?;
        let mut losses = 0;
        loop {
            let version = self.head.next_version();
            let prepared = self.prepare().map_err(|error| error.in_table(storage.url()))?;
            interrupt::check_now().map_err(|stopped| Error::from(stopped).in_table(storage.url()))?;
            // The put must not be interrupted: the commit may already exist, and the writer must find out whether it
            // does.
            let mut lost_to = match interrupt::shielded(|| putter.put(version, &prepared.payload))? {
                Owner::Own(tag) => return Ok(Ok(self.committed(version, prepared, tag, after))),
                Owner::Foreign(winner) => winner,
            };
            if let Some(stop) = self.meet(version, &lost_to)? {
                return Ok(Err(stop));
            }
            // Without a random pause, all writers that lost this version would try to put the next one at the same
            // moment, and all but one would lose again.
            environment.sleep(pause(environment.random(), losses));
            losses += 1;
            // Reading a version is cheaper than trying to put it and failing, so skip the versions that already exist.
            while let Some(Owner::Foreign(winner)) = putter.read_back(self.head.next_version())? {
                lost_to = winner;
                if let Some(stop) = self.meet(self.head.next_version(), &lost_to)? {
                    return Ok(Err(stop));
                }
            }
        }
    }

    /// Records the commit of `version`, and calls `after`. `tag` is the tag of its file, as listings show it.
    fn committed(
        &mut self,
        version: u64,
        prepared: Prepared,
        tag: Option<u64>,
        after: fn(CommittedVersion<'_>),
    ) -> Committed {
        let Transaction { storage, resolver, environment, id, base, changes, .. } = self.transaction;
        if let Some(base) = base {
            base.left_over().note_own_commit(version, &prepared.payload, tag);
        }
        environment.note_commit(version);
        interrupt::note_commit(|| storage.url(), version);
        let bytes = prepared.payload.content_length() as u64;
        let own = prepared.into_commit(version, changes);
        let winners = std::mem::take(&mut self.winners).into_all();
        after(CommittedVersion {
            base: base.as_ref(),
            storage,
            resolver,
            version,
            bytes,
            winners,
            own,
            environment,
        });
        let first = base.as_ref().map_or(0, |base| base.version() + 1);
        Committed { version, txn_id: id.clone(), rebased_over: version.saturating_sub(first) }
    }

    /// Examines the commits since the base. Returns the first reason not to commit on top of them.
    fn catch_up(&mut self) -> Result<Option<Stop>> {
        let Some(base) = &self.transaction.base else {
            // If the first versions of an existing table were cleaned up, a put of version 0 would succeed.
            let exists = is_table(&self.transaction.storage)?;
            return Ok(exists.then(|| Stop::conflict(0, ConflictReason::TableCreated)));
        };
        let mut found = None;
        let with_statistics = self.transaction.needs_statistics();
        let may_skip = self.may_skip_commits();
        visit(base, with_statistics, may_skip, &self.transaction.environment, |step| {
            found = match step {
                Step::Winner(winner) => self.note(*winner)?,
                Step::CleanedUp(version) => self.skip_gap(base, version)?,
                Step::Replaced => Some(Stop::conflict(base.version(), ConflictReason::TableReplaced)),
            };
            Ok(found.is_none())
        })?;
        Ok(found)
    }

    /// Examines the commit `bytes` of another writer. Returns the reason not to commit on top of it, if any.
    fn meet(&mut self, version: u64, bytes: &Bytes) -> Result<Option<Stop>> {
        if self.transaction.base.is_none() {
            return Ok(Some(Stop::conflict(version, ConflictReason::TableCreated)));
        }
        let with_statistics = self.transaction.needs_statistics();
        let winner = parse(&self.transaction.storage, version, bytes, with_statistics)?;
        self.note(winner)
    }

    fn note(&mut self, winner: Commit) -> Result<Option<Stop>> {
        let Transaction { base, reads, changes, storage, .. } = self.transaction;
        let version = winner.version;
        let located = |error: Error| error.in_table(storage.url()).at_version(version);
        // This is checked before the conflict rules, because a repeated write would violate them: it would conflict
        // with its own earlier commit.
        if let Some(applied) = AlreadyApplied::find(&winner.transactions, &changes.transactions, version) {
            return Ok(Some(Stop::AlreadyApplied(applied)));
        }
        let (removed, isolation, source_isolation) = (&self.removed, self.isolation, self.source_isolation);
        if let Some(base) = base {
            let mine = Mine { base, reads, changes, removed, isolation, source_isolation };
            let appended = match reads.predicates.is_empty() && reads.source.predicates().is_empty() {
                true => winner.adds.clone(),
                false => {
                    let vectors = DeletionVectors::new(storage.clone(), base.resolver().clone());
                    appended(&winner, base.resolver(), &vectors).map_err(located)?
                }
            };
            let seen = Winner { commit: &winner, appended: &appended };
            if let Some(conflict) = conflict(&mine, &seen).map_err(located)? {
                return Ok(Some(Stop::Conflict(conflict)));
            }
        }
        if let Some(reason) = self.row_deletes.note(&winner).map_err(located)? {
            return Ok(Some(Stop::conflict(version, reason)));
        }
        self.head.advance(&winner).map_err(located)?;
        self.winners.push(winner);
        Ok(None)
    }

    /// Returns whether the transaction only adds rows, and depends on no file, application or domain.
    fn may_skip_commits(&self) -> bool {
        let Transaction { reads, changes, .. } = self.transaction;
        reads.is_nothing()
            && changes.only_adds_rows()
            && changes.transactions.is_empty()
            && changes.domains.is_empty()
    }

    /// Continues on the newest version although the commit of `version`, which is after the base, was cleaned up. This
    /// is only allowed if the transaction depends on no file and no application, and if the protocol and metadata have
    /// not changed in a way that affects it.
    fn skip_gap(&mut self, base: &Snapshot, version: u64) -> Result<Option<Stop>> {
        if !self.may_skip_commits() {
            return Ok(Some(Stop::conflict(version, ConflictReason::LogCleanedUp)));
        }
        let newest = base.refresh()?;
        if let Some(reason) = changed_for_writers(base.protocol(), base.metadata(), &newest)? {
            return Ok(Some(Stop::conflict(newest.version(), reason)));
        }
        self.head = Head::of(Some(&newest), self.protocol, self.metadata)?;
        self.winners.forget();
        Ok(None)
    }

    /// Returns the commit of the next version.
    fn prepare(&mut self) -> Result<Prepared> {
        let Transaction { base, reads, changes, operation, environment, id, storage, .. } = self.transaction;
        self.head.note_file_time(storage)?;
        let now_ms = environment.now_ms();
        // Protocol: "Row Tracking". Rows that this crate's operations copy keep their ids.
        let preserved = tracks_rows(self.protocol, self.metadata).then_some((PRESERVED_TAG, "true"));
        let mut info = operation.commit_info(id, now_ms, preserved.as_slice());
        info.read_version = base.as_ref().and_then(|base| i64::try_from(base.version()).ok());
        // As in the JVM connector, a commit that adds no files also counts as a blind append. A commit that creates a
        // table has read nothing.
        let has_read = base.is_some() && !reads.is_nothing();
        info.is_blind_append = Some(!has_read && changes.adds_rows_alone());
        info.isolation_level = Some(self.isolation.name().to_owned());
        let timestamp_ms = self.head.next_timestamp_ms(now_ms);
        info.in_commit_timestamp = timestamp_ms;
        // Protocol: "In-Commit Timestamps", "the `commitInfo` action must be the first action in the commit".
        let line = |action: Action| Ok::<_, Error>(Bytes::from(action.to_json_line()? + "\n"));
        let mut chunks = vec![line(Action::CommitInfo(info.clone()))?];
        if let Some(protocol) = &changes.protocol {
            chunks.push(line(Action::Protocol(protocol.clone()))?);
        }
        let metadata = changes.metadata.as_ref().map(|metadata| {
            let mut metadata = self.head.metadata(metadata, timestamp_ms);
            if changes.protects_checkpoints {
                let version = self.head.next_version().to_string();
                metadata.configuration.insert(PROTECTED_BEFORE.to_owned(), version);
            }
            metadata
        });
        if let Some(metadata) = &metadata {
            chunks.push(line(Action::Metadata(metadata.clone()))?);
        }
        chunks.extend(self.fixed_lines.iter().cloned());
        let (mut lines, mut with_vectors) = (Lines::default(), Vec::new());
        let mut row_ids = self.head.next_row_ids()?;
        for mut action in self.row_deletes.prepare()? {
            // The data file may have been added before the table had row tracking, so it may still need row ids.
            if let (Action::Add(add), Some(row_ids)) = (&mut action, &mut row_ids) {
                row_ids.assign(add)?;
            }
            lines.push(&action)?;
            if let Action::Add(add) = action {
                with_vectors.push(add);
            }
        }
        chunks.extend(lines.finish());
        let mut domains = Vec::new();
        let adds = match (row_ids, self.adds.take()) {
            (Some(mut row_ids), _) => {
                let adds = changes.encode_adds(Some(&mut row_ids))?;
                domains.extend(row_ids.domain()?);
                adds
            }
            (None, Some(adds)) => adds,
            (None, None) => changes.encode_adds(None)?,
        };
        chunks.extend(adds.lines.iter().cloned());
        for domain in &domains {
            chunks.push(line(Action::DomainMetadata(domain.clone()))?);
        }
        let mut batches = batches_of_adds(&with_vectors)?;
        batches.extend(adds.batches.iter().cloned());
        self.adds = Some(adds);
        Ok(Prepared {
            payload: chunks.into_iter().collect(),
            info,
            metadata,
            adds: batches,
            replaced: self.row_deletes.replaced()?,
            domains,
        })
    }
}

/// Returns a random pause after a lost version. Its upper limit grows with `losses`.
fn pause(random: u64, losses: u32) -> Duration {
    Duration::from_micros(random % (MAX_FIRST_PAUSE_MICROS << losses.min(MAX_DOUBLINGS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_random_and_grow_up_to_a_limit() {
        let longest = |losses| pause((MAX_FIRST_PAUSE_MICROS << losses) - 1, losses);
        assert!(longest(0) < Duration::from_micros(MAX_FIRST_PAUSE_MICROS));
        assert!(longest(3) > longest(0));
        assert!(pause(u64::MAX, u32::MAX) < Duration::from_micros(MAX_FIRST_PAUSE_MICROS << MAX_DOUBLINGS));
        assert_ne!(pause(1, 1), pause(2, 1));
    }
}
