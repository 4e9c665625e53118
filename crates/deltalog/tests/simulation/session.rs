//! A process as deltalog sees it: a table, an environment, a handle, and the record of what it was told.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use deltalog::engine::parallel::stay_alone;
use deltalog::engine::protocol::Add;
use deltalog::engine::replay::{FileColumn, FileColumns, adds_of};
use deltalog::{
    Environment, Error, ErrorKind, PrimitiveType, Result, SaveMode, Snapshot, Storage, StructField,
    StructType, WriteRequest, find_commit,
};
use deltalog_testkit::judge::{Found, History, Intent, Outcome, View};
use deltalog_testkit::simulation::Process;
use url::Url;
use uuid::Uuid;

/// The directory of the table in the store.
pub const ROOT: &str = "t";

/// How far the clock of a process may be off.
const MOST_SKEW_MS: u64 = 60_000;

/// How often a search for a commit is tried while it gets no answer.
const MOST_SEARCHES: u32 = 6;

/// A process from its start to its end. What it knows is gone when it crashes.
pub struct Session<'a> {
    pub process: &'a Process,
    pub storage: Storage,
    pub environment: Environment,
    /// A snapshot that is refreshed now and then.
    pub handle: Option<Snapshot>,
    /// The commits of this process, with their ids.
    pub commits: Vec<(String, u64)>,
    history: &'a History,
    properties: &'a BTreeMap<String, String>,
    files: u32,
    marks: u32,
}

impl<'a> Session<'a> {
    pub fn new(process: &'a Process, history: &'a History, properties: &'a BTreeMap<String, String>) -> Self {
        stay_alone();
        let url = Url::parse(&format!("memory:///{ROOT}")).unwrap();
        let [clock, ids, pauses, luck] = [(); 4].map(|()| process.clone());
        let skew_ms = process.below(2 * MOST_SKEW_MS) as i64 - MOST_SKEW_MS as i64;
        let environment =
            Environment::new(move || clock.now_ms() + skew_ms, move || Uuid::from_u128(ids.wide_random()))
                .with_sleep(move |duration| pauses.sleep(duration))
                .with_random(move || luck.random());
        Self {
            process,
            storage: Storage::with_store(url, process.store()).unwrap(),
            environment,
            handle: None,
            commits: Vec::new(),
            history,
            properties,
            files: 0,
            marks: 0,
        }
    }

    /// Does something with the table, and records what it is and how it ends. Returns the outcome.
    ///
    /// `work` receives the number of the operation, to say more precisely what is intended.
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
        // Unwinds if the process has crashed and something has caught that.
        let ended = self.process.tick();
        self.process.note(format!("ends {verb}: {outcome:?}"));
        history.end(number, ended, outcome.clone(), self.process.faults() - before);
        match &outcome {
            Outcome::Committed { version, txn_id } => self.commits.push((txn_id.clone(), *version)),
            Outcome::Unknown { txn_id, .. } => self.find_out(number, txn_id),
            _ => {}
        }
        outcome
    }

    /// Looks for a commit whose fate is unknown, when no request can be under way any more.
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

    /// Returns a request to write. A new table gets the properties of the run.
    pub fn request(&self, mode: SaveMode) -> WriteRequest {
        let schema = StructType::try_new(vec![StructField::new("id", PrimitiveType::Long, true)]).unwrap();
        let mut request = WriteRequest::new(schema, mode);
        request.configuration.clone_from(self.properties);
        request
    }

    /// Returns whether the table of the run has a property set to true.
    pub fn has(&self, property: &str) -> bool {
        self.properties.get(property).is_some_and(|value| value == "true")
    }

    /// Returns a text that no operation had before.
    pub fn mark(&mut self, what: &str) -> String {
        self.marks += 1;
        format!("{what}-{}.{}-{}", self.process.name(), self.process.life(), self.marks)
    }

    /// Returns the number of rows of a file that [`write_files`](Self::write_files) has written.
    pub fn row_count(&self, file: &Add) -> u64 {
        let stats: serde_json::Value = serde_json::from_str(file.stats.as_deref().unwrap()).unwrap();
        stats["numRecords"].as_u64().unwrap()
    }

    /// Returns the names of one to three data files that nobody else writes.
    pub fn file_names(&mut self) -> BTreeSet<String> {
        let count = 1 + self.process.below(3) as u32;
        let (name, life, first) = (self.process.name(), self.process.life(), self.files);
        self.files += count;
        (first..self.files).map(|number| format!("{name}.{life}-{number}.parquet")).collect()
    }

    /// Writes data files, which nobody reads.
    pub fn write_files(&self, names: &BTreeSet<String>) -> Result<Vec<Add>> {
        let add = |name: &String| {
            let mut file = self.storage.create_file(name)?;
            file.write_all(name.as_bytes()).unwrap();
            let mut add = Add::default();
            (add.path, add.size) = (name.clone(), i64::try_from(file.finish()?).unwrap());
            (add.modification_time, add.data_change) = (self.environment.now_ms(), true);
            add.stats = Some(format!(r#"{{"numRecords":{}}}"#, 4 + self.process.below(5)));
            Ok(add)
        };
        names.iter().map(add).collect()
    }
}

/// Returns what a snapshot shows. The handle had the version `before`.
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
            message: format!("{error} (reason {:?})", error.reason()),
        },
    }
}

/// Returns the objects of a store that a table lies in, for [`deltalog_testkit::judge::Log::read`].
pub fn data_files(objects: &Arc<std::sync::Mutex<deltalog_testkit::store::Objects>>) -> BTreeSet<String> {
    let prefix = format!("{ROOT}/");
    let entries = objects.lock().unwrap().list(ROOT, "");
    entries.iter().filter_map(|entry| entry.path.strip_prefix(&prefix)).map(str::to_owned).collect()
}
