//! Compares the change feed of random histories with the operations that were performed, and with the rows of each
//! version. (PROTOCOL, "Add CDC File".)

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::ChangeBound;
use super::test_table::*;
use crate::expression::predicate::{ParseMode, parse};
use crate::protocol::DeletionVectorDescriptor;

/// A change to a table. The numbers in it select files and rows.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Append(u8),
    /// Replaces the set of a file's deleted rows, possibly by a smaller one.
    Redelete(prop::sample::Index, BTreeSet<u8>),
    Drop(prop::sample::Index),
    /// Rewrites a file without `dataChange`.
    Rewrite(prop::sample::Index),
    /// Records changes in `cdc` files, together with file actions that do not show these changes.
    Record(prop::sample::Index),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>();
    prop_oneof![
        (1..20u8).prop_map(Step::Append),
        (index.clone(), prop::collection::btree_set(0..20u8, 0..12))
            .prop_map(|(file, rows)| Step::Redelete(file, rows)),
        index.clone().prop_map(Step::Drop),
        index.clone().prop_map(Step::Rewrite),
        index.prop_map(Step::Record),
    ]
}

/// A table, and the files that are live in its newest version.
pub(crate) struct History {
    pub(crate) table: Table,
    live: Vec<Live>,
    next_id: i64,
}

impl History {
    pub(crate) fn new() -> Self {
        Self { table: Table::new(), live: Vec::new(), next_id: 0 }
    }

    /// Performs `step`, and returns the changes that the feed should report for it.
    pub(crate) fn apply(&mut self, step: Step) -> Rows {
        apply(&mut self.table, &mut self.live, &mut self.next_id, step, Stats::None)
    }

    /// Returns the rows of the newest version as changes of that version that insert them.
    pub(crate) fn as_inserts(&self) -> Rows {
        change("insert", self.live.iter().flat_map(Live::rows), self.table.versions - 1)
    }
}

/// A live file: its rows, and the rows that are deleted from it.
#[derive(Debug, Clone)]
struct Live {
    path: String,
    ids: Vec<i64>,
    deleted: BTreeSet<u64>,
    vector: Option<DeletionVectorDescriptor>,
    stats: Stats,
}

/// Which statistics a file's actions contain: none, the bounds of the live rows, or the bounds of all rows in the
/// file.
#[derive(Debug, Clone, Copy)]
enum Stats {
    None,
    Tight,
    Wide,
}

fn stats() -> impl Strategy<Value = Stats> {
    prop_oneof![Just(Stats::None), Just(Stats::Tight), Just(Stats::Wide)]
}

impl Live {
    /// Returns an `add` or `remove` action for the file.
    fn action(&self, table: &Table, kind: &str, data_change: bool) -> Value {
        let mut action = table.action(kind, &self.path, self.vector.as_ref(), data_change);
        let (rows, tight) = match self.stats {
            Stats::None => return action,
            Stats::Tight => (self.rows(), true),
            Stats::Wide => (self.ids.clone(), false),
        };
        let mut stats = json!({"numRecords": self.ids.len(), "nullCount": {"id": 0}, "tightBounds": tight});
        if let (Some(min), Some(max)) = (rows.iter().min(), rows.iter().max()) {
            stats["minValues"] = json!({"id": min});
            stats["maxValues"] = json!({"id": max});
        }
        action[kind]["stats"] = stats.to_string().into();
        action
    }

    fn rows(&self) -> Vec<i64> {
        self.ids.iter().zip(0..).filter(|(_, row)| !self.deleted.contains(row)).map(|(id, _)| *id).collect()
    }
}

/// Performs `step`, and returns the changes that the feed should report for it.
fn apply(table: &mut Table, live: &mut Vec<Live>, next_id: &mut i64, step: Step, stats: Stats) -> Rows {
    let version = table.versions;
    let fresh = |table: &mut Table, ids: Vec<i64>| Live {
        path: table.write_ids(&ids),
        ids,
        deleted: BTreeSet::new(),
        vector: None,
        stats,
    };
    match step {
        Step::Redelete(..) | Step::Drop(_) | Step::Rewrite(_) | Step::Record(_) if live.is_empty() => {
            table.commit(vec![]);
            Rows::new()
        }
        Step::Append(count) => {
            let ids: Vec<i64> = (*next_id..).take(count.into()).collect();
            *next_id += i64::from(count);
            let file = fresh(table, ids.clone());
            table.commit(vec![file.action(table, "add", true)]);
            live.push(file);
            change("insert", ids, version)
        }
        Step::Redelete(file, rows) => {
            let file = file.get_mut(live);
            let before = file.clone();
            file.deleted =
                rows.into_iter().map(u64::from).filter(|row| *row < file.ids.len() as u64).collect();
            file.vector = table.vector(&file.deleted);
            file.stats = stats;
            let actions = vec![before.action(table, "remove", true), file.action(table, "add", true)];
            table.commit(actions);
            let [old, new] = [before.rows(), file.rows()].map(BTreeSet::from_iter);
            sorted([change("delete", &old - &new, version), change("insert", &new - &old, version)])
        }
        Step::Drop(file) => {
            let file = live.remove(file.index(live.len()));
            table.commit(vec![file.action(table, "remove", true)]);
            change("delete", file.rows(), version)
        }
        Step::Rewrite(file) => {
            let old = live.remove(file.index(live.len()));
            let new = fresh(table, old.rows());
            table.commit(vec![old.action(table, "remove", false), new.action(table, "add", false)]);
            live.push(new);
            Rows::new()
        }
        Step::Record(file) => {
            let old = live.remove(file.index(live.len()));
            let rows = old.rows();
            let (gone, kept): (Vec<i64>, Vec<i64>) = rows.iter().partition(|id| *id % 3 == 0);
            let kinds: Vec<&str> = gone.iter().map(|_| "delete").collect();
            let recorded = table.write(vec![("id", ints(&gone)), ("_change_type", texts(&kinds))]);
            let new = fresh(table, kept);
            let size = table.size(&recorded);
            let cdc = json!({
                "cdc": {"path": recorded, "partitionValues": {}, "size": size, "dataChange": false}
            });
            table.commit(vec![old.action(table, "remove", true), new.action(table, "add", true), cdc]);
            live.push(new);
            change("delete", gone, version)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The feed reports the operations that were performed. Applying it to the rows of one version results in the
    /// rows of another version.
    #[test]
    fn changes_lead_from_version_to_version(
        steps in prop::collection::vec(step(), 1..12), from: prop::sample::Index, to: prop::sample::Index,
    ) {
        let (mut table, mut live, mut next_id) = (Table::new(), Vec::new(), 0);
        let mut expected = vec![Rows::new()];
        for step in steps {
            expected.push(apply(&mut table, &mut live, &mut next_id, step, Stats::None));
        }
        let (from, to) = (from.index(expected.len()), to.index(expected.len()));
        let (from, to) = (from.min(to), from.max(to));
        let found = table.between(from as u64, to as u64).unwrap();
        prop_assert_eq!(&found, &sorted(expected[from..=to].iter().cloned()));

        let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
        for id in ids_at(&table, from as i64) {
            *counts.entry(id).or_default() += 1;
        }
        for (kind, id, version) in found {
            if version > from as i64 {
                *counts.entry(id).or_default() += if kind == "insert" { 1 } else { -1 };
            }
        }
        prop_assert!(counts.values().all(|count| *count == 0 || *count == 1));
        let ids: Vec<i64> = counts.into_iter().filter(|(_, count)| *count == 1).map(|(id, _)| id).collect();
        prop_assert_eq!(ids, ids_at(&table, to as i64));
    }

    /// Reading with a predicate returns the same rows as filtering the whole feed, regardless of the
    /// statistics in the actions.
    #[test]
    fn pruned_reads_return_the_same_rows_as_filtering_afterwards(
        steps in prop::collection::vec((step(), stats()), 1..12), asked in asked(), from: prop::sample::Index,
    ) {
        let (mut table, mut live, mut next_id) = (Table::new(), Vec::new(), 0);
        let mut expected = vec![Rows::new()];
        for (step, stats) in steps {
            expected.push(apply(&mut table, &mut live, &mut next_id, step, stats));
        }
        let from = from.index(expected.len());
        let expected = sorted(expected.drain(from..));
        let expected: Rows = expected.into_iter().filter(|row| asked.holds(row)).collect();
        let predicate = parse(&asked.sql(), "UTC", ParseMode::Strict).unwrap();
        let found = table.changes(table.feed().from(ChangeBound::Version(from as u64)).predicate(predicate)).unwrap();
        prop_assert_eq!(found, expected);
    }
}

/// A predicate on the rows of the feed.
#[derive(Debug, Clone)]
enum Asked {
    Id(bool, i64),
    Version(bool, i64),
    Kind(&'static str),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Not(Box<Self>),
}

fn asked() -> impl Strategy<Value = Asked> {
    let leaf = prop_oneof![
        4 => (any::<bool>(), -1..60i64).prop_map(|(less, id)| Asked::Id(less, id)),
        1 => (any::<bool>(), 0..12i64).prop_map(|(less, version)| Asked::Version(less, version)),
        1 => prop_oneof![Just("insert"), Just("delete"), Just("update_preimage")].prop_map(Asked::Kind),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let pair = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            pair().prop_map(|(a, b)| Asked::And(a, b)),
            pair().prop_map(|(a, b)| Asked::Or(a, b)),
            inner.clone().prop_map(|inner| Asked::Not(Box::new(inner))),
        ]
    })
}

impl Asked {
    fn sql(&self) -> String {
        let op = |less: &bool| if *less { "<" } else { ">=" };
        match self {
            Self::Id(less, id) => format!("id {} {id}", op(less)),
            Self::Version(less, version) => format!("_commit_version {} {version}", op(less)),
            Self::Kind(kind) => format!("_change_type = '{kind}'"),
            Self::And(a, b) => format!("({} AND {})", a.sql(), b.sql()),
            Self::Or(a, b) => format!("({} OR {})", a.sql(), b.sql()),
            Self::Not(inner) => format!("NOT ({})", inner.sql()),
        }
    }

    fn holds(&self, row @ (kind, id, version): &(String, i64, i64)) -> bool {
        match self {
            Self::Id(less, bound) => (id < bound) == *less,
            Self::Version(less, bound) => (version < bound) == *less,
            Self::Kind(wanted) => kind == wanted,
            Self::And(a, b) => a.holds(row) && b.holds(row),
            Self::Or(a, b) => a.holds(row) || b.holds(row),
            Self::Not(inner) => !inner.holds(row),
        }
    }
}
