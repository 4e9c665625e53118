//! VACUUM: deletes files that a table no longer needs. (Protocol: "Add File and Remove File" (tombstones), "VACUUM
//! Protocol Check".)
//!
//! ```text
//!   snapshot ──► retained: live files, tombstones younger than the cut-off, their vectors
//!                    │
//!   listing ─────────┼──► candidates: older than the cut-off and not retained ──► dry run: the list
//!   or log,          │         │
//!   or inventory     │   VACUUM START
//!                    │         │
//!   newer commits ───┴──► candidates that no newer commit has added ──► deleted, round by round
//!                              │
//!                         VACUUM END
//! ```
//!
//! Files that are never deleted, and why:
//!
//! - *Live and retained files.* The snapshot is read before the listing. A file that is added later is either new, so
//!   that its age protects it, or it is an old file that RESTORE, a conversion or a clone adds to the table. The
//!   commits after the snapshot are therefore read again before each round of deletions. A risk remains only if such
//!   a commit is made during the few seconds of a round. RESTORE only needs files that are retained, unless it
//!   restores a version from before the retention: it then checks that its files exist, and is refused as long as a
//!   VACUUM that may be deleting them has not recorded its end.
//! - *Files of unfinished writes.* The log does not refer to them yet. They are younger than the retention, which
//!   must be longer than the longest write. Their age is determined by their modification time in the store. The
//!   clock of this process is compared with the store's clock by means of the commit file of `VACUUM START`. If this
//!   process's clock is more than a minute ahead, the store's time is used.
//! - *Hidden files and directories, the log and its sidecars, and other tables in the table's directory*; see
//!   [`visible`].
//! - *Files outside of the table's directory.* Only this directory is listed.
//!
//! Change data files belong to commits, and not to the state of a version. Only their age matters, as in the JVM
//! implementation, so a change data feed reaches as far back as the retention.
//!
//! A shallow clone refers to files of its source table, but the log of the source does not record this. It is not
//! known whether a clone elsewhere still uses a file that was removed here, so a VACUUM of the source breaks the
//! clone, as in every implementation.
//!
//! | file | what it does |
//! | --- | --- |
//! | `request` | the request, and the check that the table allows it |
//! | `retained` | determines the files that the log needs |
//! | `visible` | determines where VACUUM looks for files |
//! | `listing`, `lite`, `inventory` | find files in three different sources |
//! | `candidates` | decides which files may be deleted, and lists them |
//! | `delete` | deletes files in rounds |
//! | `commits` | records the VACUUM in the history |
//! | `last` | records where the next VACUUM that only reads the log begins |

mod candidates;
mod commits;
mod delete;
mod inventory;
mod last;
mod listing;
mod lite;
mod path_set;
mod request;
mod retained;
mod tables;
mod visible;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

pub use candidates::VacuumReason;
pub use request::{VacuumRequest, VacuumSource};
pub(crate) use retained::Retained;
pub(crate) use visible::{CHANGES, Visible, is_hidden, name_of};

use self::commits::Commits;
use self::delete::Deletion;
use self::listing::Found;
use self::request::Retention;
use crate::error::{Error, Result};
use crate::protocol::log_name::LogFileName;
use crate::runtime::environment::Environment;
use crate::runtime::interrupt;
use crate::snapshot::Snapshot;

/// A full VACUUM records a version up to which it has found all removed files. The commit of that version is older
/// than the cut-off by at least this margin, because the clock of a writer that has removed files may differ from the
/// store's clock.
const MARGIN_MS: i64 = 24 * 3600 * 1000;

/// Finds the files that the table of `snapshot` no longer needs. Deletes nothing; [`VacuumPlan::delete`] does that.
///
/// ```
/// use std::time::Duration;
///
/// use deltalog::{Environment, Snapshot, VacuumRequest, plan_vacuum};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (directory, storage) = example_table()?;
/// # std::fs::write(directory.path().join("orphan.parquet"), "").unwrap();
/// let snapshot = Snapshot::open(&storage, None)?;
/// let environment = Environment::system();
/// // Nothing is older than seven days.
/// let plan = plan_vacuum(&snapshot, VacuumRequest::default(), &environment)?;
/// assert_eq!(plan.files(), 0);
///
/// // There is no other writer, so a file that the table does not need was left by one that failed.
/// # std::thread::sleep(Duration::from_millis(20));
/// let request = VacuumRequest::default().retention(Duration::ZERO).enforce_retention(false);
/// let plan = plan_vacuum(&snapshot, request, &environment)?;
/// assert_eq!(plan.files(), 1);
/// for batch in plan.batches() {
///     println!("{:?}", batch?);
/// }
/// assert_eq!(plan.delete()?.files, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns `Unsupported` for a table that cannot be written, is managed by a catalog, or has a retention that cannot
/// be parsed; `InvalidArgument` for a retention that is shorter than the table's; `VersionNotFound` if the log alone
/// does not suffice; `CorruptLog`; and errors from the store.
pub fn plan_vacuum(
    snapshot: &Snapshot,
    request: VacuumRequest,
    environment: &Environment,
) -> Result<VacuumPlan> {
    let newest = snapshot.refresh()?;
    plan(&newest, request, environment).map_err(|error| error.in_table(newest.storage().url()))
}

fn plan(newest: &Snapshot, request: VacuumRequest, environment: &Environment) -> Result<VacuumPlan> {
    let retention = request.check(newest)?;
    let VacuumRequest { source, enforces_retention, kept_versions, custom_metadata, .. } = request;
    let cutoff_ms = cutoff(environment.now_ms(), retention.ms());
    let retained = retained(newest, retention, cutoff_ms, &kept_versions)?;
    let (table, kept) = (newest.storage().url(), retained.len());
    tracing::info!(table, ?source, cutoff_ms, kept, "VACUUM looks for files");
    let mut found = match source {
        VacuumSource::Listing => Found {
            searched_up_to: searched_by_listing(newest, cutoff_ms),
            ..listing::find(newest, &retained, cutoff_ms)?
        },
        VacuumSource::Log => lite::find(newest, &retained, cutoff_ms)?,
        VacuumSource::Inventory(inventory) => inventory::find(newest, inventory, &retained, cutoff_ms)?,
    };
    if !kept_versions.is_empty() {
        // The files of these versions are not deleted now, but the next VACUUM may have to delete them.
        found.searched_up_to = None;
    }
    tracing::info!(table, files = found.files.len(), bytes = found.files.bytes(), "VACUUM has found files");
    Ok(VacuumPlan {
        snapshot: newest.clone(),
        retention,
        enforces_retention,
        cutoff_ms,
        found,
        commits: Commits { custom_metadata, environment: environment.clone() },
    })
}

/// Returns the cut-off: only a file that was written or removed before this time may be deleted. Times in stores and
/// logs are whole milliseconds. If the retention is 0, the cut-off is therefore the next millisecond, so that a file
/// with the current time counts as old. This is safe, because later commits are always read.
fn cutoff(now_ms: i64, retention_ms: i64) -> i64 {
    if retention_ms == 0 { now_ms.saturating_add(1) } else { now_ms.saturating_sub(retention_ms) }
}

/// Returns the files that must be kept.
fn retained(newest: &Snapshot, retention: Retention, cutoff_ms: i64, versions: &[u64]) -> Result<Retained> {
    let mut retained = Retained::of(newest, cutoff_ms)?;
    if retention.ms() > retention.configured_ms {
        let times = newest.commit_times(Some(newest.version()))?;
        let first = times.first_at_or_after(cutoff_ms)?.unwrap_or(u64::MAX);
        let commits: Vec<_> =
            times.commits().iter().filter(|commit| commit.version >= first).copied().collect();
        retained.keep_removed_by(newest, &commits, cutoff_ms)?;
    }
    for version in versions {
        retained.keep_live(&Snapshot::open(newest.storage(), Some(*version))?)?;
    }
    Ok(retained)
}

/// Returns the version up to which a listing has certainly found all removed files.
fn searched_by_listing(newest: &Snapshot, cutoff_ms: i64) -> Option<u64> {
    let found = newest
        .commit_times(Some(newest.version()))
        .and_then(|times| times.last_at_or_before(cutoff_ms.saturating_sub(MARGIN_MS)));
    found.unwrap_or_else(|error| {
        // The version only makes later VACUUMs faster, so this VACUUM does not fail without it.
        let table = newest.storage().url();
        tracing::warn!(table, %error, "the version up to which VACUUM has searched is unknown and not recorded");
        None
    })
}

/// A list of files that a table no longer needs. Nothing has been deleted yet.
#[derive(Debug)]
#[must_use = "a plan deletes nothing by itself"]
pub struct VacuumPlan {
    snapshot: Snapshot,
    retention: Retention,
    enforces_retention: bool,
    cutoff_ms: i64,
    found: Found,
    commits: Commits,
}

/// The result of a VACUUM.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vacuumed {
    /// The number of files that were deleted.
    pub files: u64,
    /// The total size of the deleted files in bytes, as far as it is known.
    pub bytes: u64,
    /// The number of directories that were removed because they had been empty for longer than the retention. Only
    /// local tables have directories.
    pub removed_directories: u64,
    /// The version of the commit `VACUUM END`.
    pub version: u64,
}

impl VacuumPlan {
    /// Returns the version that the plan was made for.
    pub fn version(&self) -> u64 {
        self.snapshot.version()
    }

    /// Returns the number of files to delete.
    pub fn files(&self) -> u64 {
        self.found.files.len()
    }

    /// Returns the total size of the files to delete in bytes, as far as it is known.
    pub fn bytes(&self) -> u64 {
        self.found.files.bytes()
    }

    /// Returns the cut-off in milliseconds since the epoch: files that were removed before this time are not retained.
    pub fn cutoff_ms(&self) -> i64 {
        self.cutoff_ms
    }

    /// Returns the paths of the files, decoded and relative to the table's root, in no particular order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let chunks = self.found.files.chunks().iter();
        chunks.flat_map(|chunk| (0..chunk.len()).map(|row| chunk.paths.value(row)))
    }

    /// Returns the schema of [`VacuumPlan::batches`].
    pub fn schema() -> SchemaRef {
        candidates::schema()
    }

    /// Returns the files as batches with the columns `path: Utf8`, `size: Int64`, `modification_time: Timestamp(ms,
    /// UTC)` and `reason: Utf8`, the name of a [`VacuumReason`]. If only the log was read, the time is the time at
    /// which the file was removed, and the size of deletion vectors is not known (0).
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> {
        self.found.files.batches()
    }

    /// Deletes the files, except for files that the table needs again, and commits `VACUUM START` and `VACUUM END`.
    ///
    /// # Errors
    /// Returns the errors of [`plan_vacuum`] that concern the request and the table, `CommitConflict` and other errors
    /// of a commit, and errors from the store. Nothing is deleted before `VACUUM START` is committed. After an error
    /// that occurs later, some files may have been deleted. A VACUUM can be repeated.
    pub fn delete(&self) -> Result<Vacuumed> {
        let url = self.snapshot.storage().url();
        self.run().map_err(|error: Error| error.in_table(url))
    }

    fn run(&self) -> Result<Vacuumed> {
        let newest = self.snapshot.refresh()?;
        request::check(&newest, Some(self.retention.ms()), self.enforces_retention)?;
        let (files, bytes) = (self.files(), self.bytes());
        let start = self.commits.start(&newest, self.retention, self.enforces_retention, files, bytes)?;
        let mut deletion = Deletion {
            planned: &self.snapshot,
            newest: newest.refresh()?,
            cutoff_ms: self.cutoff_ms,
            retention_ms: self.retention.ms(),
            enforces_retention: self.enforces_retention,
            has_checksums: self.found.has_checksums,
            revived: Retained::default(),
            known_version: self.snapshot.version(),
            deleted: 0,
            deleted_bytes: 0,
        };
        let done = self
            .cutoff_of_store(start)
            .and_then(|cutoff_ms| deletion.run(&self.found.files, cutoff_ms))
            .and_then(|()| self.remove_directories(deletion.cutoff_ms));
        let newest = deletion.newest;
        let removed_directories = match done {
            Ok(removed) => removed,
            Err(error) => {
                let record = || newest.refresh().and_then(|newest| self.commits.failed(&newest));
                if let Err(failure) = interrupt::shielded(record) {
                    let table = newest.storage().url();
                    tracing::warn!(table, error = %failure, "the failure of VACUUM could not be recorded");
                }
                return Err(error);
            }
        };
        let newest = newest.refresh()?;
        let version = self.commits.completed(&newest, deletion.deleted, self.found.directories)?;
        if let Some(version) = self.found.searched_up_to
            && deletion.cutoff_ms == self.cutoff_ms
        {
            last::record(&newest, version);
        }
        Ok(Vacuumed { files: deletion.deleted, bytes: deletion.deleted_bytes, removed_directories, version })
    }

    /// Returns the cut-off by the store's clock, given by the modification time of the commit file of the version
    /// `start`.
    fn cutoff_of_store(&self, start: u64) -> Result<i64> {
        let found = self.snapshot.storage().head(&LogFileName::Commit(start).path())?;
        // The commit file may have been deleted by a cleanup, or the store may not know its time.
        let now_ms = found.map_or(i64::MAX, |file| file.modified_ms);
        Ok(cutoff(now_ms, self.retention.ms()))
    }

    /// Removes directories that have been empty for longer than the retention, the innermost first.
    fn remove_directories(&self, cutoff_ms: i64) -> Result<u64> {
        let mut directories = self.found.nested.clone();
        directories.sort_unstable_by_key(|directory| std::cmp::Reverse(directory.len()));
        self.snapshot.storage().delete_old_empty_directories(&directories, cutoff_ms)
    }
}
