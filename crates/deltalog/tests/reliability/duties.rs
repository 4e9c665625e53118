//! The rules that a table has for its rows. Protocol: "CHECK Constraints", and the table feature `collations`.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use deltalog::{
    CreationMode, Environment, ErrorKind, Operation, PendingWrite, PrimitiveType, ReplaceWhere, Result,
    SaveMode, Snapshot, Storage, StructField, StructType, TableDefinition, WriteRequest,
};
use serde_json::json;

use crate::common::{empty, environment, write_commit};

fn write(storage: &Storage, mode: SaveMode, predicate: Option<&str>, rows: &RecordBatch) -> Result<u64> {
    let base = Snapshot::open(storage, None)?;
    let mut request = WriteRequest::new(base.schema().clone(), mode);
    request.replace_where = predicate.map(ReplaceWhere::new);
    let pending = PendingWrite::begin(storage, request, &Environment::system())?.unwrap();
    let mut writer = pending.writer()?;
    writer.write(rows)?;
    let files = writer.finish()?;
    pending.commit_or_fail(files, Operation::new("WRITE")).map(|committed| committed.version)
}

/// Creates a table of one column with the metadata `metadata`.
fn table_of_strings(metadata: &serde_json::Value, features: &[&str]) -> Storage {
    let (_, storage) = empty();
    let column = json!({"name": "s", "type": "string", "nullable": true, "metadata": metadata});
    let protocol = json!({"protocol": {
        "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features,
    }});
    let metadata = json!({"metaData": {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json!({"type": "struct", "fields": [column]}).to_string(),
        "partitionColumns": [],
        "configuration": {},
    }});
    write_commit(&storage, 0, &[protocol.to_string(), metadata.to_string()]);
    storage
}

fn strings(values: &[&str]) -> RecordBatch {
    let values: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
    RecordBatch::try_from_iter([("s", values)]).unwrap()
}

/// A value that is too long is refused before a row is committed, even if the other rows are valid.
#[test]
fn strings_have_at_most_the_length_of_their_type() {
    for (data_type, fits) in [("varchar(3)", "äöü"), ("char(3)", "abc")] {
        let storage = table_of_strings(&json!({"__CHAR_VARCHAR_TYPE_STRING": data_type}), &["invariants"]);
        let refused = write(&storage, SaveMode::Append, None, &strings(&[fits, "abcd"])).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::SchemaMismatch, "{data_type}: {refused}");
        assert_eq!(write(&storage, SaveMode::Append, None, &strings(&[fits, "ab", "abc   "])).unwrap(), 1);
    }
}

/// Rows are compared byte by byte, so a predicate on a string with a collation would replace the wrong rows.
#[test]
fn rows_are_not_replaced_by_a_collated_string() {
    let storage = table_of_strings(&json!({"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}), &["collations"]);
    write(&storage, SaveMode::Append, None, &strings(&["a", "A"])).unwrap();
    let refused = write(&storage, SaveMode::Overwrite, Some("s = 'a'"), &strings(&["a"])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    assert!(refused.to_string().contains("collation"), "{refused}");
    assert_eq!(Snapshot::open(&storage, None).unwrap().version(), 1);
}

/// Creates a table with a column of each timestamp type, and a CHECK constraint.
fn table_of_times(check: &str) -> Storage {
    let (_, storage) = empty();
    let mut definition = TableDefinition::new(
        StructType::try_new(vec![
            StructField::new("instant", PrimitiveType::Timestamp, true),
            StructField::new("local", PrimitiveType::TimestampNtz, true),
            StructField::new("id", PrimitiveType::Long, true),
        ])
        .unwrap(),
    );
    definition.constraints.insert("c".to_owned(), check.to_owned());
    let mode = CreationMode::ErrorIfExists;
    let creation = PendingWrite::define(&storage, &definition, mode, Vec::new(), &environment()).unwrap();
    creation.unwrap().commit_or_fail(Vec::new(), Operation::new("CREATE TABLE")).unwrap();
    storage
}

/// Times without a zone in a constraint are in UTC, wherever the rows come from. An instant is the same in every zone,
/// and a time without a zone is compared as it is written.
#[test]
fn times_of_constraints_are_in_utc() {
    // The instant is 2024-01-01 00:00:00 UTC.
    const NEW_YEAR: i64 = 1_704_067_200_000_000;
    const HOUR: i64 = 3_600_000_000;
    let is_accepted = |check: &str, column: &str, zone: Option<&str>, micros: i64| {
        let storage = table_of_times(check);
        let times = TimestampMicrosecondArray::from(vec![micros]);
        let times: ArrayRef = match zone {
            Some(zone) => Arc::new(times.with_timezone(zone)),
            None => Arc::new(times),
        };
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let rows = RecordBatch::try_from_iter([(column, times), ("id", ids)]).unwrap();
        match write(&storage, SaveMode::Append, None, &rows) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{check}: {error}");
                assert!(error.to_string().contains("'c'"), "{check}: {error}");
                false
            }
        }
    };
    for (check, column, zones, first) in [
        (
            "instant >= TIMESTAMP '2024-01-01 00:00:00'",
            "instant",
            &[Some("UTC"), Some("+05:00")][..],
            NEW_YEAR,
        ),
        (
            "instant >= TIMESTAMP '2024-01-01 00:00:00+02:00'",
            "instant",
            &[Some("UTC"), Some("America/New_York")],
            NEW_YEAR - 2 * HOUR,
        ),
        ("local >= TIMESTAMP_NTZ '2024-01-01 00:00:00'", "local", &[None], NEW_YEAR),
        ("year(instant) = 2024", "instant", &[Some("UTC"), Some("+05:00")], NEW_YEAR),
        ("year(local) = 2024", "local", &[None], NEW_YEAR),
    ] {
        for zone in zones {
            assert!(is_accepted(check, column, *zone, first), "{check} in {zone:?}");
            assert!(!is_accepted(check, column, *zone, first - 1), "{check} in {zone:?}");
        }
    }
}
