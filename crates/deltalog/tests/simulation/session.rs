//! The state of a simulated process that uses deltalog: a table, an environment, a handle, and the record of its
//! results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use deltalog::engine::protocol::Add;
use deltalog::engine::replay::{FileColumn, FileColumns, adds_of};
use deltalog::{
    AutoCompaction, Background, Environment, Error, ErrorKind, PendingWrite, Result, RowsRead, SaveMode,
    Snapshot, Storage, WriteRequest, col, find_commit, lit,
};
use deltalog_testkit::judge::{CLASSES, Found, History, Intent, Outcome, View, Write};
use deltalog_testkit::simulation::Process;
use deltalog_testkit::store::Objects;
use uuid::Uuid;

use crate::behind::wake;
use crate::cast::Cast;
use crate::place::ROOT;
use crate::rows::batch;
use crate::verbs::Tail;

/// The maximum deviation of a process's clock.
pub const MOST_SKEW_MS: u64 = 60_000;

/// The reasons for conflicts about the table itself, not about its rows.
const ABOUT_THE_TABLE: [&str; 5] =
    ["metadata_changed", "protocol_changed", "domain_changed", "table_replaced", "log_cleaned_up"];

/// How many times a search for a commit is tried if the store does not answer.
const MOST_SEARCHES: u32 = 6;

/// A process from its start to its end. This state is lost when the process crashes.
pub struct Session<'a> {
    pub process: &'a Process,
    pub storage: Storage,
    pub environment: Environment,
    /// A snapshot that is refreshed from time to time.
    pub handle: Option<Snapshot>,
    /// The stream that the process reads.
    pub tail: Option<Tail>,
    /// How many streams the process has begun to read.
    pub tails: u64,
    /// The commits of this process, with their ids.
    pub commits: Vec<(String, u64)>,
    pub cast: &'a Cast,
    history: &'a History,
    /// The background work, if a second thread does it.
    background: Option<Arc<Background>>,
    files: u32,
    marks: u32,
}

/// Data files that were written but not committed yet.
pub struct Files {
    pub adds: Vec<Add>,
    /// The rows of each file in order, by the path of the file.
    pub rows: BTreeMap<String, Vec<i64>>,
}

impl<'a> Session<'a> {
    pub fn new(process: &'a Process, history: &'a History, cast: &'a Cast) -> Self {
        let [clock, ids, pauses, luck] = [(); 4].map(|()| process.clone());
        let skew_ms = process.below(2 * MOST_SKEW_MS) as i64 - MOST_SKEW_MS as i64;
        let environment =
            Environment::new(move || clock.now_ms() + skew_ms, move || Uuid::from_u128(ids.wide_random()))
                .with_sleep(move |duration| pauses.sleep(duration))
                .with_random(move || luck.random());
        let mut compaction = AutoCompaction::default();
        if cast.compacts_from > 0 {
            (compaction.enabled, compaction.least_files) = (Some(true), cast.compacts_from);
        }
        let environment = environment.with_auto_compaction(compaction);
        Self {
            process,
            storage: cast.place.open(process),
            environment,
            handle: None,
            tail: None,
            tails: 0,
            commits: Vec::new(),
            cast,
            history,
            background: None,
            files: 0,
            marks: 0,
        }
    }

    /// Makes the second thread do the background work of commits.
    pub fn do_behind(&mut self, background: &Arc<Background>) {
        self.environment = self.environment.clone().with_background(background);
        self.background = Some(Arc::clone(background));
    }

    /// Performs an operation on the table, and records it with its outcome. Returns the outcome.
    ///
    /// `work` receives the number of the operation, so that it can record the intent more precisely.
    pub fn operate(
        &mut self,
        verb: &'static str,
        intent: Intent,
        work: impl FnOnce(&mut Self, &dyn Fn(Intent)) -> Result<Outcome>,
    ) -> Outcome {
        let name = format!("{}.{}", self.process.name(), self.process.life());
        let before = self.process.faults();
        let (history, began) = (self.history, self.process.tick());
        let number = history.begin(name, verb, began, intent);
        self.process.note(format!("begins {verb}"));
        let outcome =
            work(self, &|intent| history.intend(number, intent)).unwrap_or_else(|error| outcome(&error));
        // If the process has crashed and code caught the unwinding, this unwinds again.
        let ended = self.process.tick();
        self.process.note(format!("ends {verb}: {outcome:?}"));
        history.end(number, ended, outcome.clone(), self.process.faults() - before);
        if let Some(background) = &self.background {
            wake(self.process, background);
        }
        match &outcome {
            Outcome::Committed { version, txn_id } => self.commits.push((txn_id.clone(), *version)),
            Outcome::Unknown { txn_id, .. } => self.find_out(number, txn_id),
            _ => {}
        }
        outcome
    }

    /// Records the result of an operation that changes no rows. It does not matter whether its commit exists, and it
    /// may be abandoned because the table has changed.
    ///
    /// # Errors
    /// Any other error.
    pub fn maintained<T: Debug>(&self, done: Result<T>) -> Result<Outcome> {
        let note = match done {
            Ok(done) => format!("has done {done:?}"),
            Err(error) if error.kind() == ErrorKind::CommitStateUnknown => {
                format!("does not know its commit: {error}")
            }
            Err(error)
                if error.kind() == ErrorKind::CommitConflict
                    && error.reason().is_some_and(|reason| ABOUT_THE_TABLE.contains(&reason)) =>
            {
                format!("gives up: {error}")
            }
            Err(error) => return Err(error),
        };
        self.process.note(note);
        Ok(Outcome::Done)
    }

    /// Looks for a commit with an unknown outcome at a time when no earlier request can still take effect.
    fn find_out(&self, number: usize, txn_id: &str) {
        self.process.sleep(Process::SETTLED);
        for _ in 0..MOST_SEARCHES {
            if let Ok(found) = find_commit(&self.storage, txn_id) {
                let found = found.map_or(Found::Nowhere, Found::At);
                self.process.note(format!("finds {txn_id}: {found:?}"));
                return self.history.found(number, self.process.tick(), found);
            }
            self.process.sleep(Duration::from_secs(1));
        }
    }

    /// Opens the newest version, or, once in `chances` times on average, returns the handle's version.
    pub fn base(&self, chances: u64) -> Result<Snapshot> {
        match self.handle.as_ref().filter(|_| self.process.below(chances) == 0) {
            Some(handle) => Ok(handle.clone()),
            None => Snapshot::open(&self.storage, None),
        }
    }

    /// Returns a request to write. A new table gets the properties of the run.
    pub fn request(&self, mode: SaveMode) -> WriteRequest {
        let mut request = WriteRequest::new(self.cast.schema(), mode);
        request.configuration.clone_from(&self.cast.properties);
        request
    }

    /// Returns the intent of `write` with these files.
    pub fn adding(&self, files: &Files, write: Write) -> Intent {
        Intent::write(Write { files: files.rows.clone(), counts: self.cast.counts, ..write })
    }

    /// Returns a string that no earlier operation has used.
    pub fn mark(&mut self, what: &str) -> String {
        self.marks += 1;
        format!("{what}-{}.{}-{}", self.process.name(), self.process.life(), self.marks)
    }

    /// Returns the number of rows of a file that [`write_files`](Self::write_files) has written.
    pub fn row_count(&self, file: &Add) -> u64 {
        let stats: serde_json::Value = serde_json::from_str(file.stats.as_deref().unwrap()).unwrap();
        stats["numRecords"].as_u64().unwrap()
    }

    /// Chooses one or two rows of a file of `base`, by their positions in it; `None` if there is no file.
    pub fn some_rows(&self, base: &Snapshot) -> Result<Option<(Add, BTreeSet<u64>)>> {
        let mut files = live_files(base)?;
        if files.is_empty() {
            return Ok(None);
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let file = files.swap_remove(self.process.below(files.len() as u64) as usize);
        let all = self.row_count(&file);
        let rows = (0..1 + self.process.below(2)).map(|_| self.process.below(all)).collect();
        Ok(Some((file, rows)))
    }

    /// Writes one or two data files with new rows. They are of `class`, or of random classes if it is `None`.
    pub fn write_files(&mut self, pending: &PendingWrite, class: Option<i64>) -> Result<Files> {
        let mut files = Files { adds: Vec::new(), rows: BTreeMap::new() };
        for _ in 0..1 + self.process.below(2) {
            let rows = self.new_rows(class);
            let adds = match self.cast.has_rows {
                true => real_file(pending, &rows)?,
                false => vec![self.file(&rows)?],
            };
            for add in adds {
                files.rows.insert(add.path.clone(), rows.clone());
                files.adds.push(add);
            }
        }
        assert_eq!(files.adds.len(), files.rows.len(), "a few rows are one file");
        Ok(files)
    }

    /// Draws the rows of a new file. They are of `class`, or of one or two random classes if it is `None`.
    fn new_rows(&self, class: Option<i64>) -> Vec<i64> {
        let first = self.process.below(CLASSES as u64) as i64;
        let row = |_| {
            let class = class.unwrap_or_else(|| (first + self.process.below(2) as i64) % CLASSES);
            self.process.tick() as i64 * CLASSES + class
        };
        (0..4 + self.process.below(5)).map(row).collect()
    }

    /// Writes a data file that is never read.
    fn file(&mut self, rows: &[i64]) -> Result<Add> {
        self.files += 1;
        let name = format!("{}.{}-{}.parquet", self.process.name(), self.process.life(), self.files);
        let mut file = self.storage.create_file(&name)?;
        file.write_all(name.as_bytes()).unwrap();
        let mut add = Add::default();
        (add.size, add.path) = (i64::try_from(file.finish()?).unwrap(), name);
        (add.modification_time, add.data_change) = (self.environment.now_ms(), true);
        add.stats = Some(format!(r#"{{"numRecords":{}}}"#, rows.len()));
        Ok(add)
    }
}

/// Describes the rows of a class as the rows that a write has read.
pub fn rows_of_class(class: i64) -> RowsRead {
    RowsRead::Matching(vec![col("class").eq(lit(class))])
}

/// Writes `rows`, which are few enough for a single data file.
fn real_file(pending: &PendingWrite, rows: &[i64]) -> Result<Vec<Add>> {
    let mut writer = pending.writer()?;
    writer.write(&batch(rows))?;
    writer.finish()
}

/// Returns the outcome of an operation that has read a snapshot. If it has refreshed the handle, `before` is the
/// version that the handle had until then.
pub fn view(snapshot: &Snapshot, before: Option<u64>) -> Result<Outcome> {
    let mut files = BTreeSet::new();
    for file in live_files(snapshot)? {
        let vector = file.deletion_vector.map(|vector| format!("#{}", vector.unique_id()));
        let name = file.path + &vector.unwrap_or_default();
        assert!(files.insert(name.clone()), "the file {name} is listed twice");
    }
    let progress = snapshot.app_transactions()?.into_iter().map(|own| (own.app_id, own.version)).collect();
    Ok(Outcome::Saw(View { version: snapshot.version(), files, progress, before }))
}

/// Returns the live files of a snapshot.
pub fn live_files(snapshot: &Snapshot) -> Result<Vec<Add>> {
    let mut files = Vec::new();
    for batch in snapshot.replay_files(FileColumns::of(&FileColumn::ALL))? {
        files.extend(adds_of(&batch?)?);
    }
    Ok(files)
}

fn outcome(error: &Error) -> Outcome {
    match (error.kind(), error.transaction_id()) {
        (ErrorKind::CommitStateUnknown, Some(txn_id)) => {
            Outcome::Unknown { txn_id: txn_id.to_owned(), found: None }
        }
        (kind, _) => Outcome::Failed {
            kind: format!("{kind:?}"),
            version: error.version(),
            reason: error.reason().map(str::to_owned),
            message: format!("{error} (reason {:?})", error.reason()),
        },
    }
}

/// Returns the paths of the files of the table.
pub fn data_files(objects: &Objects) -> BTreeSet<String> {
    let prefix = format!("{ROOT}/");
    let entries = objects.list(ROOT, "");
    entries.iter().filter_map(|entry| entry.path.strip_prefix(&prefix)).map(str::to_owned).collect()
}
