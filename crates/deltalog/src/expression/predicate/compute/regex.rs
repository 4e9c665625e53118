//! Regular expressions in Java's syntax, limited to constructs that have the same meaning in all versions of Java.
//!
//! - A pattern is translated to the syntax of the crate `regex`. In Java, `\d`, `\w`, `\s` and `(?i)` only match
//!   ASCII, `.` does not match the end of a line, and `$` also matches before the last line break of the string.
//! - Constructs without a counterpart are refused with an error that names them: lookaround, possessive and atomic
//!   groups, backreferences, and set operations on character classes. `\b` is refused because the version of Java
//!   determines which characters count as letters.

use super::nested::array_of;
use super::room::Room;
use crate::error::{Error, Result};
use crate::limits::{REGEX_BYTES, REGEX_LEVELS, REGEX_TEXT};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListBuilder, StringBuilder, new_null_array};
use arrow::datatypes::{DataType, Field, Int32Type};
use regex::{Captures, Regex, RegexBuilder};
use std::sync::Arc;

/// The functions that use regular expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegexUse {
    /// `a RLIKE pattern`: whether the pattern matches any part of the string.
    Like,
    /// `regexp_replace(a, pattern, replacement)`
    Replace,
    /// `regexp_extract(a, pattern[, group])`: the group of the first match, or an empty string.
    Extract,
    /// `split(a, pattern[, limit])`: the parts between the matches, at most `limit` of them if it is positive.
    Split,
}

impl RegexUse {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Like => "regexp_like",
            Self::Replace => "regexp_replace",
            Self::Extract => "regexp_extract",
            Self::Split => "split",
        }
    }
}

/// The characters that end lines, for use in a character class.
const LINE_ENDS: &str = r"\n\r\u{85}\u{2028}\u{2029}";

/// The prefix of the names of groups that the translation adds. Each captures the text that a `$` has matched, which
/// Java does not count as part of the match.
const END: &str = "end_of_text_";

/// A compiled Java pattern.
#[derive(Debug)]
pub(in crate::expression::predicate) struct JavaPattern {
    regex: Regex,
    /// For each group of the Java pattern, the number of the corresponding group in the translated pattern. The first
    /// one is the whole match.
    groups: Vec<usize>,
    /// The numbers of the groups that capture the text matched by `$`.
    ends: Vec<usize>,
}

impl JavaPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// InvalidArgument, which says what is not supported.
    pub(in crate::expression::predicate) fn parse(pattern: &str) -> Result<Self> {
        if pattern.len() > REGEX_TEXT {
            return Err(Error::invalid_argument(format!(
                "a regular expression has {} bytes, and at most {REGEX_TEXT} are allowed",
                pattern.len()
            ))
            .with_hint("divide it into several expressions"));
        }
        let refused =
            |why: &str| Error::invalid_argument(format!("the regular expression '{pattern}' {why}"));
        let written = Writer::new(pattern).write().map_err(|why| refused(&why))?;
        let regex = compiled(&written).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                refused(&format!("takes more than {REGEX_BYTES} bytes of memory")).with_source(error)
            }
            error => refused("cannot be compiled").with_source(error),
        })?;
        let names: Vec<Option<&str>> = regex.capture_names().collect();
        let is_end = |name: &Option<&str>| name.is_some_and(|name| name.starts_with(END));
        let numbers = |end: bool| {
            let all = names.iter().enumerate().filter(|(_, name)| is_end(name) == end);
            all.map(|(number, _)| number).collect::<Vec<_>>()
        };
        Ok(Self { groups: numbers(false), ends: numbers(true), regex })
    }

    fn is_match(&self, text: &str) -> Option<bool> {
        match self.ends.is_empty() || !text.ends_with("\r\n") {
            true => Some(self.regex.is_match(text)),
            false => {
                let mut all = self.regex.captures_iter(text);
                all.next().map_or(Some(false), |found| self.end(&found, text).map(|_| true))
            }
        }
    }

    /// Returns the position at which the match ends. Returns `None` if it ends between the two characters of a line
    /// break, where Java would not match.
    fn end(&self, found: &Captures<'_>, text: &str) -> Option<usize> {
        let whole = found.get(0)?;
        let dollar = self.ends.iter().find_map(|end| found.get(*end));
        let Some(dollar) = dollar else { return Some(whole.end()) };
        let splits = dollar.as_str() == "\n" && text.get(..dollar.start())?.ends_with('\r');
        (!splits).then_some(dollar.start())
    }

    fn group<'t>(&self, found: &Captures<'t>, group: usize, text: &'t str) -> Option<&'t str> {
        match group {
            0 => text.get(found.get(0)?.start()..self.end(found, text)?),
            group => Some(found.get(*self.groups.get(group)?).map_or("", |part| part.as_str())),
        }
    }

    fn extract<'t>(&self, text: &'t str, group: usize) -> Option<&'t str> {
        match self.regex.captures(text) {
            Some(found) => self.group(&found, group, text),
            None => Some(""),
        }
    }

    /// Returns the text with the matches replaced; `None` if it cannot be determined what Java would match.
    fn replace(&self, text: &str, replacement: &[Piece], room: &Room<'_>) -> Result<Option<String>> {
        let mut refused = Ok(());
        let mut ensure = |bytes: usize| {
            refused = room.ensure(bytes);
            refused.is_ok().then_some(())
        };
        let replaced = self.replaced(text, replacement, &mut ensure);
        refused.map(|()| replaced)
    }

    /// Replaces the matches. Before the result grows, `ensure` is called with its new size.
    fn replaced(
        &self,
        text: &str,
        replacement: &[Piece],
        ensure: &mut dyn FnMut(usize) -> Option<()>,
    ) -> Option<String> {
        let (mut out, mut done, mut from) = (String::new(), 0, 0);
        while let Some(found) = (from <= text.len()).then(|| self.regex.captures_at(text, from)).flatten() {
            let (start, end) = (found.get(0)?.start(), self.end(&found, text)?);
            out.push_str(text.get(done..start)?);
            for piece in replacement {
                let piece = match piece {
                    Piece::Text(text) => text,
                    Piece::Group(group) => self.group(&found, *group, text)?,
                };
                ensure(out.len() + piece.len())?;
                out.push_str(piece);
            }
            done = end;
            // After an empty match, the search continues at the next character.
            from = match end > start {
                true => end,
                false => end + text.get(end..)?.chars().next().map_or(Some(1), step)?,
            };
        }
        out.push_str(text.get(done..)?);
        Some(out)
    }

    /// Returns the parts between the matches. An empty match at the beginning does not count. The last part is the
    /// text that remains.
    fn split<'t>(&self, text: &'t str, limit: i32) -> Option<Vec<&'t str>> {
        let most = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let (mut parts, mut done, mut from) = (Vec::new(), 0, 0);
        while parts.len() + 1 < most && from <= text.len() {
            let Some(found) = self.regex.captures_at(text, from) else { break };
            let (start, end) = (found.get(0)?.start(), self.end(&found, text)?);
            if end > 0 {
                parts.push(text.get(done..start)?);
                done = end;
            }
            from = match end > start {
                true => end,
                false => end + text.get(end..)?.chars().next().map_or(Some(1), step)?,
            };
        }
        parts.push(text.get(done..)?);
        Some(parts)
    }

    /// Parses the replacement of matches.
    ///
    /// # Errors
    /// InvalidArgument if a group does not exist.
    pub(in crate::expression::predicate) fn replacement(&self, text: &str) -> Result<Vec<Piece>> {
        let refused = || {
            Error::invalid_argument(format!(
                "the replacement '{text}' has a $ without the number of a group, or a \\ at its end"
            ))
        };
        let (mut pieces, mut rest) = (Vec::new(), text.chars().peekable());
        while let Some(c) = rest.next() {
            let literal = match c {
                '\\' => rest.next().ok_or_else(refused)?,
                '$' => {
                    let mut digit = || rest.next_if(char::is_ascii_digit).and_then(|c| c.to_digit(10));
                    let mut group = digit().ok_or_else(refused)? as usize;
                    (group < self.groups.len()).then_some(()).ok_or_else(refused)?;
                    // Takes as many digits as possible, as long as they are the number of an existing group.
                    while let Some(next) = rest.peek().and_then(|c| c.to_digit(10)) {
                        let longer = group * 10 + next as usize;
                        if longer >= self.groups.len() {
                            break;
                        }
                        (group, _) = (longer, rest.next());
                    }
                    pieces.push(Piece::Group(group));
                    continue;
                }
                c => c,
            };
            match pieces.last_mut() {
                Some(Piece::Text(text)) => text.push(literal),
                _ => pieces.push(Piece::Text(literal.to_string())),
            }
        }
        Ok(pieces)
    }

    /// Returns an error if the pattern does not have this group.
    pub(in crate::expression::predicate) fn ensure_group(&self, group: i64) -> Result<()> {
        let exists = usize::try_from(group).is_ok_and(|group| group < self.groups.len());
        let count = self.groups.len() - 1;
        exists.then_some(()).ok_or_else(|| {
            Error::invalid_argument(format!(
                "the regular expression has {count} groups, and no group {group}"
            ))
        })
    }
}

/// Returns whether a pattern of the crate `regex` may match an empty string. The pattern is only parsed, because
/// compiling it would expand its repetitions, and do so again for each enclosing quantifier.
fn may_be_empty(pattern: &str) -> Written<bool> {
    let parsed = regex_syntax::ParserBuilder::new().nest_limit(REGEX_LEVELS).build().parse(pattern);
    let parsed = parsed.map_err(|_| format!("is not understood, or has more than {REGEX_LEVELS} levels"))?;
    Ok(parsed.properties().minimum_len() == Some(0))
}

/// Compiles a pattern of the crate `regex`.
fn compiled(pattern: &str) -> std::result::Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(REGEX_BYTES).nest_limit(REGEX_LEVELS).build()
}

/// Returns the number of bytes of the character after an empty match, which the search skips. Returns `None` for a
/// character above U+FFFF, because Java stores it as two units and could find an empty match between them.
fn step(c: char) -> Option<usize> {
    (c.len_utf16() == 1).then_some(c.len_utf8())
}

/// A part of the replacement text: literal text or a reference to a group.
#[derive(Debug)]
pub(in crate::expression::predicate) enum Piece {
    Text(String),
    Group(usize),
}

/// Splits the text into its characters. With a positive `limit`, returns at most that many parts, and the last one
/// contains the rest of the text.
fn characters(text: &str, limit: i32) -> Vec<&str> {
    let most = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).take(most).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| text.get(*start..end)).collect()
}

/// Applies a pattern. The pattern and the arguments after it are constant, except for the limit of `split`.
pub(super) fn matches(of: RegexUse, arguments: &[ArrayRef], room: &Room<'_>) -> Result<ArrayRef> {
    let [texts, pattern, more @ ..] = arguments else {
        return Err(Error::invalid_argument("a regular expression is missing"));
    };
    let texts = texts.as_string::<i32>();
    let constant = |array: &ArrayRef| {
        let texts = array.as_string::<i32>();
        (!texts.is_empty() && texts.is_valid(0)).then(|| texts.value(0).to_owned())
    };
    let Some(pattern) = constant(pattern) else {
        let to = match of {
            RegexUse::Like => DataType::Boolean,
            RegexUse::Split => array_of(DataType::Utf8),
            RegexUse::Replace | RegexUse::Extract => DataType::Utf8,
        };
        return Ok(new_null_array(&to, texts.len()));
    };
    let is_empty = pattern.is_empty();
    let pattern = JavaPattern::parse(&pattern)?;
    Ok(match of {
        RegexUse::Split => {
            let limits = more.first().and_then(|limits| limits.as_primitive_opt::<Int32Type>());
            let mut lists = ListBuilder::new(StringBuilder::new()).with_field(Field::new(
                "element",
                DataType::Utf8,
                true,
            ));
            for row in 0..texts.len() {
                let limit = match limits {
                    Some(limits) => limits.is_valid(row).then(|| limits.value(row)),
                    None => Some(0),
                };
                let parts = limit.filter(|_| texts.is_valid(row)).and_then(|limit| match texts.value(row) {
                    text if is_empty && !text.is_empty() => Some(characters(text, limit)),
                    text => pattern.split(text, limit),
                });
                lists.append_option(parts.map(|parts| parts.into_iter().map(Some)));
            }
            Arc::new(lists.finish())
        }
        RegexUse::Like => {
            Arc::new(texts.iter().map(|text| pattern.is_match(text?)).collect::<BooleanArray>())
        }
        RegexUse::Extract => {
            let group = more.first().and_then(|group| group.as_primitive_opt::<Int32Type>());
            let group = group.filter(|group| !group.is_empty()).map_or(1, |group| group.value(0));
            let group = usize::try_from(group).unwrap_or(usize::MAX);
            let extract = |row| pattern.extract(texts.is_valid(row).then(|| texts.value(row))?, group);
            room.texts(|row| Ok(extract(row)))?
        }
        RegexUse::Replace => {
            let pieces = more.first().and_then(constant).map(|by| pattern.replacement(&by)).transpose()?;
            let Some(pieces) = pieces else { return Ok(new_null_array(&DataType::Utf8, texts.len())) };
            room.texts(|row| match texts.is_valid(row) {
                true => pattern.replace(texts.value(row), &pieces, room),
                false => Ok(None),
            })?
        }
    })
}

/// Translates a Java pattern to the syntax of the crate `regex`.
struct Writer<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    out: String,
    ends: usize,
    ignores_case: bool,
    /// Whether `.` also matches line breaks.
    has_all: bool,
    /// The positions in `out` at which the open groups begin.
    open: Vec<usize>,
    /// The position in `out` of the part that a following quantifier would repeat.
    last: Option<usize>,
}

type Written<T> = std::result::Result<T, String>;

impl<'a> Writer<'a> {
    fn new(pattern: &'a str) -> Self {
        let (mut flags, mut rest) = (String::new(), pattern);
        if let Some((inner, after)) = pattern.strip_prefix("(?").and_then(|inner| inner.split_once(')'))
            && !inner.is_empty()
            && inner.chars().all(|c| matches!(c, 'i' | 's'))
        {
            (flags, rest) = (inner.to_owned(), after);
        }
        Self {
            rest: rest.chars().peekable(),
            out: String::new(),
            ends: 0,
            ignores_case: flags.contains('i'),
            has_all: flags.contains('s'),
            open: Vec::new(),
            last: None,
        }
    }

    fn write(mut self) -> Written<String> {
        while let Some(c) = self.rest.next() {
            let start = self.out.len();
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => {
                    self.group()?;
                    continue;
                }
                ')' => {
                    let opened = self.open.pop().ok_or("has a ) without a (")?;
                    self.out.push(')');
                    self.last = Some(opened);
                    continue;
                }
                '|' => {
                    self.out.push('|');
                    self.last = None;
                    continue;
                }
                '^' => {
                    self.out.push_str(r"\A");
                    self.last = None;
                    continue;
                }
                '$' => {
                    self.dollar()?;
                    continue;
                }
                '*' | '+' | '?' | '{' => {
                    self.quantifier(c)?;
                    continue;
                }
                '.' if self.has_all => self.out.push_str("(?s:.)"),
                '.' => self.out.push_str(&format!("[^{LINE_ENDS}]")),
                c => self.literal(c),
            }
            self.last = Some(start);
        }
        match self.open.is_empty() {
            true => Ok(self.out),
            false => Err("has a ( without a )".to_owned()),
        }
    }

    fn literal(&mut self, c: char) {
        match self.ignores_case && c.is_ascii_alphabetic() {
            true => {
                let (lower, upper) = (c.to_ascii_lowercase(), c.to_ascii_uppercase());
                self.out.extend(['[', lower, upper, ']']);
            }
            false => self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }

    fn escape(&mut self) -> Written<()> {
        match self.rest.next() {
            Some('A') => self.out.push_str(r"\A"),
            Some('z') => self.out.push_str(r"\z"),
            Some(c) => match escaped_class(c) {
                Some((inner, negated)) => {
                    let not = if negated { "^" } else { "" };
                    self.out.push_str(&format!("[{not}{inner}]"));
                }
                None => {
                    let c = escaped_character(c)?;
                    self.literal(c);
                }
            },
            None => return Err("ends with a \\".to_owned()),
        }
        Ok(())
    }

    fn class(&mut self) -> Written<()> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        if self.rest.peek() == Some(&']') {
            return Err("has a class that begins with ]".to_owned());
        }
        loop {
            let first = match self.rest.next() {
                Some(']') => break,
                None => return Err("has a [ without a ]".to_owned()),
                Some('[') => return Err("has a class inside a class, which is not supported".to_owned()),
                Some('&') if self.rest.peek() == Some(&'&') => {
                    return Err("has an intersection of classes (&&), which is not supported".to_owned());
                }
                Some('\\') => {
                    let c = self.rest.next().ok_or("ends with a \\")?;
                    if let Some((inner, negated)) = escaped_class(c) {
                        let text = if negated { format!("[^{inner}]") } else { inner.to_owned() };
                        self.out.push_str(&text);
                        continue;
                    }
                    escaped_character(c)?
                }
                Some('^') => return Err("has a ^ in a class, which is not supported: write \\^".to_owned()),
                Some(c) => c,
            };
            let mut ahead = self.rest.clone();
            let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']');
            let last = match is_range {
                false => first,
                true => {
                    self.rest.next();
                    match self.rest.next() {
                        Some('\\') => escaped_character(self.rest.next().ok_or("ends with a \\")?)?,
                        Some('[') | None => return Err("has a range without an end".to_owned()),
                        Some(c) => c,
                    }
                }
            };
            self.range(first, last)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn range(&mut self, first: char, last: char) -> Written<()> {
        if first > last {
            return Err(format!("has the range {first}-{last}, which is empty"));
        }
        self.out.push_str(&format!(r"\u{{{:x}}}-\u{{{:x}}}", u32::from(first), u32::from(last)));
        if self.ignores_case {
            let letters = ('A'..='Z').chain('a'..='z').filter(|c| (first..=last).contains(c));
            let others: String = letters
                .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect();
            self.out.push_str(&others);
        }
        Ok(())
    }

    fn group(&mut self) -> Written<()> {
        self.open.push(self.out.len());
        self.last = None;
        if self.rest.next_if_eq(&'?').is_none() {
            self.out.push('(');
            return Ok(());
        }
        let next = self.rest.next();
        let second = self.rest.peek().copied();
        self.out.push_str("(?:");
        Err(match (next, second) {
            (Some(':'), _) => return Ok(()),
            (Some('=' | '!'), _) | (Some('<'), Some('=' | '!')) => "looks around, which is not supported",
            (Some('>'), _) => "has an atomic group, which is not supported",
            (Some('<'), _) => "has a named group, which is not supported: use its number",
            _ => "has flags that are not supported: only (?i) and (?s) at its beginning are",
        }
        .to_owned())
    }

    fn dollar(&mut self) -> Written<()> {
        let ends = matches!(self.rest.peek(), None | Some(')' | '|'));
        if !ends || !self.open.is_empty() {
            return Err("has a $ that is not at its end or before a |, which is not supported".to_owned());
        }
        self.ends += 1;
        let end = format!(r"(?:\z|(?P<{END}{}>\r\n|[{LINE_ENDS}])\z)", self.ends);
        self.out.push_str(&end);
        self.last = None;
        Ok(())
    }

    fn quantifier(&mut self, first: char) -> Written<()> {
        let last = self.last.take().ok_or_else(|| format!("has a {first} that repeats nothing"))?;
        let mut text = first.to_string();
        if first == '{' {
            loop {
                match self.rest.next() {
                    Some(c) if c.is_ascii_digit() || (c == ',' && text.len() > 1 && !text.contains(',')) => {
                        text.push(c);
                    }
                    Some('}') if text.len() > 1 => break,
                    _ => return Err("has a { without a number of repetitions: write \\{".to_owned()),
                }
            }
            text.push('}');
        }
        // Java and the crate `regex` treat repeated parts that match nothing differently.
        let repeated = self.out.get(last..).unwrap_or_default();
        if first != '?' && may_be_empty(repeated)? {
            return Err("repeats a part that may match nothing, which is not supported".to_owned());
        }
        self.out.push_str(&text);
        match self.rest.peek() {
            Some('+') => return Err("has a possessive quantifier, which is not supported".to_owned()),
            Some('?') => self.out.extend(self.rest.next()),
            _ => {}
        }
        match self.rest.peek() {
            Some('*' | '+' | '?' | '{') => Err("has a quantifier after a quantifier".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Returns the characters that an escape such as `\d` matches, for use in a class, and whether they are negated.
fn escaped_class(c: char) -> Option<(&'static str, bool)> {
    let inner = match c.to_ascii_lowercase() {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => r"\x20\t\n\x0B\x0C\r",
        _ => return None,
    };
    Some((inner, c.is_ascii_uppercase()))
}

/// Returns the character that a backslash followed by `c` stands for.
fn escaped_character(c: char) -> Written<char> {
    match c {
        't' => Ok('\t'),
        'n' => Ok('\n'),
        'r' => Ok('\r'),
        'f' => Ok('\u{c}'),
        '0'..='9' | 'k' => Err(format!("refers to a group (\\{c}), which is not supported")),
        c if c.is_ascii_alphabetic() => Err(format!("has \\{c}, which is not supported")),
        c => Ok(c),
    }
}
