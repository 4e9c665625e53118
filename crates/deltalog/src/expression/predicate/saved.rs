//! Saves a condition as text, from which another process can restore it.

use serde::{Deserialize, Serialize};

use super::ast::{Expr, Predicate};
use super::compute::Operation;
use super::parse::{ParseMode, parse_at};
use super::size::Tree;
use super::zone::Clock;
use crate::error::{Error, Result};

/// The text of a condition, with the information that the text lacks: the session's time zone, and the time at which
/// the statement began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SavedPredicate {
    sql: String,
    /// The session's time zone; empty if it is not known.
    time_zone: String,
    /// The start of the statement in microseconds since 1970; 0 if the condition does not use the time.
    begun: i64,
}

impl SavedPredicate {
    /// Saves `predicate`.
    ///
    /// # Errors
    /// Returns `Unsupported` if the text cannot represent the condition, because parts of `predicate` have different
    /// time zones or belong to different statements.
    pub(crate) fn of(predicate: &Predicate) -> Result<Self> {
        let clock = match predicate {
            Predicate::InZone { clock, .. } => *clock,
            _ => Some(Clock::UTC),
        };
        let saved = Self {
            sql: predicate.to_string(),
            time_zone: clock.map(Clock::name).unwrap_or_default(),
            begun: begun(predicate).unwrap_or_default(),
        };
        match saved.predicate() {
            Ok(read) if read == *predicate => Ok(saved),
            _ => Err(Error::unsupported(format!(
                "the condition {predicate} cannot be sent to other processes"
            ))
            .with_hint("parse the whole condition from one string")),
        }
    }

    /// Restores the condition.
    ///
    /// # Errors
    /// `InvalidArgument` if the text is not a condition.
    pub(crate) fn predicate(&self) -> Result<Predicate> {
        parse_at(&self.sql, &self.time_zone, ParseMode::Strict, self.begun)
    }
}

/// Returns the time at which the statement began, if the condition uses it.
fn begun(predicate: &Predicate) -> Option<i64> {
    let mut open = vec![Tree::Condition(predicate)];
    while let Some(tree) = open.pop() {
        if let Tree::Value(Expr::Apply(Operation::Now(_, _, begun), _)) = &tree {
            return Some(*begun);
        }
        tree.visit(|part| open.push(part));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::expression::predicate::{col, lit, parse};

    /// Saves a condition, and restores it as another process would.
    fn sent(predicate: &Predicate) -> Result<Predicate> {
        let text = serde_json::to_string(&SavedPredicate::of(predicate)?).expect("JSON");
        serde_json::from_str::<SavedPredicate>(&text).expect("the same").predicate()
    }

    #[test]
    fn a_saved_condition_is_restored_unchanged() {
        let texts = [
            "a = 1 AND b IN ('x', 'it''s', '\\\\', 'ß') OR NOT (c IS NULL)",
            "t < TIMESTAMP '2024-03-31 01:30:00'",
            "d > current_date() AND t <= current_timestamp()",
            "d = date_add(current_date(), 3)",
            "x <> CAST('NaN' AS DOUBLE) AND x < -0.0D AND y > -1.50BD",
            "s LIKE 'a!_%' ESCAPE '!' AND startswith(s, '%') AND `odd ``name`.x = X'00FF'",
            "CASE WHEN a > 1 THEN b ELSE upper(b) END = 'X'",
            "CAST(t AS DATE) = DATE '2024-01-01' AND hour(t) = 3",
            "a + 1 - 2 > b * 3",
        ];
        for (sql, zone) in texts
            .iter()
            .flat_map(|sql| ["UTC", "Europe/Berlin", "+02:00", "-07:30", "Etc/GMT+3"].map(|zone| (sql, zone)))
        {
            let predicate = parse(sql, zone, ParseMode::Strict).expect(sql);
            assert_eq!(sent(&predicate).expect(sql), predicate, "{sql} in {zone}");
        }
        let built = [
            col("a").gt(lit(-1)).and(col("b").eq(lit("x"))),
            col("a.b").is_null().or(col("c").lt(lit(-1.5))),
            col("a").eq(lit(i64::MIN)).or(col("a").eq(lit(i64::MAX))),
            col("a").lt(lit(f64::NAN)).and(col("a").gt(lit(f64::NEG_INFINITY))),
            col("a").eq(lit(true)).not(),
        ];
        for predicate in built {
            assert_eq!(sent(&predicate).expect("a text"), predicate);
        }
    }

    #[test]
    fn a_condition_of_two_sessions_is_refused() {
        let [east, west] = ["+02:00", "-02:00"]
            .map(|zone| parse("t > TIMESTAMP '2024-01-01 00:00:00'", zone, ParseMode::Strict).expect(zone));
        let error = sent(&east.and(west)).expect_err("no text");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let [now, later] = [1, 2]
            .map(|begun| parse_at("t < current_timestamp()", "UTC", ParseMode::Strict, begun).expect("now"));
        assert_eq!(sent(&now).expect("one time"), now);
        assert_eq!(sent(&now.and(later)).expect_err("no text").kind(), ErrorKind::Unsupported);
    }
}
