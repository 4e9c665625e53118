//! Several processes write to one table and are killed at random times. No acknowledged commit may be lost or doubled,
//! and the table can always be read and written.
//!
//! Each process prints what it is about to commit, and the outcome. The printed lines outlive the process.
//! Several test programs include this module, each for tables in a different kind of location.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use deltalog::engine::replay::{FileColumn, FileColumns, adds_of};
use deltalog::{
    Add, Environment, ErrorKind, Operation as CommitOperation, PendingWrite, PrimitiveType, SaveMode,
    Snapshot, Storage, StructField, StructType, WriteRequest, write_checkpoint,
};
use deltalog_testkit::judge::{Case, Intent, Log, Operation, Outcome, Write, check};
use deltalog_testkit::random::Random;

/// How many processes write to the table at the same time.
const AT_ONCE: u64 = 4;

/// The maximum number of lines that a process prints before it is killed, and the maximum time after the last line in
/// microseconds.
const MOST_LINES: u64 = 6;
const LONGEST_MICROS: u64 = 20_000;

/// The environment variables that pass the table, the store's options, and the child's own name to a child process.
const TABLE: &str = "DELTALOG_KILLED_TABLE";
const OPTIONS: &str = "DELTALOG_KILLED_OPTIONS";
const NAME: &str = "DELTALOG_KILLED_NAME";

/// A table that does not exist yet, and its writers.
pub struct Victims {
    pub table: String,
    pub options: Vec<(String, String)>,
    /// How many processes are killed. `DELTALOG_KILLS` overrides this number.
    pub kills: usize,
    /// The ignored test that calls [`write_until_killed`].
    pub child: &'static str,
}

impl Victims {
    /// Starts and kills the processes, and checks the resulting table.
    pub fn kill(&self) {
        let kills = std::env::var("DELTALOG_KILLS").map_or(self.kills, |text| text.parse().unwrap());
        let (next, started) = (AtomicUsize::new(0), AtomicU64::new(0));
        let slot = |slot: u64| {
            let mut random = Random::new(slot);
            let mut operations = Vec::new();
            while next.fetch_add(1, Ordering::Relaxed) < kills {
                let name = format!("writer{}", started.fetch_add(1, Ordering::Relaxed));
                operations.extend(operations_of(&name, &self.write_and_kill(&name, &mut random)));
            }
            operations
        };
        let operations: Vec<Operation> = std::thread::scope(|scope| {
            let slots: Vec<_> = (0..AT_ONCE).map(|number| scope.spawn(move || slot(number))).collect();
            slots.into_iter().flat_map(|slot| slot.join().unwrap()).collect()
        });
        let acknowledged = operations.iter().filter(|operation| operation.committed().is_some()).count();
        let unheard = operations.iter().filter(|operation| operation.outcome.is_none()).count();

        let storage = open(&self.table, &self.options);
        let log = log_of(&storage);
        let versions = log.commits.len() as u64;
        let states = log.states.clone();
        let data_files = storage.list_directory_after("", "").unwrap();
        let data_files = data_files.into_iter().map(|file| file.name).collect();
        let broken =
            check(&Case { log, operations, data_files, listings_are_strong: true, ..Case::default() });
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        assert!(acknowledged >= kills / 2, "only {acknowledged} commits were acknowledged");
        assert!(unheard > 0, "no process was killed during a commit");

        let newest = Snapshot::open(&storage, None).unwrap();
        assert_eq!(newest.version() + 1, versions);
        assert_eq!(Some(&files_of(&newest)), states.last().map(|state| &state.files));
        let next = PendingWrite::begin(&storage, request(SaveMode::Append), &Environment::system());
        let next = commit(&storage, next.unwrap().unwrap(), "afterwards").unwrap();
        assert_eq!(next.0, versions);
    }

    /// Starts a process, kills it after some of its writes have begun or ended, and returns the lines that it printed.
    fn write_and_kill(&self, name: &str, random: &mut Random) -> String {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", self.child, "--ignored", "--nocapture"])
            .env(TABLE, &self.table)
            .env(OPTIONS, serde_json::to_string(&self.options).unwrap())
            .env(NAME, name)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        let lines = 1 + random.below(MOST_LINES) as usize;
        while said.matches("\ntry ").count() + said.matches("\ndone ").count() < lines {
            let length = output.read_line(&mut said).unwrap();
            assert!(length > 0, "{name} ended before it wrote: {said} {}", errors_of(&mut child));
        }
        std::thread::sleep(Duration::from_micros(random.below(LONGEST_MICROS)));
        let has_ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        output.read_to_string(&mut said).unwrap();
        assert!(has_ended.is_none(), "{name} ended by itself: {said} {}", errors_of(&mut child));
        said
    }
}

fn open(table: &str, options: &[(String, String)]) -> Storage {
    let options = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Storage::open(table, options).unwrap()
}

fn errors_of(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// Returns the intents and outcomes of a process, from the lines that it printed.
fn operations_of(name: &str, said: &str) -> Vec<Operation> {
    let mut operations: Vec<Operation> = Vec::new();
    // If the kill cut off a line, the line does not count.
    for line in said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["try", time, file, base] => operations.push(Operation {
                process: name.to_owned(),
                verb: "write",
                began: time.parse().unwrap(),
                ended: None,
                intent: Intent::write(Write {
                    // The commit adds this file, which was never written: only the log is tested.
                    files: [(file.to_owned(), Vec::new())].into(),
                    replaces: base.parse().ok(),
                    ..Write::default()
                }),
                outcome: None,
                faults: 0,
            }),
            ["done", time, version, txn_id] => {
                let version = version.parse().unwrap();
                let last = operations.last_mut().unwrap();
                last.outcome = Some(Outcome::Committed { version, txn_id: txn_id.to_owned() });
                last.ended = time.parse().ok();
            }
            ["not", kind, version] => {
                let (kind, version) = (kind.to_owned(), version.parse().ok());
                let failed = Outcome::Failed { kind, version, reason: None, message: line.to_owned() };
                operations.last_mut().unwrap().outcome = Some(failed);
            }
            _ => {}
        }
    }
    operations
}

fn log_of(storage: &Storage) -> Log {
    let names = storage.list_directory_after("_delta_log", "").unwrap();
    let files: Vec<_> = names
        .into_iter()
        .map(|file| (storage.read(&format!("_delta_log/{}", file.name)).unwrap(), file.name))
        .collect();
    Log::replay(files.iter().map(|(bytes, name)| (name.as_str(), &bytes[..]))).unwrap()
}

/// Returns the paths of the live files.
fn files_of(snapshot: &Snapshot) -> BTreeSet<String> {
    let batches = snapshot.replay_files(FileColumns::of(&FileColumn::ALL)).unwrap();
    let adds = batches.flat_map(|batch| adds_of(&batch.unwrap()).unwrap());
    adds.map(|add| add.path).collect()
}

/// Writes until the process is killed.
pub fn write_until_killed() {
    let options: Vec<(String, String)> = serde_json::from_str(&std::env::var(OPTIONS).unwrap()).unwrap();
    let storage = open(&std::env::var(TABLE).unwrap(), &options);
    let (name, environment) = (std::env::var(NAME).unwrap(), Environment::system());
    for number in 0.. {
        let file = format!("{name}-{number}.parquet");
        let outcome = match environment.random() % 8 {
            0 => overwrite(&storage, &environment, &file),
            1 if number > 0 => {
                write_checkpoint(&Snapshot::open(&storage, None).unwrap(), &environment).unwrap();
                continue;
            }
            _ => append(&storage, &environment, &file),
        };
        match outcome {
            Ok((version, txn_id)) => say(&format!("done {} {version} {txn_id}", nanos())),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
                say(&format!("not {:?} {}", error.kind(), error.version().unwrap()));
            }
        }
    }
}

type Committed = deltalog::Result<(u64, String)>;

fn append(storage: &Storage, environment: &Environment, file: &str) -> Committed {
    say(&format!("try {} {file} -", nanos()));
    let pending = PendingWrite::begin(storage, request(SaveMode::Append), environment)?.unwrap();
    commit(storage, pending, file)
}

fn overwrite(storage: &Storage, environment: &Environment, file: &str) -> Committed {
    let base = match Snapshot::open(storage, None) {
        Err(error) if error.kind() == ErrorKind::NotATable => return append(storage, environment, file),
        base => base?,
    };
    say(&format!("try {} {file} {}", nanos(), base.version()));
    commit(storage, PendingWrite::begin_on(&base, request(SaveMode::Overwrite), environment)?.unwrap(), file)
}

fn commit(storage: &Storage, pending: PendingWrite, file: &str) -> Committed {
    let mut writer = storage.create_file(file)?;
    writer.write_all(b"rows").unwrap();
    writer.finish()?;
    let mut add = Add::default();
    (add.path, add.size, add.data_change) = (file.to_owned(), 4, true);
    let committed = pending.commit_or_fail(vec![add], CommitOperation::new("WRITE"))?;
    Ok((committed.version, committed.txn_id))
}

fn request(mode: SaveMode) -> WriteRequest {
    let schema = StructType::try_new(vec![StructField::new("id", PrimitiveType::Long, true)]).unwrap();
    let mut request = WriteRequest::new(schema, mode);
    request.configuration.insert("delta.checkpointInterval".to_owned(), "5".to_owned());
    request
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Returns the time of a clock that all processes of a machine share.
fn nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}
