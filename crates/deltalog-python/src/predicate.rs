//! Parses the predicates that users pass.

use deltalog::engine::predicate::{ParseMode, Predicate, parse};

/// Parses the predicate of a user. Timestamps without a zone are in UTC.
pub(crate) fn user_predicate(sql: Option<&str>) -> deltalog::Result<Option<Predicate>> {
    predicate_in(sql, "UTC")
}

/// Parses the predicate of a user. Timestamps without a zone are in `time_zone`.
pub(crate) fn predicate_in(sql: Option<&str>, time_zone: &str) -> deltalog::Result<Option<Predicate>> {
    sql.map(|sql| parse(sql, time_zone, ParseMode::Strict)).transpose()
}
