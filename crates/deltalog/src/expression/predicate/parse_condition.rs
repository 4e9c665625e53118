//! Parses conditions in SQL text: comparisons, IN, BETWEEN, LIKE and IS.

use super::ast::{CompareOp, Expr, Literal, Predicate};
use super::compute::{Operation, RegexUse};
use super::function::Function;
use super::parse::{CONDITION, Node, ParseMode, Parser, argument_of};
use super::token::Token;
use crate::error::{Error, Result};

impl Parser<'_> {
    pub(super) fn condition(&mut self) -> Result<Node> {
        let start = self.position();
        let mut node = self.value()?;
        loop {
            let height = self.height;
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
                        self.grow(height)?;
                        continue;
                    }
                    Err(done) => return Ok(done),
                },
                _ => return Ok(node),
            };
            self.next();
            let right = self.value()?;
            let (left, right) = (self.value_of(node), self.value_of(right));
            node = Node::Condition(Predicate::Compare { op, left, right });
            self.grow(height)?;
        }
    }

    /// Parses a following IN, BETWEEN, LIKE or IS. If none of them follows, returns the node unchanged as the inner
    /// `Err`.
    fn after_value(&mut self, start: usize, node: Node) -> Result<Result<Node, Node>> {
        if self.keyword("IS") {
            return self.is(node).map(Ok);
        }
        let negated = matches!(self.peek_second(), Some(Token::Word(_))) && self.keyword("NOT");
        let condition = if self.keyword("IN") {
            let value = self.value_of(node);
            Predicate::In { value, list: self.list()? }
        } else if self.keyword("BETWEEN") {
            let value = self.value_of(node);
            let low = self.operand()?;
            if !self.keyword("AND") {
                return Err(self.unexpected());
            }
            let height = self.height;
            let high = self.operand()?;
            self.height = self.height.max(height);
            value.between(low, high)
        } else if self.keyword("LIKE") {
            let value = self.value_of(node);
            self.like(start, value)?
        } else if self.keyword("ILIKE") {
            // ILIKE compares both sides in lower case, as in Spark.
            let value = Expr::Apply(Operation::Lower, vec![self.value_of(node)]);
            let value = self.computed(start, value);
            match self.like(start, value)? {
                Predicate::Like { value, pattern, escape } => {
                    Predicate::Like { value, pattern: pattern.to_lowercase(), escape }
                }
                other => other,
            }
        } else if self.keyword("RLIKE") || self.keyword("REGEXP") {
            let (value, height) = (argument_of(node), self.height);
            let arguments = vec![value, argument_of(self.value()?)];
            self.grow(height)?;
            Predicate::Value(self.computed(start, Expr::Apply(Operation::Regex(RegexUse::Like), arguments)))
        } else if negated {
            return Err(self.unexpected());
        } else {
            return Ok(Err(node));
        };
        Ok(Ok(Node::Condition(if negated { condition.not() } else { condition })))
    }

    fn is(&mut self, node: Node) -> Result<Node> {
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
            let left = self.value_of(node);
            let same = left.null_safe_eq(self.operand()?);
            return Ok(Node::Condition(if negated { same } else { same.not() }));
        } else {
            return Err(self.unexpected());
        };
        let condition = Predicate::Is { condition: Box::new(self.condition_of(node)?), truth };
        Ok(Node::Condition(if negated { condition.not() } else { condition }))
    }

    fn operand(&mut self) -> Result<Expr> {
        let node = self.value()?;
        Ok(self.value_of(node))
    }

    fn list(&mut self) -> Result<Vec<Expr>> {
        self.expect_symbol("(")?;
        let mut list = vec![self.operand()?];
        let mut height = self.height;
        while self.symbol(",") {
            list.push(self.operand()?);
            height = height.max(self.height);
        }
        self.height = height;
        self.expect_symbol(")")?;
        Ok(list)
    }

    fn like(&mut self, start: usize, value: Expr) -> Result<Predicate> {
        let given = self.operand()?;
        let escape =
            if self.keyword("ESCAPE") { self.operand()? } else { Literal::String("\\".to_owned()).into() };
        if let (Some(pattern), Some(escape)) = (constant_text(&given), constant_text(&escape)) {
            let mut chars = escape.chars();
            if let (Some(escape), None) = (chars.next(), chars.next()) {
                let like = Predicate::Like { value, pattern: pattern.to_owned(), escape };
                // A pattern in double quotes might be meant as the name of a column. The added condition is always
                // true, but it makes the binder refuse the pattern if such a column exists.
                return Ok(match given {
                    Expr::DoubleQuoted(text) if !text.contains('%') => {
                        like.and(Expr::DoubleQuoted(text).is_not_null())
                    }
                    _ => like,
                });
            }
        }
        self.unsupported(start, "LIKE needs a constant pattern and an escape of one character")
            .map(Predicate::Value)
    }

    pub(super) fn condition_of(&self, node: Node) -> Result<Predicate> {
        match node {
            Node::Condition(condition) => Ok(condition),
            Node::Value(
                value @ (Expr::Column(_)
                | Expr::Unknown(_)
                | Expr::Literal(Literal::Boolean(_) | Literal::Null)),
            ) => Ok(Predicate::Value(value)),
            Node::Value(Expr::Condition(condition)) => Ok(*condition),
            Node::Value(value @ (Expr::Call(..) | Expr::Apply(..))) if self.mode == ParseMode::Strict => {
                Ok(Predicate::Value(value))
            }
            Node::Value(value) => match self.mode {
                ParseMode::Strict => {
                    Err(Error::invalid_argument(format!("{value} is not a condition")).with_hint(CONDITION))
                }
                ParseMode::Pruning => Ok(Predicate::unknown(value.to_string())),
            },
        }
    }

    /// Returns the node as a value to compare. Comparisons ignore the type of a constant, so a cast literal becomes a
    /// plain literal.
    pub(super) fn value_of(&self, node: Node) -> Expr {
        let value = argument_of(node);
        let folded = match &value {
            Expr::Typed(literal, _) => Some(literal.clone()),
            Expr::Call(Function::Cast(to, _), of) => match of.as_ref() {
                Expr::Literal(literal) | Expr::Typed(literal, _) => self.cast_literal(literal, *to),
                _ => None,
            },
            _ => None,
        };
        match folded {
            Some(literal) => Expr::Literal(literal),
            None => value,
        }
    }
}

/// Returns the content of a string literal; `None` for other values.
pub(super) fn constant_text(value: &Expr) -> Option<&str> {
    match value {
        Expr::Literal(Literal::String(text)) | Expr::DoubleQuoted(text) => Some(text),
        _ => None,
    }
}
