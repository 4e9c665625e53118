//! Who takes part in a run.

use std::collections::BTreeMap;

use deltalog_testkit::random::Random;

use crate::verbs::{KEEPER, READER, Role, WRITER};

/// A part in a run.
pub struct Part {
    pub name: String,
    pub role: Role,
    /// How many verbs it does in each life.
    pub verbs: u64,
}

/// The parts of a run, and the properties of its table.
pub struct Cast {
    pub parts: Vec<Part>,
    /// Whether the table exists before the others begin. Otherwise the writers create it.
    pub is_founded: bool,
    pub properties: BTreeMap<String, String>,
}

impl Cast {
    /// Draws the parts of a run.
    pub fn draw(random: &mut Random) -> Self {
        let mut parts = Vec::new();
        let mut add = |name: &str, role: Role, count: u64, random: &mut Random| {
            for number in 1..=count {
                parts.push(Part { name: format!("{name}{number}"), role, verbs: 3 + random.below(3) });
            }
        };
        let (writers, readers, keepers) = (2 + random.below(2), random.below(2), random.below(2));
        add("writer", WRITER, writers, random);
        add("reader", READER, readers, random);
        add("keeper", KEEPER, keepers, random);
        Self { parts, is_founded: random.chance(700), properties: properties(random) }
    }
}

/// Draws the properties of a table.
fn properties(random: &mut Random) -> BTreeMap<String, String> {
    let interval = random.pick(&["2", "3", "5", "10"]);
    let mut properties = vec![("delta.checkpointInterval", *interval)];
    if random.chance(300) {
        properties.push(("delta.enableInCommitTimestamps", "true"));
    }
    if random.chance(300) {
        properties.push(("delta.enableRowTracking", "true"));
    }
    if random.chance(600) {
        properties.push(("delta.enableDeletionVectors", "true"));
    }
    properties.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Draws a verb of `role`.
pub fn draw_verb(role: Role, number: u64) -> crate::verbs::Verb {
    let mut rest = number % role.iter().map(|(weight, _)| weight).sum::<u64>();
    for (weight, verb) in role {
        if rest < *weight {
            return *verb;
        }
        rest -= weight;
    }
    unreachable!("the rest is below the sum of the weights")
}
