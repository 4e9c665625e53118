//! Random conditions for the test of file skipping: their SQL text, as users and Spark write it, and an independent
//! implementation that evaluates them.

use std::cmp::Ordering;

use arrow::datatypes::DataType;
use chrono::{
    DateTime, Datelike, Duration, LocalResult, Months, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike,
};
use chrono_tz::Tz;

use super::random::Random;
use super::table::{Column, Row, V, is_nan, plain};

/// A column, or a function of a column.
#[derive(Debug, Clone)]
pub(super) struct Term {
    column: usize,
    function: Function,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Function {
    None,
    Year,
    Trunc(&'static str),
    DateTrunc(&'static str),
    DateAdd(i32),
    AddMonths(i32),
    LastDay,
    ToDate,
    ToTimestamp,
    ToClock,
    Left(usize),
    ToLong,
    ToDouble,
    ToDecimal,
    // The following functions are computed and have no bounds.
    Modulus,
    Month,
    Length,
    OrElse,
    IsSome,
}

#[derive(Debug, Clone)]
pub(super) enum Condition {
    Compare(&'static str, Term, V, bool),
    CompareTerms(&'static str, Term, Term),
    In(Term, Vec<V>),
    Between(Term, V, V),
    IsNull(Term),
    Like(Term, &'static str),
    StartsWith(Term, &'static str),
    Boolean(Term),
    Is(Box<Condition>, Option<bool>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    /// A part that the parser does not understand, together with its value: true, false or NULL.
    Unknown(Option<bool>),
}

const LIKES: [&str; 9] = ["ab%", "a%", "%", "ab", "a_c%", "_", "%b%", "abc_%", "a\\\\\\\\\\%%"];

pub(super) fn condition(random: &mut Random, columns: &[Column], zone: Tz, depth: usize) -> Condition {
    let next = |random: &mut Random| condition(random, columns, zone, depth - 1);
    if depth > 0 {
        match random.below(8) {
            0 | 1 => return Condition::And((0..2 + random.below(2)).map(|_| next(random)).collect()),
            2 | 3 => return Condition::Or((0..2 + random.below(2)).map(|_| next(random)).collect()),
            4 => return Condition::Not(Box::new(next(random))),
            5 if random.once_in(3) => {
                return Condition::Is(Box::new(next(random)), random.one(&[Some(true), Some(false), None]));
            }
            _ => {}
        }
    }
    let column = random.below(columns.len());
    let pool = &columns[column].pool;
    let functions: &[Function] = match pool[0] {
        V::Date(_) => DATES,
        V::Instant(_) => INSTANTS,
        V::Clock(_) => CLOCKS,
        V::Text(_) => &[
            Function::None,
            Function::None,
            Function::Left(2),
            Function::Left(0),
            Function::Length,
            Function::OrElse,
        ],
        V::Int(_) => &[
            Function::None,
            Function::None,
            Function::ToLong,
            Function::ToDouble,
            Function::ToDecimal,
            Function::Modulus,
            Function::IsSome,
        ],
        V::Dec(..) => &[Function::None, Function::ToDouble],
        _ => &[Function::None],
    };
    let term = Term { column, function: random.one(functions) };
    let is_wide = matches!(columns[column].data_type, DataType::Decimal128(38, _));
    let literal = |random: &mut Random| {
        if random.once_in(15) {
            return V::Null;
        }
        let value = term.of(random.pick(pool), zone).unwrap_or(V::Null);
        match value {
            V::Int(v) if random.once_in(3) => random
                .pick(&[V::Dec(125, 2), V::Dec(-50, 2), V::Float(1.0), V::Float(0.5), V::Int(v / 2)])
                .clone(),
            V::Dec(v, scale) if random.once_in(3) => {
                let next = V::Dec((v + 1).min(10i128.pow(38) - 1), scale);
                // Not every number can be compared with a decimal of 38 digits.
                let number = if is_wide { V::Dec(0, scale) } else { V::Int(1) };
                random.pick(&[number, V::Float(1.25), V::Float(f64::NAN), next]).clone()
            }
            V::Float(_) if random.once_in(3) => {
                random.pick(&[V::Int(0), V::Int(2), V::Dec(250, 2), V::Float(1.0)]).clone()
            }
            V::Date(v) if random.once_in(3) => V::Date(v + 1),
            V::Instant(v) if random.once_in(3) => V::Instant(v + 1),
            V::Clock(v) if random.once_in(3) => V::Clock(v - 1),
            value => value,
        }
    };
    let is_text = matches!(pool[0], V::Text(_)) && term.function == Function::None;
    match random.below(14) {
        0 => Condition::IsNull(term),
        1 => Condition::In(term.clone(), (0..1 + random.below(4)).map(|_| literal(random)).collect()),
        2 => {
            let (low, high) = (literal(random), literal(random));
            Condition::Between(term.clone(), low, high)
        }
        3 | 4 if is_text => Condition::Like(term, random.one(&LIKES)),
        5 if is_text => Condition::StartsWith(term, random.one(&["a", "ab", "é", "abc"])),
        3..=6 if matches!(pool[0], V::Bool(_)) => Condition::Boolean(term),
        7 => Condition::CompareTerms(random.one(&OPS), term.clone(), term.partner(random, columns)),
        8 if random.once_in(4) => Condition::Unknown(random.one(&[Some(true), Some(false), None])),
        _ => Condition::Compare(random.one(&OPS), term.clone(), literal(random), random.once_in(5)),
    }
}

const OPS: [&str; 7] = ["=", "<>", "<", "<=", ">", ">=", "<=>"];
const DATES: &[Function] = &[
    Function::None,
    Function::Year,
    Function::Trunc("MONTH"),
    Function::Trunc("week"),
    Function::Trunc("YYYY"),
    Function::Trunc("QUARTER"),
    Function::DateAdd(30),
    Function::DateAdd(-1),
    Function::AddMonths(1),
    Function::LastDay,
    Function::ToTimestamp,
    Function::ToClock,
    Function::Month,
];
const INSTANTS: &[Function] = &[
    Function::None,
    Function::None,
    Function::Year,
    Function::Trunc("MON"),
    Function::DateTrunc("DAY"),
    Function::DateTrunc("HOUR"),
    Function::DateTrunc("minute"),
    Function::DateTrunc("SECOND"),
    Function::DateTrunc("MILLISECOND"),
    Function::DateTrunc("WEEK"),
    Function::DateTrunc("YEAR"),
    Function::DateAdd(1),
    Function::LastDay,
    Function::ToDate,
    Function::ToDate,
    Function::ToClock,
    Function::Month,
];
const CLOCKS: &[Function] = &[
    Function::None,
    Function::None,
    Function::Year,
    Function::Trunc("MON"),
    Function::DateAdd(1),
    Function::ToDate,
    Function::ToTimestamp,
];

impl Term {
    /// Returns another term with which this one can be compared.
    fn partner(&self, random: &mut Random, columns: &[Column]) -> Self {
        let kind = |column: usize| {
            let wide = Some(&columns[column].data_type).filter(|t| matches!(t, DataType::Decimal128(38, _)));
            (std::mem::discriminant(&columns[column].pool[0]), wide)
        };
        let like: Vec<usize> =
            (0..columns.len()).filter(|column| kind(*column) == kind(self.column)).collect();
        Self { column: random.one(&like), function: self.function }
    }

    fn sql(&self, columns: &[Column]) -> String {
        let name = columns[self.column].sql;
        match self.function {
            Function::None => name.to_owned(),
            Function::Year => format!("year({name})"),
            Function::Trunc(unit) => format!("trunc({name}, '{unit}')"),
            Function::DateTrunc(unit) => format!("date_trunc('{unit}', {name})"),
            Function::DateAdd(days) if days < 0 => format!("date_sub({name}, {})", -days),
            Function::DateAdd(days) => format!("date_add({name}, {days})"),
            Function::AddMonths(months) => format!("add_months({name}, {months})"),
            Function::LastDay => format!("last_day({name})"),
            Function::ToDate => format!("CAST({name} AS DATE)"),
            Function::ToTimestamp => format!("CAST({name} AS TIMESTAMP)"),
            Function::ToClock => format!("CAST({name} AS TIMESTAMP_NTZ)"),
            Function::Left(length) => format!("substring({name}, 1, {length})"),
            Function::ToLong => format!("CAST({name} AS BIGINT)"),
            Function::ToDouble => format!("CAST({name} AS DOUBLE)"),
            Function::ToDecimal => format!("CAST({name} AS DECIMAL(24,2))"),
            Function::Modulus => format!("pmod({name}, 7)"),
            Function::Month => format!("month({name})"),
            Function::Length => format!("length({name} || 'x')"),
            Function::OrElse => format!("coalesce({name}, 'none')"),
            Function::IsSome => format!("CASE WHEN {name} IS NULL THEN 0 ELSE 1 END"),
        }
    }

    /// Evaluates the term for a value of the column. Returns `None` if a change of the clock makes the result
    /// ambiguous.
    fn of(&self, value: &V, zone: Tz) -> Option<V> {
        match (self.function, value) {
            (Function::IsSome, value) => return Some(V::Int((*value != V::Null).into())),
            (Function::OrElse, V::Null) => return Some(V::Text("none")),
            (_, V::Null) => return Some(V::Null),
            _ => {}
        }
        let day = |date: NaiveDate| {
            V::Date(date.signed_duration_since(DateTime::UNIX_EPOCH.date_naive()).num_days() as i32)
        };
        let utc = |micros: i64| DateTime::from_timestamp_micros(micros).unwrap();
        let date = match value {
            V::Date(v) => Some(DateTime::UNIX_EPOCH.date_naive() + Duration::days(i64::from(*v))),
            V::Instant(v) => Some(utc(*v).with_timezone(&zone).date_naive()),
            V::Clock(v) => Some(utc(*v).date_naive()),
            _ => None,
        };
        Some(match self.function {
            Function::None => value.clone(),
            Function::Year => V::Int(date?.year().into()),
            Function::Trunc(unit) => day(trunc(date?, unit)),
            Function::DateAdd(days) => day(date? + Duration::days(days.into())),
            Function::AddMonths(months) => day(date? + Months::new(months as u32)),
            Function::LastDay => day(date?.with_day(1)? + Months::new(1) - Duration::days(1)),
            Function::ToDate => day(date?),
            Function::ToTimestamp => match value {
                V::Date(_) => V::Instant(instant(zone, date?.and_hms_opt(0, 0, 0)?, None)?),
                V::Clock(v) => V::Instant(instant(zone, utc(*v).naive_utc(), None)?),
                other => other.clone(),
            },
            Function::ToClock => match value {
                V::Instant(v) => {
                    V::Clock(utc(*v).with_timezone(&zone).naive_local().and_utc().timestamp_micros())
                }
                V::Date(_) => V::Clock(date?.and_hms_opt(0, 0, 0)?.and_utc().timestamp_micros()),
                other => other.clone(),
            },
            Function::DateTrunc(unit) => {
                let V::Instant(v) = value else { return None };
                let here = utc(*v).with_timezone(&zone);
                let local = here.naive_local();
                let cut = match unit {
                    "HOUR" => local.date().and_hms_opt(local.hour(), 0, 0)?,
                    "minute" => local.date().and_hms_opt(local.hour(), local.minute(), 0)?,
                    "SECOND" => return Some(V::Instant(v.div_euclid(1_000_000) * 1_000_000)),
                    "MILLISECOND" => return Some(V::Instant(v.div_euclid(1_000) * 1_000)),
                    "DAY" => local.date().and_hms_opt(0, 0, 0)?,
                    other => trunc(local.date(), other).and_hms_opt(0, 0, 0)?,
                };
                let preferred =
                    matches!(unit, "HOUR" | "minute").then(|| here.offset().fix().local_minus_utc());
                V::Instant(instant(zone, cut, preferred)?)
            }
            Function::Left(length) => match value {
                V::Text(text) => {
                    V::Text(text.char_indices().nth(length).map_or(text, |(end, _)| &text[..end]))
                }
                _ => return None,
            },
            Function::ToLong | Function::OrElse | Function::IsSome => value.clone(),
            Function::Modulus => match value {
                V::Int(v) => V::Int(v.rem_euclid(7)),
                _ => return None,
            },
            Function::Month => V::Int(date?.month().into()),
            Function::Length => match value {
                V::Text(text) => V::Int(text.chars().count() as i64 + 1),
                _ => return None,
            },
            Function::ToDecimal => match value {
                V::Int(v) => V::Dec(i128::from(*v) * 100, 2),
                other => other.clone(),
            },
            Function::ToDouble => match value {
                V::Int(_) | V::Dec(..) => float(value),
                other => other.clone(),
            },
        })
    }
}

fn instant(zone: Tz, local: NaiveDateTime, preferred: Option<i32>) -> Option<i64> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(one) => Some(one.timestamp_micros()),
        LocalResult::Ambiguous(_, second) if preferred == Some(second.offset().fix().local_minus_utc()) => {
            Some(second.timestamp_micros())
        }
        LocalResult::Ambiguous(first, _) => Some(first.timestamp_micros()),
        LocalResult::None => None,
    }
}

fn trunc(date: NaiveDate, unit: &str) -> NaiveDate {
    let first = |month| NaiveDate::from_ymd_opt(date.year(), month, 1).unwrap();
    match unit {
        "MONTH" | "MON" => first(date.month()),
        "YYYY" | "YEAR" => first(1),
        "QUARTER" => first([1, 4, 7, 10][date.month0() as usize / 3]),
        _ => date - Duration::days(date.weekday().num_days_from_monday().into()),
    }
}

fn literal_sql(value: &V, zone: Tz) -> String {
    let utc = |micros: i64| DateTime::from_timestamp_micros(micros).unwrap();
    match value {
        V::Null => "NULL".to_owned(),
        V::Bool(v) => v.to_string(),
        V::Int(v) => format!("{v}L"),
        V::Dec(v, scale) => format!("{}BD", plain(*v, *scale)),
        V::Float(v) if v.is_nan() => "CAST('NaN' AS DOUBLE)".to_owned(),
        V::Float(v) if v.is_infinite() => {
            format!("CAST('{}Infinity' AS DOUBLE)", if *v < 0.0 { "-" } else { "" })
        }
        V::Float(v) => format!("{v:?}D"),
        V::Text(v) => format!("'{}'", v.replace('\\', "\\\\").replace('\'', "\\'")),
        V::Date(v) => format!("DATE '{}'", DateTime::UNIX_EPOCH.date_naive() + Duration::days(i64::from(*v))),
        V::Instant(v) => {
            let local = utc(*v).with_timezone(&zone);
            match zone.from_local_datetime(&local.naive_local()) {
                LocalResult::Single(_) => format!("TIMESTAMP '{}'", local.format("%Y-%m-%d %H:%M:%S%.6f")),
                _ => format!("TIMESTAMP '{}'", utc(*v).format("%Y-%m-%d %H:%M:%S%.6fZ")),
            }
        }
        V::Clock(v) => format!("TIMESTAMP_NTZ '{}'", utc(*v).format("%Y-%m-%d %H:%M:%S%.6f")),
    }
}

impl Condition {
    pub(super) fn sql(&self, columns: &[Column], zone: Tz) -> String {
        let literal = |value: &V| literal_sql(value, zone);
        let join = |parts: &[Self], word: &str| {
            parts.iter().map(|p| format!("({})", p.sql(columns, zone))).collect::<Vec<_>>().join(word)
        };
        match self {
            Self::Compare(op, term, value, false) => format!("{} {op} {}", term.sql(columns), literal(value)),
            Self::Compare(op, term, value, true) => {
                format!("{} {} {}", literal(value), flipped(op), term.sql(columns))
            }
            Self::CompareTerms(op, a, b) => format!("{} {op} {}", a.sql(columns), b.sql(columns)),
            Self::In(term, list) => format!(
                "{} IN ({})",
                term.sql(columns),
                list.iter().map(literal).collect::<Vec<_>>().join(", ")
            ),
            Self::Between(term, low, high) => {
                format!("{} BETWEEN {} AND {}", term.sql(columns), literal(low), literal(high))
            }
            Self::IsNull(term) => format!("{} IS NULL", term.sql(columns)),
            Self::Like(term, pattern) => format!("{} LIKE '{pattern}'", term.sql(columns)),
            Self::StartsWith(term, prefix) => format!("startswith({}, '{prefix}')", term.sql(columns)),
            Self::Boolean(term) => term.sql(columns),
            Self::Is(inner, truth) => {
                let truth = truth.map_or("UNKNOWN", |truth| if truth { "TRUE" } else { "FALSE" });
                format!("({}) IS {truth}", inner.sql(columns, zone))
            }
            Self::And(parts) => join(parts, " AND "),
            Self::Or(parts) => join(parts, " OR "),
            Self::Not(inner) => format!("NOT ({})", inner.sql(columns, zone)),
            Self::Unknown(_) => "hash(i) <> 7".to_owned(),
        }
    }

    /// Returns whether the parser will certainly not understand a part of the condition.
    pub(super) fn is_unknown(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::And(parts) | Self::Or(parts) => parts.iter().any(Self::is_unknown),
            Self::Not(inner) | Self::Is(inner, _) => inner.is_unknown(),
            _ => false,
        }
    }

    /// Returns whether a part of the condition is a computed value. Such a part does not skip files for engines that
    /// compute it themselves.
    pub(super) fn is_computed(&self) -> bool {
        let is_computed = |term: &Term| {
            matches!(
                term.function,
                Function::Modulus | Function::Month | Function::Length | Function::OrElse | Function::IsSome
            )
        };
        match self {
            Self::Compare(_, term, ..)
            | Self::In(term, _)
            | Self::Between(term, ..)
            | Self::IsNull(term)
            | Self::Like(term, _)
            | Self::StartsWith(term, _)
            | Self::Boolean(term) => is_computed(term),
            Self::CompareTerms(_, a, b) => is_computed(a) || is_computed(b),
            Self::Unknown(_) => false,
            Self::And(parts) | Self::Or(parts) => parts.iter().any(Self::is_computed),
            Self::Not(inner) | Self::Is(inner, _) => inner.is_computed(),
        }
    }

    /// Evaluates the condition for a row to true, false or NULL. Returns an error where [`Term::of`] returns `None`.
    pub(super) fn of(&self, row: &Row, zone: Tz) -> Result<Option<bool>, Ambiguous> {
        let value = |term: &Term| term.of(&row[term.column], zone).ok_or(Ambiguous);
        let all = |parts: &[Self], stop: bool| -> Result<Option<bool>, Ambiguous> {
            let truths = parts.iter().map(|part| part.of(row, zone)).collect::<Result<Vec<_>, _>>()?;
            Ok(if truths.contains(&Some(stop)) {
                Some(stop)
            } else if truths.contains(&None) {
                None
            } else {
                Some(!stop)
            })
        };
        Ok(match self {
            Self::Compare(op, term, literal, _) => compare(op, &value(term)?, literal),
            Self::CompareTerms(op, a, b) => compare(op, &value(a)?, &value(b)?),
            Self::In(term, list) => {
                let found: Vec<_> = list
                    .iter()
                    .map(|item| Ok(compare("=", &value(term)?, item)))
                    .collect::<Result<_, _>>()?;
                if found.contains(&Some(true)) {
                    Some(true)
                } else if found.contains(&None) {
                    None
                } else {
                    Some(false)
                }
            }
            Self::Between(term, low, high) => {
                let value = value(term)?;
                match (compare(">=", &value, low), compare("<=", &value, high)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            }
            Self::IsNull(term) => Some(value(term)? == V::Null),
            Self::Like(term, pattern) => match value(term)? {
                V::Text(text) => Some(like(
                    &pattern.replace("\\\\", "\\").chars().collect::<Vec<_>>(),
                    &text.chars().collect::<Vec<_>>(),
                )),
                _ => None,
            },
            Self::StartsWith(term, prefix) => match value(term)? {
                V::Text(text) => Some(text.starts_with(prefix)),
                _ => None,
            },
            Self::Boolean(term) => match value(term)? {
                V::Bool(truth) => Some(truth),
                _ => None,
            },
            Self::Is(inner, truth) => Some(inner.of(row, zone)? == *truth),
            Self::And(parts) => all(parts, false)?,
            Self::Or(parts) => all(parts, true)?,
            Self::Not(inner) => inner.of(row, zone)?.map(|truth| !truth),
            Self::Unknown(truth) => *truth,
        })
    }
}

/// The error for a value whose result is ambiguous, because of a local time that the clock skips.
#[derive(Debug)]
pub(super) struct Ambiguous;

fn flipped(op: &str) -> &str {
    match op {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        same => same,
    }
}

fn compare(op: &str, a: &V, b: &V) -> Option<bool> {
    if *a == V::Null || *b == V::Null {
        return (op == "<=>").then_some(*a == V::Null && *b == V::Null);
    }
    let ordering = match (a, b) {
        (V::Int(a), V::Dec(..)) => super::table::order(&V::Dec((*a).into(), 0), b),
        (V::Dec(..), V::Int(b)) => super::table::order(a, &V::Dec((*b).into(), 0)),
        (V::Float(_), V::Int(_) | V::Dec(..)) | (V::Int(_) | V::Dec(..), V::Float(_)) => {
            floats(&float(a), &float(b))
        }
        (V::Float(_), V::Float(_)) => floats(a, b),
        (a, b) => super::table::order(a, b),
    };
    Some(match op {
        "=" | "<=>" => ordering == Ordering::Equal,
        "<>" => ordering != Ordering::Equal,
        "<" => ordering == Ordering::Less,
        "<=" => ordering != Ordering::Greater,
        ">" => ordering == Ordering::Greater,
        _ => ordering != Ordering::Less,
    })
}

fn float(v: &V) -> V {
    match v {
        V::Int(v) => V::Float(*v as f64),
        V::Dec(v, scale) => V::Float(format!("{v}e-{scale}").parse().unwrap()),
        other => other.clone(),
    }
}

/// Compares floating-point numbers: NaN equals itself and is greater than all other values, and -0.0 equals 0.0.
fn floats(a: &V, b: &V) -> Ordering {
    match (a, b) {
        _ if is_nan(a) || is_nan(b) => is_nan(a).cmp(&is_nan(b)),
        (V::Float(a), V::Float(b)) => a.partial_cmp(b).unwrap(),
        _ => unreachable!(),
    }
}

fn like(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|i| like(rest, &text[i..])),
        Some(('_', rest)) => !text.is_empty() && like(rest, &text[1..]),
        Some(('\\', rest)) => {
            text.first() == rest.first() && !rest.is_empty() && like(&rest[1..], &text[1..])
        }
        Some((c, rest)) => text.first() == Some(c) && like(rest, &text[1..]),
    }
}
