//! Time, sleep, randomness, background work and settings, which are passed in so that tests can control them.

mod auto_compaction;
mod file_format;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;

pub use auto_compaction::AutoCompaction;
pub use file_format::{ColumnFormat, FileFormat};

use crate::runtime::background::{Background, Queue};
use crate::runtime::interrupt;

/// The source of time, pauses, new ids and random numbers, together with the settings for background work, for
/// compaction after a write, and for the encoding of data files. Cheap to clone.
#[derive(Clone)]
pub struct Environment {
    clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    uuids: Arc<dyn Fn() -> Uuid + Send + Sync>,
    sleep: Arc<dyn Fn(Duration) + Send + Sync>,
    random: Arc<dyn Fn() -> u64 + Send + Sync>,
    background: Option<Arc<Queue>>,
    auto_compaction: AutoCompaction,
    file_format: Arc<FileFormat>,
    commits: Option<Arc<Mutex<Vec<u64>>>>,
}

impl Environment {
    /// Creates an environment with the system's clock, pauses and random numbers.
    pub fn system() -> Self {
        Self::new(|| chrono::Utc::now().timestamp_millis(), Uuid::new_v4)
    }

    /// Creates an environment with this clock, which returns milliseconds since the epoch, and this source of ids.
    /// Pauses and random numbers come from the system.
    pub fn new(
        clock: impl Fn() -> i64 + Send + Sync + 'static,
        uuids: impl Fn() -> Uuid + Send + Sync + 'static,
    ) -> Self {
        Self {
            clock: Arc::new(clock),
            uuids: Arc::new(uuids),
            sleep: Arc::new(interrupt::sleep),
            random: Arc::new(random),
            background: None,
            auto_compaction: AutoCompaction::default(),
            file_format: Arc::default(),
            commits: None,
        }
    }

    /// Replaces the function that pauses the calling thread.
    #[must_use]
    pub fn with_sleep(self, sleep: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self { sleep: Arc::new(sleep), ..self }
    }

    /// Replaces the source of random numbers.
    #[must_use]
    pub fn with_random(self, random: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { random: Arc::new(random), ..self }
    }

    /// Sets the `background` for the work that follows a commit. Without it, a commit does this work before it returns,
    /// always in the same order, which suits tests and short programs.
    #[must_use]
    pub fn with_background(self, background: &Background) -> Self {
        Self { background: Some(Arc::clone(background.queue())), ..self }
    }

    /// Sets how small files are compacted after a write. If this is not set, the table's properties apply.
    #[must_use]
    pub fn with_auto_compaction(self, auto_compaction: AutoCompaction) -> Self {
        Self { auto_compaction, ..self }
    }

    /// Returns how small files are compacted after a write.
    pub(crate) fn auto_compaction(&self) -> &AutoCompaction {
        &self.auto_compaction
    }

    /// Sets how data files are encoded. If this is not set, the table's properties apply.
    #[must_use]
    pub fn with_file_format(self, file_format: FileFormat) -> Self {
        Self { file_format: Arc::new(file_format), ..self }
    }

    /// Returns how data files are encoded.
    pub(crate) fn file_format(&self) -> &FileFormat {
        &self.file_format
    }

    /// Appends the version of each commit to `commits`, for a caller that makes several commits in one call.
    #[must_use]
    pub fn with_commits_in(self, commits: &Arc<Mutex<Vec<u64>>>) -> Self {
        Self { commits: Some(Arc::clone(commits)), ..self }
    }

    /// Records a commit.
    pub(crate) fn note_commit(&self, version: u64) {
        if let Some(commits) = &self.commits {
            commits.lock().unwrap_or_else(PoisonError::into_inner).push(version);
        }
    }

    /// Returns a copy without background work: its commits finish all work before they return.
    pub(crate) fn without_background(&self) -> Self {
        Self { background: None, ..self.clone() }
    }

    /// Returns the queue for the work that follows a commit.
    pub(crate) fn background(&self) -> Option<&Arc<Queue>> {
        self.background.as_ref()
    }

    /// Returns the time in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// Returns how many milliseconds have passed since the time `began_ms`.
    pub(crate) fn ms_since(&self, began_ms: i64) -> u64 {
        u64::try_from(self.now_ms().saturating_sub(began_ms)).unwrap_or_default()
    }

    /// Returns a new id.
    pub fn uuid(&self) -> Uuid {
        (self.uuids)()
    }

    /// Pauses the calling thread.
    pub fn sleep(&self, duration: Duration) {
        (self.sleep)(duration);
    }

    /// Returns a random number.
    pub fn random(&self) -> u64 {
        (self.random)()
    }
}

/// Returns a random number from the system. Both halves of a random UUID have fixed bits, so the halves are combined.
fn random() -> u64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    high.rotate_left(32) ^ low
}

impl Default for Environment {
    fn default() -> Self {
        Self::system()
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Environment")
    }
}
