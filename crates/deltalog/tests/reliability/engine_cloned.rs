//! Clones whose data files an engine copies. The engine's report is compared with the plan, and its copies are deleted
//! if they are not committed.

use std::collections::BTreeSet;
use std::fs;

use deltalog::engine::clone::{ClonePlan, CopiedFile, plan_clone};
use deltalog::engine::protocol::{LogPath, TableFeature};
use deltalog::engine::rewrite::listed_files;
use deltalog::{CloneRequest, CreationMode, ErrorKind, Snapshot, Storage};
use tempfile::TempDir;

use crate::common::ids::{append, delete_rows, environment, ids, table};
use crate::common::newest;

/// Creates a table with three files, one of them with a deletion vector.
fn source(properties: &[(&str, &str)]) -> (TempDir, Storage) {
    let (directory, storage) = table(properties);
    append(&storage, 10..20);
    append(&storage, 20..25);
    delete_rows(&storage, "id = 1 or id = 2");
    (directory, storage)
}

fn place() -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    (directory, storage)
}

fn planned(from: &Storage, to: &Storage) -> ClonePlan {
    let mut request = CloneRequest::new(false);
    request.mode = CreationMode::CreateOrReplace;
    plan_clone(&newest(from), to, request, &environment()).unwrap()
}

/// Copies files as an engine would.
fn copied(plan: &ClonePlan, from: &TempDir, to: &TempDir) -> Vec<CopiedFile> {
    let copy = |(number, file): (usize, deltalog::engine::clone::FileCopy<'_>)| {
        let LogPath::Relative(path) = file.from else { panic!("{} is elsewhere", file.from) };
        let unique = uuid::Uuid::new_v4().as_u64_pair().0;
        let name = format!("{}{unique:016x}-{}", file.start, file.name);
        let size = fs::copy(from.path().join(path), to.path().join(name)).unwrap();
        CopiedFile { number, unique, size }
    };
    plan.copies().enumerate().map(copy).collect()
}

/// Returns the files of a directory that are outside of the log.
fn stored(directory: &TempDir) -> BTreeSet<String> {
    let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name != "_delta_log").collect()
}

/// The clone has the files that the engine reports, in any order. Cloning again copies only new files.
#[test]
fn the_clone_has_the_copies_of_the_engine() {
    for properties in
        [&[][..], &[("delta.enableRowTracking", "true")], &[("delta.columnMapping.mode", "name")]]
    {
        let ((from_directory, from), (directory, to)) = (source(properties), place());
        let plan = planned(&from, &to);
        assert_eq!((plan.copies().len(), plan.bytes()), (3, newest(&from).totals().unwrap().bytes));
        assert_eq!(stored(&directory), BTreeSet::new());
        let mut told = copied(&plan, &from_directory, &directory);
        let copies = stored(&directory);
        told.reverse();
        let done = plan.commit_copied(&told).unwrap();
        assert_eq!((done.metrics.copied_files, done.committed.unwrap().version), (3, 0));
        let new = newest(&to);
        assert_eq!(ids(&new), ids(&newest(&from)));
        let files = listed_files(&new, None).unwrap();
        let live: BTreeSet<String> = files.iter().map(|file| file.add.path.clone()).collect();
        assert_eq!(live, copies);
        // The core, not the engine, has copied the deletion vector.
        let added: Vec<String> = stored(&directory).difference(&copies).cloned().collect();
        assert!(matches!(&added[..], [name] if name.ends_with(".bin")), "{added:?}");
        // Each file has its own statistics and vector.
        for file in files.iter().filter(|file| file.add.deletion_vector.is_some()) {
            assert!(file.add.stats.as_ref().unwrap().contains("\"numRecords\":10"), "{:?}", file.add);
        }
        append(&from, 30..33);
        delete_rows(&from, "id = 12");
        let plan = planned(&from, &to);
        assert_eq!(plan.copies().len(), 1);
        let told = copied(&plan, &from_directory, &directory);
        assert_eq!(plan.commit_copied(&told).unwrap().metrics.copied_files, 1);
        assert_eq!(ids(&newest(&to)), ids(&newest(&from)));
        // Another clone finds that there is nothing to do.
        let plan = planned(&from, &to);
        assert_eq!(plan.copies().len(), 0);
        assert!(plan.commit_copied(&[]).unwrap().committed.is_none());
        let tracks_rows = newest(&from).protocol().supports(&TableFeature::RowTracking);
        assert_eq!(
            tracks_rows,
            listed_files(&newest(&to), None).unwrap().iter().all(|file| file.add.base_row_id.is_some())
        );
    }
}

/// A clone that the engine has not copied as planned is not committed, and leaves no files.
#[test]
fn reports_that_do_not_fit_the_plan_are_refused() {
    type Spoil = fn(&mut Vec<CopiedFile>);
    let cases: [(Spoil, &str); 5] = [
        (|told| told.truncate(2), "no task has copied the file"),
        (|told| told.clear(), "no task has copied the file"),
        (|told| told[1].size -= 1, "bytes of the file"),
        (|told| told[0].number = 3, "there is no file 3 in the plan"),
        (|told| told[2].number = 0, "two tasks have copied the file"),
    ];
    let (from_directory, from) = source(&[]);
    for (spoil, text) in cases {
        let (directory, to) = place();
        let plan = planned(&from, &to);
        let mut told = copied(&plan, &from_directory, &directory);
        spoil(&mut told);
        let error = plan.commit_copied(&told).unwrap_err();
        assert!(error.kind() == ErrorKind::CorruptData && error.to_string().contains(text), "{error}");
        assert!(error.to_string().contains(&to.url()), "{error}");
        assert_eq!(Snapshot::open(&to, None).unwrap_err().kind(), ErrorKind::NotATable);
        assert_eq!(stored(&directory), BTreeSet::new(), "{text}");
    }
}

/// An executor on another machine may have copied files to its local disk. The same path on this machine does not have
/// these files.
#[test]
fn copies_that_are_not_there_are_not_committed() {
    let (from_directory, from) = source(&[]);
    let (directory, to) = place();
    let plan = planned(&from, &to);
    let told = copied(&plan, &from_directory, &directory);
    let lost = stored(&directory).pop_first().unwrap();
    fs::remove_file(directory.path().join(&lost)).unwrap();
    let error = plan.commit_copied(&told).unwrap_err();
    assert!(error.kind() == ErrorKind::FileNotFound && error.to_string().contains(&lost), "{error}");
    assert!(error.hint().unwrap().contains("the same place for the driver and all executors"), "{error}");
    assert_eq!(stored(&directory), BTreeSet::new());
    assert_eq!(Snapshot::open(&to, None).unwrap_err().kind(), ErrorKind::NotATable);
}

/// The copies of a failed clone are deleted. The copies of a clone whose commit has succeeded are kept.
#[test]
fn copies_without_a_commit_are_deleted() {
    let (from_directory, from) = source(&[]);
    let (directory, to) = place();
    let plan = planned(&from, &to);
    copied(&plan, &from_directory, &directory);
    // Next to a copy there are the checksum file that Hadoop writes for it, and files of other writers.
    let copy = stored(&directory).pop_first().unwrap();
    fs::write(directory.path().join(format!(".{copy}.crc")), "").unwrap();
    fs::write(directory.path().join("0-other.parquet"), "").unwrap();
    // The engine has reported nothing.
    plan.abandon();
    assert_eq!(stored(&directory), BTreeSet::from(["0-other.parquet".to_owned()]));
    fs::remove_file(directory.path().join("0-other.parquet")).unwrap();
    // Another writer has created a table there in the meantime.
    let plan = planned(&from, &to);
    let told = copied(&plan, &from_directory, &directory);
    let other = planned(&from, &to);
    let others = copied(&other, &from_directory, &directory);
    other.commit_copied(&others).unwrap();
    let error = plan.commit_copied(&told).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TableAlreadyExists, "{error}");
    assert_eq!(ids(&newest(&to)), ids(&newest(&from)));
    // These are three data files and a deletion vector.
    assert_eq!(stored(&directory).len(), 4);
}
