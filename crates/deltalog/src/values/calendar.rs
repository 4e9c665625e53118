//! Converts dates and timestamps that Spark has stored in its old calendar.
//!
//! Spark 2.4 and earlier, and later releases in LEGACY mode, count days in the hybrid calendar of
//! `java.util.GregorianCalendar`, which is Julian before 1582-10-15 and Gregorian from then on. All other software uses
//! the proleptic Gregorian calendar. The footer of a file shows which calendar the file uses, and Spark converts the
//! values when it reads them (`DataSourceUtils.datetimeRebaseSpec`, `int96RebaseSpec`, and `RebaseDateTime` in its
//! sources). This module does the same:
//!
//! | key in the footer | meaning |
//! | --- | --- |
//! | `org.apache.spark.version` | Spark has written the file: before 3.0.0, all columns are old; before 3.1.0, INT96 |
//! | `org.apache.spark.legacyDateTime` | dates and INT64 timestamps are old |
//! | `org.apache.spark.legacyINT96` | INT96 timestamps are old |
//! | `org.apache.spark.timeZone` | the time zone that the writer has used to convert timestamps |
//!
//! - The values of a file without a Spark version are not converted, as in Spark's mode CORRECTED, the default since
//!   4.0.
//! - A conversion keeps the local date and time: the Julian 1500-01-01 becomes the Gregorian 1500-01-01. A day that
//!   only exists in the Julian calendar, such as 1500-02-29, becomes the day after the previous one.
//! - Only newer Spark versions have timestamps without a time zone, so these are never converted.
//! - Timestamps are converted if their time zone has a fixed offset. For other zones, the old and the new
//!   implementation also disagree about offsets before 1900, so timestamps before 1900 are refused. They are also
//!   refused if the footer does not name the zone. (Spark then uses the zone of its own process.)

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use parquet::basic::Type;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnDescPtr;

/// 1582-10-15, the first day on which the two calendars agree.
const FIRST_COMMON_DAY: i32 = -141_427;
/// 1900-01-01T00:00:00Z. From then on, the two calendars agree in every time zone.
const FIRST_COMMON_MICROS: i64 = -2_208_988_800_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// The calendar of a Parquet file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileCalendar {
    /// Whether dates and INT64 timestamps are in the old calendar.
    is_old: bool,
    /// For each leaf column, whether it is an INT96 column in the old calendar.
    old_int96: Vec<bool>,
    zone: Option<String>,
}

/// How the values of a column are converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rebase {
    Dates,
    /// Timestamps, converted in the time zone that the footer names.
    Timestamps(Option<String>),
}

/// Information about the writer of a file, from the footer.
struct Writer<'a> {
    /// Whether dates and INT64 timestamps are in the old calendar.
    is_old: bool,
    is_int96_old: bool,
    zone: Option<&'a str>,
}

impl<'a> Writer<'a> {
    /// Returns the information about the writer from a footer, or `None` if the writer is not Spark.
    fn of(metadata: &'a ParquetMetaData) -> Option<Self> {
        let key_values = metadata.file_metadata().key_value_metadata()?;
        let find = |name: &str| {
            let mut spark = key_values.iter();
            spark.find(|pair| pair.key.strip_prefix("org.apache.spark.") == Some(name))?.value.as_deref()
        };
        // Spark itself compares these versions as strings, too.
        let version = find("version")?;
        Some(Self {
            is_old: version < "3.0.0" || find("legacyDateTime").is_some(),
            is_int96_old: version < "3.1.0" || find("legacyINT96").is_some(),
            zone: find("timeZone"),
        })
    }
}

fn is_int96(column: &ColumnDescPtr) -> bool {
    column.physical_type() == Type::INT96
}

/// Returns whether any column of the file may be in the old calendar.
pub(crate) fn may_be_old(metadata: &ParquetMetaData) -> bool {
    let columns = metadata.file_metadata().schema_descr().columns();
    Writer::of(metadata)
        .is_some_and(|writer| writer.is_old || writer.is_int96_old && columns.iter().any(is_int96))
}

impl FileCalendar {
    /// Returns the calendar of a file, according to its footer.
    pub(crate) fn of(metadata: &ParquetMetaData) -> Self {
        let Some(writer) = Writer::of(metadata) else { return Self::default() };
        let columns = metadata.file_metadata().schema_descr().columns().iter();
        Self {
            is_old: writer.is_old,
            old_int96: columns.map(|column| writer.is_int96_old && is_int96(column)).collect(),
            zone: writer.zone.map(str::to_owned),
        }
    }

    /// Returns how the values of the leaf column `leaf` are converted, if its type is `file` in the file and `table` in
    /// the table; `None` if no conversion is needed.
    pub(crate) fn rebase(&self, leaf: usize, file: &DataType, table: &DataType) -> Option<Rebase> {
        let is_old_int96 = self.old_int96.get(leaf).copied().unwrap_or_default();
        match (file, table) {
            (DataType::Date32, _) if self.is_old => Some(Rebase::Dates),
            (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, Some(_))) if self.is_old => {
                Some(Rebase::Timestamps(self.zone.clone()))
            }
            // In Arrow, an INT96 has no zone.
            (DataType::Timestamp(..), DataType::Timestamp(_, Some(_))) if is_old_int96 => {
                Some(Rebase::Timestamps(self.zone.clone()))
            }
            _ => None,
        }
    }
}

impl Rebase {
    /// Converts dates, or timestamps in microseconds.
    ///
    /// # Errors
    /// `NotYetImplemented` for a timestamp before 1900 in a time zone whose offset is not known, and `CastError` for a
    /// value that does not fit in a date or timestamp.
    pub(crate) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match (self, array.data_type()) {
            (Self::Dates, DataType::Date32) => {
                let days = array.as_primitive::<Date32Type>();
                Ok(Arc::new(days.try_unary::<_, Date32Type, ArrowError>(|day| {
                    gregorian_day(day).ok_or_else(|| out_of_range("date"))
                })?))
            }
            (Self::Timestamps(zone), DataType::Timestamp(TimeUnit::Microsecond, arrow_zone)) => {
                let offset = zone.as_deref().and_then(fixed_offset);
                let micros = array.as_primitive::<TimestampMicrosecondType>();
                let rebased = micros.try_unary::<_, TimestampMicrosecondType, ArrowError>(|micros| {
                    if micros >= FIRST_COMMON_MICROS {
                        return Ok(micros);
                    }
                    let offset = offset.ok_or_else(|| unknown_offset(zone.as_deref()))?;
                    gregorian_micros(micros, offset).ok_or_else(|| out_of_range("timestamp"))
                })?;
                Ok(Arc::new(rebased.with_timezone_opt(arrow_zone.clone())))
            }
            (_, other) => {
                Err(ArrowError::CastError(format!("the old calendar has no values of type {other}")))
            }
        }
    }
}

fn out_of_range(what: &str) -> ArrowError {
    ArrowError::CastError(format!("a {what} of the old calendar is beyond the range of {what}s"))
}

fn unknown_offset(zone: Option<&str>) -> ArrowError {
    let zone = match zone {
        Some(zone) => format!("in the zone '{zone}'"),
        None => "in an unknown zone".to_owned(),
    };
    ArrowError::NotYetImplemented(format!(
        "a timestamp before 1900 in the calendar of Spark 2.4 {zone} cannot be converted, because the offset from UTC \
         at that time depends on the writer"
    ))
}

/// Converts the number of a day in the hybrid calendar to its number in the proleptic Gregorian calendar.
fn gregorian_day(day: i32) -> Option<i32> {
    if day >= FIRST_COMMON_DAY {
        return Some(day);
    }
    // Days are counted from the Julian 0000-03-01, so that a leap day is the last day of a four-year cycle.
    let days = i64::from(day) + 719_470;
    let (cycle, day_of_cycle) = (days.div_euclid(1461), days.rem_euclid(1461));
    let year_of_cycle = (day_of_cycle / 365).min(3);
    let day_of_year = day_of_cycle - 365 * year_of_cycle;
    let year = 4 * cycle + year_of_cycle;
    // The result is the same day and month in the Gregorian year, which is also counted from March. Before the end of
    // February, months and days have the same index in both kinds of years.
    let first_of_year =
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) - 719_468;
    i32::try_from(first_of_year + day_of_year).ok()
}

/// Converts an instant in microseconds from the hybrid calendar, in a time zone that is always `offset` microseconds
/// ahead of UTC.
fn gregorian_micros(micros: i64, offset: i64) -> Option<i64> {
    let local = micros.checked_add(offset)?;
    let day = i32::try_from(local.div_euclid(MICROS_PER_DAY)).ok()?;
    let shift = i64::from(gregorian_day(day)?).checked_sub(day.into())?.checked_mul(MICROS_PER_DAY)?;
    micros.checked_add(shift)
}

/// Returns how many microseconds a time zone is ahead of UTC, if this has never changed.
fn fixed_offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "UTC" | "GMT" | "UT" | "Etc/UTC" | "Etc/GMT" | "Etc/UCT" | "UCT" | "Zulu") {
        return Some(0);
    }
    let offset = ["UTC", "GMT", "UT"].iter().find_map(|name| zone.strip_prefix(name)).unwrap_or(zone);
    let sign = match offset.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (hours, minutes) = offset.get(1..)?.split_once(':').unwrap_or((offset.get(1..)?, "0"));
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    (hours <= 18 && minutes < 60)
        .then(|| sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60) * MICROS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;
    use proptest::prelude::*;

    use super::*;

    fn day(year: i32, month: u32, day: u32) -> i32 {
        let date = NaiveDate::from_ymd_opt(year, month, day).unwrap();
        date.signed_duration_since(NaiveDate::default()).num_days() as i32
    }

    /// The days at which the difference between the two calendars changes in Spark, each with the difference from that
    /// day on. The numbers are those in Spark's `RebaseDateTime`.
    const SWITCHES: [(i32, i32); 14] = [
        (-719_164, 2),
        (-682_945, 1),
        (-646_420, 0),
        (-609_895, -1),
        (-536_845, -2),
        (-500_320, -3),
        (-463_795, -4),
        (-390_745, -5),
        (-354_220, -6),
        (-317_695, -7),
        (-244_645, -8),
        (-208_120, -9),
        (-171_595, -10),
        (-141_427, 0),
    ];

    proptest! {
        #[test]
        fn days_are_converted_as_in_spark(day in -719_164..100_000) {
            let (_, difference) = SWITCHES.iter().rfind(|(from, _)| *from <= day).unwrap();
            prop_assert_eq!(gregorian_day(day), Some(day + difference));
        }

        #[test]
        fn a_conversion_keeps_the_order_of_days(day in -10_000_000..0) {
            prop_assert!(gregorian_day(day) <= gregorian_day(day + 1));
        }

        #[test]
        fn no_value_makes_a_conversion_panic(day: i32, micros: i64, offset in -64_800_000_000i64..64_800_000_000) {
            let _ = (gregorian_day(day), gregorian_micros(micros, offset));
        }
    }

    #[test]
    fn known_dates_are_converted_between_calendars() {
        assert_eq!(gregorian_day(day(1582, 10, 14)), Some(day(1582, 10, 4)));
        assert_eq!(gregorian_day(day(1500, 1, 10)), Some(day(1500, 1, 1)));
        assert_eq!(gregorian_day(day(1500, 3, 11)), Some(day(1500, 3, 1)));
        // The Julian 1500-02-29.
        assert_eq!(gregorian_day(day(1500, 3, 10)), Some(day(1500, 3, 1)));
        // This day is in the year 44 BC.
        assert_eq!(gregorian_day(day(-43, 3, 13)), Some(day(-43, 3, 15)));
        for (at, _) in SWITCHES {
            for near in [at - 1, at, at + 1] {
                let (_, difference) =
                    SWITCHES.iter().rfind(|(from, _)| *from <= near).unwrap_or(&SWITCHES[0]);
                assert_eq!(gregorian_day(near), Some(near + difference));
            }
        }
    }

    #[test]
    fn zones_of_fixed_offset() {
        for (zone, hours) in
            [("UTC", 0.0), ("Etc/UTC", 0.0), ("+01:00", 1.0), ("GMT-3", -3.0), ("UTC+05:30", 5.5)]
        {
            assert_eq!(fixed_offset(zone), Some((hours * 3.6e9) as i64), "{zone}");
        }
        for zone in ["Europe/Berlin", "", "+", "+25:00", "GMT+1:99"] {
            assert_eq!(fixed_offset(zone), None, "{zone}");
        }
    }
}
