//! Random histories: what the feed says against what was done, and against the rows of the versions. (PROTOCOL, "Add CDC File".)

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::test_table::*;
use crate::protocol::DeletionVectorDescriptor;

/// What a version may do to a table; numbers choose files and rows.
#[derive(Debug, Clone)]
enum Step {
    Append(u8),
    /// Other rows of a file are deleted from now on, perhaps fewer.
    Redelete(prop::sample::Index, BTreeSet<u8>),
    Drop(prop::sample::Index),
    /// Without `dataChange`.
    Rewrite(prop::sample::Index),
    /// With `cdc` files, beside actions that say nothing of what changed.
    Record(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>();
    prop_oneof![
        (1..20u8).prop_map(Step::Append),
        (index.clone(), prop::collection::btree_set(0..20u8, 0..12)).prop_map(|(file, rows)| Step::Redelete(file, rows)),
        index.clone().prop_map(Step::Drop),
        index.clone().prop_map(Step::Rewrite),
        index.prop_map(Step::Record),
    ]
}

/// A live file: its rows, and which of them are deleted.
#[derive(Debug, Clone)]
struct Live {
    path: String,
    ids: Vec<i64>,
    deleted: BTreeSet<u64>,
    vector: Option<DeletionVectorDescriptor>,
}

impl Live {
    fn rows(&self) -> Vec<i64> {
        self.ids.iter().zip(0..).filter(|(_, row)| !self.deleted.contains(row)).map(|(id, _)| *id).collect()
    }
}

/// Carries out `step`; what changed by it.
fn apply(table: &mut Table, live: &mut Vec<Live>, next_id: &mut i64, step: Step) -> Rows {
    let version = table.versions;
    let fresh = |table: &mut Table, ids: Vec<i64>| Live { path: table.write_ids(&ids), ids, deleted: BTreeSet::new(), vector: None };
    match step {
        Step::Redelete(..) | Step::Drop(_) | Step::Rewrite(_) | Step::Record(_) if live.is_empty() => {
            table.commit(vec![]);
            Rows::new()
        }
        Step::Append(count) => {
            let ids: Vec<i64> = (*next_id..).take(count.into()).collect();
            *next_id += i64::from(count);
            let file = fresh(table, ids.clone());
            table.commit(vec![table.add(&file.path)]);
            live.push(file);
            change("insert", ids, version)
        }
        Step::Redelete(file, rows) => {
            let file = file.get_mut(live);
            let before = file.clone();
            file.deleted = rows.into_iter().map(u64::from).filter(|row| *row < file.ids.len() as u64).collect();
            file.vector = table.vector(&file.deleted);
            let actions = vec![
                table.action("remove", &before.path, before.vector.as_ref(), true),
                table.action("add", &file.path, file.vector.as_ref(), true),
            ];
            table.commit(actions);
            let [old, new] = [before.rows(), file.rows()].map(BTreeSet::from_iter);
            sorted([change("delete", &old - &new, version), change("insert", &new - &old, version)])
        }
        Step::Drop(file) => {
            let file = live.remove(file.index(live.len()));
            table.commit(vec![table.action("remove", &file.path, file.vector.as_ref(), true)]);
            change("delete", file.rows(), version)
        }
        Step::Rewrite(file) => {
            let old = live.remove(file.index(live.len()));
            let new = fresh(table, old.rows());
            table.commit(vec![
                table.action("remove", &old.path, old.vector.as_ref(), false),
                table.action("add", &new.path, new.vector.as_ref(), false),
            ]);
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
            let cdc = json!({"cdc": {"path": recorded, "partitionValues": {}, "size": table.size(&recorded), "dataChange": false}});
            table.commit(vec![table.action("remove", &old.path, old.vector.as_ref(), true), table.add(&new.path), cdc]);
            live.push(new);
            change("delete", gone, version)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The feed says what was done, and done to the rows of one version it gives those of another.
    #[test]
    fn changes_lead_from_version_to_version(steps in prop::collection::vec(step(), 1..12), from: prop::sample::Index, to: prop::sample::Index) {
        let (mut table, mut live, mut next_id) = (Table::new(), Vec::new(), 0);
        let mut expected = vec![Rows::new()];
        for step in steps {
            expected.push(apply(&mut table, &mut live, &mut next_id, step));
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
}
