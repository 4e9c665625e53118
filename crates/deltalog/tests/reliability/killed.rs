//! Processes that write to a table in a local directory and are killed at random.

use crate::kills::{self, Victims};

#[test]
fn nothing_is_lost_or_doubled_when_processes_are_killed() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().to_str().unwrap().to_owned();
    Victims { table, options: Vec::new(), kills: 200, child: "killed::write_until_killed" }.kill();
}

#[test]
#[ignore = "a child process of the test above"]
fn write_until_killed() {
    kills::write_until_killed();
}
