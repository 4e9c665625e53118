//! Functions of dates and times, in the proleptic Gregorian calendar. Timestamps with a time zone have already been
//! converted to the session's local time, except for functions of Unix time (`unix_seconds`, `timestamp_seconds`, …).

use super::arithmetic::zip;
use super::date_format::DatePattern;
use super::operation::{DatePart, Operation, TimePart};
use super::room::Room;
use super::types::instants;
use crate::error::{Error, Result};
use crate::protocol::text::{MICROS_PER_DAY, calendar_date, days_since_epoch};
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, new_null_array};
use arrow::datatypes::{DataType, Date32Type, Int32Type, Int64Type, TimestampMicrosecondType};
use std::sync::Arc;

/// Computes a function of dates and times. A result that does not exist is NULL.
pub(super) fn time(operation: Operation, arguments: &[ArrayRef], room: &Room<'_>) -> Result<ArrayRef> {
    use Operation as O;
    Ok(match (operation, arguments) {
        (O::OfDate(part, _), [dates]) => Arc::new(
            dates
                .as_primitive::<Date32Type>()
                .unary::<_, Int32Type>(|days| date_part(days.into(), part) as i32),
        ),
        (O::OfTime(part, _), [times]) => {
            let times = times.as_primitive::<TimestampMicrosecondType>();
            Arc::new(times.unary::<_, Int32Type>(|time| {
                let seconds = time.rem_euclid(MICROS_PER_DAY) / 1_000_000;
                (match part {
                    TimePart::Hour => seconds / 3600,
                    TimePart::Minute => seconds / 60 % 60,
                    TimePart::Second => seconds % 60,
                }) as i32
            }))
        }
        (O::DateFormat(_), [times, pattern]) => {
            let pattern = pattern.as_string::<i32>();
            if pattern.null_count() > 0 || pattern.is_empty() {
                return Ok(new_null_array(&DataType::Utf8, times.len()));
            }
            let pattern = DatePattern::parse(pattern.value(0))?;
            let times = times.as_primitive::<TimestampMicrosecondType>();
            room.texts(|row| Ok(times.is_valid(row).then(|| pattern.format(times.value(row))).flatten()))?
        }
        (O::DateDiff(_), [end, start]) => {
            Arc::new(zip::<Date32Type, Date32Type, Int32Type>(end, start, i32::checked_sub))
        }
        (O::DateAdd(_), [date, days]) => {
            Arc::new(zip::<Date32Type, Int32Type, Date32Type>(date, days, i32::checked_add))
        }
        (O::MakeDate, [years, months, days]) => {
            let (months, days) = (months.as_primitive::<Int32Type>(), days.as_primitive::<Int32Type>());
            let years = years.as_primitive::<Int32Type>().iter();
            let dates =
                years.zip(months).zip(days).map(|((year, month), day)| make_date(year?, month?, day?));
            Arc::new(dates.collect::<PrimitiveArray<Date32Type>>())
        }
        (O::UnixSeconds, [times]) => whole_units(times, 1_000_000),
        (O::UnixMillis, [times]) => whole_units(times, 1_000),
        (O::UnixMicros, [times]) => whole_units(times, 1),
        (O::TimestampSeconds, [units]) => instants_of(units, 1_000_000),
        (O::TimestampMillis, [units]) => instants_of(units, 1_000),
        (O::TimestampMicros, [units]) => instants_of(units, 1),
        _ => return Err(Error::invalid_argument(format!("{operation:?} is not a function of times"))),
    })
}

fn date_part(days: i64, part: DatePart) -> i64 {
    let (year, month, day) = calendar_date(days);
    // 1970-01-01 was a Thursday.
    let weekday = (days + 3).rem_euclid(7);
    match part {
        DatePart::Month => month,
        DatePart::Quarter => (month - 1) / 3 + 1,
        DatePart::Day => day,
        DatePart::DayOfWeek => (weekday + 1) % 7 + 1,
        DatePart::WeekDay => weekday,
        DatePart::DayOfYear => days - days_since_epoch(year, 1, 1) + 1,
        DatePart::WeekOfYear => {
            // An ISO week belongs to the year that contains its Thursday.
            let thursday = days - weekday + 3;
            let (year, ..) = calendar_date(thursday);
            (thursday - days_since_epoch(year, 1, 1)) / 7 + 1
        }
    }
}

fn make_date(year: i32, month: i32, day: i32) -> Option<i32> {
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let days = days_since_epoch(year, month, day);
    (1..=12).contains(&month).then_some(())?;
    (calendar_date(days) == (year, month, day)).then(|| i32::try_from(days).ok())?
}

fn whole_units(times: &ArrayRef, micros: i64) -> ArrayRef {
    let times = times.as_primitive::<TimestampMicrosecondType>();
    Arc::new(times.unary::<_, Int64Type>(|time| time.div_euclid(micros)))
}

fn instants_of(units: &ArrayRef, micros: i64) -> ArrayRef {
    let units = units.as_primitive::<Int64Type>();
    let times = units.unary_opt::<_, TimestampMicrosecondType>(|units| units.checked_mul(micros));
    Arc::new(times.with_data_type(instants()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, Datelike, Duration};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_of_dates_agree_with_chrono(days in -700_000i32..2_900_000) {
            let date = DateTime::UNIX_EPOCH.date_naive() + Duration::days(days.into());
            let part = |part| date_part(days.into(), part);
            prop_assert_eq!(part(DatePart::Month), i64::from(date.month()));
            prop_assert_eq!(part(DatePart::Quarter), i64::from(date.quarter()));
            prop_assert_eq!(part(DatePart::Day), i64::from(date.day()));
            prop_assert_eq!(part(DatePart::DayOfWeek), i64::from(date.weekday().num_days_from_sunday()) + 1);
            prop_assert_eq!(part(DatePart::WeekDay), i64::from(date.weekday().num_days_from_monday()));
            prop_assert_eq!(part(DatePart::DayOfYear), i64::from(date.ordinal()));
            prop_assert_eq!(part(DatePart::WeekOfYear), i64::from(date.iso_week().week()));
            prop_assert_eq!(make_date(date.year(), date.month() as i32, date.day() as i32), Some(days));
        }
    }

    #[test]
    fn make_date_returns_null_for_dates_that_do_not_exist() {
        assert_eq!(make_date(2023, 2, 29), None);
        assert_eq!(make_date(2023, 13, 1), None);
        assert_eq!(make_date(2023, 0, 1), None);
        assert_eq!(make_date(2024, 2, 29), Some(19_782));
    }
}
