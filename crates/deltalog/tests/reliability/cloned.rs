//! Clones of tables. Protocol: "Add File and Remove File", "Deletion Vector Descriptor Schema", "Row Tracking", "Change
//! Metadata".

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use deltalog::engine::commit::Transaction;
use deltalog::engine::dml::{Request, delete};
use deltalog::engine::protocol::{Add, DeletionVectorStorage, TableFeature};
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    CloneMetrics, CloneRequest, Cloned, ColumnPath, CreationMode, ErrorKind, NewColumn, Operation,
    OptimizeRequest, PendingWrite, PrimitiveType, Result, SaveMode, Snapshot, Storage, StructField,
    TableChange, TableScan, VacuumRequest, WriteRequest, alter_table, clone_table, optimize, plan_vacuum,
};
use tempfile::TempDir;

use crate::common::ids::{environment, files, ids, table};
use crate::common::newest;

const ROW_IDS: (&str, &str) = ("delta.enableRowTracking", "true");

fn append(storage: &Storage, ids: impl IntoIterator<Item = i64>) {
    let request = WriteRequest::new(newest(storage).schema().clone(), SaveMode::Append);
    let write = PendingWrite::begin(storage, request, &environment()).unwrap().unwrap();
    let files = files(&write, ids);
    write.commit(files, Operation::new("WRITE")).unwrap();
}

fn delete_rows(storage: &Storage, condition: &str) {
    delete(&readable(storage), Some(condition), Request::new(&environment())).unwrap();
}

/// Opens the newest version, and allows its data files to be anywhere.
fn readable(storage: &Storage) -> Snapshot {
    Snapshot::builder(storage).allow_root("file:///").unwrap().open().unwrap()
}

/// Creates an empty directory for a clone.
fn place() -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    (directory, storage)
}

fn request(is_shallow: bool, set: impl FnOnce(&mut CloneRequest)) -> CloneRequest {
    let mut request = CloneRequest::new(is_shallow);
    set(&mut request);
    request
}

fn replace(is_shallow: bool) -> CloneRequest {
    request(is_shallow, |request| request.mode = CreationMode::CreateOrReplace)
}

fn cloned(source: &Storage, target: &Storage, request: CloneRequest) -> Result<Cloned> {
    clone_table(&readable(source), target, request, &environment())
}

fn adds(storage: &Storage) -> Vec<Add> {
    listed_files(&readable(storage), None).unwrap().into_iter().map(|file| file.add).collect()
}

/// Returns the files of a directory that are outside of the log.
fn stored(directory: &TempDir) -> BTreeSet<String> {
    let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name != "_delta_log").collect()
}

/// Creates a table with three versions. The newest one has two files, one of them with a deletion vector.
fn source(properties: &[(&str, &str)]) -> (TempDir, Storage) {
    let (directory, storage) = table(properties);
    delete_rows(&storage, "id = 1 or id = 2");
    append(&storage, 10..20);
    (directory, storage)
}

/// Whichever version of the source is cloned, the clone has the rows, the schema and the properties of that version.
#[test]
fn each_version_can_be_cloned_both_ways() {
    let (_kept, from) = source(&[("mine", "a"), ("delta.enableChangeDataFeed", "true")]);
    for version in 0..=2 {
        let old = Snapshot::open(&from, Some(version)).unwrap();
        for is_shallow in [false, true] {
            let (directory, to) = place();
            let done = clone_table(&old, &to, CloneRequest::new(is_shallow), &environment()).unwrap();
            assert_eq!(done.committed.unwrap().version, 0);
            let new = readable(&to);
            assert_eq!(ids(&new), ids(&old), "version {version}, shallow {is_shallow}");
            assert_eq!((new.schema(), new.protocol()), (old.schema(), old.protocol()));
            assert_eq!(new.metadata().configuration, old.metadata().configuration);
            assert_ne!(new.metadata().id, old.metadata().id);
            let totals = old.totals().unwrap();
            assert_eq!((done.metrics.source_files, done.metrics.source_bytes), (totals.files, totals.bytes));
            let copied = if is_shallow { (0, 0) } else { (totals.files, totals.bytes) };
            assert_eq!((done.metrics.copied_files, done.metrics.copied_bytes), copied);
            match is_shallow {
                true => {
                    assert_eq!(stored(&directory), BTreeSet::new());
                    assert_eq!(done.roots, [from.url()]);
                    let vectors = adds(&to).into_iter().filter_map(|add| add.deletion_vector);
                    assert!(
                        vectors
                            .into_iter()
                            .all(|vector| vector.storage_type == DeletionVectorStorage::AbsolutePath)
                    );
                    // A reader must allow the source's root. Otherwise it gets an error with a hint to do so.
                    let error = TableScan::new(&newest(&to))
                        .read()
                        .and_then(|rows| rows.collect::<Result<Vec<_>>>())
                        .unwrap_err();
                    assert!(
                        error.kind() == ErrorKind::Unsupported
                            && error.to_string().contains("allow its root"),
                        "{error}"
                    );
                }
                false => {
                    assert_eq!(done.roots, [""; 0]);
                    assert_eq!(ids(&newest(&to)), ids(&old));
                }
            }
            // The clone can be changed like any other table, and the source stays the same.
            delete_rows(&to, "id = 5");
            append(&to, [77]);
            assert!(!ids(&readable(&to)).contains(&5));
            assert_eq!(ids(&Snapshot::open(&from, Some(version)).unwrap()), ids(&old));
        }
    }
}

/// "Commit Provenance Information", with the names of the JVM implementation.
#[test]
fn the_commit_says_what_was_done() {
    let (_kept, from) = source(&[]);
    let (_also_kept, to) = place();
    append(&from, [99]);
    let fields = serde_json::json!({"userMetadata": "mine"});
    let request = request(true, |request| {
        request.operation =
            request.operation.clone().custom_metadata(fields.as_object().unwrap().clone()).unwrap();
    });
    let done = cloned(&from, &to, request).unwrap();
    let text = String::from_utf8(to.read("_delta_log/00000000000000000000.json").unwrap().to_vec()).unwrap();
    let info: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let info = &info["commitInfo"];
    assert_eq!((&info["operation"], &info["userMetadata"]), (&"CLONE".into(), &"mine".into()));
    assert_eq!(
        info["operationParameters"],
        serde_json::json!({"source": format!("delta.`{}`", from.url()), "sourceVersion": 3, "isShallow": true})
    );
    assert_eq!(
        info["operationMetrics"],
        serde_json::json!({
            "sourceTableSize": done.metrics.source_bytes.to_string(), "sourceNumOfFiles": "3",
            "numRemovedFiles": "0", "removedFilesSize": "0", "numCopiedFiles": "0", "copiedFilesSize": "0"
        })
    );
}

/// Only new files are copied, no matter how both tables have changed in between.
#[test]
fn a_repeated_deep_clone_copies_only_new_files() {
    for properties in [&[][..], &[ROW_IDS]] {
        let (_kept, from) = source(properties);
        let (directory, to) = place();
        let again = || {
            let done = cloned(&from, &to, replace(false)).unwrap();
            assert_eq!(ids(&newest(&to)), ids(&newest(&from)));
            (
                done.committed.map(|committed| committed.version),
                done.metrics.copied_files,
                done.metrics.removed_files,
            )
        };
        assert_eq!(again(), (Some(0), 2, 0));
        assert_eq!(again(), (None, 0, 0));
        append(&from, 20..30);
        assert_eq!(again(), (Some(1), 1, 0));
        // If only the deletion vector of a file has changed, the file of the vector is copied again, but not the data
        // file.
        let before = stored(&directory);
        delete_rows(&from, "id = 15");
        assert_eq!(again(), (Some(2), 0, 1));
        let new: Vec<String> = stored(&directory).difference(&before).cloned().collect();
        assert!(matches!(&new[..], [name] if name.ends_with(".bin")), "{new:?}");
        assert_eq!(again(), (None, 0, 0));
        // The vector of a file that already had one is replaced.
        delete_rows(&from, "id = 4");
        assert_eq!(again(), (Some(3), 0, 1));
        // Changes that were made to the clone itself are undone.
        delete_rows(&to, "id = 11 or id = 3");
        append(&to, [77]);
        assert_eq!(again(), (Some(6), 0, 3));
        assert_eq!(again(), (None, 0, 0));
        optimize(&newest(&from), OptimizeRequest::default(), &environment()).unwrap();
        assert_eq!(again(), (Some(7), 1, 3));
        // The files belong to no other table.
        let live: BTreeSet<String> = adds(&to).into_iter().map(|add| add.path).collect();
        assert!(live.is_subset(&stored(&directory)));
        assert_eq!(newest(&to).metadata().id, Snapshot::open(&to, Some(0)).unwrap().metadata().id);
    }
}

/// A file of the same name and size in another table is not the same file.
#[test]
fn files_of_other_tables_do_not_count_as_copies() {
    let (_kept, from) = table(&[]);
    let (_also_kept, to) = place();
    cloned(&from, &to, CloneRequest::new(false)).unwrap();
    let (other_directory, other) = table(&[]);
    let (name, expected) = (adds(&from).remove(0), adds(&other).remove(0));
    // The other table has a file with the same name as a file of the first table.
    fs::rename(other_directory.path().join(&expected.path), other_directory.path().join(&name.path)).unwrap();
    let mut transaction =
        Transaction::overwrite(&newest(&other), Operation::new("WRITE"), &environment()).unwrap();
    let mut moved = expected;
    moved.path.clone_from(&name.path);
    transaction.add_files(&[moved]).unwrap();
    transaction.commit_or_fail().unwrap();
    let done = cloned(&other, &to, replace(false)).unwrap();
    assert_eq!((done.metrics.copied_files, done.metrics.removed_files), (1, 1));
}

#[test]
fn a_shallow_clone_is_repeated() {
    let (_kept, from) = source(&[]);
    let (_also_kept, to) = place();
    let again = || {
        let done = cloned(&from, &to, replace(true)).unwrap();
        assert_eq!(ids(&readable(&to)), ids(&newest(&from)));
        (done.committed.map(|committed| committed.version), done.metrics.removed_files)
    };
    assert_eq!(again(), (Some(0), 0));
    assert_eq!(again(), (None, 0));
    delete_rows(&from, "id = 15");
    assert_eq!(again(), (Some(1), 1));
    delete_rows(&to, "id = 16");
    assert_eq!(again(), (Some(3), 1));
}

/// A clone of a shallow clone refers to the same files, and its readers must allow the same roots.
#[test]
fn clones_can_be_cloned() {
    let (_kept, from) = source(&[]);
    let (_first_kept, first) = place();
    cloned(&from, &first, CloneRequest::new(true)).unwrap();
    append(&first, [50]);
    let opened = Snapshot::builder(&first).allow_root(&from.url()).unwrap().open().unwrap();
    let expected = ids(&opened);
    let (_second_kept, second) = place();
    let done = clone_table(&opened, &second, CloneRequest::new(true), &environment()).unwrap();
    assert_eq!(done.roots, [first.url(), from.url()]);
    let mut reader = Snapshot::builder(&second);
    for root in &done.roots {
        reader = reader.allow_root(root).unwrap();
    }
    assert_eq!(ids(&reader.open().unwrap()), expected);
    // A deep clone of a shallow clone can be read without allowed roots. Making the clone fails unless the caller
    // allows the roots of the shallow clone.
    let (directory, third) = place();
    let error = clone_table(&newest(&first), &third, CloneRequest::new(false), &environment()).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unsupported && error.to_string().contains("allow its root"),
        "{error}"
    );
    assert_eq!(stored(&directory), BTreeSet::new());
    clone_table(&opened, &third, CloneRequest::new(false), &environment()).unwrap();
    assert_eq!(ids(&newest(&third)), expected);
}

/// A deep clone tags its files as copies. Other writers keep the tags when they clone it shallowly, but the files of
/// that shallow clone are not copies.
#[test]
fn a_deep_clone_has_no_files_outside_of_its_directory() {
    let (_kept, from) = source(&[]);
    let (_deep_kept, deep) = place();
    cloned(&from, &deep, CloneRequest::new(false)).unwrap();
    let (_shallow_kept, shallow) = place();
    cloned(&deep, &shallow, CloneRequest::new(true)).unwrap();
    let mut referring = adds(&shallow);
    assert!(
        referring.iter().all(|add| add.tags.as_ref().is_none_or(|tags| tags.is_empty())),
        "{referring:?}"
    );
    let copies = adds(&deep);
    for add in &mut referring {
        let copy = copies.iter().find(|copy| add.path.ends_with(&copy.path)).unwrap();
        add.tags.clone_from(&copy.tags);
        assert!(add.tags.is_some());
    }
    let (directory, to) = table(&[]);
    let mut transaction = Transaction::new(&newest(&to), Operation::new("WRITE"), &environment()).unwrap();
    transaction.add_files(&referring).unwrap();
    transaction.commit_or_fail().unwrap();
    let done = cloned(&from, &to, replace(false)).unwrap();
    assert_eq!((done.metrics.copied_files, done.metrics.removed_files), (2, 3));
    let live: BTreeSet<String> = adds(&to).into_iter().map(|add| add.path).collect();
    assert!(live.is_subset(&stored(&directory)), "{live:?}");
    assert_eq!(ids(&newest(&to)), ids(&newest(&from)));
}

/// "Maintenance": VACUUM of a clone only looks below the clone's own root, and keeps files to which the clone refers.
#[test]
fn a_vacuum_of_a_shallow_clone_leaves_the_source_alone() {
    let (directory, from) = source(&[]);
    let (clone_directory, to) = place();
    cloned(&from, &to, CloneRequest::new(true)).unwrap();
    delete_rows(&to, "id = 5");
    append(&to, [77]);
    delete_rows(&to, "true");
    std::thread::sleep(Duration::from_millis(20));
    let before = stored(&directory);
    let request = VacuumRequest::default().retention(Duration::ZERO).enforce_retention(false);
    let plan = plan_vacuum(&readable(&to), request, &environment()).unwrap();
    assert!(plan.files() > 0);
    plan.delete().unwrap();
    assert_eq!(stored(&directory), before);
    assert!(stored(&clone_directory).is_empty());
    assert_eq!(ids(&newest(&from)).len(), 18);
}

/// "Row Tracking": if the number of rows came from another writer's statistics, two rows might get the same id.
#[test]
fn rows_of_other_writers_get_ids_by_counts_that_are_certain() {
    for (counted, is_cloned) in [(None, true), (Some(5), true), (Some(3), false)] {
        let (_kept, from) = table(&[]);
        let append = WriteRequest::new(newest(&from).schema().clone(), SaveMode::Append);
        let pending = PendingWrite::begin(&from, append, &environment()).unwrap().unwrap();
        let mut foreign = files(&pending, 10..15);
        for add in &mut foreign {
            add.stats = counted.map(|rows| format!(r#"{{"numRecords":{rows}}}"#));
        }
        pending.commit(foreign, Operation::new("WRITE")).unwrap();
        for is_shallow in [false, true] {
            let (_also_kept, to) = place();
            let tracked = request(is_shallow, |request| {
                request.properties = [(ROW_IDS.0.to_owned(), ROW_IDS.1.to_owned())].into();
            });
            match cloned(&from, &to, tracked) {
                Ok(_) => {
                    assert!(is_cloned);
                    let batches = TableScan::new(&readable(&to)).row_ids().read().unwrap();
                    let ids = batches.flat_map(|batch| {
                        let batch = batch.unwrap();
                        batch.column(1).as_primitive::<Int64Type>().values().to_vec()
                    });
                    let mut found: Vec<i64> = ids.collect();
                    found.sort_unstable();
                    assert_eq!(found, (0..15).collect::<Vec<_>>(), "{counted:?}");
                }
                Err(error) => {
                    assert!(!is_cloned, "{error}");
                    assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
                    assert!(error.to_string().contains("have 3 rows, but the file has 5"), "{error}");
                }
            }
        }
    }
}

/// "Row Tracking": rows get new ids in the clone, independent of their ids in the source.
#[test]
fn rows_get_ids_of_their_own() {
    let (_kept, from) = source(&[ROW_IDS]);
    optimize(&newest(&from), OptimizeRequest::default(), &environment()).unwrap();
    append(&from, [50]);
    for is_shallow in [false, true] {
        let (_also_kept, to) = place();
        cloned(&from, &to, CloneRequest::new(is_shallow)).unwrap();
        let columns = ["delta.rowTracking.materializedRowIdColumnName"; 1];
        for column in columns {
            assert_ne!(newest(&to).metadata().property(column), newest(&from).metadata().property(column));
        }
        let mut found = Vec::new();
        for batch in TableScan::new(&readable(&to)).row_ids().read().unwrap() {
            let batch = batch.unwrap();
            let ids = batch.column_by_name("_row_id").unwrap().as_primitive::<Int64Type>().clone();
            found.extend(ids.values().to_vec());
        }
        let distinct: BTreeSet<i64> = found.iter().copied().collect();
        assert_eq!((found.len(), distinct.len()), (19, 19));
        append(&to, [51]);
    }
    // If the properties of the clone enable row tracking, it begins with the clone.
    let (_plain_kept, plain) = source(&[]);
    let (_clone_kept, to) = place();
    let properties = [(ROW_IDS.0.to_owned(), ROW_IDS.1.to_owned())];
    let tracked = |is_shallow| {
        request(is_shallow, |request| {
            request.properties = properties.clone().into();
            request.mode = CreationMode::CreateOrReplace;
        })
    };
    cloned(&plain, &to, replace(true)).unwrap();
    let error = cloned(&plain, &to, tracked(true)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unsupported && error.to_string().contains("cannot turn on row tracking"),
        "{error}"
    );
    cloned(&plain, &to, tracked(false)).unwrap();
    assert!(adds(&to).iter().all(|add| add.base_row_id.is_some()));
}

/// The clone gets the properties of the request. If it replaces a table, it keeps the table's properties about its log
/// and about the ids that it has assigned.
#[test]
fn the_clone_has_the_properties_of_the_request() {
    let (_kept, from) = source(&[("mine", "a"), ("delta.enableInCommitTimestamps", "true")]);
    let change = |storage: &Storage, change: &TableChange| {
        alter_table(&newest(storage), change, Default::default(), &environment()).unwrap();
    };
    change(&from, &TableChange::ClusterBy(vec![ColumnPath::new(["id"])]));
    change(
        &from,
        &TableChange::SetProperties([("delta.columnMapping.mode".to_owned(), "name".to_owned())].into()),
    );
    let (_also_kept, to) = table(&[("other", "x"), ("delta.enableTypeWidening", "true")]);
    let before = newest(&to);
    let mut request = replace(false);
    request.properties =
        [("mine".to_owned(), "b".to_owned()), ("delta.appendOnly".to_owned(), "false".to_owned())].into();
    cloned(&from, &to, request.clone()).unwrap();
    let new = newest(&to);
    assert_eq!((new.metadata().property("mine"), new.metadata().property("other")), (Some("b"), None));
    assert_eq!(new.clustering_columns().unwrap(), [["id"]]);
    assert_eq!((new.version(), &new.metadata().id), (1, &before.metadata().id));
    for feature in [TableFeature::TypeWidening, TableFeature::ColumnMapping, TableFeature::InCommitTimestamp]
    {
        assert!(new.protocol().supports(&feature), "{feature}");
    }
    assert_eq!(new.metadata().property("delta.inCommitTimestampEnablementVersion"), Some("1"));
    // New columns get ids above the highest id so far, even if the clone's content comes from another table.
    let field = StructField::new("more", PrimitiveType::Long, true);
    change(&from, &TableChange::AddColumns(vec![NewColumn::new(ColumnPath::new([""; 0]), field)]));
    cloned(&from, &to, request).unwrap();
    let id = |storage: &Storage| {
        newest(storage).metadata().property("delta.columnMapping.maxColumnId").map(str::to_owned)
    };
    assert_eq!(id(&to), id(&from));
    let (_plain_kept, plain) = table(&[]);
    cloned(&plain, &to, replace(false)).unwrap();
    assert_eq!(newest(&to).clustering_columns().unwrap(), Vec::<Vec<String>>::new());
    assert_eq!(ids(&newest(&to)), ids(&newest(&plain)));
}

#[test]
fn what_cannot_be_cloned_is_refused() {
    let (directory, from) = source(&[]);
    let inner = Storage::open(directory.path().join("inner").to_str().unwrap(), []).unwrap();
    let outer = Storage::open(directory.path().parent().unwrap().to_str().unwrap(), []).unwrap();
    let (_kept, other) = table(&[]);
    let (_place_kept, to) = place();
    let memory = Storage::open("memory:///x", []).ok();
    let with = |name: &str, value: &str| {
        let properties = [(name.to_owned(), value.to_owned())];
        request(true, |request| request.properties = properties.into())
    };
    for (target, request, kind, text) in [
        (&from, replace(false), ErrorKind::InvalidArgument, "a table cannot be cloned onto itself"),
        (&from, replace(true), ErrorKind::InvalidArgument, "a table cannot be cloned onto itself"),
        (&inner, CloneRequest::new(true), ErrorKind::InvalidArgument, "must not be inside of each other"),
        (&outer, CloneRequest::new(true), ErrorKind::InvalidArgument, "must not be inside of each other"),
        (&other, CloneRequest::new(true), ErrorKind::TableAlreadyExists, "there is already a table"),
        (&to, with("delta.none", "1"), ErrorKind::InvalidArgument, "delta.none"),
        (&to, with("delta.columnMapping.maxColumnId", "1"), ErrorKind::InvalidArgument, "cannot be set"),
    ] {
        let error = cloned(&from, target, request).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(text), "{error}");
        assert_eq!(error.table(), Some(target.url().as_str()), "{error}");
    }
    drop(memory);
    let ignoring = request(true, |request| request.mode = CreationMode::Ignore);
    assert_eq!(cloned(&from, &other, ignoring).unwrap().committed, None);
    assert_eq!(newest(&other).version(), 0);
    let change = TableChange::SetProperties([("delta.appendOnly".to_owned(), "true".to_owned())].into());
    alter_table(&newest(&other), &change, Default::default(), &environment()).unwrap();
    assert_eq!(cloned(&from, &other, replace(false)).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// If the files cannot be copied, the failed clone leaves no files behind.
#[test]
fn missing_files_and_files_of_another_size_are_named() {
    let (directory, from) = source(&[]);
    let [first, ..] =
        adds(&from).try_into().unwrap_or_else(|adds: Vec<Add>| [adds[0].clone(), adds[1].clone()]);
    let path = directory.path().join(&first.path);
    let bytes = fs::read(&path).unwrap();
    for (content, kind, text) in [
        (Some(&bytes[1..]), ErrorKind::CorruptData, "and the log says"),
        (None, ErrorKind::FileNotFound, "the file is not there"),
    ] {
        fs::remove_file(&path).unwrap();
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        let (clone_directory, to) = place();
        let error = cloned(&from, &to, CloneRequest::new(false)).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(text), "{error}");
        assert!(error.to_string().contains(&first.path), "{error}");
        assert_eq!(stored(&clone_directory), BTreeSet::new());
        assert_eq!(Snapshot::open(&to, None).unwrap_err().kind(), ErrorKind::NotATable);
    }
}

#[test]
fn a_dry_run_returns_the_planned_changes() {
    let (_kept, from) = source(&[]);
    let (directory, to) = place();
    let dry = |mode| {
        request(false, |request| {
            request.dry_run = true;
            request.mode = mode;
        })
    };
    let done = cloned(&from, &to, dry(CreationMode::ErrorIfExists)).unwrap();
    assert_eq!((done.committed, done.metrics.copied_files), (None, 2));
    assert_eq!(stored(&directory), BTreeSet::new());
    let real = cloned(&from, &to, CloneRequest::new(false)).unwrap();
    assert_eq!(real.metrics, done.metrics);
    let again = cloned(&from, &to, dry(CreationMode::CreateOrReplace)).unwrap().metrics;
    let unchanged = CloneMetrics::default();
    assert_eq!((again.copied_files, again.removed_files), (unchanged.copied_files, unchanged.removed_files));
}

/// If another writer commits while the clone runs, the clone fails. Otherwise it would silently undo that commit.
#[test]
fn a_concurrent_commit_is_a_conflict() {
    let (_kept, from) = source(&[]);
    let (directory, to) = table(&[]);
    let interfering = {
        let to = to.clone();
        let done = std::sync::atomic::AtomicBool::new(false);
        deltalog::Environment::new(
            || chrono::Utc::now().timestamp_millis(),
            move || {
                // The other writer commits when the first id is drawn, after the table was opened.
                if !done.swap(true, std::sync::atomic::Ordering::SeqCst) {
                    append(&to, [50]);
                }
                uuid::Uuid::new_v4()
            },
        )
        .with_sleep(|_| {})
    };
    let error = clone_table(&readable(&from), &to, replace(false), &interfering).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
    assert_eq!(ids(&newest(&to)).len(), 11);
    // The copies were deleted.
    assert_eq!(stored(&directory).len(), 2);
}
