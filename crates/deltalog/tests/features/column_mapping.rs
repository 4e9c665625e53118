//! "Column Mapping": a mapped table returns the same rows as the same table without mapping.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use deltalog::ErrorKind;
use deltalog::engine::scan::ListColumn;
use serde_json::{Value, json};

use crate::crafted::{Crafted, Definition, field, fields, listed, rows};

/// The column mapping mode, which determines the column names in the crafted files and the log.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mode {
    None,
    Name,
    Id,
}

const MODES: [Mode; 2] = [Mode::Name, Mode::Id];

impl Mode {
    fn configuration(self) -> Value {
        let mode = match self {
            Self::None => "none",
            Self::Name => "name",
            Self::Id => "id",
        };
        json!({"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "100"})
    }

    /// Returns the physical name of the column that was created as `name`.
    fn physical(self, name: &str) -> String {
        if self == Self::None { name.to_owned() } else { format!("col-{name}") }
    }

    fn metadata(self, name: &str, id: i32) -> Value {
        match self {
            Self::None => json!({}),
            _ => {
                json!({"delta.columnMapping.id": id, "delta.columnMapping.physicalName": self.physical(name)})
            }
        }
    }

    /// Returns a field for a data file. In id mode its name is misleading on purpose, because only the id counts.
    fn in_file(self, name: &str, id: i32, data_type: DataType) -> Arc<Field> {
        Arc::new(match self {
            Self::Id => {
                let metadata =
                    HashMap::from([(parquet::arrow::PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
                Field::new(
                    format!("col-{}", ["b", "a", "s"][id as usize % 3]).repeat(id as usize),
                    data_type,
                    true,
                )
                .with_metadata(metadata)
            }
            _ => Field::new(self.physical(name), data_type, true),
        })
    }
}

/// Returns a schema that is partitioned by `p`.
///
/// `a: long, s: struct<a: long, b: string>, l: array<struct<a: long>>, m: map<string, struct<b: long>>, p: string`
fn schema(mode: Mode) -> Value {
    let item = fields(vec![field("a", json!("long"), mode.metadata("la", 6))]);
    let list = json!({"type": "array", "containsNull": true, "elementType": item});
    let map = json!({"type": "map", "keyType": "string", "valueContainsNull": true,
        "valueType": fields(vec![field("b", json!("long"), mode.metadata("mb", 8))])});
    fields(vec![
        field("a", json!("long"), mode.metadata("a", 1)),
        field(
            "s",
            fields(vec![
                field("a", json!("long"), mode.metadata("sa", 3)),
                field("b", json!("string"), mode.metadata("sb", 4)),
            ]),
            mode.metadata("s", 2),
        ),
        field("l", list, mode.metadata("l", 5)),
        field("m", map, mode.metadata("m", 7)),
        field("p", json!("string"), mode.metadata("p", 9)),
    ])
}

fn definition(mode: Mode, schema: &Value) -> Definition<'_> {
    Definition {
        schema,
        partition_columns: &["p"],
        reader_features: &["columnMapping"],
        writer_features: &[],
        configuration: mode.configuration(),
    }
}

/// Returns rows `first..first + 4`. Their fields are in a different order than in the table's schema.
///
/// Without mapping the file uses the table's names.
fn data(mode: Mode, first: i64) -> RecordBatch {
    let numbers = |offset: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter((0..4).map(|i| (i != 2).then_some(first + i + offset))))
    };
    let name = |mapped: &'static str, plain: &'static str| if mode == Mode::None { plain } else { mapped };
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..4).map(|i| format!("b{}", first + i))));
    let of = |pairs: Vec<(Arc<Field>, ArrayRef)>| -> ArrayRef { Arc::new(StructArray::from(pairs)) };
    let s = of(vec![
        (mode.in_file(name("sb", "b"), 4, DataType::Utf8), texts),
        (mode.in_file(name("sa", "a"), 3, DataType::Int64), numbers(10)),
    ]);
    let elements = of(vec![(mode.in_file(name("la", "a"), 6, DataType::Int64), numbers(20))]);
    let element = Arc::new(Field::new("element", elements.data_type().clone(), true));
    let l: ArrayRef =
        Arc::new(ListArray::new(element, OffsetBuffer::from_lengths([1, 0, 2, 1]), elements, None));
    let values = of(vec![(mode.in_file(name("mb", "b"), 8, DataType::Int64), numbers(30))]);
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values(["k", "l", "m", "n"]));
    let entries: Fields =
        vec![Field::new("key", DataType::Utf8, false), Field::new("value", values.data_type().clone(), true)]
            .into();
    let pairs = StructArray::new(entries.clone(), vec![keys, values], None);
    let entries = Arc::new(Field::new("key_value", DataType::Struct(entries), false));
    let m: ArrayRef =
        Arc::new(MapArray::new(entries, OffsetBuffer::from_lengths([1, 1, 1, 1]), pairs, None, false));
    let columns = vec![("m", 7, m), ("l", 5, l), ("s", 2, s), ("a", 1, numbers(0))];
    let schema: Vec<_> =
        columns.iter().map(|(name, id, array)| mode.in_file(name, *id, array.data_type().clone())).collect();
    RecordBatch::try_new(
        Arc::new(Schema::new(schema)),
        columns.into_iter().map(|(.., array)| array).collect(),
    )
    .unwrap()
}

fn table(mode: Mode) -> Crafted {
    let schema = schema(mode);
    let mut table = Crafted::new(&definition(mode, &schema));
    for (first, value) in [(0, "x"), (100, "y"), (200, "x")] {
        let (a, s, sa) = (
            mode.physical("a"),
            mode.physical("s"),
            if mode == Mode::None { "a".to_owned() } else { mode.physical("sa") },
        );
        let bounds = |a_value: i64, sa_value: i64| json!({&a: a_value, &s: {&sa: sa_value}});
        let stats = json!({
            "numRecords": 4, "minValues": bounds(first, first + 10),
            "maxValues": bounds(first + 3, first + 13), "nullCount": bounds(1, 1),
        });
        let rest = json!({"partitionValues": {mode.physical("p"): value}, "stats": stats.to_string()});
        table.add(&format!("{first}.parquet"), &data(mode, first), 2, rest);
    }
    table.commit();
    table
}

#[test]
fn rows_are_the_same_with_and_without_mapping() {
    let plain = table(Mode::None);
    let plain = plain.open().unwrap();
    for mode in MODES {
        let mapped = table(mode);
        let mapped = mapped.open().unwrap();
        assert_eq!(mapped.arrow_schema(), plain.arrow_schema());
        for columns in [None, Some(&["a"][..]), Some(&["p", "s"]), Some(&["m", "l"]), Some(&["P"])] {
            for predicate in [
                None,
                Some("a > 101"),
                Some("s.a = 113"),
                Some("S.B = 'b201' AND p = 'x'"),
                Some("s.a IS NULL OR a < 1"),
                Some("p = 'y'"),
                Some("p = 'z'"),
            ] {
                let (expected, found) =
                    (rows(&plain, columns, predicate).unwrap(), rows(&mapped, columns, predicate).unwrap());
                assert_eq!(found, expected, "{mode:?} {columns:?} {predicate:?}");
                assert!(found.num_rows() > 0 || predicate == Some("p = 'z'"));
            }
        }
    }
}

/// "Track partition values and column level statistics with the physical name of the column in the
/// transaction log."
#[test]
fn the_file_list_has_only_logical_names() {
    let columns = [ListColumn::Path, ListColumn::PartitionValues, ListColumn::NumRecords, ListColumn::Stats];
    let plain = table(Mode::None);
    let plain = plain.open().unwrap();
    for mode in MODES {
        let mapped = table(mode);
        let mapped = mapped.open().unwrap();
        for (predicate, files) in [
            (None, 3),
            (Some("a > 103"), 1),
            (Some("s.a < 12 AND p = 'x'"), 1),
            (Some("p = 'x'"), 2),
            (Some("s.a = 99"), 0),
        ] {
            let found = listed(&mapped, &columns, predicate);
            assert_eq!(found, listed(&plain, &columns, predicate), "{mode:?} {predicate:?}");
            assert_eq!(found.num_rows(), files, "{mode:?} {predicate:?}");
        }
    }
}

/// Columns are renamed, dropped and added again under an old name. Only the physical name or the id identifies the
/// data in a file.
#[test]
fn a_new_column_with_an_old_name_is_null_in_old_files() {
    for mode in MODES {
        let old = schema(mode);
        let mut changed = old.clone();
        let columns = changed["fields"].as_array_mut().unwrap();
        columns[0]["name"] = json!("renamed");
        // The new column's logical name is the physical name of the old column, as it occurs in the files and the log.
        columns.push(field(&mode.physical("a"), json!("long"), mode.metadata("new", 20)));
        columns[1]["type"]["fields"][0] = field("a", json!("long"), mode.metadata("new-sa", 21));
        let mut table = table(mode);
        table.define(&definition(mode, &changed));
        table.commit();
        let snapshot = table.open().unwrap();
        let found = rows(&snapshot, None, None).unwrap();
        assert_eq!(found.column_by_name("renamed").unwrap().null_count(), 3);
        assert_eq!(found.column_by_name(&mode.physical("a")).unwrap().null_count(), 12);
        let s = found.column_by_name("s").unwrap().as_struct();
        assert_eq!((s.column(0).null_count(), s.column(1).null_count()), (12, 0));
        // A filter on the new column does not use the statistics of the old column.
        assert_eq!(
            listed(&snapshot, &[ListColumn::Path], Some("`col-a` = 1000 OR s.a = 1000")).num_rows(),
            3
        );
        assert_eq!(listed(&snapshot, &[ListColumn::Path], Some("renamed = 1000")).num_rows(), 0);
        assert_eq!(
            rows(&snapshot, None, Some("`col-a` IS NULL AND s.a IS NULL AND renamed >= 200"))
                .unwrap()
                .num_rows(),
            3
        );
        let error = rows(&snapshot, Some(&["a"]), None).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("'a'"), "{error}");
    }
}

/// "If a data file does not contain field ids, readers must refuse to read that file or return nulls for each
/// column."
#[test]
fn a_file_without_ids_is_refused_in_id_mode() {
    let schema = schema(Mode::Id);
    let mut table = Crafted::new(&definition(Mode::Id, &schema));
    table.add("named.parquet", &data(Mode::Name, 0), 10, json!({"partitionValues": {"col-p": "x"}}));
    table.commit();
    let error = rows(&table.open().unwrap(), None, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    assert!(error.to_string().contains("no field ids") && error.path() == Some("named.parquet"), "{error}");
}

#[test]
fn the_error_names_a_column_without_mapping() {
    let mut schema = schema(Mode::Name);
    schema["fields"][1]["type"]["fields"][0]["metadata"] = json!({});
    let mut table = Crafted::new(&definition(Mode::Name, &schema));
    table.commit();
    let error = table.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptLog);
    assert!(error.to_string().contains("'s.a'") && error.version() == Some(0), "{error}");
}
