//! Memory stays bounded if selected rows are far apart.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use deltalog::{
    Environment, Operation, ParseMode, PendingWrite, PrimitiveType, SaveMode, Snapshot, Storage, StructField,
    StructType, TableScan, WriteRequest, parse_predicate,
};
use deltalog_testkit::measure;

/// Returns the text of a row, which has `width` bytes.
fn text(number: i32, width: usize) -> String {
    format!("{:0width$}", number % 7)
}

/// Returns a table with one file of one row group, which stores each distinct text once. `number` returns the number
/// of a row.
fn table(directory: &Path, rows: i32, width: usize, number: fn(i32) -> i32) -> Snapshot {
    let storage = Storage::open(directory.to_str().unwrap(), []).unwrap();
    let field = |name: &str, kind| StructField::new(name, kind, true);
    let schema =
        StructType::try_new(vec![field("n", PrimitiveType::Integer), field("text", PrimitiveType::String)]);
    let request = WriteRequest::new(schema.unwrap(), SaveMode::Append);
    let write = PendingWrite::begin(&storage, request, &Environment::system()).unwrap().unwrap();
    let mut writer = write.writer().unwrap();
    let step = 10_000_000 / width as i32;
    for first in (0..rows).step_by(step as usize) {
        let part = first..rows.min(first + step);
        let numbers: ArrayRef = Arc::new(part.clone().map(number).collect::<Int32Array>());
        let texts = StringArray::from_iter_values(part.map(|row| text(number(row), width)));
        let columns = vec![numbers, Arc::new(texts) as ArrayRef];
        writer.write(&RecordBatch::try_new(Arc::clone(write.arrow_schema()), columns).unwrap()).unwrap();
    }
    write.commit(writer.finish().unwrap(), Operation::new("WRITE")).unwrap();
    Snapshot::open(&storage, None).unwrap()
}

/// Returns the selected numbers, and how many bytes were allocated at once.
fn selected(snapshot: &Snapshot, width: usize, predicate: &str) -> (Vec<i32>, usize) {
    let predicate = parse_predicate(predicate, "UTC", ParseMode::Strict).unwrap();
    let scan = TableScan::new(snapshot).predicate(predicate).threads(1);
    measure(|| {
        let mut found = Vec::new();
        for batch in scan.read().unwrap() {
            let batch = batch.unwrap();
            let texts = batch.column(1).as_string::<i32>();
            for (number, found_text) in batch.column(0).as_primitive::<Int32Type>().values().iter().zip(texts)
            {
                assert_eq!(found_text.unwrap(), text(*number, width));
                found.push(*number);
            }
        }
        found
    })
}

/// Every second row at the beginning is selected, and one row near the end.
#[test]
fn a_long_gap_between_rows_is_not_decoded_at_once() {
    const ROWS: i32 = 1_000_000;
    let number = |row: i32| if (90_000..ROWS - 2).contains(&row) { 1 } else { row };
    let directory = tempfile::tempdir().unwrap();
    let snapshot = table(directory.path(), ROWS, 100, number);
    let (found, peak) = selected(&snapshot, 100, "n % 2 = 0");
    let expected: Vec<i32> = (0..ROWS).map(number).filter(|number| number % 2 == 0).collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), 45_001);
    // All values of the gap together take 90 MB.
    assert!(peak < 30 << 20, "{peak} bytes at once");
}

/// A batch has at most 8,192 rows, so all 3,000 selected rows fit in one batch. If the rows between them were decoded
/// at once, too, this would take 240 MB.
#[test]
fn wide_rows_between_selected_rows_are_not_decoded_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = table(directory.path(), 60_000, 4_000, |row| row);
    let (found, peak) = selected(&snapshot, 4_000, "n % 20 = 3");
    assert_eq!(found, (3..60_000).step_by(20).collect::<Vec<_>>());
    assert!(peak < 120 << 20, "{peak} bytes at once");
}
