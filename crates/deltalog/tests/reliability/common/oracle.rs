//! A naive replay, which applies every line of every commit to maps, oldest first. Protocol: "Action
//! Reconciliation".

use std::collections::BTreeMap;

use deltalog::Storage;
use deltalog::engine::protocol::log_name::LogFileName;
use serde_json::Value;

/// The file names that the tests' histories use, each with all its spellings.
pub const SPELLINGS: [&[&str]; 3] = [
    &["plain.parquet", "%70lain.parquet", "./plain.parquet", "/t/plain.parquet", "memory:///t/plain.parquet"],
    &["d=1/a%20b.parquet", "d=1/a b.parquet", "d%3D1//a%20b.parquet", "d%3d1%2Fa%20b.parquet"],
    &["memory:///other/c.parquet", "/other/c.parquet", "memory:/other/%63.parquet"],
];

/// A logical file: the index of its name in [`SPELLINGS`], and its deletion vector.
pub type Key = (usize, Option<String>);

/// Returns the index of the name with the spelling `path`.
pub fn name_of(path: &str) -> usize {
    SPELLINGS
        .iter()
        .position(|spellings| spellings.contains(&path))
        .unwrap_or_else(|| panic!("no such spelling: {path}"))
}

/// The state of a table, computed by the naive replay.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Table {
    /// The live files with their sizes.
    pub live: BTreeMap<Key, i64>,
    /// The tombstones with their versions and times.
    pub dead: BTreeMap<Key, (u64, Option<i64>)>,
    /// The progress of the applications.
    pub applications: BTreeMap<String, i64>,
    /// The configurations of the domains.
    pub domains: BTreeMap<String, String>,
    /// The table properties.
    pub configuration: BTreeMap<String, String>,
    /// The protocol's writer version.
    pub writer_version: i64,
}

impl Table {
    /// Replays versions 0 to `version`.
    pub fn at(storage: &Storage, version: u64) -> Self {
        let mut table = Self::default();
        for version in 0..=version {
            let bytes = storage.read(&LogFileName::Commit(version).path()).unwrap();
            for line in std::str::from_utf8(&bytes).unwrap().lines() {
                table.apply(version, &serde_json::from_str(line).unwrap());
            }
        }
        table
    }

    fn apply(&mut self, version: u64, line: &Value) {
        let (action, fields) = line.as_object().unwrap().iter().next().unwrap();
        let text = |name: &str| fields[name].as_str().unwrap().to_owned();
        match action.as_str() {
            "add" => {
                self.dead.remove(&key(fields));
                self.live.insert(key(fields), fields["size"].as_i64().unwrap());
            }
            "remove" => {
                self.live.remove(&key(fields));
                self.dead.insert(key(fields), (version, fields["deletionTimestamp"].as_i64()));
            }
            "txn" => drop(self.applications.insert(text("appId"), fields["version"].as_i64().unwrap())),
            "domainMetadata" if fields["removed"] == true => drop(self.domains.remove(&text("domain"))),
            "domainMetadata" => drop(self.domains.insert(text("domain"), text("configuration"))),
            "metaData" => {
                self.configuration = serde_json::from_value(fields["configuration"].clone()).unwrap()
            }
            "protocol" => self.writer_version = fields["minWriterVersion"].as_i64().unwrap(),
            _ => {}
        }
    }
}

fn key(fields: &Value) -> Key {
    let vector = fields["deletionVector"].as_object().map(|vector| {
        let offset = vector.get("offset").map(|offset| format!("@{offset}")).unwrap_or_default();
        format!(
            "{}{}{offset}",
            vector["storageType"].as_str().unwrap(),
            vector["pathOrInlineDv"].as_str().unwrap()
        )
    });
    (name_of(fields["path"].as_str().unwrap()), vector)
}
