//! Patterns of `date_format`. Only patterns whose result does not depend on a locale are supported: numbers, and the
//! English names that Spark always uses.
//!
//! | letters | result |
//! | --- | --- |
//! | `y`, `yy`, `yyyy` | the year; its last two digits; four digits |
//! | `M`, `MM`, `MMM`, `MMMM` | the month; two digits; `Jan`; `January` |
//! | `d`, `dd` | the day of the month |
//! | `D`, `DDD` | the day of the year |
//! | `E` to `EEE`, `EEEE` | `Mon`; `Monday` |
//! | `H`, `HH`, `h`, `hh`, `a` | the hour of 24 or of 12, and `AM` or `PM` |
//! | `m`, `mm`, `s`, `ss` | minute and second |
//! | `S` to `SSSSSS` | the first digits of the fraction of a second |
//! | `'text'`, `''` | the text; a quote |
//!
//! Times in years before 1 or after 9999 cannot be formatted here.

use crate::error::{Error, Result};
use crate::protocol::text::{MICROS_PER_DAY, calendar_date, days_since_epoch};
use std::fmt::Write;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::expression::predicate) struct DatePattern(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    /// A letter, and the number of times it is repeated.
    Field(char, usize),
}

impl DatePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// InvalidArgument for letters that are not in the table above, for an unclosed quote, and for `[`, `]`, `{`, `}`
    /// and `#`.
    pub(in crate::expression::predicate) fn parse(pattern: &str) -> Result<Self> {
        let refused = |what: &str| {
            Error::invalid_argument(format!("the date pattern '{pattern}' is not supported: {what}"))
        };
        let mut pieces = Vec::new();
        let mut chars = pattern.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\'' if chars.peek() == Some(&'\'') => {
                    chars.next();
                    pieces.push(Piece::Text("'".to_owned()));
                }
                '\'' => {
                    let mut text = String::new();
                    loop {
                        match chars.next() {
                            Some('\'') if chars.peek() == Some(&'\'') => {
                                chars.next();
                                text.push('\'');
                            }
                            Some('\'') => break,
                            Some(c) => text.push(c),
                            None => return Err(refused("a quote is not closed")),
                        }
                    }
                    pieces.push(Piece::Text(text));
                }
                c if c.is_ascii_alphabetic() => {
                    let mut count = 1;
                    while chars.peek() == Some(&c) {
                        chars.next();
                        count += 1;
                    }
                    let known = match c {
                        'y' => matches!(count, 1 | 2 | 4),
                        'M' => count <= 4,
                        'd' | 'H' | 'h' | 'm' | 's' => count <= 2,
                        'D' => matches!(count, 1 | 3),
                        'E' => count <= 4,
                        'a' => count == 1,
                        'S' => count <= 6,
                        _ => false,
                    };
                    if !known {
                        return Err(refused(&c.to_string().repeat(count)));
                    }
                    pieces.push(Piece::Field(c, count));
                }
                '[' | ']' | '{' | '}' | '#' => return Err(refused(&c.to_string())),
                c => pieces.push(Piece::Text(c.to_string())),
            }
        }
        Ok(Self(pieces))
    }

    /// Formats a local time in microseconds since 1970-01-01 00:00:00.
    pub(super) fn format(&self, time: i64) -> Option<String> {
        let days = time.div_euclid(MICROS_PER_DAY);
        let (year, month, day) = calendar_date(days);
        (1..=9999).contains(&year).then_some(())?;
        let micros = time.rem_euclid(MICROS_PER_DAY);
        let seconds = micros / 1_000_000;
        let hour = seconds / 3600;
        let name = |names: &[&'static str], at: i64, is_long: bool| -> Option<&'static str> {
            let name = *names.get(usize::try_from(at).ok()?)?;
            if is_long { Some(name) } else { name.get(..3) }
        };
        let mut text = String::new();
        for piece in &self.0 {
            let (letter, count) = match piece {
                Piece::Text(piece) => {
                    text.push_str(piece);
                    continue;
                }
                Piece::Field(letter, count) => (*letter, *count),
            };
            let number = match letter {
                'M' if count > 2 => {
                    text.push_str(name(&MONTHS, month - 1, count == 4)?);
                    continue;
                }
                'E' => {
                    text.push_str(name(&DAYS, (days + 3).rem_euclid(7), count == 4)?);
                    continue;
                }
                'a' => {
                    text.push_str(if hour < 12 { "AM" } else { "PM" });
                    continue;
                }
                'S' => {
                    text.push_str(format!("{:06}", micros % 1_000_000).get(..count)?);
                    continue;
                }
                'y' if count == 2 => year % 100,
                'y' => year,
                'M' => month,
                'd' => day,
                'D' => days - days_since_epoch(year, 1, 1) + 1,
                'H' => hour,
                'h' => (hour + 11) % 12 + 1,
                'm' => seconds / 60 % 60,
                _ => seconds % 60,
            };
            write!(text, "{number:0count$}").ok()?;
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_format_each_field() {
        let format =
            |pattern: &str| DatePattern::parse(pattern).unwrap().format(1_709_211_909_012_345).unwrap();
        assert_eq!(format("yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), "2024-02-29T13:05:09.012345");
        assert_eq!(format("y yy M MMM MMMM d D E EEEE"), "2024 24 2 Feb February 29 60 Thu Thursday");
        assert_eq!(format("h a H m s S '' 'it''s'"), "1 PM 13 5 9 0 ' it's");
        assert_eq!(format("hh DDD"), "01 060");
        for pattern in ["YYYY", "ww", "u", "LLL", "'open", "[yyyy]", "MMMMM", "z", "SSSSSSS", "G"] {
            assert!(DatePattern::parse(pattern).is_err(), "{pattern}");
        }
        assert_eq!(DatePattern::parse("yyyy").unwrap().format(i64::MIN), None);
    }
}
