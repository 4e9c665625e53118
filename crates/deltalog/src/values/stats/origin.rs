//! Records and detects whether this crate or another writer has computed the statistics of a file.
//!
//! ```text
//! {"numRecords":2,"minValues":{…},"maxValues":{…},"nullCount":{…},"deltalog":1}
//!                                                                 └ the number of our rules
//! ```
//!
//! - Statistics of other writers are only used to choose which files are read. No statement relies on them to remove or
//!   change a file without reading it, and their maxima do not prove that a column has no NaN.
//! - The mark is a member of the same JSON object as the statistics, so it is copied together with them: into
//!   checkpoints, clones and restored versions, and when a file is added again with a deletion vector. It disappears
//!   when another writer computes new statistics, or when it parses the statistics with a schema and writes them again
//!   without unknown members. A tag of the action would wrongly remain in both cases. (PROTOCOL, "Per-file Statistics",
//!   lists the statistics that are "currently supported"; readers ignore other members, as they did with `tightBounds`
//!   before it was introduced.)
//! - A checkpoint may have statistics only as structs (if `delta.checkpoint.writeStatsAsJson` is false). These have no
//!   mark, or one that does not count, so their origin is unknown.
//! - A writer may only mark statistics if it has computed all of them itself, from rows or from the footer of [a known
//!   writer](super::footer_nan), or if it has taken the others from statistics with the mark.
//! - A mark with an unknown version does not count. The version is raised if some release has written wrong statistics.

use super::scanner::{Member, Scanner};

/// The name of the JSON member for the mark.
pub(crate) const MARK: &str = "deltalog";

/// The tag of files whose rows have been read to compute statistics. Statistics that such a file still lacks cannot
/// be computed.
pub(crate) const OF_ROWS: &str = "deltalog.statisticsOfRows";

/// The version of the rules by which this crate computes statistics.
pub(super) const RULES: i64 = 1;

/// Returns whether this crate has computed the statistics `text`.
pub(crate) fn is_own(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    if !scanner.is_object() {
        return false;
    }
    let mut found = false;
    let mut member = scanner.enter();
    while let Some(Member::Value(key)) = member {
        let Some(value) = scanner.value() else { return false };
        // As in the rest of the JSON text, the last occurrence of a key counts.
        if key == MARK {
            found = value.parse() == Ok(RULES);
        }
        member = scanner.next();
    }
    found && member.is_some() && scanner.is_at_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_statistics_with_a_known_mark_are_our_own() {
        for (text, expected) in [
            (r#"{"numRecords":2,"deltalog":1}"#, true),
            (r#"{"deltalog":1,"minValues":{"a":"}"},"tightBounds":false}"#, true),
            (r#"{"numRecords":2}"#, false),
            (r#"{"numRecords":2,"deltalog":2}"#, false),
            (r#"{"numRecords":2,"deltalog":"1"}"#, false),
            (r#"{"deltalog":1,"deltalog":2}"#, false),
            (r#"{"minValues":{"deltalog":1}}"#, false),
            (r#"{"numRecords":2,"deltalog":1"#, false),
            (r#"{"numRecords":2,"deltalog":1}}"#, false),
            ("1", false),
            ("", false),
        ] {
            assert_eq!(is_own(text), expected, "{text}");
        }
    }
}
