//! Parsers for single values. Each returns `None` for a string that is not a value of its type.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

/// Parses `true` or `false`, ignoring case.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Returns days since the epoch.
pub(super) fn date(text: &str) -> Option<i32> {
    i32::try_from(calendar_date(text)?.signed_duration_since(NaiveDate::default()).num_days()).ok()
}

/// Returns microseconds since the epoch; a time without a zone is in UTC.
pub(super) fn timestamp(text: &str) -> Option<i64> {
    let (local, offset) = split_zone(text)?;
    micros(local_time(local)?.checked_sub_signed(TimeDelta::try_seconds(offset.unwrap_or(0))?)?)
}

/// Returns microseconds since 1970-01-01 00:00:00; refuses a zone.
pub(super) fn timestamp_ntz(text: &str) -> Option<i64> {
    micros(local_time(text)?)
}

/// Returns the digits of a decimal, scaled by `scale`. Accepts both plain and exponent notation, as printed
/// by Java's `BigDecimal`.
pub(super) fn decimal(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0
        || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    // In units of the scale, the value is digits × 10^shift.
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(i32::from(scale))?;
    let unscaled: i128 = if shift >= 0 {
        let factor = 10_i128.checked_pow(u32::try_from(shift).ok()?)?;
        digits.parse::<i128>().ok()?.checked_mul(factor)?
    } else {
        let keep = digits.len().checked_sub(usize::try_from(shift.unsigned_abs()).ok()?)?;
        let (kept, dropped) = digits.split_at(keep);
        if kept.is_empty() || dropped.bytes().any(|byte| byte != b'0') {
            return None;
        }
        kept.parse().ok()?
    };
    (unscaled < 10_i128.checked_pow(u32::from(precision))?).then_some(if negative {
        -unscaled
    } else {
        unscaled
    })
}

fn micros(local: NaiveDateTime) -> Option<i64> {
    let utc: DateTime<chrono::Utc> = local.and_utc();
    utc.timestamp().checked_mul(1_000_000)?.checked_add(i64::from(utc.timestamp_subsec_micros()))
}

/// Parses `{year}-{month}-{day}`; years outside 0 to 9999 have a sign.
fn calendar_date(text: &str) -> Option<NaiveDate> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = digits.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let year = i32::try_from(number(year, 6)?).ok()?;
    NaiveDate::from_ymd_opt(sign * year, number(month, 2)?, number(day, 2)?)
}

/// Parses a date, optionally followed by a blank or `T` and a time of day. A bare date is its midnight, as in
/// Spark's cast.
fn local_time(text: &str) -> Option<NaiveDateTime> {
    let Some((date, time)) = text.split_once([' ', 'T']) else {
        return Some(calendar_date(text)?.and_time(NaiveTime::MIN));
    };
    Some(calendar_date(date)?.and_time(time_of_day(time)?))
}

/// Parses `{hour}:{minute}` or `{hour}:{minute}:{second}`, where seconds may have a fraction. Digits below
/// one microsecond must be zero.
fn time_of_day(text: &str) -> Option<NaiveTime> {
    let mut parts = text.split(':');
    let (hour, minute, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    if parts.next().is_some() {
        return None;
    }
    let (second, fraction) = match seconds.split_once('.') {
        Some((second, fraction)) => (second, fraction),
        None => (seconds, "0"),
    };
    let significant = fraction.trim_end_matches('0');
    if fraction.is_empty() || significant.len() > 6 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros = format!("{significant:0<6}").parse().ok()?;
    NaiveTime::from_hms_micro_opt(number(hour, 2)?, number(minute, 2)?, number(second, 2)?, micros)
}

/// Splits a trailing `Z` or `±hh:mm` from the time; returns the offset in seconds east of UTC.
fn split_zone(text: &str) -> Option<(&str, Option<i64>)> {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return Some((local, Some(0)));
    }
    // A sign before the time of day belongs to the date.
    let Some(time) = text.find([' ', 'T']) else { return Some((text, None)) };
    let Some(sign) = text.rfind(['+', '-']).filter(|sign| *sign > time) else { return Some((text, None)) };
    let (local, zone) = text.split_at(sign);
    let (direction, zone) = match zone.strip_prefix('-') {
        Some(zone) => (-1, zone),
        None => (1, zone.strip_prefix('+')?),
    };
    let (hours, minutes) = match zone.split_once(':') {
        Some(parts) => parts,
        None if zone.len() == 4 && zone.is_ascii() => zone.split_at(2),
        None => (zone, "0"),
    };
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    (hours <= 18 && minutes < 60).then_some((local, Some(direction * i64::from(hours * 3600 + minutes * 60))))
}

/// Parses a number of one to `digits` ASCII digits; `parse` alone would accept a sign.
fn number(text: &str, digits: usize) -> Option<u32> {
    match (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().ok(),
        false => None,
    }
}
