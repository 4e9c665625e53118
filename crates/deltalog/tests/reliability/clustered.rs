//! OPTIMIZE of clustered tables, step by step, while other writers commit. Protocol: "Clustered Table", "Add File and
//! Remove File", "Deletion Vectors", "Row Tracking", "Per-file Statistics".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use deltalog::engine::protocol::Add;
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    ColumnPath, CreationMode, ErrorKind, Operation, OptimizeRequest, Optimized, ParseMode, PendingWrite,
    SaveMode, Snapshot, Storage, StructType, TableChange, TableDefinition, TableScan, WriteRequest,
    alter_table, optimize, parse_predicate,
};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::common::ids::{delete_rows, environment, meanwhile};
use crate::common::newest;

/// A row with an id and two values by which rows are clustered.
type Row = (i64, Option<i64>, Option<String>);

const COLUMNS: [(&str, &str); 3] = [("id", "long"), ("a", "long"), ("b", "string")];

fn schema() -> StructType {
    let field = |(name, data_type): &(&str, &str)| {
        format!(r#"{{"name":"{name}","type":"{data_type}","nullable":true,"metadata":{{}}}}"#)
    };
    let fields: Vec<String> = COLUMNS.iter().map(field).collect();
    StructType::from_json(&format!(r#"{{"type":"struct","fields":[{}]}}"#, fields.join(","))).unwrap()
}

/// Returns the row with this id. Its values look random.
fn row(id: i64) -> Row {
    let mixed = id.wrapping_mul(2_654_435_761) >> 7;
    let a = (mixed % 11 != 0).then_some(mixed % 997);
    let b = (mixed % 13 != 0).then(|| format!("text {}", mixed / 997 % 893));
    (id, a, b)
}

fn append(storage: &Storage, ids: impl IntoIterator<Item = i64>) {
    let rows: Vec<Row> = ids.into_iter().map(row).collect();
    let columns: [ArrayRef; 3] = [
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.1))),
        Arc::new(StringArray::from_iter(rows.iter().map(|row| row.2.as_deref()))),
    ];
    let named = COLUMNS.iter().zip(columns).map(|((name, _), column)| (*name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();
    let request = WriteRequest::new(schema(), SaveMode::Append);
    let write = PendingWrite::begin(storage, request, &environment()).unwrap().unwrap();
    let mut writer = write.writer().unwrap();
    writer.write(&batch).unwrap();
    let files = writer.finish().unwrap();
    write.commit(files, Operation::new("WRITE")).unwrap();
}

/// Creates a table with deletion vectors and row tracking that is clustered by these columns.
fn table(columns: &[&str]) -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let mut definition = TableDefinition::new(schema());
    definition.clustering_columns = Some(columns.iter().map(|name| ColumnPath::new([*name])).collect());
    for property in ["delta.enableDeletionVectors", "delta.enableRowTracking"] {
        definition.configuration.insert(property.to_owned(), "true".to_owned());
    }
    PendingWrite::define(&storage, &definition, CreationMode::ErrorIfExists, Vec::new(), &environment())
        .unwrap()
        .unwrap()
        .commit(Vec::new(), Operation::new("CREATE TABLE"))
        .unwrap();
    (directory, storage)
}

/// Returns all rows by their ids, with their row ids and commit versions. Checks that no id occurs twice.
fn rows(snapshot: &Snapshot) -> BTreeMap<i64, (Row, i64, i64)> {
    let mut found = BTreeMap::new();
    for batch in TableScan::new(snapshot).row_ids().read().unwrap() {
        let batch = batch.unwrap();
        let number = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
        let (id, a, b) = (number("id"), number("a"), batch.column_by_name("b").unwrap().as_string::<i32>());
        let (row_id, version) = (number("_row_id"), number("_row_commit_version"));
        for at in 0..batch.num_rows() {
            let text = b.iter().nth(at).unwrap().map(str::to_owned);
            let row = (id.value(at), a.iter().nth(at).unwrap(), text);
            let before = found.insert(id.value(at), (row, row_id.value(at), version.value(at)));
            assert!(before.is_none(), "{} is there twice", id.value(at));
        }
    }
    found
}

fn ids(snapshot: &Snapshot) -> BTreeSet<i64> {
    let found = rows(snapshot);
    assert!(found.iter().all(|(id, (found, _, _))| *found == row(*id)));
    found.into_keys().collect()
}

fn adds(snapshot: &Snapshot) -> Vec<Add> {
    listed_files(snapshot, None).unwrap().into_iter().map(|file| file.add).collect()
}

fn bytes(adds: &[Add]) -> u64 {
    adds.iter().map(|add| u64::try_from(add.size).unwrap()).sum()
}

fn tag(add: &Add, name: &str) -> Option<String> {
    add.tags.as_ref()?.get(name)?.clone()
}

/// Returns the Z-cubes to which files belong, with the sizes of the files.
fn cubes(snapshot: &Snapshot) -> BTreeMap<Option<String>, u64> {
    let mut found = BTreeMap::new();
    for add in adds(snapshot) {
        assert_eq!(add.clustering_provider.is_some(), tag(&add, "ZCUBE_ID").is_some());
        *found.entry(tag(&add, "ZCUBE_ID")).or_default() += u64::try_from(add.size).unwrap();
    }
    found
}

fn cluster_by(storage: &Storage, columns: &[&str]) {
    let change = TableChange::ClusterBy(columns.iter().map(|name| ColumnPath::new([*name])).collect());
    alter_table(&newest(storage), &change, Default::default(), &environment()).unwrap();
}

fn run(storage: &Storage, request: OptimizeRequest) -> Optimized {
    optimize(&newest(storage), request, &environment()).unwrap()
}

/// Clusters with files of about `target` bytes.
fn cluster(storage: &Storage, target: u64) -> Optimized {
    run(storage, with_target(target))
}

fn with_target(target: u64) -> OptimizeRequest {
    let mut request = OptimizeRequest::default();
    request.target_size = Some(target);
    request
}

fn full() -> OptimizeRequest {
    let mut request = OptimizeRequest::default();
    request.full = true;
    request
}

fn purge() -> OptimizeRequest {
    let mut request = OptimizeRequest::default();
    request.purges = true;
    request
}

fn commit_of(snapshot: &Snapshot) -> Vec<serde_json::Value> {
    let path = format!("_delta_log/{:020}.json", snapshot.version());
    let text = String::from_utf8(snapshot.storage().read(&path).unwrap().to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn files_with(snapshot: &Snapshot, condition: &str) -> usize {
    let predicate = parse_predicate(condition, "UTC", ParseMode::Strict).unwrap();
    listed_files(snapshot, Some(&predicate)).unwrap().len()
}

/// "Writers must set the name of the clustering implementation in the `clusteringProvider` field", and tags and
/// commits are the same as in the JVM implementation.
#[test]
fn files_record_how_they_are_clustered() {
    let (_directory, storage) = table(&["a", "b"]);
    append(&storage, 0..2_000);
    append(&storage, 2_000..4_000);
    let base = newest(&storage);
    let (before, files) = (rows(&base), adds(&base));
    let done = cluster(&storage, bytes(&files).div_ceil(16));
    let new = newest(&storage);
    assert_eq!((done.commits.len(), new.version()), (1, base.version() + 1));
    assert_eq!(rows(&new), before);
    let clustered = adds(&new);
    assert!((14..=18).contains(&clustered.len()), "{}", clustered.len());
    for add in &clustered {
        assert_eq!(add.clustering_provider.as_deref(), Some("liquid"));
        assert_eq!(tag(add, "ZCUBE_ZORDER_BY").as_deref(), Some(r#"["a","b"]"#));
        assert_eq!(tag(add, "ZCUBE_ZORDER_CURVE").as_deref(), Some("hilbert"));
        assert!(!add.data_change);
        let stats: serde_json::Value = serde_json::from_str(add.stats.as_deref().unwrap()).unwrap();
        assert!(stats["minValues"]["a"].is_i64() && stats["maxValues"]["b"].is_string());
    }
    assert_eq!(cubes(&new).len(), 1);
    let stats = done.metrics.clustering.unwrap();
    assert_eq!((stats.input_cube_files.files, stats.input_cubes), (0, 0));
    assert_eq!((stats.input_other_files.files, stats.input_other_files.bytes), (2, bytes(&files)));
    assert_eq!((stats.merged_files, stats.output_cubes), (stats.input_other_files, 1));
    let info = &commit_of(&new)[0]["commitInfo"];
    assert_eq!(info["operation"], "OPTIMIZE");
    assert_eq!(info["operationParameters"]["clusterBy"], r#"["a","b"]"#);
    assert_eq!(info["operationParameters"]["isFull"], false);
    assert_eq!(info["operationParameters"]["zOrderBy"], "[]");
    // Unlike before, filters on either column now skip files.
    for condition in ["a = 500", "b = 'text 500'"] {
        assert_eq!(files_with(&base, condition), 2);
        let read = files_with(&new, condition);
        assert!(read * 2 <= clustered.len(), "{condition}: {read} of {}", clustered.len());
    }
    // A second run does nothing, and neither does a full run.
    for request in [with_target(1_000), full()] {
        let again = run(&storage, request);
        assert_eq!((again.commits.len(), newest(&storage).version()), (0, new.version()));
        assert_eq!(again.metrics.clustering.unwrap().input_cubes, 1);
    }
}

/// After 1 GB was added to a table of 40 GB with files of 128 MiB, clustering rewrites at most 3 GB. Here, all sizes
/// are proportionally smaller.
#[test]
fn as_little_as_possible_is_written_again() {
    let (_directory, storage) = table(&["a", "b"]);
    append(&storage, 0..60_000);
    let target = bytes(&adds(&newest(&storage))) / 160;
    cluster(&storage, target);
    let mut large = cubes(&newest(&storage));
    assert_eq!(large.len(), 1);
    let large = large.pop_first().unwrap();
    let mut written = 0;
    for step in 0..6 {
        let first = 60_000 + step * 1_500;
        append(&storage, first..first + 1_500);
        let new: Vec<Add> = adds(&newest(&storage));
        let added = new.into_iter().filter(|add| add.clustering_provider.is_none()).collect::<Vec<_>>();
        let done = cluster(&storage, target);
        let removed = done.metrics.removed.total();
        assert!(removed <= 3 * bytes(&added), "{removed} bytes for {}", bytes(&added));
        written += removed;
        let now = cubes(&newest(&storage));
        assert_eq!(now.get(&large.0), Some(&large.1));
        assert!(!now.contains_key(&None));
    }
    assert!(written > 0);
    // In three of the steps, the files joined the cube of the previous step.
    assert!(cubes(&newest(&storage)).len() <= 4, "{:?}", cubes(&newest(&storage)));
    assert_eq!(ids(&newest(&storage)), (0..69_000).collect());
    // A full run merges all files into one cube.
    assert_eq!(run(&storage, full()).commits.len(), 1);
    assert_eq!(cubes(&newest(&storage)).len(), 1);
    assert_eq!(run(&storage, full()).commits.len(), 0);
    assert_eq!(ids(&newest(&storage)), (0..69_000).collect());
}

/// Many small appends become large files, instead of one small cube each.
#[test]
fn small_appends_grow_together() {
    let (_directory, storage) = table(&["a"]);
    for step in 0..8 {
        append(&storage, step * 100..(step + 1) * 100);
        run(&storage, OptimizeRequest::default());
        assert_eq!((adds(&newest(&storage)).len(), cubes(&newest(&storage)).len()), (1, 1));
    }
    assert_eq!(ids(&newest(&storage)), (0..800).collect());
}

/// A cube of at least two thirds of the maximum size is not rewritten, even by a full run.
#[test]
fn finished_cubes_stay() {
    let (_directory, storage) = table(&["a"]);
    for step in 0..6 {
        append(&storage, step * 1_000..(step + 1) * 1_000);
    }
    let files = adds(&newest(&storage));
    let mut request = full();
    // Two files fit into a cube, but three do not.
    request.cube_size = Some(bytes(&files) / 6 * 5 / 2);
    let done = run(&storage, request.clone());
    assert_eq!(done.metrics.clustering.unwrap().output_cubes, 3);
    let three = cubes(&newest(&storage));
    assert_eq!(three.len(), 3);
    assert_eq!(run(&storage, request.clone()).commits.len(), 0);
    append(&storage, 6_000..6_010);
    run(&storage, request);
    let four = cubes(&newest(&storage));
    assert!(four.len() == 4 && three.keys().all(|cube| four.contains_key(cube)), "{four:?}");
    assert_eq!(ids(&newest(&storage)), (0..6_010).collect());
}

/// Files that were clustered by other columns are kept. Only a full run orders them again. The JVM implementation does
/// the same.
#[test]
fn other_columns_need_a_full_run() {
    let (_directory, storage) = table(&["a"]);
    append(&storage, 0..1_000);
    run(&storage, OptimizeRequest::default());
    cluster_by(&storage, &["b"]);
    let old = adds(&newest(&storage));
    assert_eq!(run(&storage, OptimizeRequest::default()).commits.len(), 0);
    append(&storage, 1_000..1_100);
    let done = run(&storage, OptimizeRequest::default());
    assert_eq!(
        (done.metrics.removed.count(), done.metrics.clustering.unwrap().input_other_files.files),
        (1, 2)
    );
    let both = adds(&newest(&storage));
    assert!(both.len() == 2 && both.contains(&old[0]));
    let done = run(&storage, full());
    assert_eq!((done.metrics.removed.count(), done.metrics.added.count()), (2, 1));
    let now = adds(&newest(&storage));
    assert_eq!(tag(&now[0], "ZCUBE_ZORDER_BY").as_deref(), Some(r#"["b"]"#));
    assert_eq!(commit_of(&newest(&storage))[0]["commitInfo"]["operationParameters"]["isFull"], true);
    assert_eq!(run(&storage, full()).commits.len(), 0);
    assert_eq!(ids(&newest(&storage)), (0..1_100).collect());
}

/// Without clustering columns, OPTIMIZE merges files, including files that were clustered.
#[test]
fn a_table_that_is_no_longer_clustered_is_compacted() {
    let (_directory, storage) = table(&["a"]);
    append(&storage, 0..1_000);
    let target = bytes(&adds(&newest(&storage))) / 4;
    cluster(&storage, target);
    append(&storage, 1_000..1_100);
    assert!(adds(&newest(&storage)).len() > 3);
    cluster_by(&storage, &[]);
    let done = run(&storage, OptimizeRequest::default());
    assert_eq!((done.metrics.clustering, done.metrics.added.count()), (None, 1));
    let files = adds(&newest(&storage));
    assert_eq!((files.len(), &files[0].clustering_provider, tag(&files[0], "ZCUBE_ID")), (1, &None, None));
    assert_eq!(ids(&newest(&storage)), (0..1_100).collect());
    let error = optimize(&newest(&storage), full(), &environment()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("no clustering columns"), "{error}");
}

/// "A clustering implementation must only recluster files that have the field `clusteringProvider` set to the name of
/// the same clustering implementation."
#[test]
fn files_of_other_providers_stay() {
    let (_directory, storage) = table(&["a"]);
    append(&storage, 0..100);
    let mut foreign = adds(&newest(&storage));
    foreign[0].clustering_provider = Some("other".to_owned());
    foreign[0].data_change = false;
    let mut transaction =
        deltalog::engine::commit::Transaction::new(&newest(&storage), Operation::new("X"), &environment())
            .unwrap();
    transaction.add_files(&foreign).unwrap();
    transaction.commit().unwrap();
    append(&storage, 100..200);
    for request in [OptimizeRequest::default(), full()] {
        run(&storage, request);
        let files = adds(&newest(&storage));
        let of_other = files.iter().filter(|add| add.clustering_provider.as_deref() == Some("other"));
        assert_eq!((files.len(), of_other.count()), (2, 1));
    }
    cluster_by(&storage, &[]);
    append(&storage, 200..300);
    run(&storage, OptimizeRequest::default());
    let files = adds(&newest(&storage));
    assert!(files.len() == 2 && files.iter().any(|add| add.path == foreign[0].path));
    assert_eq!(ids(&newest(&storage)), (0..300).collect());
}

/// A file that is rewritten only to remove its deleted rows stays in its cube, because the remaining rows are as close
/// together as before.
#[test]
fn files_without_deleted_rows_stay_in_their_cubes() {
    let (_directory, storage) = table(&["a"]);
    append(&storage, 0..2_000);
    let target = bytes(&adds(&newest(&storage))) / 4;
    cluster(&storage, target);
    let before = cubes(&newest(&storage));
    for request in [OptimizeRequest::default(), purge()] {
        let first = adds(&newest(&storage)).len();
        delete_rows(&storage, if request.purges { "id % 9 = 2" } else { "id % 9 = 1" });
        let done = run(&storage, request.clone());
        assert_eq!((done.metrics.removed.count(), done.metrics.added.count()), (first as u64, first as u64));
        let now = adds(&newest(&storage));
        assert!(now.iter().all(|add| add.deletion_vector.is_none()));
        assert!(cubes(&newest(&storage)).keys().eq(before.keys()));
        assert!(now.iter().all(|add| tag(add, "ZCUBE_ZORDER_BY").is_some()));
        assert_eq!(run(&storage, request).commits.len(), 0);
    }
    assert_eq!(run(&storage, OptimizeRequest::default()).commits.len(), 0);
    assert_eq!(ids(&newest(&storage)), (0..2_000).filter(|id| ![1, 2].contains(&(id % 9))).collect());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (_directory, storage) = table(&["a"]);
    append(&storage, 0..10);
    let version = newest(&storage).version();
    let mut with_predicate = OptimizeRequest::default();
    with_predicate.predicate = Some("a = 1".to_owned());
    let mut purge_all = full();
    purge_all.purges = true;
    let mut no_size = OptimizeRequest::default();
    no_size.cube_size = Some(0);
    let mut no_share = OptimizeRequest::default();
    no_share.most_deleted = f64::NAN;
    for (request, message) in [
        (with_predicate, "the table is clustered, so it has no partitions"),
        (purge_all, "OPTIMIZE FULL clusters rows, which a purge or a Z-order does not do"),
        (no_size, "cube_size is 0"),
        (no_share, "most_deleted is NaN, which is not between 0 and 1"),
    ] {
        let error = optimize(&newest(&storage), request, &environment()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(message) && error.hint().is_some(), "{error}");
    }
    assert_eq!(newest(&storage).version(), version);
}

#[test]
fn a_dry_run_writes_nothing() {
    let (directory, storage) = table(&["a"]);
    append(&storage, 0..100);
    append(&storage, 100..200);
    let files = || std::fs::read_dir(directory.path()).unwrap().count();
    let before = (newest(&storage).version(), files());
    let mut request = OptimizeRequest::default();
    request.dry_run = true;
    let planned = run(&storage, request).metrics;
    assert_eq!((planned.removed.count(), planned.added.count()), (2, 1));
    assert_eq!((newest(&storage).version(), files()), before);
}

/// The clustering columns are taken from the version on which the commit is based.
#[test]
fn a_change_of_the_clustering_columns_is_a_conflict() {
    let (directory, storage) = table(&["a"]);
    append(&storage, 0..100);
    delete_rows(&storage, "id = 1");
    let base = newest(&storage);
    let files = || std::fs::read_dir(directory.path()).unwrap().count();
    let before = files();
    let other = storage.clone();
    let environment = meanwhile(
        move || {
            delete_rows(&other, "id = 5");
            cluster_by(&other, &["b"]);
        },
        1,
    );
    let error = optimize(&base, OptimizeRequest::default(), &environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
    assert_eq!(files(), before + 1);
    assert_eq!(newest(&storage).version(), base.version() + 2);
}

/// One of the operations on a table.
#[derive(Debug, Clone)]
enum Step {
    Append(i64),
    Delete(BTreeSet<i64>),
    Cluster { is_full: bool, target: u64, cube_size: u64 },
    Purge,
    ClusterBy(Vec<&'static str>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let columns = prop::sample::subsequence(vec!["id", "a", "b"], 0..=3);
    let step = prop_oneof![
        4 => (1..60_i64).prop_map(Step::Append),
        2 => prop::collection::btree_set(0..150_i64, 1..30).prop_map(Step::Delete),
        5 => (any::<bool>(), 1_000..6_000_u64, 2_000..30_000_u64)
            .prop_map(|(is_full, target, cube_size)| Step::Cluster { is_full, target, cube_size }),
        1 => Just(Step::Purge),
        1 => columns.prop_map(Step::ClusterBy),
    ];
    prop::collection::vec(step, 1..10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever operations came before, clustering changes no row, row id or commit version, and a second run does
    /// nothing.
    #[test]
    fn clustering_changes_no_row(steps in steps()) {
        let (_directory, storage) = table(&["a", "b"]);
        let (mut next, mut columns) = (0, vec!["a", "b"]);
        for step in steps {
            match step {
                Step::Append(count) => {
                    append(&storage, next..next + count);
                    next += count;
                }
                Step::Delete(gone) => {
                    let gone: Vec<String> = gone.iter().map(i64::to_string).collect();
                    delete_rows(&storage, &format!("id in ({})", gone.join(", ")));
                }
                Step::ClusterBy(new) => {
                    cluster_by(&storage, &new);
                    columns = new;
                }
                Step::Purge => {
                    let before = rows(&newest(&storage));
                    run(&storage, purge());
                    prop_assert_eq!(rows(&newest(&storage)), before);
                }
                Step::Cluster { is_full, target, cube_size } => {
                    let mut request = with_target(target);
                    request.full = is_full && !columns.is_empty();
                    request.cube_size = Some(cube_size);
                    let base = newest(&storage);
                    let done = run(&storage, request.clone());
                    let new = newest(&storage);
                    prop_assert_eq!(rows(&new), rows(&base));
                    prop_assert_eq!(done.metrics.clustering.is_some(), !columns.is_empty());
                    if !columns.is_empty() {
                        prop_assert!(!cubes(&new).contains_key(&None));
                        if !request.full {
                            prop_assert_eq!(run(&storage, request).commits.len(), 0);
                        }
                    }
                }
            }
        }
    }

    /// The rows that other writers delete while OPTIMIZE runs are deleted in the new files, and no other rows.
    #[test]
    fn deletes_of_other_writers_are_applied_to_the_new_files(
        before in prop::collection::btree_set(0..160_i64, 0..20),
        others in prop::collection::vec(prop::collection::btree_set(0..160_i64, 1..40), 1..3),
        drawn in 1..8_usize,
        parts in 1..6_u64,
    ) {
        let (_directory, storage) = table(&["b", "a"]);
        append(&storage, 0..80);
        run(&storage, OptimizeRequest::default());
        append(&storage, 80..120);
        append(&storage, 120..160);
        let condition = |ids: &BTreeSet<i64>| {
            let texts: Vec<String> = ids.iter().map(i64::to_string).collect();
            format!("id in ({})", texts.join(", "))
        };
        if !before.is_empty() {
            delete_rows(&storage, &condition(&before));
        }
        let base = newest(&storage);
        let mut expected = rows(&base);
        let (other, deletes, done) = (storage.clone(), others.clone(), Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&done);
        let environment = meanwhile(
            move || {
                deletes.iter().for_each(|ids| delete_rows(&other, &condition(ids)));
                flag.store(true, Ordering::SeqCst);
            },
            drawn,
        );
        let mut request = with_target(bytes(&adds(&base)).div_ceil(parts));
        request.cube_size = Some(bytes(&adds(&base)).div_ceil(2));
        optimize(&base, request, &environment).unwrap();
        if done.load(Ordering::SeqCst) {
            others.iter().flatten().for_each(|id| {
                expected.remove(id);
            });
        }
        prop_assert_eq!(rows(&newest(&storage)), expected);
    }
}
