//! An overwrite with a predicate copies the rows that it does not replace. Protocol: "Row Tracking".

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use deltalog::{
    Environment, ErrorKind, Operation, PendingWrite, PrimitiveType, ReplaceWhere, SaveMode, Snapshot,
    Storage, StructField, StructType, TableScan, WriteRequest,
};
use proptest::prelude::*;

use crate::common::{empty, write_commit};

fn write(storage: &Storage, predicate: Option<&str>, rows: &[(i64, i64)]) -> deltalog::Result<u64> {
    let schema = ["id", "class"].map(|name| StructField::new(name, PrimitiveType::Long, true));
    let mode = if predicate.is_some() { SaveMode::Overwrite } else { SaveMode::Append };
    let mut request = WriteRequest::new(StructType::try_new(schema.to_vec())?, mode);
    request.configuration.insert("delta.enableRowTracking".to_owned(), "true".to_owned());
    request.replace_where = predicate.map(ReplaceWhere::new);
    let pending = PendingWrite::begin(storage, request, &Environment::system())?.unwrap();
    let mut writer = pending.writer()?;
    let column = |value: fn(&(i64, i64)) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(value)))
    };
    let columns = [("id", column(|row| row.0)), ("class", column(|row| row.1))];
    writer.write(&RecordBatch::try_from_iter(columns).unwrap())?;
    let files = writer.finish()?;
    pending.commit_or_fail(files, Operation::new("WRITE")).map(|committed| committed.version)
}

/// Returns the class, the row id and the row commit version of each row.
fn tracked(storage: &Storage) -> BTreeMap<i64, [i64; 3]> {
    let newest = Snapshot::open(storage, None).unwrap();
    let mut found = BTreeMap::new();
    for batch in TableScan::new(&newest).row_ids().read().unwrap() {
        let batch = batch.unwrap();
        let column = |index: usize| batch.column(index).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let [class, row_id, version] = [1, 2, 3].map(|index| column(index).value(row));
            assert_eq!(found.insert(column(0).value(row), [class, row_id, version]), None);
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// "When a row is updated or copied, the stable Row ID for this row is preserved." "When a row is copied, the
    /// stable Row Commit Version for this row is preserved." "Writers must never commit duplicate Row IDs in the table
    /// in any version."
    #[test]
    fn rows_that_are_not_replaced_keep_their_ids(
        files in prop::collection::vec(prop::collection::vec(0..4_i64, 1..6), 1..4),
        replaced in prop::collection::vec((0..4_i64, 0..3_usize), 1..5),
    ) {
        let (_, storage) = empty();
        let mut next = 0;
        let mut numbered = |classes: &[i64]| {
            let first = next;
            next += classes.len() as i64;
            (first..).zip(classes.iter().copied()).collect::<Vec<_>>()
        };
        for classes in &files {
            write(&storage, None, &numbered(classes)).unwrap();
        }
        let mut greatest = -1;
        for (class, count) in replaced {
            let before = tracked(&storage);
            greatest = before.values().map(|[_, row_id, _]| *row_id).max().unwrap_or(-1).max(greatest);
            let new = numbered(&vec![class; count]);
            let version = write(&storage, Some(&format!("class = {class}")), &new).unwrap();
            let mut after = tracked(&storage);
            for (id, _) in new {
                let [_, row_id, written] = after.remove(&id).unwrap();
                prop_assert!(row_id > greatest && written == version as i64, "{} {}", row_id, written);
            }
            let kept: BTreeMap<i64, [i64; 3]> =
                before.into_iter().filter(|(_, [other, ..])| *other != class).collect();
            prop_assert_eq!(after, kept);
        }
    }
}

/// "Writer Requirements for Deletion Vectors": if another writer has set the property without the table feature,
/// vectors are not allowed.
#[test]
fn rows_are_copied_if_the_protocol_has_no_vectors() {
    let (_, storage) = empty();
    write(&storage, None, &[(0, 0), (1, 1), (2, 1)]).unwrap();
    let mut metadata = Snapshot::open(&storage, None).unwrap().metadata().clone();
    metadata.configuration.insert("delta.enableDeletionVectors".to_owned(), "true".to_owned());
    write_commit(&storage, 1, &[serde_json::json!({"metaData": metadata}).to_string()]);
    let before = tracked(&storage);
    write(&storage, Some("class = 1"), &[(3, 1)]).unwrap();
    let mut after = tracked(&storage);
    assert!(after.remove(&3).is_some());
    assert_eq!(after, BTreeMap::from([(0, before[&0])]));
}

/// The table has a column with the name under which a scan returns row ids. An overwrite that has to copy rows is
/// refused before it writes a row.
#[test]
fn a_column_with_the_name_of_row_ids_is_refused() {
    let (store, storage) = empty();
    let schema = StructType::try_new(vec![StructField::new("_ROW_ID", PrimitiveType::Long, true)]).unwrap();
    let request = |mode| {
        let mut request = WriteRequest::new(schema.clone(), mode);
        request.configuration.insert("delta.enableRowTracking".to_owned(), "true".to_owned());
        request
    };
    let environment = Environment::system();
    let created = PendingWrite::begin(&storage, request(SaveMode::Append), &environment).unwrap().unwrap();
    created.commit_or_fail(Vec::new(), Operation::new("WRITE")).unwrap();
    store.take_calls();
    let mut overwrite = request(SaveMode::Overwrite);
    overwrite.replace_where = Some(ReplaceWhere::new("_row_id = 1"));
    let error = PendingWrite::begin(&storage, overwrite, &environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("has a column '_row_id'"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("delta.enableDeletionVectors")), "{error}");
}
