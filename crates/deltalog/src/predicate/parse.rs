//! The parser of SQL text to a [`Predicate`]. It supports the part of Spark's expression grammar that
//! restricts single columns.
//!
//! ```text
//! or         := and (OR and)*
//! and        := not (AND not)*
//! not        := NOT not | condition
//! condition  := value (op value | [NOT] IN (value, …) | [NOT] BETWEEN value AND value
//!                      | [NOT] LIKE text [ESCAPE text] | IS [NOT] …)*
//! value      := literal | column | CAST(…) | function(…) | (or)            see `parse_value`
//! ```
//!
//! - [`ParseMode::Strict`] reports the first unexpected token. [`ParseMode::Pruning`] never fails: the
//!   smallest part of the text that can safely be cut out becomes [`Expr::Unknown`].
//! - Parentheses delimit a unit whatever their contents, so a group that is not understood is Unknown as a
//!   whole. Conditions that `AND` joins before the unexpected token are kept only if no `OR` follows in the
//!   same group, because `OR` would bind them differently.
//! - Nesting is limited, so that no text can exhaust the stack.

use super::ast::{CompareOp, Expr, Literal, Predicate};
use super::token::{Token, tokenize};
use crate::error::{Error, Result};
use chrono_tz::Tz;

/// The maximum nesting depth of parentheses and NOTs.
const MAX_DEPTH: usize = 100;

/// The treatment of text that is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseMode {
    /// Refuse it. For predicates that users write.
    Strict,
    /// Treat it as possibly true for any row. For predicates that an engine pushes down and also evaluates
    /// itself.
    Pruning,
}

/// Parses `sql`, a condition in Spark's SQL.
///
/// `time_zone` is the zone of `TIMESTAMP '…'` without an offset, as in Spark's `spark.sql.session.timeZone`:
/// a name of the IANA database such as `Europe/Berlin`. A local time that the zone skips or repeats is not
/// understood; if the zone is unknown, no local time is.
///
/// # Errors
/// [`crate::ErrorKind::InvalidArgument`] in [`ParseMode::Strict`] if a part of the text is not understood;
/// never in [`ParseMode::Pruning`].
///
/// ```
/// use deltalog::{ParseMode, col, lit, parse_predicate};
///
/// let predicate = parse_predicate("region = 'eu' AND n < 5", "UTC", ParseMode::Strict)?;
/// assert_eq!(predicate, col("region").eq(lit("eu")).and(col("n").lt(lit(5))));
/// # Ok::<(), deltalog::Error>(())
/// ```
pub fn parse(sql: &str, time_zone: &str, mode: ParseMode) -> Result<Predicate> {
    let outcome = tokenize(sql).and_then(|tokens| {
        let zone = time_zone.parse().ok();
        let mut parser = Parser { tokens, at: 0, mode, zone, zone_name: time_zone, depth: 0 };
        let node = parser.group()?;
        match parser.peek() {
            None => parser.condition_of(node),
            Some(_) => Err(parser.unexpected()),
        }
    });
    match (outcome, mode) {
        (Err(_), ParseMode::Pruning) => Ok(Predicate::unknown(sql)),
        (outcome, _) => outcome,
    }
}

/// A parsed expression.
#[derive(Debug)]
pub(super) enum Node {
    Value(Expr),
    Condition(Predicate),
}

pub(super) struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    pub(super) mode: ParseMode,
    pub(super) zone: Option<Tz>,
    pub(super) zone_name: &'a str,
    depth: usize,
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    pub(super) fn peek_second(&self) -> Option<&Token> {
        self.tokens.get(self.at + 1)
    }

    pub(super) fn token(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at)
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += usize::from(token.is_some());
        token
    }

    pub(super) fn keyword(&mut self, word: &str) -> bool {
        let here = matches!(self.peek(), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word));
        self.at += usize::from(here);
        here
    }

    pub(super) fn symbol(&mut self, symbol: &str) -> bool {
        let here = self.is_symbol(symbol);
        self.at += usize::from(here);
        here
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Some(Token::Symbol(s)) if s == symbol)
    }

    pub(super) fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.symbol(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Returns the error for the current token.
    pub(super) fn unexpected(&self) -> Error {
        self.unexpected_at(self.at)
    }

    /// Returns the error for the token at `at`.
    pub(super) fn unexpected_at(&self, at: usize) -> Error {
        let what = self.token(at).map_or_else(|| "its end".to_owned(), |token| format!("\"{token}\""));
        Error::invalid_argument(format!("the predicate cannot be parsed at {what} (token {})", at + 1))
    }

    /// Handles an expression that is valid but not supported: an error, or the unknown value in pruning mode.
    pub(super) fn unsupported(&self, from: usize, why: &str) -> Result<Expr> {
        let text = self.text(from);
        match self.mode {
            ParseMode::Strict => Err(Error::invalid_argument(format!("{why}: {text}"))),
            ParseMode::Pruning => Ok(Expr::Unknown(text)),
        }
    }

    /// Returns the text of the tokens from `from` to the current one, truncated if it is long.
    fn text(&self, from: usize) -> String {
        const LONGEST: usize = 40;
        let tokens = self.tokens.get(from..self.at).unwrap_or_default();
        let mut words: Vec<String> = tokens.iter().take(LONGEST).map(ToString::to_string).collect();
        if tokens.len() > LONGEST {
            words.push("…".to_owned());
        }
        words.join(" ")
    }

    /// Goes back to `position`.
    pub(super) fn rewind(&mut self, position: usize) {
        self.at = position;
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Parses up to the end or to the parenthesis that closes this group.
    pub(super) fn group(&mut self) -> Result<Node> {
        let start = self.at;
        let node = self.nested(1, Self::or);
        match node {
            Ok(node) if self.at_group_end() => Ok(node),
            Ok(_) => self.recover(start, self.unexpected()),
            Err(error) => self.recover(start, error),
        }
    }

    /// Calls `read` with the nesting depth increased by `levels`.
    pub(super) fn nested<T>(
        &mut self,
        levels: usize,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.depth + levels > MAX_DEPTH {
            return Err(Error::invalid_argument(format!(
                "the predicate is nested deeper than {MAX_DEPTH} levels"
            )));
        }
        self.depth += levels;
        let node = read(self);
        self.depth -= levels;
        node
    }

    fn at_group_end(&self) -> bool {
        self.peek().is_none() || self.is_symbol(")") || self.is_symbol(",")
    }

    /// Makes everything from `start` to the end of the group unknown, in pruning mode.
    fn recover(&mut self, start: usize, error: Error) -> Result<Node> {
        if self.mode == ParseMode::Strict {
            return Err(error);
        }
        self.at = start;
        self.skip_group();
        Ok(Node::Value(Expr::Unknown(self.text(start))))
    }

    /// Skips to the end of the group and returns whether it passed an OR at the group's own level.
    pub(super) fn skip_group(&mut self) -> bool {
        let (mut level, mut alternatives) = (0usize, false);
        while let Some(token) = self.peek() {
            match token {
                Token::Symbol(s) if matches!(s.as_str(), "(" | "[" | "{") => level += 1,
                Token::Symbol(s) if matches!(s.as_str(), ")" | "]" | "}") => match level.checked_sub(1) {
                    Some(outer) => level = outer,
                    None => break,
                },
                Token::Word(w) if level == 0 && w.eq_ignore_ascii_case("OR") => alternatives = true,
                Token::Symbol(s) if level == 0 && (s == "||" || s == "->" || s == ",") => alternatives = true,
                _ => {}
            }
            self.at += 1;
        }
        alternatives
    }

    fn or(&mut self) -> Result<Node> {
        let first = self.and()?;
        if !self.keyword("OR") {
            return Ok(first);
        }
        let mut any = self.condition_of(first)?;
        loop {
            let next = self.and()?;
            any = any.or(self.condition_of(next)?);
            if !self.keyword("OR") {
                return Ok(Node::Condition(any));
            }
        }
    }

    fn and(&mut self) -> Result<Node> {
        let first = self.not()?;
        if !self.keyword("AND") {
            return Ok(first);
        }
        let mut all = self.condition_of(first)?;
        loop {
            let start = self.at;
            match self.conjunct() {
                Ok(next) => all = all.and(next),
                Err(error) if self.mode == ParseMode::Strict => return Err(error),
                Err(error) => {
                    self.at = start;
                    if self.skip_group() {
                        return Err(error);
                    }
                    return Ok(Node::Condition(all.and(Predicate::unknown(self.text(start)))));
                }
            }
            if !self.keyword("AND") {
                return Ok(Node::Condition(all));
            }
        }
    }

    /// Parses one operand of an AND; the next token must be one that can follow a condition.
    fn conjunct(&mut self) -> Result<Predicate> {
        let node = self.not()?;
        let and_or = |word: &str| word.eq_ignore_ascii_case("AND") || word.eq_ignore_ascii_case("OR");
        let and_or = matches!(self.peek(), Some(Token::Word(word)) if and_or(word));
        if and_or || self.at_group_end() { self.condition_of(node) } else { Err(self.unexpected()) }
    }

    fn not(&mut self) -> Result<Node> {
        let mut negations = 0usize;
        while self.keyword("NOT") || self.symbol("!") {
            negations += 1;
        }
        let node = self.nested(negations, Self::condition)?;
        if negations == 0 {
            return Ok(node);
        }
        let condition = self.condition_of(node)?;
        Ok(Node::Condition((0..negations).fold(condition, |inner, _| inner.not())))
    }

    fn condition(&mut self) -> Result<Node> {
        let start = self.at;
        let mut node = self.value()?;
        let mut levels = 0;
        loop {
            levels += 1;
            if levels > MAX_DEPTH {
                return Err(self.unexpected());
            }
            let op = match self.peek() {
                Some(Token::Symbol(s)) => match s.as_str() {
                    "=" | "==" => CompareOp::Eq,
                    "<>" | "!=" => CompareOp::NotEq,
                    "<" => CompareOp::Lt,
                    "<=" => CompareOp::LtEq,
                    ">" => CompareOp::Gt,
                    ">=" => CompareOp::GtEq,
                    "<=>" => CompareOp::NullSafeEq,
                    _ => return Ok(node),
                },
                Some(Token::Word(_)) => match self.after_value(start, node)? {
                    Ok(more) => {
                        node = more;
                        continue;
                    }
                    Err(done) => return Ok(done),
                },
                _ => return Ok(node),
            };
            self.at += 1;
            let right_start = self.at;
            let right = self.value()?;
            let left = self.value_of(start, node)?;
            let right = self.value_of(right_start, right)?;
            node = Node::Condition(Predicate::Compare { op, left, right });
        }
    }

    /// Parses IN, BETWEEN, LIKE or IS; returns the node itself as `Err` if none of them follows.
    fn after_value(&mut self, start: usize, node: Node) -> Result<Result<Node, Node>> {
        if self.keyword("IS") {
            return self.is(start, node).map(Ok);
        }
        let negated = matches!(self.peek_second(), Some(Token::Word(_))) && self.keyword("NOT");
        let condition = if self.keyword("IN") {
            let value = self.value_of(start, node)?;
            Predicate::In { value, list: self.list()? }
        } else if self.keyword("BETWEEN") {
            let value = self.value_of(start, node)?;
            let low = self.operand()?;
            if !self.keyword("AND") {
                return Err(self.unexpected());
            }
            value.between(low, self.operand()?)
        } else if self.keyword("LIKE") {
            let value = self.value_of(start, node)?;
            self.like(start, value)?
        } else if negated {
            return Err(self.unexpected());
        } else {
            return Ok(Err(node));
        };
        Ok(Ok(Node::Condition(if negated { condition.not() } else { condition })))
    }

    fn is(&mut self, start: usize, node: Node) -> Result<Node> {
        let negated = self.keyword("NOT");
        let truth = if self.keyword("TRUE") {
            Some(true)
        } else if self.keyword("FALSE") {
            Some(false)
        } else if self.keyword("UNKNOWN") {
            None
        } else if self.keyword("NULL") {
            let condition = match node {
                Node::Value(value) => Predicate::IsNull(value),
                Node::Condition(condition) => Predicate::Is { condition: Box::new(condition), truth: None },
            };
            return Ok(Node::Condition(if negated { condition.not() } else { condition }));
        } else if self.keyword("DISTINCT") && self.keyword("FROM") {
            let left = self.value_of(start, node)?;
            let same = left.null_safe_eq(self.operand()?);
            return Ok(Node::Condition(if negated { same } else { same.not() }));
        } else {
            return Err(self.unexpected());
        };
        let condition = Predicate::Is { condition: Box::new(self.condition_of(node)?), truth };
        Ok(Node::Condition(if negated { condition.not() } else { condition }))
    }

    fn operand(&mut self) -> Result<Expr> {
        let start = self.at;
        let node = self.value()?;
        self.value_of(start, node)
    }

    fn list(&mut self) -> Result<Vec<Expr>> {
        self.expect_symbol("(")?;
        let mut list = vec![self.operand()?];
        while self.symbol(",") {
            list.push(self.operand()?);
        }
        self.expect_symbol(")")?;
        Ok(list)
    }

    fn like(&mut self, start: usize, value: Expr) -> Result<Predicate> {
        let pattern = self.operand()?;
        let escape = if self.keyword("ESCAPE") {
            self.operand()?
        } else {
            Expr::Literal(Literal::String("\\".to_owned()))
        };
        if let (Expr::Literal(Literal::String(pattern)), Expr::Literal(Literal::String(escape))) =
            (pattern, escape)
        {
            let mut chars = escape.chars();
            if let (Some(escape), None) = (chars.next(), chars.next()) {
                return Ok(Predicate::Like { value, pattern, escape });
            }
        }
        self.unsupported(start, "LIKE needs a constant pattern and an escape of one character")
            .map(Predicate::Value)
    }

    fn condition_of(&self, node: Node) -> Result<Predicate> {
        match node {
            Node::Condition(condition) => Ok(condition),
            Node::Value(
                value @ (Expr::Column(_)
                | Expr::Unknown(_)
                | Expr::Literal(Literal::Boolean(_) | Literal::Null)),
            ) => Ok(Predicate::Value(value)),
            Node::Value(value) => match self.mode {
                ParseMode::Strict => Err(Error::invalid_argument(format!("{value} is not a condition"))),
                ParseMode::Pruning => Ok(Predicate::unknown(value.to_string())),
            },
        }
    }

    /// Returns the node, which begins at token `start`, as a value to compare.
    fn value_of(&self, start: usize, node: Node) -> Result<Expr> {
        match node {
            Node::Value(value) => Ok(value),
            Node::Condition(Predicate::Value(value)) => Ok(value),
            Node::Condition(_) => self.unsupported(start, "a condition cannot be compared with a value"),
        }
    }
}
