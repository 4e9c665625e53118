//! Calls of functions that preserve the order of their argument, in the spellings of users and of Spark's own
//! `Expression.sql`.

use super::ast::{Expr, Literal, Predicate};
use super::function::{CastType, Function, TruncUnit};
use super::parse::{Node, Parser};
use super::zone::Clock;

impl Parser<'_> {
    /// Parses the call of the function `name`, in upper case, after the opening parenthesis. Returns `None`
    /// and consumes nothing if it is another function or has other arguments.
    pub(super) fn function(&mut self, name: &str) -> Option<Expr> {
        let start = self.position();
        let call = self.call(name);
        if call.is_none() {
            self.rewind(start);
        }
        call
    }

    fn call(&mut self, name: &str) -> Option<Expr> {
        const NAMES: [&str; 14] = [
            "YEAR",
            "EXTRACT",
            "DATE",
            "TO_DATE",
            "TRUNC",
            "DATE_TRUNC",
            "DATE_ADD",
            "DATEADD",
            "DATE_SUB",
            "ADD_MONTHS",
            "LAST_DAY",
            "LEFT",
            "SUBSTRING",
            "SUBSTR",
        ];
        let zone = Clock::new(self.zone?);
        NAMES.contains(&name).then_some(())?;
        if name == "EXTRACT" {
            self.keyword("YEAR").then_some(())?;
            self.keyword("FROM").then_some(())?;
        }
        let arguments = self.arguments()?;
        let (function, argument) = match (name, arguments.as_slice()) {
            ("YEAR" | "EXTRACT", [value]) => (Function::Year(zone), value),
            ("DATE" | "TO_DATE", [value]) => (Function::Cast(CastType::Date, zone), value),
            ("TRUNC", [value, unit]) => {
                (Function::Trunc(unit_of(unit).filter(|unit| unit.is_of_dates())?, zone), value)
            }
            ("DATE_TRUNC", [unit, value]) => (Function::DateTrunc(unit_of(unit)?, zone), value),
            ("DATE_ADD" | "DATEADD", [value, days]) => (Function::DateAdd(number_of(days)?, zone), value),
            ("DATE_SUB", [value, days]) => (Function::DateAdd(number_of(days)?.checked_neg()?, zone), value),
            ("ADD_MONTHS", [value, months]) => (Function::AddMonths(number_of(months)?, zone), value),
            ("LAST_DAY", [value]) => (Function::LastDay(zone), value),
            ("LEFT", [value, length]) => (Function::Left(length_of(length)?), value),
            // The first character is number 1; number 0 means the same.
            ("SUBSTRING" | "SUBSTR", [value, from, length]) if matches!(number_of(from)?, 0 | 1) => {
                (Function::Left(length_of(length)?), value)
            }
            _ => return None,
        };
        matches!(argument, Expr::Column(_) | Expr::Call(..))
            .then(|| Expr::Call(function, Box::new(argument.clone())))
    }

    /// Parses values up to and including the closing parenthesis.
    fn arguments(&mut self) -> Option<Vec<Expr>> {
        let mut arguments = Vec::new();
        loop {
            match self.nested(1, Self::value).ok()? {
                Node::Value(value) | Node::Condition(Predicate::Value(value)) => arguments.push(value),
                Node::Condition(_) => return None,
            }
            if self.symbol(")") {
                return Some(arguments);
            }
            self.symbol(",").then_some(())?;
        }
    }
}

fn unit_of(unit: &Expr) -> Option<TruncUnit> {
    match unit {
        Expr::Literal(Literal::String(name)) => TruncUnit::parse(name),
        _ => None,
    }
}

fn number_of(number: &Expr) -> Option<i32> {
    match number {
        Expr::Literal(Literal::Integer(number)) => i32::try_from(*number).ok(),
        _ => None,
    }
}

/// Returns a length; negative lengths count as 0.
fn length_of(length: &Expr) -> Option<u32> {
    number_of(length).map(|length| u32::try_from(length).unwrap_or_default())
}
