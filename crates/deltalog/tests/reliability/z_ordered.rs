//! OPTIMIZE ZORDER BY orders rows along a curve, while other writers commit. Protocol: "Add File and Remove File",
//! "Deletion Vectors", "Row Tracking", "Per-file Statistics".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use deltalog::engine::protocol::Add;
use deltalog::engine::rewrite::listed_files;
use deltalog::{
    ColumnPath, Curve, ErrorKind, Operation, OptimizeRequest, Optimized, PendingWrite, SaveMode, Snapshot,
    Storage, StructType, TableChange, TableDefinition, TableScan, WriteRequest, alter_table, optimize,
    parse_predicate,
};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::common::ids::{delete_rows, environment, meanwhile};
use crate::common::newest;

/// A row with an id, three values by which rows are ordered, and a partition.
type Row = (i64, Option<i64>, Option<String>, i64, Option<String>);

const COLUMNS: [(&str, &str); 5] =
    [("id", "long"), ("a", "long"), ("b", "string"), ("c", "long"), ("part", "string")];

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
    let a = (mixed % 11 != 0).then_some(mixed % 97);
    let b = (mixed % 13 != 0).then(|| format!("text {}", mixed % 53));
    let part = (mixed % 3 != 0).then(|| format!("p{}", mixed % 3));
    (id, a, b, (mixed / 101) % 89, part)
}

fn batch(rows: &[Row]) -> RecordBatch {
    let texts =
        |of: fn(&Row) -> Option<&str>| -> ArrayRef { Arc::new(StringArray::from_iter(rows.iter().map(of))) };
    let numbers =
        |of: fn(&Row) -> Option<i64>| -> ArrayRef { Arc::new(Int64Array::from_iter(rows.iter().map(of))) };
    let columns = [
        numbers(|row| Some(row.0)),
        numbers(|row| row.1),
        texts(|row| row.2.as_deref()),
        numbers(|row| Some(row.3)),
        texts(|row| row.4.as_deref()),
    ];
    let named = COLUMNS.iter().zip(columns).map(|((name, _), column)| (*name, column, true));
    RecordBatch::try_from_iter_with_nullable(named).unwrap()
}

fn append(storage: &Storage, ids: impl IntoIterator<Item = i64>) {
    let request = WriteRequest::new(schema(), SaveMode::Append);
    let write = PendingWrite::begin(storage, request, &environment()).unwrap().unwrap();
    let mut writer = write.writer().unwrap();
    writer.write(&batch(&ids.into_iter().map(row).collect::<Vec<_>>())).unwrap();
    let files = writer.finish().unwrap();
    write.commit(files, Operation::new("WRITE")).unwrap();
}

/// Creates a table with deletion vectors and these properties. Appends `count` files of `rows` rows each.
fn table(count: i64, rows: i64, is_partitioned: bool, properties: &[(&str, &str)]) -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let mut definition = TableDefinition::new(schema());
    if is_partitioned {
        definition.partition_columns = vec!["part".to_owned()];
    }
    definition.configuration.insert("delta.enableDeletionVectors".to_owned(), "true".to_owned());
    definition.configuration.extend(properties.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    let mode = deltalog::CreationMode::ErrorIfExists;
    PendingWrite::define(&storage, &definition, mode, Vec::new(), &environment())
        .unwrap()
        .unwrap()
        .commit(Vec::new(), Operation::new("CREATE TABLE"))
        .unwrap();
    for number in 0..count {
        append(&storage, number * rows..(number + 1) * rows);
    }
    (directory, storage)
}

/// Returns all rows by their ids, and checks that no id occurs twice.
fn rows(snapshot: &Snapshot) -> BTreeMap<i64, Row> {
    let mut found = BTreeMap::new();
    for batch in TableScan::new(snapshot).read().unwrap() {
        let batch = batch.unwrap();
        let number = |at: usize| batch.column(at).as_primitive::<Int64Type>().clone();
        let text = |at: usize| batch.column(at).as_string::<i32>().clone();
        let (id, a, b, c, part) = (number(0), number(1), text(2), number(3), text(4));
        for at in 0..batch.num_rows() {
            let text = |values: &StringArray| values.iter().nth(at).unwrap().map(str::to_owned);
            let row = (id.value(at), a.iter().nth(at).unwrap(), text(&b), c.value(at), text(&part));
            assert!(found.insert(row.0, row).is_none(), "{} is there twice", id.value(at));
        }
    }
    found
}

fn rows_of(ids: impl IntoIterator<Item = i64>) -> BTreeMap<i64, Row> {
    ids.into_iter().map(|id| (id, row(id))).collect()
}

/// Returns the row id and the row commit version of each row by its id.
fn row_ids(snapshot: &Snapshot) -> BTreeMap<i64, (i64, i64)> {
    let mut found = BTreeMap::new();
    for batch in TableScan::new(snapshot).row_ids().read().unwrap() {
        let batch = batch.unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
        let (id, row, version) = (column("id"), column("_row_id"), column("_row_commit_version"));
        found.extend((0..batch.num_rows()).map(|at| (id.value(at), (row.value(at), version.value(at)))));
    }
    found
}

fn by(columns: &[&str]) -> OptimizeRequest {
    let mut request = OptimizeRequest::default();
    request.z_order = columns.iter().map(|name| ColumnPath::new(name.split('.'))).collect();
    request
}

/// Orders rows into files of about `size` bytes.
fn run(storage: &Storage, columns: &[&str], size: Option<u64>) -> Optimized {
    let mut request = by(columns);
    request.target_size = size;
    optimize(&newest(storage), request, &environment()).unwrap()
}

fn adds(snapshot: &Snapshot) -> Vec<Add> {
    listed_files(snapshot, None).unwrap().into_iter().map(|file| file.add).collect()
}

fn bytes(snapshot: &Snapshot) -> u64 {
    adds(snapshot).iter().map(|add| u64::try_from(add.size).unwrap()).sum()
}

fn stored(directory: &TempDir) -> BTreeSet<String> {
    let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| !name.starts_with('_')).collect()
}

#[test]
fn rows_stay_the_same_in_each_partition() {
    let (_directory, storage) = table(4, 100, true, &[("delta.enableRowTracking", "true")]);
    delete_rows(&storage, "id % 7 = 3");
    let base = newest(&storage);
    let ids = row_ids(&base);
    let done = run(&storage, &["a", "b", "C"], Some(3_000));
    let new = newest(&storage);
    assert_eq!((done.commits.len(), new.version()), (1, base.version() + 1));
    assert_eq!(rows(&new), rows_of((0..400).filter(|id| id % 7 != 3)));
    assert_eq!(row_ids(&new), ids);
    assert_eq!((done.metrics.removed.count(), done.metrics.partitions), (12, 3));
    let files = adds(&new);
    assert_eq!(files.len() as u64, done.metrics.added.count());
    assert!(files.len() > 3, "{}", files.len());
    assert!(files.iter().all(|file| !file.data_change && file.deletion_vector.is_none()));
}

/// One column is sorted: no file overlaps another one.
#[test]
fn a_single_column_is_sorted() {
    let (_directory, storage) = table(5, 200, false, &[]);
    let size = bytes(&newest(&storage)).div_ceil(8);
    run(&storage, &["id"], Some(size));
    let mut bounds: Vec<(i64, i64)> = adds(&newest(&storage))
        .iter()
        .map(|file| {
            let stats: serde_json::Value = serde_json::from_str(file.stats.as_deref().unwrap()).unwrap();
            (stats["minValues"]["id"].as_i64().unwrap(), stats["maxValues"]["id"].as_i64().unwrap())
        })
        .collect();
    bounds.sort_unstable();
    assert_eq!(bounds.len(), 8, "{bounds:?}");
    assert!(bounds.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{bounds:?}");
    assert_eq!(rows(&newest(&storage)), rows_of(0..1_000));
}

/// Figure 5 of the paper "Delta Lake: High-Performance ACID Table Storage over Cloud Object Stores" shows the share of
/// 100 files that a point query on one of four columns skips. In the paper it is 54 % on average, and at least 43 %.
#[test]
fn most_files_are_skipped_by_each_column() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let names = ["a", "b", "c", "d"];
    let fields: Vec<String> = names
        .iter()
        .map(|name| format!(r#"{{"name":"{name}","type":"long","nullable":true,"metadata":{{}}}}"#))
        .collect();
    let schema =
        StructType::from_json(&format!(r#"{{"type":"struct","fields":[{}]}}"#, fields.join(","))).unwrap();
    let write = PendingWrite::begin(&storage, WriteRequest::new(schema, SaveMode::Append), &environment());
    let write = write.unwrap().unwrap();
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64 % 1_000_000
    };
    let columns = names.map(|name| {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..40_000).map(|_| random())));
        (name, values, true)
    });
    let mut writer = write.writer().unwrap();
    writer.write(&RecordBatch::try_from_iter_with_nullable(columns).unwrap()).unwrap();
    write.commit(writer.finish().unwrap(), Operation::new("WRITE")).unwrap();
    for (curve, mean, worst) in [(Curve::Hilbert, 0.6, 0.5), (Curve::ZOrder, 0.5, 0.4)] {
        let mut request = by(&names);
        request.target_size = Some(bytes(&newest(&storage)).div_ceil(100));
        request.curve = curve;
        optimize(&newest(&storage), request, &environment()).unwrap();
        let snapshot = newest(&storage);
        let files = adds(&snapshot).len();
        assert!((99..=101).contains(&files), "{files}");
        let skipped = names.map(|name| {
            let points = (0..50).map(|point| {
                let predicate = format!("{name} = {}", point * 20_000 + 10_000);
                let predicate = parse_predicate(&predicate, "UTC", deltalog::ParseMode::Strict).unwrap();
                1.0 - listed_files(&snapshot, Some(&predicate)).unwrap().len() as f64 / files as f64
            });
            points.sum::<f64>() / 50.0
        });
        let average = skipped.iter().sum::<f64>() / 4.0;
        let least = skipped.iter().copied().fold(1.0, f64::min);
        assert!(average >= mean && least >= worst, "{curve:?}: {skipped:?}");
    }
}

/// The commit is described with the names of the JVM implementation.
#[test]
fn the_commit_names_the_columns() {
    let (_directory, storage) = table(2, 10, false, &[]);
    run(&storage, &["a", "b"], None);
    let path = format!("_delta_log/{:020}.json", newest(&storage).version());
    let text = String::from_utf8(storage.read(&path).unwrap().to_vec()).unwrap();
    let info: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let info = &info["commitInfo"];
    assert_eq!(info["operation"], "OPTIMIZE");
    assert_eq!(info["operationParameters"]["zOrderBy"], r#"["a","b"]"#);
    assert_eq!(info["operationMetrics"]["numRemovedFiles"], "2");
    assert!(!text.contains("\"dataChange\":true"), "{text}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let (directory, storage) = table(3, 50, false, &[]);
    let (base, before) = (newest(&storage), stored(&directory));
    let mut request = by(&["a", "c"]);
    (request.dry_run, request.target_size) = (true, Some(bytes(&base) / 2 - 1));
    let planned = optimize(&base, request, &environment()).unwrap().metrics;
    assert_eq!((planned.removed.count(), planned.added.count(), planned.is_z_order), (3, 3, true));
    assert_eq!((newest(&storage).version(), stored(&directory)), (base.version(), before));
}

/// Rows that other writers delete while files are written are deleted in the new files, wherever they are.
#[test]
fn deletes_of_other_writers_are_applied_to_the_new_files() {
    let (_directory, storage) = table(4, 50, false, &[("delta.enableRowTracking", "true")]);
    delete_rows(&storage, "id = 1 or id = 60");
    let base = newest(&storage);
    let other = storage.clone();
    let environment = meanwhile(
        move || {
            delete_rows(&other, "id % 10 = 4");
            append(&other, 1_000..1_003);
        },
        4,
    );
    let mut request = by(&["a", "b", "c"]);
    request.target_size = Some(bytes(&base).div_ceil(4));
    let done = optimize(&base, request, &environment).unwrap();
    assert_eq!((done.commits.len(), done.metrics.carried_rows, done.metrics.given_up), (1, 20, 0));
    let new = newest(&storage);
    assert_eq!(new.version(), base.version() + 3);
    let left = (0..200).filter(|id| ![1, 60].contains(id) && id % 10 != 4).chain(1_000..1_003);
    assert_eq!(rows(&new), rows_of(left));
    let vectors = adds(&new).into_iter().filter(|add| add.deletion_vector.is_some());
    assert!(vectors.map(|add| add.stats.unwrap()).all(|stats| stats.contains("\"tightBounds\":false")));
    let ids = row_ids(&base);
    assert!(
        row_ids(&new).iter().filter(|(id, _)| **id < 1_000).all(|(id, found)| ids.get(id) == Some(found))
    );
}

/// If other writers have deleted all rows of a new file, the file is not added to the table, and is deleted.
#[test]
fn a_file_without_rows_is_left_out() {
    let (directory, storage) = table(2, 100, false, &[]);
    let base = newest(&storage);
    let before = stored(&directory);
    let other = storage.clone();
    // Some rows of each file remain, so both files stay, with deletion vectors.
    let environment = meanwhile(move || delete_rows(&other, "id >= 20 and id < 180"), 4);
    let mut request = by(&["id"]);
    request.target_size = Some(bytes(&base).div_ceil(20));
    let done = optimize(&base, request, &environment).unwrap();
    assert_eq!((done.metrics.carried_rows, done.metrics.given_up), (160, 0));
    let new = newest(&storage);
    assert_eq!(rows(&new), rows_of((0..20).chain(180..200)));
    let live = adds(&new);
    assert!(live.len() <= 6 && live.len() as u64 == done.metrics.added.count(), "{}", live.len());
    let paths: BTreeSet<String> = live.iter().map(|add| add.path.clone()).collect();
    let parquet = |name: &&String| name.ends_with(".parquet") && !before.contains(*name);
    let now = stored(&directory);
    assert_eq!(now.iter().filter(parquet).cloned().collect::<BTreeSet<_>>(), paths);
}

#[test]
fn files_that_another_writer_has_replaced_are_not_committed() {
    let (directory, storage) = table(3, 20, false, &[]);
    let base = newest(&storage);
    let other = storage.clone();
    let environment = meanwhile(move || delete_rows(&other, "id >= 20 and id < 40"), 1);
    let done = optimize(&base, by(&["a"]), &environment).unwrap();
    assert_eq!((done.commits.len(), done.metrics.given_up, done.metrics.removed.count()), (0, 1, 0));
    assert_eq!(rows(&newest(&storage)), rows_of((0..20).chain(40..60)));
    assert_eq!(stored(&directory).len(), 3);
}

#[test]
fn a_change_of_the_metadata_is_a_conflict_that_leaves_nothing() {
    let (directory, storage) = table(3, 20, false, &[]);
    let (base, before) = (newest(&storage), stored(&directory));
    let other = storage.clone();
    let change = TableChange::SetProperties([("delta.enableDeletionVectors".into(), "false".into())].into());
    let environment = meanwhile(
        move || {
            // Deletes of other writers can only be carried over if the table still allows deletion vectors.
            delete_rows(&other, "id = 5");
            alter_table(&newest(&other), &change, Default::default(), &crate::common::ids::environment())
                .unwrap();
        },
        1,
    );
    let error = optimize(&base, by(&["a"]), &environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
    assert_eq!(stored(&directory).len(), before.len() + 1);
    assert_eq!(rows(&newest(&storage)).len(), 59);
}

#[test]
fn columns_by_which_files_cannot_be_skipped_are_refused() {
    let properties = [("delta.dataSkippingStatsColumns", "id,a,c")];
    let (directory, storage) = table(2, 10, true, &properties);
    let before = stored(&directory);
    let many: Vec<String> = (0..33).map(|number| format!("c{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (columns, message, hint) in [
        (
            &["gone"][..],
            "the table cannot be ordered by 'gone': it has no such column",
            "the columns are id, a, b",
        ),
        (&["a", "A"], "the table is ordered by 'A' twice", "name each column once"),
        (&["a", "PART"], "by 'PART', which is a partition column", "differ within a partition"),
        (&["b"], "by the column 'b', which has no statistics", "delta.dataSkippingStatsColumns"),
        (&["a.x"], "cannot be ordered by 'a.x'", "the columns are"),
        (&many, "at most 32 columns, not 33", "filters use most"),
    ] {
        let error = optimize(&newest(&storage), by(columns), &environment()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
        assert!(error.table().is_some(), "{error}");
    }
    assert_eq!(stored(&directory), before);
}

/// "Clustered Table": OPTIMIZE ZORDER BY is refused for a clustered table, whose clustering columns determine the
/// order of rows.
#[test]
fn a_clustered_table_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let mut definition = TableDefinition::new(schema());
    definition.clustering_columns = Some(vec![ColumnPath::new(["a"])]);
    let mode = deltalog::CreationMode::ErrorIfExists;
    PendingWrite::define(&storage, &definition, mode, Vec::new(), &environment())
        .unwrap()
        .unwrap()
        .commit(Vec::new(), Operation::new("CREATE TABLE"))
        .unwrap();
    let error = optimize(&newest(&storage), by(&["c"]), &environment()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("the table is clustered (by a)"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// No matter which rows other writers delete before and during an OPTIMIZE, exactly the other rows remain, with
    /// their ids.
    #[test]
    fn no_row_is_lost_or_doubled(
        files in 1..4_i64,
        before in prop::collection::btree_set(0..120_i64, 0..20),
        meanwhile_deleted in prop::collection::vec(prop::collection::btree_set(0..120_i64, 1..40), 1..3),
        columns in prop::sample::subsequence(vec!["id", "a", "b", "c"], 1..=4),
        new_files in 1..6_u64,
        is_partitioned in any::<bool>(),
        drawn in 1..8_usize,
    ) {
        let (_directory, storage) = table(files, 40, is_partitioned, &[("delta.enableRowTracking", "true")]);
        let condition = |ids: &BTreeSet<i64>| {
            let texts: Vec<String> = ids.iter().map(i64::to_string).collect();
            format!("id in ({})", texts.join(", "))
        };
        if !before.is_empty() {
            delete_rows(&storage, &condition(&before));
        }
        let base = newest(&storage);
        let (before_rows, tracked) = (rows(&base), row_ids(&base));
        let (other, deletes) = (storage.clone(), meanwhile_deleted.clone());
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let flag = Arc::clone(&done);
        let environment = meanwhile(
            move || {
                deletes.iter().for_each(|ids| delete_rows(&other, &condition(ids)));
                flag.store(true, std::sync::atomic::Ordering::SeqCst);
            },
            drawn,
        );
        let mut request = by(&columns);
        request.target_size = Some(bytes(&base).div_ceil(new_files).max(1));
        optimize(&base, request, &environment).unwrap();
        let gone: BTreeSet<i64> = match done.load(std::sync::atomic::Ordering::SeqCst) {
            true => meanwhile_deleted.into_iter().flatten().collect(),
            false => BTreeSet::new(),
        };
        let expected: BTreeMap<i64, Row> =
            before_rows.into_iter().filter(|(id, _)| !gone.contains(id)).collect();
        let new = newest(&storage);
        prop_assert_eq!(rows(&new), expected);
        let tracked: BTreeMap<i64, (i64, i64)> = tracked.into_iter().filter(|(id, _)| !gone.contains(id)).collect();
        prop_assert_eq!(row_ids(&new), tracked);
    }
}
