//! Parses SQL text to a [`Predicate`] or a value. The supported grammar is the part of Spark's expression grammar
//! that this crate can compute.
//!
//! ```text
//! or         := and (OR and)*
//! and        := not (AND not)*
//! not        := NOT not | condition
//! condition  := value (op value | [NOT] IN (value, …) | [NOT] BETWEEN value AND value
//!                      | [NOT] (LIKE | ILIKE) text [ESCAPE text] | [NOT] (RLIKE | REGEXP) text | IS [NOT] …)*
//! value      := simple (operator simple)*                                    see `parse_value`
//! simple     := (literal | column | CAST(…) | CASE … END | function(…) | (or)) (:: type)*
//! ```
//!
//! - [`ParseMode::Strict`] reports the first unexpected token. [`ParseMode::Pruning`] never fails: the
//!   smallest part of the text that can safely be cut out becomes [`Expr::Unknown`].
//! - Parentheses delimit a group regardless of their contents, so a group that cannot be parsed becomes Unknown as a
//!   whole. Conditions joined by `AND` before the unexpected token are kept only if no `OR` follows in the same group.
//!   Otherwise, they would be only one of the alternatives of the `OR`.
//! - In pruning mode, only values that can restrict a column are kept: literals, columns, and functions that preserve
//!   a column's order. All other values become Unknown.
//! - Nesting and the height of the tree are limited, so that no text can exhaust the stack.

use super::ast::{Expr, Predicate};
use super::size::too_large;
use super::stack::on_stack;
use super::token::{SYNTAX, Token, tokenize};
use super::zone::Clock;
use crate::error::{Error, Result};
use crate::limits::{EXPRESSION_NODES, TEXT_LEVELS};
use crate::runtime::clock;

/// How to treat text that cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseMode {
    /// Refuse the text. This mode is for predicates that users write.
    Strict,
    /// Treat the text as a condition that may be true for any row. This mode is for predicates that an engine pushes
    /// down and also evaluates itself.
    Pruning,
}

/// Parses `sql`, a condition in Spark's SQL.
///
/// `time_zone` is the zone for `TIMESTAMP '…'` without an offset, like Spark's `spark.sql.session.timeZone`: an IANA
/// name such as `Europe/Berlin`, or an offset such as `+02:00`. A local time that the zone skips or repeats is
/// refused. If the zone is unknown, all local times are refused.
///
/// # Errors
/// Returns [`crate::ErrorKind::InvalidArgument`] in [`ParseMode::Strict`] if a part of the text is not understood.
/// There are no errors in [`ParseMode::Pruning`].
///
/// ```
/// use deltalog::{ParseMode, col, lit, parse_predicate};
///
/// let predicate = parse_predicate("region = 'eu' AND n < 5", "UTC", ParseMode::Strict)?;
/// assert_eq!(predicate, col("region").eq(lit("eu")).and(col("n").lt(lit(5))));
/// # Ok::<(), deltalog::Error>(())
/// ```
pub fn parse(sql: &str, time_zone: &str, mode: ParseMode) -> Result<Predicate> {
    parse_at(sql, time_zone, mode, clock::micros())
}

/// Parses a condition as [`parse`] does, for a statement that began at `begun`, in microseconds since 1970.
pub(super) fn parse_at(sql: &str, time_zone: &str, mode: ParseMode, begun: i64) -> Result<Predicate> {
    let read = Parser::read(sql, time_zone, mode, begun);
    let outcome = read.and_then(|(parser, node)| {
        let condition = parser.condition_of(node)?;
        Ok(match parser.zone {
            Some(Clock::UTC) => condition,
            clock => Predicate::InZone { clock, condition: Box::new(condition) },
        })
    });
    match (outcome, mode) {
        (Err(_), ParseMode::Pruning) => Ok(Predicate::unknown(sql)),
        (outcome, _) => outcome,
    }
}

/// Parses `sql`, a value in Spark's SQL. `time_zone` has the same meaning as for [`parse`].
///
/// # Errors
/// [`crate::ErrorKind::InvalidArgument`] if a part of the text is not understood.
pub(super) fn parse_value(sql: &str, time_zone: &str) -> Result<Expr> {
    parse_value_at(sql, time_zone, clock::micros())
}

/// Parses a value as [`parse_value`] does, for a statement that began at `begun`, in microseconds since 1970.
pub(super) fn parse_value_at(sql: &str, time_zone: &str, begun: i64) -> Result<Expr> {
    let (_, node) = Parser::read(sql, time_zone, ParseMode::Strict, begun)?;
    Ok(argument_of(node))
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
    pub(super) zone: Option<Clock>,
    pub(super) zone_name: &'a str,
    /// When the statement began, in microseconds since 1970.
    pub(super) begun: i64,
    depth: usize,
    /// The number of operators, functions and columns so far.
    nodes: usize,
    /// The height of the syntax tree that was parsed last.
    pub(super) height: usize,
}

/// Returns the node as a value. A condition that consists only of a value, such as NULL or a boolean column, becomes
/// that value; any other condition becomes an [`Expr::Condition`].
pub(super) fn argument_of(node: Node) -> Expr {
    match node {
        Node::Value(value) | Node::Condition(Predicate::Value(value)) => value,
        Node::Condition(condition) => Expr::Condition(Box::new(condition)),
    }
}

impl<'a> Parser<'a> {
    /// Parses the whole text.
    fn read(sql: &str, zone_name: &'a str, mode: ParseMode, begun: i64) -> Result<(Self, Node)> {
        let tokens = tokenize(sql)?;
        let zone = Clock::named(zone_name);
        let mut parser = Self { tokens, at: 0, mode, zone, zone_name, begun, depth: 0, nodes: 0, height: 0 };
        let node = parser.group()?;
        match parser.peek() {
            None => Ok((parser, node)),
            Some(_) => Err(parser.unexpected()),
        }
    }
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

    /// Returns the error for an unexpected current token.
    pub(super) fn unexpected(&self) -> Error {
        self.unexpected_at(self.at)
    }

    /// Returns the error for an unexpected token at index `at`.
    pub(super) fn unexpected_at(&self, at: usize) -> Error {
        let what = self.token(at).map_or_else(|| "its end".to_owned(), |token| format!("\"{token}\""));
        Error::invalid_argument(format!("the SQL cannot be parsed at {what} (token {})", at + 1))
            .with_hint(SYNTAX)
    }

    /// Handles an expression that is valid SQL but not supported: returns an error, or Unknown in pruning mode.
    pub(super) fn unsupported(&self, from: usize, why: &str) -> Result<Expr> {
        let text = self.text(from);
        match self.mode {
            ParseMode::Strict => Err(Error::invalid_argument(format!("{why}: {text}")).with_hint(SPARK)),
            ParseMode::Pruning => Ok(Expr::Unknown(text)),
        }
    }

    /// Returns `value`, the result of an operator or of a function that does not preserve order. In pruning mode,
    /// returns Unknown instead.
    pub(super) fn computed(&self, from: usize, value: Expr) -> Expr {
        match self.mode {
            ParseMode::Strict => value,
            ParseMode::Pruning => Expr::Unknown(self.text(from)),
        }
    }

    /// Updates `height` for a new node with two children: the node that was parsed last, and one of height `other`.
    pub(super) fn grow(&mut self, other: usize) -> Result<()> {
        self.height = 1 + self.height.max(other);
        match self.height > TEXT_LEVELS {
            true => Err(too_deep()),
            false => Ok(()),
        }
    }

    /// Counts an operator, a function or a column.
    pub(super) fn count(&mut self) -> Result<()> {
        self.nodes += 1;
        match self.nodes > EXPRESSION_NODES {
            true => Err(too_large()),
            false => Ok(()),
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

    /// Parses up to the end of the text, or to the parenthesis or comma that ends this group.
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
        if self.depth + levels > TEXT_LEVELS {
            return Err(too_deep());
        }
        self.depth += levels;
        let node = on_stack(|| read(self));
        self.depth -= levels;
        node
    }

    fn at_group_end(&self) -> bool {
        self.peek().is_none() || self.is_symbol(")") || self.is_symbol(",")
    }

    /// In pruning mode, replaces everything from `start` to the end of the group with Unknown. Otherwise, returns
    /// `error`.
    fn recover(&mut self, start: usize, error: Error) -> Result<Node> {
        if self.mode == ParseMode::Strict {
            return Err(error);
        }
        self.at = start;
        self.skip_group();
        Ok(Node::Value(Expr::Unknown(self.text(start))))
    }

    /// Skips to the end of the group. Returns whether it passed, at the group's own level, an OR or a symbol (`||`,
    /// `->` or a comma) that may likewise give the preceding conditions another meaning.
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

    pub(super) fn or(&mut self) -> Result<Node> {
        let first = self.and()?;
        if !self.keyword("OR") {
            return Ok(first);
        }
        let mut any = self.condition_of(first)?;
        let mut height = self.height;
        loop {
            let next = self.and()?;
            any = any.or(self.condition_of(next)?);
            height = height.max(self.height);
            self.height = height;
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
        let mut height = self.height;
        loop {
            let start = self.at;
            match self.conjunct() {
                Ok(next) => {
                    all = all.and(next);
                    height = height.max(self.height);
                    self.height = height;
                }
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
        const AFTER: [&str; 7] = ["AND", "OR", "WHEN", "THEN", "ELSE", "END", "AS"];
        let follows = |word: &str| AFTER.iter().any(|after| after.eq_ignore_ascii_case(word));
        let follows = matches!(self.peek(), Some(Token::Word(word)) if follows(word));
        if follows || self.at_group_end() { self.condition_of(node) } else { Err(self.unexpected()) }
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
        for _ in 0..negations {
            self.grow(0)?;
        }
        Ok(Node::Condition((0..negations).fold(condition, |inner, _| inner.not())))
    }
}

/// The hint of errors for expressions that are valid but not implemented.
pub(super) const SPARK: &str = "use the operators and functions of FUNCTIONS.md in deltalog's repository, or let Spark \
                                evaluate the expression";

/// The hint for a value that is not a condition.
pub(super) const CONDITION: &str = "compare it, as in `day` = 3, or test it, as in `day` IS NOT NULL";

fn too_deep() -> Error {
    Error::invalid_argument(format!("the SQL is nested deeper than {TEXT_LEVELS} levels"))
        .with_hint("join conditions with AND or OR, which does not nest them")
}
