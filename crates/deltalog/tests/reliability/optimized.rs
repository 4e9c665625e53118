//! OPTIMIZE rewrites many files as fewer files while other writers commit. Protocol: "Add File and Remove File",
//! "Deletion Vectors", "Row Tracking".

use std::collections::{BTreeMap, BTreeSet};

use deltalog::engine::commit::Transaction;
use deltalog::engine::dml::{Request, update};
use deltalog::engine::protocol::Add;
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    ErrorKind, Operation, OptimizeRequest, Optimized, PendingWrite, SaveMode, Snapshot, Storage, TableChange,
    WriteRequest, alter_table, optimize,
};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::common::ids::{ROWS, append, delete_rows, environment, files, ids, meanwhile, table};
use crate::common::{newest, schema};

/// Creates a table with this many files of ten rows each, with consecutive ids.
pub fn small_files(count: i64, properties: &[(&str, &str)]) -> (TempDir, Storage) {
    let (directory, storage) = table(properties);
    for file in 1..count {
        append(&storage, file * ROWS..(file + 1) * ROWS);
    }
    (directory, storage)
}

pub fn request() -> OptimizeRequest {
    OptimizeRequest::default()
}

/// Returns an OPTIMIZE request with the settings that `set` makes.
pub fn with(set: impl FnOnce(&mut OptimizeRequest)) -> OptimizeRequest {
    let mut request = request();
    set(&mut request);
    request
}

pub fn condition(ids: &BTreeSet<i64>) -> String {
    let texts: Vec<String> = ids.iter().map(i64::to_string).collect();
    format!("id in ({})", texts.join(", "))
}

pub fn adds(snapshot: &Snapshot) -> Vec<Add> {
    listed_files(snapshot, None).unwrap().into_iter().map(|file| file.add).collect()
}

/// Returns the number of the table's data files and deletion vector files.
fn stored(directory: &TempDir) -> usize {
    let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| !name.to_str().unwrap().starts_with('_')).count()
}

#[test]
fn small_files_become_one_with_the_same_rows_in_their_order() {
    let (_directory, storage) = small_files(5, &[]);
    delete_rows(&storage, "id = 3 or id = 17 or id = 18");
    let base = newest(&storage);
    let Optimized { commits, metrics, .. } = optimize(&base, request(), &environment()).unwrap();
    let new = newest(&storage);
    assert_eq!((commits.len(), new.version()), (1, base.version() + 1));
    assert_eq!((ids(&new), new.totals().unwrap().files), (ids(&base), 1));
    assert_eq!((metrics.added.count(), metrics.removed.count(), metrics.removed_vectors), (1, 5, 2));
    assert_eq!((metrics.removed_vector_rows, metrics.considered_files, metrics.skipped_files()), (3, 5, 0));
    let [file] = adds(&new).try_into().unwrap();
    assert!(!file.data_change && file.deletion_vector.is_none());
    assert!(file.stats.unwrap().contains("\"numRecords\":47"));
    // A second OPTIMIZE has nothing to do.
    let again = optimize(&new, request(), &environment()).unwrap();
    assert!(again.commits.is_empty() && again.metrics.removed.count() == 0);
    assert_eq!(newest(&storage).version(), new.version());
}

/// The commit is described with the names of the JVM implementation.
#[test]
fn the_commit_says_what_was_done() {
    let (_directory, storage) = small_files(3, &[]);
    optimize(&newest(&storage), request(), &environment()).unwrap();
    let path = format!("_delta_log/{:020}.json", newest(&storage).version());
    let text = String::from_utf8(storage.read(&path).unwrap().to_vec()).unwrap();
    let info: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let info = &info["commitInfo"];
    assert_eq!(
        (&info["operation"], &info["isolationLevel"]),
        (&"OPTIMIZE".into(), &"SnapshotIsolation".into())
    );
    assert_eq!(
        (&info["operationParameters"]["predicate"], &info["isBlindAppend"]),
        (&"[]".into(), &false.into())
    );
    for (name, value) in
        [("numRemovedFiles", "3"), ("numAddedFiles", "1"), ("numDeletionVectorsRemoved", "0")]
    {
        assert_eq!(info["operationMetrics"][name], value, "{info}");
    }
    assert!(!text.contains("\"dataChange\":true"), "{text}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let (directory, storage) = small_files(3, &[]);
    let (base, before) = (newest(&storage), stored(&directory));
    let planned = optimize(&base, with(|request| request.dry_run = true), &environment()).unwrap();
    assert_eq!((planned.metrics.removed.count(), planned.metrics.added.count()), (3, 1));
    assert_eq!((newest(&storage).version(), stored(&directory)), (base.version(), before));
}

#[test]
fn large_files_stay_and_files_with_many_deleted_rows_do_not() {
    let (_directory, storage) = small_files(2, &[]);
    let largest = adds(&newest(&storage)).iter().map(|add| add.size).max().unwrap();
    let target = Some(u64::try_from(largest).unwrap());
    // Each file already has the maximum size of a new file.
    let done = optimize(&newest(&storage), with(|request| request.target_size = target), &environment());
    assert_eq!(done.unwrap().metrics.removed.count(), 0);
    delete_rows(&storage, "id < 6");
    let base = newest(&storage);
    for (most_deleted, expected) in [(0.7, 0), (0.6, 1)] {
        let request = with(|request| (request.target_size, request.most_deleted) = (Some(1), most_deleted));
        let done = optimize(&base, request, &environment()).unwrap();
        assert_eq!(done.metrics.removed_vectors, expected, "{most_deleted}");
    }
    assert_eq!(ids(&newest(&storage)), ids(&base));
    assert!(adds(&newest(&storage)).iter().all(|add| add.deletion_vector.is_none()));
}

/// Each commit replaces a part of the files. Earlier commits are kept if the next one fails.
#[test]
fn commits_are_of_bounded_size() {
    let (_directory, storage) = small_files(6, &[]);
    let base = newest(&storage);
    let size = u64::try_from(adds(&base)[0].size).unwrap();
    let request = with(|request| (request.target_size, request.bytes_of_a_commit) = (Some(size * 5 / 2), 1));
    let done = optimize(&base, request, &environment()).unwrap();
    assert_eq!((done.commits.len(), done.metrics.batches), (3, 3));
    assert_eq!((newest(&storage).totals().unwrap().files, ids(&newest(&storage))), (3, ids(&base)));
}

/// If other writers delete rows while OPTIMIZE writes its files, these rows are also deleted in the new files.
#[test]
fn deletes_of_other_writers_are_applied_to_the_new_files() {
    let (directory, storage) = small_files(4, &[]);
    delete_rows(&storage, "id = 1 or id = 12 or id = 13");
    let base = newest(&storage);
    let other = storage.clone();
    let environment = meanwhile(
        move || {
            delete_rows(&other, "id = 0 or id = 2 or id = 14 or id = 39");
            append(&other, 100..103);
            let values = [("id".to_owned(), "id + 200".to_owned())];
            update(&newest(&other), &values, Some("id = 21"), Request::new(&environment())).unwrap();
        },
        1,
    );
    let done = optimize(&base, request(), &environment).unwrap();
    assert_eq!((done.commits.len(), done.metrics.carried_rows, done.metrics.given_up), (1, 5, 0));
    let new = newest(&storage);
    let expected: Vec<i64> = (0..40)
        .filter(|id| ![0, 1, 2, 12, 13, 14, 21, 39].contains(id))
        .chain(100..103)
        .chain([221])
        .collect();
    assert_eq!(ids(&new), expected);
    let vectors: Vec<Add> = adds(&new).into_iter().filter(|add| add.deletion_vector.is_some()).collect();
    assert_eq!(vectors.len(), 1);
    assert!(vectors[0].stats.as_ref().unwrap().contains("\"tightBounds\":false"));
    // There are 4 old and 3 new data files, and 4 files with deletion vectors: 1 old one, 2 that other writers wrote,
    // and the new one.
    assert_eq!(stored(&directory), 4 + 3 + 4);
    for version in 0..=new.version() {
        ids(&Snapshot::open(&storage, Some(version)).unwrap());
    }
}

/// If OPTIMIZE makes several commits, each of them takes into account what other writers have deleted since the files
/// were read.
#[test]
fn deletes_of_other_writers_are_applied_to_each_commit() {
    let (_directory, storage) = small_files(4, &[]);
    let base = newest(&storage);
    let size = u64::try_from(adds(&base)[0].size).unwrap();
    delete_rows(&storage, "id = 0 or id = 15 or id = 39");
    let request = with(|request| (request.target_size, request.bytes_of_a_commit) = (Some(size * 5 / 2), 1));
    let done = optimize(&base, request, &environment()).unwrap();
    assert_eq!((done.commits.len(), done.metrics.carried_rows), (2, 3));
    let expected: Vec<i64> = (0..40).filter(|id| ![0, 15, 39].contains(id)).collect();
    assert_eq!(ids(&newest(&storage)), expected);
}

/// If another writer removes a file while OPTIMIZE rewrites it, its rows do not come back.
#[test]
fn a_bin_whose_files_were_removed_is_not_committed() {
    let (directory, storage) = small_files(4, &[]);
    let base = newest(&storage);
    let size = u64::try_from(adds(&base)[0].size).unwrap();
    let other = storage.clone();
    let environment = meanwhile(move || delete_rows(&other, "id >= 10 and id < 20"), 2);
    let two_bins = with(|request| request.target_size = Some(size * 5 / 2));
    let done = optimize(&base, two_bins.clone(), &environment).unwrap();
    assert_eq!((done.commits.len(), done.metrics.given_up, done.metrics.added.count()), (1, 1, 1));
    let expected: Vec<i64> = (0..10).chain(20..40).collect();
    assert_eq!(ids(&newest(&storage)), expected);
    // The new file of the bin that was not committed has been deleted.
    assert_eq!(stored(&directory), 4 + 1);

    // If no bin can be committed, there is no commit.
    let base = newest(&storage);
    let other = storage.clone();
    let environment = meanwhile(move || delete_rows(&other, "id >= 0"), 1);
    let done = optimize(&base, request(), &environment).unwrap();
    assert_eq!((done.commits.len(), done.metrics.removed.count()), (0, 0));
    assert_eq!((ids(&newest(&storage)), stored(&directory)), (Vec::new(), 4 + 1));
}

#[test]
fn a_change_of_the_metadata_is_a_conflict_that_leaves_nothing() {
    let (directory, storage) = small_files(3, &[]);
    let (base, before) = (newest(&storage), stored(&directory));
    let other = storage.clone();
    let change = TableChange::SetProperties([("delta.enableDeletionVectors".into(), "false".into())].into());
    let environment = meanwhile(
        move || {
            // Deletes of other writers can only be carried over if the table still allows deletion vectors.
            delete_rows(&other, "id = 5");
            alter_table(&newest(&other), &change, Default::default(), &environment()).unwrap();
        },
        1,
    );
    let error = optimize(&base, request(), &environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
    assert_eq!(stored(&directory), before + 1);
    assert_eq!(ids(&newest(&storage)).len(), 29);
}

#[test]
fn predicates_choose_partitions_only() {
    let (_directory, storage) = small_files(2, &[]);
    let where_ = |predicate: &str| with(|request| request.predicate = Some(predicate.to_owned()));
    for predicate in ["id = 1", "nothing = 1", "id +"] {
        let error = optimize(&newest(&storage), where_(predicate), &environment()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    let zero = with(|request| request.target_size = Some(0));
    assert_eq!(
        optimize(&newest(&storage), zero, &environment()).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

/// Returns the row id and the row commit version of each row, by its value of `id`.
pub fn row_ids(snapshot: &Snapshot) -> BTreeMap<i64, (i64, i64)> {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    let mut found = BTreeMap::new();
    for batch in deltalog::TableScan::new(snapshot).row_ids().read().unwrap() {
        let batch = batch.unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
        let (id, row, version) = (column("id"), column("_row_id"), column("_row_commit_version"));
        for at in 0..batch.num_rows() {
            found.insert(id.value(at), (row.value(at), version.value(at)));
        }
    }
    found
}

/// "Row Tracking": rows keep their ids and commit versions.
#[test]
fn row_ids_stay() {
    let (_directory, storage) = small_files(3, &[("delta.enableRowTracking", "true")]);
    delete_rows(&storage, "id = 4");
    let before = row_ids(&newest(&storage));
    optimize(&newest(&storage), request(), &environment()).unwrap();
    assert_eq!(row_ids(&newest(&storage)), before);
    assert_eq!((before.len(), newest(&storage).totals().unwrap().files), (29, 1));
}

/// REORG … APPLY (PURGE) rewrites all files with deletion vectors, however large they are and however few rows are
/// deleted.
#[test]
fn a_purge_leaves_no_vector() {
    let (_directory, storage) = small_files(4, &[]);
    delete_rows(&storage, "id = 3 or id = 17");
    delete_rows(&storage, "id >= 30");
    let base = newest(&storage);
    let purge = |set: fn(&mut OptimizeRequest)| {
        let request = with(|request| {
            (request.purges, request.target_size) = (true, Some(1));
            set(request);
        });
        optimize(&newest(&storage), request, &environment()).unwrap()
    };
    let planned = purge(|request| request.dry_run = true);
    assert_eq!((planned.metrics.removed.count(), newest(&storage).version()), (2, base.version()));
    let Optimized { commits, metrics, .. } = purge(|_| {});
    assert_eq!((commits.len(), metrics.added.count(), metrics.removed.count()), (1, 2, 2));
    assert_eq!((metrics.removed_vector_rows, metrics.considered_files, metrics.skipped_files()), (2, 3, 1));
    assert_eq!(ids(&newest(&storage)), ids(&base));
    assert!(adds(&newest(&storage)).iter().all(|add| add.deletion_vector.is_none()));
    assert!(purge(|_| {}).commits.is_empty());
    let path = format!("_delta_log/{:020}.json", newest(&storage).version());
    let text = String::from_utf8(storage.read(&path).unwrap().to_vec()).unwrap();
    let info: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let info = &info["commitInfo"];
    assert_eq!(info["operation"], "REORG", "{info}");
    assert_eq!(info["operationParameters"], serde_json::json!({"predicate": "[]", "applyPurge": true}));
    assert_eq!(info["operationMetrics"]["numDeletionVectorsRemoved"], "2");
}

/// "Clustered Tables": the rows of clustered files are not mixed with other rows.
#[test]
fn a_purge_keeps_clustered_files_apart() {
    let (_directory, storage) = table(&[]);
    for first in [100, 200] {
        let write =
            PendingWrite::begin(&storage, WriteRequest::new(schema(), SaveMode::Append), &environment());
        let mut clustered = files(&write.unwrap().unwrap(), first..first + ROWS);
        clustered[0].clustering_provider = Some("somebody".to_owned());
        let mut transaction =
            Transaction::new(&newest(&storage), Operation::new("WRITE"), &environment()).unwrap();
        transaction.add_files(&clustered).unwrap();
        transaction.commit_or_fail().unwrap();
    }
    delete_rows(&storage, "id in (1, 101, 201)");
    let before = ids(&newest(&storage));
    let request = with(|request| request.purges = true);
    let done = optimize(&newest(&storage), request, &environment()).unwrap();
    assert_eq!((done.metrics.added.count(), done.metrics.removed.count()), (3, 3));
    assert_eq!(ids(&newest(&storage)), before);
    // The purged files are clustered as well as before, so a compaction does not rewrite them.
    let clustered = adds(&newest(&storage)).into_iter().filter(|add| add.clustering_provider.is_some());
    assert_eq!(clustered.count(), 2);
}

/// "Column Mapping": files contain dropped columns until a purge. A new column of the same name does not show the old
/// values.
#[test]
fn a_purge_leaves_no_dropped_column() {
    let (_directory, storage) = small_files(1, &[("delta.columnMapping.mode", "name")]);
    let change = |change: &TableChange| {
        alter_table(&newest(&storage), change, Default::default(), &environment()).unwrap();
    };
    let purge =
        || optimize(&newest(&storage), with(|request| request.purges = true), &environment()).unwrap();
    assert!(purge().commits.is_empty());
    let field = deltalog::StructField::new("more", deltalog::PrimitiveType::Long, true);
    let added = deltalog::NewColumn::new(deltalog::ColumnPath::new([""; 0]), field);
    change(&TableChange::AddColumns(vec![added.clone()]));
    // A file without the dropped column does not need to be purged.
    assert!(purge().commits.is_empty());
    update(&newest(&storage), &[("more".to_owned(), "id".to_owned())], None, Request::new(&environment()))
        .unwrap();
    change(&TableChange::DropColumns(vec![deltalog::ColumnPath::new(["more"])]));
    change(&TableChange::AddColumns(vec![added]));
    let before = ids(&newest(&storage));
    assert_eq!(purge().metrics.removed.count(), 1);
    assert_eq!(ids(&newest(&storage)), before);
    assert!(purge().commits.is_empty());
}

/// If a file cannot be read, the purge fails before it writes anything.
#[test]
fn a_purge_of_a_damaged_file_fails() {
    let (directory, storage) = small_files(2, &[]);
    let file = directory.path().join(&adds(&newest(&storage))[0].path);
    std::fs::write(&file, "PAR1").unwrap();
    let (base, before) = (newest(&storage), stored(&directory));
    let error = optimize(&base, with(|request| request.purges = true), &environment()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
    assert!(error.to_string().contains(&storage.url()) && error.path().is_some(), "{error}");
    assert_eq!((newest(&storage).version(), stored(&directory)), (base.version(), before));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// No matter which rows other writers delete before and during an OPTIMIZE, exactly the other rows remain.
    #[test]
    fn no_row_is_lost_or_brought_back(
        files in 2..5_i64,
        before in prop::collection::btree_set(0..40_i64, 0..12),
        meanwhile_deleted in prop::collection::vec(prop::collection::btree_set(0..40_i64, 1..12), 1..3),
        per_bin in 1..4_u64,
        is_one_commit in any::<bool>(),
        purges in any::<bool>(),
    ) {
        let (_directory, storage) = small_files(files, &[]);
        if !before.is_empty() {
            delete_rows(&storage, &condition(&before));
        }
        let base = newest(&storage);
        let size = adds(&base).first().map_or(1, |add| u64::try_from(add.size).unwrap());
        let (other, deletes) = (storage.clone(), meanwhile_deleted.clone());
        let environment = meanwhile(
            move || deletes.iter().for_each(|ids| delete_rows(&other, &condition(ids))),
            1,
        );
        let request = with(|request| {
            request.target_size = Some(size * per_bin + size / 2);
            request.purges = purges;
            if !is_one_commit {
                request.bytes_of_a_commit = 1;
            }
        });
        optimize(&base, request, &environment).unwrap();
        let gone: BTreeSet<i64> =
            meanwhile_deleted.into_iter().flatten().chain(before).collect();
        let mut expected: Vec<i64> = (0..files * ROWS).filter(|id| !gone.contains(id)).collect();
        // The other writers act when an id is drawn. If OPTIMIZE has nothing to commit, it draws no id, so they have
        // done nothing.
        if newest(&storage).version() == base.version() {
            expected = ids(&base);
        }
        prop_assert_eq!(ids(&newest(&storage)), expected);
    }
}
