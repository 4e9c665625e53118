//! Commits that DynamoDB coordinates: its table of entries, writers that die, and lost responses.

use deltalog::{Environment, ErrorKind, Operation, Storage, find_commit};
use deltalog_testkit::s3::{Fault, Kind, Rule, S3Server, Settings};
use deltalog_testkit::servers::{Dynalite, Lost};
use serde_json::{Value, json};

use crate::kills::{self, Victims};
use crate::places::Place;
use crate::rows::{append, appending, files, ids, newest};

/// The servers of one test. They can be made to lose responses.
pub struct Servers {
    s3: S3Server,
    pub dynalite: Dynalite,
    pub place: Place,
}

pub fn servers(ignores_conditions: bool) -> Servers {
    let s3 = S3Server::start_with(Settings { ignores_conditions, ..Settings::default() });
    let dynalite = Dynalite::start();
    let place = Place::in_server(&s3).coordinated(&dynalite);
    Servers { s3, dynalite, place }
}

impl Servers {
    pub fn open(&self) -> Storage {
        self.place.open("t")
    }

    /// Opens the same location for a writer that does not use the coordinator.
    pub fn without_coordinator(&self) -> Storage {
        let options = self.place.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let options = options.filter(|(name, _)| !name.starts_with("dynamodb") && *name != "log_store");
        Storage::open(&format!("{}/t", self.place.root), options).unwrap()
    }

    pub fn table(&self) -> String {
        self.place.root.replace("://", "-")
    }

    /// Returns the entries of all tables, oldest first.
    fn entries(&self) -> Vec<Value> {
        let found = self.dynalite.call("Scan", &json!({ "TableName": self.table() }));
        let mut items = found["Items"].as_array().unwrap().clone();
        items.sort_by_key(|item| item["fileName"]["S"].as_str().unwrap().to_owned());
        items
    }

    /// Removes an entry, as DynamoDB does when the entry has expired.
    fn expire(&self, version: u64) {
        let entry = &self.entries()[usize::try_from(version).unwrap()];
        let key = json!({ "tablePath": entry["tablePath"], "fileName": entry["fileName"] });
        self.dynalite.call("DeleteItem", &json!({ "TableName": self.table(), "Key": key }));
    }

    /// Appends a row with a writer that dies: it gets an error of `kind`, and does nothing afterwards. If the writer
    /// does not know whether it has committed, returns the id of its transaction.
    fn die(&self, id: i64, kind: ErrorKind) -> Option<String> {
        let storage = self.open();
        let write = appending(&storage, &[]);
        let files = files(&write, [id]);
        let error = write.commit_or_fail(files, Operation::new("WRITE")).unwrap_err();
        self.s3.faults([]);
        self.dynalite.lose([]);
        assert_eq!(error.kind(), kind, "{error}");
        error.transaction_id().map(str::to_owned)
    }

    fn has_temporary_files(&self) -> bool {
        let files = self.open().list_after("_delta_log", "").unwrap();
        files.iter().any(|file| file.name.contains(".tmp"))
    }
}

#[test]
fn racers_have_one_winner_in_a_store_that_replaces() {
    crate::contract::one_of_many_creates_a_file(&Place::overwriting());
}

#[test]
fn every_append_is_committed_once_in_a_store_that_replaces() {
    crate::writers::every_append_is_committed_once(&Place::overwriting());
}

/// The attributes of entries have the same names and types as in entries that the JVM connector's log store writes.
#[test]
fn entries_have_the_form_of_the_jvm() {
    let servers = servers(false);
    append(&servers.open(), [0]);
    append(&servers.open(), [1]);
    let description = servers.dynalite.call("DescribeTable", &json!({ "TableName": servers.table() }));
    let key = &description["Table"]["KeySchema"];
    assert_eq!(
        *key,
        json!([
            { "AttributeName": "tablePath", "KeyType": "HASH" },
            { "AttributeName": "fileName", "KeyType": "RANGE" },
        ])
    );
    let entries = servers.entries();
    assert_eq!(entries.len(), 2);
    for (version, entry) in entries.iter().enumerate() {
        let text = |name: &str| entry[name]["S"].as_str().unwrap();
        assert_eq!(text("tablePath"), format!("{}/t", servers.place.root.replace("s3:", "s3a:")));
        assert_eq!(text("fileName"), format!("{version:020}.json"));
        assert!(text("tempPath").starts_with(&format!(".tmp/{version:020}.json.")));
        assert_eq!(text("complete"), "true");
        let expires: i64 = entry["expireTime"]["N"].as_str().unwrap().parse().unwrap();
        let in_ms = expires * 1000 - Environment::system().now_ms();
        assert!((86_000_000..=86_400_000).contains(&in_ms), "{in_ms}");
        assert_eq!(entry.as_object().unwrap().len(), 5);
    }
    assert!(!servers.has_temporary_files());
}

#[test]
fn spellings_of_a_location_are_one_table() {
    let servers = servers(true);
    let spelled = |scheme: &str| {
        let options = servers.place.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Storage::open(&format!("{}/t/", servers.place.root.replace("s3:", scheme)), options).unwrap()
    };
    for (id, scheme) in ["s3:", "s3a:", "s3n:", "s3:"].into_iter().enumerate() {
        append(&spelled(scheme), [id as i64]);
    }
    let paths: Vec<_> = servers.entries().iter().map(|entry| entry["tablePath"].clone()).collect();
    assert!(paths.len() == 4 && paths.iter().all(|path| *path == paths[0]), "{paths:?}");
}

/// If a writer dies before its entry is put, only a temporary file is left. (After step 2 in `storage/coordinated.rs`.)
#[test]
fn a_writer_that_dies_before_its_entry_has_not_committed() {
    let servers = servers(true);
    append(&servers.open(), [0]);
    servers.dynalite.lose(vec![("PutItem", Lost::Before); 1000]);
    let id = servers.die(1, ErrorKind::CommitStateUnknown).unwrap();
    assert_eq!(servers.entries().len(), 1);
    assert_eq!(find_commit(&servers.open(), &id).unwrap(), None);
    append(&servers.open(), [2]);
    assert_eq!(ids(&newest(&servers.open())), [0, 2]);
}

/// Lets a writer die between steps 3 and 4: the entry exists, but the commit file does not.
fn dead_after_its_entry() -> (Servers, String) {
    let servers = servers(true);
    append(&servers.open(), [0]);
    servers.s3.faults([Rule::new(Fault::CloseBefore).on(Kind::Create).key("00001.json")]);
    let id = servers.die(1, ErrorKind::CommitStateUnknown).unwrap();
    assert_eq!(servers.entries()[1]["complete"]["S"], "false");
    (servers, id)
}

#[test]
fn a_reader_recovers_the_commit_of_a_dead_writer() {
    let (servers, id) = dead_after_its_entry();
    assert_eq!(ids(&newest(&servers.open())), [0, 1]);
    assert!(servers.entries().iter().all(|entry| entry["complete"]["S"] == "true"));
    assert_eq!(find_commit(&servers.open(), &id).unwrap(), Some(1));
    assert_eq!(append(&servers.open(), [2]).version, 2);
    assert!(!servers.has_temporary_files());
}

#[test]
fn a_writer_recovers_the_commit_of_a_dead_writer() {
    let (servers, id) = dead_after_its_entry();
    assert_eq!(append(&servers.open(), [2]).version, 2);
    assert_eq!(ids(&newest(&servers.open())), [0, 1, 2]);
    assert_eq!(find_commit(&servers.open(), &id).unwrap(), Some(1));
    assert!(servers.entries().iter().all(|entry| entry["complete"]["S"] == "true"));
}

/// If a writer dies after step 4, the commit file exists, but the entry is not marked as complete. The writer has
/// already reported success.
#[test]
fn an_entry_that_was_left_incomplete_is_completed() {
    let servers = servers(true);
    append(&servers.open(), [0]);
    let faults = [vec![("PutItem", Lost::Nothing)], vec![("PutItem", Lost::Before); 100]].concat();
    servers.dynalite.lose(faults);
    assert_eq!(append(&servers.open(), [1]).version, 1);
    servers.dynalite.lose([]);
    assert_eq!(servers.entries()[1]["complete"]["S"], "false");
    assert_eq!(ids(&newest(&servers.open())), [0, 1]);
    assert_eq!(servers.entries()[1]["complete"]["S"], "true");
    assert!(!servers.has_temporary_files());
}

#[test]
fn lost_responses_are_resolved() {
    for lost in [Lost::Before, Lost::After] {
        let servers = servers(true);
        append(&servers.open(), [0]);
        for id in 1..=4 {
            servers.dynalite.lose([("PutItem", lost), ("GetItem", lost), ("Query", lost)]);
            assert_eq!(append(&servers.open(), [id]).version, id as u64);
        }
        servers.s3.faults([Rule::new(Fault::CloseAfter).on(Kind::Create).key(".json")]);
        assert_eq!(append(&servers.open(), [5]).version, 5);
        servers.s3.faults([]);
        assert_eq!(ids(&newest(&servers.open())), (0..=5).collect::<Vec<_>>());
        assert_eq!(servers.entries().len(), 6);
    }
}

/// If entries have expired, the log files alone determine which versions exist.
#[test]
fn expired_entries_are_not_needed() {
    let servers = servers(true);
    append(&servers.open(), [0]);
    let late = servers.open();
    let write = appending(&late, &[]);
    let late_files = files(&write, [2]);
    append(&servers.open(), [1]);
    servers.expire(1);
    servers.expire(0);
    assert!(servers.entries().is_empty());
    assert_eq!(write.commit_or_fail(late_files, Operation::new("WRITE")).unwrap().version, 2);
    assert_eq!(ids(&newest(&servers.open())), [0, 1, 2]);
    assert_eq!(servers.entries().len(), 1);
}

/// Counts the requests that a commit sends to the coordinator.
#[test]
fn an_append_takes_few_requests() {
    let servers = servers(false);
    append(&servers.open(), [0]);
    servers.dynalite.take_requests();
    append(&servers.open(), [1]);
    let asked = servers.dynalite.take_requests();
    let count = |operation: &str| asked.iter().filter(|asked| *asked == operation).count();
    assert!(count("PutItem") == 2 && count("GetItem") == 1 && count("Query") <= 3, "{asked:?}");
    assert_eq!(asked.len(), 3 + count("Query"), "{asked:?}");
}

#[test]
fn nothing_is_lost_or_doubled_when_processes_are_killed() {
    let servers = servers(true);
    let table = format!("{}/t", servers.place.root);
    let options = servers.place.options.clone();
    Victims { table, options, kills: 60, child: "coordinated::write_until_killed" }.kill();
}

#[test]
#[ignore = "a child process of the test above"]
fn write_until_killed() {
    kills::write_until_killed();
}
