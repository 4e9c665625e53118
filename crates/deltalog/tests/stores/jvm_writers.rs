//! Writers that follow the JVM connector's `BaseExternalLogStore` step by step run at the same time as our writers.
//!
//! Unlike our writers, they check whether a file exists and then write it without a condition, complete entries
//! without a condition, and keep temporary files.

use std::collections::BTreeSet;

use deltalog::engine::storage::PutOutcome;
use deltalog::{Environment, Storage};
use deltalog_testkit::random::Random;
use deltalog_testkit::servers::Dynalite;
use serde_json::{Value, json};

use crate::coordinated::{Servers, servers};

const VERSIONS: u64 = 24;
const WRITERS: u64 = 6;

/// A writer that works like the JVM connector's. Its store is opened without a coordinator.
struct JvmWriter<'a> {
    dynalite: &'a Dynalite,
    table: String,
    table_path: String,
    storage: Storage,
}

impl JvmWriter<'_> {
    fn path(version: u64) -> String {
        format!("_delta_log/{version:020}.json")
    }

    fn entry(&self, version: u64) -> Option<Value> {
        let key = json!({ "tablePath": { "S": self.table_path }, "fileName": { "S": format!("{version:020}.json") } });
        let asked = json!({ "TableName": self.table, "Key": key, "ConsistentRead": true });
        self.dynalite.call("GetItem", &asked).get("Item").cloned()
    }

    fn item(&self, version: u64, temp_path: &str, is_complete: bool) -> Value {
        let mut item = json!({
            "tablePath": { "S": self.table_path },
            "fileName": { "S": format!("{version:020}.json") },
            "tempPath": { "S": temp_path },
            "complete": { "S": is_complete.to_string() },
        });
        if is_complete {
            item["expireTime"] = json!({ "N": (Environment::system().now_ms() / 1000 + 86_400).to_string() });
        }
        item
    }

    /// Works like `fs.create(dst, false)`: checks whether the file exists, and writes it some time later. Returns
    /// whether the temporary file was found.
    fn copy(&self, version: u64, temp_path: &str) -> bool {
        let path = Self::path(version);
        let Some(bytes) = self.storage.get(&format!("_delta_log/{temp_path}")).unwrap() else { return false };
        if self.storage.head(&path).unwrap().is_none() {
            std::thread::yield_now();
            self.storage.put(&path, bytes).unwrap();
        }
        true
    }

    fn complete(&self, version: u64, temp_path: &str) {
        let item = self.item(version, temp_path, true);
        self.dynalite.call("PutItem", &json!({ "TableName": self.table, "Item": item }));
    }

    /// Works like `fixDeltaLog`: writes the version from its temporary file if necessary, and completes its entry.
    fn fix(&self, version: u64, entry: &Value) {
        let temp_path = entry["tempPath"]["S"].as_str().unwrap();
        for _ in 0..4 {
            let is_there = self.storage.head(&Self::path(version)).unwrap().is_some();
            if is_there || self.copy(version, temp_path) {
                return self.complete(version, temp_path);
            }
        }
        panic!("neither version {version} nor its temporary file is there");
    }

    /// Works like the connector's `write`, and returns whether this writer has put the version's entry. If `dies` is
    /// set, the writer dies after that.
    fn write(&self, version: u64, id: &str, dies: bool) -> bool {
        if self.storage.head(&Self::path(version)).unwrap().is_some() {
            return false;
        }
        if let Some(previous) = version.checked_sub(1) {
            match self.entry(previous) {
                Some(entry) if entry["complete"]["S"] == "false" => self.fix(previous, &entry),
                _ => assert!(self.storage.head(&Self::path(previous)).unwrap().is_some()),
            }
        }
        let temp_path = format!(".tmp/{version:020}.json.{id}");
        self.storage.put(&format!("_delta_log/{temp_path}"), id.to_owned().into()).unwrap();
        if !self.dynalite.put_if_absent(&self.table, &self.item(version, &temp_path, false)) {
            return false;
        }
        if !dies && self.copy(version, &temp_path) {
            self.complete(version, &temp_path);
        }
        true
    }
}

/// Half of the writers are ours. Some of the JVM writers die after they have put their entries.
#[test]
fn each_version_has_one_winner_among_our_and_jvm_writers() {
    for ignores_conditions in [false, true] {
        let servers = servers(ignores_conditions);
        // The first commit creates the DynamoDB table of entries.
        assert!(matches!(put(&servers.open(), 0, "first"), PutOutcome::Created));
        let mut won: Vec<(u64, String)> = Vec::new();
        for version in 1..=VERSIONS {
            // Some versions are only written by writers of one kind, so that both kinds succeed.
            let takes_part = |number: &u64| match version % 4 {
                1 => !number.is_multiple_of(2),
                2 => number.is_multiple_of(2),
                _ => true,
            };
            won.extend(std::thread::scope(|scope| {
                let start = |number| {
                    let servers = &servers;
                    scope.spawn(move || write_version(servers, number, version))
                };
                let writers: Vec<_> = (0..WRITERS).filter(takes_part).map(start).collect();
                writers.into_iter().filter_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
            }));
        }
        let storage = servers.open();
        // A listing completes the commit that the last writer has left incomplete.
        let listed = storage.list_directory_after("_delta_log", "").unwrap();
        assert_eq!(listed.len() as u64, VERSIONS + 1);
        assert_eq!(won.len() as u64, VERSIONS);
        let versions: BTreeSet<u64> = won.iter().map(|(version, _)| *version).collect();
        assert!(versions.into_iter().eq(1..=VERSIONS));
        for (version, id) in &won {
            assert_eq!(storage.read(&JvmWriter::path(*version)).unwrap(), id.as_str(), "version {version}");
        }
        let of_the_jvm = won.iter().filter(|(_, id)| id.starts_with("jvm")).count();
        assert!(of_the_jvm > 0 && of_the_jvm < won.len(), "{of_the_jvm} of {}", won.len());
    }
}

fn put(storage: &Storage, version: u64, id: &str) -> PutOutcome {
    storage.put_if_absent(&JvmWriter::path(version), id.to_owned()).unwrap()
}

/// Tries to write a version. If it succeeds, returns the version and its bytes.
fn write_version(servers: &Servers, number: u64, version: u64) -> Option<(u64, String)> {
    if number.is_multiple_of(2) {
        let (storage, id) = (servers.open(), format!("ours {number} {version}"));
        return match put(&storage, version, &id) {
            PutOutcome::Created => Some((version, id)),
            PutOutcome::AlreadyExists => {
                // Reads the commit back as the commit rule does, to find out which writer has won.
                assert!(storage.get(&JvmWriter::path(version)).unwrap().is_some());
                None
            }
            PutOutcome::Unknown(error) => panic!("{error}"),
        };
    }
    let writer = JvmWriter {
        dynalite: &servers.dynalite,
        table: servers.table(),
        table_path: format!("{}/t", servers.place.root.replace("s3:", "s3a:")),
        storage: servers.without_coordinator(),
    };
    let mut random = Random::new(version * WRITERS + number);
    let id = format!("jvm-{number}-{version}");
    let is_own = writer.write(version, &id, random.chance(300));
    // Acts like a concurrent reader: its `listFrom` completes the entry.
    if random.chance(300)
        && let Some(entry) = writer.entry(version).filter(|entry| entry["complete"]["S"] == "false")
    {
        writer.fix(version, &entry);
    }
    is_own.then_some((version, id))
}
