//! Commits for which an external coordinator decides which writer gets a version.
//!
//! The protocol is the same as in the JVM's `BaseExternalLogStore`, so that writers of both kinds may commit to the
//! same table at the same time. `T(N)` is a file with the content of version N, and `E(N)` is the coordinator's entry
//! for version N.
//!
//! ```text
//! 0  N.json must not exist
//! 1  N-1.json must exist; if E(N-1) is not complete, it is recovered
//! 2  put T(N) = _delta_log/.tmp/N.json.<uuid>
//! 3  put E(N) = (T(N), not complete) unless there is one      ← decides
//! 4  create N.json with the bytes of T(N) unless it exists
//! 5  E(N) becomes complete, and T(N) is deleted
//! ```
//!
//! To *recover* an entry that is not complete is to do steps 4 and 5 with the content of T(N). Every listing of the log
//! recovers the newest entry first. A commit that is read by name but missing is recovered as well.
//!
//! This is why no commit is lost or duplicated, with writers of both kinds, on stores with or without put-if-absent:
//!
//! - **There is one winner.** A process that writes `N.json`, either the winner of step 3 or a recovery, takes the
//!   content from the T(N) in E(N). E(N) is only put once, so all writes of `N.json` have the same content, and it does
//!   not matter which is the last. (The JVM's writer checks whether the file exists and may still replace it a moment
//!   later. On a store with conditional puts, ours cannot.)
//! - **The entry may have expired.** E(N) is deleted a day after it became complete, when `N.json` has long existed. A
//!   writer that passed step 0 before `N.json` existed could then put its own E(N) and seem to win. Therefore step 4
//!   looks at `N.json` again: if it has other content, that commit stays, and this writer has lost. The same applies to
//!   concurrent writers that do not use the coordinator and create `N.json` with a condition.
//! - **Readers see every acknowledged commit.** The JVM's writer acknowledges a commit after step 3. E(N+1) is only put
//!   if `N.json` exists (step 1). So only the newest entry can lack its file, and a listing copies that file before it
//!   lists.
//! - **A lost response does no harm.** The name of T(N) is unique to this attempt, so if E(N) contains it, this writer
//!   has put the entry. If neither the put nor the query after it gets a response, the outcome is unknown. The writer
//!   (`commit::put`) then reads `N.json` back, which also recovers it.
//! - **Recovery may happen several times, even concurrently.** It always creates the same content, and completes the
//!   entry only if the entry still contains the same T(N). T(N) is only deleted when E(N) is complete, and then
//!   `N.json` exists. A recovery that does not find T(N) looks for `N.json` again.
//! - **After a crash**, there may be a file that is never read (after step 2), an entry that the next reader or writer
//!   recovers (after step 3 or 4), or nothing left to do (after step 5).
//!
//! A writer that neither uses the coordinator nor creates commits with a condition may overwrite commits of other
//! writers, and they may overwrite its commits. A writer that uses conditions but not the coordinator is safe together
//! with our writers, but not with the JVM's, which may replace its commit between their check and their copy.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::{PutMode, PutPayload};
use uuid::Uuid;

use super::coordinator::{CommitCoordinator, CoordinatorEntry};
use super::{Backend, PutOutcome, Storage};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::log_name::{LOG_DIRECTORY, LogFileName};
use crate::runtime::interrupt;

/// The maximum number of attempts to put an entry or a file. An attempt is repeated if the entry or the file cannot be
/// found after the put. When all attempts have failed, `commit::put` reads the commit back, and puts it again if it is
/// missing.
const TRIES: u32 = 3;
/// The pause after the first attempt to put an entry or a file. It doubles after each further attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The coordinator that decides the commits of a table.
#[derive(Debug)]
pub(super) struct Coordination {
    coordinator: Arc<dyn CommitCoordinator>,
    table_path: String,
    /// Whether the coordinator belongs to the store and uses the store's clients.
    is_of_store: bool,
}

impl Coordination {
    /// Returns an id that distinguishes this coordinator from other coordinators of the same store, as long as it is in
    /// use.
    pub(super) fn id(&self) -> usize {
        if self.is_of_store { 0 } else { Arc::as_ptr(&self.coordinator).addr() }
    }
}

/// Who has put the entry that the coordinator has.
enum Claim {
    Own,
    Foreign(CoordinatorEntry),
    Unknown(Error),
}

impl Storage {
    /// Returns the same table, but lets `coordinator` decide its commits.
    ///
    /// All writers of the table must use the same coordinator. Readers must use it, too, to see a commit whose writer
    /// has died before copying it to the log. In that case the reader copies it, which requires permission to write.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use std::sync::{Arc, Mutex};
    ///
    /// use deltalog::{CommitCoordinator, CoordinatorEntry, Result, Storage};
    ///
    /// /// Coordinates the threads of one process.
    /// #[derive(Debug, Default)]
    /// struct InProcess(Mutex<BTreeMap<(String, String), CoordinatorEntry>>);
    ///
    /// fn key(entry: &CoordinatorEntry) -> (String, String) {
    ///     (entry.table_path.clone(), entry.file_name.clone())
    /// }
    ///
    /// impl CommitCoordinator for InProcess {
    ///     fn put_if_absent(&self, entry: &CoordinatorEntry) -> Result<bool> {
    ///         let mut entries = self.0.lock().unwrap();
    ///         let is_new = !entries.contains_key(&key(entry));
    ///         entries.entry(key(entry)).or_insert_with(|| entry.clone());
    ///         Ok(is_new)
    ///     }
    ///
    ///     fn get(&self, table_path: &str, file_name: &str) -> Result<Option<CoordinatorEntry>> {
    ///         Ok(self.0.lock().unwrap().get(&(table_path.to_owned(), file_name.to_owned())).cloned())
    ///     }
    ///
    ///     fn newest(&self, table_path: &str) -> Result<Option<CoordinatorEntry>> {
    ///         let entries = self.0.lock().unwrap();
    ///         Ok(entries.values().rfind(|entry| entry.table_path == table_path).cloned())
    ///     }
    ///
    ///     fn complete(&self, entry: &CoordinatorEntry) -> Result<()> {
    ///         let mut entries = self.0.lock().unwrap();
    ///         let own = entries.get_mut(&key(entry)).filter(|found| found.temp_path == entry.temp_path);
    ///         own.into_iter().for_each(|own| own.is_complete = true);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let location = directory.path().to_str().unwrap();
    /// let storage = Storage::open(location, [])?.with_coordinator(Arc::new(InProcess::default()));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_coordinator(self, coordinator: Arc<dyn CommitCoordinator>) -> Self {
        let scheme = if self.url.scheme() == "s3" { "s3a" } else { self.url.scheme() }.to_owned();
        self.coordinated_by(coordinator, &scheme, false)
    }

    /// Does the same as [`Storage::with_coordinator`] for the coordinator that the store's options configure.
    #[cfg(feature = "_cloud")]
    pub(super) fn coordinated_by_store(self, coordinator: Arc<dyn CommitCoordinator>, scheme: &str) -> Self {
        self.coordinated_by(coordinator, scheme, true)
    }

    fn coordinated_by(
        mut self,
        coordinator: Arc<dyn CommitCoordinator>,
        scheme: &str,
        is_of_store: bool,
    ) -> Self {
        let table_path = self.table_path(scheme);
        self.coordination = Some(Arc::new(Coordination { coordinator, table_path, is_of_store }));
        self
    }

    /// Returns the table's location in the form in which Hadoop's `Path` shows it.
    pub(super) fn table_path(&self, scheme: &str) -> String {
        let authority = self.url.authority();
        match authority {
            "" => format!("{scheme}:/{}", self.base),
            _ => format!("{scheme}://{authority}/{}", self.base),
        }
    }

    /// If the file `path` is a commit, returns the coordinator that decides about it, the file's name in the log, and
    /// its version.
    fn coordination_of<'a>(&self, path: &'a str) -> Option<(&Coordination, &'a str, u64)> {
        let coordination = self.coordination.as_deref()?;
        let name = path.strip_prefix(LOG_DIRECTORY)?.strip_prefix('/')?;
        match LogFileName::parse(name) {
            Some(LogFileName::Commit(version)) => Some((coordination, name, version)),
            _ => None,
        }
    }

    /// Creates a commit by the coordinator's protocol. Returns `None` if there is no coordinator, or if the file is not
    /// a commit.
    ///
    /// # Errors
    /// Returns the same errors as [`Storage::put_if_absent`]. After an error, nothing was committed.
    pub(super) fn put_coordinated(&self, path: &str, bytes: &PutPayload) -> Result<Option<PutOutcome>> {
        let Some((with, name, version)) = self.coordination_of(path) else { return Ok(None) };
        if self.head_stored(path)?.is_some() {
            return Ok(Some(PutOutcome::AlreadyExists));
        }
        self.ensure_previous(with, version)?;
        let temp_path = format!(".tmp/{name}.{}", Uuid::new_v4());
        let entry = CoordinatorEntry::new(&with.table_path, name, temp_path);
        self.put_temporary(&entry, bytes)?;
        Ok(Some(match self.claim(with, &entry)? {
            Claim::Unknown(error) => PutOutcome::Unknown(error),
            Claim::Foreign(found) => {
                self.delete_temporary(&entry);
                if found.is_complete && self.head_stored(path)?.is_none() {
                    return Err(Error::invalid_argument(format!(
                        "the coordinator has an entry for {name} of '{}', but the log does not have the file",
                        with.table_path
                    ))
                    .in_table(self.url())
                    .with_hint(
                        "if an earlier table at this location was deleted, delete its entries as well",
                    ));
                }
                PutOutcome::AlreadyExists
            }
            Claim::Own => match self.publish(path, &Bytes::from(bytes.clone())) {
                Err(error) => PutOutcome::Unknown(error),
                Ok(is_own) => {
                    self.acknowledge(with, &entry);
                    if is_own { PutOutcome::Created } else { PutOutcome::AlreadyExists }
                }
            },
        }))
    }

    /// Makes sure that the commit before `version` is in the log, recovering it if necessary.
    fn ensure_previous(&self, with: &Coordination, version: u64) -> Result<()> {
        let Some(previous) = version.checked_sub(1) else { return Ok(()) };
        let name = LogFileName::Commit(previous);
        let entry = with.coordinator.get(&with.table_path, &name.to_string());
        match entry.map_err(|error| error.in_table(self.url()))? {
            Some(entry) if !entry.is_complete => self.recover(with, &entry),
            _ if self.head_stored(&name.path())?.is_some() => Ok(()),
            _ => Err(Error::corrupt_log(format!(
                "version {version} cannot be committed: the log does not have the version before it"
            ))
            .in_table(self.url())
            .at_path(name.path())),
        }
    }

    /// Puts an entry, and determines which entry the coordinator has afterwards.
    ///
    /// # Errors
    /// If the coordinator has refused the first request, which then had no effect.
    fn claim(&self, with: &Coordination, entry: &CoordinatorEntry) -> Result<Claim> {
        let mut last = None;
        for attempt in 0..TRIES {
            match with.coordinator.put_if_absent(entry) {
                Ok(true) => return Ok(Claim::Own),
                Ok(false) => {}
                Err(error) => last = Some(error.in_table(self.url())),
            }
            match with.coordinator.get(&entry.table_path, &entry.file_name) {
                Ok(Some(found)) if found.temp_path == entry.temp_path => return Ok(Claim::Own),
                Ok(Some(found)) => return Ok(Claim::Foreign(found)),
                // Either the entry was deleted in between, or the put has not taken effect yet. If it takes effect
                // later, the next put of the same entry finds it.
                Ok(None) => {}
                Err(error) => return Ok(Claim::Unknown(error.in_table(self.url()))),
            }
            if attempt == 0 {
                last = match last {
                    Some(error) if is_refusal(&error) => return Err(error),
                    last => last,
                };
            }
            pause(attempt);
        }
        Ok(Claim::Unknown(last.unwrap_or_else(|| {
            Error::new(
                ErrorKind::Unavailable,
                "the coordinator reports an entry as existing, but cannot find it",
            )
            .with_reason("contradiction")
            .in_table(self.url())
        })))
    }

    /// Creates a file of the log, unless it exists. Returns whether the file then has this content.
    fn publish(&self, path: &str, bytes: &Bytes) -> Result<bool> {
        let mut last = None;
        for attempt in 0..TRIES {
            // The file is read first, because a store that ignores the condition of a create would replace an existing
            // file.
            let put = match self.get_stored(path) {
                Ok(Some(found)) => return Ok(found == *bytes),
                Ok(None) => self.create_or_put(path, bytes),
                Err(error) => Err(error),
            };
            match put {
                Ok(PutOutcome::Created) => return Ok(true),
                Ok(PutOutcome::AlreadyExists) => continue,
                Ok(PutOutcome::Unknown(error)) | Err(error) => last = Some(error),
            }
            pause(attempt);
        }
        Err(last.unwrap_or_else(|| {
            Error::new(ErrorKind::Unavailable, "the store reports the file as existing, but cannot find it")
                .at_path(path)
                .in_table(self.url())
        }))
    }

    /// Creates a file. In a store without conditional puts, an ordinary put is used.
    fn create_or_put(&self, path: &str, bytes: &Bytes) -> Result<PutOutcome> {
        let Backend::Remote(store) = &self.backend else { return self.put_unchecked(path, bytes.clone()) };
        match store.create(self.path(path)?, bytes.clone().into()) {
            Err(failure) if failure.is_not_implemented() => {
                let put = store.put(self.path(path)?, bytes.clone().into(), PutMode::Overwrite);
                put.map(|()| PutOutcome::Created).map_err(|failure| self.error(path, failure))
            }
            Ok(_) => Ok(PutOutcome::Created),
            Err(failure) if failure.is_existing() => Ok(PutOutcome::AlreadyExists),
            Err(failure) => Ok(PutOutcome::Unknown(self.error(path, failure))),
        }
    }

    fn put_temporary(&self, entry: &CoordinatorEntry, bytes: &PutPayload) -> Result<()> {
        let path = temporary_path(entry);
        if let Backend::Remote(store) = &self.backend {
            let put = store.put(self.path(&path)?, bytes.clone(), PutMode::Overwrite);
            return put.map_err(|failure| self.error(&path, failure));
        }
        let mut file = self.create_file(&path)?;
        for part in bytes {
            file.write_all(part).map_err(|error| self.not_written(&path, error))?;
        }
        file.finish().map(drop)
    }

    /// Deletes the temporary file of an entry, because it is no longer needed.
    fn delete_temporary(&self, entry: &CoordinatorEntry) {
        let path = temporary_path(entry);
        if let Err(error) = self.delete(&path) {
            tracing::debug!(table = self.url(), path, %error, "a temporary file of a commit was left behind");
        }
    }

    /// Tells the coordinator that the file of an entry is in the log. If this succeeds, deletes the temporary file. If
    /// it fails, there is no harm: the next process that finds the entry tries again.
    fn acknowledge(&self, with: &Coordination, entry: &CoordinatorEntry) {
        match with.coordinator.complete(entry) {
            Ok(()) => self.delete_temporary(entry),
            Err(error) => tracing::warn!(
                table = self.url(),
                file = entry.file_name,
                %error,
                "the coordinator could not be notified that a commit is in the log"
            ),
        }
    }

    /// Copies the temporary file of an entry to the log, unless the commit is already there.
    fn recover(&self, with: &Coordination, entry: &CoordinatorEntry) -> Result<()> {
        let path = format!("{LOG_DIRECTORY}/{}", entry.file_name);
        if self.head_stored(&path)?.is_none() {
            match self.get_stored(&temporary_path(entry))? {
                Some(bytes) => {
                    self.publish(&path, &bytes)?;
                    tracing::info!(table = self.url(), path, "a commit was copied to the log for its writer");
                }
                // Another process has copied it first.
                None if self.head_stored(&path)?.is_some() => {}
                None => {
                    return Err(Error::corrupt_log(
                        "the coordinator has an entry for this commit, but neither its file nor its temporary file \
                         exists",
                    )
                    .in_table(self.url())
                    .at_path(path)
                    .with_hint(format!(
                        "if the table was deleted, delete the entries of '{}' as well; otherwise, restore {}",
                        entry.table_path,
                        temporary_path(entry)
                    )));
                }
            }
        }
        self.acknowledge(with, entry);
        Ok(())
    }

    /// Prepares a listing of `directory`: if it is the log, and the newest commit is missing there, copies this commit
    /// to the log.
    pub(super) fn recover_newest(&self, directory: &str) -> Result<()> {
        let Some(with) = self.coordination.as_deref().filter(|_| directory == LOG_DIRECTORY) else {
            return Ok(());
        };
        let newest = with.coordinator.newest(&with.table_path).map_err(|error| error.in_table(self.url()))?;
        match newest {
            Some(entry) if !entry.is_complete => self.recover(with, &entry),
            _ => Ok(()),
        }
    }

    /// Copies a missing commit to the log, if the coordinator has an entry for it. Returns whether the coordinator has
    /// one. If so, the commit now exists, unless a clean-up has deleted it. If the entry is already complete, nothing
    /// is copied, because the writer or another process has copied the commit before.
    pub(super) fn recover_missing(&self, path: &str) -> Result<bool> {
        let Some((with, name, _)) = self.coordination_of(path) else { return Ok(false) };
        let entry = with.coordinator.get(&with.table_path, name);
        match entry.map_err(|error| error.in_table(self.url()))? {
            Some(entry) if !entry.is_complete => self.recover(with, &entry).map(|()| true),
            entry => Ok(entry.is_some()),
        }
    }

    /// If there is a coordinator, sends it a request to find out whether it responds. Returns whether there is one.
    pub(super) fn ask_coordinator(&self) -> Result<bool> {
        let Some(with) = self.coordination.as_deref() else { return Ok(false) };
        with.coordinator.newest(&with.table_path).map_err(|error| error.in_table(self.url()))?;
        Ok(true)
    }
}

/// Returns the path of the temporary file, relative to the table's root.
fn temporary_path(entry: &CoordinatorEntry) -> String {
    let in_log = format!("{LOG_DIRECTORY}/");
    // Some versions of `deltalake` write the path relative to the table's root instead of the log.
    match entry.temp_path.strip_prefix(&in_log) {
        Some(_) => entry.temp_path.clone(),
        None => in_log + &entry.temp_path,
    }
}

/// Returns whether the failed request is known to have had no effect.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidArgument | ErrorKind::Unsupported)
}

fn pause(attempt: u32) {
    interrupt::sleep(FIRST_PAUSE * (1 << attempt.min(8)));
}
