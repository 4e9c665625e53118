//! Partition directories named `column=value`, as in Hive and Spark.
//!
//! ```text
//! day=2024-01-01/city=New York       most characters stand for themselves
//! path=a%2Fb                         characters that are special or not allowed in a directory: %XX
//! city=__HIVE_DEFAULT_PARTITION__    NULL
//! ```
//!
//! - `unescape(escape(s)) = s` for every string.
//! - Readers of a Delta table take partition values from the log, never from directories. Only files that an
//!   engine has written are adopted by the names of their directories.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text that represents NULL in the name of a directory.
pub(super) const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// The maximum length of a directory name that all common file systems allow, in bytes.
const MAX_NAME: usize = 255;

/// Replaces each character that Spark escapes in partition directories by `%XX`.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_escaped(c) {
            let _ = write!(out, "%{:02X}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn is_escaped(c: char) -> bool {
    matches!(
        c,
        '\u{1}'
            ..='\u{1f}'
                | '\u{7f}'
                | '"'
                | '#'
                | '%'
                | '\''
                | '*'
                | '/'
                | ':'
                | '='
                | '?'
                | '\\'
                | '{'
                | '['
                | ']'
                | '^'
    )
}

/// Replaces each `%XX` by the character with that code. As in Spark, malformed escapes are kept.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let digits = after.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                out.push(char::from(code));
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push('%');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the directory of the partition with these values, including a trailing slash.
///
/// The result is empty if there are no values, or if a name would be longer than file systems allow. That is
/// harmless, because the log has the values.
pub(super) fn directory<'a>(values: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut directory = String::new();
    for (column, value) in values {
        let value = value.filter(|value| !value.is_empty()).map_or(Cow::Borrowed(NULL_PARTITION), escape);
        let column = escape(column);
        if column.len() + 1 + value.len() > MAX_NAME {
            return String::new();
        }
        let _ = write!(directory, "{column}={value}/");
    }
    directory
}

/// Returns the column and value of a directory name, or `None` if it is not of the form `column=value`.
pub(super) fn parse_directory(name: &str) -> Option<(String, Option<String>)> {
    let (column, value) = name.split_once('=').filter(|(column, _)| !column.is_empty())?;
    let value =
        Some(unescape(value).into_owned()).filter(|value| !value.is_empty() && value != NULL_PARTITION);
    Some((unescape(column).into_owned(), value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_the_same_characters_as_spark() {
        let escaped: String =
            (1..=0x7f).map(char::from).filter(|c| escape(&c.to_string()) != c.to_string()).collect();
        let mut expected: String = (1..=0x1f).map(char::from).collect();
        expected.push_str("\"#%'*/:=?[\\]^{\u{7f}");
        assert_eq!(escaped, expected);
        assert_eq!(escape("1970-01-01T00:00:00.5Z"), "1970-01-01T00%3A00%3A00.5Z");
        assert_eq!(escape("\u{1}a/b"), "%01a%2Fb");
    }

    #[test]
    fn malformed_escapes_are_kept() {
        assert_eq!(unescape("100%"), "100%");
        assert_eq!(unescape("%4"), "%4");
        assert_eq!(unescape("%zz%41%é"), "%zzA%é");
        assert_eq!(unescape("%+1"), "%+1");
    }

    #[test]
    fn null_and_empty_values_share_a_directory() {
        assert_eq!(
            directory([("a", None), ("b", Some("")), ("c=d", Some("x y"))]),
            format!("a={NULL_PARTITION}/b={NULL_PARTITION}/c%3Dd=x y/")
        );
        assert_eq!(parse_directory(&format!("a={NULL_PARTITION}")), Some(("a".into(), None)));
        assert_eq!(parse_directory("=x"), None);
        assert_eq!(parse_directory("plain"), None);
    }

    #[test]
    fn a_name_too_long_for_file_systems_gives_no_directory() {
        assert_eq!(directory([("a", Some("x")), ("b", Some(&*"/".repeat(90)))]), "");
    }

    proptest! {
        #[test]
        fn unescape_undoes_escape(text in any::<String>()) {
            let escaped = escape(&text);
            prop_assert_eq!(unescape(&escaped), text.as_str());
        }

        #[test]
        fn parse_directory_undoes_directory(column in "[^\u{0}]+", value in "[^\u{0}]{1,40}") {
            let name = directory([(column.as_str(), Some(value.as_str()))]);
            prop_assume!(!name.is_empty());
            let name = name.strip_suffix('/').unwrap();
            prop_assert!(!name.contains('/'));
            prop_assert_eq!(parse_directory(name), Some((column, Some(value))));
        }
    }
}
