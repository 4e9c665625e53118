//! Parses values from text exactly: a value that does not fit the type is an error, and is not rounded or truncated.
//! Only floating-point numbers are rounded.

const MICROS_PER_SECOND: i64 = 1_000_000;

/// Parses a whole number. `1.0` and `1e3` are whole, but `1.5` is not.
pub(super) fn whole(text: &str) -> Result<i128, String> {
    scaled(text, 0).map_err(|wrong| match wrong {
        Wrong::Form => format!("{} is not a number", shown(text)),
        Wrong::Digits => format!("{} is not a whole number", shown(text)),
        Wrong::Range => format!("{} is out of range", shown(text)),
    })
}

/// Parses a decimal number. Returns the number times 10 to the power of `scale`.
pub(super) fn decimal(text: &str, precision: u8, scale: i8) -> Result<i128, String> {
    let type_name = format!("decimal({precision},{scale})");
    let value = scaled(text, i64::from(scale)).map_err(|wrong| match wrong {
        Wrong::Form => format!("{} is not a number", shown(text)),
        Wrong::Digits => format!("{} has more digits after the point than {type_name}", shown(text)),
        Wrong::Range => format!("{} does not fit {type_name}", shown(text)),
    })?;
    match 10_i128.checked_pow(u32::from(precision)) {
        Some(limit) if value.unsigned_abs() >= limit.unsigned_abs() => {
            Err(format!("{} does not fit {type_name}", shown(text)))
        }
        _ => Ok(value),
    }
}

/// The reason why a text is not a number with a given scale.
enum Wrong {
    Form,
    Digits,
    Range,
}

/// Parses `[+-]digits[.digits][e[+-]digits]` as a multiple of 10 to the power of `-scale`.
fn scaled(text: &str, scale: i64) -> Result<i128, Wrong> {
    let (is_negative, rest) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], rest[at + 1..].parse::<i32>().map_err(|_| Wrong::Form)?),
        None => (rest, 0),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if before.len() + after.len() == 0 || !is_digits(before) || !is_digits(after) {
        return Err(Wrong::Form);
    }
    // Once `scale` is applied, the value is `digits` times 10 to the power of `power`.
    let digits = format!("{before}{after}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    let length = |count: usize| i64::try_from(count).map_err(|_| Wrong::Range);
    let power = i64::from(exponent) - length(after.len())? + length(trailing)? + scale;
    if power < 0 {
        return Err(Wrong::Digits);
    }
    let power = u32::try_from(power).map_err(|_| Wrong::Range)?;
    let value: i128 = significant.parse().map_err(|_| Wrong::Range)?;
    let value =
        10_i128.checked_pow(power).and_then(|factor| value.checked_mul(factor)).ok_or(Wrong::Range)?;
    Ok(if is_negative { -value } else { value })
}

/// Parses a floating-point number, rounding it to the nearest value of the type. A number out of range is an error
/// and does not become infinity.
pub(super) fn float<T>(text: &str) -> Result<T, String>
where
    T: std::str::FromStr + Into<f64> + Copy,
{
    let value: T = text.parse().map_err(|_| format!("{} is not a number", shown(text)))?;
    let is_word = text.bytes().any(|byte| matches!(byte, b'i' | b'I'));
    if value.into().is_infinite() && !is_word {
        return Err(format!("{} is out of range", shown(text)));
    }
    Ok(value)
}

/// Parses `true` or `false`, ignoring case.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(format!("{} is not true or false", shown(text))),
    }
}

/// Parses bytes that are written as hexadecimal digits.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let wrong =
        || format!("{} is not an even number of hexadecimal digits, which bytes require", shown(text));
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return Err(wrong());
    }
    let pair = |at: usize| {
        text.get(at..at + 2)
            .filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    (0..text.len()).step_by(2).map(|at| pair(at).ok_or_else(wrong)).collect()
}

/// Parses a date as days since 1970.
pub(super) fn date(text: &str) -> Result<i32, String> {
    let days = date_part(text).and_then(|days| i32::try_from(days).ok());
    days.ok_or_else(|| format!("{} is not a date, such as 2026-11-24", shown(text)))
}

/// Parses a time in the format of RFC 3339, with a space or a `T`, as microseconds since 1970.
///
/// In a column with time zone, a time that does not contain a zone is in UTC. In a column without time zone, a time
/// must not contain a zone.
pub(super) fn timestamp(text: &str, has_zone: bool) -> Result<i64, String> {
    let example = if has_zone { "2026-11-24T12:00:00Z" } else { "2026-11-24T12:00:00" };
    let wrong = || format!("{} is not a time, such as {example}", shown(text));
    let (day, rest) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, "00:00"),
    };
    let zone_at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone_at);
    if !zone.is_empty() && !has_zone {
        return Err(format!("{} names a time zone, and the column has times without one", shown(text)));
    }
    let days = date_part(day).ok_or_else(wrong)?;
    let micros = clock_part(clock)
        .ok_or_else(wrong)?
        .map_err(|()| format!("{} has more than six digits after the seconds", shown(text)))?;
    let offset = zone_part(zone).ok_or_else(wrong)?;
    days.checked_mul(86_400)
        .and_then(|seconds| seconds.checked_sub(offset))
        .and_then(|seconds| seconds.checked_mul(MICROS_PER_SECOND))
        .and_then(|base| base.checked_add(micros))
        .ok_or_else(|| format!("{} is out of range", shown(text)))
}

/// Parses `YYYY-MM-DD`. The year may have more digits, and a sign.
fn date_part(text: &str) -> Option<i64> {
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = rest.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() < 4 || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let (year, month, day) = (number(year, 7)?, number(month, 2)?, number(day, 2)?);
    let year = if is_negative { -year } else { year };
    (1..=12).contains(&month).then_some(())?;
    (1..=days_of(year, month)).contains(&day).then_some(())?;
    Some(days_since_1970(year, month, day))
}

fn number(text: &str, longest: usize) -> Option<i64> {
    let is_number =
        !text.is_empty() && text.len() <= longest && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the number of days from 1970-01-01 to a date of the proleptic Gregorian calendar. In the calculation, years
/// begin in March, so that a leap day is the last day of a year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Parses `HH:MM[:SS[.digits]]` as microseconds. Returns `Err` for digits beyond microseconds.
fn clock_part(text: &str) -> Option<Result<i64, ()>> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    if text.ends_with('.') || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut parts = clock.split(':');
    let (hour, minute) = (two(parts.next()?)?, two(parts.next()?)?);
    let second = match parts.next() {
        Some(second) => two(second)?,
        None if fraction.is_empty() => 0,
        None => return None,
    };
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let kept = fraction.trim_end_matches('0');
    if kept.len() > 6 {
        return Some(Err(()));
    }
    let micros = if kept.is_empty() { 0 } else { format!("{kept:0<6}").parse().ok()? };
    Some(Ok((hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + micros))
}

fn two(text: &str) -> Option<i64> {
    if text.len() == 2 { number(text, 2) } else { None }
}

/// Parses `Z`, `+HH:MM`, `+HHMM` or `+HH` as seconds. An empty text is UTC.
fn zone_part(text: &str) -> Option<i64> {
    let sign = match text.as_bytes() {
        [] | [b'Z' | b'z'] => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    let digits = &text[1..];
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':')?,
        _ => return None,
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours <= 18 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Returns a text for an error message, shortened if it is long.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return format!("'{text}'");
    }
    format!("'{}…'", text.chars().take(LONGEST).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        for (text, value) in
            [("0", 0), ("-7", -7), ("+7", 7), ("1.0", 1), ("1.50e1", 15), ("1e3", 1000), ("-0", 0)]
        {
            assert_eq!(whole(text), Ok(value), "{text}");
        }
        assert_eq!(whole(&"9".repeat(38)), Ok(10_i128.pow(38) - 1));
        for text in [
            "",
            " 1",
            "1 ",
            "1.5",
            "1e-1",
            "0x1",
            "1_000",
            "1,000",
            "--1",
            "e5",
            ".",
            "1e",
            "1e99999999999",
            "١",
        ] {
            assert!(whole(text).is_err(), "{text}");
        }
        assert!(whole("1e400").unwrap_err().contains("out of range"));
    }

    #[test]
    fn decimals() {
        assert_eq!(decimal("1.10", 10, 2), Ok(110));
        assert_eq!(decimal("1.100", 10, 2), Ok(110));
        assert_eq!(decimal("-.5", 10, 2), Ok(-50));
        assert_eq!(decimal("5.", 10, 2), Ok(500));
        assert_eq!(decimal("99999999.99", 10, 2), Ok(9_999_999_999));
        assert_eq!(decimal(&"9".repeat(38), 38, 0), Ok(10_i128.pow(38) - 1));
        assert!(decimal("1.239", 10, 2).unwrap_err().contains("more digits"));
        assert!(decimal("100000000.00", 10, 2).unwrap_err().contains("does not fit"));
        assert!(decimal("NaN", 10, 2).is_err());
    }

    #[test]
    fn floats() {
        assert_eq!(float::<f64>("0.1"), Ok(0.1));
        assert!(float::<f64>("NaN").unwrap().is_nan());
        assert_eq!(float::<f64>("-Infinity"), Ok(f64::NEG_INFINITY));
        assert_eq!(float::<f32>("3.4e38"), Ok(3.4e38));
        assert!(float::<f32>("1e39").is_err());
        assert!(float::<f64>("1e400").is_err());
        assert!(float::<f64>("").is_err());
    }

    #[test]
    fn dates() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(date(text), Ok(days), "{text}");
        }
        for text in [
            "",
            "1900-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-1-1",
            "24-01-01",
            "2024-01-01T00:00",
            "2024-01-01 ",
        ] {
            assert!(date(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01 00:00:00.000001", 1),
            ("1970-01-01T00:00:00.123000000Z", 123_000),
            ("1970-01-01T02:00:00+02:00", 0),
            ("1969-12-31T23:30-0030", 0),
            ("1970-01-02", 86_400_000_000),
        ] {
            assert_eq!(timestamp(text, true), Ok(micros), "{text}");
        }
        assert_eq!(timestamp("1970-01-01T00:00:01", false), Ok(1_000_000));
        assert!(timestamp("1970-01-01T00:00:01Z", false).unwrap_err().contains("time zone"));
        assert!(timestamp("1970-01-01T00:00:00.0000001Z", true).unwrap_err().contains("six digits"));
        for text in [
            "",
            "now",
            "1970-01-01T24:00:00",
            "1970-01-01T00:60",
            "1970-01-01T1:00",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00+99",
            "1970-01-01Tx",
        ] {
            assert!(timestamp(text, true).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_and_booleans() {
        assert_eq!(bytes("00fF"), Ok(vec![0, 255]));
        assert!(bytes("0").is_err() && bytes("+1").is_err() && bytes("zz").is_err() && bytes("é").is_err());
        assert_eq!((boolean("TRUE"), boolean("false")), (Ok(true), Ok(false)));
        assert!(boolean("1").is_err() && boolean("").is_err());
    }
}
