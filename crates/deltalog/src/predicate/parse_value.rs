//! Parsing of values in SQL text: literals, columns, casts of literals, functions.
//!
//! - A value with an operator that is not supported (arithmetic, `||`, `[…]`, `COLLATE`) is unknown as a
//!   whole.
//! - Literals have their meaning in Spark: `1L`, `1S`, `1Y` are whole numbers of a certain width, `1.5` and
//!   `1.5BD` are decimals, `1.5D`, `1.5F` and `1e3` are binary floating-point numbers.

use super::ast::{ColumnPath, Expr, Literal, Predicate};
use super::function::{CastType, Function};
use super::parse::{Node, Parser};
use super::token::{Token, is_reserved};
use super::zone::Clock;
use crate::error::Result;
use crate::protocol::text::{Offset, parse_date, parse_timestamp};
use chrono::{DateTime, LocalResult, TimeZone};

/// The maximum number of digits of a decimal.
const MAX_DIGITS: usize = 38;

impl Parser<'_> {
    /// Parses a value and the operators that bind tighter than comparisons.
    pub(super) fn value(&mut self) -> Result<Node> {
        let start = self.position();
        let node = self.simple_value()?;
        let mut computed = false;
        loop {
            match self.peek() {
                Some(Token::Symbol(s))
                    if matches!(s.as_str(), "+" | "-" | "*" | "/" | "%" | "||" | "&" | "|" | "^") =>
                {
                    self.next();
                    self.simple_value()?;
                }
                Some(Token::Word(w)) if w.eq_ignore_ascii_case("DIV") => {
                    self.next();
                    self.simple_value()?;
                }
                Some(Token::Symbol(s)) if s == "[" => {
                    self.next();
                    self.skip_group();
                    self.expect_symbol("]")?;
                }
                _ if computed => {
                    return self
                        .unsupported(start, "arithmetic is not supported in a predicate")
                        .map(Node::Value);
                }
                _ => return Ok(node),
            }
            computed = true;
        }
    }

    fn simple_value(&mut self) -> Result<Node> {
        let start = self.position();
        let literal = match self.next() {
            Some(Token::Symbol(s)) if s == "(" => {
                let node = self.group()?;
                self.expect_symbol(")")?;
                return Ok(node);
            }
            Some(Token::Symbol(s)) if s == "-" || s == "+" => match self.next() {
                Some(Token::Number(digits, suffix)) => number(s == "-", &digits, &suffix),
                _ => return Err(self.unexpected_at(start)),
            },
            Some(Token::Number(digits, suffix)) => number(false, &digits, &suffix),
            Some(Token::Text(text)) => Some(Literal::String(text)),
            Some(Token::Hex(digits)) => bytes(&digits),
            Some(Token::Quoted(name)) => return self.column(name),
            Some(Token::Word(word)) => return self.word(start, word),
            _ => return Err(self.unexpected_at(start)),
        };
        match literal {
            Some(literal) => Ok(Node::Value(Expr::Literal(literal))),
            None => self.unsupported(start, "not a constant of its type").map(Node::Value),
        }
    }

    /// Parses what begins with a word: a keyword literal, a typed literal, a function or a column.
    fn word(&mut self, start: usize, word: String) -> Result<Node> {
        let upper = word.to_ascii_uppercase();
        match upper.as_str() {
            "TRUE" => return Ok(Node::Value(Expr::Literal(Literal::Boolean(true)))),
            "FALSE" => return Ok(Node::Value(Expr::Literal(Literal::Boolean(false)))),
            "NULL" => return Ok(Node::Value(Expr::Literal(Literal::Null))),
            _ if is_reserved(&word) => return Err(self.unexpected_at(start)),
            _ => {}
        }
        if let Some(Token::Text(text)) = self.peek().cloned() {
            self.next();
            return match self.typed(&upper, &text) {
                Some(literal) => Ok(Node::Value(Expr::Literal(literal))),
                None => self
                    .unsupported(start, &format!("not a constant (in time zone {})", self.zone_name))
                    .map(Node::Value),
            };
        }
        if !self.symbol("(") {
            return self.column(word);
        }
        match upper.as_str() {
            "CAST" | "TRY_CAST" => self.cast(start),
            "STARTSWITH" => self.starts_with(start),
            name => {
                if let Some(call) = self.function(name) {
                    return Ok(Node::Value(call));
                }
                self.skip_group();
                self.expect_symbol(")")?;
                self.unsupported(start, "this function is not supported in a predicate").map(Node::Value)
            }
        }
    }

    fn column(&mut self, first: String) -> Result<Node> {
        let mut parts = vec![first];
        while self.symbol(".") {
            match self.next() {
                Some(Token::Word(part) | Token::Quoted(part)) => parts.push(part),
                _ => return Err(self.unexpected()),
            }
        }
        Ok(Node::Value(Expr::Column(ColumnPath::new(parts))))
    }

    /// Parses `startswith(value, 'prefix')`, after the opening parenthesis.
    fn starts_with(&mut self, start: usize) -> Result<Node> {
        let value = match self.nested(1, Self::value)? {
            Node::Value(value) | Node::Condition(Predicate::Value(value)) => value,
            Node::Condition(_) => return Err(self.unexpected()),
        };
        let prefix = match (self.peek(), self.peek_second()) {
            (Some(Token::Symbol(comma)), Some(Token::Text(prefix))) if comma == "," => Some(prefix.clone()),
            _ => None,
        };
        if let Some(prefix) = prefix {
            self.next();
            self.next();
            if self.symbol(")") {
                return Ok(Node::Condition(Predicate::StartsWith { value, prefix }));
            }
        }
        self.skip_group();
        self.expect_symbol(")")?;
        self.unsupported(start, "startswith needs a constant prefix").map(Node::Value)
    }

    /// Parses `CAST(value AS type)`, after the opening parenthesis. The cast of a literal is a literal; the
    /// cast of a column is a function.
    fn cast(&mut self, start: usize) -> Result<Node> {
        let inner_start = self.position();
        let value = match self.nested(1, Self::value) {
            Ok(Node::Value(value) | Node::Condition(Predicate::Value(value))) => Some(value),
            _ => None,
        };
        let digits = self.number_text(inner_start);
        let target = if value.is_some() && self.keyword("AS") { self.type_name() } else { None };
        self.skip_group();
        self.expect_symbol(")")?;
        let cast = value.zip(target).and_then(|(value, target)| match value {
            Expr::Literal(literal) => self.cast_literal(literal, digits, &target).map(Expr::Literal),
            value @ (Expr::Column(_) | Expr::Call(..)) => Some(Expr::Call(
                Function::Cast(CastType::parse(&target)?, Clock::new(self.zone?)),
                Box::new(value),
            )),
            Expr::Unknown(_) => None,
        });
        match cast {
            Some(cast) => Ok(Node::Value(cast)),
            None => self.unsupported(start, "this cast is not supported in a predicate").map(Node::Value),
        }
    }

    /// Returns the digits of the number from `from` to the current token, with its sign. A cast to FLOAT must
    /// round them once, not twice.
    fn number_text(&self, from: usize) -> Option<String> {
        let mut text = String::new();
        for at in from..self.position() {
            match self.token(at) {
                Some(Token::Symbol(sign)) if sign == "-" => text.push('-'),
                Some(Token::Symbol(other)) if matches!(other.as_str(), "+" | "(" | ")") => {}
                Some(Token::Number(digits, _)) => text.push_str(digits),
                _ => return None,
            }
        }
        Some(text)
    }

    /// Parses the name of a type in upper case, with its numbers: `DECIMAL(10,2)`.
    fn type_name(&mut self) -> Option<String> {
        let Some(Token::Word(name)) = self.next() else { return None };
        let mut name = name.to_ascii_uppercase();
        if self.symbol("(") {
            name.push('(');
            while let Some(Token::Number(..) | Token::Symbol(_)) = self.peek() {
                let token = self.next()?;
                name.push_str(&token.to_string());
                if matches!(&token, Token::Symbol(s) if s == ")") {
                    break;
                }
            }
        }
        matches!(self.peek(), Some(Token::Symbol(s)) if s == ")").then_some(name)
    }

    fn cast_literal(&self, literal: Literal, digits: Option<String>, target: &str) -> Option<Literal> {
        let range = match target {
            "TINYINT" | "BYTE" => Some(i64::from(i8::MAX)),
            "SMALLINT" | "SHORT" => Some(i64::from(i16::MAX)),
            "INT" | "INTEGER" => Some(i64::from(i32::MAX)),
            "BIGINT" | "LONG" => Some(i64::MAX),
            _ => None,
        };
        match (literal, target) {
            (Literal::Null, _) => Some(Literal::Null),
            (Literal::Integer(v), _) if range.is_some_and(|max| v <= max && v >= -max - 1) => {
                Some(Literal::Integer(v))
            }
            (Literal::Boolean(v), "BOOLEAN") => Some(Literal::Boolean(v)),
            (Literal::String(v), "STRING") => Some(Literal::String(v)),
            (Literal::String(v), "FLOAT" | "REAL" | "DOUBLE") => match v.as_str() {
                "NaN" => Some(Literal::Double(f64::NAN)),
                "Infinity" => Some(Literal::Double(f64::INFINITY)),
                "-Infinity" => Some(Literal::Double(f64::NEG_INFINITY)),
                _ => None,
            },
            (Literal::Integer(_) | Literal::Decimal { .. } | Literal::Double(_), "FLOAT" | "REAL") => {
                Some(Literal::Double(digits?.parse::<f32>().ok()?.into()))
            }
            (Literal::Integer(_) | Literal::Decimal { .. } | Literal::Double(_), "DOUBLE") => {
                Some(Literal::Double(digits?.parse().ok()?))
            }
            (Literal::Integer(v), _) => decimal_cast(i128::from(v), 0, target),
            (Literal::Decimal { unscaled, scale }, _) => decimal_cast(unscaled, scale, target),
            (Literal::String(v), "DATE" | "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIMESTAMP_NTZ") => {
                self.typed(target, &v)
            }
            (v @ Literal::Date(_), "DATE") | (v @ Literal::Timestamp(_), "TIMESTAMP") => Some(v),
            (v @ Literal::TimestampNtz(_), "TIMESTAMP_NTZ") => Some(v),
            _ => None,
        }
    }

    /// Parses the literal `kind 'text'`.
    fn typed(&self, kind: &str, text: &str) -> Option<Literal> {
        let text = text.trim();
        match kind {
            "DATE" => parse_date(text).map(Literal::Date),
            "TIMESTAMP" | "TIMESTAMP_LTZ" => {
                let (micros, offset) = parse_timestamp(text)?;
                match offset {
                    Offset::Seconds(seconds) => {
                        micros.checked_sub(seconds * 1_000_000).map(Literal::Timestamp)
                    }
                    Offset::None => self.instant(micros).map(Literal::Timestamp),
                }
            }
            "TIMESTAMP_NTZ" => match parse_timestamp(text)? {
                (micros, Offset::None) => Some(Literal::TimestampNtz(micros)),
                _ => None,
            },
            "X" => bytes(text),
            _ => None,
        }
    }

    /// Returns the instant whose local time in the session's zone is `micros`, if there is exactly one.
    fn instant(&self, micros: i64) -> Option<i64> {
        let local = DateTime::from_timestamp_micros(micros)?.naive_utc();
        match self.zone?.from_local_datetime(&local) {
            LocalResult::Single(instant) => Some(instant.timestamp_micros()),
            LocalResult::Ambiguous(..) | LocalResult::None => None,
        }
    }
}

/// Returns the decimal if the type named `target` represents it without rounding.
fn decimal_cast(unscaled: i128, scale: u8, target: &str) -> Option<Literal> {
    let inner =
        target.strip_prefix("DECIMAL(").or_else(|| target.strip_prefix("NUMERIC("))?.strip_suffix(')')?;
    let (precision, target_scale) = inner.split_once(',').unwrap_or((inner, "0"));
    let (precision, target_scale): (u32, u8) =
        (precision.trim().parse().ok()?, target_scale.trim().parse().ok()?);
    let more = target_scale.checked_sub(scale)?;
    let unscaled = unscaled.checked_mul(10i128.checked_pow(more.into())?)?;
    let fits = precision <= 38 && unscaled.unsigned_abs() < 10u128.checked_pow(precision)?;
    fits.then_some(Literal::Decimal { unscaled, scale: target_scale })
}

fn bytes(digits: &str) -> Option<Literal> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| -> Option<u8> {
        let text = std::str::from_utf8(pair).ok()?;
        (text.len() == 2 && text.bytes().all(|b| b.is_ascii_hexdigit()))
            .then(|| u8::from_str_radix(text, 16).ok())?
    };
    pairs.map(byte).collect::<Option<Vec<u8>>>().map(Literal::Binary)
}

/// Parses the number with its sign and suffix, if it fits the type of the suffix.
fn number(negative: bool, digits: &str, suffix: &str) -> Option<Literal> {
    let text = if negative { format!("-{digits}") } else { digits.to_owned() };
    let whole =
        |min: i64, max: i64| text.parse().ok().filter(|v| (min..=max).contains(v)).map(Literal::Integer);
    match suffix {
        "L" => whole(i64::MIN, i64::MAX),
        "S" => whole(i16::MIN.into(), i16::MAX.into()),
        "Y" => whole(i8::MIN.into(), i8::MAX.into()),
        "D" => text.parse().ok().filter(|v: &f64| v.is_finite()).map(Literal::Double),
        "F" => text.parse().ok().filter(|v: &f32| v.is_finite()).map(|v| Literal::Double(v.into())),
        "BD" => decimal(&text),
        "" if digits.contains(['e', 'E']) => {
            text.parse().ok().filter(|v: &f64| v.is_finite()).map(Literal::Double)
        }
        "" => text.parse().ok().map(Literal::Integer).or_else(|| decimal(&text)),
        _ => None,
    }
}

fn decimal(text: &str) -> Option<Literal> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches(['-', '0']).len();
    let scale = u8::try_from(fraction.len()).ok().filter(|scale| usize::from(*scale) <= MAX_DIGITS)?;
    (significant <= MAX_DIGITS).then_some(())?;
    Some(Literal::Decimal { unscaled: digits.parse().ok()?, scale })
}
