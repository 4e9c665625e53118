//! The commit rule: put-if-absent of `N.json`, and the reaction to each answer of the store or to none.

use std::time::Duration;

use bytes::Bytes;

use super::Transaction;
use super::conflict::{Conflict, ReadSet, conflict};
use super::standing::next_version;
use crate::checkpoint;
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::log::name::LogFileName;
use crate::protocol::Action;
use crate::replay::Commit;
use crate::snapshot::Snapshot;
use crate::storage::{PutOutcome, Storage};

/// The maximum number of puts of one version while the store gives no answer.
const MAX_PUTS: u32 = 5;

/// The maximum number of attempts to read a commit back while the store gives no answer.
const MAX_READS: u32 = 5;

/// The maximum pause of a writer after it loses a version for the first time. Each further loss doubles it.
const MAX_FIRST_PAUSE_MICROS: u64 = 4_000;

/// The number of losses after which the maximum pause no longer grows.
const MAX_DOUBLINGS: u32 = 6;

/// The outcome of a transaction.
#[derive(Debug)]
pub enum Outcome {
    /// The transaction was committed.
    Committed(Committed),
    /// Another commit conflicts with the transaction; nothing was committed.
    Conflict(Conflict),
}

/// A successful commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// The version of the commit.
    pub version: u64,
    /// The id of the transaction, as in `commitInfo.txnId`.
    pub txn_id: String,
}

/// The commit found at a version.
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
    let attempt =
        Attempt { storage: &storage, bytes: text.into(), txn_id: &txn_id, environment: &environment };
    let mut version = match &base {
        None => 0,
        Some(base) => match next_version(base, read, &actions, &environment)? {
            Ok(version) => version,
            Err(conflict) => return Ok(Outcome::Conflict(conflict)),
        },
    };
    let mut losses = 0;
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
        // Without a pause, all writers that lost this version would put the next one at the same moment, and
        // all but one would lose again.
        environment.sleep(pause(environment.random(), losses));
        losses += 1;
        // Reading is cheaper than a put that loses, so skip the versions that already exist.
        while let Found::Foreign(winner) = attempt.read_back(version)? {
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
    environment: &'a Environment,
}

impl Attempt<'_> {
    /// Puts the commit at `version` and returns whose commit is there. `Nothing` means that the store
    /// acknowledged the put.
    ///
    /// # Errors
    /// `CommitStateUnknown` if a put may have had an effect that cannot be read back. Other errors come only
    /// from the first put: the store refused it, so nothing was committed.
    fn put(&self, version: u64) -> Result<Found> {
        let path = LogFileName::Commit(version).path();
        let mut last = None;
        for attempt in 0..MAX_PUTS {
            let outcome = match self.storage.put_if_absent(&path, self.bytes.clone()) {
                Ok(outcome) => outcome,
                // An earlier put may still be in flight and take effect later.
                Err(error) if attempt > 0 => return Err(self.unknown(version, error)),
                Err(error) => return Err(error.at_version(version)),
            };
            match outcome {
                PutOutcome::Created => return Ok(Found::Nothing),
                // If the store's client retried this put, the file may be its own effect.
                PutOutcome::AlreadyExists => match self.read_back(version) {
                    // The file was deleted, or the store's reads lag behind: try again.
                    Ok(Found::Nothing) => {}
                    Ok(found) => return self.durable(found, version),
                    Err(error) => return Err(self.unknown(version, error)),
                },
                PutOutcome::Unknown(error) => {
                    tracing::warn!(
                        table = self.storage.url(),
                        version,
                        %error,
                        "the store gave no answer to a commit: reading it back"
                    );
                    match self.read_back(version) {
                        // The operating system refused the put, which had no effect.
                        Ok(Found::Nothing) if error.kind() == ErrorKind::PermissionDenied && attempt == 0 => {
                            return Err(error.at_version(version));
                        }
                        Ok(Found::Nothing) => last = Some(error),
                        Ok(found) => return self.durable(found, version),
                        Err(unread) => return Err(self.unknown(version, unread)),
                    }
                }
            }
            self.environment.sleep(backoff(attempt));
        }
        let cause = last.unwrap_or_else(|| {
            Error::new(
                ErrorKind::Unavailable,
                "the store reports the version as existing, but cannot find it",
            )
            .with_reason("contradiction")
        });
        Err(self.unknown(version, cause))
    }

    /// Makes our own commit durable if it was found by reading, because the store has not acknowledged it.
    fn durable(&self, found: Found, version: u64) -> Result<Found> {
        if matches!(found, Found::Own) {
            let path = LogFileName::Commit(version).path();
            self.storage.sync([path.as_str()]).map_err(|error| self.unknown(version, error))?;
        }
        Ok(found)
    }

    /// Reads `version` and returns whose commit it is.
    fn read_back(&self, version: u64) -> Result<Found> {
        let Some(bytes) = read_bytes(self.storage, version, self.environment)? else {
            return Ok(Found::Nothing);
        };
        if bytes == self.bytes {
            return Ok(Found::Own);
        }
        let commit = parse(self.storage, version, &bytes)?;
        let own = commit.commit_info.as_ref().and_then(|info| info.txn_id.as_deref()) == Some(self.txn_id);
        Ok(if own { Found::Own } else { Found::Foreign(Box::new(commit)) })
    }

    fn unknown(&self, version: u64, cause: Error) -> Error {
        let hint = format!(
            "when the store is available again, find_commit(\"{}\") returns the version if it was committed",
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

/// Reads the commit of `version`; returns `None` if it does not exist.
pub(super) fn read_commit(
    storage: &Storage,
    version: u64,
    environment: &Environment,
) -> Result<Option<Commit>> {
    read_bytes(storage, version, environment)?.map(|bytes| parse(storage, version, &bytes)).transpose()
}

/// Reads the bytes of a commit; retries for a while if the store gives no answer.
fn read_bytes(storage: &Storage, version: u64, environment: &Environment) -> Result<Option<Bytes>> {
    let path = LogFileName::Commit(version).path();
    let mut attempt = 0;
    loop {
        match storage.get(&path) {
            Ok(bytes) => return Ok(bytes),
            Err(error) if attempt + 1 >= MAX_READS || error.kind() == ErrorKind::PermissionDenied => {
                return Err(error.at_version(version));
            }
            Err(_) => environment.sleep(backoff(attempt)),
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

/// Returns the pause after a loss: from `random`, up to a maximum that grows with `losses`.
fn pause(random: u64, losses: u32) -> Duration {
    Duration::from_micros(random % (MAX_FIRST_PAUSE_MICROS << losses.min(MAX_DOUBLINGS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_grow_and_are_bounded() {
        let longest = |losses| pause((MAX_FIRST_PAUSE_MICROS << losses) - 1, losses);
        assert!(longest(0) < Duration::from_micros(MAX_FIRST_PAUSE_MICROS));
        assert!(longest(3) > longest(0));
        assert!(pause(u64::MAX, u32::MAX) < Duration::from_micros(MAX_FIRST_PAUSE_MICROS << MAX_DOUBLINGS));
        assert_ne!(pause(1, 1), pause(2, 1));
    }
}
