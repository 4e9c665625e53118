//! Parses and formats decimals, dates and timestamps. Dates and timestamps are in ISO 8601 format, in the proleptic
//! Gregorian calendar, with microseconds.
//!
//! - Every value that fits its type can be formatted and parsed again.

/// The number of microseconds in a day.
pub(crate) const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Formats the date `days` after 1970-01-01 as `yyyy-MM-dd`. Years outside 0..=9999 have a sign.
pub(crate) fn date_text(days: i32) -> String {
    let (year, month, day) = calendar_date(days.into());
    match year {
        0..=9999 => format!("{year:04}-{month:02}-{day:02}"),
        _ => format!("{year:+05}-{month:02}-{day:02}"),
    }
}

/// Returns the year, month and day of the date `days` after 1970-01-01. `days` must not be close to the limits of an
/// `i64`.
pub(crate) fn calendar_date(days: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the leap day is the last day of a year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Formats the time `micros` after 1970-01-01 00:00:00 as `yyyy-MM-dd HH:mm:ss[.ffffff]`.
pub(crate) fn timestamp_text(micros: i64) -> String {
    let (mut text, fraction) = seconds_text(micros);
    if fraction > 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text
}

/// Formats the time `micros` after 1970-01-01 00:00:00 as `yyyy-MM-dd HH:mm:ss`. Returns the text, and the microseconds
/// within the second.
pub(crate) fn seconds_text(micros: i64) -> (String, i64) {
    // An i64 of microseconds covers about 107 million days, so the conversion cannot fail.
    let days = i32::try_from(micros.div_euclid(MICROS_PER_DAY)).unwrap_or_default();
    let of_day = micros.rem_euclid(MICROS_PER_DAY);
    let seconds = of_day / 1_000_000;
    let text =
        format!("{} {:02}:{:02}:{:02}", date_text(days), seconds / 3600, seconds / 60 % 60, seconds % 60);
    (text, of_day % 1_000_000)
}

/// The time zone at the end of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offset {
    /// The timestamp has no zone.
    None,
    /// The offset from UTC, in seconds to the east.
    Seconds(i64),
}

/// Formats a decimal with `scale` digits after the decimal point. Returns `None` if `scale` is negative.
pub(crate) fn decimal_text(unscaled: i128, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok()?;
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at_checked(digits.len() - scale)?;
    let sign = if unscaled < 0 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// Parses a decimal in plain or exponent notation. Returns its value times 10^`scale`, or `None` if it has more digits
/// than `precision` or needs a larger scale. Nothing is rounded.
pub(crate) fn parse_decimal(text: &str, precision: u8, scale: impl Into<i32>) -> Option<i128> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Zeros are only multiplied in when another digit follows, so that `unscaled` never ends with zeros.
    let (mut unscaled, mut zeros) = (0_i128, 0_i32);
    for byte in whole.bytes().chain(fraction.bytes()) {
        match byte {
            b'0' => zeros += i32::from(unscaled != 0),
            b'1'..=b'9' => {
                for _ in 0..=zeros {
                    unscaled = unscaled.checked_mul(10)?;
                }
                unscaled = unscaled.checked_add(i128::from(byte - b'0'))?;
                zeros = 0;
            }
            _ => return None,
        }
    }
    if unscaled == 0 {
        return Some(0);
    }
    let fraction_digits = i32::try_from(fraction.len()).ok()?;
    let shift = exponent.checked_add(zeros)?.checked_sub(fraction_digits)?.checked_add(scale.into())?;
    let factor = 10_i128.checked_pow(u32::try_from(shift).ok()?)?;
    let unscaled = unscaled.checked_mul(factor)?;
    let fits = unscaled < 10_i128.checked_pow(u32::from(precision))?;
    fits.then_some(if negative { -unscaled } else { unscaled })
}

/// Returns `text` as a JSON string.
pub(crate) fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Parses `yyyy-MM-dd` to days since 1970-01-01.
pub(crate) fn parse_date(text: &str) -> Option<i32> {
    let mut cursor = Cursor(text.as_bytes());
    let days = cursor.date()?;
    cursor.0.is_empty().then_some(())?;
    i32::try_from(days).ok()
}

/// Parses `yyyy-MM-dd[( |T)HH:mm[:ss[.f…]]][Z|±HH[:mm[:ss]]]`. Returns the offset, and the local date and time as
/// microseconds since 1970-01-01 00:00:00: the offset is not applied. Digits of the second after the sixth decimal are
/// dropped, as in Spark.
pub(crate) fn parse_timestamp(text: &str) -> Option<(i64, Offset)> {
    let (micros, _, offset) = timestamp_parts(text)?;
    Some((micros, offset))
}

/// Does the same as [`parse_timestamp`], but returns `None` if a digit after the sixth decimal of the second is not
/// zero.
pub(crate) fn parse_exact_timestamp(text: &str) -> Option<(i64, Offset)> {
    let (micros, is_exact, offset) = timestamp_parts(text)?;
    is_exact.then_some((micros, offset))
}

/// Returns the microseconds, whether no nonzero digits were dropped, and the offset.
fn timestamp_parts(text: &str) -> Option<(i64, bool, Offset)> {
    let mut cursor = Cursor(text.as_bytes());
    let days = cursor.date()?;
    let (mut micros, mut is_exact) = (0, true);
    if cursor.take(b'T') || cursor.take(b' ') {
        let hours = cursor.number(1, 2, 23)?;
        cursor.take(b':').then_some(())?;
        let minutes = cursor.number(1, 2, 59)?;
        let seconds = if cursor.take(b':') { cursor.number(1, 2, 59)? } else { 0 };
        let fraction;
        (fraction, is_exact) = if cursor.take(b'.') { cursor.fraction()? } else { (0, true) };
        micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction;
    }
    let offset = cursor.offset()?;
    cursor.0.is_empty().then_some(())?;
    // The product alone may not fit in 64 bits although the sum does: the first day with representable times begins
    // before the earliest representable time.
    let micros = i128::from(days) * i128::from(MICROS_PER_DAY) + i128::from(micros);
    Some((i64::try_from(micros).ok()?, is_exact, offset))
}

/// The part of the text that was not parsed yet.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// Parses a number that has `least` to `most` digits and is at most `limit`.
    fn number(&mut self, least: usize, most: usize, limit: i64) -> Option<i64> {
        let digits = self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        let value = number.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        (digits >= least && value <= limit).then_some(value)
    }

    /// Parses the fraction of a second. Returns microseconds, and whether all further digits are zero.
    fn fraction(&mut self) -> Option<(i64, bool)> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        let digit = |at: usize| fraction.get(at).map_or(0, |digit| i64::from(digit - b'0'));
        let micros = (0..6).fold(0, |value, at| value * 10 + digit(at));
        Some((micros, fraction.iter().skip(6).all(|digit| *digit == b'0')))
    }

    fn date(&mut self) -> Option<i64> {
        let negative = self.take(b'-');
        let signed = negative || self.take(b'+');
        let year = self.number(4, if signed { 7 } else { 4 }, 9_999_999)?;
        let year = if negative { -year } else { year };
        self.take(b'-').then_some(())?;
        let month = self.number(1, 2, 12)?;
        self.take(b'-').then_some(())?;
        let day = self.number(1, 2, days_in_month(year, month))?;
        (day > 0).then_some(days_since_epoch(year, month, day))
    }

    fn offset(&mut self) -> Option<Offset> {
        if self.0.is_empty() {
            return Some(Offset::None);
        }
        if self.take(b'Z') {
            return Some(Offset::Seconds(0));
        }
        let west = self.take(b'-');
        (west || self.take(b'+')).then_some(())?;
        let mut seconds = self.number(1, 2, 18)? * 3600;
        if !self.0.is_empty() {
            self.take(b':');
            seconds += self.number(2, 2, 59)? * 60;
        }
        if self.take(b':') {
            seconds += self.number(2, 2, 59)?;
        }
        Some(Offset::Seconds(if west { -seconds } else { seconds }))
    }
}

/// Parses an offset from UTC, such as `+02:00`, `-7` or `Z`. Returns it in seconds to the east.
pub(crate) fn parse_offset(text: &str) -> Option<i64> {
    let mut cursor = Cursor(text.as_bytes());
    match cursor.offset()? {
        Offset::Seconds(seconds) if cursor.0.is_empty() && seconds.abs() <= 18 * 3600 => Some(seconds),
        _ => None,
    }
}

/// Returns the number of days in a month; 0 if there is no such month.
pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from((year % 4 == 0 && year % 100 != 0) || year % 400 == 0),
        _ => 0,
    }
}

/// Returns the number of days since 1970-01-01; the inverse of [`calendar_date`].
pub(crate) fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_days() {
        assert_eq!(parse_date("1970-01-01"), Some(0));
        assert_eq!(parse_date("2000-02-29"), Some(11_016));
        assert_eq!(parse_date("1900-02-29"), None);
        assert_eq!(parse_date("2020-01-01x"), None);
        assert_eq!(
            parse_timestamp("2021-01-01T00:00:00.000Z"),
            Some((1_609_459_200_000_000, Offset::Seconds(0)))
        );
        assert_eq!(
            parse_timestamp("2021-01-01 00:00:00.1234567-08:00"),
            Some((1_609_459_200_123_456, Offset::Seconds(-28_800)))
        );
        assert_eq!(parse_exact_timestamp("2021-01-01 00:00:00.1234567"), None);
        assert_eq!(
            parse_exact_timestamp("2021-01-01 00:00:00.123456000"),
            Some((1_609_459_200_123_456, Offset::None))
        );
        assert_eq!(parse_timestamp("2021-01-01 24:00:00"), None);
        assert_eq!(parse_timestamp("2021-01-01 00:00:00 Europe/Berlin"), None);
    }

    #[test]
    fn decimals_are_read_exactly() {
        let zeros = "0".repeat(50);
        for (text, expected) in [
            ("1.25", Some(125)),
            ("-1.25", Some(-125)),
            ("+.5", Some(50)),
            ("5.", Some(500)),
            ("1.250000", Some(125)),
            ("12500e-4", Some(125)),
            ("1.25E2", Some(12_500)),
            ("0e999", Some(0)),
            ("-0", Some(0)),
            ("1020.30", Some(102_030)),
            (&format!("1{zeros}e-50"), Some(100)),
            (&format!("0.{zeros}"), Some(0)),
            (&format!("0.{zeros}1e51"), Some(100)),
            ("1.255", None),
            ("100000000", None),
            ("1e2147483647", None),
            (".", None),
            ("", None),
            ("-", None),
            ("1 ", None),
            ("1.2.3", None),
            ("0x1", None),
        ] {
            assert_eq!(parse_decimal(text, 10, 2), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn decimals_round_trip(unscaled in -10i128.pow(38) + 1..10i128.pow(38), scale in 0i8..=38) {
            let text = decimal_text(unscaled, scale).unwrap();
            prop_assert_eq!(parse_decimal(&text, 38, scale), Some(unscaled));
        }

        #[test]
        fn dates_round_trip(days: i32) {
            prop_assert_eq!(parse_date(&date_text(days)), Some(days));
        }

        #[test]
        fn timestamps_round_trip(micros: i64) {
            prop_assert_eq!(parse_timestamp(&timestamp_text(micros)), Some((micros, Offset::None)));
        }

        #[test]
        fn dates_agree_with_chrono(days in -700_000i32..2_900_000) {
            let date = chrono::DateTime::UNIX_EPOCH.date_naive() + chrono::Duration::days(days.into());
            prop_assume!((0..=9999).contains(&chrono::Datelike::year(&date)));
            prop_assert_eq!(date_text(days), date.format("%Y-%m-%d").to_string());
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = (parse_date(&text), parse_timestamp(&text), parse_decimal(&text, 38, 9));
        }
    }
}
