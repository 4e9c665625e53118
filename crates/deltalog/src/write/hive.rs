//! Partition directories named `column=value`, as in Hive and Spark.
//!
//! ```text
//! day=2024-01-01/city=New York       most characters stand for themselves
//! path=a%2Fb                         characters that are special or not allowed in a directory: %XX
//! city=__HIVE_DEFAULT_PARTITION__    NULL
//! ```
//!
//! - The names are for people. Readers of a Delta table take partition values from the log, never from directory
//!   names. Only the conversion of a Parquet directory to a table reads the names.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The value in a directory name that represents NULL.
const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// The maximum length in bytes of a directory name that all common file systems allow.
const MAX_NAME: usize = 255;

/// Replaces by `%XX` each character that Spark escapes in partition directories, and NUL, which no file system
/// allows.
fn escape(text: &str) -> Cow<'_, str> {
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
        '\u{0}'
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

/// Returns the path of the directory for a partition with these values, including a trailing slash.
///
/// The path is empty if there are no values, or if a name would be longer than file systems allow. An empty path is
/// harmless, because the log contains the partition values.
pub(crate) fn directory<'a>(values: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
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

/// Parses the name of a partition directory. Returns the column and its value, which is `None` for NULL. Returns `None`
/// if `name` is not the name of a partition directory.
///
/// Spark and Hive only escape ASCII characters. Other writers, such as pyarrow, escape the bytes of UTF-8. A `%` that
/// is not followed by two hexadecimal digits is an ordinary character, as in Spark.
pub(crate) fn partition_of_directory(name: &str) -> Option<(String, Option<String>)> {
    let (column, value) = name.split_once('=')?;
    let unescaped = |text: &str| {
        let text = percent_encoding::percent_decode_str(text).decode_utf8().ok()?;
        (!text.is_empty()).then(|| text.into_owned())
    };
    let column = unescaped(column)?;
    match value {
        NULL_PARTITION => Some((column, None)),
        value => Some((column, Some(unescaped(value)?))),
    }
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
    fn null_and_empty_values_share_a_directory() {
        assert_eq!(
            directory([("a", None), ("b", Some("")), ("c=d", Some("x y"))]),
            format!("a={NULL_PARTITION}/b={NULL_PARTITION}/c%3Dd=x y/")
        );
    }

    #[test]
    fn a_name_too_long_for_file_systems_gives_no_directory() {
        assert_eq!(directory([("a", Some("x")), ("b", Some(&*"/".repeat(90)))]), "");
    }

    #[test]
    fn names_of_other_writers_are_read() {
        let read = |name: &str| partition_of_directory(name);
        let of = |column: &str, value: &str| Some((column.to_owned(), Some(value.to_owned())));
        assert_eq!(read("a=caf%C3%A9"), of("a", "café"));
        assert_eq!(read("a=café"), of("a", "café"));
        assert_eq!(read("a=x%2fy%2F=z"), of("a", "x/y/=z"));
        assert_eq!(read("a=50%"), of("a", "50%"));
        assert_eq!(read("a%3Db=1"), of("a=b", "1"));
        assert_eq!(read("_a=+1"), of("_a", "+1"));
        assert_eq!(read("a=__HIVE_DEFAULT_PARTITION__"), Some(("a".to_owned(), None)));
        for other in ["a", "=1", "a=", "a=%FF"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn names_are_read_as_they_were_written(column in "[^\u{0}]{1,9}", value in prop::option::of("[^\u{0}]{1,9}")) {
            let name = directory([(column.as_str(), value.as_deref())]);
            prop_assert_eq!(partition_of_directory(name.trim_end_matches('/')), Some((column, value)));
        }

        #[test]
        fn different_values_have_different_names(a in "[^\u{0}]{1,20}", b in "[^\u{0}]{1,20}") {
            let name = |value: &str| directory([("c", Some(value))]);
            prop_assert_eq!(name(&a) == name(&b), a == b);
            prop_assert_eq!(name(&a).matches('/').count(), 1);
        }
    }
}
