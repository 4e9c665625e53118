//! Processes that write to a table in versitygw and are killed at random.

use crate::kills::{self, Victims};
use crate::places::Place;

#[test]
fn nothing_is_lost_or_doubled_when_processes_are_killed() {
    let place = Place::versitygw();
    let table = format!("{}/t", place.root);
    Victims { table, options: place.options, kills: 100, child: "killed::write_until_killed" }.kill();
}

#[test]
#[ignore = "a child process of the test above"]
fn write_until_killed() {
    kills::write_until_killed();
}
