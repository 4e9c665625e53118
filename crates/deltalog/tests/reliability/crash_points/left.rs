//! Saves the tables that failed operations leave behind in a build directory, each with the result of a naive replay
//! of its log. `tests/interop/test_crashed_tables.py` compares these results with another implementation.
//!
//! ```text
//!   target/tmp/crashed-tables/<operation>/<number>/table/_delta_log/…
//!                                                 expected.json
//! ```
//!
//! If several runs share a build directory, `DELTALOG_CRASHED_TABLES` gives each a directory of its own.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use deltalog_testkit::judge::Log;
use serde_json::json;

use crate::common::store::FaultyStore;

/// The different tables that failures of one operation leave behind.
pub struct Left {
    directory: PathBuf,
    kept: HashSet<u64>,
}

impl Left {
    /// Prepares the directory for the operation of this test.
    pub fn new() -> Self {
        let test = std::thread::current();
        let operation = test.name().and_then(|name| name.rsplit("::").next()).unwrap().to_owned();
        let chosen = std::env::var_os("DELTALOG_CRASHED_TABLES");
        let tables = chosen.unwrap_or_else(|| concat!(env!("CARGO_TARGET_TMPDIR"), "/crashed-tables").into());
        let directory = PathBuf::from(tables).join(operation);
        if directory.exists() {
            std::fs::remove_dir_all(&directory).unwrap();
        }
        Self { directory, kept: HashSet::new() }
    }

    /// Saves the table in `store`, unless there is no table or an identical one was saved already.
    pub fn keep(&mut self, store: &FaultyStore) {
        let objects = store.objects();
        let log = Log::read(&objects, "t").unwrap();
        let Some(newest) = log.states.last() else { return };
        let entries = objects.list("t", "");
        let files = entries.iter().map(|entry| (&entry.path, &objects.get(&entry.path).unwrap().bytes));
        let mut hasher = DefaultHasher::new();
        files.clone().for_each(|file| file.hash(&mut hasher));
        if !self.kept.insert(hasher.finish()) {
            return;
        }
        let table = self.directory.join(self.kept.len().to_string());
        for (path, bytes) in files {
            let file = table.join("table").join(path.strip_prefix("t/").unwrap());
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, bytes).unwrap();
        }
        let expected = json!({"version": log.states.len() - 1, "files": newest.files});
        std::fs::write(table.join("expected.json"), expected.to_string()).unwrap();
    }
}
