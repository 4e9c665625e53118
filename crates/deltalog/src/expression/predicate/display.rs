//! Formatting of predicates as SQL text.
//!
//! - Parsing the text with [`super::parse`] gives the same tree in any session time zone, because instants are
//!   written in UTC with a `Z`. The exceptions are functions and comparisons that use the session's time zone, which
//!   the text does not contain.
//! - Strings are escaped with backslashes, as in Spark's own `Literal.sql`.

use super::ast::{ColumnPath, Expr, Literal, Predicate};
use super::compute::{Form, Operation};
use super::function::{CastType, Function};
use super::stack::on_stack;
use super::token::is_reserved;
use crate::protocol::text::{date_text, timestamp_text};
use std::fmt::{self, Display, Formatter, Write};

impl Display for ColumnPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts().iter().enumerate() {
            if i > 0 {
                f.write_char('.')?;
            }
            let starts_well = part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if starts_well
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !is_reserved(part)
            {
                f.write_str(part)?;
            } else {
                write!(f, "`{}`", part.replace('`', "``"))?;
            }
        }
        Ok(())
    }
}

/// Writes `text` as a string literal.
fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('\'')?;
    for c in text.chars() {
        if matches!(c, '\\' | '\'') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char('\'')
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(true) => f.write_str("TRUE"),
            Self::Boolean(false) => f.write_str("FALSE"),
            Self::Integer(v) => write!(f, "{v}"),
            Self::Decimal { unscaled, scale } => {
                let sign = if *unscaled < 0 { "-" } else { "" };
                let scale = usize::from(*scale);
                let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
                let (whole, fraction) = digits.split_at(digits.len() - scale);
                let point = if scale > 0 { "." } else { "" };
                write!(f, "{sign}{whole}{point}{fraction}BD")
            }
            Self::Double(v) if v.is_nan() => f.write_str("CAST('NaN' AS DOUBLE)"),
            Self::Double(v) if v.is_infinite() => {
                write!(f, "CAST('{}Infinity' AS DOUBLE)", if *v < 0.0 { "-" } else { "" })
            }
            Self::Double(v) => write!(f, "{v:?}D"),
            Self::String(v) => quoted(f, v),
            Self::Binary(v) => {
                f.write_str("X'")?;
                v.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                f.write_char('\'')
            }
            Self::Date(days) => write!(f, "DATE '{}'", date_text(*days)),
            Self::Timestamp(micros) => write!(f, "TIMESTAMP '{}Z'", timestamp_text(*micros)),
            Self::TimestampNtz(micros) => write!(f, "TIMESTAMP_NTZ '{}'", timestamp_text(*micros)),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        on_stack(|| match self {
            Self::Column(path) => path.fmt(f),
            Self::Literal(literal) => literal.fmt(f),
            Self::Typed(Literal::Double(v), CastType::Float) => write!(f, "{:?}F", *v as f32),
            Self::Typed(literal, of) => {
                let suffix = match of {
                    CastType::TinyInt => "Y",
                    CastType::SmallInt => "S",
                    CastType::BigInt => "L",
                    _ => "",
                };
                write!(f, "{literal}{suffix}")
            }
            Self::DoubleQuoted(text) => quoted(f, text),
            Self::Call(function, argument) => call(f, function, argument),
            Self::Apply(operation, arguments) => apply(f, *operation, arguments),
            Self::Chain(first, steps) => {
                ChainText(first, steps.iter().map(|(operation, right)| (*operation, right))).fmt(f)
            }
            Self::Condition(condition) => write!(f, "({condition})"),
            Self::Unknown(text) => write!(f, "({text})"),
        })
    }
}

/// Formats a chain of operators.
pub(super) struct ChainText<'a, T, I>(pub(super) &'a T, pub(super) I);

impl<'a, T: Display + 'a, R: Display + 'a, I> Display for ChainText<'a, T, I>
where
    I: Iterator<Item = (Operation, &'a R)> + Clone,
{
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "({}", self.0)?;
        for (operation, right) in self.1.clone() {
            write!(f, " {} {right}", operation.symbol().unwrap_or_default())?;
        }
        f.write_char(')')
    }
}

/// Writes a function call. The text does not contain the session's time zone, so it has the same meaning only in
/// sessions with the same time zone.
fn call(f: &mut Formatter<'_>, function: &Function, of: &Expr) -> fmt::Result {
    match function {
        Function::Cast(to, _) => write!(f, "CAST({of} AS {to})"),
        Function::Year(_) => write!(f, "year({of})"),
        Function::Trunc(unit, _) => write!(f, "trunc({of}, '{}')", unit.name()),
        Function::DateTrunc(unit, _) => write!(f, "date_trunc('{}', {of})", unit.name()),
        Function::DateAdd(days, _) => write!(f, "date_add({of}, {days})"),
        Function::AddMonths(months, _) => write!(f, "add_months({of}, {months})"),
        Function::LastDay(_) => write!(f, "last_day({of})"),
        Function::Left(length) => write!(f, "substring({of}, 1, {length})"),
    }
}

/// Writes an operation. Operators are put in parentheses, so that parsing the text gives the same tree.
fn apply(f: &mut Formatter<'_>, operation: Operation, arguments: &[Expr]) -> fmt::Result {
    match (operation.form(), arguments) {
        (_, [of]) if let Operation::Shift(by, _) = operation => write!(f, "({of} + {by})"),
        (_, [column]) if matches!(operation, Operation::Now(..)) => column.fmt(f),
        (Form::Infix(symbol, _), [left, right]) => write!(f, "({left} {symbol} {right})"),
        (Form::Prefix(symbol), [of]) => write!(f, "({symbol} {of})"),
        (Form::Infix(name, _) | Form::Prefix(name) | Form::Call(name), arguments) => {
            write!(f, "{name}(")?;
            for (i, argument) in arguments.iter().enumerate() {
                write!(f, "{}{argument}", if i > 0 { ", " } else { "" })?;
            }
            f.write_char(')')
        }
        (Form::TryCast, arguments) => {
            f.write_str("TRY_CAST(")?;
            arguments.iter().try_for_each(|of| write!(f, "{of}"))?;
            match operation {
                Operation::TryCast(to, _) => write!(f, " AS {to})"),
                _ => f.write_char(')'),
            }
        }
        (Form::Case, arguments) => {
            f.write_str("CASE")?;
            let (subject, branches) = match operation {
                Operation::CaseOf => arguments.split_at_checked(1).unwrap_or_default(),
                _ => (Default::default(), arguments),
            };
            subject.iter().try_for_each(|subject| write!(f, " {subject}"))?;
            for branch in branches.chunks(2) {
                match branch {
                    [condition, value] => write!(f, " WHEN {condition} THEN {value}")?,
                    branch => branch.iter().try_for_each(|value| write!(f, " ELSE {value}"))?,
                }
            }
            f.write_str(" END")
        }
    }
}

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Compare { op, left, right } => write!(f, "{left} {op} {right}"),
            Self::Between { value, low, high } => write!(f, "{value} BETWEEN {low} AND {high}"),
            Self::IsNull(value) => write!(f, "{value} IS NULL"),
            Self::In { value, list } => {
                write!(f, "{value} IN (")?;
                for (i, item) in list.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                f.write_char(')')
            }
            Self::Like { value, pattern, escape } => {
                write!(f, "{value} LIKE ")?;
                quoted(f, pattern)?;
                if *escape != '\\' {
                    f.write_str(" ESCAPE ")?;
                    quoted(f, escape.encode_utf8(&mut [0; 4]))?;
                }
                Ok(())
            }
            Self::StartsWith { value, prefix } => {
                write!(f, "startswith({value}, ")?;
                quoted(f, prefix)?;
                f.write_char(')')
            }
            Self::Is { condition, truth } => {
                let truth = match truth {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                match condition.as_ref() {
                    Self::Value(value) => write!(f, "{value} IS {truth}"),
                    other => write!(f, "({other}) IS {truth}"),
                }
            }
            Self::And(all) => write_all(f, all, " AND "),
            Self::Or(any) => write_all(f, any, " OR "),
            Self::Not(inner) => match inner.as_ref() {
                Self::IsNull(value) => write!(f, "{value} IS NOT NULL"),
                Self::Value(value) => write!(f, "NOT {value}"),
                other => write!(f, "NOT ({other})"),
            },
            Self::InZone { condition, .. } => condition.fmt(f),
        }
    }
}

/// Writes conditions with the separator `between`. Nested ANDs, ORs and conditions with a time zone are put in
/// parentheses.
fn write_all(f: &mut Formatter<'_>, conditions: &[Predicate], between: &str) -> fmt::Result {
    for (i, condition) in conditions.iter().enumerate() {
        if i > 0 {
            f.write_str(between)?;
        }
        match condition {
            Predicate::And(_) | Predicate::Or(_) | Predicate::InZone { .. } => write!(f, "({condition})")?,
            other => other.fmt(f)?,
        }
    }
    Ok(())
}
