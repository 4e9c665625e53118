//! A handle for a table that changes: it keeps the newest known snapshot, and refreshes it.
//!
//! ```text
//!   snapshot()          recent_snapshot(max_age)
//!      │                   │ checked longer ago ──► as snapshot()
//!      ▼                   │ else
//!   refresh ──► kept ◄─────┼──► the kept one at once
//!                 ▲        ▼
//!                 └── refresh behind, one at a time
//! ```
//!
//! - The kept snapshot never goes back to an older version of the same table, with one exception: if another table, or
//!   an older copy of the same table, is put at the location, a handle that [`Table::at_place`] has created follows it.
//!   Even such a handle never returns to a state before that.
//! - If a background refresh fails, the kept snapshot only gets older. Once it is too old for a call, the call
//!   refreshes it itself and returns the error. If the table was dropped or replaced, the next call does this
//!   immediately.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{ErrorKind, Result};
use crate::log::is_table;
use crate::runtime::background::{Task, Turn};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// A table with its newest known snapshot. Clones share the snapshot.
///
/// ```
/// use std::time::Duration;
///
/// use deltalog::{Background, Environment, Table};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// let background = Background::new();
/// assert!(Table::exists(&storage)?);
/// let table = Table::open(&storage, &Environment::system().with_background(&background))?;
/// // The snapshot is at most five seconds old, so no request is made to the store.
/// assert_eq!(table.recent_snapshot(Duration::from_secs(5))?.version(), 1);
/// assert_eq!(table.snapshot()?.version(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Table(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    environment: Environment,
    /// Whether the handle also follows another table that is created at the same location. In that case, the kept
    /// snapshot has no open files, and the returned snapshots open files themselves.
    is_place: bool,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    snapshot: Snapshot,
    /// The time when the store was last searched for newer versions, in milliseconds since the epoch; `None` if it must
    /// be searched again.
    checked_ms: Option<i64>,
    is_refreshing: bool,
}

impl Table {
    /// Returns whether there is a table at the location, readable or not. This takes one listing.
    ///
    /// # Errors
    /// Errors from the store.
    pub fn exists(storage: &Storage) -> Result<bool> {
        is_table(storage)
    }

    /// Opens the newest version of a table.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::open`].
    pub fn open(storage: &Storage, environment: &Environment) -> Result<Self> {
        let now_ms = environment.now_ms();
        Ok(Self::new(Snapshot::open(storage, None)?, Some(now_ms), environment))
    }

    /// Returns a handle for the table of a snapshot, which need not be the newest one.
    pub fn of(snapshot: &Snapshot, environment: &Environment) -> Self {
        Self::new(snapshot.clone(), None, environment)
    }

    /// Returns a handle for a table, and the table's newest version, which `open` opens. If the table is dropped and
    /// another one is created at its location, the handle follows the new table.
    ///
    /// # Errors
    /// The errors of `open`.
    #[doc(hidden)]
    pub fn at_place(
        open: impl FnOnce() -> Result<Snapshot>,
        environment: &Environment,
    ) -> Result<(Self, Snapshot)> {
        let now_ms = environment.now_ms();
        let snapshot = open()?;
        let kept =
            Kept { snapshot: snapshot.without_open_files(), checked_ms: Some(now_ms), is_refreshing: false };
        let shared = Shared { environment: environment.clone(), is_place: true, kept: Mutex::new(kept) };
        Ok((Self(Arc::new(shared)), snapshot))
    }

    fn new(snapshot: Snapshot, checked_ms: Option<i64>, environment: &Environment) -> Self {
        let kept = Mutex::new(Kept { snapshot, checked_ms, is_refreshing: false });
        Self(Arc::new(Shared { environment: environment.clone(), is_place: false, kept }))
    }

    /// Returns the newest version. Makes one listing and reads the new commits.
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::refresh`].
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.0.refresh()
    }

    /// Returns a version that was the newest one at most `max_age` ago.
    ///
    /// If the kept version is recent enough, it is returned without a request, and a [`Background`](crate::Background),
    /// if there is one, looks for a newer version. If the kept version is too old, this does the same as
    /// [`Table::snapshot`].
    ///
    /// # Errors
    /// Returns the same errors as [`Snapshot::refresh`].
    pub fn recent_snapshot(&self, max_age: Duration) -> Result<Snapshot> {
        let now_ms = self.0.environment.now_ms();
        let mut kept = self.0.kept();
        // If the clock was set back, the recorded time is in the future and shows no age.
        let age_ms = kept.checked_ms.and_then(|checked| u128::try_from(now_ms.checked_sub(checked)?).ok());
        if max_age.is_zero() || age_ms.is_none_or(|age| age > max_age.as_millis()) {
            drop(kept);
            return self.0.refresh();
        }
        let snapshot = self.0.copy_of(&kept.snapshot);
        let is_needed = !std::mem::replace(&mut kept.is_refreshing, true);
        drop(kept);
        if is_needed && !self.refresh_behind() {
            self.0.kept().is_refreshing = false;
        }
        Ok(snapshot)
    }

    /// Starts a refresh in the background. Returns false if that is not possible.
    fn refresh_behind(&self) -> bool {
        let Some(queue) = self.0.environment.background() else { return false };
        let shared = Arc::downgrade(&self.0);
        let work = Box::new(move |_: Option<&Turn<'_>>| {
            // The handle may have been dropped by now.
            let Some(shared) = shared.upgrade() else { return };
            let shared = Refreshing(shared);
            if let Err(error) = shared.refresh() {
                let table = shared.kept().snapshot.storage().url();
                tracing::warn!(table, %error, "a table could not be refreshed");
            }
        });
        // Handles of the same table with different options are refreshed separately, in lanes of their own.
        let lane = format!("refresh {:p}", Arc::as_ptr(&self.0));
        queue.submit(Task { lane, duty: "refresh", work, is_optional: true }).is_ok()
    }
}

/// While this exists, the table is marked as being refreshed in the background.
struct Refreshing(Arc<Shared>);

impl Deref for Refreshing {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Refreshing {
    fn drop(&mut self) {
        self.0.kept().is_refreshing = false;
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a copy, which is either kept or returned to a caller.
    fn copy_of(&self, snapshot: &Snapshot) -> Snapshot {
        if self.is_place { snapshot.without_open_files() } else { snapshot.clone() }
    }

    /// Refreshes the kept snapshot and returns it. The lock is not held while requests are made.
    fn refresh(&self) -> Result<Snapshot> {
        loop {
            // A version that appears after this moment may be missing from the listing.
            let now_ms = self.environment.now_ms();
            let before = self.copy_of(&self.kept().snapshot);
            let newest = if self.is_place { before.reopen() } else { before.refresh() };
            let mut kept = self.kept();
            let newest = newest.inspect_err(|error| {
                if matches!(error.kind(), ErrorKind::TableReplaced | ErrorKind::NotATable) {
                    kept.checked_ms = None;
                }
            })?;
            let is_unchanged = is_same_version(&kept.snapshot, &before);
            // If another thread has changed the kept snapshot since then, the location may now have another table, or
            // an older copy of this one. It is not known which of the two states is newer, so look again.
            let has_gone_on = is_same(&kept.snapshot, &newest) && kept.snapshot.version() >= before.version();
            if self.is_place && !is_unchanged && !has_gone_on {
                continue;
            }
            let may_go_back = self.is_place && is_unchanged;
            if kept.snapshot.version() > newest.version() && !may_go_back {
                return Ok(self.copy_of(&kept.snapshot));
            }
            kept.snapshot = self.copy_of(&newest);
            // If the clock was ahead, the recorded time is useless.
            let checked_ms = kept.checked_ms.filter(|checked| *checked <= self.environment.now_ms());
            kept.checked_ms = checked_ms.max(Some(now_ms));
            return Ok(newest);
        }
    }
}

/// Returns whether both are versions of the same table.
fn is_same(one: &Snapshot, other: &Snapshot) -> bool {
    one.metadata().id == other.metadata().id
}

fn is_same_version(one: &Snapshot, other: &Snapshot) -> bool {
    is_same(one, other) && one.version() == other.version()
}
