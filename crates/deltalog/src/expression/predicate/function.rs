//! Functions of one value that preserve its order: if `a <= b` then `f(a) <= f(b)`.
//!
//! - The bounds of a column therefore give bounds of the function's values: the condition `year(t) = 2024` skips
//!   files just as a condition on `t` itself does.
//! - A function returns NULL only for NULL, and for arguments without a result, that is, if the result type cannot
//!   represent the result. Such arguments are below or above all arguments that have a result.
//! - The functions have Spark's meaning: dates and times are in the proleptic Gregorian calendar and in the session's
//!   time zone.

use super::values::decimals_to_floats;
use super::zone::Clock;
use crate::error::{Error, Result};
use crate::protocol::text::{MICROS_PER_DAY, calendar_date, days_since_epoch};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, TimeUnit};
use std::fmt;
use std::sync::Arc;

/// A function of one value that preserves its order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Function {
    /// `CAST(value AS type)`.
    Cast(CastType, Clock),
    /// `year(value)`, for a date or timestamp.
    Year(Clock),
    /// `trunc(value, 'unit')`, for a date or a timestamp's date: the first day of its year, quarter, month or
    /// week.
    Trunc(TruncUnit, Clock),
    /// `date_trunc('unit', value)`, for a timestamp.
    DateTrunc(TruncUnit, Clock),
    /// `date_add(value, days)`, for a date or a timestamp's date.
    DateAdd(i32, Clock),
    /// `add_months(value, months)`: the same day of the month, or the last day of a shorter month.
    AddMonths(i32, Clock),
    /// `last_day(value)`: the last day of its month.
    LastDay(Clock),
    /// `substring(value, 1, length)`: the first characters of a string.
    Left(u32),
}

/// The target type of a cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "Spark's names")]
pub enum CastType {
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal(u8, i8),
    String,
    Boolean,
    Binary,
    Date,
    Timestamp,
    TimestampNtz,
}

/// The unit to which a date or time is truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "Spark's names")]
pub enum TruncUnit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
}

/// What a function's result is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The value itself.
    Value,
    /// A lower bound: at most the result of every greater argument.
    Min,
    /// An upper bound: at least the result of every smaller argument.
    Max,
}

impl CastType {
    /// Returns the Arrow type.
    pub(super) fn arrow(self) -> DataType {
        match self {
            Self::TinyInt => DataType::Int8,
            Self::SmallInt => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Decimal(precision, scale) => DataType::Decimal128(precision, scale),
            Self::String => DataType::Utf8,
            Self::Boolean => DataType::Boolean,
            Self::Binary => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Timestamp => utc(),
            Self::TimestampNtz => DataType::Timestamp(TimeUnit::Microsecond, None),
        }
    }

    /// Returns the type with this name, which is in upper case and without blanks.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "TINYINT" | "BYTE" => Self::TinyInt,
            "SMALLINT" | "SHORT" => Self::SmallInt,
            "INT" | "INTEGER" => Self::Int,
            "BIGINT" | "LONG" => Self::BigInt,
            "FLOAT" | "REAL" => Self::Float,
            "DOUBLE" => Self::Double,
            "STRING" => Self::String,
            "BOOLEAN" => Self::Boolean,
            "BINARY" => Self::Binary,
            "DATE" => Self::Date,
            "TIMESTAMP" | "TIMESTAMP_LTZ" => Self::Timestamp,
            "TIMESTAMP_NTZ" => Self::TimestampNtz,
            "DECIMAL" | "DEC" | "NUMERIC" => Self::Decimal(10, 0),
            _ => {
                let inner = ["DECIMAL(", "DEC(", "NUMERIC("]
                    .iter()
                    .find_map(|start| name.strip_prefix(start))?
                    .strip_suffix(')')?;
                let (precision, scale) = inner.split_once(',').unwrap_or((inner, "0"));
                let (precision, scale): (u8, i8) = (precision.parse().ok()?, scale.parse().ok()?);
                ((1..=38).contains(&precision) && (0..=38).contains(&scale))
                    .then_some(Self::Decimal(precision, scale))?
            }
        })
    }
}

impl fmt::Display for CastType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TinyInt => "TINYINT",
            Self::SmallInt => "SMALLINT",
            Self::Int => "INT",
            Self::BigInt => "BIGINT",
            Self::Float => "FLOAT",
            Self::Double => "DOUBLE",
            Self::Decimal(precision, scale) => return write!(f, "DECIMAL({precision},{scale})"),
            Self::String => "STRING",
            Self::Boolean => "BOOLEAN",
            Self::Binary => "BINARY",
            Self::Date => "DATE",
            Self::Timestamp => "TIMESTAMP",
            Self::TimestampNtz => "TIMESTAMP_NTZ",
        })
    }
}

impl TruncUnit {
    /// Returns the unit for a name, ignoring case.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "YEAR" | "YYYY" | "YY" => Self::Year,
            "QUARTER" => Self::Quarter,
            "MONTH" | "MON" | "MM" => Self::Month,
            "WEEK" => Self::Week,
            "DAY" | "DD" => Self::Day,
            "HOUR" => Self::Hour,
            "MINUTE" => Self::Minute,
            "SECOND" => Self::Second,
            "MILLISECOND" => Self::Millisecond,
            "MICROSECOND" => Self::Microsecond,
            _ => return None,
        })
    }

    /// Returns whether dates can be truncated to this unit; otherwise the result is NULL.
    pub(super) fn is_of_dates(self) -> bool {
        matches!(self, Self::Year | Self::Quarter | Self::Month | Self::Week)
    }

    /// Returns the unit's name as Spark writes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Year => "YEAR",
            Self::Quarter => "QUARTER",
            Self::Month => "MONTH",
            Self::Week => "WEEK",
            Self::Day => "DAY",
            Self::Hour => "HOUR",
            Self::Minute => "MINUTE",
            Self::Second => "SECOND",
            Self::Millisecond => "MILLISECOND",
            Self::Microsecond => "MICROSECOND",
        }
    }

    /// Truncates a day to a year, quarter, month or week; returns it unchanged for other units.
    fn truncate_day(self, days: i64) -> i64 {
        let (year, month, _) = calendar_date(days);
        match self {
            Self::Year => days_since_epoch(year, 1, 1),
            Self::Quarter => days_since_epoch(year, (month - 1) / 3 * 3 + 1, 1),
            Self::Month => days_since_epoch(year, month, 1),
            // Weeks begin on Mondays; 1969-12-29 was a Monday.
            Self::Week => days - (days + 3).rem_euclid(7),
            _ => days,
        }
    }

    /// Returns the length of the unit in microseconds; `None` for a day and longer units.
    fn micros(self) -> Option<i64> {
        Some(match self {
            Self::Hour => 3_600_000_000,
            Self::Minute => 60_000_000,
            Self::Second => 1_000_000,
            Self::Millisecond => 1_000,
            Self::Microsecond => 1,
            _ => return None,
        })
    }
}

fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Returns the maximum number of digits of a whole number.
fn digits(data_type: &DataType) -> Option<i16> {
    match data_type {
        DataType::Int8 => Some(3),
        DataType::Int16 => Some(5),
        DataType::Int32 => Some(10),
        DataType::Int64 => Some(19),
        _ => None,
    }
}

fn is_timestamp(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(TimeUnit::Microsecond, _))
}

impl Function {
    /// Returns the result type for arguments of type `from`. Returns `None` if the function is not defined for them
    /// or does not preserve their order.
    pub(super) fn result_type(&self, from: &DataType) -> Option<DataType> {
        use DataType as T;
        let dated = *from == T::Date32 || is_timestamp(from);
        match self {
            Self::Cast(to, _) => {
                let to = to.arrow();
                let keeps = match (from, &to) {
                    (T::Utf8, T::Utf8)
                    | (T::Boolean, T::Boolean)
                    | (T::Binary, T::Binary)
                    | (T::Date32, T::Date32) => true,
                    // Of the casts between numbers, only those are accepted in which every value fits. In other
                    // casts, the session's settings determine whether a value that does not fit becomes NULL, an
                    // error or another value.
                    (whole, T::Float32 | T::Float64) if whole.is_signed_integer() => true,
                    (whole, T::Decimal128(precision, scale)) if whole.is_signed_integer() => digits(whole)
                        .is_some_and(|digits| i16::from(*precision) - i16::from(*scale) >= digits),
                    (a, b) if a.is_signed_integer() && b.is_signed_integer() => digits(a) <= digits(b),
                    (T::Decimal128(p, s), T::Decimal128(q, t)) => {
                        s <= t && i16::from(*p) - i16::from(*s) <= i16::from(*q) - i16::from(*t)
                    }
                    (T::Decimal128(..) | T::Float32 | T::Float64, T::Float64) | (T::Float32, T::Float32) => {
                        true
                    }
                    (T::Date32, to) => is_timestamp(to),
                    (from, to) if is_timestamp(from) => is_timestamp(to) || *to == T::Date32,
                    _ => false,
                };
                keeps.then_some(to)
            }
            Self::Year(_) => dated.then_some(T::Int32),
            Self::Trunc(unit, _) => (dated && unit.is_of_dates()).then_some(T::Date32),
            Self::DateAdd(..) | Self::AddMonths(..) | Self::LastDay(_) => dated.then_some(T::Date32),
            Self::DateTrunc(..) => dated.then(utc),
            Self::Left(_) => (*from == T::Utf8).then_some(T::Utf8),
        }
    }

    /// Computes the results for `array`. A value without a result becomes NULL.
    ///
    /// # Errors
    /// Fails if [`Self::result_type`] returns `None` for the type of `array`.
    pub(super) fn apply(&self, array: &ArrayRef, purpose: Purpose) -> Result<ArrayRef> {
        let from = array.data_type();
        let Some(to) = self.result_type(from) else {
            return Err(Error::schema_mismatch(format!("{self:?} is not defined for values of type {from}")));
        };
        match self {
            Self::Cast(_, clock) => cast_values(array, &to, *clock, purpose),
            Self::Left(length) => {
                let texts = array.as_string_opt::<i32>().ok_or_else(|| {
                    Error::schema_mismatch("strings are not in the expected Arrow type Utf8")
                })?;
                let left = |text: &str| text.chars().take(*length as usize).collect::<String>();
                Ok(Arc::new(texts.iter().map(|text| text.map(left)).collect::<StringArray>()))
            }
            Self::DateTrunc(unit, clock) => {
                let instants = as_numbers(&cast_values(array, &utc(), *clock, purpose)?)?;
                from_numbers(&instants.unary_opt(|instant| date_trunc(instant, *unit, *clock, purpose)), &to)
            }
            Self::Year(clock) => days(array, *clock, purpose, &to, |days| Some(calendar_date(days).0)),
            Self::Trunc(unit, clock) => {
                days(array, *clock, purpose, &to, |days| Some(unit.truncate_day(days)))
            }
            Self::DateAdd(more, clock) => {
                days(array, *clock, purpose, &to, |days| days.checked_add(i64::from(*more)))
            }
            Self::AddMonths(more, clock) => {
                days(array, *clock, purpose, &to, |days| Some(add_months(days, i64::from(*more))))
            }
            Self::LastDay(clock) => days(array, *clock, purpose, &to, |days| Some(last_day(days))),
        }
    }
}

/// The maximum number of days that can be added to a date in the years 1 to 9999.
const MOST_DAYS: i64 = 2_000_000_000;

/// Returns whether `functions`, applied one after another, have a result for every value that statistics can bound,
/// that is, for dates and times in the years 1 to 9999.
pub(super) fn are_total(functions: &[Function]) -> bool {
    let days = functions.iter().map(|function| match function {
        Function::DateAdd(days, _) => i64::from(*days).abs(),
        Function::AddMonths(months, _) => 31 * i64::from(*months).abs(),
        _ => 0,
    });
    days.sum::<i64>() <= MOST_DAYS
}

/// Applies `of` to dates, or to the local dates of timestamps by `clock`, as days since 1970.
fn days(
    array: &ArrayRef,
    clock: Clock,
    purpose: Purpose,
    to: &DataType,
    of: impl Fn(i64) -> Option<i64>,
) -> Result<ArrayRef> {
    let dates = cast_values(array, &DataType::Date32, clock, purpose)?;
    from_numbers(&as_numbers(&dates)?.unary_opt(of), to)
}

pub(super) fn add_months(days: i64, more: i64) -> i64 {
    let (year, month, day) = calendar_date(days);
    let months = year * 12 + month - 1 + more;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    days_since_epoch(year, month, day.min(month_length(year, month)))
}

fn last_day(days: i64) -> i64 {
    let (year, month, _) = calendar_date(days);
    days_since_epoch(year, month, month_length(year, month))
}

fn month_length(year: i64, month: i64) -> i64 {
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_since_epoch(next_year, next_month, 1) - days_since_epoch(year, month, 1)
}

fn date_trunc(instant: i64, unit: TruncUnit, clock: Clock, purpose: Purpose) -> Option<i64> {
    if let Some(micros @ 1..=1_000_000) = unit.micros() {
        return instant.checked_sub(instant.rem_euclid(micros));
    }
    let local = match purpose {
        Purpose::Value => clock.local(instant)?,
        Purpose::Min => clock.least(instant)?,
        Purpose::Max => clock.greatest(instant)?,
    };
    let cut = match unit.micros() {
        Some(micros) => local.checked_sub(local.rem_euclid(micros))?,
        None => unit.truncate_day(local.div_euclid(MICROS_PER_DAY)).checked_mul(MICROS_PER_DAY)?,
    };
    match (purpose, unit.micros()) {
        // The hour or minute began with the offset from UTC that the clock has at `instant`, unless the offset has
        // changed in between.
        (Purpose::Value, Some(_)) => {
            let same_setting = instant.checked_sub(local.checked_sub(cut)?)?;
            if clock.local(same_setting) == Some(cut) { Some(same_setting) } else { clock.instant(cut) }
        }
        (Purpose::Value, None) => clock.instant(cut),
        (Purpose::Min, _) => clock.instants(cut).map(|(first, _)| first),
        (Purpose::Max, _) => clock.instants(cut).map(|(_, last)| last),
    }
}

/// Casts dates and times in the time zone of the clock, and other values as Arrow does.
pub(super) fn cast_values(
    array: &ArrayRef,
    to: &DataType,
    clock: Clock,
    purpose: Purpose,
) -> Result<ArrayRef> {
    use DataType as T;
    let from = array.data_type();
    if from == to {
        return Ok(Arc::clone(array));
    }
    let local = |instant: i64| match purpose {
        Purpose::Value => clock.local(instant),
        Purpose::Min => clock.least(instant),
        Purpose::Max => clock.greatest(instant),
    };
    let instant = |local: i64| match purpose {
        Purpose::Value => clock.instant(local),
        Purpose::Min => clock.instants(local).map(|(first, _)| first),
        Purpose::Max => clock.instants(local).map(|(_, last)| last),
    };
    let numbers = || as_numbers(array);
    match (from, to) {
        (T::Timestamp(_, Some(_)), T::Date32) => {
            from_numbers(&numbers()?.unary_opt(|v| Some(local(v)?.div_euclid(MICROS_PER_DAY))), to)
        }
        (T::Timestamp(_, None), T::Date32) => {
            from_numbers(&numbers()?.unary_opt(|v| Some(v.div_euclid(MICROS_PER_DAY))), to)
        }
        (T::Timestamp(_, Some(_)), T::Timestamp(_, None)) => from_numbers(&numbers()?.unary_opt(local), to),
        (T::Timestamp(_, None), T::Timestamp(_, Some(_))) => from_numbers(&numbers()?.unary_opt(instant), to),
        (T::Timestamp(_, Some(_)), T::Timestamp(_, Some(_))) => from_numbers(&numbers()?, to),
        (T::Date32, T::Timestamp(_, None)) => {
            from_numbers(&numbers()?.unary_opt(|v| v.checked_mul(MICROS_PER_DAY)), to)
        }
        (T::Date32, T::Timestamp(_, Some(_))) => {
            from_numbers(&numbers()?.unary_opt(|v| instant(v.checked_mul(MICROS_PER_DAY)?)), to)
        }
        (T::Decimal128(..), T::Float64) => {
            let decimals = array.as_primitive_opt::<Decimal128Type>().ok_or_else(|| {
                Error::schema_mismatch("decimals are not in the expected Arrow type Decimal128")
            })?;
            Ok(Arc::new(decimals_to_floats(decimals)))
        }
        _ => cast(array, to).map_err(|error| {
            Error::schema_mismatch(format!("{from} cannot be cast to {to}")).with_source(error)
        }),
    }
}

/// Returns whole numbers, dates or timestamps as 64-bit numbers.
fn as_numbers(array: &ArrayRef) -> Result<Int64Array> {
    let failed = || Error::schema_mismatch(format!("values of type {} are not numbers", array.data_type()));
    let through = match array.data_type() {
        DataType::Date32 => cast(array, &DataType::Int32).map_err(|error| failed().with_source(error))?,
        _ => Arc::clone(array),
    };
    let numbers = cast(&through, &DataType::Int64).map_err(|error| failed().with_source(error))?;
    numbers.as_primitive_opt::<Int64Type>().cloned().ok_or_else(failed)
}

/// Converts numbers back to the type `to`, as the inverse of [`as_numbers`]; numbers that `to` cannot represent
/// become NULL.
fn from_numbers(numbers: &Int64Array, to: &DataType) -> Result<ArrayRef> {
    let failed = |error| Error::schema_mismatch(format!("numbers cannot be cast to {to}")).with_source(error);
    match to {
        DataType::Date32 => cast(&cast(numbers, &DataType::Int32).map_err(failed)?, to).map_err(failed),
        _ => cast(numbers, to).map_err(failed),
    }
}
