//! Parsers for single partition values. A parser returns `None` for a string that is not a value of its type.

use crate::protocol::text::{Offset, parse_exact_timestamp};

/// Parses `true` or `false`, ignoring case.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Parses microseconds since the epoch. A time without a zone is in UTC.
pub(super) fn timestamp(text: &str) -> Option<i64> {
    match parse_exact_timestamp(text)? {
        (micros, Offset::None) => Some(micros),
        (micros, Offset::Seconds(east)) => micros.checked_sub(east * 1_000_000),
    }
}

/// Parses microseconds since 1970-01-01 00:00:00. A value with a zone is refused.
pub(super) fn timestamp_ntz(text: &str) -> Option<i64> {
    match parse_exact_timestamp(text)? {
        (micros, Offset::None) => Some(micros),
        (_, Offset::Seconds(_)) => None,
    }
}
