//! Which files a commit syncs on a local file system, and in which order, so that a power failure cannot lose an
//! acknowledged commit. Protocol: "Creation of New Log Entries".

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use deltalog::{Environment, Operation, PendingWrite, SaveMode, Storage, WriteRequest};

use crate::common::{add, creation, schema};

/// The environment variable that passes the table to the child process.
const TABLE: &str = "DELTALOG_SYNCED_TABLE";

/// Appends a file to the table.
fn append(table: &Path, file: &str) {
    let storage = Storage::open(table.to_str().unwrap(), []).unwrap();
    let request = WriteRequest::new(schema(), SaveMode::Append);
    let write = PendingWrite::begin(&storage, request, &Environment::system()).unwrap().unwrap();
    storage.create_file(file).unwrap().finish().unwrap();
    write.commit_or_fail(vec![add(file)], Operation::new("WRITE")).unwrap();
}

#[test]
#[ignore = "the child process of the test below"]
fn append_once() {
    append(Path::new(&std::env::var(TABLE).unwrap()), "p=1/new");
}

/// A line of a trace, with the thread that made the call.
#[derive(Debug, PartialEq)]
enum Traced {
    /// A sync, or a call that names a file, with the path relative to the table. The call may not have returned yet.
    Call { thread: u32, text: String, is_finished: bool },
    /// The end of a call that an earlier line began.
    Finished { thread: u32 },
}

impl Traced {
    /// Reads a line. Returns `None` if it does not concern the table at `root`.
    fn of(line: &str, root: &str) -> Option<Self> {
        let (thread, call) = line.split_once(' ').unwrap();
        let (thread, call) = (thread.parse().unwrap(), call.trim_start());
        if call.contains(" resumed>") {
            return Some(Self::Finished { thread });
        }
        let (name, arguments) = call.contains(root).then(|| call.split_once('(').unwrap())?;
        // The last path is the target of a call, or the new name.
        let path = arguments.rsplit(root).next().unwrap().split(['>', '"']).next().unwrap();
        let path = unstaged(path.trim_start_matches('/'));
        let name = if name.contains("sync") { "sync" } else { "name" };
        let text = format!("{name} {path}").trim_end().to_owned();
        Some(Self::Call { thread, text, is_finished: !call.contains("<unfinished") })
    }
}

/// Returns the final path of a file. Until it is complete, a file has the temporary name `.name.<uuid>.tmp`.
fn unstaged(path: &str) -> String {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp")?.rsplit_once('.')) {
        Some((name, _)) => format!("{directory}/{name}"),
        None => path.to_owned(),
    }
}

/// Returns the syncs and renamings of an append, in their order; `None` if no tracer of system calls is installed.
fn traced_append(table: &Path) -> Option<Vec<Traced>> {
    let trace = table.with_extension("trace");
    let status = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-s",
            "4096",
            "-e",
            "trace=fsync,fdatasync,link,linkat,rename,renameat,renameat2",
            "-o",
        ])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "syncs::append_once", "--ignored"])
        .env(TABLE, table)
        .output()
        .ok()?;
    let text = std::fs::read_to_string(&trace).unwrap_or_default();
    if text.contains("ptrace") || (text.is_empty() && !status.status.success()) {
        return None;
    }
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
    let root = table.to_str().unwrap();
    Some(text.lines().filter_map(|line| Traced::of(line, root)).collect())
}

/// Returns the calls of a trace in order, and the number of calls that had not returned when the trace ended.
fn calls(trace: &[Traced]) -> (Vec<&str>, usize) {
    let mut unfinished = BTreeSet::new();
    let mut calls = Vec::new();
    for line in trace {
        match line {
            // This may be the end of a call that has nothing to do with the table.
            Traced::Finished { thread } => drop(unfinished.remove(thread)),
            Traced::Call { thread, text, is_finished } => {
                if !is_finished {
                    unfinished.insert(thread);
                }
                calls.push(text.as_str());
            }
        }
    }
    (calls, unfinished.len())
}

/// The data file and its directories are durable, in any order, before the commit is written; the commit is durable
/// before it gets its name, and its name is durable before the commit is acknowledged. The checksum, which can be
/// computed again, is not synced.
#[test]
fn everything_that_is_acknowledged_was_synced_before() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("table");
    let storage = Storage::open(table.to_str().unwrap(), []).unwrap();
    creation(&storage, &Environment::system()).commit_or_fail().unwrap();
    append(&table, "p=1/first");
    let Some(trace) = traced_append(&table.canonicalize().unwrap()) else {
        // If the tracer is missing, `make` reports it when it checks the installed programs.
        return;
    };
    let (commit, checksum) = ("_delta_log/00000000000000000002.json", "_delta_log/00000000000000000002.crc");
    let sync_of_commit = format!("sync {commit}");
    let begin = |line: &Traced| matches!(line, Traced::Call { text, .. } if *text == sync_of_commit);
    let (data, log) = trace.split_at(trace.iter().position(begin).unwrap());
    let (mut data, unfinished) = calls(data);
    data.sort_unstable();
    assert_eq!((data, unfinished), (vec!["sync", "sync p=1", "sync p=1/new"], 0));
    let named = [&*format!("name {commit}"), "sync _delta_log", &*format!("name {checksum}")];
    assert_eq!(calls(log), ([&[sync_of_commit.as_str()][..], &named].concat(), 0));
}
