//! Records and detects which writer computed the statistics of a file: this crate, or another one.
//!
//! ```text
//! {"numRecords":2,"minValues":{…},"maxValues":{…},"nullCount":{…},"deltalog":1}
//!                                                                 └ the number of our rules
//! ```
//!
//! - Statistics of other writers are only hints for which files to read, as for every reader. They are never a reason
//!   for a statement to remove or change a file unread, and a maximum from them does not show that there is no NaN.
//! - The mark is a member of the same JSON text as the statistics, so it is copied together with them: into
//!   checkpoints, clones and restored versions, and into a file that is added again with a deletion vector. It
//!   disappears when another writer computes new statistics, or parses them with a schema and writes them again without
//!   unknown members. A tag of the action would wrongly survive in both cases. (PROTOCOL, "Per-file Statistics", names
//!   the statistics that are "currently supported"; readers pass over others, as they did over `tightBounds`.)
//! - A checkpoint may have statistics only as structs (`delta.checkpoint.writeStatsAsJson` is false). They have no
//!   mark, or one that does not count, so their origin is unknown.
//! - A writer may only mark statistics if it has computed all of them itself, from rows or from a footer of [a known
//!   writer](super::footer_nan), or has taken the rest from statistics with the mark.
//! - A mark with an unknown version does not count. The version is raised if a release has written wrong statistics.

use super::scanner::{Member, Scanner};

/// The name of the member with the mark.
pub(crate) const MARK: &str = "deltalog";

/// The version of the rules for computing statistics.
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
        // As in the rest of the text, the last occurrence of a key counts.
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
    fn only_a_whole_text_with_the_known_rules_is_ours() {
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
