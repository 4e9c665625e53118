//! VACUUM deletes files that are no longer needed. Protocol: "Add File and Remove File", "VACUUM Protocol Check".

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use arrow::array::AsArray;
use deltalog::engine::checkpoint::write_checkpoint;
use deltalog::engine::parallel::stay_alone;
use deltalog::{
    Environment, ErrorKind, Snapshot, Storage, VacuumPlan, VacuumRequest, VacuumSource, compact_log,
    plan_vacuum,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;
use uuid::Uuid;

use super::vacuum_sources::{daily, names};
use crate::common::oracle::{Key, Table};
use crate::common::store::{Call, Fault, FaultyStore, Op};
use crate::common::{
    NOW_MS, add_line, append, empty, environment, first_lines, metadata_line, newest, paths, storage_in,
    table, write_commit,
};
use crate::histories::{Step, contents, expected, history, lines};

pub(super) const HOUR_MS: i64 = 3_600_000;
pub(super) const DAY_MS: i64 = 24 * HOUR_MS;
pub(super) const WEEK_MS: i64 = 7 * DAY_MS;

/// The file of the deletion vector that the tests' histories use. Protocol: "Deletion Vector Descriptor Schema",
/// example.
const VECTOR: &str = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin";

/// The names of the files. Only some of them belong to the table.
const FILES: [&str; 14] = [
    "plain.parquet",
    "d=1/a b.parquet",
    VECTOR,
    "elsewhere/c.parquet",
    "orphan.parquet",
    "d=1/orphan.parquet",
    "d=1/deletion_vector_of_no_file.bin",
    "_change_data/cdc-1.parquet",
    "_hidden/x.parquet",
    "d=1/.x.parquet.crc",
    "_x.parquet",
    "other/_delta_log/00000000000000000000.json",
    "other/d=1/x.parquet",
    "_delta_log/x.parquet",
];

/// Hidden files, which VACUUM ignores.
const HIDDEN: [&str; 6] = [
    "_hidden/x.parquet",
    "d=1/.x.parquet.crc",
    "_x.parquet",
    "other/_delta_log/00000000000000000000.json",
    "other/d=1/x.parquet",
    "_delta_log/x.parquet",
];

pub(super) fn at(time_ms: i64) -> Environment {
    Environment::new(move || time_ms, Uuid::new_v4).with_sleep(|_| {})
}

/// Creates a file that was written at this time.
pub(super) fn put(store: &FaultyStore, path: &str, modified_ms: i64) {
    store.objects().put(&format!("t/{path}"), "x".into(), modified_ms);
}

/// Returns the files outside the log.
pub(super) fn files(storage: &Storage) -> BTreeSet<String> {
    let all = storage.list_after("", "").unwrap().into_iter().map(|file| file.name);
    all.filter(|name| !name.starts_with("_delta_log/") || FILES.contains(&name.as_str())).collect()
}

pub(super) fn request(retention_ms: i64) -> VacuumRequest {
    VacuumRequest::default()
        .retention(Duration::from_millis(retention_ms.try_into().unwrap()))
        .enforce_retention(false)
}

pub(super) fn from_log(retention_ms: i64) -> VacuumRequest {
    VacuumRequest::new(VacuumSource::Log)
        .retention(Duration::from_millis(retention_ms.try_into().unwrap()))
        .enforce_retention(false)
}

pub(super) fn plan(storage: &Storage, request: VacuumRequest) -> VacuumPlan {
    plan_vacuum(&newest(storage), request, &environment()).unwrap()
}

pub(super) fn planned(plan: &VacuumPlan) -> BTreeSet<String> {
    let all: Vec<&str> = plan.paths().collect();
    let set: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(set.len(), all.len(), "a file is listed twice: {all:?}");
    assert_eq!(plan.files(), all.len() as u64);
    set
}

/// Returns the files that belong to logical files, including their vectors.
fn files_of(keys: impl IntoIterator<Item = Key>) -> BTreeSet<&'static str> {
    let mut files = BTreeSet::new();
    for (name, vector) in keys {
        // If two files in different directories have the same name and one of them is live, both are kept.
        files.insert(FILES[[0, 1, 3][name]]);
        if vector.is_some() {
            files.insert(VECTOR);
        }
    }
    files
}

/// Returns `history` with fewer different deletion vectors, and without changes of the retention.
fn usable(history: Vec<Vec<Step>>) -> Vec<Vec<Step>> {
    let steps = |steps: Vec<Step>| {
        let usable = steps.into_iter().filter(|step| !matches!(step, Step::Retention(_)));
        usable
            .map(|step| match step {
                Step::Add { name, spelling, vector } => Step::Add { name, spelling, vector: vector % 3 },
                Step::Remove { name, spelling, vector, age_ms } => {
                    Step::Remove { name, spelling, vector: vector % 3, age_ms }
                }
                other => other,
            })
            .collect()
    };
    history.into_iter().map(steps).collect()
}

const AGES: [i64; 6] = [0, HOUR_MS, 2 * HOUR_MS, WEEK_MS - 1, WEEK_MS, 100 * DAY_MS];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Files that are live, retained, young or hidden are kept; all others are deleted. Exactly the files of the plan
    /// are deleted. A plan from the log alone has no live or retained files, either.
    #[test]
    fn exactly_the_unneeded_files_are_deleted(
        history in history().prop_map(usable),
        ages in vec(select(&AGES[..]), FILES.len()),
        retention in select(&[0, HOUR_MS, WEEK_MS, 20 * DAY_MS][..]),
        checkpoint in proptest::option::of(any::<Index>()),
    ) {
        let (store, storage) = empty();
        let commits = lines(&history);
        for (version, commit) in (0..).zip(&commits) {
            write_commit(&storage, version, commit);
        }
        if let Some(index) = checkpoint {
            let version = index.index(history.len()) as u64;
            write_checkpoint(&Snapshot::open(&storage, Some(version)).unwrap(), &environment()).unwrap();
        }
        for (file, age) in FILES.iter().zip(&ages) {
            put(&store, file, NOW_MS - age);
        }
        let last = Table::at(&storage, history.len() as u64 - 1);
        // Without a retention, even a file with the current time is old.
        let cutoff = if retention == 0 { NOW_MS + 1 } else { NOW_MS - retention };
        let live = files_of(last.live.keys().cloned());
        let retained = last.dead.iter().filter(|(_, (_, time))| time.is_some_and(|time| time >= cutoff));
        let retained = files_of(retained.map(|(key, _)| key.clone()));
        // A tombstone with an older time may come after a tombstone of the same file.
        let removed_since = history.iter().flatten().filter_map(|step| match step {
            Step::Remove { name, vector, age_ms: Some(age), .. } if NOW_MS - *age >= cutoff => {
                Some((*name, (*vector > 0).then(String::new)))
            }
            _ => None,
        });
        let may_be_retained = files_of(removed_since);
        let is_old = |age: i64| NOW_MS - age < cutoff;
        let may_go = |file: &str, age: i64| is_old(age) && !HIDDEN.contains(&file) && !live.contains(file);
        let before = files(&storage);

        let listed = plan(&storage, request(retention));
        let found = planned(&listed);
        let in_log = planned(&plan(&storage, from_log(retention)));
        prop_assert_eq!(&before, &files(&storage));
        for (file, age) in FILES.iter().zip(&ages) {
            let is_found = found.contains(*file);
            prop_assert!(!is_found || (may_go(file, *age) && !retained.contains(file)), "{} must stay", file);
            let must_go = may_go(file, *age) && !may_be_retained.contains(file);
            prop_assert!(is_found || !must_go, "{} must go", file);
            // A tombstone without a time counts as old, so its file is not retained.
            prop_assert!(!in_log.contains(*file) || !(live.contains(file) || retained.contains(file)), "{}", file);
        }
        let vacuumed = listed.delete().unwrap();
        prop_assert_eq!(vacuumed.files, found.len() as u64);
        let after = files(&storage);
        prop_assert_eq!(before.difference(&after).cloned().collect::<BTreeSet<_>>(), found);
        prop_assert_eq!(plan(&storage, request(retention)).files(), 0);
        prop_assert_eq!(contents(&newest(&storage)), expected(&last));
    }
}

/// The commits have the same names, parameters and metrics as in the JVM implementation.
#[test]
fn the_history_says_what_was_deleted() {
    let (store, storage) = table(&["a"]);
    put(&store, "a", 0);
    put(&store, "old", 0);
    put(&store, "d=1/old", 0);
    put(&store, "young", NOW_MS);
    let before = newest(&storage).version();
    let vacuumed = plan(&storage, VacuumRequest::default()).delete().unwrap();
    assert_eq!((vacuumed.files, vacuumed.bytes, vacuumed.version), (2, 2, before + 2));
    assert_eq!(files(&storage), ["a", "young"].map(str::to_owned).into());
    let history = newest(&storage).history(Some(2)).unwrap();
    let info = |index: usize| {
        let info = history[index].commit_info.clone();
        (info.operation.unwrap(), json!(info.operation_parameters), json!(info.operation_metrics))
    };
    assert_eq!(
        info(1),
        (
            "VACUUM START".to_owned(),
            json!({"retentionCheckEnabled": true, "defaultRetentionMillis": WEEK_MS}),
            json!({"numFilesToDelete": "2", "sizeOfDataToDelete": "2"})
        )
    );
    assert_eq!(
        info(0),
        (
            "VACUUM END".to_owned(),
            json!({"status": "COMPLETED"}),
            json!({"numDeletedFiles": "2", "numVacuumedDirectories": "2"})
        )
    );
    plan(&storage, request(HOUR_MS)).delete().unwrap();
    let start = newest(&storage).history(Some(2)).unwrap().remove(1).commit_info;
    let parameters = json!({
        "retentionCheckEnabled": false, "defaultRetentionMillis": WEEK_MS, "specifiedRetentionMillis": HOUR_MS
    });
    assert_eq!(json!(start.operation_parameters), parameters);
}

#[test]
fn a_plan_has_sizes_times_and_reasons() {
    let (store, storage) = empty();
    write_commit(&storage, 0, &first_lines(&BTreeMap::new()));
    write_commit(&storage, 1, &[add_line("a"), add_line("removed")]);
    write_commit(&storage, 2, &[json!({"remove": {"path": "removed", "deletionTimestamp": 5}}).to_string()]);
    for file in ["a", "removed", "left", "_change_data/c", VECTOR] {
        put(&store, file, 7);
    }
    let plan = plan(&storage, VacuumRequest::default());
    let mut rows = BTreeMap::new();
    for batch in plan.batches() {
        let batch = batch.unwrap();
        assert_eq!(batch.schema(), VacuumPlan::schema());
        let text = |index: usize| batch.column(index).as_string::<i32>().clone();
        for row in 0..batch.num_rows() {
            rows.insert(text(0).value(row).to_owned(), text(3).value(row).to_owned());
        }
    }
    let expected = [
        ("removed", "removed"),
        ("left", "unreferenced"),
        ("_change_data/c", "change data"),
        (VECTOR, "deletion vector"),
    ];
    assert_eq!(rows, expected.map(|(path, reason)| (path.to_owned(), reason.to_owned())).into());
    assert_eq!((plan.files(), plan.bytes(), plan.version(), plan.cutoff_ms()), (4, 4, 2, NOW_MS - WEEK_MS));
}

/// Checkpoints leave out tombstones that have expired according to the table's retention, although a VACUUM may use a
/// longer retention.
#[test]
fn a_longer_retention_keeps_what_checkpoints_have_forgotten() {
    let (store, storage) = empty();
    write_commit(&storage, 0, &first_lines(&BTreeMap::new()));
    write_commit(&storage, 1, &[add_line("a")]);
    let remove = json!({"remove": {"path": "a", "deletionTimestamp": NOW_MS - 8 * DAY_MS}}).to_string();
    write_commit(&storage, 2, &[remove]);
    write_checkpoint(&newest(&storage), &environment()).unwrap();
    put(&store, "a", 0);
    assert_eq!(planned(&plan(&storage, request(20 * DAY_MS))), BTreeSet::new());
    assert_eq!(planned(&plan(&storage, request(WEEK_MS))), ["a".to_owned()].into());
}

/// VACUUM's own commits never conflict with other commits.
#[test]
fn a_concurrent_change_of_the_metadata_does_not_stop_a_vacuum() {
    let (store, storage) = empty();
    write_commit(&storage, 0, &first_lines(&BTreeMap::new()));
    put(&store, "old", 0);
    let plan = plan(&storage, VacuumRequest::default());
    let (other, mut creates) = (store.reconnect(), 0);
    store.fail(move |_, call| {
        if call.op == Op::Create && call.path.ends_with(".json") {
            // Another writer commits before the first attempt of each commit.
            if creates % 2 == 0 {
                let properties = [("mine".to_owned(), creates.to_string())].into();
                other.objects().put(&call.path, metadata_line(&properties).into(), NOW_MS);
            }
            creates += 1;
        }
        None
    });
    let vacuumed = plan.delete().unwrap();
    store.heal();
    assert_eq!((vacuumed.files, vacuumed.version), (1, 4));
    assert_eq!(newest(&storage).metadata().property("mine"), Some("2"));
    assert!(files(&storage).is_empty());
}

/// RESTORE, conversions and clones add files that existed before, so an old file may belong to a new version. If it
/// was removed again, readers may still use it.
#[test]
fn files_that_a_later_commit_adds_stay_however_old_they_are() {
    type Follow = fn(&Storage);
    let follow: [(&str, Follow); 3] = [
        ("nothing", |_| {}),
        ("a checkpoint", |storage| write_checkpoint(&newest(storage), &environment()).unwrap()),
        ("a compaction", |storage| {
            assert!(compact_log(&newest(storage), 2, 5).unwrap());
            assert_eq!(newest(storage).segment().compactions.len(), 1);
        }),
    ];
    for (what, follow) in follow {
        let (store, storage) = table(&["a"]);
        for file in ["a", "back", "back again", "gone"] {
            put(&store, file, 0);
        }
        let plan = plan(&storage, request(0));
        assert_eq!(planned(&plan), ["back", "back again", "gone"].map(str::to_owned).into());
        append(&newest(&storage), "back", &environment()).commit_or_fail().unwrap();
        append(&newest(&storage), "back again", &environment()).commit_or_fail().unwrap();
        let removed = json!({"remove": {"path": "back%20again", "deletionTimestamp": NOW_MS - WEEK_MS}});
        let version = newest(&storage).version() + 1;
        write_commit(&storage, version, &[removed.to_string()]);
        append(&newest(&storage), "new", &environment()).commit_or_fail().unwrap();
        follow(&storage);
        assert_eq!(plan.delete().unwrap().files, 1, "{what}");
        assert_eq!(files(&storage), ["a", "back", "back again"].map(str::to_owned).into(), "{what}");
        assert_eq!(paths(&newest(&storage)), ["a", "back", "new"], "{what}");
    }
}

/// With a retention of zero, a file with the current time counts as older than the VACUUM, because the clocks of file
/// systems only tick every few milliseconds.
#[test]
fn a_retention_of_zero_finds_what_was_written_or_removed_in_the_same_tick() {
    let (store, storage) = table(&["a", "removed"]);
    let removed = json!({"remove": {"path": "removed", "deletionTimestamp": NOW_MS, "dataChange": true}});
    write_commit(&storage, newest(&storage).version() + 1, &[removed.to_string()]);
    for (file, time_ms) in [("a", 0), ("removed", 0), ("now", NOW_MS), ("later", NOW_MS + 1)] {
        put(&store, file, time_ms);
    }
    assert_eq!(planned(&plan(&storage, request(0))), ["now", "removed"].map(str::to_owned).into());
    put(&store, "before", NOW_MS - HOUR_MS);
    assert!(planned(&plan(&storage, request(HOUR_MS))).is_empty());
    assert_eq!(plan(&storage, request(0)).delete().unwrap().files, 3);
}

/// "A tombstone expires when current time exceeds the expiration threshold". Checkpoints and VACUUM apply the same
/// rule. Protocol: "Add File and Remove File".
#[test]
fn a_file_that_was_removed_just_then_stays_after_a_checkpoint_also() {
    for (removed_ms, stays) in [(NOW_MS - WEEK_MS, true), (NOW_MS - WEEK_MS - 1, false)] {
        let (store, storage) = empty();
        write_commit(&storage, 0, &first_lines(&BTreeMap::new()));
        write_commit(&storage, 1, &[add_line("a")]);
        write_commit(
            &storage,
            2,
            &[json!({"remove": {"path": "a", "deletionTimestamp": removed_ms}}).to_string()],
        );
        put(&store, "a", 0);
        for _ in 0..2 {
            assert_eq!(planned(&plan(&storage, request(WEEK_MS))).is_empty(), stays);
            write_checkpoint(&newest(&storage), &environment()).unwrap();
        }
    }
}

/// Each request of a VACUUM fails in every way, or the process crashes at it. Files that are needed are kept, and the
/// next VACUUM completes the work.
#[test]
fn a_vacuum_that_fails_at_any_request_can_be_repeated() {
    // All requests run on this thread, because a simulated crash unwinds the thread that makes the request.
    stay_alone();
    let (prepared, storage) = daily(9);
    put(&prepared, "d=1/orphan", 0);
    write_checkpoint(&Snapshot::open(&storage, Some(7)).unwrap(), &at(7 * DAY_MS)).unwrap();
    let vacuum = |storage: &Storage, from_log: bool| {
        let source = if from_log { VacuumSource::Log } else { VacuumSource::Listing };
        let request = VacuumRequest::new(source);
        plan_vacuum(&Snapshot::open(storage, None)?, request, &at(9 * DAY_MS + 1))?.delete().map(drop)
    };
    let needed = names(2..10);
    for from_log in [false, true] {
        let store = prepared.copy();
        let storage = storage_in(&store);
        store.take_calls();
        vacuum(&storage, from_log).unwrap();
        let calls = store.take_calls();
        let deletes = calls.iter().filter(|call| call.op == Op::Delete).count();
        assert_eq!(deletes, if from_log { 2 } else { 3 }, "{calls:?}");
        let mut failed = 0;
        // There are many reads, and all of them would fail in the same way, so only some are tried.
        let chosen = |(at, call): &(usize, &Call)| match call.op {
            Op::Get | Op::List => !from_log && at % 9 == 0,
            _ => true,
        };
        for (at, call) in calls.iter().enumerate().filter(chosen) {
            let crashes = [Fault::CrashBefore, Fault::CrashAfter];
            for (index, fault) in Fault::of(call.op).iter().chain(&crashes).copied().enumerate() {
                // Faults occur alternately once and permanently.
                let lasts = fault.is_crash() || (at + index) % 2 == 0;
                let later = if fault.is_crash() { Fault::CrashBefore } else { Fault::Denied };
                let store = prepared.copy();
                let storage = storage_in(&store);
                store.fail(move |number, _| match number {
                    _ if number == at => Some(fault),
                    _ if number > at && lasts => Some(later),
                    _ => None,
                });
                let result = catch_unwind(AssertUnwindSafe(|| vacuum(&storage, from_log)));
                store.heal();
                let context = format!("{fault:?} at {call:?}, lasting: {lasts}: {result:?}");
                let found = files(&storage);
                assert!(found.is_superset(&needed), "{context}: {found:?}");
                assert_eq!(paths(&newest(&storage)), ["9"], "{context}");
                let info = newest(&storage).history(Some(1)).unwrap().remove(0).commit_info;
                failed += usize::from(json!(info.operation_parameters)["status"] == "FAILED");
                vacuum(&storage, from_log).unwrap();
                let orphan = ["d=1/orphan".to_owned()].into();
                let expected = if from_log { &needed | &orphan } else { needed.clone() };
                assert_eq!(files(&storage), expected, "{context}");
            }
        }
        assert!(failed > 0, "the history shows a failure");
    }
}

/// Before a file is deleted, its age is checked by the store's clock, because the times of files come from it.
#[test]
fn a_clock_that_is_ahead_does_not_delete_young_files() {
    let (store, storage) = table(&["a"]);
    storage.put("young", "x".into()).unwrap();
    let store_ms = store.objects().get("t/young").unwrap().modified_ms;
    put(&store, "old", store_ms - 8 * DAY_MS);
    let ahead = at(store_ms + 30 * DAY_MS);
    let plan = plan_vacuum(&newest(&storage), VacuumRequest::default(), &ahead).unwrap();
    assert_eq!(planned(&plan), ["old", "young"].map(str::to_owned).into());
    assert_eq!(plan.delete().unwrap().files, 1);
    assert_eq!(files(&storage), ["young".to_owned()].into());
}

#[test]
fn a_retention_that_is_too_short_is_refused() {
    let (_, storage) = table(&["a"]);
    let short = || VacuumRequest::default().retention(Duration::from_secs(3600));
    let error = plan_vacuum(&newest(&storage), short(), &environment()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("the retention of 1 hour is shorter"), "{error}");
    assert!(error.hint().unwrap().contains("enforce_retention_duration"), "{error}");
    assert_eq!(plan(&storage, short().enforce_retention(false)).files(), 0);
}

/// "Before performing a VACUUM operation, writers must ensure that they check the table's write protocol."
#[test]
fn tables_that_cannot_be_written_are_refused() {
    let (_, storage) = empty();
    let mut first = first_lines(&BTreeMap::new());
    first[0] = json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["vacuumProtocolCheck"],
        "writerFeatures": ["vacuumProtocolCheck", "unheardOf"]
    }})
    .to_string();
    write_commit(&storage, 0, &first);
    let error = plan_vacuum(&newest(&storage), VacuumRequest::default(), &environment()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("unheardOf"), "{error}");
}

/// If another writer raises the retention while a VACUUM runs, the VACUUM notices it and stops deleting.
#[test]
fn a_raised_retention_stops_a_running_vacuum() {
    let (store, storage) = table(&["a"]);
    put(&store, "old", 0);
    let plan = plan(&storage, VacuumRequest::default());
    let longer = [("delta.deletedFileRetentionDuration".to_owned(), "interval 9 weeks".to_owned())];
    let change = deltalog::TableChange::SetProperties(longer.into());
    deltalog::alter_table(&newest(&storage), &change, Default::default(), &environment()).unwrap();
    // For a new plan, a retention of 8 days is now too short. The first plan has no retention of its own, so the new
    // retention of the table applies to it, too.
    let request = VacuumRequest::default().retention(Duration::from_secs(8 * 24 * 3600));
    assert_eq!(
        plan_vacuum(&newest(&storage), request, &environment()).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(plan.delete().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(files(&storage).contains("old"));
}

#[test]
fn kept_versions_keep_their_files() {
    let (store, storage) = empty();
    write_commit(&storage, 0, &first_lines(&BTreeMap::new()));
    let remove = |path: &str| json!({"remove": {"path": path, "deletionTimestamp": 5}}).to_string();
    write_commit(&storage, 1, &[add_line("a")]);
    write_commit(&storage, 2, &[remove("a"), add_line("b")]);
    write_commit(&storage, 3, &[remove("b"), add_line("c")]);
    for file in ["a", "b", "c"] {
        put(&store, file, 1);
    }
    assert_eq!(planned(&plan(&storage, VacuumRequest::default())), ["a", "b"].map(str::to_owned).into());
    let request = VacuumRequest::default().keep_versions([1]);
    assert_eq!(planned(&plan(&storage, request)), ["b".to_owned()].into());
}
