//! Parses values in SQL text: literals, columns, operators, casts, CASE.
//!
//! - Operators have the precedence that Spark gives them (`Operation::infix`). Operators of equal precedence are
//!   evaluated from left to right.
//! - Literals have their meaning in Spark: `1` is an INT if it fits and a BIGINT otherwise, `1L`, `1S`, `1Y` are
//!   whole numbers of a certain width, `1.5` and `1.5BD` are decimals, `1.5D` and `1e3` are DOUBLE, `1.5F` is
//!   FLOAT.

use super::ast::{ColumnPath, Expr, Literal};
use super::compute::{Interval, Operation};
use super::function::{CastType, Function};
use super::parse::{Node, ParseMode, Parser, argument_of};
use super::token::{Token, is_reserved};
use crate::error::{Error, Result};
use crate::protocol::text::{Offset, decimal_text, parse_date, parse_timestamp};

/// The maximum number of digits of a decimal.
const MAX_DIGITS: usize = 38;

/// The precedence of `+` and `-`.
const SUM: u8 = 4;

impl Parser<'_> {
    /// Parses a value, including all operators that bind more tightly than comparisons.
    pub(super) fn value(&mut self) -> Result<Node> {
        self.operators(0)
    }

    /// Parses a value, including all operators whose precedence is greater than `least`.
    fn operators(&mut self, least: u8) -> Result<Node> {
        let start = self.position();
        let mut left = self.simple_value()?;
        loop {
            let operator = match self.peek() {
                Some(Token::Symbol(s)) if s == "[" => {
                    self.next();
                    self.skip_group();
                    self.expect_symbol("]")?;
                    left = Node::Value(
                        self.unsupported(start, "elements of arrays and maps are not supported")?,
                    );
                    continue;
                }
                Some(Token::Symbol(symbol) | Token::Word(symbol)) => Operation::infix(symbol),
                _ => None,
            };
            let Some((operation, precedence)) = operator.filter(|(_, precedence)| *precedence > least) else {
                return Ok(left);
            };
            self.next();
            self.count()?;
            let height = self.height;
            if matches!(operation, Operation::Add | Operation::Subtract) && self.keyword("INTERVAL") {
                let by = self.interval(start)?;
                let by = by.and_then(|by| if operation == Operation::Add { Some(by) } else { by.negated() });
                left = Node::Value(self.shifted(start, left, by)?);
                continue;
            }
            let right = argument_of(self.operators(precedence)?);
            let whole = match chained(argument_of(left), operation, precedence, right) {
                (whole, true) => {
                    self.grow(height.saturating_sub(1))?;
                    whole
                }
                (whole, false) => {
                    self.grow(height)?;
                    whole
                }
            };
            left = Node::Value(self.computed(start, whole));
            if matches!(left, Node::Value(Expr::Unknown(_))) {
                self.height = 1;
            }
        }
    }

    fn simple_value(&mut self) -> Result<Node> {
        let start = self.position();
        let mut node = self.primary()?;
        if !matches!(node, Node::Value(Expr::Literal(_) | Expr::Typed(..) | Expr::DoubleQuoted(_))) {
            self.count()?;
        }
        while self.symbol("::") {
            let target = self.type_name();
            self.grow(0)?;
            let cast = target.and_then(|to| self.cast_to(argument_of(node), to, false));
            node = Node::Value(match cast {
                Some(value) => value,
                None => self.unsupported(start, "this cast is not supported")?,
            });
        }
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node> {
        let start = self.position();
        let literal = match self.next() {
            Some(Token::Symbol(s)) if s == "(" => {
                let node = self.group()?;
                self.expect_symbol(")")?;
                return Ok(node);
            }
            Some(Token::Symbol(s)) if matches!(s.as_str(), "-" | "+" | "~") => {
                match (s.as_str(), self.peek().cloned()) {
                    ("-" | "+", Some(Token::Number(digits, suffix))) => {
                        self.next();
                        number(s == "-", &digits, &suffix)
                    }
                    _ => return self.unary(start, &s),
                }
            }
            Some(Token::Number(digits, suffix)) => number(false, &digits, &suffix),
            Some(Token::Text(text)) => Some(Literal::String(text).into()),
            Some(Token::DoubleQuoted(text)) => match self.mode {
                ParseMode::Pruning => Some(Literal::String(text).into()),
                ParseMode::Strict => match self.symbol(".") {
                    true => return Err(quoted_part(&text)),
                    false => Some(Expr::DoubleQuoted(text)),
                },
            },
            Some(Token::Hex(digits)) => bytes(&digits).map(Expr::Literal),
            Some(Token::Quoted(name)) => {
                self.height = 1;
                return self.column(name);
            }
            Some(Token::Word(word)) => return self.word(start, word),
            _ => return Err(self.unexpected_at(start)),
        };
        self.height = 1;
        match literal {
            Some(literal) => Ok(Node::Value(literal)),
            None => self.unsupported(start, "not a valid constant").map(Node::Value),
        }
    }

    /// Parses an interval after the keyword INTERVAL, such as `1 DAY`, `'1' DAY 2 HOURS` or `'1 day'`. Returns `None`
    /// if the interval is not supported.
    fn interval(&mut self, start: usize) -> Result<Option<Interval>> {
        let mut parts = Vec::new();
        loop {
            let sign = if self.symbol("-") { "-" } else { "" };
            let number = match self.peek().cloned() {
                Some(Token::Number(digits, suffix)) if suffix.is_empty() => digits,
                Some(Token::Text(text)) if parts.is_empty() || text.trim().parse::<i64>().is_ok() => text,
                _ if sign.is_empty() && !parts.is_empty() => break,
                _ => return Err(self.unexpected()),
            };
            self.next();
            let number = number.trim().to_owned();
            match self.peek().cloned() {
                Some(Token::Word(unit)) if !number.contains(char::is_whitespace) => {
                    self.next();
                    parts.push((format!("{sign}{number}"), unit.to_ascii_uppercase()));
                }
                _ if parts.is_empty() && sign.is_empty() => {
                    let words: Vec<String> = number.split_whitespace().map(str::to_ascii_uppercase).collect();
                    let pairs = words.chunks(2).map(|pair| match pair {
                        [number, unit] => Some((number.clone(), unit.clone())),
                        _ => None,
                    });
                    let Some(all) = pairs.collect::<Option<Vec<_>>>() else { return Ok(None) };
                    parts = all;
                    break;
                }
                _ => return Err(self.unexpected_at(start)),
            }
        }
        Ok(Interval::of(&parts))
    }

    /// Returns the sum of a value and an interval.
    fn shifted(&mut self, start: usize, of: Node, by: Option<Interval>) -> Result<Expr> {
        self.grow(0)?;
        // An operator that binds more tightly than `+`, as in `INTERVAL 1 DAY * 2`, would change the interval.
        let is_whole = match self.peek() {
            Some(Token::Symbol(s) | Token::Word(s)) => {
                Operation::infix(s).is_none_or(|(_, precedence)| precedence <= SUM)
                    && !s.eq_ignore_ascii_case("TO")
            }
            _ => true,
        };
        match (by.filter(|_| is_whole), self.zone) {
            (Some(by), Some(clock)) => {
                Ok(self.computed(start, Expr::Apply(Operation::Shift(by, clock), vec![argument_of(of)])))
            }
            _ => self.unsupported(start, "this interval is not supported"),
        }
    }

    /// Parses the operand that follows a unary operator.
    fn unary(&mut self, start: usize, symbol: &str) -> Result<Node> {
        let operand = argument_of(self.nested(1, Self::simple_value)?);
        self.grow(0)?;
        let value = match symbol {
            "-" => Expr::Apply(Operation::Negate, vec![operand]),
            "~" => Expr::Apply(Operation::BitNot, vec![operand]),
            _ => operand,
        };
        Ok(Node::Value(self.computed(start, value)))
    }

    /// Parses an expression that begins with a word: a keyword literal, a typed literal, a function or a column.
    fn word(&mut self, start: usize, word: String) -> Result<Node> {
        let upper = word.to_ascii_uppercase();
        self.height = 1;
        match upper.as_str() {
            "TRUE" => return Ok(Node::Value(Expr::Literal(Literal::Boolean(true)))),
            "FALSE" => return Ok(Node::Value(Expr::Literal(Literal::Boolean(false)))),
            "NULL" => return Ok(Node::Value(Expr::Literal(Literal::Null))),
            "CASE" => return self.nested(1, |parser| parser.case(start)),
            "INTERVAL" if self.mode == ParseMode::Strict => {
                let by = self.interval(start)?;
                self.expect_symbol("+")?;
                let to = self.operators(SUM)?;
                return self.shifted(start, to, by).map(Node::Value);
            }
            _ if is_reserved(&word) => return Err(self.unexpected_at(start)),
            _ => {}
        }
        if let Some(Token::Text(text) | Token::DoubleQuoted(text)) = self.peek().cloned() {
            self.next();
            return match self.typed(&upper, &text) {
                Some(literal) => Ok(Node::Value(Expr::Literal(literal))),
                None => self
                    .unsupported(start, &format!("not a constant (in time zone {})", self.zone_name))
                    .map(Node::Value),
            };
        }
        if !self.symbol("(") {
            let now = self.now(&upper);
            return match (now, self.column(word)?) {
                // A column with the function's name takes precedence over the function. Only the binder can find out
                // whether it exists, so it becomes the function's argument.
                (Some(Expr::Apply(now, _)), Node::Value(column)) => {
                    Ok(Node::Value(Expr::Apply(now, vec![column])))
                }
                (_, column) => Ok(column),
            };
        }
        match upper.as_str() {
            "CAST" => self.cast(start, false),
            "TRY_CAST" => self.cast(start, true),
            name => self.call(start, name),
        }
    }

    fn column(&mut self, first: String) -> Result<Node> {
        let mut parts = vec![first];
        while self.symbol(".") {
            match self.next() {
                Some(Token::Word(part) | Token::Quoted(part)) => parts.push(part),
                Some(Token::DoubleQuoted(part)) => return Err(quoted_part(&part)),
                _ => return Err(self.unexpected()),
            }
        }
        Ok(Node::Value(Expr::Column(ColumnPath::new(parts))))
    }

    /// Parses `CAST(value AS type)`, after the opening parenthesis.
    fn cast(&mut self, start: usize, lenient: bool) -> Result<Node> {
        let value = match self.nested(1, Self::or) {
            Ok(node) => Some(argument_of(node)),
            Err(error) if self.mode == ParseMode::Strict => return Err(error),
            Err(_) => None,
        };
        let target = if value.is_some() && self.keyword("AS") { self.type_name() } else { None };
        let target = target.filter(|_| matches!(self.peek(), Some(Token::Symbol(s)) if s == ")"));
        self.skip_group();
        self.expect_symbol(")")?;
        self.grow(0)?;
        let cast = value.zip(target).and_then(|(value, target)| self.cast_to(value, target, lenient));
        match cast {
            Some(value) => Ok(Node::Value(value)),
            None => self.unsupported(start, "this cast is not supported").map(Node::Value),
        }
    }

    fn cast_to(&self, value: Expr, to: CastType, lenient: bool) -> Option<Expr> {
        let restricts = matches!(value, Expr::Column(_) | Expr::Call(..));
        let (clock, of) = match (self.zone, value) {
            // In pruning mode, the cast of a literal becomes a literal or Unknown.
            (_, Expr::Literal(literal) | Expr::Typed(literal, _)) if self.mode == ParseMode::Pruning => {
                return self.cast_literal(&literal, to).map(Expr::Literal);
            }
            (None, Expr::Literal(literal) | Expr::Typed(literal, _)) => {
                return self.cast_literal(&literal, to).map(Expr::Literal);
            }
            (clock, value) => (clock?, value),
        };
        match self.mode {
            ParseMode::Strict if lenient => Some(Expr::Apply(Operation::TryCast(to, clock), vec![of])),
            ParseMode::Pruning if !restricts => None,
            _ => Some(Expr::Call(Function::Cast(to, clock), Box::new(of))),
        }
    }

    /// Parses the rest of `CASE [value] WHEN condition THEN value … [ELSE value] END`.
    fn case(&mut self, start: usize) -> Result<Node> {
        let is_simple = !matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case("WHEN"));
        let (mut height, mut arguments) = (0, Vec::new());
        if is_simple {
            let subject = self.or()?;
            height = self.height;
            arguments.push(self.value_of(subject));
        }
        let mut branches = 0;
        while self.keyword("WHEN") {
            branches += 1;
            let when = self.or()?;
            height = height.max(self.height + 1);
            arguments.push(if is_simple { self.value_of(when) } else { argument_of(when) });
            if !self.keyword("THEN") {
                return Err(self.unexpected());
            }
            arguments.push(argument_of(self.or()?));
            height = height.max(self.height);
        }
        if branches == 0 {
            return Err(self.unexpected());
        }
        if self.keyword("ELSE") {
            arguments.push(argument_of(self.or()?));
            height = height.max(self.height);
        }
        if !self.keyword("END") {
            return Err(self.unexpected());
        }
        self.grow(height)?;
        let operation = if is_simple { Operation::CaseOf } else { Operation::Case };
        Ok(Node::Value(self.computed(start, Expr::Apply(operation, arguments))))
    }

    /// Parses the name of a type, with its parameters if it has any: `DECIMAL(10,2)`.
    fn type_name(&mut self) -> Option<CastType> {
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
        CastType::parse(&name)
    }

    /// Converts the literal to the type if the conversion is exact.
    pub(super) fn cast_literal(&self, literal: &Literal, to: CastType) -> Option<Literal> {
        use CastType as T;
        let range = match to {
            T::TinyInt => Some(i64::from(i8::MAX)),
            T::SmallInt => Some(i64::from(i16::MAX)),
            T::Int => Some(i64::from(i32::MAX)),
            T::BigInt => Some(i64::MAX),
            _ => None,
        };
        match (literal, to) {
            (Literal::Null, _) => Some(Literal::Null),
            (Literal::Integer(v), _) if range.is_some_and(|max| *v <= max && *v >= -max - 1) => {
                Some(Literal::Integer(*v))
            }
            (Literal::String(v), T::Float | T::Double) => match v.as_str() {
                "NaN" => Some(Literal::Double(f64::NAN)),
                "Infinity" => Some(Literal::Double(f64::INFINITY)),
                "-Infinity" => Some(Literal::Double(f64::NEG_INFINITY)),
                _ => None,
            },
            // The digits of a decimal are rounded once, to FLOAT, without rounding to DOUBLE first.
            (Literal::Integer(v), T::Float) => Some(Literal::Double((*v as f32).into())),
            (Literal::Decimal { unscaled, scale }, T::Float) => {
                let digits = decimal_text(*unscaled, i8::try_from(*scale).ok()?)?;
                Some(Literal::Double(digits.parse::<f32>().ok()?.into()))
            }
            (Literal::Double(v), T::Float) => Some(Literal::Double((*v as f32).into())),
            (Literal::Integer(v), T::Double) => Some(Literal::Double(*v as f64)),
            (Literal::Decimal { unscaled, scale }, T::Double) => {
                let digits = decimal_text(*unscaled, i8::try_from(*scale).ok()?)?;
                Some(Literal::Double(digits.parse().ok()?))
            }
            (Literal::Integer(v), T::Decimal(precision, scale)) => {
                decimal_cast(i128::from(*v), 0, precision, scale)
            }
            (Literal::Decimal { unscaled, scale: from }, T::Decimal(precision, scale)) => {
                decimal_cast(*unscaled, *from, precision, scale)
            }
            (Literal::String(v), T::Date | T::Timestamp | T::TimestampNtz) => self.typed(&to.to_string(), v),
            (Literal::Boolean(_), T::Boolean)
            | (Literal::String(_), T::String)
            | (Literal::Double(_), T::Double)
            | (Literal::Date(_), T::Date)
            | (Literal::Timestamp(_), T::Timestamp)
            | (Literal::TimestampNtz(_), T::TimestampNtz) => Some(literal.clone()),
            _ => None,
        }
    }

    /// Parses a literal of the form `kind 'text'`, such as `DATE '2024-01-31'`.
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
                    Offset::None => self.zone?.only_instant(micros).map(Literal::Timestamp),
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
}

/// Returns an operator with its operands, and whether it was added to the chain of operators on its left.
pub(super) fn chained(left: Expr, operation: Operation, precedence: u8, right: Expr) -> (Expr, bool) {
    let binds_alike = |before: Operation| before.precedence() == Some(precedence);
    match left {
        // A chain of concatenations becomes one call with many arguments.
        Expr::Apply(Operation::Concat, mut all) if operation == Operation::Concat => {
            all.push(right);
            (Expr::Apply(operation, all), true)
        }
        Expr::Chain(first, mut steps) if steps.first().is_some_and(|(step, _)| binds_alike(*step)) => {
            steps.push((operation, right));
            (Expr::Chain(first, steps), true)
        }
        Expr::Apply(before, operands) if before != Operation::Concat && binds_alike(before) => {
            match <[Expr; 2]>::try_from(operands) {
                Ok([first, second]) => {
                    (Expr::Chain(Box::new(first), vec![(before, second), (operation, right)]), true)
                }
                Err(operands) => (Expr::Apply(operation, vec![Expr::Apply(before, operands), right]), false),
            }
        }
        first => (Expr::Apply(operation, vec![first, right]), false),
    }
}

/// Returns the decimal as a DECIMAL(precision, to) if that type represents it without rounding.
fn decimal_cast(unscaled: i128, scale: u8, precision: u8, to: i8) -> Option<Literal> {
    let to = u8::try_from(to).ok()?;
    let unscaled = unscaled.checked_mul(10i128.checked_pow(to.checked_sub(scale)?.into())?)?;
    let fits = unscaled.unsigned_abs() < 10u128.checked_pow(precision.into())?;
    fits.then_some(Literal::Decimal { unscaled, scale: to })
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

/// Returns the error for a column name with a part in double quotes, which is a string and not a name.
fn quoted_part(text: &str) -> Error {
    Error::invalid_argument(format!(
        "\"{text}\" is a string, because it is in double quotes, and not part of a name"
    ))
    .with_hint(format!("write the name in backticks, `{}`", text.replace('`', "``")))
}

/// Parses a number with its sign and suffix; `None` if it does not fit the suffix's type.
fn number(negative: bool, digits: &str, suffix: &str) -> Option<Expr> {
    let text = if negative { format!("-{digits}") } else { digits.to_owned() };
    let double = || text.parse().ok().filter(|v: &f64| v.is_finite()).map(|v| Literal::Double(v).into());
    let whole = |of: CastType, max: i64| {
        let value: i64 = text.parse().ok()?;
        (-max - 1..=max).contains(&value).then_some(Expr::Typed(Literal::Integer(value), of))
    };
    match suffix {
        "L" => whole(CastType::BigInt, i64::MAX),
        "S" => whole(CastType::SmallInt, i16::MAX.into()),
        "Y" => whole(CastType::TinyInt, i8::MAX.into()),
        "D" => double(),
        "F" => {
            let value: f32 = text.parse().ok().filter(|v: &f32| v.is_finite())?;
            Some(Expr::Typed(Literal::Double(value.into()), CastType::Float))
        }
        "BD" => decimal(&text).map(Expr::Literal),
        "" if digits.contains(['e', 'E']) => double(),
        "" => text.parse().ok().map(Literal::Integer).or_else(|| decimal(&text)).map(Expr::Literal),
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
