//! The processes of a run, and the kind of its table.

use std::collections::BTreeMap;

use deltalog::{PrimitiveType, StructField, StructType};
use deltalog_testkit::judge::IDENTITY;
use deltalog_testkit::random::Random;

use crate::place::Place;
use crate::verbs::{FOLLOWER, KEEPER, READER, Role, TAILER, WRITER};

/// A process of a run.
pub struct Part {
    pub name: String,
    pub role: Role,
    /// How many operations (verbs) the process performs on each day.
    pub verbs: u64,
    /// Whether a second thread does the background work of its commits.
    pub has_background: bool,
}

/// The processes of a run, and the kind of its table.
pub struct Cast {
    pub place: Place,
    pub parts: Vec<Part>,
    /// Whether the table exists before the processes begin. Otherwise the writers create it.
    pub is_founded: bool,
    pub properties: BTreeMap<String, String>,
    /// Whether data files are real, so that predicates can be evaluated. Otherwise they are never read.
    pub has_rows: bool,
    /// Whether the table has an identity column.
    pub counts: bool,
    /// Whether processes choose clustering columns.
    pub is_clustered: bool,
    /// Writes compact small files if there are at least this many; 0 if writes never compact.
    pub compacts_from: u64,
    /// How many days after the start of the run the processes do the work of their second day. By then, a part of the
    /// log has expired. 0 if the run has only one day.
    pub pause_days: i64,
}

impl Cast {
    /// Draws the processes and the table of a run at random.
    pub fn draw(random: &mut Random, place: Place) -> Self {
        let mut parts = Vec::new();
        let mut add = |name: &str, role: Role, count: u64, random: &mut Random| {
            for number in 1..=count {
                let (verbs, has_background) = (3 + random.below(3), random.chance(350));
                parts.push(Part { name: format!("{name}{number}"), role, verbs, has_background });
            }
        };
        let (writers, readers, keepers) = (2 + random.below(2), random.below(2), random.below(2));
        add("writer", WRITER, writers, random);
        add("reader", READER, readers, random);
        add("keeper", KEEPER, keepers, random);
        add("follower", FOLLOWER, random.below(2), random);
        add("tailer", TAILER, random.below(2), random);
        let (is_founded, has_rows) = (random.chance(700), random.chance(300));
        let (counts, pauses) = (has_rows && random.chance(250), random.chance(150) && place.has_days());
        let pause_days = if pauses { 2 } else { 0 };
        let compacts_from = if has_rows && random.chance(300) { 2 + random.below(3) } else { 0 };
        let is_clustered = has_rows && random.chance(400);
        Self {
            place,
            parts,
            is_founded,
            properties: properties(random, pause_days > 0, is_clustered),
            has_rows,
            counts,
            is_clustered,
            compacts_from,
            pause_days,
        }
    }

    /// Returns whether a property of the table is set to true.
    pub fn has(&self, property: &str) -> bool {
        self.properties.get(property).is_some_and(|value| value == "true")
    }

    /// Returns the schema with which the table is created.
    pub fn schema(&self) -> StructType {
        let mut fields =
            ["id", "class"].map(|name| StructField::new(name, PrimitiveType::Long, true)).to_vec();
        if self.counts {
            fields.push(StructField::new(IDENTITY, PrimitiveType::Long, true).with_identity(1, 1, false));
        }
        StructType::try_new(fields).unwrap()
    }
}

/// Draws the properties of a table at random.
fn properties(random: &mut Random, expires: bool, is_clustered: bool) -> BTreeMap<String, String> {
    let interval = random.pick(&["2", "3", "5", "10"]);
    let mut properties = vec![("delta.checkpointInterval", *interval)];
    if is_clustered {
        // The processes choose the clustering columns.
        properties.push(("delta.feature.clustering", "supported"));
    }
    if random.chance(300) {
        properties.push(("delta.enableInCommitTimestamps", "true"));
    }
    if random.chance(300) {
        properties.push(("delta.enableRowTracking", "true"));
    }
    if random.chance(600) {
        properties.push(("delta.enableDeletionVectors", "true"));
    }
    if expires {
        properties.push(("delta.logRetentionDuration", "interval 1 days"));
    }
    properties.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Draws one of the verbs of `role` at random.
pub fn draw_verb(role: Role, number: u64) -> crate::verbs::Verb {
    let mut rest = number % role.iter().map(|(weight, _)| weight).sum::<u64>();
    for (weight, verb) in role {
        if rest < *weight {
            return *verb;
        }
        rest -= weight;
    }
    unreachable!("the random number is below the sum of the weights")
}
