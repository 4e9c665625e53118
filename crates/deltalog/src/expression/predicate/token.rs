//! Splits Spark SQL into tokens, using the tokenizer of `sqlparser` with adjustments where Spark differs.
//!
//! - A number and the suffix that follows it directly (`1L`, `1S`, `1Y`, `1.5D`, `1.5F`, `1.5BD`) are one
//!   token.
//! - String literals are unescaped as in Spark's `unescapeSQLString`: `\%` and `\_` keep their backslash for
//!   `LIKE`.
//! - The length of the text is limited, so that parsing always takes little time.

use crate::error::{Error, Result};
use crate::limits::EXPRESSION_TEXT;
use sqlparser::dialect::Dialect;
use sqlparser::tokenizer::{Token as SqlToken, Tokenizer};
use std::fmt;

/// A token of a condition or a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name or keyword without quotes.
    Word(String),
    /// A name in backticks.
    Quoted(String),
    /// The content of a string literal in single quotes, unescaped.
    Text(String),
    /// The content of a string literal in double quotes, unescaped. In standard SQL, double quotes enclose a name.
    DoubleQuoted(String),
    /// The digits of `X'…'`.
    Hex(String),
    /// A number without its sign, followed by its suffix in upper case.
    Number(String, String),
    /// An operator or punctuation.
    Symbol(String),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(text) | Self::Symbol(text) => f.write_str(text),
            Self::Quoted(text) => write!(f, "`{text}`"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::DoubleQuoted(text) => write!(f, "\"{text}\""),
            Self::Hex(digits) => write!(f, "X'{digits}'"),
            Self::Number(digits, suffix) => write!(f, "{digits}{suffix}"),
        }
    }
}

/// The lexical rules of Spark, for `sqlparser`.
#[derive(Debug)]
struct SparkTokens;

impl Dialect for SparkTokens {
    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_'
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '`'
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }
}

/// Returns whether a column with this name must be written in backticks.
pub(super) fn is_reserved(word: &str) -> bool {
    const RESERVED: [&str; 16] = [
        "AND", "OR", "NOT", "IN", "IS", "LIKE", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "INTERVAL",
        "NULL", "TRUE", "FALSE",
    ];
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

/// The hint of errors for text that is not SQL.
pub(super) const SYNTAX: &str =
    "write Spark's SQL, with names in backticks and strings in single quotes: `day` = 3 AND `city` = 'Oslo'";

/// Returns the tokens of `sql`, without white space and comments.
pub(super) fn tokenize(sql: &str) -> Result<Vec<Token>> {
    if sql.len() > EXPRESSION_TEXT {
        return Err(Error::invalid_argument(format!("the SQL is longer than {EXPRESSION_TEXT} bytes"))
            .with_hint("divide it, or write its values to a table and join with that"));
    }
    let tokens = Tokenizer::new(&SparkTokens, sql).with_unescape(false).tokenize().map_err(|e| {
        Error::invalid_argument("the text is not SQL").with_source(e.to_string()).with_hint(SYNTAX)
    })?;
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut touching = false;
    for token in tokens {
        let next = match token {
            SqlToken::Whitespace(_) => {
                touching = false;
                continue;
            }
            SqlToken::EOF => break,
            SqlToken::Word(word) if word.quote_style.is_some() => {
                Token::Quoted(word.value.replace("``", "`"))
            }
            SqlToken::Word(word) => match out.last_mut() {
                Some(Token::Number(_, suffix)) if touching && suffix.is_empty() => {
                    *suffix = word.value.to_ascii_uppercase();
                    continue;
                }
                _ => Token::Word(word.value),
            },
            SqlToken::Number(digits, long) => {
                Token::Number(digits, if long { "L".to_owned() } else { String::new() })
            }
            SqlToken::SingleQuotedString(raw) => Token::Text(unescape(&raw, '\'')),
            SqlToken::DoubleQuotedString(raw) => Token::DoubleQuoted(unescape(&raw, '"')),
            SqlToken::HexStringLiteral(digits) => Token::Hex(digits),
            other => Token::Symbol(other.to_string()),
        };
        touching = true;
        out.push(next);
    }
    Ok(out)
}

/// Returns the content of a string literal that is enclosed in `quote`s, as Spark reads it.
fn unescape(raw: &str, quote: char) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        if c == quote {
            // A quote inside the string was doubled; otherwise the string would have ended there.
            rest.next();
            out.push(c);
            continue;
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        let after = rest.as_str();
        if let Some((decoded, used)) = escape_by_number(after) {
            out.push(decoded);
            rest = after.get(used..).unwrap_or_default().chars();
            continue;
        }
        match rest.next() {
            Some('0') => out.push('\0'),
            Some('b') => out.push('\u{8}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('Z') => out.push('\u{1a}'),
            Some(wildcard @ ('%' | '_')) => out.extend(['\\', wildcard]),
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}

/// Parses `uXXXX`, `UXXXXXXXX` or three octal digits up to 177. Returns the character and the number of bytes that
/// were read.
fn escape_by_number(after: &str) -> Option<(char, usize)> {
    let (digits, radix, used) = match after.chars().next()? {
        'u' => (after.get(1..5)?, 16, 5),
        'U' => (after.get(1..9)?, 16, 9),
        '0' | '1' => (after.get(..3)?, 8, 3),
        _ => return None,
    };
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some((char::from_u32(u32::from_str_radix(digits, radix).ok()?)?, used))
}
