//! Tests of reading files that Arrow's own writer wrote: columns, rows, order, and errors.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::{cast, concat_batches, filter_record_batch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

use super::{DataFile, FileRows, PartitionRow, RowScan, RowTracking};
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::{ParseMode, filter_mask, parse};
use crate::protocol::schema::is_variant;
use crate::protocol::{LogPath, PathResolver};
use crate::storage::Storage;
use crate::write::NanColumns;

pub(super) struct Table {
    pub(super) directory: tempfile::TempDir,
    pub(super) schema: SchemaRef,
    partitions: Vec<String>,
    pub(super) files: Vec<DataFile>,
    /// Whether the footers list the columns that contain NaN, as this crate's footers do.
    lists_nan: bool,
}

impl Table {
    pub(super) fn new(fields: Vec<Field>) -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            schema: Arc::new(Schema::new(fields)),
            partitions: vec![],
            files: vec![],
            lists_nan: true,
        }
    }

    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Adds a file that already exists to the table.
    pub(super) fn add(&mut self, name: &str, partition_values: PartitionRow) {
        let size = fs::metadata(self.path(name)).map_or(0, |meta| meta.len());
        self.files.push(DataFile {
            path: LogPath::Relative(name.to_owned()),
            size,
            partition_values,
            rows: FileRows::All,
            row_tracking: RowTracking::default(),
        });
    }

    pub(super) fn write(&mut self, columns: Vec<(&str, ArrayRef)>) {
        self.write_groups(columns, PartitionRow::empty(), 1 << 20);
    }

    pub(super) fn write_groups(
        &mut self,
        columns: Vec<(&str, ArrayRef)>,
        partition_values: PartitionRow,
        group_rows: usize,
    ) {
        let name = format!("part {}.parquet", self.files.len());
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        write_file(&self.path(&name), &batch, group_rows, self.lists_nan);
        self.add(&name, partition_values);
    }

    pub(super) fn scan(&self) -> RowScan {
        let storage = Storage::open(self.directory.path().to_str().unwrap(), []).unwrap();
        RowScan {
            small_read: (0, 0),
            bytes_worth_a_thread: 0,
            ..RowScan::new(storage, &self.schema, &self.partitions).unwrap()
        }
    }

    pub(super) fn where_(&self, sql: &str) -> RowScan {
        self.scan()
            .with_predicate(&parse(sql, "UTC", ParseMode::Strict).unwrap().bind(&self.schema).unwrap())
            .unwrap()
    }

    /// Returns the rows of the scan, and checks that a scan with view types returns the same rows.
    pub(super) fn rows(&self, scan: RowScan) -> Result<RecordBatch> {
        if scan.in_any_order || !has_plain_texts(&DataType::Struct(scan.schema().fields().clone())) {
            return self.rows_of(scan);
        }
        let (plain, views) = (self.rows_of(scan.clone()), self.rows_of(scan.with_view_types()));
        match (&plain, views) {
            (Ok(plain), Ok(views)) => {
                for (field, (plain, views)) in
                    plain.schema().fields().iter().zip(plain.columns().iter().zip(views.columns()))
                {
                    assert!(
                        !has_plain_texts(views.data_type()) || is_variant(field),
                        "{}",
                        views.data_type()
                    );
                    assert_eq!(&cast(views, field.data_type()).unwrap(), plain);
                }
                assert_eq!(views.num_rows(), plain.num_rows());
            }
            (Err(plain), Err(views)) => assert_eq!(plain.to_string(), views.to_string().replace("View", "")),
            (plain, views) => panic!("{plain:?}, but with views {views:?}"),
        }
        plain
    }

    fn rows_of(&self, scan: RowScan) -> Result<RecordBatch> {
        let schema = scan.schema();
        let batches = scan.read(self.files.clone().into_iter().map(Ok)).collect::<Result<Vec<_>>>()?;
        assert!(batches.iter().all(|batch| batch.schema() == schema && batch.num_rows() > 0));
        if schema.fields().is_empty() {
            let rows = batches.iter().map(RecordBatch::num_rows).sum();
            return Ok(RecordBatch::try_new_with_options(
                schema,
                vec![],
                &RecordBatchOptions::new().with_row_count(Some(rows)),
            )
            .unwrap());
        }
        Ok(concat_batches(&schema, &batches).unwrap())
    }

    pub(super) fn error(&self) -> Error {
        let error = self.rows(self.scan()).unwrap_err();
        assert!(
            error.table().is_some_and(|table| table.contains(self.directory.path().to_str().unwrap())),
            "{error}"
        );
        assert!(error.path().is_some(), "{error}");
        error
    }
}

fn has_plain_texts(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| has_plain_texts(field.data_type())),
        DataType::List(inner) => has_plain_texts(inner.data_type()),
        DataType::Map(entries, _) => match entries.data_type() {
            // The keys of maps are never views.
            DataType::Struct(fields) => fields.iter().skip(1).any(|field| has_plain_texts(field.data_type())),
            other => panic!("the entries of a map are {other}"),
        },
        leaf => matches!(leaf, DataType::Utf8 | DataType::Binary),
    }
}

fn write_file(path: &Path, batch: &RecordBatch, group_rows: usize, lists_nan: bool) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let page_rows = group_rows.div_ceil(4);
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows));
    let properties = properties.set_data_page_row_count_limit(page_rows).set_write_batch_size(page_rows);
    let mut nans = NanColumns::default();
    nans.add(batch);
    let properties = match lists_nan {
        true => properties
            .set_created_by("deltalog version 0".to_owned())
            .set_key_value_metadata(Some(vec![nans.entry()])),
        false => properties,
    };
    let properties = properties.build();
    let mut writer =
        ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

pub(super) fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

pub(super) fn ints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

pub(super) fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// Creates a table with two columns, a partition column `p`, and one file of numbered rows for each of the partition
/// values 1, NULL and 2.
fn partitioned() -> Table {
    let mut table = Table::new(vec![
        field("id", DataType::Int64),
        field("p", DataType::Int32),
        field("s", DataType::Utf8),
        field("late", DataType::Utf8),
    ]);
    table.partitions = vec!["P".to_owned()];
    let values: StructArray = vec![(
        Arc::new(field("p", DataType::Int32)),
        Arc::new(Int32Array::from(vec![Some(1), None, Some(2)])) as ArrayRef,
    )]
    .into();
    let values = Arc::new(values);
    for row in 0..3 {
        let first = row as i64 * 100;
        let strings: Vec<String> = (first..first + 100).map(|id| format!("s{id}")).collect();
        let columns = vec![
            ("unknown", ints(first..first + 100)),
            ("S", Arc::new(StringArray::from(strings)) as ArrayRef),
            // A file may contain the partition column, but these values are ignored.
            ("p", ints(0..100)),
            ("id", ints(first..first + 100)),
        ];
        table.write_groups(columns, PartitionRow::new(values.clone(), row).unwrap(), 30);
    }
    table
}

#[test]
fn columns_are_found_by_name_and_partition_values_come_from_the_log() {
    let table = partitioned();
    let rows = table.rows(table.scan()).unwrap();
    assert_eq!(rows.column(0), &ints(0..300));
    let partition = (0..300).map(|row| [Some(1), None, Some(2)][row / 100]);
    assert_eq!(rows.column(1).as_ref(), &Int32Array::from_iter(partition) as &dyn Array);
    assert_eq!(rows.column(2).as_string::<i32>().value(299), "s299");
    assert_eq!(rows.column(3).null_count(), 300);
}

#[test]
fn the_projection_selects_and_orders_columns() {
    let table = partitioned();
    let scan = table.scan().with_projection(&["S", "P", "Id"]).unwrap();
    assert_eq!(
        scan.schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(),
        ["s", "p", "id"]
    );
    assert_eq!(table.rows(scan).unwrap(), table.rows(table.scan()).unwrap().project(&[2, 1, 0]).unwrap());

    let none: [&str; 0] = [];
    assert_eq!(table.rows(table.scan().with_projection(&none).unwrap()).unwrap().num_rows(), 300);
    assert_eq!(table.rows(table.where_("id < 5").with_projection(&none).unwrap()).unwrap().num_rows(), 5);
    assert_eq!(table.rows(table.scan().with_projection(&["p"]).unwrap()).unwrap().num_rows(), 300);

    let error = table.scan().with_projection(&["nope"]).unwrap_err();
    assert_eq!(
        (error.kind(), error.hint()),
        (ErrorKind::InvalidArgument, Some("the columns are: p, late, id, s"))
    );
    assert_eq!(table.scan().with_projection(&["id", "ID"]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn predicates_select_the_same_rows_as_filtering_afterwards() {
    let table = partitioned();
    let all = table.rows(table.scan()).unwrap();
    for sql in [
        "p = 1",
        "p IS NULL",
        "p IS NULL AND id > 150",
        "p = 2 OR id = 7",
        "NOT (p = 2) AND s LIKE 's1%'",
        "id BETWEEN 95 AND 105",
        "id > 1000",
        "late IS NULL",
        "late = 'a'",
        "late IS NULL AND id IN (1, 101, 299)",
        "p <=> NULL OR late <=> 's'",
    ] {
        let mask =
            filter_mask(&parse(sql, "UTC", ParseMode::Strict).unwrap().bind(&table.schema).unwrap(), &all)
                .unwrap();
        let expected = filter_record_batch(&all, &mask).unwrap();
        assert_eq!(table.rows(table.where_(sql)).unwrap(), expected, "{sql}");
        let projected = table.where_(sql).with_projection(&["s"]).unwrap();
        assert_eq!(table.rows(projected).unwrap(), expected.project(&[2]).unwrap(), "{sql}");
    }
}

#[test]
fn files_and_row_groups_that_cannot_match_are_not_read() {
    let table = partitioned();
    // Overwrite the data pages of the first two row groups, so that reading them would fail.
    let path = table.path("part 0.parquet");
    let metadata = parquet::file::metadata::ParquetMetaDataReader::new()
        .parse_and_finish(&fs::File::open(&path).unwrap())
        .unwrap();
    let third =
        metadata.row_group(2).columns().iter().map(|column| column.byte_range().0).min().unwrap() as usize;
    let mut bytes = fs::read(&path).unwrap();
    bytes[4..third].fill(0xff);
    fs::write(&path, bytes).unwrap();
    assert_eq!(table.rows(table.where_("id >= 60 AND p = 1")).unwrap().column(0), &ints(60..100));
    assert_eq!(table.rows(table.where_("id >= 59 AND p = 1")).unwrap_err().kind(), ErrorKind::CorruptData);
    fs::remove_file(&path).unwrap();
    assert_eq!(table.rows(table.where_("p = 2")).unwrap().num_rows(), 100);
}

/// The maximum of a column chunk or a page bounds its rows only if the footer says that the column has no NaN.
#[test]
fn maxima_of_floats_are_trusted_if_the_footer_lists_nan() {
    let is_read = |lists_nan: bool, last: f64, sql: &str| {
        let mut table = Table { lists_nan, ..Table::new(vec![field("f", DataType::Float64)]) };
        let numbers = (0..99).map(f64::from).chain([last]);
        table.write_groups(
            vec![("f", Arc::new(Float64Array::from_iter_values(numbers)))],
            PartitionRow::empty(),
            60,
        );
        // The first row group has pages of 15 rows. The first two pages cannot be read.
        let path = table.path("part 0.parquet");
        let reader = parquet::file::metadata::ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Required);
        let metadata = reader.parse_and_finish(&fs::File::open(&path).unwrap()).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        for page in &metadata.offset_index().unwrap()[0][0].page_locations()[..2] {
            bytes[page.offset as usize..][..page.compressed_page_size as usize].fill(0xee);
        }
        fs::write(&path, bytes).unwrap();
        match table.rows(table.where_(sql)) {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::CorruptData);
                true
            }
        }
    };
    // Pruning applies first to the row groups, and then to the pages.
    for sql in ["f > 70", "f >= 60", "f > 40", "f >= 30", "f BETWEEN 35 AND 45", "NOT (f <= 44)"] {
        assert!(!is_read(true, 99.0, sql), "{sql}");
    }
    for sql in ["f > 28", "f < 3", "f != 80", "f IS NOT NULL"] {
        assert!(is_read(true, 99.0, sql), "{sql}");
    }
    // In a file from another writer, or with a NaN, `>` may be true for a NaN, which is greater than all numbers.
    for (lists_nan, last) in [(false, 99.0), (true, f64::NAN)] {
        assert!(is_read(lists_nan, last, "f > 70") && is_read(lists_nan, last, "f > 40"));
        assert!(!is_read(lists_nan, last, "f = 70") && !is_read(lists_nan, last, "f = 40"));
    }
}

/// Returns the columns for the test below. Each row is made from one number, and 0 becomes NULL.
fn law_columns(numbers: &[u8]) -> Vec<(&'static str, ArrayRef)> {
    let floats = [-1.5, -0.0, 0.0, 2.5, f64::INFINITY, f64::NAN];
    let number = |n: &u8| (*n > 0).then_some(i64::from(*n) - 5);
    let float = |n: &u8| (*n > 0).then(|| floats[usize::from(*n) % floats.len()]);
    let x: ArrayRef =
        Arc::new(Int64Array::from_iter(numbers.iter().map(|n| (*n != 2).then_some(i64::from(*n)))));
    let y: ArrayRef = texts(&vec!["y"; numbers.len()]);
    let fields = vec![field("Y", DataType::Utf8), field("X", DataType::Int64)];
    let nulls = numbers.iter().map(|n| *n > 0).collect::<Vec<_>>().into();
    vec![
        ("F", Arc::new(Float64Array::from_iter(numbers.iter().map(float)))),
        ("i", Arc::new(Int16Array::from_iter(numbers.iter().map(|n| number(n).map(|n| n as i16))))),
        (
            "s",
            Arc::new(StringViewArray::from_iter(
                numbers.iter().map(|n| number(n).map(|n| format!("{n:03}"))),
            )),
        ),
        ("t", Arc::new(TimestampMillisecondArray::from_iter(numbers.iter().map(number)))),
        (
            "d",
            Arc::new(
                Decimal128Array::from_iter(numbers.iter().map(|n| number(n).map(i128::from)))
                    .with_precision_and_scale(4, 1)
                    .unwrap(),
            ),
        ),
        ("n", Arc::new(StructArray::try_new(fields.into(), vec![y, x], Some(nulls)).unwrap())),
    ]
}

fn law_table() -> Table {
    let inner = vec![field("x", DataType::Int64), field("y", DataType::Utf8), field("z", DataType::Utf8)];
    Table::new(vec![
        field("i", DataType::Int64),
        field("f", DataType::Float64),
        field("s", DataType::Utf8),
        field("t", DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, Some("UTC".into()))),
        field("d", DataType::Decimal128(12, 3)),
        field("n", DataType::Struct(inner.into())),
    ])
}

const LAW_PREDICATES: [&str; 22] = [
    "i > 2",
    "i <= -2",
    "i IS NULL",
    "i IS NOT NULL AND NOT (i = 1)",
    "f > 2.5",
    "f = 0.0",
    "f <= 0.0",
    "NOT (f < 3.0)",
    "f IS NULL",
    "s >= '002'",
    "s LIKE '00%'",
    "s IN ('001', '003') OR i = -4",
    "t < TIMESTAMP '1970-01-01 00:00:00.001Z'",
    "t = TIMESTAMP '1970-01-01 00:00:00.002Z'",
    "d = 0.2",
    "d < -0.15",
    "n.x > 6",
    "n.x IS NULL",
    "n.x = i",
    "n.z IS NULL AND n.x < 3",
    "n.z = 'z'",
    "i <=> NULL",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Row groups and pages are skipped only if nothing in them matches. A scan with a predicate therefore returns
    /// the same rows as filtering the result of a full scan.
    #[test]
    fn pruned_reads_return_the_same_rows_as_filtering_afterwards(
        numbers in prop::collection::vec(0..10u8, 0..24), group_rows in 1..17usize,
        batch_rows in 1..9usize, nested: bool, lists_nan: bool,
    ) {
        let mut table = Table { lists_nan, ..law_table() };
        table.write_groups(law_columns(&numbers), PartitionRow::empty(), group_rows);
        let all = table.rows(table.scan()).unwrap();
        prop_assert_eq!(all.num_rows(), numbers.len());
        for sql in LAW_PREDICATES {
            let predicate = parse(sql, "UTC", ParseMode::Strict).unwrap().bind(&table.schema).unwrap();
            let expected = filter_record_batch(&all, &filter_mask(&predicate, &all).unwrap()).unwrap();
            let (scan, expected) = match nested {
                true => (table.where_(sql), expected),
                false => (table.where_(sql).with_projection(&["i"]).unwrap(), expected.project(&[0]).unwrap()),
            };
            prop_assert_eq!(table.rows(scan.with_batch_rows(batch_rows)).unwrap(), expected, "{}", sql);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The order and the contents of the rows do not depend on threads, batches or row groups.
    #[test]
    fn threads_keep_rows_and_their_order(
        sizes in prop::collection::vec(0..40usize, 0..12), threads in 1..6usize,
        batch_rows in 1..20usize, group_rows in 1..20usize,
        limit in 0..300i64, in_any_order: bool,
    ) {
        let fields = [("id", DataType::Int64), ("text", DataType::Utf8), ("twice", DataType::Int64)];
        let mut table = Table::new(fields.map(|(name, data_type)| field(name, data_type)).into());
        let (mut first, mut starts) = (0, Vec::new());
        for size in sizes {
            let next = first + size as i64;
            starts.push(first);
            let words: Vec<String> = (first..next).map(|id| format!("text {id}")).collect();
            let words = texts(&words.iter().map(String::as_str).collect::<Vec<_>>());
            let twice = ints((first..next).map(|id| 2 * id));
            let columns = vec![("id", ints(first..next)), ("text", words), ("twice", twice)];
            table.write_groups(columns, PartitionRow::empty(), group_rows);
            first = next;
        }
        let settings = |scan: RowScan| {
            let scan = scan.with_threads(threads).with_batch_rows(batch_rows);
            if in_any_order { scan.in_any_order() } else { scan }
        };
        // Each row identifies its file, and the rows of a file are in order. A stable sort by file therefore restores
        // the original order.
        let in_order = |rows: RecordBatch| {
            let ids = rows.column(0).as_primitive::<Int64Type>();
            let words = rows.column(1).as_string::<i32>();
            let twice = rows.column(2).as_primitive::<Int64Type>();
            assert!((0..rows.num_rows()).all(|row| {
                words.value(row) == format!("text {}", ids.value(row)) && twice.value(row) == 2 * ids.value(row)
            }));
            let mut ids = rows.column(0).as_primitive::<Int64Type>().values().to_vec();
            if in_any_order {
                ids.sort_by_key(|id| starts.partition_point(|start| start <= id));
            }
            ints(ids)
        };
        prop_assert_eq!(&in_order(table.rows(settings(table.scan())).unwrap()), &ints(0..first));
        let rows = table.rows(settings(table.where_(&format!("id >= {limit}")))).unwrap();
        prop_assert_eq!(&in_order(rows), &ints(limit.min(first)..first));
    }
}

/// Pages that cannot match are not decoded, and neither are pages that no matching row needs. (Parquet, "Page
/// Index".)
#[test]
fn pages_that_cannot_match_are_not_read() {
    let mut table = Table::new(vec![field("id", DataType::Int64), field("s", DataType::Utf8)]);
    let words: Vec<String> = (0..400).map(|row| format!("word {row:05}")).collect();
    table.write_groups(
        vec![("id", ints(0..400)), ("s", texts(&words.iter().map(String::as_str).collect::<Vec<_>>()))],
        PartitionRow::empty(),
        400,
    );
    let path = table.path("part 0.parquet");
    let mut bytes = fs::read(&path).unwrap();
    // Each page has 100 rows. The pages with the first 100 rows are overwritten.
    let reader = parquet::file::metadata::ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required);
    let metadata = reader.parse_and_finish(&fs::File::open(&path).unwrap()).unwrap();
    for column in &metadata.offset_index().unwrap()[0] {
        assert_eq!(column.page_locations().len(), 4);
        let page = &column.page_locations()[0];
        bytes[page.offset as usize..][..page.compressed_page_size as usize].fill(0xee);
    }
    fs::write(&path, bytes).unwrap();
    for sql in [
        "id >= 100",
        "s > 'word 00100'",
        "id = 250 AND s = 'word 00250'",
        "id > 120 AND s IS NOT NULL",
        "id IN (150, 399)",
    ] {
        let rows = table.rows(table.where_(sql)).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(rows.num_rows() > 0, "{sql}");
        let text = rows.column(1).as_string::<i32>();
        assert!(
            rows.column(0)
                .as_primitive::<Int64Type>()
                .values()
                .iter()
                .zip(text)
                .all(|(id, text)| text == Some(&format!("word {id:05}")))
        );
    }
    for sql in ["id >= 99", "id = 250 OR s = 'word 00001'"] {
        assert_eq!(table.rows(table.where_(sql)).unwrap_err().kind(), ErrorKind::CorruptData, "{sql}");
    }
}

#[test]
fn absolute_paths_are_read_outside_the_table() {
    let mut table = Table::new(vec![field("id", DataType::Int64)]);
    table.write(vec![("id", ints(0..5))]);
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(table.path("part 0.parquet"), elsewhere.path().join("a b.parquet")).unwrap();
    let allowed = url::Url::from_directory_path(elsewhere.path()).unwrap();
    let paths = PathResolver::new(&url::Url::from_directory_path(table.directory.path()).unwrap())
        .unwrap()
        .allow(&allowed)
        .unwrap();
    table.files[0].path = paths.resolve(&format!("{allowed}a%20b.parquet")).unwrap();
    assert!(matches!(table.files[0].path, LogPath::Absolute(_)));
    assert_eq!(table.rows(table.scan()).unwrap().column(0), &ints(0..5));
}
