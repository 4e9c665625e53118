//! The crate's replay of random histories is compared with a naive replay. Protocol: "Action Reconciliation",
//! "Checkpoints".

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::engine::replay::CheckpointReader;
use deltalog::{Snapshot, Storage};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use crate::common::oracle::{Key, SPELLINGS, Table, name_of};
use crate::common::{
    NOW_MS, deletion_vector, empty, environment, first_lines, live, metadata_line, write_commit,
};

const HOUR_MS: i64 = 3_600_000;
const WEEK_MS: i64 = 7 * 24 * HOUR_MS;

/// One line of a commit.
#[derive(Debug, Clone)]
pub enum Step {
    Add {
        name: usize,
        spelling: usize,
        vector: usize,
    },
    Remove {
        name: usize,
        spelling: usize,
        vector: usize,
        age_ms: Option<i64>,
    },
    Application(usize, i64),
    Domain(usize, bool),
    Retention(Option<&'static str>),
    /// Sets the number of days for which the log is kept.
    LogRetention(i64),
    Protocol(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let file = || (0..SPELLINGS.len(), 0..5usize, 0..4usize);
    let ages = prop_oneof![
        Just(None),
        Just(Some(0)),
        Just(Some(2 * HOUR_MS)),
        Just(Some(WEEK_MS)),
        Just(Some(WEEK_MS - 1))
    ];
    let retentions =
        prop_oneof![Just(None), Just(Some("interval 1 hour")), Just(Some("interval 1 fortnight"))];
    let remove = |((name, spelling, vector), age_ms)| Step::Remove { name, spelling, vector, age_ms };
    prop_oneof![
        6 => file().prop_map(|(name, spelling, vector)| Step::Add { name, spelling, vector }),
        6 => (file(), ages).prop_map(remove),
        1 => (0..2usize, 0..9i64).prop_map(|(app, version)| Step::Application(app, version)),
        1 => (0..2usize, any::<bool>()).prop_map(|(domain, removed)| Step::Domain(domain, removed)),
        1 => retentions.prop_map(Step::Retention),
        1 => (2..=2i64).prop_map(Step::Protocol),
    ]
}

/// Generates a few commits, some of them without files.
pub fn history() -> impl Strategy<Value = Vec<Vec<Step>>> {
    vec(vec(step(), 0..6), 1..10)
}

impl Step {
    pub fn line(&self, serial: i64) -> String {
        let path = |name: usize, spelling: usize| SPELLINGS[name][spelling % SPELLINGS[name].len()];
        let with_vector = |mut fields: serde_json::Value, vector: usize| {
            let text = ["", "ab^-aqEH.-t@S}K{vb[*k^", "ab^-aqEH.-t@S}K{vb[*k^", "other"][vector];
            if vector > 0 {
                fields["deletionVector"] =
                    json!({"storageType": "u", "pathOrInlineDv": text, "sizeInBytes": 40, "cardinality": 6});
            }
            if vector > 1 {
                fields["deletionVector"]["offset"] = json!(vector);
            }
            fields
        };
        match self {
            Self::Add { name, spelling, vector } => {
                let fields = json!({
                    "path": path(*name, *spelling), "partitionValues": {}, "size": serial,
                    "modificationTime": 1, "dataChange": true,
                });
                json!({"add": with_vector(fields, *vector)})
            }
            Self::Remove { name, spelling, vector, age_ms } => {
                let mut fields = json!({"path": path(*name, *spelling), "dataChange": true});
                if let Some(age_ms) = age_ms {
                    fields["deletionTimestamp"] = json!(NOW_MS - age_ms);
                }
                json!({"remove": with_vector(fields, *vector)})
            }
            Self::Application(app, version) => {
                json!({"txn": {"appId": format!("app{app}"), "version": version}})
            }
            Self::Domain(domain, removed) => {
                let domain = format!("domain{domain}");
                let fields =
                    json!({"domain": domain, "configuration": serial.to_string(), "removed": removed});
                json!({"domainMetadata": fields})
            }
            Self::Retention(None) => return metadata_line(&BTreeMap::new()),
            Self::Retention(Some(text)) => {
                return metadata_line(
                    &[("delta.deletedFileRetentionDuration".to_owned(), (*text).to_owned())].into(),
                );
            }
            Self::LogRetention(days) => {
                return metadata_line(
                    &[("delta.logRetentionDuration".to_owned(), format!("interval {days} days"))].into(),
                );
            }
            Self::Protocol(writer) => {
                json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": writer}})
            }
        }
        .to_string()
    }
}

/// Returns the lines of each version. The first version has protocol and metadata, and no commit is empty. Each step
/// has a serial number, which becomes the size of an added file, or the configuration of a domain.
pub fn lines(history: &[Vec<Step>]) -> Vec<Vec<String>> {
    let mut serial = 0;
    let mut commits = Vec::new();
    for (version, steps) in history.iter().enumerate() {
        let mut commit = if version == 0 {
            first_lines(&BTreeMap::new())
        } else {
            vec![json!({"commitInfo": {}}).to_string()]
        };
        for step in steps {
            serial += 1;
            commit.push(step.line(serial));
        }
        commits.push(commit);
    }
    commits
}

pub fn write_history(history: &[Vec<Step>]) -> Storage {
    let (_, storage) = empty();
    for (version, commit) in (0..).zip(lines(history)) {
        write_commit(&storage, version, &commit);
    }
    storage
}

/// Returns the content of a snapshot in the oracle's form. Tombstones are left out, because a snapshot does not return
/// them. They are compared in checkpoints.
pub fn contents(snapshot: &Snapshot) -> Table {
    let files = live(snapshot).unwrap();
    let live: BTreeMap<Key, i64> =
        files.iter().map(|(path, vector, size)| ((name_of(path), vector.clone()), *size)).collect();
    assert_eq!(live.len(), files.len(), "a logical file is listed twice: {files:?}");
    let application = |app: &str| Some((app.to_owned(), snapshot.app_transaction(app).unwrap()?.version));
    Table {
        live,
        dead: BTreeMap::new(),
        applications: ["app0", "app1"].into_iter().filter_map(application).collect(),
        domains: snapshot
            .domain_metadata()
            .unwrap()
            .into_iter()
            .map(|domain| (domain.domain, domain.configuration))
            .collect(),
        configuration: snapshot.metadata().configuration.clone(),
        writer_version: snapshot.protocol().min_writer_version.into(),
    }
}

pub fn expected(table: &Table) -> Table {
    Table { dead: BTreeMap::new(), ..table.clone() }
}

/// Returns the tombstones that have not expired. Protocol: "Add File and Remove File".
pub fn unexpired(table: &Table) -> BTreeSet<Key> {
    let retention = match table.configuration.get("delta.deletedFileRetentionDuration").map(String::as_str) {
        None => WEEK_MS,
        Some("interval 1 hour") => HOUR_MS,
        // If the retention is invalid, tombstones with a time never expire.
        Some(_) => i64::MAX,
    };
    let kept = |(_, time): &(u64, Option<i64>)| time.is_some_and(|time| NOW_MS - time <= retention);
    table.dead.iter().filter(|(_, time)| kept(time)).map(|(key, _)| key.clone()).collect()
}

/// Returns the tombstones of the checkpoint that `snapshot` starts from.
fn tombstones(snapshot: &Snapshot) -> BTreeSet<Key> {
    let checkpoint = snapshot.segment().checkpoint.as_ref().expect("the checkpoint is used");
    let mut keys = BTreeSet::new();
    for batch in CheckpointReader::removes(snapshot.storage(), checkpoint).unwrap() {
        let batch = batch.unwrap();
        assert_eq!(
            batch.column_by_name("deletionTimestamp").unwrap().as_primitive::<Int64Type>().null_count(),
            0
        );
        for row in 0..batch.num_rows() {
            let path = batch.column_by_name("path").unwrap().as_string::<i32>().value(row);
            assert!(
                keys.insert((name_of(path), deletion_vector(&batch, row))),
                "a tombstone is listed twice"
            );
        }
    }
    keys
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_version_agrees_with_the_naive_replay(history in history()) {
        let storage = write_history(&history);
        for version in 0..history.len() as u64 {
            let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
            prop_assert_eq!(snapshot.version(), version);
            prop_assert_eq!(contents(&snapshot), expected(&Table::at(&storage, version)));
        }
    }

    /// Checkpoints are written for random versions in random order. A checkpoint is based on the one before it, if
    /// there is one.
    #[test]
    fn checkpoints_and_later_commits_agree_with_the_naive_replay(
        history in history(), at in vec(any::<Index>(), 1..3),
    ) {
        let storage = write_history(&history);
        let versions = history.len() as u64;
        let mut tables: Vec<_> = (0..versions).map(|version| Table::at(&storage, version)).collect();
        for index in at {
            let version = index.index(history.len());
            write_checkpoint(&Snapshot::open(&storage, Some(version as u64)).unwrap(), &environment()).unwrap();
            let snapshot = Snapshot::open(&storage, Some(version as u64)).unwrap();
            prop_assert_eq!(tombstones(&snapshot), unexpired(&tables[version]));
            for (version, table) in tables.iter().enumerate() {
                let snapshot = Snapshot::open(&storage, Some(version as u64)).unwrap();
                prop_assert_eq!(contents(&snapshot), expected(table));
            }
            // Tombstones that this checkpoint omits as expired are also missing from checkpoints based on it,
            // regardless of the retention at that time.
            let kept = unexpired(&tables[version]);
            let dead = tables[version].dead.clone().into_iter();
            let expired: Vec<_> = dead.filter(|(key, _)| !kept.contains(key)).collect();
            for later in tables.iter_mut().skip(version) {
                later.dead.retain(|key, tombstone| !expired.contains(&(key.clone(), *tombstone)));
            }
        }
    }

    /// A snapshot that is refreshed now and then while checkpoints are written has the same content as a newly opened
    /// snapshot.
    #[test]
    fn refreshing_agrees_with_opening(history in history(), events in vec((any::<bool>(), 0..4u8), 10)) {
        let (_, storage) = empty();
        let mut held: Option<Snapshot> = None;
        for ((version, commit), (refresh, checkpoint)) in (0..).zip(lines(&history)).zip(events) {
            write_commit(&storage, version, &commit);
            let table = Table::at(&storage, version);
            if checkpoint == 0 {
                write_checkpoint(&Snapshot::open(&storage, None).unwrap(), &environment()).unwrap();
            }
            if !refresh {
                continue;
            }
            let opened = Snapshot::open(&storage, None).unwrap();
            let refreshed = held.take().map_or_else(|| Ok(opened.clone()), |held| held.refresh()).unwrap();
            prop_assert_eq!(refreshed.version(), opened.version());
            prop_assert_eq!(contents(&refreshed), expected(&table));
            prop_assert_eq!(contents(&opened), expected(&table));
            prop_assert_eq!(refreshed.schema(), opened.schema());
            held = Some(refreshed);
        }
    }

    /// If the log before a checkpoint is cleaned up, an open snapshot can still be refreshed, and a new one
    /// opened.
    #[test]
    fn cleaning_up_before_a_checkpoint_changes_nothing(
        history in history(), held in any::<Index>(), at in any::<Index>(),
    ) {
        let storage = write_history(&history);
        let (held, checkpoint) = (held.index(history.len()) as u64, at.index(history.len()) as u64);
        let last = history.len() as u64 - 1;
        let table = Table::at(&storage, last);
        let held = Snapshot::open(&storage, Some(held)).unwrap();
        write_checkpoint(&Snapshot::open(&storage, Some(checkpoint)).unwrap(), &environment()).unwrap();
        for version in 0..=checkpoint {
            storage.delete(&LogFileName::Commit(version).path()).unwrap();
        }
        let opened = Snapshot::open(&storage, None).unwrap();
        prop_assert_eq!(contents(&opened), expected(&table));
        let refreshed = held.refresh().unwrap();
        prop_assert_eq!(refreshed.version(), last);
        prop_assert_eq!(contents(&refreshed), expected(&table));
    }
}
