//! Memory stays bounded if separate rows and then a row after a long gap are selected.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use deltalog::{
    Environment, Operation, ParseMode, PendingWrite, PrimitiveType, SaveMode, Snapshot, Storage, StructField,
    StructType, TableScan, WriteRequest, parse_predicate,
};
use deltalog_testkit::measure;

const ROWS: i32 = 1_000_000;

/// Returns the number of a row. The rows with even numbers are selected: every second row at the beginning, and one row
/// near the end.
fn number(row: i32) -> i32 {
    if (90_000..ROWS - 2).contains(&row) { 1 } else { row }
}

/// The file has one row group, whose strings are stored once.
#[test]
fn a_long_gap_between_rows_is_not_decoded_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let field = |name: &str, kind| StructField::new(name, kind, true);
    let schema =
        StructType::try_new(vec![field("n", PrimitiveType::Integer), field("text", PrimitiveType::String)]);
    let request = WriteRequest::new(schema.unwrap(), SaveMode::Append);
    let write = PendingWrite::begin(&storage, request, &Environment::system()).unwrap().unwrap();
    let mut writer = write.writer().unwrap();
    let text = |row: i32| format!("{:0100}", row % 7);
    for first in (0..ROWS).step_by(100_000) {
        let numbers: ArrayRef = Arc::new((first..first + 100_000).map(number).collect::<Int32Array>());
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((first..first + 100_000).map(text)));
        let columns = vec![numbers, texts];
        writer.write(&RecordBatch::try_new(Arc::clone(write.arrow_schema()), columns).unwrap()).unwrap();
    }
    write.commit(writer.finish().unwrap(), Operation::new("WRITE")).unwrap();
    let snapshot = Snapshot::open(&storage, None).unwrap();
    let predicate = parse_predicate("n % 2 = 0", "UTC", ParseMode::Strict).unwrap();
    let scan = TableScan::new(&snapshot).predicate(predicate).threads(1);
    let (found, peak) = measure(|| {
        let mut found = Vec::new();
        for batch in scan.read().unwrap() {
            let batch = batch.unwrap();
            let texts = batch.column(1).as_string::<i32>();
            for (number, found_text) in batch.column(0).as_primitive::<Int32Type>().values().iter().zip(texts)
            {
                assert_eq!(found_text.unwrap(), text(*number));
                found.push(*number);
            }
        }
        found
    });
    let expected: Vec<i32> = (0..ROWS).map(number).filter(|number| number % 2 == 0).collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), 45_001);
    // All values of the gap together take 90 MB.
    assert!(peak < 30 << 20, "{peak} bytes at once");
}
