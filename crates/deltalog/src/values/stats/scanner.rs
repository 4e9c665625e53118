//! Extracts a few values from a JSON text without parsing the rest of it.
//!
//! ```text
//! {"numRecords":2,"minValues":{"a":1,"b":{"c":"x"}}}
//!               └ a value, as text      └ a value, as text
//! ```
//!
//! - The bytes are read in one pass. Values that were not requested are skipped by counting the brackets outside of
//!   strings.
//! - A text that is truncated, or that continues after its closing bracket, is refused.
//! - The content of a skipped value is not checked. The caller decides whether a returned value is valid.
//! - No function is recursive, so no text can exhaust the stack.

use std::borrow::Cow;

/// A position in a JSON text.
pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut scanner = Self { text, at: 0 };
        scanner.skip_space();
        scanner
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then_some(())?;
        self.at += 1;
        Some(())
    }

    /// Returns whether only white space follows.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.at == self.text.len()
    }

    /// Returns whether an object begins at this position.
    pub(super) fn is_object(&self) -> bool {
        self.peek() == Some(b'{')
    }

    /// Advances to the first value of the object that begins at this position. Returns the key of the value.
    pub(super) fn enter(&mut self) -> Option<Member<'t>> {
        self.take(b'{')?;
        self.skip_space();
        if self.take(b'}').is_some() { Some(Member::End) } else { self.key() }
    }

    /// Advances from the end of a value to the next value of the same object. Returns the key of that value.
    pub(super) fn next(&mut self) -> Option<Member<'t>> {
        self.skip_space();
        if self.take(b'}').is_some() {
            return Some(Member::End);
        }
        self.take(b',')?;
        self.skip_space();
        self.key()
    }

    fn key(&mut self) -> Option<Member<'t>> {
        let start = self.at;
        (self.peek()? == b'"').then_some(())?;
        self.string()?;
        let quoted = self.text.get(start..self.at)?;
        let inner = quoted.get(1..quoted.len() - 1)?;
        let key = if inner.bytes().any(|byte| byte == b'\\') {
            Cow::Owned(serde_json::from_str(quoted).ok()?)
        } else {
            Cow::Borrowed(inner)
        };
        self.skip_space();
        self.take(b':')?;
        self.skip_space();
        Some(Member::Value(key))
    }

    /// Advances to the end of the value that begins at this position. Returns the text of the value.
    pub(super) fn value(&mut self) -> Option<&'t str> {
        let start = self.at;
        match self.peek()? {
            b'"' => self.string()?,
            b'{' | b'[' => self.brackets()?,
            _ => {
                self.at = find(self.text.as_bytes(), start, |word| {
                    either(word, [b',', b'}', b']']) | blanks(word)
                })?;
                (self.at > start).then_some(())?;
            }
        }
        self.text.get(start..self.at)
    }

    /// Advances past the string that begins at this position.
    fn string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        loop {
            self.at = find(bytes, self.at, |word| either(word, [b'"', b'\\']))?;
            if bytes.get(self.at) == Some(&b'"') {
                self.at += 1;
                return Some(());
            }
            self.at += 2;
        }
    }

    /// Advances past the object or array that begins at this position.
    fn brackets(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let mut open = 0usize;
        loop {
            self.at = find(bytes, self.at, |word| either(word, [b'"', b'{', b'}', b'[', b']']))?;
            match bytes.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => open += 1,
                _ => open -= 1,
            }
            self.at += 1;
            if open == 0 {
                return Some(());
            }
        }
    }
}

/// Returns the first position, from `at` on, of a byte that `marks` looks for.
///
/// `marks` takes eight bytes at once, and sets the highest bit of each byte that it looks for. After the first such
/// byte, it may also set the highest bits of other bytes.
fn find(bytes: &[u8], mut at: usize, marks: impl Fn(u64) -> u64) -> Option<usize> {
    while let Some(word) = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()) {
        let found = marks(u64::from_le_bytes(word));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    // The rest is padded with a byte that no caller looks for.
    let mut word = [b'0'; 8];
    word.get_mut(..rest.len())?.copy_from_slice(rest);
    let found = marks(u64::from_le_bytes(word));
    (found != 0).then(|| at + found.trailing_zeros() as usize / 8)
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// Marks the bytes that are equal to one of `wanted`.
fn either<const N: usize>(word: u64, wanted: [u8; N]) -> u64 {
    wanted.into_iter().fold(0, |marks, byte| {
        let zero_where_equal = word ^ (ONES * u64::from(byte));
        marks | (zero_where_equal.wrapping_sub(ONES) & !zero_where_equal & HIGHEST)
    })
}

/// Marks all bytes up to and including the space character: white space and control characters.
fn blanks(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x21) & !word & HIGHEST
}

/// The next element of an object.
pub(super) enum Member<'t> {
    /// A value, with its key.
    Value(Cow<'t, str>),
    /// The end of the object.
    End,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    /// Returns the members of an object, with their values as text, or `None` if the text is refused.
    fn members(text: &str) -> Option<Vec<(String, String)>> {
        let mut scanner = Scanner::new(text);
        let mut found = Vec::new();
        let mut member = scanner.enter()?;
        while let Member::Value(key) = member {
            found.push((key.into_owned(), scanner.value()?.to_owned()));
            member = scanner.next()?;
        }
        scanner.is_at_end().then_some(found)
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
            r#"[a"\\{}\[\],:é\n]{0,6}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from), object(inner)]
        })
    }

    fn object(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
        prop::collection::btree_map(r#"[a"\\{}é]{0,3}"#, values, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn members_match_those_of_a_full_parser(value in json(), pretty: bool) {
            let to_text = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
            let text = to_text(&value).unwrap();
            match value.as_object() {
                None => prop_assert!(members(&text).is_none()),
                Some(object) => {
                    let found: Vec<(String, Value)> = members(&text)
                        .unwrap()
                        .into_iter()
                        .map(|(key, text)| (key, serde_json::from_str(&text).unwrap()))
                        .collect();
                    let expected: Vec<(String, Value)> =
                        object.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
                    prop_assert_eq!(found, expected);
                }
            }
        }

        #[test]
        fn a_truncated_text_is_refused(value in object(json()), cut: prop::sample::Index) {
            let text = value.to_string();
            let end = text.floor_char_boundary(cut.index(text.len()));
            prop_assert!(members(&text[..end]).is_none());
        }

        #[test]
        fn no_text_makes_the_scanner_panic(text in r#"([{}\[\]",:\\ 1a]|\PC){0,40}"#) {
            let _ = members(&text);
        }
    }

    #[test]
    fn a_text_that_is_not_an_object_is_refused() {
        for text in [
            "",
            "{",
            "}",
            "{}x",
            "{} {}",
            "[]",
            "\"",
            "{\"}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{\"a\":1 2}",
            "{a:1}",
            "{\"a\":\"}",
            "{\"\\",
        ] {
            assert!(members(text).is_none(), "{text}");
        }
        assert_eq!(members(" { } ").unwrap().len(), 0);
        assert_eq!(members(r#"{"a":1,"a":2}"#).unwrap().len(), 2);
    }
}
