//! Maintains and copies tables in every store.

use std::io::Write;
use std::time::Duration;

use arrow::array::AsArray;
use deltalog::engine::dml::{Request, delete};
use deltalog::engine::protocol::LogPath;
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    CheckLevel, CloneRequest, ColumnPath, ConvertRequest, CreationMode, Environment, ErrorKind, Operation,
    OptimizeRequest, RecomputeRequest, RepairRequest, RestoreRequest, Snapshot, Storage, VacuumRequest,
    check_files, clone_table, generate_manifests, optimize, plan_conversion, plan_vacuum,
    recompute_statistics, repair, restore,
};

use crate::places::Place;
use crate::rows::{append, appending, files, ids, newest};

on_every_store! { layout_and_space, copies, a_converted_directory, a_repair }

const MISSING: &str = "missing file";
const VECTORS: &[(&str, &str)] = &[("delta.enableDeletionVectors", "true")];

fn environment() -> Environment {
    Environment::system()
}

/// Creates a table with the rows 0 to 39 except those that end in 3, in four files for each of three partitions.
fn made(place: &Place, name: &str, properties: &[(&str, &str)]) -> Storage {
    let storage = place.open(name);
    for first in [0, 10, 20, 30] {
        let write = appending(&storage, properties);
        let added = files(&write, first..first + 10);
        write.commit_or_fail(added, Operation::new("WRITE")).unwrap();
    }
    delete(&newest(&storage), Some("id % 10 = 3"), Request::new(&environment())).unwrap();
    storage
}

fn left() -> Vec<i64> {
    (0..40).filter(|id| id % 10 != 3).collect()
}

/// Returns the decoded paths of the data files, relative to the table.
fn paths(snapshot: &Snapshot) -> Vec<String> {
    let path = |path: &LogPath| match path {
        LogPath::Relative(path) => path.clone(),
        LogPath::Absolute(path) => panic!("{} is elsewhere", path.to_uri()),
    };
    listed_files(snapshot, None).unwrap().iter().map(|file| path(&file.file.path)).collect()
}

/// Returns the names of the problems that a check finds.
fn problems(snapshot: &Snapshot, level: CheckLevel) -> Vec<String> {
    let found = check_files(snapshot, level).unwrap().batch().unwrap();
    let names = found.column_by_name("problem").unwrap().as_string::<i32>();
    names.iter().map(|name| name.unwrap().to_owned()).collect()
}

fn all_files() -> RecomputeRequest {
    let mut request = RecomputeRequest::default();
    request.all_files = true;
    request
}

fn layout_and_space(place: &Place) {
    let storage = made(place, "a table/of mine", VECTORS);
    let old = newest(&storage);
    assert_eq!(paths(&old).len(), 12);
    let done = optimize(&old, OptimizeRequest::default(), &environment()).unwrap();
    assert_eq!((done.metrics.removed.count(), done.metrics.added.count()), (12, 3));
    assert_eq!(ids(&newest(&storage)), left());
    let done = recompute_statistics(&newest(&storage), all_files(), &environment()).unwrap();
    assert_eq!(done.metrics.chosen_files, 3);
    let mut ordered = OptimizeRequest::default();
    ordered.z_order = vec![ColumnPath::new(["id"])];
    optimize(&newest(&storage), ordered, &environment()).unwrap();
    assert_eq!(ids(&newest(&storage)), left());
    assert_eq!(generate_manifests(&newest(&storage)).unwrap().written, 3);
    restore(&newest(&storage), &old, RestoreRequest::default(), &environment()).unwrap();
    assert_eq!(paths(&newest(&storage)).len(), 12);
    // The VACUUM deletes the six files that the two OPTIMIZE runs have written. The pause allows for file times that
    // differ from this process's clock.
    std::thread::sleep(Duration::from_millis(1_100));
    let request = VacuumRequest::default().retention(Duration::ZERO).enforce_retention(false);
    let plan = plan_vacuum(&newest(&storage), request, &environment()).unwrap();
    assert_eq!(plan.files(), 6);
    plan.delete().unwrap();
    let storage = place.open("a table/of mine");
    assert_eq!(ids(&newest(&storage)), left());
    let optimized = Snapshot::open(&storage, Some(5)).unwrap();
    assert_eq!(problems(&optimized, CheckLevel::Files), [MISSING; 3]);
    assert_eq!(problems(&newest(&storage), CheckLevel::Rows), [""; 0]);
}

fn copies(place: &Place) {
    let source = made(place, "from here", VECTORS);
    let deep = place.open("a copy/of mine");
    let clone = |is_shallow, target: &Storage| {
        let mut request = CloneRequest::new(is_shallow);
        request.mode = CreationMode::CreateOrReplace;
        clone_table(&newest(&source), target, request, &environment()).unwrap()
    };
    assert_eq!(clone(false, &deep).metrics.copied_files, 12);
    assert_eq!(ids(&newest(&deep)), left());
    append(&source, 40..50);
    assert_eq!(clone(false, &deep).metrics.copied_files, 3);
    assert_eq!(ids(&newest(&place.open("a copy/of mine"))), ids(&newest(&source)));
    assert!(clone(false, &deep).committed.is_none());
    assert_eq!(problems(&newest(&deep), CheckLevel::Rows), [""; 0]);
    let shallow = place.open("referring");
    let done = clone(true, &shallow);
    let [root] = &done.roots[..] else { panic!("{:?}", done.roots) };
    let read = Snapshot::builder(&shallow).allow_root(root).unwrap().open().unwrap();
    assert_eq!(ids(&read), ids(&newest(&source)));
    let (_directory, local) = {
        let directory = tempfile::tempdir().unwrap();
        let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
        (directory, storage)
    };
    assert_eq!(clone(false, &local).metrics.copied_files, 15);
    assert_eq!(ids(&newest(&local)), ids(&newest(&source)));
}

/// Converts a directory of Parquet files, as other engines write it.
fn a_converted_directory(place: &Place) {
    let source = made(place, "source", &[]);
    let plain = place.open("plain files");
    for path in paths(&newest(&source)) {
        let mut file = plain.create_file(&path).unwrap();
        file.write_all(&source.read(&path).unwrap()).unwrap();
        file.finish().unwrap();
    }
    let plan = plan_conversion(&plain, ConvertRequest::default(), &environment()).unwrap().unwrap();
    assert_eq!(plan.files() as usize, paths(&newest(&source)).len());
    plan.commit().unwrap();
    let converted = newest(&place.open("plain files"));
    assert_eq!(ids(&converted), left());
    assert_eq!(converted.metadata().partition_columns, ["part"]);
    let error = plan_conversion(&plain, ConvertRequest::default(), &environment()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TableAlreadyExists, "{error}");
}

fn a_repair(place: &Place) {
    let storage = made(place, "t", VECTORS);
    assert_eq!(problems(&newest(&storage), CheckLevel::Footers), [""; 0]);
    let [lost, ..] = &paths(&newest(&storage))[..] else { panic!("there are files") };
    storage.delete(lost).unwrap();
    assert_eq!(problems(&newest(&storage), CheckLevel::Files), [MISSING]);
    let done = repair(&newest(&storage), RepairRequest::default(), &environment()).unwrap();
    assert!(matches!(&done.removed[..], [file] if file.is_missing), "{:?}", done.removed);
    let storage = place.open("t");
    assert_eq!(problems(&newest(&storage), CheckLevel::Rows), [""; 0]);
    assert_eq!(paths(&newest(&storage)).len(), 11);
    assert!(ids(&newest(&storage)).len() < left().len());
}
