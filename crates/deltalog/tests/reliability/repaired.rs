//! Checks of the files of a table, and repairs of its log. Protocol: "Add File and Remove File", "Deletion Vectors",
//! "Deletion Vector File Storage Format", "Per-file Statistics", "Append-only Tables".

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use deltalog::engine::commit::Transaction;
use deltalog::engine::deletion_vector::VectorPlace;
use deltalog::engine::parallel::stay_alone;
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    CheckLevel, Environment, ErrorKind, Operation, RepairRequest, Repaired, Result, Snapshot, Storage,
    TableChange, alter_table, check_files, repair,
};
use deltalog_testkit::store::{Fault, Op};
use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use crate::common::ids::{ROWS, append, delete_rows, environment, ids, table};
use crate::common::{self, newest, overwrite, paths, storage_in};

const LEVELS: [CheckLevel; 3] = [CheckLevel::Files, CheckLevel::Footers, CheckLevel::Rows];

/// Returns a request with the settings that `set` makes.
fn with(set: impl FnOnce(&mut RepairRequest)) -> RepairRequest {
    let mut request = RepairRequest::default();
    set(&mut request);
    request
}

fn repaired(storage: &Storage, request: RepairRequest) -> Result<Repaired> {
    repair(&newest(storage), request, &environment())
}

/// Returns the paths of files with their problems, sorted.
fn problems(storage: &Storage, level: CheckLevel) -> Vec<(String, String)> {
    let batch = check_files(&newest(storage), level).unwrap().batch().unwrap();
    let column = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>();
    (0..batch.num_rows())
        .map(|row| (column("path").value(row).to_owned(), column("problem").value(row).to_owned()))
        .collect()
}

/// Returns the names of the problems of all files.
fn names(storage: &Storage, level: CheckLevel) -> Vec<String> {
    problems(storage, level).into_iter().map(|(_, problem)| problem).collect()
}

/// Returns the data files in the order of their first ids.
fn data_files(directory: &TempDir, storage: &Storage) -> Vec<PathBuf> {
    let mut found: Vec<(String, PathBuf)> = listed_files(&newest(storage), None)
        .unwrap()
        .into_iter()
        .map(|file| (file.add.stats.unwrap(), directory.path().join(file.add.path)))
        .collect();
    found.sort_by_key(|(stats, _)| {
        let stats: serde_json::Value = serde_json::from_str(stats).unwrap();
        stats["minValues"]["id"].as_i64()
    });
    found.into_iter().map(|(_, path)| path).collect()
}

fn vector(directory: &TempDir) -> PathBuf {
    let entries = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|kind| kind == "bin")).last().unwrap()
}

/// Replaces a text in the newest commit.
fn edit_commit(directory: &TempDir, storage: &Storage, from: &str, to: &str) {
    let version = newest(storage).version();
    let path = directory.path().join(format!("_delta_log/{version:020}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

fn change_bytes(path: &PathBuf, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// Returns where the footer of a Parquet file begins.
fn footer_start(bytes: &[u8]) -> usize {
    let end = bytes.len() - 8;
    end - u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize
}

/// Inserts bytes before the footer, whose offsets remain correct.
fn grow(path: &PathBuf) {
    change_bytes(path, |bytes| {
        let footer = bytes.split_off(footer_start(bytes));
        bytes.extend([0; 3]);
        bytes.extend(footer);
    });
}

/// Creates a table with a file of ten rows, where one row is deleted, and a second file.
fn two_files() -> (TempDir, Storage) {
    let (directory, storage) = table(&[]);
    append(&storage, ROWS..2 * ROWS);
    delete_rows(&storage, "id = 3");
    (directory, storage)
}

#[test]
fn an_intact_table_has_no_problem() {
    let (_directory, storage) = two_files();
    delete_rows(&storage, "id = 4 or id = 12");
    append(&storage, []);
    for level in LEVELS {
        assert_eq!(problems(&storage, level), [], "{level:?}");
        let check = check_files(&newest(&storage), level).unwrap();
        assert_eq!(check.files(), newest(&storage).totals().unwrap().files);
    }
    let Repaired { committed, metrics, removed, .. } = repaired(&storage, RepairRequest::default()).unwrap();
    assert!(committed.is_none() && removed.is_empty() && metrics.removed_files == 0);
}

#[test]
fn damage_of_data_files_is_found_as_soon_as_its_level_looks_for_it() {
    let [files, footers, rows] = LEVELS;
    type Damage = fn(&PathBuf);
    let cases: [(Damage, CheckLevel, &[&str]); 6] = [
        (|path| std::fs::remove_file(path).unwrap(), files, &["missing file"]),
        (grow, files, &["wrong size"]),
        (
            |path| change_bytes(path, |bytes| bytes.truncate(bytes.len() - 20)),
            footers,
            &["wrong size", "damaged file"],
        ),
        (|path| change_bytes(path, Vec::clear), footers, &["wrong size", "damaged file"]),
        (
            |path| {
                change_bytes(path, |bytes| {
                    let start = footer_start(bytes);
                    let end = bytes.len() - 8;
                    bytes[start..end].fill(0xff);
                })
            },
            footers,
            &["damaged file"],
        ),
        (|path| change_bytes(path, |bytes| bytes[4..40].fill(0xff)), rows, &["damaged file"]),
    ];
    for (damage, first, expected) in cases {
        let (directory, storage) = two_files();
        let [_, other] = data_files(&directory, &storage).try_into().unwrap();
        damage(&other);
        for level in LEVELS {
            let found = names(&storage, level);
            if level >= first {
                assert_eq!(found, expected, "{level:?}");
            } else {
                assert!(found.iter().all(|name| name == "wrong size"), "{found:?}");
            }
        }
    }
}

/// "Deletion Vector File Storage Format": a change of any byte in the file is found.
#[test]
fn each_changed_byte_of_a_vector_is_found() {
    let (directory, storage) = two_files();
    let vector = vector(&directory);
    let bytes = std::fs::read(&vector).unwrap();
    assert!(bytes.len() < 100);
    for at in 0..bytes.len() {
        for bit in [0x01, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            std::fs::write(&vector, damaged).unwrap();
            assert_eq!(names(&storage, CheckLevel::Footers), ["damaged vector"], "byte {at}, bit {bit}");
        }
    }
    std::fs::write(&vector, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(names(&storage, CheckLevel::Footers), ["damaged vector"]);
    std::fs::remove_file(&vector).unwrap();
    for level in LEVELS {
        assert_eq!(names(&storage, level), ["missing vector"], "{level:?}");
    }
}

/// A check finds deletion vectors with positions that the data file does not have, or with a cardinality that differs
/// from the descriptor.
#[test]
fn vectors_that_do_not_fit_are_found() {
    let (directory, storage) = table(&[]);
    delete_rows(&storage, "id = 9");
    let (other_directory, other) = table(&[]);
    append(&other, 10..15);
    let short = data_files(&other_directory, &other).pop().unwrap();
    std::fs::copy(short, &data_files(&directory, &storage)[0]).unwrap();
    let found = names(&storage, CheckLevel::Footers);
    assert_eq!(found[found.len() - 2..], ["wrong row count", "damaged vector"]);

    let (directory, storage) = two_files();
    edit_commit(&directory, &storage, "\"cardinality\":1", "\"cardinality\":2");
    assert_eq!(names(&storage, CheckLevel::Files), [""; 0]);
    assert_eq!(names(&storage, CheckLevel::Footers), ["damaged vector"]);
}

#[test]
fn wrong_statistics_are_found() {
    for (from, to, level, problem) in [
        (r#"\"numRecords\":10"#, r#"\"numRecords\":11"#, CheckLevel::Footers, "wrong row count"),
        (
            r#"\"minValues\":{\"id\":10}"#,
            r#"\"minValues\":{\"id\":11}"#,
            CheckLevel::Rows,
            "wrong statistics",
        ),
        (
            r#"\"maxValues\":{\"id\":19}"#,
            r#"\"maxValues\":{\"id\":18}"#,
            CheckLevel::Rows,
            "wrong statistics",
        ),
        (r#"\"nullCount\":{\"id\":0}"#, r#"\"nullCount\":{\"id\":10}"#, CheckLevel::Rows, "wrong statistics"),
    ] {
        let (directory, storage) = table(&[]);
        append(&storage, ROWS..2 * ROWS);
        edit_commit(&directory, &storage, from, to);
        for other in LEVELS {
            let expected = if other >= level { vec![problem] } else { vec![] };
            assert_eq!(names(&storage, other), expected, "{to} at {other:?}");
        }
        // Bounds that are too wide are not problems.
        let (directory, storage) = table(&[]);
        append(&storage, ROWS..2 * ROWS);
        edit_commit(&directory, &storage, r#"\"minValues\":{\"id\":10}"#, r#"\"minValues\":{\"id\":-10}"#);
        assert_eq!(names(&storage, CheckLevel::Rows), [""; 0]);
    }
}

/// If `tightBounds` is false, statistics also bound the deleted rows of a file with a vector. Otherwise they bound only
/// the live rows.
#[test]
fn deleted_rows_do_not_count() {
    let (directory, storage) = table(&[]);
    append(&storage, ROWS..2 * ROWS);
    delete_rows(&storage, "id = 10");
    edit_commit(&directory, &storage, r#"\"minValues\":{\"id\":10}"#, r#"\"minValues\":{\"id\":11}"#);
    assert_eq!(names(&storage, CheckLevel::Rows), [""; 0]);
}

#[test]
fn files_that_no_action_names_are_reported_and_stay() {
    let (directory, storage) = two_files();
    let write = |name: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "orphan").unwrap();
        path
    };
    let orphan = write("d=1/orphan");
    for name in ["_hidden", ".d/a", "_change_data/a", "other/_delta_log/0.json", "other/a"] {
        write(name);
    }
    // A file that was removed from the table is not reported, because its tombstone names it and its vector.
    delete_rows(&storage, "id >= 0");
    let batch = check_files(&newest(&storage), CheckLevel::Files).unwrap().batch().unwrap();
    assert_eq!(problems(&storage, CheckLevel::Files), [("d=1/orphan".into(), "unreferenced file".into())]);
    assert_eq!(batch.column_by_name("size").unwrap().as_primitive::<Int64Type>().values(), &[6]);
    let repaired = repaired(&storage, with(|request| request.removes_damaged = true)).unwrap();
    assert!(repaired.committed.is_none() && orphan.exists());
}

/// A check of an old version reports the files of newer versions neither as unreferenced nor as missing.
#[test]
fn files_of_other_versions_are_referenced() {
    let (directory, storage) = two_files();
    let old = newest(&storage);
    append(&storage, 20..30);
    let gone = data_files(&directory, &storage).pop().unwrap();
    for level in LEVELS {
        assert_eq!(check_files(&old, level).unwrap().batch().unwrap().num_rows(), 0);
    }
    std::fs::remove_file(gone).unwrap();
    assert_eq!(check_files(&old, CheckLevel::Footers).unwrap().batch().unwrap().num_rows(), 0);
    assert_eq!(names(&storage, CheckLevel::Footers), ["missing file"]);
}

/// The commit of a repair has metrics, and `dataChange` is true, because it removes rows.
#[test]
fn missing_files_are_removed_by_one_commit() {
    let (directory, storage) = two_files();
    append(&storage, 20..30);
    let [first, _, last] = data_files(&directory, &storage).try_into().unwrap();
    std::fs::remove_file(first).unwrap();
    std::fs::remove_file(last).unwrap();
    let base = newest(&storage);
    let planned = repaired(&storage, with(|request| request.dry_run = true)).unwrap();
    assert_eq!((planned.removed.len(), newest(&storage).version()), (2, base.version()));
    let done = repaired(&storage, RepairRequest::default()).unwrap();
    assert_eq!((done.metrics, &done.removed), (planned.metrics, &planned.removed));
    assert_eq!((done.metrics.removed_files, done.metrics.removed_rows), (2, 9 + 10));
    assert_eq!(newest(&storage).version(), base.version() + 1);
    assert_eq!(ids(&newest(&storage)), (10..20).collect::<Vec<i64>>());
    let path = format!("_delta_log/{:020}.json", newest(&storage).version());
    let text = String::from_utf8(storage.read(&path).unwrap().to_vec()).unwrap();
    let info: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let info = &info["commitInfo"];
    assert_eq!(info["operation"], "FSCK REPAIR TABLE");
    for (name, value) in [("numRemovedFiles", "2"), ("numFilesScanned", "3"), ("numMissingFiles", "2")] {
        assert_eq!(info["operationMetrics"][name], value, "{info}");
    }
    assert_eq!((text.matches("\"remove\"").count(), text.matches("\"dataChange\":true").count()), (2, 2));
    assert!(repaired(&storage, RepairRequest::default()).unwrap().committed.is_none());
}

#[test]
fn damaged_files_are_removed_on_request_only() {
    let (directory, storage) = two_files();
    let [_, other] = data_files(&directory, &storage).try_into().unwrap();
    change_bytes(&other, |bytes| bytes.truncate(30));
    assert!(repaired(&storage, RepairRequest::default()).unwrap().committed.is_none());
    let done = repaired(&storage, with(|request| request.removes_damaged = true)).unwrap();
    assert!(done.committed.is_some() && done.removed[0].is_damaged && !done.removed[0].is_missing);
    assert_eq!(ids(&newest(&storage)), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    assert!(other.exists());
}

/// A file without its deletion vector cannot be kept, because deleted rows would reappear.
#[test]
fn files_without_their_vectors_are_dropped_on_request_only() {
    for damages in [false, true] {
        let (directory, storage) = two_files();
        let vector = vector(&directory);
        match damages {
            true => change_bytes(&vector, |bytes| bytes[10] ^= 1),
            false => std::fs::remove_file(vector).unwrap(),
        }
        let base = newest(&storage);
        let request = |drops| {
            with(|request| (request.removes_damaged, request.drops_files_without_vectors) = (true, drops))
        };
        let error = repaired(&storage, request(false)).unwrap_err();
        assert_eq!(error.kind(), if damages { ErrorKind::CorruptData } else { ErrorKind::FileNotFound });
        let text = error.to_string();
        assert!(text.contains("the deletion vectors of 1 of its files cannot be read"), "{text}");
        assert!(text.contains(&storage.url()) && text.contains("drop_files_without_vectors"), "{text}");
        assert_eq!(newest(&storage).version(), base.version());
        let mut dry = request(false);
        dry.dry_run = true;
        assert_eq!(repaired(&storage, dry).unwrap_err().kind(), error.kind());
        let done = repaired(&storage, request(true)).unwrap();
        assert_eq!((done.metrics.files_without_vectors, done.removed[0].is_vector_missing), (1, !damages));
        assert_eq!(ids(&newest(&storage)), (10..20).collect::<Vec<i64>>());
    }
}

/// A file that is encrypted, or that a newer writer wrote, cannot be read, but may be intact.
#[test]
fn a_file_that_cannot_be_read_here_is_not_damaged() {
    let (directory, storage) = two_files();
    let [first, second] = data_files(&directory, &storage).try_into().unwrap();
    let mut encrypted = std::fs::read(&first).unwrap();
    let magic = encrypted.len() - 4;
    encrypted[magic..].copy_from_slice(b"PARE");
    std::fs::write(&first, encrypted).unwrap();
    assert_eq!(names(&storage, CheckLevel::Footers), ["unsupported file"]);
    let all = with(|request| (request.removes_damaged, request.drops_files_without_vectors) = (true, true));
    assert_eq!(repaired(&storage, all.clone()).unwrap().removed, []);
    let mut cut = std::fs::read(&second).unwrap();
    cut.truncate(cut.len() - 1);
    std::fs::write(&second, cut).unwrap();
    assert_eq!(repaired(&storage, all).unwrap().removed.len(), 1);
}

/// If both a data file and its deletion vector are missing, the rows are lost, and the repair removes the file.
#[test]
fn a_missing_file_needs_no_vector() {
    let (directory, storage) = two_files();
    std::fs::remove_file(vector(&directory)).unwrap();
    let [first, _] = data_files(&directory, &storage).try_into().unwrap();
    std::fs::remove_file(first).unwrap();
    assert_eq!(names(&storage, CheckLevel::Files), ["missing file", "missing vector"]);
    repaired(&storage, RepairRequest::default()).unwrap();
    assert_eq!(ids(&newest(&storage)), (10..20).collect::<Vec<i64>>());
}

/// "Append-only Tables".
#[test]
fn append_only_tables_are_not_repaired() {
    let (directory, storage) = two_files();
    let change = TableChange::SetProperties([("delta.appendOnly".to_owned(), "true".to_owned())].into());
    alter_table(&newest(&storage), &change, Default::default(), &environment()).unwrap();
    std::fs::remove_file(&data_files(&directory, &storage)[0]).unwrap();
    for dry_run in [true, false] {
        let error = repaired(&storage, with(|request| request.dry_run = dry_run)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("append-only"), "{error}");
    }
    assert_eq!(names(&storage, CheckLevel::Files), ["missing file"]);
}

/// Another writer commits between the check and the repair.
#[test]
fn other_writers() {
    let meanwhile = |work: Box<dyn FnOnce() + Send>| {
        let work = Mutex::new(Some(work));
        let draw = move || {
            if let Some(work) = work.lock().unwrap().take() {
                work();
            }
            Uuid::new_v4()
        };
        Environment::new(|| chrono::Utc::now().timestamp_millis(), draw).with_sleep(|_| {})
    };
    for removes in [false, true] {
        let (directory, storage) = two_files();
        let [first, _] = data_files(&directory, &storage).try_into().unwrap();
        std::fs::remove_file(first).unwrap();
        let other = storage.clone();
        let environment = meanwhile(Box::new(move || match removes {
            // Two repairs try to remove the same file.
            true => repaired(&other, RepairRequest::default()).map(drop).unwrap(),
            false => append(&other, 20..30),
        }));
        let done = repair(&newest(&storage), RepairRequest::default(), &environment);
        match removes {
            true => assert_eq!(done.unwrap_err().kind(), ErrorKind::CommitConflict),
            false => assert!(done.unwrap().committed.is_some()),
        }
        let expected = if removes { 10..20 } else { 10..30 };
        assert_eq!(ids(&newest(&storage)), expected.collect::<Vec<i64>>());
    }
}

/// Each request fails in every way, or the process crashes at it. Files that exist are kept, and the next repair
/// completes the work.
#[test]
fn a_request_that_fails_never_makes_a_file_a_missing_one() {
    // All requests run on this thread, because a simulated crash unwinds the thread that makes the request.
    stay_alone();
    let (prepared, storage) = common::table(&["a", "b", "gone", "_hidden/c"]);
    for file in ["a", "b", "_hidden/c", "orphan"] {
        storage.put(file, "x".into()).unwrap();
    }
    let run = |storage: &Storage| {
        repair(&Snapshot::open(storage, None)?, RepairRequest::default(), &common::environment())
    };
    let there: BTreeSet<String> = ["a", "b", "_hidden/c"].map(str::to_owned).into();
    let counted = prepared.copy();
    assert!(run(&storage_in(&counted)).unwrap().committed.is_some());
    let calls = counted.take_calls();
    assert!(calls.iter().any(|call| call.op == Op::Get && call.path == "t/gone"), "{calls:?}");
    let mut failed = 0;
    for (at, call) in calls.iter().enumerate() {
        for fault in Fault::of(call.op).iter().chain(&[Fault::CrashBefore, Fault::CrashAfter]).copied() {
            let later = if fault.is_crash() { Fault::CrashBefore } else { Fault::Denied };
            for lasts in [false, true] {
                let store = prepared.copy();
                let storage = storage_in(&store);
                store.fail(move |number, _| match number {
                    _ if number == at => Some(fault),
                    _ if number > at && (lasts || fault.is_crash()) => Some(later),
                    _ => None,
                });
                let result = catch_unwind(AssertUnwindSafe(|| run(&storage)));
                store.heal();
                failed += usize::from(result.as_ref().is_ok_and(|result| result.is_err()));
                let context = format!("{fault:?} at {call:?}, lasting: {lasts}");
                let live: BTreeSet<String> = paths(&newest(&storage)).into_iter().collect();
                assert!(live.is_superset(&there), "{context}: {live:?}");
                run(&storage).unwrap();
                assert_eq!(paths(&newest(&storage)).into_iter().collect::<BTreeSet<_>>(), there, "{context}");
                assert!(store.objects().get("t/orphan").is_some());
            }
        }
    }
    assert!(failed > 0);
}

/// A listing may leave out files. Before a file counts as missing, it is looked up by name.
#[test]
fn files_that_a_listing_leaves_out_are_looked_up() {
    let (store, storage) = common::table(&["a", "gone"]);
    storage.put("a", "x".into()).unwrap();
    store.hide("/a");
    assert_eq!(problems(&storage, CheckLevel::Files), [("gone".into(), "missing file".into())]);
}

/// Files outside of the table's directory, as in a shallow clone, are looked up one by one.
#[test]
fn files_outside_the_table_are_looked_for_where_they_are() {
    let (elsewhere, (directory, storage)) = (tempfile::tempdir().unwrap(), table(&[]));
    let [own] = data_files(&directory, &storage).try_into().unwrap();
    let outside = elsewhere.path().join("outside.parquet");
    std::fs::copy(&own, &outside).unwrap();
    let mut file = listed_files(&newest(&storage), None).unwrap().remove(0).add;
    file.path = format!("file://{}", outside.display());
    let mut transaction =
        Transaction::new(&newest(&storage), Operation::new("CLONE"), &environment()).unwrap();
    transaction.add_files(&[file]).unwrap();
    transaction.commit_or_fail().unwrap();
    let error = check_files(&newest(&storage), CheckLevel::Files).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let allowed = || {
        let builder = Snapshot::builder(&storage).allow_root(elsewhere.path().to_str().unwrap());
        builder.unwrap().open().unwrap()
    };
    assert_eq!(check_files(&allowed(), CheckLevel::Rows).unwrap().batch().unwrap().num_rows(), 0);
    std::fs::remove_file(&outside).unwrap();
    let done = repair(&allowed(), RepairRequest::default(), &environment()).unwrap();
    assert_eq!(
        (done.metrics.missing_files, &*done.removed[0].path),
        (1, &*format!("file://{}", outside.display()))
    );
    assert_eq!(ids(&newest(&storage)).len(), 10);
}

/// A repair checks the newest version, in which a file that was replaced and deleted by VACUUM no longer occurs.
#[test]
fn a_repair_looks_at_the_newest_version() {
    let (_store, storage) = common::table(&["a"]);
    let old = newest(&storage);
    overwrite(&old, "b", &environment()).unwrap().commit_or_fail().unwrap();
    storage.put("b", "x".into()).unwrap();
    assert!(repair(&old, RepairRequest::default(), &environment()).unwrap().committed.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// After a repair, the table has the rows of all files that can be read, and a check finds no more problems.
    #[test]
    fn a_repaired_table_has_the_rows_of_its_intact_files(damages in prop::collection::vec(0..5_u8, 4)) {
        let (directory, storage) = table(&[]);
        for file in 1..4 {
            append(&storage, file * ROWS..(file + 1) * ROWS);
        }
        for file in 0..4 {
            delete_rows(&storage, &format!("id = {}", file * ROWS));
        }
        let mut expected = Vec::new();
        let files = data_files(&directory, &storage);
        let listed = listed_files(&newest(&storage), None).unwrap();
        for (file, (path, damage)) in files.iter().zip(damages).enumerate() {
            let add = listed.iter().find(|listed| path.ends_with(&listed.add.path)).unwrap();
            let vector = add.add.deletion_vector.as_ref().unwrap();
            let vector = VectorPlace::of(vector, newest(&storage).resolver()).unwrap();
            let VectorPlace::File { path: vector, .. } = vector else { panic!() };
            let vector = directory.path().join(vector.to_string());
            match damage {
                0 => std::fs::remove_file(path).unwrap(),
                1 => change_bytes(path, |bytes| bytes.truncate(bytes.len() / 2)),
                2 => std::fs::remove_file(vector).unwrap(),
                3 => change_bytes(&vector, |bytes| *bytes.last_mut().unwrap() ^= 1),
                _ => expected.extend(i64::try_from(file).unwrap() * ROWS + 1..i64::try_from(file + 1).unwrap() * ROWS),
            }
        }
        let request = with(|request| (request.removes_damaged, request.drops_files_without_vectors) = (true, true));
        repaired(&storage, request).unwrap();
        prop_assert_eq!(ids(&newest(&storage)), expected);
        prop_assert_eq!(problems(&storage, CheckLevel::Rows), []);
    }
}
