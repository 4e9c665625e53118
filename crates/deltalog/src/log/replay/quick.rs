//! A fast parser for `add` lines in the form that nearly every writer writes.
//!
//! ```text
//! {"add":{"path":"…","partitionValues":{"p":"1"},"size":1,"modificationTime":2,"dataChange":true,
//!         "stats":"{\\"numRecords\\":3,…}"}}
//! ```
//!
//! - It only accepts lines without spaces between tokens, with the usual fields, each at most once and in any order,
//!   and with escapes only in `stats`. For any other line it returns [`None`], and the general parser
//!   [`ActionLine::parse`](crate::protocol::ActionLine) has to parse it.
//! - For every line that it accepts, it returns the same value as the general parser. Tests compare the two.
//! - Most bytes of a line are statistics. If these are not needed, the parser only searches for their end.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use crate::protocol::{AddLine, Pairs, Text};

/// Parses `line`, which must not have spaces around it. Leaves out `stats` unless `with_stats` is true.
pub(super) fn add_line(line: &[u8], with_stats: bool) -> Option<AddLine<'_>> {
    let mut rest = Rest(line.strip_prefix(b"{\"add\":{")?);
    let mut add = Fields::default();
    loop {
        match rest.key()? {
            b"path" => set(&mut add.path, rest.text()?)?,
            b"partitionValues" => set(&mut add.partition_values, rest.pairs()?)?,
            b"size" => set(&mut add.size, rest.integer()?)?,
            b"modificationTime" => set(&mut add.modification_time, rest.integer()?)?,
            b"dataChange" => set(&mut add.data_change, rest.boolean()?)?,
            b"stats" if with_stats => set(&mut add.stats, Some(rest.escaped_text()?))?,
            b"stats" => {
                rest.skip_text()?;
                set(&mut add.stats, None)?;
            }
            b"tags" => set(&mut add.tags, rest.pairs()?)?,
            b"baseRowId" => set(&mut add.base_row_id, rest.integer()?)?,
            b"defaultRowCommitVersion" => set(&mut add.default_row_commit_version, rest.integer()?)?,
            _ => return None,
        }
        match rest.byte()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    if rest.0 != b"}" {
        return None;
    }
    Some(AddLine {
        path: Cow::Borrowed(add.path?),
        partition_values: add.partition_values,
        size: add.size?,
        modification_time: add.modification_time,
        data_change: add.data_change,
        stats: add.stats.flatten().map(Text),
        tags: add.tags,
        deletion_vector: None,
        base_row_id: add.base_row_id,
        default_row_commit_version: add.default_row_commit_version,
        clustering_provider: None,
    })
}

#[derive(Default)]
struct Fields<'a> {
    path: Option<&'a str>,
    partition_values: Option<Pairs<'a>>,
    size: Option<i64>,
    modification_time: Option<i64>,
    data_change: Option<bool>,
    stats: Option<Option<Cow<'a, str>>>,
    tags: Option<Pairs<'a>>,
    base_row_id: Option<i64>,
    default_row_commit_version: Option<i64>,
}

/// Sets `place`. Returns `None` if it is already set.
fn set<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.is_none().then(|| *place = Some(value))
}

/// The part of the line that was not parsed yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Skips `expected`.
    fn skip(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// Parses a key and its colon. Keys are short, so the closing quote is searched byte by byte.
    fn key(&mut self) -> Option<&'a [u8]> {
        self.skip(b"\"")?;
        let end = self.0.iter().position(|byte| *byte == b'"')?;
        let (key, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        self.skip(b"\":")?;
        Some(key)
    }

    /// Parses a string without escapes.
    fn text(&mut self) -> Option<&'a str> {
        self.skip(b"\"")?;
        let (text, rest) = self.0.split_at_checked(memchr(b'"', self.0)?)?;
        self.0 = rest.get(1..)?;
        let is_plain = text.iter().fold(true, |plain, byte| plain & (*byte >= 0x20) & (*byte != b'\\'));
        if is_plain { std::str::from_utf8(text).ok() } else { None }
    }

    /// Parses a string in which each escape is two bytes long.
    fn escaped_text(&mut self) -> Option<Cow<'a, str>> {
        self.skip(b"\"")?;
        let start = self.0;
        let mut text: Vec<u8> = Vec::new();
        loop {
            let (plain, rest) = self.0.split_at_checked(memchr2(b'"', b'\\', self.0)?)?;
            if plain.iter().fold(false, |control, byte| control | (*byte < 0x20)) {
                return None;
            }
            let (mark, rest) = rest.split_first()?;
            if *mark == b'"' {
                self.0 = rest;
                if text.is_empty() && plain.len() + rest.len() + 1 == start.len() {
                    return Some(Cow::Borrowed(std::str::from_utf8(plain).ok()?));
                }
                text.extend_from_slice(plain);
                return Some(Cow::Owned(String::from_utf8(text).ok()?));
            }
            if text.capacity() == 0 {
                // The statistics make up nearly all of the rest of the line, and unescaping only makes them shorter.
                text.reserve(start.len());
            }
            text.extend_from_slice(plain);
            let (escaped, rest) = rest.split_first()?;
            text.push(match escaped {
                b'"' | b'\\' | b'/' => *escaped,
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'b' => 8,
                b'f' => 12,
                _ => return None,
            });
            self.0 = rest;
        }
    }

    /// Skips a string.
    fn skip_text(&mut self) -> Option<()> {
        self.skip(b"\"")?;
        loop {
            let at = memchr2(b'"', b'\\', self.0)?;
            let is_end = *self.0.get(at)? == b'"';
            // An escape has at least two bytes. If it is longer, its other bytes are skipped like ordinary text.
            self.0 = self.0.get(at + if is_end { 1 } else { 2 }..)?;
            if is_end {
                return Some(());
            }
        }
    }

    /// Parses a map from string to nullable string. Returns `None` for `null`, duplicate keys and large maps, which are
    /// left to the general parser.
    fn pairs(&mut self) -> Option<Pairs<'a>> {
        self.skip(b"{")?;
        let mut pairs = Vec::new();
        if self.skip(b"}").is_some() {
            return Some(Pairs(pairs));
        }
        loop {
            let key = self.text()?;
            self.skip(b":")?;
            let value =
                if self.skip(b"null").is_some() { None } else { Some(Text(Cow::Borrowed(self.text()?))) };
            pairs.push((Text(Cow::Borrowed(key)), value));
            match self.byte()? {
                b',' => {}
                b'}' if pairs.len() > 64 => return None,
                b'}' => {
                    let pairs = Pairs(pairs);
                    return pairs.duplicate().is_none().then_some(pairs);
                }
                _ => return None,
            }
        }
    }

    /// Parses an integer of up to 18 digits.
    fn integer(&mut self) -> Option<i64> {
        let negative = self.skip(b"-").is_some();
        let length = self.0.iter().take(19).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(length)?;
        if length == 0
            || length > 18
            || (length > 1 && digits.first() == Some(&b'0'))
            || (negative && digits == b"0")
        {
            return None;
        }
        self.0 = rest;
        let value = digits.iter().fold(0i64, |value, digit| value * 10 + i64::from(digit - b'0'));
        Some(if negative { -value } else { value })
    }

    fn boolean(&mut self) -> Option<bool> {
        let (word, value): (&[u8], bool) =
            if self.0.first() == Some(&b't') { (b"true", true) } else { (b"false", false) };
        self.skip(word)?;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::ActionLine;

    fn general(line: &[u8]) -> Option<AddLine<'_>> {
        match ActionLine::parse(line).ok()?? {
            ActionLine::Add(add) => Some(add),
            _ => None,
        }
    }

    fn pairs(pairs: Option<&Pairs<'_>>) -> Option<Vec<(String, Option<String>)>> {
        let owned = |text: &Text<'_>| text.0.to_string();
        pairs
            .map(|pairs| pairs.0.iter().map(|(key, value)| (owned(key), value.as_ref().map(owned))).collect())
    }

    type Shown =
        (String, Option<Vec<(String, Option<String>)>>, [Option<i64>; 4], Option<bool>, Option<String>, bool);

    fn shown(add: &AddLine<'_>) -> Shown {
        let numbers =
            [Some(add.size), add.modification_time, add.base_row_id, add.default_row_commit_version];
        let stats = add.stats.as_ref().map(|stats| stats.0.to_string());
        let values = pairs(add.partition_values.as_ref());
        (add.path.to_string(), values, numbers, add.data_change, stats, pairs(add.tags.as_ref()).is_some())
    }

    /// Checks that an accepted line gives the same result as the general parser. Returns whether the line was accepted.
    fn agrees(line: &[u8]) -> bool {
        let (with, without) = (add_line(line, true), add_line(line, false));
        let general = general(line);
        if let Some(with) = &with {
            assert_eq!(Some(shown(with)), general.as_ref().map(shown), "{}", String::from_utf8_lossy(line));
        }
        if let (Some(without), Some(general)) = (&without, &general) {
            let mut expected = shown(general);
            expected.4 = None;
            assert_eq!(shown(without), expected);
        }
        with.is_some()
    }

    const USUAL: &str = concat!(
        r#"{"add":{"path":"p=1/part-0.parquet","partitionValues":{"p":"1","q":null},"size":120,"#,
        r#""modificationTime":-5,"dataChange":true,"#,
        r#""stats":"{\"numRecords\":3,\"minValues\":{\"a\":\"x\\\\\\n\"}}","tags":{},"baseRowId":7}}"#,
    );

    #[test]
    fn usual_lines_are_accepted() {
        assert!(agrees(USUAL.as_bytes()));
        assert!(add_line(USUAL.as_bytes(), false).is_some());
        assert!(agrees(br#"{"add":{"size":1,"path":"a","stats":"plain"}}"#));
    }

    #[test]
    fn unusual_lines_are_not_accepted() {
        for line in [
            r#"{"add": {"path":"a","size":1}}"#,
            r#"{"add":{"path":"a","size":1} }"#,
            r#"{"add":{"path":"a","size":1},"x":1}"#,
            r#"{"add":{"path":"a","path":"b","size":1}}"#,
            r#"{"add":{"path":"a\u0062","size":1}}"#,
            r#"{"add":{"path":"a","size":1,"stats":"\u0041"}}"#,
            r#"{"add":{"path":"a","size":01}}"#,
            r#"{"add":{"path":"a","size":-0}}"#,
            r#"{"add":{"path":"a","size":1e3}}"#,
            r#"{"add":{"path":"a","size":9223372036854775808}}"#,
            r#"{"add":{"path":"a","size":null}}"#,
            r#"{"add":{"path":"a","size":1,"other":1}}"#,
            r#"{"add":{"path":"a","size":1,"partitionValues":{"p":"1","p":"2"}}}"#,
            r#"{"add":{"path":"a","size":1,"tags":null}}"#,
            r#"{"add":{"path":"a"}}"#,
            r#"{"add":{"size":1}}"#,
            r#"{"add":{}}"#,
            "{\"add\":{\"path\":\"a\tb\",\"size\":1}}",
        ] {
            assert!(!agrees(line.as_bytes()), "{line}");
        }
        assert!(!agrees(b"{\"add\":{\"path\":\"\xff\",\"size\":1}}"));
    }

    /// A writer that crashes may leave any prefix of a line.
    #[test]
    fn a_truncated_line_is_never_accepted() {
        for end in 0..USUAL.len() {
            assert!(add_line(&USUAL.as_bytes()[..end], false).is_none() && !agrees(&USUAL.as_bytes()[..end]));
        }
    }

    proptest! {
        #[test]
        fn any_field_is_parsed_as_by_the_general_parser(
            path in any::<String>(),
            value in any::<Option<String>>(),
            size in any::<i64>(),
            stats in any::<String>(),
            data_change in any::<bool>(),
        ) {
            let line = serde_json::json!({"add": {
                "path": path, "partitionValues": {"p": value}, "size": size, "dataChange": data_change, "stats": stats,
            }});
            agrees(line.to_string().as_bytes());
        }

        #[test]
        fn damaged_lines_are_parsed_as_by_the_general_parser(
            edits in proptest::collection::vec((0..USUAL.len(), any::<u8>()), 1..4),
            cut in 0..USUAL.len(),
        ) {
            let mut line = USUAL.as_bytes().to_vec();
            for (at, byte) in edits {
                line[at] = byte;
            }
            agrees(&line);
            line.remove(cut);
            agrees(&line);
        }
    }
}
