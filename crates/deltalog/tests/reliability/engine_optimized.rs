//! An OPTIMIZE whose files an engine writes. The reports of the engine's tasks are compared with the plan, and the
//! files are committed like files that this process wrote. Protocol: "Add File and Remove File", "Deletion Vectors".

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use deltalog::engine::dml::{Request, delete};
use deltalog::engine::optimize::{BinOutput, OptimizePlan, OrderedByEngine, plan_optimize};
use deltalog::engine::protocol::Add;
use deltalog::engine::rewrite::{ListedFile, listed_files};
use deltalog::engine::scan::RowScan;
use deltalog::engine::write::{Reported, ReportedBin};
use deltalog::{
    Curve, Error, ErrorKind, Operation, OptimizeRequest, PendingWrite, SaveMode, Snapshot, Storage,
    WriteRequest,
};
use tempfile::TempDir;

use crate::common::ids::{ROWS, delete_rows, environment, files, ids, meanwhile, table};
use crate::common::{newest, schema};

fn write(storage: &Storage) -> PendingWrite {
    let request = WriteRequest::new(schema(), SaveMode::Append);
    PendingWrite::begin(storage, request, &environment()).unwrap().unwrap()
}

/// Creates a table with four files of ten rows each, with rows 3 and 12 deleted.
fn four_files() -> (TempDir, Storage) {
    let (directory, storage) = table(&[]);
    for file in 1..4 {
        let write = write(&storage);
        let files = files(&write, file * ROWS..(file + 1) * ROWS);
        write.commit(files, Operation::new("WRITE")).unwrap();
    }
    delete_rows(&storage, "id = 3 or id = 12");
    (directory, storage)
}

/// Plans two bins of two files each.
fn two_bins(base: &Snapshot) -> OptimizePlan {
    let mut request = OptimizeRequest::default();
    let sizes = listed_files(base, None).unwrap().into_iter().map(|file| file.add.size).max().unwrap();
    request.target_size = Some(u64::try_from(sizes * 5 / 2).unwrap());
    let plan = plan_optimize(base, request, &environment()).unwrap();
    assert_eq!((plan.batches(), plan.bins(), plan.is_for_engines()), (1, 2, true));
    assert!(plan.bytes() > 0);
    plan
}

/// Returns the rows of a file that are not deleted, in their order.
fn rows_of(base: &Snapshot, file: &ListedFile) -> Vec<i64> {
    let batches = RowScan::of(base).unwrap().read(std::iter::once(Ok(file.file.clone())));
    let values = |batch: arrow::array::RecordBatch| {
        let column = cast(batch.column(0), &DataType::Int64).unwrap();
        column.as_primitive::<Int64Type>().values().to_vec()
    };
    batches.flat_map(|batch| values(batch.unwrap())).collect()
}

/// Writes the files of the plan, as the tasks of an engine would.
fn written(base: &Snapshot, plan: &OptimizePlan, batch: usize) -> Reported {
    let mut reported = Reported::default();
    let (listed, mut first) = (plan.files(batch).collect::<Vec<_>>(), 0);
    for (number, output) in plan.outputs(batch).into_iter().enumerate() {
        let BinOutput { files: count, new_files, is_ordered, rows: estimated, .. } = output;
        assert_eq!((output.directory, output.partition_values), (String::new(), Vec::new()));
        assert_eq!((new_files, is_ordered), (1, false));
        let mut bin = ReportedBin { bin: u32::try_from(number).unwrap(), ..ReportedBin::default() };
        let mut rows = Vec::new();
        for (index, file) in listed.iter().enumerate().skip(first).take(count) {
            let of_file = rows_of(base, file);
            if !of_file.is_empty() {
                bin.rows.push((u32::try_from(index).unwrap(), of_file.len() as u64));
            }
            rows.extend(of_file);
        }
        first += count;
        assert!(estimated.unwrap() >= rows.len() as u64);
        if !rows.is_empty() {
            bin.file = Some(reported.files.len());
            reported.files.extend(files(&write(base.storage()), rows));
        }
        reported.bins.push(bin);
    }
    reported
}

/// Returns the paths of the table's data files.
fn stored(directory: &TempDir) -> Vec<String> {
    let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".parquet")).collect()
}

#[test]
fn what_the_tasks_report_is_committed() {
    let (_directory, storage) = four_files();
    let base = newest(&storage);
    let mut plan = two_bins(&base);
    let reported = written(&base, &plan, 0);
    assert_eq!(plan.commit_reported(0, reported, None).unwrap(), Some(base.version() + 1));
    let done = plan.finish();
    let metrics = &done.metrics;
    assert_eq!((done.commits.len(), metrics.added.count(), metrics.removed.count()), (1, 2, 4));
    assert_eq!((metrics.removed_vectors, metrics.removed_vector_rows, metrics.bins), (2, 2, 2));
    let new = newest(&storage);
    assert_eq!((ids(&new), new.totals().unwrap().files), (ids(&base), 2));
    for file in listed_files(&new, None).unwrap() {
        assert!(!file.add.data_change && file.add.deletion_vector.is_none());
    }
    assert!(new.verify().unwrap().is_ok());
}

/// Each batch is committed separately, and takes into account what other writers have committed since the plan was
/// made. If a batch fails, earlier batches stay committed.
#[test]
fn batches_are_commits_of_their_own() {
    let (_directory, storage) = four_files();
    let base = newest(&storage);
    let sizes = listed_files(&base, None).unwrap().into_iter().map(|file| file.add.size).max().unwrap();
    let mut request = OptimizeRequest::default();
    request.target_size = Some(u64::try_from(sizes * 5 / 2).unwrap());
    request.bytes_of_a_commit = 1;
    let mut plan = plan_optimize(&base, request.clone(), &environment()).unwrap();
    assert_eq!((plan.batches(), plan.bins()), (2, 2));
    let first = written(&base, &plan, 0);
    delete_rows(&storage, "id = 0 or id = 39");
    plan.commit_reported(0, first, None).unwrap().unwrap();
    let reported = Reported { bins: Vec::new(), ..written(&base, &plan, 1) };
    plan.commit_reported(1, reported, None).unwrap_err();
    let expected: Vec<i64> = (1..39).filter(|id| ![3, 12].contains(id)).collect();
    assert_eq!((ids(&newest(&storage)), newest(&storage).totals().unwrap().files), (expected.clone(), 3));
    let second = written(&base, &plan, 1);
    plan.commit_reported(1, second, None).unwrap().unwrap();
    let done = plan.finish();
    assert_eq!((done.commits.len(), done.metrics.carried_rows, done.metrics.added.count()), (2, 2, 2));
    assert_eq!((ids(&newest(&storage)), newest(&storage).totals().unwrap().files), (expected, 2));
}

/// Rows that other writers delete between the read and the commit are deleted in the new files.
#[test]
fn deletes_of_other_writers_are_applied_to_the_new_files() {
    let (_directory, storage) = four_files();
    let base = newest(&storage);
    let mut plan = two_bins(&base);
    let reported = written(&base, &plan, 0);
    delete_rows(&storage, "id = 0 or id = 4 or id = 13 or id = 39");
    plan.commit_reported(0, reported, None).unwrap().unwrap();
    assert_eq!(plan.finish().metrics.carried_rows, 4);
    let expected: Vec<i64> = (0..40).filter(|id| ![0, 3, 4, 12, 13, 39].contains(id)).collect();
    assert_eq!(ids(&newest(&storage)), expected);
}

/// A statement that began before the OPTIMIZE was committed finds its rows in the new files.
#[test]
fn statements_that_are_overtaken_follow_the_rows() {
    let (_directory, storage) = four_files();
    let base = newest(&storage);
    let environment = meanwhile(
        {
            let (base, storage) = (base.clone(), storage.clone());
            move || {
                let mut plan = two_bins(&base);
                let reported = written(&newest(&storage), &plan, 0);
                plan.commit_reported(0, reported, None).unwrap().unwrap();
            }
        },
        0,
    );
    delete(&base, Some("id = 1 or id = 15 or id = 39"), Request::new(&environment)).unwrap();
    let new = newest(&storage);
    let expected: Vec<i64> = (0..40).filter(|id| ![1, 3, 12, 15, 39].contains(id)).collect();
    assert_eq!((ids(&new), new.totals().unwrap().files), (expected, 2));
    assert_eq!(new.version(), base.version() + 2);
}

/// If another writer has removed files of a bin, the bin is not committed, and its new file is deleted.
#[test]
fn a_bin_whose_files_were_removed_is_not_committed() {
    let (directory, storage) = four_files();
    let base = newest(&storage);
    let mut plan = two_bins(&base);
    let reported = written(&base, &plan, 0);
    let (before, first) = (stored(&directory).len(), rows_of(&base, plan.files(0).next().unwrap()));
    delete_rows(&storage, &format!("id >= {} and id < {}", first[0], first[0] / ROWS * ROWS + ROWS));
    plan.commit_reported(0, reported, None).unwrap().unwrap();
    let metrics = plan.finish().metrics;
    assert_eq!((metrics.given_up, metrics.added.count()), (1, 1));
    assert_eq!(stored(&directory).len(), before - 1);
    let expected: Vec<i64> = ids(&base).into_iter().filter(|id| !first.contains(id)).collect();
    assert_eq!(ids(&newest(&storage)), expected);
}

/// A report that differs from the plan in any way is refused before the commit, and the new files are deleted.
#[test]
fn reports_that_do_not_fit_the_plan_are_refused() {
    type Change = fn(&mut Reported);
    let changes: [(&str, Change); 11] = [
        ("no task has written the file 1", |reported| drop((reported.bins.pop(), reported.files.pop()))),
        ("two tasks have written the file 0", |reported| reported.bins[1].bin = 0),
        ("file number 2, which is not planned", |reported| reported.bins[1].bin = 2),
        ("read 19 rows, but its new file has 20", |reported| {
            let row = reported.bins.iter_mut().flat_map(|bin| &mut bin.rows).find(|(_, rows)| *rows == 10);
            row.unwrap().1 -= 1;
        }),
        ("rows of a file that has 10 by its statistics", |reported| {
            let rows = &mut reported.bins[0].rows;
            (rows[0].1, rows[1].1) = (rows[0].1 + 1, rows[1].1 - 1);
        }),
        ("read 10 rows, but its new file has 20", |reported| {
            reported.bins[0].rows.remove(0);
        }),
        ("which is not in that bin or is out of order", |reported| reported.bins[0].rows.reverse()),
        ("which is not in that bin or is out of order", |reported| reported.bins[0].rows.push((2, 10))),
        ("but its new file has", |reported| reported.files.swap(0, 1)),
        ("belongs to no bin", |reported| {
            let again = reported.files[0].clone();
            reported.files.push(again);
        }),
        ("belongs to no bin", |reported| reported.bins[0].file = None),
    ];
    for (expected, change) in changes {
        let (directory, storage) = table(&[]);
        // The bins have different numbers of rows.
        for ids in [ROWS..2 * ROWS, 20..30, 30..35] {
            let write = write(&storage);
            let files = files(&write, ids);
            write.commit(files, Operation::new("WRITE")).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let base = newest(&storage);
        let before = stored(&directory);
        let mut plan = two_bins(&base);
        let mut reported = written(&base, &plan, 0);
        change(&mut reported);
        let paths: Vec<Add> = reported.files.clone();
        let error: Error = plan.commit_reported(0, reported, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert_eq!(newest(&storage).version(), base.version());
        let mut left = stored(&directory);
        left.retain(|name| !before.contains(name) && paths.iter().any(|add| &add.path == name));
        assert_eq!(left, Vec::<String>::new(), "{expected}");
    }
}

/// Plans to order the rows by `id`. All files belong to one bin, whose rows are written to three files.
fn ordered(base: &Snapshot) -> OptimizePlan {
    let mut request = OptimizeRequest::default();
    let bytes: i64 = listed_files(base, None).unwrap().into_iter().map(|file| file.add.size).sum();
    request.target_size = Some(u64::try_from(bytes / 3 + 1).unwrap());
    (request.curve, request.z_order) = (Curve::ZOrder, vec![deltalog::ColumnPath::parse("ID")]);
    let plan = plan_optimize(base, request, &environment()).unwrap();
    assert_eq!((plan.batches(), plan.bins(), plan.is_for_engines()), (1, 1, true));
    let ordering = plan.ordering().unwrap();
    assert_eq!(
        (ordering.columns[0].to_string(), ordering.curve, ordering.bits),
        ("id".into(), Curve::ZOrder, 16)
    );
    plan
}

/// Writes files like an engine that sorts rows in descending order.
fn sorted(base: &Snapshot, plan: &OptimizePlan) -> Reported {
    let [output] = plan.outputs(0).try_into().unwrap();
    assert!(output.is_ordered && output.new_files == plan.tasks() && output.rows == Some(40), "{output:?}");
    let mut rows: Vec<(i64, u32)> = Vec::new();
    for (number, file) in plan.files(0).enumerate() {
        rows.extend(rows_of(base, file).into_iter().map(|id| (id, u32::try_from(number).unwrap())));
    }
    rows.sort_by(|a, b| b.cmp(a));
    let mut reported = Reported::default();
    let of_file = rows.len().div_ceil(output.new_files);
    for (number, rows) in rows.chunks(of_file).enumerate() {
        let mut bin = ReportedBin { bin: u32::try_from(number).unwrap(), ..ReportedBin::default() };
        let mut counts = std::collections::BTreeMap::new();
        rows.iter().for_each(|(_, file)| *counts.entry(*file).or_insert(0) += 1);
        bin.rows = counts.into_iter().collect();
        bin.file = Some(reported.files.len());
        reported
            .files
            .extend(files(&write(base.storage()), rows.iter().map(|(id, _)| *id).collect::<Vec<_>>()));
        reported.bins.push(bin);
    }
    reported
}

#[test]
fn tasks_may_order_rows() {
    let (_directory, storage) = four_files();
    let base = newest(&storage);
    let mut plan = ordered(&base);
    let reported = sorted(&base, &plan);
    let counts: Vec<u64> = plan.files(0).map(|file| rows_of(&base, file).len() as u64).collect();
    let mut locate = |_: &[(u32, u64)]| Ok(None);
    let told = OrderedByEngine { counted: &counts, locate: &mut locate };
    assert_eq!(plan.commit_reported(0, reported, Some(told)).unwrap(), Some(base.version() + 1));
    let metrics = plan.finish().metrics;
    assert_eq!((metrics.added.count(), metrics.removed.count(), metrics.removed_vectors), (3, 4, 2));
    let new = newest(&storage);
    assert_eq!((ids(&new), new.totals().unwrap().files), (ids(&base), 3));
    assert!(new.verify().unwrap().is_ok());
    // A statement that began before the commit cannot find its rows, because the engine has changed their order.
    let error = delete(&base, Some("id = 1"), Request::new(&environment())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict, "{error}");
}

/// Returns the new positions of rows that the tasks of [`sorted`] have written, given their old files and positions.
fn find(base: &Snapshot, plan: &OptimizePlan, rows: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let mut written: Vec<(i64, u32)> = Vec::new();
    for (number, file) in plan.files(0).enumerate() {
        written.extend(rows_of(base, file).into_iter().map(|id| (id, u32::try_from(number).unwrap())));
    }
    written.sort_by(|a, b| b.cmp(a));
    let of_file = written.len().div_ceil(plan.tasks());
    let place = |(file, row): &(u32, u64)| {
        // Rows have consecutive ids in each file, and some of the first rows may be deleted.
        let id = rows_of(base, plan.files(0).nth(*file as usize).unwrap())[0] / ROWS * ROWS + *row as i64;
        let at = written.iter().position(|(other, _)| *other == id).unwrap();
        (u32::try_from(at / of_file).unwrap(), (at % of_file) as u64)
    };
    rows.iter().map(place).collect()
}

/// Rows that other writers delete between the read and the commit are deleted at the new positions that the engine
/// reports.
#[test]
fn an_engine_finds_rows_that_other_writers_delete() {
    let (_directory, storage) = four_files();
    let base = newest(&storage);
    let mut plan = ordered(&base);
    let other = ordered(&base);
    let counts: Vec<u64> = plan.files(0).map(|file| rows_of(&base, file).len() as u64).collect();
    let reported = sorted(&base, &plan);
    delete_rows(&storage, "id = 0 or id = 17 or id = 18 or id = 39");
    let mut asked = 0;
    let mut locate = |rows: &[(u32, u64)]| {
        asked += rows.len();
        Ok(Some(find(&base, &other, rows)))
    };
    let told = OrderedByEngine { counted: &counts, locate: &mut locate };
    plan.commit_reported(0, reported, Some(told)).unwrap().unwrap();
    let metrics = plan.finish().metrics;
    assert_eq!((metrics.carried_rows, metrics.given_up, asked), (4, 0, 4));
    let expected: Vec<i64> = (0..40).filter(|id| ![0, 3, 12, 17, 18, 39].contains(id)).collect();
    assert_eq!(ids(&newest(&storage)), expected);
}

/// If the engine does not know the new positions of deleted rows, or cannot be asked, the bin is not committed, and
/// the new files are deleted.
#[test]
fn ordered_rows_that_cannot_be_found_give_their_bin_up() {
    for is_asked in [false, true] {
        let (directory, storage) = four_files();
        let base = newest(&storage);
        let mut plan = ordered(&base);
        let before = stored(&directory).len();
        let counts: Vec<u64> = plan.files(0).map(|file| rows_of(&base, file).len() as u64).collect();
        let reported = sorted(&base, &plan);
        delete_rows(&storage, "id = 17");
        let mut locate = |_: &[(u32, u64)]| Ok(None);
        let told = is_asked.then_some(OrderedByEngine { counted: &counts, locate: &mut locate });
        assert_eq!(plan.commit_reported(0, reported, told).unwrap(), None);
        assert_eq!(plan.finish().metrics.given_up, 1);
        let expected: Vec<i64> = (0..40).filter(|id| ![3, 12, 17].contains(id)).collect();
        assert_eq!((ids(&newest(&storage)), stored(&directory).len()), (expected, before));
    }
}

/// Nothing is committed if the engine reports impossible positions of rows, or fails.
#[test]
fn wrong_places_of_rows_are_refused() {
    type Answer = fn(Vec<(u32, u64)>) -> deltalog::Result<Option<Vec<(u32, u64)>>>;
    let answers: [Answer; 5] = [
        |mut places| Ok(places.pop().map(|_| places)),
        |places| Ok(Some(vec![places[0]; places.len()])),
        |places| Ok(Some(places.into_iter().map(|(task, _)| (task, 99)).collect())),
        |places| Ok(Some(places.into_iter().map(|(_, row)| (99, row)).collect())),
        |_| Err(Error::new(ErrorKind::CorruptData, "the engine has failed")),
    ];
    for answer in answers {
        let (directory, storage) = four_files();
        let base = newest(&storage);
        let (mut plan, other) = (ordered(&base), ordered(&base));
        let before = stored(&directory).len();
        let counts: Vec<u64> = plan.files(0).map(|file| rows_of(&base, file).len() as u64).collect();
        let reported = sorted(&base, &plan);
        delete_rows(&storage, "id = 17 or id = 31");
        let version = newest(&storage).version();
        let mut locate = |rows: &[(u32, u64)]| answer(find(&base, &other, rows));
        let told = OrderedByEngine { counted: &counts, locate: &mut locate };
        let error = plan.commit_reported(0, reported, Some(told)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
        assert_eq!((newest(&storage).version(), stored(&directory).len()), (version, before));
    }
}

/// A report with too few or too many rows of an old file is refused, no matter in which of the new files they are.
#[test]
fn reports_of_ordered_rows_that_do_not_fit_are_refused() {
    type Change = fn(&mut Reported);
    let changes: [(&str, Change); 4] = [
        ("no task has written the file 2", |reported| drop((reported.bins.pop(), reported.files.pop()))),
        ("but its new file has", |reported| reported.bins[1].rows[0].1 += 1),
        ("by its statistics in the log", |reported| {
            let rows = &mut reported.bins[1].rows;
            (rows[0].1, rows[1].1) = (rows[0].1 + 1, rows[1].1 - 1);
        }),
        ("which is not in that bin or is out of order", |reported| reported.bins[1].rows[0].0 = 4),
    ];
    for (expected, change) in changes {
        let (directory, storage) = four_files();
        let base = newest(&storage);
        let before = stored(&directory).len();
        let mut plan = ordered(&base);
        let mut reported = sorted(&base, &plan);
        assert!(reported.bins[1].rows.len() > 1);
        let all = reported.files.len();
        change(&mut reported);
        let left = all - reported.files.len();
        let error: Error = plan.commit_reported(0, reported, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert_eq!((newest(&storage).version(), stored(&directory).len()), (base.version(), before + left));
    }
}

/// The engine counts rows before it shuffles them. Without statistics in the log, only these counts reveal lost or
/// doubled rows.
#[test]
fn shuffled_rows_are_as_many_as_were_counted() {
    let (_directory, storage) = four_files();
    let base = newest(&storage);
    let mut plan = ordered(&base);
    let counts: Vec<u64> = plan.files(0).map(|file| rows_of(&base, file).len() as u64).collect();
    let mut locate = |_: &[(u32, u64)]| Ok(None);
    for (wrong, text) in [
        (vec![9; 4], "tasks have written 10 rows of a file, but read 9"),
        (counts[1..].to_vec(), "were "),
        (Vec::new(), "were "),
    ] {
        let told = OrderedByEngine { counted: &wrong, locate: &mut locate };
        let error = plan.commit_reported(0, sorted(&base, &plan), Some(told)).unwrap_err();
        assert!(error.kind() == ErrorKind::CorruptData && error.to_string().contains(text), "{error}");
    }
    let reported = sorted(&base, &plan);
    let told = OrderedByEngine { counted: &counts, locate: &mut locate };
    plan.commit_reported(0, reported, Some(told)).unwrap().unwrap();
    assert_eq!(ids(&newest(&storage)), ids(&base));
}

#[test]
fn a_dry_run_is_not_for_engines() {
    let (_directory, storage) = four_files();
    let mut request = OptimizeRequest::default();
    request.dry_run = true;
    let mut plan = plan_optimize(&newest(&storage), request, &environment()).unwrap();
    assert!(!plan.is_for_engines());
    let error = plan.commit_reported(0, Reported::default(), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}
