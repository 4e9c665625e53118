//! What a commit makes durable on a local file system, and in which order: a power failure must not lose what was
//! acknowledged. Protocol: "Creation of New Log Entries".

use std::path::Path;
use std::process::Command;

use deltalog::{Environment, Operation, PendingWrite, SaveMode, Storage, WriteRequest};

use crate::common::{add, creation, schema};

/// The variable that tells the child process its table.
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

/// Returns the syncs and the renamings of an append, in their order, with paths relative to the table. Returns `None`
/// without a tracer of system calls.
fn traced_append(table: &Path) -> Option<Vec<String>> {
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
    let calls = text.lines().filter(|line| line.contains(root)).map(|line| {
        let call = line.split_once(' ').map_or(line, |(_, call)| call).trim_start();
        let (name, arguments) = call.split_once('(').unwrap();
        // The last path is the one that a call is about, or gives.
        let path = arguments.rsplit(root).next().unwrap().split(['>', '"']).next().unwrap();
        let path = path.trim_start_matches('/').split('#').next().unwrap();
        let name = if name.contains("sync") { "sync" } else { "name" };
        format!("{name} {path}").trim_end().to_owned()
    });
    Some(calls.collect())
}

/// The data file and its directories are durable before the commit has its name, the commit before it has it, and its
/// name before it is acknowledged. The checksum, which can be told again, is not synced.
#[test]
fn everything_that_is_acknowledged_was_synced_before() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("table");
    let storage = Storage::open(table.to_str().unwrap(), []).unwrap();
    creation(&storage, &Environment::system()).commit_or_fail().unwrap();
    append(&table, "p=1/first");
    let Some(calls) = traced_append(&table.canonicalize().unwrap()) else {
        // `make` says so when it looks for what is installed.
        return;
    };
    let (commit, checksum) = ("_delta_log/00000000000000000002.json", "_delta_log/00000000000000000002.crc");
    let expected = [
        "sync p=1/new".to_owned(),
        "sync p=1".to_owned(),
        "sync".to_owned(),
        format!("sync {commit}"),
        format!("name {commit}"),
        "sync _delta_log".to_owned(),
        format!("name {checksum}"),
    ];
    assert_eq!(calls, expected);
}
