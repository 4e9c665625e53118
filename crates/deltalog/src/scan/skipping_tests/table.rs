//! Random tables for the test of file skipping: rows, and the statistics that a writer records for their files.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit, i256};
use chrono::{DateTime, Duration, FixedOffset};

use super::random::Random;

/// A value, or NULL.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum V {
    Null,
    Bool(bool),
    Int(i64),
    /// A decimal: its unscaled number, and its scale.
    Dec(i128, u32),
    Float(f64),
    Text(&'static str),
    Date(i32),
    Instant(i64),
    Clock(i64),
}

/// A column: its path in the schema, its name in SQL, its type, and the values in its pool.
pub(super) struct Column {
    pub(super) sql: &'static str,
    pub(super) path: &'static [&'static str],
    pub(super) data_type: DataType,
    pub(super) pool: Vec<V>,
}

const DAY: i64 = 86_400_000_000;
/// The length at which strings are truncated in statistics.
const LONGEST: usize = 3;

fn instants() -> Vec<i64> {
    // Instants around a new year, around changes of the clock in Europe and (at 00:01) in Newfoundland, and instants
    // with fractions of a millisecond.
    let around = [
        0,
        19_722 * DAY,
        1_711_846_800_000_000,
        1_730_001_600_000_000 - 3_600_000_000 * 2,
        1_162_089_060_000_000,
    ];
    let steps = [
        -3_600_000_000,
        -1_800_000_001,
        -1,
        0,
        1,
        999,
        1_000_500,
        1_800_000_000,
        7_200_000_000,
        12 * 3_600_000_000,
    ];
    around.into_iter().flat_map(|at| steps.map(|step| at + step)).collect()
}

/// Unscaled decimals in ascending order.
const WIDE: [i128; 18] = [
    -(10i128.pow(38) - 1),
    -1_234_567_890_123_456_790,
    -1_234_567_890_123_456_789,
    -1,
    0,
    999_999_999_999_999,
    1_000_000_000_000_000,
    9_007_199_254_740_993,
    100_000_000_000_000_000,
    100_000_000_000_000_001,
    1_234_567_890_123_456_788,
    1_234_567_890_123_456_789,
    1_234_567_890_123_456_795,
    1_234_567_890_123_456_800,
    1_234_567_890_123_456_801,
    12_345_678_901_234_567_890_123_456_789_012_345,
    12_345_678_901_234_567_890_123_456_789_012_346,
    10i128.pow(38) - 1,
];

pub(super) fn columns() -> Vec<Column> {
    let decimals = |scale: u32, of: &[i128]| of.iter().map(|v| V::Dec(*v, scale)).collect::<Vec<_>>();
    let column = |sql, path, data_type, pool| Column { sql, path, data_type, pool };
    let ints = |of: &[i64]| of.iter().map(|v| V::Int(*v)).collect::<Vec<_>>();
    let floats =
        [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 0.125, 2.5, f64::INFINITY, f64::NAN].map(V::Float).to_vec();
    let texts = [
        "a",
        "ab",
        "abc",
        "abcd",
        "abc\u{fffd}",
        "abc\u{10000}",
        "abc\u{10ffff}x",
        "abcé",
        "b",
        "a\\%\"",
        "é",
        "\u{10ffff}",
        "ab{}",
    ];
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    vec![
        column("p", &["p"], DataType::Utf8, ["a", "ab", "b", "é'x"].map(V::Text).to_vec()),
        column("q", &["q"], DataType::Int32, ints(&[-1, 0, 1, 2])),
        column("i", &["i"], DataType::Int64, ints(&[i64::MIN, -2, -1, 0, 1, 2, 3, (1 << 53) + 1, i64::MAX])),
        column("b8", &["b8"], DataType::Int8, ints(&[-128, -1, 0, 1, 127])),
        column(
            "d",
            &["d"],
            DataType::Decimal128(12, 2),
            decimals(2, &[-999, -150, -1, 0, 1, 125, 250, 9_999_999_999]),
        ),
        // Neighbors that are the same number as a double, and the ends of the range.
        column("d38", &["d38"], DataType::Decimal128(38, 2), decimals(2, &WIDE)),
        column("n2.d20", &["n2", "d20"], DataType::Decimal128(38, 20), decimals(20, &WIDE)),
        column("d0", &["d0"], DataType::Decimal128(38, 0), decimals(0, &WIDE)),
        column("f", &["f"], DataType::Float64, floats),
        column("s", &["s"], DataType::Utf8, texts.map(V::Text).to_vec()),
        column(
            "dt",
            &["dt"],
            DataType::Date32,
            [-1, 0, 1, 30, 19_722, 19_723, 19_782, 19_783, 20_088].map(V::Date).to_vec(),
        ),
        column("ts", &["ts"], utc, instants().into_iter().map(V::Instant).collect()),
        column(
            "tn",
            &["tn"],
            DataType::Timestamp(TimeUnit::Microsecond, None),
            instants().into_iter().map(V::Clock).collect(),
        ),
        column("bo", &["bo"], DataType::Boolean, vec![V::Bool(false), V::Bool(true)]),
        column("`n`.x", &["n", "x"], DataType::Int64, ints(&[-5, 0, 5, 6])),
    ]
}

/// The number of partition columns, which are the first columns.
pub(super) const PARTITION_COLUMNS: usize = 2;

pub(super) fn schema(columns: &[Column]) -> Schema {
    let field = |column: &Column| match column.path {
        [name] => Field::new(*name, column.data_type.clone(), true),
        [outer, inner] => Field::new(
            *outer,
            DataType::Struct(Fields::from(vec![Field::new(*inner, column.data_type.clone(), true)])),
            true,
        ),
        _ => unreachable!(),
    };
    Schema::new(columns.iter().map(field).collect::<Vec<_>>())
}

pub(super) type Row = Vec<V>;

pub(super) struct File {
    pub(super) rows: Vec<Row>,
    pub(super) partition: Vec<(&'static str, Option<String>)>,
    pub(super) stats: Option<String>,
}

/// Creates a file whose values are a few neighbors in each column's pool, so that files differ.
fn file(random: &mut Random, columns: &[Column]) -> File {
    let from: Vec<(usize, usize)> =
        columns.iter().map(|c| (random.below(c.pool.len()), 1 + random.below(3))).collect();
    let only_nulls: Vec<bool> = columns.iter().map(|_| random.once_in(12)).collect();
    let has_nulls = random.once_in(2);
    let mut rows: Vec<Row> = (0..random.below(5))
        .map(|_| {
            let value = |(i, column): (usize, &Column)| {
                let (first, width) = from[i];
                if only_nulls[i] || (has_nulls && random.once_in(4)) {
                    V::Null
                } else {
                    column.pool[(first + random.below(width)).min(column.pool.len() - 1)].clone()
                }
            };
            columns.iter().enumerate().map(value).collect()
        })
        .collect();
    let partition: Row = (0..PARTITION_COLUMNS)
        .map(|i| if random.once_in(6) { V::Null } else { random.pick(&columns[i].pool).clone() })
        .collect();
    for row in &mut rows {
        row[..PARTITION_COLUMNS].clone_from_slice(&partition);
    }
    let text = |value: &V| match value {
        V::Text(text) => Some((*text).to_owned()),
        V::Int(number) => Some(number.to_string()),
        _ => None,
    };
    let mut partition: Vec<_> =
        columns.iter().zip(&partition).map(|(column, value)| (column.path[0], text(value))).collect();
    if random.once_in(4) {
        partition.reverse();
    }
    let stats = stats(random, columns, &rows);
    File { rows, partition, stats }
}

pub(super) fn files(random: &mut Random, columns: &[Column]) -> Vec<File> {
    (0..1 + random.below(6)).map(|_| file(random, columns)).collect()
}

/// Returns the statistics that a writer records for `rows`. Sometimes they are missing or nonsensical.
fn stats(random: &mut Random, columns: &[Column], rows: &[Row]) -> Option<String> {
    let (wide, counted) = (random.once_in(5), !random.once_in(6));
    let own = random.once_in(2);
    let mut parts = [String::new(), String::new(), String::new()];
    for (at, column) in columns.iter().enumerate().skip(PARTITION_COLUMNS) {
        if random.once_in(8) {
            continue;
        }
        let place = |v: &V| column.pool.iter().position(|p| p == v || (is_nan(p) && is_nan(v)));
        let places: Vec<usize> = rows.iter().filter_map(|row| place(&row[at])).collect();
        let numbers: Vec<usize> =
            places.iter().copied().filter(|place| !is_nan(&column.pool[*place])).collect();
        let last = column.pool.iter().rposition(|v| !is_nan(v)).unwrap();
        let mut sorted: Vec<usize> = (0..=last).collect();
        sorted.sort_by(|a, b| order(&column.pool[*a], &column.pool[*b]));
        let rank = |place: &usize| sorted.iter().position(|s| s == place).unwrap();
        let (mut least, mut greatest) = (numbers.iter().map(rank).min(), numbers.iter().map(rank).max());
        if wide {
            least = least.map(|rank| rank.saturating_sub(random.below(2)));
            greatest = greatest.map(|rank| (rank + random.below(2)).min(last));
        }
        let bound = |rank: Option<usize>, random: &mut Random, upper| {
            rank.and_then(|rank| json(&column.pool[sorted[rank]], upper, random))
        };
        let (mut min, mut max) = (bound(least, random, false), bound(greatest, random, true));
        if places.len() > numbers.len() && own {
            max = None;
        } else if places.len() > numbers.len() {
            // Writers treat NaN in different ways.
            match random.below(4) {
                0 => (min, max) = (None, None),
                1 => max = Some("\"NaN\"".to_owned()),
                2 if numbers.is_empty() => {
                    (min, max) = (Some("\"NaN\"".to_owned()), Some("\"NaN\"".to_owned()))
                }
                _ => {}
            }
        }
        if random.once_in(12) {
            min = Some(random.pick(&["null", "{}", "[1]", "\"?\"", "1e999", "1.5.2"]).to_string());
        }
        let nulls = rows.len() - places.len();
        let nulls =
            if wide && nulls > 0 && nulls < rows.len() { 1 + random.below(rows.len() - 1) } else { nulls };
        for (part, value) in parts.iter_mut().zip([min, max, Some(nulls.to_string())]) {
            let Some(value) = value else { continue };
            let member = match column.path {
                [name] => format!("\"{name}\":{value}"),
                [outer, inner] => format!("\"{outer}\": {{ \"{inner}\" :{value}}}"),
                _ => unreachable!(),
            };
            if !part.is_empty() {
                part.push(',');
            }
            part.push_str(&member);
        }
    }
    let [min, max, nulls] = parts;
    let mut members = vec![
        format!("\"minValues\":{{{min}}}"),
        format!("\"maxValues\":{{{max}}}"),
        format!("\"nullCount\": {{{nulls}}}"),
    ];
    if counted {
        members.insert(random.below(4), format!("\"numRecords\":{}", rows.len()));
    }
    if wide {
        members.push("\"tightBounds\":false".to_owned());
    }
    if own {
        members.push("\"deltalog\":1".to_owned());
    }
    let text = format!("{{{}}}", members.join(","));
    match random.below(16) {
        0 => None,
        1 => Some(text[..text.floor_char_boundary(random.below(text.len()))].to_owned()),
        2 => Some(
            (random.one(&[
                "",
                "null",
                "[]",
                "{",
                "{\"numRecords\":\"many\"}",
                "{\"minValues\":7,\"maxValues\":null}",
            ]))
            .to_owned(),
        ),
        _ => Some(text),
    }
}

pub(super) fn is_nan(v: &V) -> bool {
    matches!(v, V::Float(f) if f.is_nan())
}

/// Compares values in the order of their pool, with NaN last.
pub(super) fn order(a: &V, b: &V) -> std::cmp::Ordering {
    match (a, b) {
        (V::Bool(a), V::Bool(b)) => a.cmp(b),
        (V::Int(a), V::Int(b)) | (V::Instant(a), V::Instant(b)) | (V::Clock(a), V::Clock(b)) => a.cmp(b),
        (V::Dec(a, of_a), V::Dec(b, of_b)) => {
            let scaled = |v: i128, by: u32| i256::from_i128(v) * i256::from_i128(10i128.pow(by));
            scaled(*a, of_b.saturating_sub(*of_a)).cmp(&scaled(*b, of_a.saturating_sub(*of_b)))
        }
        (V::Date(a), V::Date(b)) => a.cmp(b),
        (V::Text(a), V::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (V::Float(a), V::Float(b)) if a == b => std::cmp::Ordering::Equal,
        (V::Float(a), V::Float(b)) => a.is_nan().cmp(&b.is_nan()).then(a.total_cmp(b)),
        _ => unreachable!("{a:?} {b:?}"),
    }
}

/// Formats the digits of a decimal.
pub(super) fn plain(unscaled: i128, scale: u32) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let (whole, fraction) =
        (unscaled.unsigned_abs() / 10u128.pow(scale), unscaled.unsigned_abs() % 10u128.pow(scale));
    match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction:0width$}", width = scale as usize),
    }
}

/// Formats a bound as a writer does.
fn json(value: &V, upper: bool, random: &mut Random) -> Option<String> {
    Some(match value {
        V::Null => return None,
        V::Bool(v) => v.to_string(),
        V::Int(v) => v.to_string(),
        V::Dec(v, scale) => match random.below(5) {
            0 => format!("\"{}\"", plain(*v, *scale)),
            1 => format!("{v}E-{scale}"),
            // The format that `deltalake` uses.
            2 | 3 => format!("{:?}", *v as f64 / 10f64.powi(*scale as i32)),
            _ => plain(*v, *scale),
        },
        V::Float(v) if v.is_infinite() => format!("\"{}Infinity\"", if *v < 0.0 { "-" } else { "" }),
        // Zero may have either sign in the rows, and the writer may have recorded the other sign.
        V::Float(v) if *v == 0.0 => (random.one(&["0.0", "-0.0"])).to_owned(),
        V::Float(v) => format!("{v:?}"),
        V::Date(v) => format!("\"{}\"", DateTime::UNIX_EPOCH.date_naive() + Duration::days(i64::from(*v))),
        V::Text(v) => {
            let cut: String = v.chars().take(LONGEST).collect();
            let rest = v.chars().nth(LONGEST);
            let text = match (upper, rest) {
                (true, Some(c)) if c < '\u{fffd}' => {
                    format!("{cut}{}", random.pick(&['\u{fffd}', '\u{10ffff}']))
                }
                // Java compares UTF-16 units, and the units of these characters are below U+FFFD.
                (true, Some(c)) if c > '\u{ffff}' && c < '\u{10ffff}' => {
                    format!("{cut}{}", random.pick(&['\u{fffd}', '\u{10ffff}']))
                }
                (true, Some(_)) => (*v).to_owned(),
                _ => cut,
            };
            serde_json::Value::from(text).to_string()
        }
        // Writers truncate bounds to the millisecond, even the maximum.
        V::Instant(v) => {
            let instant = DateTime::from_timestamp_micros(v.div_euclid(1_000) * 1_000).unwrap();
            // Writers truncate the seconds of a time zone's offset.
            let offset: i32 = random.one(&[0, 0, 19_800, -12_600, 3_208, -2_670]);
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
            let local = instant.with_timezone(&FixedOffset::east_opt(offset).unwrap());
            let local = local.format("%Y-%m-%dT%H:%M:%S%.3f");
            let text = format!("{local}{sign}{:02}:{:02}", minutes / 60, minutes % 60);
            format!("\"{}\"", if random.once_in(2) { text.replace("+00:00", "Z") } else { text })
        }
        V::Clock(v) => {
            let instant = DateTime::from_timestamp_micros(v.div_euclid(1_000) * 1_000).unwrap();
            format!(
                "\"{}\"",
                instant.format(random.pick::<&str>(&["%Y-%m-%dT%H:%M:%S%.3f", "%Y-%m-%d %H:%M:%S%.3f"]))
            )
        }
    })
}

/// Returns the rows as a batch, as the reader of data files would.
pub(super) fn batch(columns: &[Column], rows: &[&Row]) -> RecordBatch {
    let schema = Arc::new(schema(columns));
    let arrays = columns.iter().enumerate().map(|(at, column)| {
        let values = rows.iter().map(|row| &row[at]);
        macro_rules! array {
            ($array:ty, $variant:ident) => {
                values
                    .map(|v| if let V::$variant(v) = v { Some((*v).into()) } else { None })
                    .collect::<$array>()
            };
        }
        let array: ArrayRef = match &column.data_type {
            DataType::Boolean => Arc::new(
                values.map(|v| if let V::Bool(v) = v { Some(*v) } else { None }).collect::<BooleanArray>(),
            ),
            DataType::Int8 => Arc::new(
                values.map(|v| if let V::Int(v) = v { Some(*v as i8) } else { None }).collect::<Int8Array>(),
            ),
            DataType::Int32 => Arc::new(
                values
                    .map(|v| if let V::Int(v) = v { Some(*v as i32) } else { None })
                    .collect::<Int32Array>(),
            ),
            DataType::Int64 => Arc::new(array!(Int64Array, Int)),
            DataType::Decimal128(precision, scale) => Arc::new(
                values
                    .map(|v| if let V::Dec(v, _) = v { Some(*v) } else { None })
                    .collect::<Decimal128Array>()
                    .with_precision_and_scale(*precision, *scale)
                    .unwrap(),
            ),
            DataType::Float64 => Arc::new(array!(Float64Array, Float)),
            DataType::Date32 => Arc::new(array!(Date32Array, Date)),
            DataType::Timestamp(_, None) => Arc::new(array!(TimestampMicrosecondArray, Clock)),
            DataType::Timestamp(..) => {
                Arc::new(array!(TimestampMicrosecondArray, Instant).with_timezone("UTC"))
            }
            _ => Arc::new(
                values.map(|v| if let V::Text(v) = v { Some(*v) } else { None }).collect::<StringArray>(),
            ),
        };
        match schema.field(at).data_type() {
            DataType::Struct(fields) => {
                Arc::new(StructArray::new(fields.clone(), vec![array], None)) as ArrayRef
            }
            _ => array,
        }
    });
    let arrays = arrays.collect();
    RecordBatch::try_new_with_options(
        schema,
        arrays,
        &RecordBatchOptions::new().with_row_count(Some(rows.len())),
    )
    .unwrap()
}

/// Returns the files as `add` actions with the columns of the log.
pub(super) fn actions(files: &[File]) -> RecordBatch {
    let mut partitions = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for file in files {
        for (name, value) in &file.partition {
            partitions.keys().append_value(name);
            partitions.values().append_option(value.as_ref());
        }
        partitions.append(true).unwrap();
    }
    let paths: StringArray = (0..files.len()).map(|i| Some(i.to_string())).collect();
    let stats: StringArray = files.iter().map(|file| file.stats.as_deref()).collect();
    RecordBatch::try_from_iter([
        ("path", Arc::new(paths) as ArrayRef),
        ("partitionValues", Arc::new(partitions.finish())),
        ("stats", Arc::new(stats)),
    ])
    .unwrap()
}
