//! Parses dates and times in strings that are cast or compared, in all forms that Spark accepts, except for a time
//! without a date.
//!
//! ```text
//! date      := [+-]year[-month[-day[( |T)anything]]]
//! timestamp := [+-]year[-month[-day[( |T)hour[:minute[:second[.fraction][zone]]]]]]
//! ```
//!
//! - A year has at least four digits; all other parts have one or two. Omitted parts get their smallest value:
//!   January, the first day, 0:00.
//! - White space at both ends is skipped, and digits beyond microseconds are ignored.
//! - A time without a date is not accepted, because Spark would add the day of the query.

use super::super::zone::Clock;
use crate::protocol::text::{MICROS_PER_DAY, days_in_month, days_since_epoch};

/// Returns the text without the white space and control characters at its ends.
pub(super) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ' || c == '\u{7f}')
}

/// Parses a date; returns its days since 1970-01-01.
pub(super) fn date(text: &str) -> Option<i32> {
    let mut rest = Rest(trimmed(text).as_bytes());
    let (days, is_full) = rest.date(7)?;
    let is_over = rest.0.is_empty() || (is_full && matches!(rest.0.first(), Some(b' ' | b'T')));
    is_over.then(|| i32::try_from(days).ok())?
}

/// Parses a timestamp; returns the microseconds since 1970-01-01 00:00:00 that a local clock shows, and the time zone
/// that the text contains, if any.
pub(super) fn timestamp(text: &str) -> Option<(i64, Option<Clock>)> {
    let mut rest = Rest(trimmed(text).as_bytes());
    let (days, is_full) = rest.date(6)?;
    let (mut micros, mut clock) = (0, None);
    if is_full && (rest.take(b' ') || rest.take(b'T')) {
        let hour = rest.part(23)?;
        let minute = if rest.take(b':') { Some(rest.part(59)?) } else { None };
        let second = if minute.is_some() && rest.take(b':') { Some(rest.part(59)?) } else { None };
        let fraction = if second.is_some() && rest.take(b'.') { rest.fraction() } else { 0 };
        if second.is_some() && !rest.0.is_empty() {
            let zone = std::str::from_utf8(std::mem::take(&mut rest.0)).ok()?;
            clock = Some(Clock::named(trimmed(zone))?);
        }
        let seconds = (hour * 60 + minute.unwrap_or(0)) * 60 + second.unwrap_or(0);
        micros = seconds * 1_000_000 + fraction;
    }
    rest.0.is_empty().then_some(())?;
    // The first representable day begins before the first representable microsecond. The product may therefore not
    // fit in 64 bits even if the sum does.
    let micros = i128::from(days) * i128::from(MICROS_PER_DAY) + i128::from(micros);
    Some((i64::try_from(micros).ok()?, clock))
}

/// The part of a string that has not been parsed yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// Reads a run of digits, which must have `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        (least..=most).contains(&digits).then_some(())?;
        Some(number.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    }

    fn part(&mut self, greatest: i64) -> Option<i64> {
        self.number(1, 2).filter(|part| *part <= greatest)
    }

    /// Reads the fraction of a second; returns it in microseconds.
    fn fraction(&mut self) -> i64 {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.0.split_at_checked(digits).unwrap_or_default();
        self.0 = rest;
        let digit = |at: usize| fraction.get(at).map_or(0, |digit| i64::from(digit - b'0'));
        (0..6).fold(0, |value, at| value * 10 + digit(at))
    }

    /// Reads a date; returns its days since 1970-01-01, and whether no part of the date was omitted.
    fn date(&mut self, longest_year: usize) -> Option<(i64, bool)> {
        let negative = self.take(b'-');
        if !negative {
            self.take(b'+');
        }
        let year = self.number(4, longest_year)?;
        let year = if negative { -year } else { year };
        let month = if self.take(b'-') { Some(self.part(12)?) } else { None };
        let day = if month.is_some() && self.take(b'-') { Some(self.part(31)?) } else { None };
        let (of_month, of_day) = (month.unwrap_or(1), day.unwrap_or(1));
        let exists = (1..=12).contains(&of_month) && (1..=days_in_month(year, of_month)).contains(&of_day);
        exists.then(|| (days_since_epoch(year, of_month, of_day), day.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::text::{date_text, timestamp_text};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn formatted_times_are_parsed_again(days in -1_000_000i32..=100_000_000, micros: i64) {
            prop_assert_eq!(date(&date_text(days)), Some(days));
            prop_assert_eq!(timestamp(&timestamp_text(micros)), Some((micros, None)));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "[-+ 0-9T:.Zé]{0,24}") {
            let _ = (date(&text), timestamp(&text));
        }
    }

    #[test]
    fn parts_may_be_left_out() {
        let noon = Some((1_704_110_400_000_000, None));
        let text = |text: &str| timestamp(text).map(|(micros, clock)| (timestamp_text(micros), clock));
        for (sql, expected) in [
            ("2024", "2024-01-01 00:00:00"),
            (" 2024-1\t", "2024-01-01 00:00:00"),
            ("2024-1-1 1:2:3.", "2024-01-01 01:02:03"),
            ("+2024-01-01 1:2", "2024-01-01 01:02:00"),
            ("2024-01-01T01:02:03.1234567", "2024-01-01 01:02:03.123456"),
            ("012024-01-01", "+12024-01-01 00:00:00"),
        ] {
            assert_eq!(text(sql), Some((expected.to_owned(), None)), "{sql}");
        }
        assert_eq!(timestamp("2024-01-01 12"), noon);
        let zone = |text: &str| timestamp(text).and_then(|(micros, clock)| clock?.instant(micros));
        for (sql, hours) in [
            ("2024-01-01 12:00:00Z", 0),
            ("2024-01-01 12:00:00 UTC", 0),
            ("2024-01-01 12:00:00.0+05:00", -5),
            ("2024-01-01 12:00:00 -5", 5),
            ("2024-01-01 12:00:00 Europe/Berlin", -1),
        ] {
            assert_eq!(zone(sql), Some(1_704_110_400_000_000 + hours * 3_600_000_000), "{sql}");
        }
        for sql in [
            "",
            "x",
            "202",
            "2024-",
            "2024-13",
            "2024-02-30",
            "2024-01-01x",
            "2024-01-01T",
            "2024-01-01 24",
            "12:00",
            "2024-01-01  1",
            "2024-01-01t01",
            "2024-01-01Z",
            "2024-01-01 00:00Z",
            "2024-01-01 1:2:",
            "0002024-01-01",
            "2024-01-01 1:2:60",
            "2024-01-01 1:2:3 mars",
            "2024-001-01",
            "2024-01-01 00:00:00 z",
            "999999",
        ] {
            assert_eq!(timestamp(sql), None, "{sql}");
        }
        for sql in ["2024-02-29", "2024-2-29 anything", "2024-02-29T", "0002024-02-29"] {
            assert_eq!(date(sql), Some(19_782), "{sql}");
        }
        for sql in ["2024T", "2024-02T", "2024-02-29x", "2023-02-29", "00002024-02-29", "24-02-29"] {
            assert_eq!(date(sql), None, "{sql}");
        }
    }
}
