//! Parses function calls, in the syntax that users write and in the syntax of Spark's own `Expression.sql`.
//!
//! - A function that preserves the order of its argument becomes an `Expr::Call`; any other function becomes an
//!   `Expr::Apply`.
//! - Functions that abbreviate a condition or a CASE (`isnull`, `nullif`, `if`, …) become that condition or CASE.

use super::ast::{Expr, Literal, Predicate};
use super::compute::{Changes, Form, Moment, Operation, changes_of, is_function, names};
use super::function::{CastType, Function, TruncUnit};
use super::parse::{Node, ParseMode, Parser, argument_of};
use super::parse_condition::constant_text;
use super::parse_value::chained;
use super::token::Token;
use super::zone::Clock;
use crate::error::Result;

/// The functions that are not an [`Operation`], in upper case.
const OTHERS: [&str; 18] = [
    "YEAR",
    "EXTRACT",
    "DATE",
    "TO_DATE",
    "TO_TIMESTAMP",
    "TRUNC",
    "DATE_TRUNC",
    "DATE_SUB",
    "ADD_MONTHS",
    "LAST_DAY",
    "LEFT",
    "ISNULL",
    "ISNOTNULL",
    "IF",
    "IFF",
    "NULLIF",
    "NVL2",
    "STRUCT",
];

/// The functions that return the time at which the statement began, in upper case.
const MOMENTS: [(&str, Moment); 5] = [
    ("NOW", Moment::CurrentTimestamp),
    ("CURRENT_TIMESTAMP", Moment::CurrentTimestamp),
    ("CURRENT_DATE", Moment::CurrentDate),
    ("CURDATE", Moment::CurrentDate),
    ("LOCALTIMESTAMP", Moment::LocalTimestamp),
];

/// Returns the names of all functions, in lower case.
pub fn function_names() -> Vec<String> {
    let all = OTHERS.into_iter().chain(MOMENTS.map(|(name, _)| name)).chain(names());
    let mut all: Vec<String> = all.map(str::to_ascii_lowercase).collect();
    all.sort();
    all.dedup();
    all
}

/// Returns whether the value of the function `name` may change although its arguments are the same, and how often.
/// The name may be in upper or lower case.
pub(crate) fn function_changes(name: &str) -> Changes {
    let name = name.to_ascii_uppercase();
    match MOMENTS.iter().any(|(moment, _)| *moment == name) {
        true => Changes::ByStatement,
        false => changes_of(&name),
    }
}

impl Parser<'_> {
    /// Parses the rest of a call of the function `name` (in upper case) after the opening parenthesis.
    pub(super) fn call(&mut self, start: usize, name: &str) -> Result<Node> {
        let from = self.position();
        let clock = self.zone;
        if let Some(now) = self.now(name)
            && self.symbol(")")
        {
            return Ok(Node::Value(now));
        }
        let is_known = OTHERS.contains(&name) || is_function(name);
        let call = match is_known.then(|| self.arguments(name)) {
            Some(Ok((name, nodes))) => self.called(start, &name, nodes, clock)?,
            Some(Err(error)) if self.mode == ParseMode::Strict => return Err(error),
            Some(Err(_)) | None => {
                self.rewind(from);
                self.skip_group();
                self.expect_symbol(")")?;
                None
            }
        };
        match call {
            Some(node) => Ok(node),
            None if is_known => self
                .unsupported(start, "this function is not supported with these arguments")
                .map(Node::Value),
            None => self.unsupported(start, "this function is not supported").map(Node::Value),
        }
    }

    /// If `name` (in upper case) is a function that returns the time at which the statement began, returns that time.
    /// Always returns `None` in pruning mode, because an engine's conditions contain the time as a constant.
    pub(super) fn now(&self, name: &str) -> Option<Expr> {
        let (_, moment) = MOMENTS.iter().find(|(moment, _)| *moment == name)?;
        let clock = self.zone.filter(|_| self.mode == ParseMode::Strict)?;
        Some(Expr::Apply(Operation::Now(*moment, clock, self.begun), Vec::new()))
    }

    /// Parses arguments up to and including the closing parenthesis. Also returns the name of the function; for
    /// EXTRACT, this is the name of the extracted field.
    fn arguments(&mut self, name: &str) -> Result<(String, Vec<Node>)> {
        let mut name = name.to_owned();
        if name == "EXTRACT" {
            name = match self.next() {
                Some(Token::Word(field)) => field.to_ascii_uppercase(),
                _ => return Err(self.unexpected()),
            };
            if !self.keyword("FROM") {
                return Err(self.unexpected());
            }
        }
        let (mut arguments, mut height) = (Vec::new(), 0);
        if self.symbol(")") {
            self.height = 1;
            return Ok((name, arguments));
        }
        loop {
            let argument = self.nested(1, Self::or)?;
            if name == "STRUCT" {
                let field = self.field_name(&argument, arguments.len() / 2 + 1)?;
                arguments.push(Node::Value(Literal::String(field).into()));
            }
            arguments.push(argument);
            height = height.max(self.height);
            if self.symbol(")") {
                break;
            }
            self.expect_symbol(",")?;
        }
        self.grow(height)?;
        Ok((name, arguments))
    }

    /// Returns the name of a struct's field: the alias after `AS`, the name of the column, or `col` and a number.
    fn field_name(&mut self, value: &Node, number: usize) -> Result<String> {
        if self.keyword("AS") {
            return match self.next() {
                Some(Token::Word(alias) | Token::Quoted(alias)) => Ok(alias),
                _ => Err(self.unexpected()),
            };
        }
        Ok(match value {
            Node::Value(Expr::Column(path)) => path.parts().last().cloned().unwrap_or_default(),
            _ => format!("col{number}"),
        })
    }

    fn called(
        &self,
        start: usize,
        name: &str,
        nodes: Vec<Node>,
        clock: Option<Clock>,
    ) -> Result<Option<Node>> {
        if let Some(condition) = self.condition_called(name, &nodes) {
            return Ok(Some(Node::Condition(condition)));
        }
        let arguments: Vec<Expr> = nodes.into_iter().map(argument_of).collect();
        if let Some((function, argument)) = clock.and_then(|clock| ordered(name, &arguments, clock)) {
            let restricts = matches!(argument, Expr::Column(_) | Expr::Call(..));
            return Ok((restricts || self.mode == ParseMode::Strict)
                .then(|| Node::Value(Expr::Call(function, Box::new(argument.clone())))));
        }
        let value = match (name, arguments.as_slice()) {
            ("IF" | "IFF", [_, _, _]) => Some(Expr::Apply(Operation::Case, arguments)),
            ("NVL2", [value, some, none]) => {
                let is_some = Expr::Condition(Box::new(value.clone().is_not_null()));
                Some(Expr::Apply(Operation::Case, vec![is_some, some.clone(), none.clone()]))
            }
            ("NULLIF", [_, _]) => Some(Expr::Apply(Operation::NullIf, arguments)),
            ("STRUCT", _) => Some(Expr::Apply(Operation::NamedStruct, arguments)),
            ("LEFT", [text, length]) => {
                let first = Expr::Literal(Literal::Integer(1));
                Some(Expr::Apply(Operation::Substring, vec![text.clone(), first, length.clone()]))
            }
            ("DATE_SUB", [date, days]) => clock.map(|clock| {
                let days = Expr::Apply(Operation::Negate, vec![days.clone()]);
                Expr::Apply(Operation::DateAdd(clock), vec![date.clone(), days])
            }),
            _ => Operation::function(name, arguments.len(), clock)
                .map(|operation| applied(operation, arguments)),
        };
        Ok(value.map(|value| Node::Value(self.computed(start, value))))
    }

    /// Returns the condition that the call means, for `isnull`, `isnotnull`, and `startswith` with a literal prefix.
    fn condition_called(&self, name: &str, nodes: &[Node]) -> Option<Predicate> {
        let value = |node: &Node| match node {
            Node::Value(value) | Node::Condition(Predicate::Value(value)) => Some(value.clone()),
            Node::Condition(_) => None,
        };
        match (name, nodes) {
            ("STARTSWITH", [of, prefix]) => match (value(of)?, value(prefix)?) {
                (value, Expr::Literal(Literal::String(prefix))) => {
                    Some(Predicate::StartsWith { value, prefix })
                }
                _ => None,
            },
            ("ISNULL", [of]) => Some(value(of)?.is_null()),
            ("ISNOTNULL", [of]) => Some(value(of)?.is_not_null()),
            _ => None,
        }
    }
}

/// Returns an operation with its arguments. A function that means the same as an operator becomes the operator.
fn applied(operation: Operation, arguments: Vec<Expr>) -> Expr {
    match (operation.form(), <[Expr; 2]>::try_from(arguments)) {
        (Form::Infix(_, precedence), Ok([left, right])) => chained(left, operation, precedence, right).0,
        (_, Ok(both)) => Expr::Apply(operation, both.into()),
        (_, Err(arguments)) => Expr::Apply(operation, arguments),
    }
}

/// If the call preserves the order of one of its arguments, returns its function and that argument.
fn ordered<'a>(name: &str, arguments: &'a [Expr], clock: Clock) -> Option<(Function, &'a Expr)> {
    Some(match (name, arguments) {
        ("YEAR", [value]) => (Function::Year(clock), value),
        ("DATE" | "TO_DATE", [value]) => (Function::Cast(CastType::Date, clock), value),
        ("TO_TIMESTAMP", [value]) => (Function::Cast(CastType::Timestamp, clock), value),
        ("TRUNC", [value, unit]) => {
            (Function::Trunc(unit_of(unit).filter(|unit| unit.is_of_dates())?, clock), value)
        }
        ("DATE_TRUNC", [unit, value]) => (Function::DateTrunc(unit_of(unit)?, clock), value),
        ("DATE_ADD" | "DATEADD", [value, days]) => (Function::DateAdd(number_of(days)?, clock), value),
        ("DATE_SUB", [value, days]) => (Function::DateAdd(number_of(days)?.checked_neg()?, clock), value),
        ("ADD_MONTHS", [value, months]) => (Function::AddMonths(number_of(months)?, clock), value),
        ("LAST_DAY", [value]) => (Function::LastDay(clock), value),
        ("LEFT", [value, length]) => (Function::Left(length_of(length)?), value),
        // The first character is number 1, and number 0 means the same.
        ("SUBSTRING" | "SUBSTR", [value, from, length]) if matches!(number_of(from)?, 0 | 1) => {
            (Function::Left(length_of(length)?), value)
        }
        _ => return None,
    })
}

fn unit_of(unit: &Expr) -> Option<TruncUnit> {
    TruncUnit::parse(constant_text(unit)?)
}

fn number_of(number: &Expr) -> Option<i32> {
    match number {
        Expr::Literal(Literal::Integer(number)) | Expr::Typed(Literal::Integer(number), _) => {
            i32::try_from(*number).ok()
        }
        _ => None,
    }
}

/// Returns a length; negative lengths count as 0.
fn length_of(length: &Expr) -> Option<u32> {
    number_of(length).map(|length| u32::try_from(length).unwrap_or_default())
}
