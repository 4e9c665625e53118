//! The commit rule: put-if-absent of `N.json`, and what to do about every answer and about none.

use std::time::Duration;

use bytes::Bytes;

use super::Transaction;
use super::conflict::{Conflict, ReadSet, conflict};
use super::standing::next_version;
use crate::checkpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::log::name::LogFileName;
use crate::protocol::Action;
use crate::replay::Commit;
use crate::snapshot::Snapshot;
use crate::storage::{PutOutcome, Storage};

/// How often the same version is put again while the store gives no answer.
const PUTS_WITHOUT_ANSWER: u32 = 5;

/// How often reading back is tried while the store gives no answer.
const READS_WITHOUT_ANSWER: u32 = 5;

/// How long a writer stands back at most after its first defeat; each further one doubles it.
const LONGEST_FIRST_PAUSE_MICROS: u64 = 4_000;

/// After how many defeats the pause no longer grows.
const MOST_DOUBLINGS: u32 = 6;

/// What became of a transaction.
#[derive(Debug)]
pub enum Outcome {
    /// It is a version of the table.
    Committed(Committed),
    /// Another commit made it impossible; nothing was committed.
    Conflict(Conflict),
}

/// A commit that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// Its version.
    pub version: u64,
    /// Its id, as in `commitInfo.txnId`.
    pub txn_id: String,
}

/// What stands at a version.
enum Found {
    Own,
    Foreign(Box<Commit>),
    Nothing,
}

pub(super) fn commit(transaction: Transaction) -> Result<Outcome> {
    let Transaction { storage, base, read, actions, operation, environment } = transaction;
    let txn_id = environment.uuid().to_string();
    let blind = read == ReadSet::Nothing;
    let info =
        operation.commit_info(&txn_id, environment.now_ms(), base.as_ref().map(Snapshot::version), blind);
    let mut text = Action::CommitInfo(info).to_json_line()?;
    text.push('\n');
    for action in &actions {
        text.push_str(&action.to_json_line()?);
        text.push('\n');
    }
    let attempt = Attempt { storage: &storage, bytes: text.into(), txn_id: &txn_id };
    let mut version = match &base {
        None => 0,
        Some(base) => match next_version(base, read, &actions)? {
            Ok(version) => version,
            Err(conflict) => return Ok(Outcome::Conflict(conflict)),
        },
    };
    let mut defeats = 0;
    loop {
        let winner = match attempt.put(version)? {
            Found::Own | Found::Nothing => {
                checkpoint::after_commit(&storage, base.as_ref(), version, &environment);
                return Ok(Outcome::Committed(Committed { version, txn_id }));
            }
            Found::Foreign(winner) => winner,
        };
        if let Some(conflict) = conflict(read, &actions, base.is_none(), &winner) {
            return Ok(Outcome::Conflict(conflict));
        }
        version += 1;
        // All who lost this version would put the next one in the same moment, and all but one lose again.
        std::thread::sleep(pause(&txn_id, defeats));
        defeats += 1;
        // Reading is cheaper than a put that loses: go past everything that is there already.
        while let Found::Foreign(winner) = attempt.look(version)? {
            if let Some(conflict) = conflict(read, &actions, base.is_none(), &winner) {
                return Ok(Outcome::Conflict(conflict));
            }
            version += 1;
        }
    }
}

struct Attempt<'a> {
    storage: &'a Storage,
    bytes: Bytes,
    txn_id: &'a str,
}

impl Attempt<'_> {
    /// Puts the commit at `version` and finds out who has it. `Nothing` stands for a create that the store
    /// acknowledged.
    ///
    /// # Errors
    /// `CommitStateUnknown` as soon as a put may have had an effect that cannot be read back. Only the very
    /// first put can fail otherwise: the store refused it, so nothing was committed.
    fn put(&self, version: u64) -> Result<Found> {
        let path = LogFileName::Commit(version).path();
        let mut last = None;
        for attempt in 0..PUTS_WITHOUT_ANSWER {
            let outcome = match self.storage.put_if_absent(&path, self.bytes.clone()) {
                Ok(outcome) => outcome,
                // An earlier put may still be under way: what is not there now may be there soon.
                Err(error) if attempt > 0 => return Err(self.unknown(version, error)),
                Err(error) => return Err(error.at_version(version)),
            };
            match outcome {
                PutOutcome::Created => return Ok(Found::Nothing),
                // What is there may be the effect of this very put, if the store's client has repeated it.
                PutOutcome::AlreadyExists => match self.look(version) {
                    // It was there and is not any more, or the store lags: ask again.
                    Ok(Found::Nothing) => {}
                    Ok(found) => return self.durable(found, version),
                    Err(error) => return Err(self.unknown(version, error)),
                },
                PutOutcome::Unknown(error) => {
                    tracing::warn!(table = self.storage.url(), version, %error, "the store gave no answer to a commit: reading it back");
                    match self.look(version) {
                        // The operating system refused the put, and it had no effect.
                        Ok(Found::Nothing) if error.kind() == ErrorKind::PermissionDenied && attempt == 0 => {
                            return Err(error.at_version(version));
                        }
                        Ok(Found::Nothing) => last = Some(error),
                        Ok(found) => return self.durable(found, version),
                        Err(unread) => return Err(self.unknown(version, unread)),
                    }
                }
            }
            std::thread::sleep(backoff(attempt));
        }
        let cause = last.unwrap_or_else(|| {
            Error::new(
                ErrorKind::Unavailable,
                "the store says both that the version exists and that it does not",
            )
            .with_reason("contradiction")
        });
        Err(self.unknown(version, cause))
    }

    /// Makes a commit of our own durable that was found by reading: the store has not said that it is.
    fn durable(&self, found: Found, version: u64) -> Result<Found> {
        if matches!(found, Found::Own) {
            let path = LogFileName::Commit(version).path();
            self.storage.sync([path.as_str()]).map_err(|error| self.unknown(version, error))?;
        }
        Ok(found)
    }

    /// Reads `version` and tells whose it is.
    fn look(&self, version: u64) -> Result<Found> {
        let Some(bytes) = read_bytes(self.storage, version)? else { return Ok(Found::Nothing) };
        if bytes == self.bytes {
            return Ok(Found::Own);
        }
        let commit = parse(self.storage, version, &bytes)?;
        let own = commit.commit_info.as_ref().and_then(|info| info.txn_id.as_deref()) == Some(self.txn_id);
        Ok(if own { Found::Own } else { Found::Foreign(Box::new(commit)) })
    }

    fn unknown(&self, version: u64, cause: Error) -> Error {
        let hint = format!(
            "when the store answers again, find_commit(\"{}\") returns the version if the commit stands",
            self.txn_id
        );
        let reason = cause.reason().unwrap_or(match cause.kind() {
            ErrorKind::PermissionDenied => "access_denied",
            ErrorKind::CorruptLog => "unreadable",
            _ => "no_answer",
        });
        Error::new(
            ErrorKind::CommitStateUnknown,
            format!("it is not known whether version {version} with txnId {} was committed", self.txn_id),
        )
        .in_table(self.storage.url())
        .at_version(version)
        .with_transaction_id(self.txn_id)
        .with_reason(reason)
        .with_hint(hint)
        .with_source(cause)
    }
}

/// Reads the commit of `version`, or `None` if there is none.
pub(super) fn read_commit(storage: &Storage, version: u64) -> Result<Option<Commit>> {
    read_bytes(storage, version)?.map(|bytes| parse(storage, version, &bytes)).transpose()
}

/// Reads the bytes of a commit; asks again for a while if the store gives no answer.
fn read_bytes(storage: &Storage, version: u64) -> Result<Option<Bytes>> {
    let path = LogFileName::Commit(version).path();
    let mut attempt = 0;
    loop {
        match storage.get(&path) {
            Ok(bytes) => return Ok(bytes),
            Err(error)
                if attempt + 1 >= READS_WITHOUT_ANSWER || error.kind() == ErrorKind::PermissionDenied =>
            {
                return Err(error.at_version(version));
            }
            Err(_) => std::thread::sleep(backoff(attempt)),
        }
        attempt += 1;
    }
}

fn parse(storage: &Storage, version: u64, bytes: &Bytes) -> Result<Commit> {
    Commit::parse(bytes, version, 0).map_err(|error| {
        error.at_path(LogFileName::Commit(version).path()).at_version(version).in_table(storage.url())
    })
}

fn backoff(attempt: u32) -> Duration {
    Duration::from_millis(20 << attempt.min(6))
}

/// How long to stand back after a defeat: anything up to a limit that grows. The id of the transaction is
/// what differs between writers.
fn pause(txn_id: &str, defeats: u32) -> Duration {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (txn_id, defeats).hash(&mut hasher);
    Duration::from_micros(hasher.finish() % (LONGEST_FIRST_PAUSE_MICROS << defeats.min(MOST_DOUBLINGS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_grow_and_are_bounded() {
        let longest =
            |defeats| (0..1000).map(|writer| pause(&format!("{writer}"), defeats)).max().unwrap_or_default();
        assert!(longest(0) <= Duration::from_micros(LONGEST_FIRST_PAUSE_MICROS));
        assert!(longest(3) > longest(0));
        assert!(longest(u32::MAX) <= Duration::from_micros(LONGEST_FIRST_PAUSE_MICROS << MOST_DOUBLINGS));
        assert_ne!(pause("a", 1), pause("b", 1));
    }
}
