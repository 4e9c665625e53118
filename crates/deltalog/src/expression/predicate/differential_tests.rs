//! Compares pruning with the exact filter: pruning must not drop a file that has a row for which the predicate is
//! true.
//!
//! The values of each type come from a small pool in Spark's order, so that two values can be compared by their
//! positions in the pool.

use super::{BoundPredicate, ColumnPath, Expr, FileBounds, Literal, Predicate, col, filter_mask, lit, prune};
use arrow::array::*;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use proptest::prelude::*;
use std::sync::Arc;

/// Returns for each column its name, its values in order, and the number of values other than NaN.
fn pools() -> Vec<(ColumnPath, ArrayRef, u32)> {
    let pool = |path: &[&str], array: ArrayRef| {
        let ordered = match array.data_type() {
            DataType::Float32 | DataType::Float64 => array.len() - 1,
            _ => array.len(),
        };
        (ColumnPath::new(path.iter().copied()), array, ordered as u32)
    };
    let floats = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 0.5, 2.5, f64::NAN];
    vec![
        pool(&["i8"], Arc::new(Int8Array::from(vec![-128, -1, 0, 1, 2, 3, 127]))),
        pool(&["i64"], Arc::new(Int64Array::from(vec![i64::MIN, -1, 0, 2, (1 << 53) + 1, i64::MAX]))),
        pool(
            &["d"],
            Arc::new(
                Decimal128Array::from(vec![-999, -150, -1, 0, 1, 250, 999])
                    .with_precision_and_scale(10, 2)
                    .unwrap(),
            ),
        ),
        pool(&["f32"], Arc::new(Float32Array::from_iter_values(floats.map(|f| f as f32)))),
        pool(&["f64"], Arc::new(Float64Array::from(floats.to_vec()))),
        pool(
            &["s"],
            Arc::new(StringArray::from(vec![
                "",
                "a",
                "ab",
                "ab%",
                "abc",
                "b",
                "é",
                "\u{ffff}",
                "\u{10ffff}",
            ])),
        ),
        pool(&["b"], Arc::new(BooleanArray::from(vec![false, true]))),
        pool(&["dt"], Arc::new(Date32Array::from(vec![-1, 0, 1, 18_262]))),
        pool(
            &["ts"],
            Arc::new(TimestampMicrosecondArray::from(vec![-1, 0, 1, 1_000_999]).with_timezone("UTC")),
        ),
        pool(&["ntz"], Arc::new(TimestampMicrosecondArray::from(vec![-1, 0, 1, 1_000_999]))),
        pool(&["bin"], Arc::new(BinaryArray::from_vec(vec![b"", b"\x00", b"a", b"\xff"]))),
        pool(&["n", "x"], Arc::new(Int32Array::from(vec![-5, 0, 5]))),
    ]
}

fn values(pool: &ArrayRef, places: impl IntoIterator<Item = Option<u32>>) -> ArrayRef {
    take(pool, &UInt32Array::from_iter(places), None).unwrap()
}

fn schema() -> Schema {
    let mut fields: Vec<Field> = Vec::new();
    for (path, pool, _) in pools() {
        match path.parts() {
            [name] => fields.push(Field::new(name, pool.data_type().clone(), true)),
            [outer, inner] => {
                let inner = Fields::from(vec![Field::new(inner, pool.data_type().clone(), true)]);
                fields.push(Field::new(outer, DataType::Struct(inner), true));
            }
            _ => unreachable!(),
        }
    }
    Schema::new(fields)
}

/// How precise a column's statistics are in one file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Quality {
    Exact,
    Wide,
    NoBounds,
    Nothing,
}

type Row = Vec<Option<u32>>;

#[derive(Debug, Clone)]
struct File {
    rows: Vec<Row>,
    quality: Vec<Quality>,
    counted: bool,
}

fn files() -> impl Strategy<Value = Vec<File>> {
    let cells: Vec<_> =
        pools().iter().map(|(_, pool, _)| prop::option::weighted(0.7, 0..pool.len() as u32)).collect();
    let quality = prop::sample::select(vec![
        Quality::Exact,
        Quality::Exact,
        Quality::Wide,
        Quality::NoBounds,
        Quality::Nothing,
    ]);
    let file = (
        prop::collection::vec(cells, 0..4),
        prop::collection::vec(quality, pools().len()),
        prop::bool::weighted(0.8),
    );
    prop::collection::vec(file.prop_map(|(rows, quality, counted)| File { rows, quality, counted }), 1..5)
}

impl File {
    fn column(&self, column: usize) -> impl Iterator<Item = Option<u32>> {
        self.rows.iter().map(move |row| row[column])
    }

    fn batch(&self) -> RecordBatch {
        let arrays: Vec<ArrayRef> = pools()
            .iter()
            .enumerate()
            .map(|(i, (path, pool, _))| {
                let array = values(pool, self.column(i));
                match path.parts() {
                    [_, inner] => {
                        // Some values are NULL because their struct is NULL; the field inside of it may have any
                        // value.
                        let nulls: Vec<bool> = self
                            .column(i)
                            .enumerate()
                            .map(|(row, place)| place.is_some() || row % 2 == 0)
                            .collect();
                        let data = values(
                            pool,
                            self.column(i)
                                .enumerate()
                                .map(|(row, p)| if row % 2 == 0 { p } else { p.or(Some(0)) }),
                        );
                        let fields = Fields::from(vec![Field::new(inner, pool.data_type().clone(), true)]);
                        Arc::new(StructArray::new(fields, vec![data], Some(nulls.into()))) as ArrayRef
                    }
                    _ => array,
                }
            })
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        RecordBatch::try_new_with_options(Arc::new(schema()), arrays, &options).unwrap()
    }
}

struct Bounds<'a>(&'a [File]);

impl Bounds<'_> {
    fn extreme(&self, column: &ColumnPath, least: bool) -> Option<ArrayRef> {
        let all = pools();
        let at = all.iter().position(|(path, ..)| path == column)?;
        let (_, pool, ordered) = &all[at];
        let place = |file: &File| {
            let known = file.column(at).flatten().filter(|place| place < ordered);
            let place = if least { known.min()? } else { known.max()? };
            match (file.quality[at], least) {
                (Quality::Exact, _) => Some(place),
                (Quality::Wide, true) => Some(place.saturating_sub(1)),
                (Quality::Wide, false) => Some((place + 1).min(ordered - 1)),
                _ => None,
            }
        };
        Some(values(pool, self.0.iter().map(place)))
    }
}

impl FileBounds for Bounds<'_> {
    fn num_files(&self) -> usize {
        self.0.len()
    }

    fn num_records(&self) -> Option<Int64Array> {
        Some(self.0.iter().map(|file| file.counted.then_some(file.rows.len() as i64)).collect())
    }

    fn min(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.extreme(column, true)
    }

    fn max(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.extreme(column, false)
    }

    fn null_count(&self, column: &ColumnPath) -> Option<Int64Array> {
        let at = pools().iter().position(|(path, ..)| path == column)?;
        let count = |file: &File| file.column(at).filter(Option::is_none).count() as i64;
        Some(self.0.iter().map(|file| (file.quality[at] != Quality::Nothing).then(|| count(file))).collect())
    }
}

fn column(path: &ColumnPath) -> Expr {
    Expr::Column(path.clone())
}

fn literals(of: &DataType) -> Vec<Literal> {
    let decimal = |unscaled, scale| Literal::Decimal { unscaled, scale };
    match of {
        DataType::Boolean => vec![true.into(), false.into()],
        DataType::Utf8 => ["", "a", "ab", "abb", "abc", "é", "\u{10ffff}"].map(Literal::from).to_vec(),
        DataType::Binary => {
            vec![Literal::Binary(vec![]), Literal::Binary(vec![0, 0]), Literal::Binary(vec![b'a'])]
        }
        DataType::Date32 => vec![Literal::Date(0), Literal::Date(2), "2020-01-01".into()],
        DataType::Timestamp(_, Some(_)) => {
            vec![Literal::Timestamp(0), Literal::Timestamp(1_000_998), "1970-01-01T00:00:00Z".into()]
        }
        DataType::Timestamp(_, None) => vec![Literal::TimestampNtz(0), Literal::TimestampNtz(1_000_999)],
        _ => vec![
            0.into(),
            2.into(),
            (-1).into(),
            1000.into(),
            i64::MIN.into(),
            i64::MAX.into(),
            decimal(25, 1),
            decimal(250, 2),
            decimal(-1, 3),
            decimal(10i128.pow(37), 0),
            decimal(1, 38),
            2.5.into(),
            (-0.0).into(),
            f64::NAN.into(),
            f64::INFINITY.into(),
            9_007_199_254_740_992.0.into(),
        ],
    }
}

fn comparisons() -> impl Strategy<Value = Predicate> {
    let pools = pools();
    (0..pools.len()).prop_flat_map(move |at| {
        let (path, pool, _) = pools[at].clone();
        let mut literals = literals(pool.data_type());
        literals.push(Literal::Null);
        let this = column(&path);
        let is_text = matches!(pool.data_type(), DataType::Utf8);
        let is_boolean = matches!(pool.data_type(), DataType::Boolean);
        let patterns = vec!["ab%", "a%", "%", "ab", "a_c", "_", "%b%", "ab\\%", "\u{10ffff}%", "é%"];
        (prop::sample::subsequence(literals, 1..4).prop_shuffle(), 0..12usize, prop::sample::select(patterns))
            .prop_map(move |(list, kind, pattern)| {
                let this = this.clone();
                let one = lit(list[0].clone());
                match kind {
                    0 => this.eq(one),
                    1 => this.not_eq(one),
                    2 => this.lt(one),
                    3 => this.lt_eq(one),
                    4 => this.gt(one),
                    5 => this.gt_eq(one),
                    6 => this.null_safe_eq(one),
                    7 => this.is_null(),
                    8 if is_text => this.like(pattern),
                    9 if is_text => this.starts_with("ab"),
                    8 | 9 if is_boolean => this.is_true(),
                    10 => one.lt(this),
                    _ => this.is_in(list.into_iter().map(lit)),
                }
            })
    })
}

fn predicates() -> impl Strategy<Value = Predicate> {
    let columns = prop::sample::select(vec![
        ("i8", "i64"),
        ("i8", "f64"),
        ("f32", "f64"),
        ("d", "f32"),
        ("s", "s"),
        ("i64", "f64"),
    ]);
    let pairs = (columns, 0..4usize).prop_map(|((a, b), op)| match op {
        0 => col(a).lt(col(b)),
        1 => col(a).eq(col(b)),
        2 => col(a).not_eq(col(b)),
        _ => col(a).null_safe_eq(col(b)),
    });
    prop_oneof![6 => comparisons(), 1 => pairs].prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.and(b)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.or(b)),
            inner.clone().prop_map(Predicate::not),
            (inner, prop::option::of(any::<bool>()))
                .prop_map(|(p, truth)| Predicate::Is { condition: Box::new(p), truth }),
        ]
    })
}

fn bound(predicate: &Predicate) -> BoundPredicate {
    predicate.bind(&schema()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn pruning_only_drops_files_that_cannot_match(files in files(), predicate in predicates()) {
        let bound = bound(&predicate);
        let kept = prune(&bound, &Bounds(&files)).unwrap();
        for (i, file) in files.iter().enumerate() {
            let mask = filter_mask(&bound, &file.batch()).unwrap();
            prop_assert!(kept.value(i) || mask.true_count() == 0, "{} drops {:?}", predicate, file);
        }
    }

    #[test]
    fn the_parts_of_a_split_are_equivalent_to_the_whole(files in files(), predicate in predicates()) {
        let whole = bound(&predicate);
        let (partition, other) = whole.split(|column| matches!(column.path.parts()[0].as_str(), "i8" | "s"));
        for file in files {
            let batch = file.batch();
            let mask = |part: &Option<BoundPredicate>, row: usize| part.as_ref().is_none_or(|part| {
                let mask = filter_mask(part, &batch).unwrap();
                mask.is_valid(row) && mask.value(row)
            });
            let expected = filter_mask(&whole, &batch).unwrap();
            for row in 0..batch.num_rows() {
            let both = mask(&partition, row) && mask(&other, row);
            prop_assert_eq!(both, expected.is_valid(row) && expected.value(row));
            }
        }
    }
}

/// Exact statistics must lead to dropped files. Without this test, pruning that keeps all files would pass.
#[test]
fn pruning_drops_files_that_the_bounds_rule_out() {
    let file = |places: &[Option<u32>]| File {
        rows: places.iter().map(|place| vec![*place; pools().len()]).collect(),
        quality: vec![Quality::Exact; pools().len()],
        counted: true,
    };
    // The ranges in the first file are i8: 0..=1; i64: 0..=2; d: -0.01..=0; f64: -0.0..=0.0; s: ab..=ab%. The second
    // file contains only NULLs.
    let files = [file(&[Some(2), Some(3), Some(2)]), file(&[None, None])];
    for (predicate, expected) in [
        (col("i8").eq(lit(2)), [false, false]),
        (col("i8").lt(lit(Literal::Decimal { unscaled: 5, scale: 1 })), [true, false]),
        (col("i8").eq(lit(Literal::Decimal { unscaled: 5, scale: 1 })), [false, false]),
        (col("i8").gt(lit(1.5)), [false, false]),
        (col("i8").is_in([lit(-5), lit(7)]), [false, false]),
        (col("i8").is_in([lit(0), lit(1)]).not(), [true, false]),
        (col("d").gt(lit(0)), [false, false]),
        (col("f64").eq(lit(1.0)), [false, false]),
        // The file may have a NaN, which is not in the statistics and is greater than 1.0.
        (col("f64").gt(lit(1.0)), [true, false]),
        (col("f64").lt(lit(-1)), [false, false]),
        (col("s").starts_with("ab").not(), [false, false]),
        (col("s").like("b%"), [false, false]),
        (col("s").is_null(), [false, true]),
        (col("s").is_not_null(), [true, false]),
        (col("s").null_safe_eq(lit(Literal::Null)), [false, true]),
        (col("n.x").gt(lit(5)), [false, false]),
        (col("i8").eq(lit(0)).not().and(col("i8").eq(lit(7))), [false, false]),
    ] {
        let files = if predicate.to_string().starts_with("n.x") {
            [file(&[Some(1)]), file(&[None])]
        } else {
            files.clone()
        };
        let kept = prune(&bound(&predicate), &Bounds(&files)).unwrap();
        assert_eq!([kept.value(0), kept.value(1)], expected, "{predicate}");
    }
}

#[test]
fn the_filter_compares_as_spark_does() {
    let batch = RecordBatch::try_from_iter([
        ("f64", Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(-0.0), None, Some(1.0)])) as ArrayRef),
        ("i8", Arc::new(Int8Array::from(vec![Some(1), Some(2), None, Some(3)])) as ArrayRef),
    ])
    .unwrap();
    let mask =
        |predicate: Predicate| filter_mask(&bound(&predicate), &batch).unwrap().iter().collect::<Vec<_>>();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(mask(col("f64").gt(lit(f64::INFINITY))), [yes, no, None, no]);
    assert_eq!(mask(col("f64").eq(lit(f64::NAN))), [yes, no, None, no]);
    assert_eq!(mask(col("f64").eq(lit(0))), [no, yes, None, no]);
    assert_eq!(mask(col("i8").is_in([lit(1), lit(Literal::Null)])), [yes, None, None, None]);
    assert_eq!(mask(col("i8").is_in([lit(1), lit(Literal::Null)]).not()), [no, None, None, None]);
    assert_eq!(mask(col("i8").null_safe_eq(lit(Literal::Null))), [no, no, yes, no]);
    assert_eq!(mask(col("i8").lt(lit(Literal::Decimal { unscaled: 25, scale: 1 }))), [yes, yes, None, no]);
    assert_eq!(mask(col("i8").eq(lit(1000)).not()), [yes, yes, None, yes]);
}

#[test]
fn names_resolve_as_in_spark() {
    let field = |name: &str| Field::new(name, DataType::Int32, true);
    let schema = Schema::new(vec![field("a"), field("A"), field("Bb"), field("c"), field("C")]);
    assert_eq!(col("A").eq(lit(1)).bind(&schema).unwrap().columns()[0].path, ColumnPath::new(["A"]));
    assert_eq!(col("bB").eq(lit(1)).bind(&schema).unwrap().columns()[0].path, ColumnPath::new(["Bb"]));
    assert!(col("x").eq(lit(1)).bind(&schema).is_err());
    let twice = Schema::new(vec![field("ab"), field("AB")]);
    assert!(col("aB").eq(lit(1)).bind(&twice).unwrap_err().to_string().contains("ambiguous"));
    let lenient = col("aB").eq(lit(1)).and(col("ab").eq(lit(1))).bind_for_pruning(&twice);
    assert!(lenient.has_unknown());
    assert_eq!(lenient.columns().len(), 1);
    assert!(col("a").eq(lit("1")).bind(&schema).is_err());
}
