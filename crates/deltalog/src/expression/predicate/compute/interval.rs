//! Shifts dates and timestamps by an interval, as in Spark: `a + INTERVAL 3 MONTHS`.
//!
//! - An interval of months keeps the day of the month. If the resulting month is too short, it takes that month's
//!   last day.
//! - Other intervals add local calendar days, which may have 23 or 25 hours, and then elapsed time. A resulting local
//!   time that occurs twice keeps the original offset; a local time that is skipped moves forward.

use super::super::function::add_months;
use super::super::zone::Clock;
use crate::error::{Error, Result};
use crate::protocol::text::MICROS_PER_DAY;
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Date32Type, TimestampMicrosecondType};
use std::fmt;
use std::sync::Arc;

/// A constant interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interval {
    /// Years and months.
    Months(i32),
    /// Whole days; weeks count as days.
    Days(i32),
    /// Days and times, in microseconds.
    Micros(i64),
}

impl Interval {
    /// Returns the interval with these numbers and units. The names of units are in upper case. Returns `None` for an
    /// unknown unit, or if the parts mix months or years with days or times.
    pub(in crate::expression::predicate) fn of(parts: &[(String, String)]) -> Option<Self> {
        let (mut months, mut micros) = (None::<i64>, None::<i64>);
        let mut has_time = false;
        for (number, unit) in parts {
            let unit = unit.strip_suffix('S').unwrap_or(unit);
            let (total, each) = match unit {
                "YEAR" => (&mut months, 12),
                "MONTH" => (&mut months, 1),
                "WEEK" => (&mut micros, 7 * MICROS_PER_DAY),
                "DAY" => (&mut micros, MICROS_PER_DAY),
                "HOUR" => (&mut micros, 3_600_000_000),
                "MINUTE" => (&mut micros, 60_000_000),
                "SECOND" => (&mut micros, 1_000_000),
                "MILLISECOND" => (&mut micros, 1_000),
                "MICROSECOND" => (&mut micros, 1),
                _ => return None,
            };
            has_time |= !matches!(unit, "WEEK" | "DAY");
            let amount = match (number.split_once('.'), unit) {
                (None, _) => number.parse::<i64>().ok()?.checked_mul(each)?,
                (Some((whole, fraction)), "SECOND") if (1..=6).contains(&fraction.len()) => {
                    format!("{whole}{fraction:0<6}").parse().ok()?
                }
                _ => return None,
            };
            *total = Some(total.unwrap_or_default().checked_add(amount)?);
        }
        match (months, micros) {
            (Some(months), None) => i32::try_from(months).ok().map(Self::Months),
            (None, Some(micros)) if has_time => Some(Self::Micros(micros)),
            (None, Some(micros)) => i32::try_from(micros / MICROS_PER_DAY).ok().map(Self::Days),
            _ => None,
        }
    }

    /// Returns the interval with the opposite sign.
    pub(in crate::expression::predicate) fn negated(self) -> Option<Self> {
        Some(match self {
            Self::Months(months) => Self::Months(months.checked_neg()?),
            Self::Days(days) => Self::Days(days.checked_neg()?),
            Self::Micros(micros) => Self::Micros(micros.checked_neg()?),
        })
    }

    /// Returns the type of a shifted value: a date becomes a timestamp if the interval contains a time.
    pub(super) fn result_type(self, from: &DataType) -> Option<DataType> {
        match (self, from) {
            (Self::Micros(_), DataType::Date32) => Some(super::types::instants()),
            (_, DataType::Date32 | DataType::Timestamp(..)) => Some(from.clone()),
            _ => None,
        }
    }

    fn date(self, days: i32) -> Option<i32> {
        match self {
            Self::Months(months) => i32::try_from(add_months(days.into(), months.into())).ok(),
            Self::Days(more) => days.checked_add(more),
            Self::Micros(_) => None,
        }
    }

    fn time(self, instant: i64, clock: Clock) -> Option<i64> {
        let local = clock.local(instant)?;
        let (shifted, rest) = match self {
            Self::Months(months) => {
                let days = add_months(local.div_euclid(MICROS_PER_DAY), months.into());
                (days.checked_mul(MICROS_PER_DAY)?.checked_add(local.rem_euclid(MICROS_PER_DAY))?, 0)
            }
            Self::Days(days) => (local.checked_add(i64::from(days).checked_mul(MICROS_PER_DAY)?)?, 0),
            Self::Micros(micros) => {
                let rest = micros % MICROS_PER_DAY;
                (local.checked_add(micros - rest)?, rest)
            }
        };
        let with_same_offset = instant.checked_add(shifted.checked_sub(local)?)?;
        let moved = match clock.local(with_same_offset)? == shifted {
            true => with_same_offset,
            false => clock.instant(shifted)?,
        };
        moved.checked_add(rest)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Months(months) => write!(f, "INTERVAL {months} MONTH"),
            Self::Days(days) => write!(f, "INTERVAL {days} DAY"),
            Self::Micros(micros) => write!(f, "INTERVAL {micros} MICROSECOND"),
        }
    }
}

/// Shifts dates or timestamps. A result that does not exist is NULL.
pub(super) fn shift(by: Interval, clock: Clock, values: &ArrayRef) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Date32 => {
            let dates = values.as_primitive::<Date32Type>();
            Ok(Arc::new(dates.unary_opt::<_, Date32Type>(|days| by.date(days))))
        }
        DataType::Timestamp(_, zone) => {
            let clock = if zone.is_some() { clock } else { Clock::UTC };
            let times = values.as_primitive::<TimestampMicrosecondType>();
            let shifted = times.unary_opt::<_, TimestampMicrosecondType>(|time| by.time(time, clock));
            Ok(Arc::new(shifted.with_data_type(values.data_type().clone())))
        }
        other => Err(Error::invalid_argument(format!("values of type {other} cannot be shifted by {by}"))),
    }
}
