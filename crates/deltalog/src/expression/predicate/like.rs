//! Matching of `LIKE` patterns on UTF-8 bytes.

use crate::error::{Error, Result};

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern {
    /// The text with which every match begins.
    prefix: Vec<u8>,
    rest: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// Exactly these bytes.
    Exactly(Vec<u8>),
    /// `_`: one character.
    One,
    /// `%`: any number of characters.
    Any,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// InvalidArgument if an escape character is followed by a character that is neither a wildcard nor the escape
    /// character.
    pub(super) fn new(pattern: &str, escape: char) -> Result<Self> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            let literal = match c {
                c if c == escape => match chars.next() {
                    Some(next) if next == escape || next == '%' || next == '_' => next,
                    _ => {
                        let message = format!(
                            "in the LIKE pattern '{pattern}', the escape character '{escape}' is followed by \
                             neither a wildcard nor itself"
                        );
                        return Err(Error::invalid_argument(message));
                    }
                },
                '%' => {
                    if pieces.last() != Some(&Piece::Any) {
                        pieces.push(Piece::Any);
                    }
                    continue;
                }
                '_' => {
                    pieces.push(Piece::One);
                    continue;
                }
                c => c,
            };
            let mut buffer = [0; 4];
            let encoded = literal.encode_utf8(&mut buffer).as_bytes();
            match pieces.last_mut() {
                Some(Piece::Exactly(bytes)) => bytes.extend_from_slice(encoded),
                _ => pieces.push(Piece::Exactly(encoded.to_vec())),
            }
        }
        let prefix = match pieces.first_mut() {
            Some(Piece::Exactly(bytes)) => {
                let prefix = std::mem::take(bytes);
                pieces.remove(0);
                prefix
            }
            _ => Vec::new(),
        };
        Ok(Self { prefix, rest: pieces })
    }

    /// Returns the pattern of `startswith`.
    pub(super) fn starts_with(prefix: &str) -> Self {
        Self { prefix: prefix.as_bytes().to_vec(), rest: vec![Piece::Any] }
    }

    /// Returns the text with which every match begins.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Returns whether the pattern matches every string that begins with [`Self::prefix`].
    pub(super) fn is_prefix(&self) -> bool {
        self.rest == [Piece::Any]
    }

    /// Returns the only string that matches, if there is exactly one.
    pub(super) fn as_exact(&self) -> Option<&[u8]> {
        self.rest.is_empty().then_some(self.prefix.as_slice())
    }

    /// Returns whether `text`, which is UTF-8, matches.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        let Some(mut text) = text.strip_prefix(self.prefix.as_slice()) else { return false };
        let mut pieces = self.rest.as_slice();
        // The state to resume from, one character later, if the pieces after the last `%` do not match.
        let mut retry: Option<(&[Piece], &[u8])> = None;
        loop {
            let matched = match pieces.split_first() {
                Some((Piece::Any, rest)) => {
                    pieces = rest;
                    retry = Some((rest, text));
                    continue;
                }
                Some((Piece::One, rest)) => skip_character(text).map(|after| (rest, after)),
                Some((Piece::Exactly(bytes), rest)) => {
                    text.strip_prefix(bytes.as_slice()).map(|after| (rest, after))
                }
                None if text.is_empty() => return true,
                None => None,
            };
            match (matched, retry) {
                (Some(next), _) => (pieces, text) = next,
                (None, Some((again, from))) => match skip_character(from) {
                    Some(after) => {
                        retry = Some((again, after));
                        (pieces, text) = (again, after);
                    }
                    None => return false,
                },
                (None, None) => return false,
            }
        }
    }
}

/// Removes the first character of `text`.
fn skip_character(text: &[u8]) -> Option<&[u8]> {
    let (_, rest) = text.split_first()?;
    let continuation = rest.iter().take_while(|byte| *byte & 0xC0 == 0x80).count();
    rest.get(continuation..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A simple implementation of LIKE, by recursion on characters, to compare with.
    fn naive(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('%', rest)) => (0..=text.len()).any(|i| naive(rest, &text[i..])),
            Some(('_', rest)) => !text.is_empty() && naive(rest, &text[1..]),
            Some(('\\', rest)) => text.first() == rest.first() && naive(&rest[1..], &text[1..]),
            Some((c, rest)) => text.first() == Some(c) && naive(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn like_agrees_with_its_definition(
            pattern in r"([ab\u{e9}%_]|\\%|\\_|\\\\){0,7}", text in r"[ab\u{e9}%_\\]{0,8}",
        ) {
            let p: Vec<char> = pattern.chars().collect();
            let t: Vec<char> = text.chars().collect();
            prop_assert_eq!(Pattern::new(&pattern, '\\').unwrap().matches(text.as_bytes()), naive(&p, &t));
        }
    }

    #[test]
    fn an_escape_before_an_ordinary_character_is_refused() {
        assert!(Pattern::new(r"a\b", '\\').is_err());
        assert!(Pattern::new("a\\", '\\').is_err());
    }
}
