//! The checkpoints that the crate writes, in every form. Protocol: "Checkpoints", "Checkpoint Specs", "Checkpoint
//! Naming Scheme", "Sidecar Files", "Last Checkpoint File".

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use deltalog::engine::checkpoint::{CheckpointLimits, write_checkpoint, write_checkpoint_within};
use deltalog::engine::log::{CheckpointKind, LOG_DIRECTORY, LastCheckpoint};
use deltalog::engine::protocol::log_name::LogFileName;
use deltalog::engine::replay::CheckpointReader;
use deltalog::{Environment, ErrorKind, Snapshot, Storage};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::forms::{Form, rewrite};
use crate::common::oracle::{Key, Table, name_of};
use crate::common::store::{FaultyStore, Op};
use crate::common::{
    NOW_MS, add_line, deletion_vector, empty, environment, first_lines, live, metadata_line, paths,
    write_commit,
};
use crate::histories::{Step, contents, expected, history, lines, unexpired};
use crate::vacuum::at;

/// Size limits so low that a few files exceed them.
pub(super) fn small() -> CheckpointLimits {
    limits(0, 1000, 4)
}

pub(super) fn limits(inline_rows: u64, json_actions: usize, sidecar_rows: u64) -> CheckpointLimits {
    let mut limits = CheckpointLimits::default();
    (limits.inline_rows, limits.json_actions, limits.sidecar_rows) =
        (inline_rows, json_actions, sidecar_rows);
    limits
}

pub(crate) fn v2_protocol() -> String {
    let features = ["v2Checkpoint"];
    json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
    }})
    .to_string()
}

/// Returns a `metaData` line of a table with the checkpoint policy `v2` and these additional properties.
pub(crate) fn v2_metadata(properties: &[(&str, &str)]) -> String {
    let all = [("delta.checkpointPolicy", "v2")].iter().chain(properties);
    metadata_line(&all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

/// Creates a table with the policy `v2` whose version 1 adds `files` files.
pub(super) fn v2_table(files: usize) -> (FaultyStore, Storage) {
    let (store, storage) = empty();
    write_commit(&storage, 0, &[v2_protocol(), v2_metadata(&[])]);
    write_commit(&storage, 1, &(0..files).map(|file| add_line(&format!("1-{file:03}"))).collect::<Vec<_>>());
    (store, storage)
}

fn remove_line(path: &str, time_ms: i64) -> String {
    json!({"remove": {"path": path, "deletionTimestamp": time_ms, "dataChange": true}}).to_string()
}

pub(super) fn open(storage: &Storage) -> Snapshot {
    Snapshot::open(storage, None).unwrap()
}

/// Returns the names of the log files that are not commits.
pub(super) fn other_files(storage: &Storage) -> BTreeSet<String> {
    let files = storage.list_after(LOG_DIRECTORY, "").unwrap().into_iter().map(|file| file.name);
    files.filter(|name| !matches!(LogFileName::parse(name), Some(LogFileName::Commit(_)))).collect()
}

fn sidecars(storage: &Storage) -> BTreeSet<String> {
    other_files(storage).into_iter().filter(|name| name.starts_with("_sidecars/")).collect()
}

/// Returns the sidecars to which the top-level JSON file of the newest checkpoint of `snapshot` refers.
fn referenced(snapshot: &Snapshot) -> BTreeSet<String> {
    let name = &snapshot.segment().checkpoint.as_ref().unwrap().files[0].name;
    let head = snapshot.storage().read(&format!("{LOG_DIRECTORY}/{name}")).unwrap();
    let lines =
        std::str::from_utf8(&head).unwrap().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let paths =
        lines.filter_map(|line| Some(format!("_sidecars/{}", line.get("sidecar")?["path"].as_str()?)));
    paths.collect()
}

pub(super) fn hint(storage: &Storage) -> LastCheckpoint {
    let bytes = storage.read(&LogFileName::LastCheckpoint.path()).unwrap();
    LastCheckpoint::parse(&bytes).unwrap()
}

fn tombstones(snapshot: &Snapshot) -> BTreeSet<Key> {
    let checkpoint = snapshot.segment().checkpoint.as_ref().unwrap();
    let mut keys = BTreeSet::new();
    for batch in CheckpointReader::removes(snapshot.storage(), checkpoint).unwrap() {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            assert!(!batch.column_by_name("dataChange").unwrap().as_boolean().value(row));
            let path = batch.column_by_name("path").unwrap().as_string::<i32>().value(row);
            assert!(keys.insert((name_of(path), deletion_vector(&batch, row))), "a tombstone is there twice");
        }
    }
    keys
}

/// Writes a history as [`crate::histories::write_history`] does, with the policy and the feature of V2 checkpoints.
fn write_v2_history(history: &[Vec<Step>]) -> Storage {
    let (_, storage) = empty();
    for (version, commit) in (0..).zip(lines(history)) {
        let changed = |line: &String| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if line.get("protocol").is_some() {
                return v2_protocol();
            }
            if let Some(metadata) = line.get_mut("metaData") {
                metadata["configuration"]["delta.checkpointPolicy"] = json!("v2");
            }
            line.to_string()
        };
        write_commit(&storage, version, &commit.iter().map(changed).collect::<Vec<_>>());
    }
    storage
}

/// Draws size limits, and the number of parts into which a classic checkpoint is split, as older writers did.
fn form() -> impl Strategy<Value = (CheckpointLimits, Option<u32>)> {
    let limits = (0..6u64, prop_oneof![Just(0usize), Just(1000)], 1..5u64)
        .prop_map(|(inline, json, sidecar)| limits(inline, json, sidecar));
    (limits, prop_oneof![3 => Just(None), 1 => (1..4u32).prop_map(Some)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    /// Checkpoints of all forms are written, each based on the previous one after its commits are gone. They have the
    /// same content as a naive replay of all commits.
    #[test]
    fn a_chain_of_checkpoints_agrees_with_the_naive_replay(
        history in history(),
        is_v2: bool,
        at in btree_set(0..9usize, 1..5),
        forms in vec(form(), 5),
    ) {
        let storage = if is_v2 { write_v2_history(&history) } else { crate::histories::write_history(&history) };
        let versions = history.len() as u64;
        let tables: Vec<_> = (0..versions).map(|version| Table::at(&storage, version)).collect();
        // All checkpoints share one environment, because the ids of all sidecars must differ.
        let environment = environment();
        let mut dropped = BTreeSet::new();
        for (version, (limits, parts)) in at.into_iter().filter(|version| *version < history.len()).zip(forms) {
            let table = &tables[version];
            let version = version as u64;
            let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
            write_checkpoint_within(&snapshot, &limits, &environment).unwrap();
            if let Some(parts) = parts.filter(|_| !is_v2) {
                rewrite(&storage, version, Form::Parts(parts));
            }
            for version in 0..=version {
                storage.delete(&LogFileName::Commit(version).path()).unwrap();
            }
            let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
            prop_assert_eq!(snapshot.segment().checkpoint.as_ref().map(|found| found.version), Some(version));
            prop_assert_eq!(contents(&snapshot), expected(table));
            // A checkpoint may reuse sidecars that still contain expired tombstones.
            let found = tombstones(&snapshot);
            prop_assert!(found.iter().all(|key| table.dead.contains_key(key)), "{:?} in {:?}", found, table.dead);
            // Tombstones that an earlier checkpoint left out as expired do not return, even if the retention is longer
            // now.
            let missing = unexpired(table).into_iter().filter(|key| !found.contains(key));
            for key in missing {
                prop_assert!(dropped.contains(&(key.clone(), table.dead[&key])), "{:?} is missing", key);
            }
            let dead = table.dead.clone().into_iter();
            dropped.extend(dead.filter(|(key, _)| !found.contains(key)));
            prop_assert_eq!(contents(&open(&storage)), expected(tables.last().unwrap()));
        }
    }
}

/// The kind of a checkpoint, and whether it has sidecars, follow from the policy and the number of actions.
#[test]
fn the_form_follows_from_policy_and_size() {
    for (limits, kind, has_sidecars) in [
        (limits(100, 100, 100), CheckpointKind::UuidParquet, false),
        (limits(3, 100, 100), CheckpointKind::UuidJson, true),
        (limits(3, 2, 100), CheckpointKind::UuidParquet, true),
    ] {
        let (_, storage) = v2_table(10);
        let environment = environment();
        // The first checkpoint has the classic name.
        write_checkpoint_within(&open(&storage), &limits, &environment).unwrap();
        assert_eq!(open(&storage).segment().checkpoint.as_ref().unwrap().kind, CheckpointKind::Classic);
        assert_eq!(!sidecars(&storage).is_empty(), has_sidecars);
        write_commit(&storage, 2, &[add_line("2")]);
        write_checkpoint_within(&open(&storage), &limits, &environment).unwrap();
        assert_eq!(open(&storage).segment().checkpoint.as_ref().unwrap().kind, kind);
        assert_eq!(paths(&open(&storage)).len(), 11);
        // Later, every tenth checkpoint has the classic name again.
        for version in 3..=100 {
            write_commit(&storage, version, &[add_line(&version.to_string())]);
        }
        write_checkpoint_within(&open(&storage), &limits, &environment).unwrap();
        assert_eq!(open(&storage).segment().checkpoint.as_ref().unwrap().kind, CheckpointKind::Classic);
        assert_eq!(paths(&open(&storage)).len(), 109);
    }
}

/// Checkpoints with a UUID in the name are written only if the table has the feature `v2Checkpoint`.
#[test]
fn forms_that_the_protocol_forbids_are_not_written() {
    let (_, storage) = empty();
    let policy = BTreeMap::from([("delta.checkpointPolicy".to_owned(), "v2".to_owned())]);
    write_commit(&storage, 0, &first_lines(&policy));
    write_checkpoint_within(&open(&storage), &small(), &environment()).unwrap();
    let classic = LogFileName::ClassicCheckpoint(0).to_string();
    assert_eq!(other_files(&storage), [classic, "_last_checkpoint".to_owned()].into());
}

/// A client that does not know a feature does not know its actions, so its checkpoint would lose them.
#[test]
fn tables_with_unknown_features_get_no_checkpoint() {
    let (_, storage) = empty();
    let protocol = json!({"protocol": {
        "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["someLaterFeature", "identityColumns"],
    }});
    write_commit(&storage, 0, &[protocol.to_string(), metadata_line(&BTreeMap::new())]);
    let error = write_checkpoint(&open(&storage), &environment()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("someLaterFeature"), "{error}");
    assert!(!error.to_string().contains("identityColumns"), "{error}");
    assert!(other_files(&storage).is_empty());
}

#[test]
fn sidecars_that_did_not_change_are_not_written_again() {
    let (store, storage) = v2_table(40);
    let environment = environment();
    let write = |storage: &Storage| {
        store.take_calls();
        write_checkpoint_within(&open(storage), &small(), &environment).unwrap();
        let puts = store.take_calls().into_iter().filter(|call| call.op == Op::Put);
        puts.filter(|call| call.path.contains("_sidecars")).count()
    };
    assert_eq!(write(&storage), 10);
    let first = sidecars(&storage);

    // New files go to a new sidecar.
    write_commit(&storage, 2, &[add_line("2")]);
    assert_eq!(write(&storage), 1);
    let second = referenced(&open(&storage));
    assert_eq!((second.len(), second.intersection(&first).count()), (11, 10));

    // A small sidecar is merged with new files, so that checkpoints do not accumulate small sidecars.
    write_commit(&storage, 3, &[add_line("3")]);
    assert_eq!(write(&storage), 1);
    let third = referenced(&open(&storage));
    assert_eq!((third.len(), third.intersection(&first).count()), (11, 10));
    assert!(!third.is_superset(&second));

    // A sidecar that loses a file is rewritten with its other files; the tombstone goes to a separate sidecar.
    write_commit(&storage, 4, &[remove_line("1-017", NOW_MS)]);
    assert_eq!(write(&storage), 2);
    let fourth = referenced(&open(&storage));
    assert_eq!(fourth.intersection(&first).count(), 9);

    // Only metadata has changed, so only the top-level file is new.
    write_commit(&storage, 5, &[v2_metadata(&[("a", "b")])]);
    assert_eq!(write(&storage), 0);
    assert_eq!(referenced(&open(&storage)), fourth);

    (0..=5).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
    assert_eq!(paths(&open(&storage)).len(), 41);
    assert_eq!(open(&storage).metadata().property("a"), Some("b"));
}

/// A sidecar must have the columns that the table's properties require.
#[test]
fn sidecars_with_other_columns_are_written_again() {
    let (_, storage) = v2_table(40);
    let environment = environment();
    write_checkpoint_within(&open(&storage), &small(), &environment).unwrap();
    let before = sidecars(&storage);
    write_commit(&storage, 2, &[v2_metadata(&[("delta.checkpoint.writeStatsAsStruct", "true")])]);
    write_checkpoint_within(&open(&storage), &small(), &environment).unwrap();
    assert_eq!(referenced(&open(&storage)).intersection(&before).count(), 0);
    assert_eq!(paths(&open(&storage)).len(), 40);
}

/// Sidecars whose tombstones have all expired are left out.
#[test]
fn expired_tombstones_do_not_add_up() {
    let (_, storage) = v2_table(10);
    let removes: Vec<_> = (0..8).map(|file| remove_line(&format!("1-{file:03}"), NOW_MS)).collect();
    write_commit(&storage, 2, &removes);
    let count = |now_ms: i64, version: u64| {
        let ids = environment();
        let environment = Environment::new(
            move || now_ms,
            move || uuid::Uuid::from_u128(u128::from(version) << 64 | ids.uuid().as_u128()),
        );
        let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
        write_checkpoint_within(&snapshot, &small(), &environment).unwrap();
        let snapshot = Snapshot::open(&storage, Some(version)).unwrap();
        let removes = CheckpointReader::removes(&storage, snapshot.segment().checkpoint.as_ref().unwrap());
        removes.unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>()
    };
    const DAY_MS: i64 = 24 * 3_600_000;
    assert_eq!(count(NOW_MS, 2), 8);
    write_commit(&storage, 3, &[add_line("3")]);
    assert_eq!(count(NOW_MS + 6 * DAY_MS, 3), 8);
    write_commit(&storage, 4, &[add_line("4")]);
    assert_eq!(count(NOW_MS + 8 * DAY_MS, 4), 0);
    assert_eq!(paths(&open(&storage)), ["1-008", "1-009", "3", "4"]);
}

/// A sidecar that cannot be read is not used again; the state comes from the commits.
#[test]
fn damaged_sidecars_are_not_used_again() {
    for damage in ["", "PAR1"] {
        let (_, storage) = v2_table(40);
        let environment = environment();
        write_checkpoint_within(&open(&storage), &small(), &environment).unwrap();
        let before = sidecars(&storage);
        let damaged = format!("{LOG_DIRECTORY}/{}", before.first().unwrap());
        match damage {
            "" => storage.delete(&damaged).unwrap(),
            _ => storage.put(&damaged, damage.into()).unwrap(),
        }
        write_commit(&storage, 2, &[add_line("2")]);
        write_checkpoint_within(&open(&storage), &small(), &environment).unwrap();
        assert_eq!(referenced(&open(&storage)).intersection(&before).count(), 0);
        (0..=2).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
        assert_eq!(paths(&open(&storage)).len(), 41);
    }
}

/// A table may have no files, and its checkpoint is complete nevertheless.
#[test]
fn tables_without_files_get_checkpoints_of_every_form() {
    for is_v2 in [false, true] {
        for limits in [small(), CheckpointLimits::default()] {
            let (_, storage) = empty();
            let first =
                if is_v2 { vec![v2_protocol(), v2_metadata(&[])] } else { first_lines(&BTreeMap::new()) };
            write_commit(&storage, 0, &first);
            write_checkpoint_within(&open(&storage), &limits, &environment()).unwrap();
            storage.delete(&LogFileName::Commit(0).path()).unwrap();
            assert_eq!((open(&storage).version(), paths(&open(&storage)).len()), (0, 0), "{limits:?}");
            assert_eq!(hint(&storage).num_of_add_files, Some(0));
            write_commit(&storage, 1, &[add_line("1")]);
            assert_eq!(paths(&open(&storage)), ["1"]);
        }
    }
}

/// "For txn actions, the latest version seen for a given appId wins": when the newest one has expired, an older one
/// does not reappear. Progress without a time does not expire.
#[test]
fn expired_application_transactions_are_left_out() {
    let progress = |app: &str, version: i64, updated: Option<i64>| {
        json!({"txn": {"appId": app, "version": version, "lastUpdated": updated}}).to_string()
    };
    for is_v2 in [false, true] {
        let (_, storage) = empty();
        let retention = ("delta.setTransactionRetentionDuration", "interval 1 hour");
        let metadata = if is_v2 {
            v2_metadata(&[retention])
        } else {
            metadata_line(&BTreeMap::from([(retention.0.to_owned(), retention.1.to_owned())]))
        };
        let protocol = if is_v2 { v2_protocol() } else { first_lines(&BTreeMap::new()).remove(0) };
        write_commit(&storage, 0, &[protocol, metadata]);
        let hour = 3_600_000;
        let lines = [
            // The writer's clock was set back: the older progress has the later time.
            progress("back", 1, Some(NOW_MS)),
            progress("untimed", 1, Some(NOW_MS)),
            progress("old", 1, None),
            progress("edge", 1, Some(NOW_MS - hour)),
            progress("new", 1, Some(NOW_MS - hour + 1)),
        ];
        write_commit(&storage, 1, &lines);
        let environment = environment();
        write_checkpoint_within(&open(&storage), &small(), &environment).unwrap();
        write_commit(
            &storage,
            2,
            &[
                progress("back", 2, Some(NOW_MS - 2 * hour)),
                progress("untimed", 2, None),
                progress("old", 2, Some(NOW_MS - 2 * hour)),
            ],
        );
        write_checkpoint_within(&open(&storage), &small(), &environment).unwrap();
        (0..=2).for_each(|version| storage.delete(&LogFileName::Commit(version).path()).unwrap());
        let found = open(&storage).app_transactions().unwrap();
        let found: BTreeMap<_, _> = found.into_iter().map(|found| (found.app_id, found.version)).collect();
        assert_eq!(found, BTreeMap::from([("new".to_owned(), 1), ("untimed".to_owned(), 2)]), "V2: {is_v2}");
    }
}

/// Protocol: "Last Checkpoint File Schema": the hint contains the actions of the top-level file, so that readers need
/// not read that file.
#[test]
fn the_hint_repeats_the_head() {
    let (_, storage) = v2_table(10);
    let environment = environment();
    write_checkpoint_within(&open(&storage), &small(), &environment).unwrap();
    let classic = hint(&storage);
    assert_eq!((classic.version, classic.num_of_add_files, classic.v2_checkpoint), (1, Some(10), None));
    write_commit(&storage, 2, &[add_line("2"), remove_line("1-000", NOW_MS)]);
    write_checkpoint_within(&open(&storage), &small(), &environment).unwrap();
    let hint = hint(&storage);
    let checkpoint = open(&storage).segment().checkpoint.clone().unwrap();
    let head = storage.read(&format!("{LOG_DIRECTORY}/{}", checkpoint.files[0].name)).unwrap();
    let lines: Vec<Value> =
        std::str::from_utf8(&head).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (sidecars, others): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|line| line.get("sidecar").is_some());
    let v2 = hint.v2_checkpoint.unwrap();
    assert_eq!((v2.path, v2.size_in_bytes), (checkpoint.files[0].name.clone(), head.len() as i64));
    assert_eq!(v2.modification_time, checkpoint.files[0].modified_ms);
    assert_eq!(v2.non_file_actions.unwrap(), others);
    let repeated = v2.sidecar_files.unwrap();
    let repeated: Vec<Value> = repeated.iter().map(|sidecar| json!({ "sidecar": sidecar })).collect();
    assert_eq!(repeated, sidecars);
    assert_eq!(hint.num_of_add_files, Some(10));
    // The size counts ten files, one tombstone, and the lines of the top-level file.
    assert_eq!(hint.size as usize, 10 + 1 + others.len() + sidecars.len());
    let bytes: i64 = sidecars.iter().map(|line| line["sidecar"]["sizeInBytes"].as_i64().unwrap()).sum();
    assert_eq!(hint.size_in_bytes, Some(bytes + head.len() as i64));
}

/// Protocol: "Deletion Vectors": a vector in the log itself is part of the `add` action.
#[test]
fn inline_vectors_are_kept() {
    for limits in [small(), CheckpointLimits::default()] {
        let (_, storage) = empty();
        let features = ["deletionVectors"];
        let protocol = json!({"protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
        }});
        let vector = json!({
            "storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
            "sizeInBytes": 44, "cardinality": 6,
        });
        let add = json!({"add": {
            "path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": true,
            "tags": {"k": "v", "n": null}, "deletionVector": vector,
        }});
        write_commit(&storage, 0, &[protocol.to_string(), metadata_line(&BTreeMap::new()), add.to_string()]);
        let before = live(&open(&storage)).unwrap();
        write_checkpoint_within(&open(&storage), &limits, &environment()).unwrap();
        storage.delete(&LogFileName::Commit(0).path()).unwrap();
        assert_eq!(live(&open(&storage)).unwrap(), before, "{limits:?}");
        let checkpoint = open(&storage).segment().checkpoint.clone().unwrap();
        let columns = deltalog::engine::replay::FileColumns::all();
        for batch in CheckpointReader::adds(&storage, &checkpoint, columns).unwrap() {
            let batch = batch.unwrap();
            let vectors = batch.column_by_name("deletionVector").unwrap().as_struct();
            let text = vectors.column_by_name("pathOrInlineDv").unwrap().as_string::<i32>().value(0);
            assert_eq!(text, vector["pathOrInlineDv"].as_str().unwrap());
            assert!(!batch.column_by_name("dataChange").unwrap().as_boolean().value(0));
            assert_eq!(batch.column_by_name("tags").unwrap().as_map().value(0).len(), 2);
        }
    }
}

/// Checkpoint names with a UUID are always new, so a second checkpoint of a version would not replace the first one.
/// Therefore only one is written.
#[test]
fn a_version_gets_one_checkpoint_by_the_v2_spec() {
    let (_store, storage) = v2_table(3);
    for (version, is_classic) in [(1, true), (2, false)] {
        let before = open(&storage);
        write_checkpoint(&before, &at(NOW_MS)).unwrap();
        let written = other_files(&storage);
        let prefix = format!("{version:020}.checkpoint.");
        let name = written.iter().find(|name| name.starts_with(&prefix)).unwrap();
        assert_eq!(*name == format!("{prefix}parquet"), is_classic, "{name}");
        for snapshot in [&before, &open(&storage)] {
            write_checkpoint(snapshot, &at(NOW_MS)).unwrap();
            assert_eq!(other_files(&storage), written);
        }
        // A checkpoint that cannot be read does not count.
        storage.put(&format!("{LOG_DIRECTORY}/{name}"), "{".into()).unwrap();
        write_checkpoint(&open(&storage), &at(NOW_MS)).unwrap();
        assert_eq!(other_files(&storage).len(), written.len() + 1);
        write_commit(&storage, version + 1, &[add_line("more")]);
    }
}
