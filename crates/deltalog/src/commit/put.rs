//! Creates `N.json` only if it does not exist. Handles every possible answer of the store, including none at all.
//! Protocol: "Creation of New Log Entries".

use std::time::Duration;

use bytes::Bytes;
use object_store::PutPayload;

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::log_name::LogFileName;
use crate::protocol::{Action, ActionLine};
use crate::runtime::environment::Environment;
use crate::storage::{PutOutcome, Storage};

/// The maximum number of attempts to put one version while the store does not answer.
const MAX_PUTS: u32 = 5;

/// How long to keep trying to read a commit back while the store does not answer. This includes requests and pauses.
/// It is short, because the client of a remote store already retries each request for minutes.
const READ_BUDGET: Duration = Duration::from_secs(10);

/// The pause after the first request without an answer. It doubles with each further request.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The maximum pause between two requests without an answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Returns whether the store refused a put in a way that a repetition would not change.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidArgument)
}

/// The writer that has committed a version: this transaction or another one.
pub(super) enum Owner {
    /// This transaction. The value is the tag of the commit's file, if the store has returned one.
    Own(Option<u64>),
    /// Another writer. The value is the content of its commit.
    Foreign(Bytes),
}

/// Puts the commit of one transaction, at any version.
pub(super) struct Putter<'a> {
    pub(super) storage: &'a Storage,
    pub(super) txn_id: &'a str,
    pub(super) environment: &'a Environment,
}

impl Putter<'_> {
    /// Puts the commit at `version`, and returns which writer has committed that version.
    ///
    /// # Errors
    /// `CommitStateUnknown` if a put may have had an effect that cannot be read back. Other errors come only
    /// from the first put: the store refused it, so nothing was committed.
    pub(super) fn put(&self, version: u64, bytes: &PutPayload) -> Result<Owner> {
        let path = LogFileName::Commit(version).path();
        let mut last = None;
        for attempt in 0..MAX_PUTS {
            let (outcome, tag) = match self.storage.put_if_absent_tagged(&path, bytes.clone()) {
                Ok(answer) => answer,
                // An earlier put may still be in flight and take effect later.
                Err(error) if attempt > 0 => return Err(self.unknown(version, error)),
                Err(error) => return Err(error.at_version(version)),
            };
            match outcome {
                PutOutcome::Created => return Ok(Owner::Own(tag)),
                // If the store's client retried this put, the existing file may come from an earlier try of the same
                // put.
                PutOutcome::AlreadyExists => match self.read_back(version) {
                    // Either the file was deleted since, or the store's reads lag behind: try again.
                    Ok(None) => {}
                    Ok(Some(owner)) => return self.durable(owner, version),
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
                        // The operating system or the store refused the request, so it had no effect.
                        Ok(None) if is_refusal(&error) && attempt == 0 => {
                            return Err(error.at_version(version));
                        }
                        Ok(None) => last = Some(error),
                        Ok(Some(owner)) => return self.durable(owner, version),
                        Err(unread) => return Err(self.unknown(version, unread)),
                    }
                }
            }
            self.environment.sleep(backoff(attempt, self.environment.random()));
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

    /// Reads the commit of `version`, and returns which writer has made it; `None` if the version does not exist.
    ///
    /// # Errors
    /// `CorruptLog` for a commit without readable provenance; also errors from the store.
    pub(super) fn read_back(&self, version: u64) -> Result<Option<Owner>> {
        let Some(bytes) = read(self.storage, version, self.environment)? else { return Ok(None) };
        let own = txn_id(&bytes).map_err(|error| located(error, self.storage, version))?;
        Ok(Some(if own.as_deref() == Some(self.txn_id) { Owner::Own(None) } else { Owner::Foreign(bytes) }))
    }

    /// Makes the commit of `version` durable if it is this transaction's. This is needed if the commit was found by
    /// reading it back, because the store did not acknowledge it.
    fn durable(&self, owner: Owner, version: u64) -> Result<Owner> {
        if matches!(owner, Owner::Own(_)) {
            let path = LogFileName::Commit(version).path();
            self.storage.sync([path.as_str()]).map_err(|error| self.unknown(version, error))?;
        }
        Ok(owner)
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

/// Reads the bytes of a commit; `None` if the commit does not exist. If the store does not answer, tries again for a
/// while.
///
/// # Errors
/// Returns errors from the store.
pub(super) fn read(storage: &Storage, version: u64, environment: &Environment) -> Result<Option<Bytes>> {
    let path = LogFileName::Commit(version).path();
    let began_ms = environment.now_ms();
    let mut waited = Duration::ZERO;
    for attempt in 0.. {
        match storage.get(&path) {
            Ok(bytes) => return Ok(bytes),
            Err(error) => {
                let passed = waited.max(Duration::from_millis(environment.ms_since(began_ms)));
                let is_final = matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Interrupted);
                if passed >= READ_BUDGET || is_final {
                    return Err(error.at_version(version));
                }
                let pause = backoff(attempt, environment.random());
                environment.sleep(pause);
                waited += pause;
            }
        }
    }
    Ok(None)
}

/// Returns `commitInfo.txnId` of a commit. Only the lines up to the first `commitInfo` are parsed. Usually it is the
/// first line.
fn txn_id(bytes: &[u8]) -> Result<Option<String>> {
    for line in bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.is_empty() {
            continue;
        }
        if let Some(ActionLine::Other(Action::CommitInfo(info))) = ActionLine::parse(line)? {
            return Ok(info.txn_id);
        }
    }
    Ok(None)
}

/// Adds the file, the version and the table to an error about a commit.
pub(super) fn located(error: Error, storage: &Storage, version: u64) -> Error {
    error.at_path(LogFileName::Commit(version).path()).at_version(version).in_table(storage.url())
}

/// Returns the pause after attempt number `attempt`: a random time between one half and all of a maximum that doubles
/// with each attempt.
fn backoff(attempt: u32, random: u64) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(1 << attempt.min(16)).min(LONGEST_PAUSE);
    let half = longest / 2;
    half + Duration::from_micros(random % u64::try_from(half.as_micros()).unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_random_and_double_up_to_a_maximum() {
        for random in [0, 1, 9_999, u64::MAX] {
            assert!(backoff(0, random) >= FIRST_PAUSE / 2 && backoff(0, random) <= FIRST_PAUSE);
            assert!(backoff(4, random) > backoff(1, random));
            assert!(backoff(u32::MAX, random) <= LONGEST_PAUSE);
        }
        assert_ne!(backoff(1, 1), backoff(1, 2));
    }

    #[test]
    fn a_commit_is_recognized_by_its_transaction_id() {
        let id = |text: &str| txn_id(text.as_bytes()).unwrap();
        assert_eq!(id("{\"commitInfo\":{\"txnId\":\"a\"}}\n{\"torn").as_deref(), Some("a"));
        assert_eq!(
            id("\n{\"txn\":{\"appId\":\"b\",\"version\":1}}\n{\"commitInfo\":{\"txnId\":\"c\"}}").as_deref(),
            Some("c")
        );
        assert_eq!(id("{\"commitInfo\":{}}\n{\"commitInfo\":{\"txnId\":\"d\"}}"), None);
        assert_eq!(id(""), None);
        assert!(txn_id(b"{\"commitInfo\":{\"txnId\":\"a\"").is_err());
    }
}
