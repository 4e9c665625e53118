//! Statements on rows that are large compared to the size of a batch. The results are the same as for small rows, but
//! only a few rows are processed at a time.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use deltalog::engine::dml::{Clause, ClauseAction, Merge, MergeSource, Request, delete, merge, update};
use deltalog::{
    ChangeBound, ChangeFeed, CheckLevel, ColumnPath, Operation, OptimizeRequest, PendingWrite,
    RecomputeRequest, SaveMode, Snapshot, Storage, StructType, TableScan, WriteRequest, check_files,
    optimize, recompute_statistics,
};
use tempfile::TempDir;

use crate::common::ids::environment;
use crate::common::newest;

/// The size of a batch in bytes.
const BYTES: usize = 2_000;

fn schema() -> StructType {
    let text = r#"{"type":"struct","fields":[
        {"name":"id","type":"long","nullable":true,"metadata":{}},
        {"name":"doc","type":"string","nullable":true,"metadata":{}}]}"#;
    StructType::from_json(text).unwrap()
}

/// Returns rows with these ids. Each has about 500 bytes, and some have the same content.
fn rows(ids: &[i64]) -> RecordBatch {
    let docs = ids.iter().map(|id| format!("{}", id % 5).repeat(400 + (*id as usize % 7) * 30));
    let columns: [(&str, ArrayRef, bool); 2] = [
        ("id", Arc::new(Int64Array::from(ids.to_vec())), true),
        ("doc", Arc::new(StringArray::from_iter_values(docs)), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Creates a table of two files. Its rows are processed in batches of about `bytes` bytes.
fn table(bytes: usize) -> (TempDir, Storage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap().with_batch_bytes(bytes);
    for ids in [0..60, 60..100] {
        let mut request = WriteRequest::new(schema(), SaveMode::Append);
        let on = |name: &str| (name.to_owned(), "true".to_owned());
        request.configuration =
            [on("delta.enableDeletionVectors"), on("delta.enableChangeDataFeed")].into_iter().collect();
        if ids.start > 0 {
            request.configuration.clear();
        }
        let write = PendingWrite::begin(&storage, request, &environment()).unwrap().unwrap();
        let mut writer = write.writer().unwrap();
        writer.write(&rows(&ids.collect::<Vec<_>>())).unwrap();
        let files = writer.finish().unwrap();
        write.commit(files, Operation::new("WRITE")).unwrap();
    }
    (directory, storage)
}

/// Returns the rows of batches, after checking that no batch is more than twice as large as it should be.
fn bounded(batches: impl Iterator<Item = deltalog::Result<RecordBatch>>, bytes: usize) -> Vec<(i64, String)> {
    let mut found = Vec::new();
    for batch in batches {
        let batch = batch.unwrap();
        let ids = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>();
        let docs = batch.column_by_name("doc").unwrap().as_string::<i32>();
        let size: usize = docs.iter().flatten().map(str::len).sum();
        assert!(docs.len() == 1 || size <= 2 * bytes, "{size} bytes in {} rows", docs.len());
        found.extend(ids.values().iter().copied().zip(docs.iter().map(|doc| doc.unwrap().to_owned())));
    }
    found.sort();
    found
}

fn read(snapshot: &Snapshot, bytes: usize) -> Vec<(i64, String)> {
    bounded(TableScan::new(snapshot).read().unwrap(), bytes)
}

/// Executes the statements one after another. Returns the rows after each statement, and all changes.
fn history(bytes: usize) -> Vec<Vec<(i64, String)>> {
    let (_directory, storage) = table(bytes);
    let request = || Request::new(&environment());
    let mut found = vec![read(&newest(&storage), bytes)];

    delete(&newest(&storage), Some("octet_length(doc) > 520 AND id % 2 = 0"), request()).unwrap();
    found.push(read(&newest(&storage), bytes));

    // Each row becomes larger than a batch, first through a column, then through a literal.
    let wide = [("doc".to_owned(), "concat(doc, doc, doc, doc, doc, doc)".to_owned())];
    update(&newest(&storage), &wide, Some("id % 3 = 0"), request()).unwrap();
    found.push(read(&newest(&storage), bytes));
    let literal = [("doc".to_owned(), format!("'{}'", "lit".repeat(300)))];
    update(&newest(&storage), &literal, Some("id % 3 = 1"), request()).unwrap();
    found.push(read(&newest(&storage), bytes));

    // One large row of the source matches many rows, some match none, and the source has several batches.
    let parts: Vec<RecordBatch> = [&[7_i64, 8][..], &[200, 201, 202, 203, 204, 205], &[206]].map(rows).into();
    let source = MergeSource::new(&rows(&[]).schema(), parts.into_iter().map(Ok)).unwrap();
    let clause = |by_source, condition: Option<&str>, action| Clause {
        by_source,
        condition: condition.map(str::to_owned),
        action,
    };
    let all = |assigned: &[(&str, &str)]| {
        assigned.iter().map(|(name, sql)| ((*name).to_owned(), (*sql).to_owned())).collect()
    };
    let merged = Merge {
        condition: "t.id % 10 + 200 = s.id AND octet_length(concat(s.doc, t.doc)) > 600".to_owned(),
        source_alias: "s".to_owned(),
        target_alias: "t".to_owned(),
        clauses: vec![
            clause(false, Some("s.doc < '1'"), ClauseAction::Delete),
            clause(false, None, ClauseAction::Update(all(&[("doc", "concat(s.doc, '+', t.doc)")]))),
            clause(false, Some("octet_length(s.doc) > 420"), ClauseAction::InsertAll(Vec::new())),
            clause(
                true,
                Some("t.doc LIKE 'lit%'"),
                ClauseAction::Update(all(&[("doc", "concat('no ', doc)")])),
            ),
        ],
    };
    merge(&newest(&storage), &merged, &source, request()).unwrap();
    found.push(read(&newest(&storage), bytes));

    let mut by_curve = OptimizeRequest::default();
    by_curve.z_order = ["doc", "id"].map(|name| ColumnPath::new([name])).into();
    optimize(&newest(&storage), by_curve, &environment()).unwrap();
    found.push(read(&newest(&storage), bytes));
    let mut all_files = RecomputeRequest::default();
    all_files.all_files = true;
    recompute_statistics(&newest(&storage), all_files, &environment()).unwrap();
    found.push(read(&newest(&storage), bytes));
    assert!(check_files(&newest(&storage), CheckLevel::Rows).unwrap().batch().unwrap().num_rows() == 0);

    let feed = ChangeFeed::new(&newest(&storage)).from(ChangeBound::Version(1));
    found.push(bounded(feed.plan().unwrap().read(None).unwrap(), bytes));
    found
}

#[test]
fn statements_on_wide_rows_do_what_they_do_on_narrow_ones() {
    assert_eq!(history(BYTES), history(1 << 30));
}
