//! Binds comparisons of dates, timestamps and strings with each other: all values are converted to their common type.
//!
//! - A string is cast to the type of the other values. A date becomes the timestamp at midnight, and a TIMESTAMP_NTZ
//!   becomes the instant at which the session's clock shows that time.
//! - A literal is converted to a literal of the common type. The conversion of a column preserves the order of its
//!   values, so the column's bounds can still be used to skip files.

use super::ast::{Expr, Literal};
use super::bind::{Binder, Side};
use super::bind_value::{Value, constant, literal_of};
use super::bound::Source;
use super::compute::{cast, common, is_time, plain, sql_name};
use super::function::{CastType, Function};
use super::zone::Clock;
use crate::error::{Error, Result};
use arrow::datatypes::DataType;

impl Binder<'_> {
    /// Converts the sides of a comparison to their common type, if one of them is a date or timestamp and their types
    /// differ.
    pub(super) fn align_times(&mut self, sides: &mut [(&Expr, Side)]) -> Result<()> {
        let types = sides.iter().map(|(_, side)| self.side_type(side)).collect::<Result<Vec<_>>>()?;
        let known: Vec<&DataType> = types.iter().filter(|of| **of != DataType::Null).collect();
        let is_mixed = known.iter().any(|of| is_time(of)) && known.iter().any(|of| Some(of) != known.first());
        if !is_mixed || !known.iter().all(|of| is_time(of) || **of == DataType::Utf8) {
            return Ok(());
        }
        let Some(to) = known.into_iter().try_fold(DataType::Null, |all, next| common(&all, next)) else {
            return Ok(());
        };
        for ((expr, side), from) in sides.iter_mut().zip(&types) {
            if *from != to && *from != DataType::Null {
                *side = match side {
                    Side::Literal(literal) => Side::Literal(self.literal_as(literal, &to)?),
                    Side::Term(term) => Side::Term(self.term_as(*term, expr, &to)?),
                };
            }
        }
        Ok(())
    }

    fn side_type(&self, side: &Side) -> Result<DataType> {
        match side {
            Side::Literal(literal) => Ok(constant(literal)?.data_type),
            // The Arrow form of a variant is a struct, so it is not a time. The comparison will refuse it.
            Side::Term(term) => Ok(plain(self.data_type(*term))),
        }
    }

    /// Returns the literal converted to the type `to`, or unchanged if the conversion has no result.
    fn literal_as(&self, literal: &Literal, to: &DataType) -> Result<Literal> {
        let Value { node, data_type } = constant(literal)?;
        let Some(value) = node.constant() else { return Ok(literal.clone()) };
        let read = |clock: Clock| cast(value, to, clock).map(|value| literal_of(&value));
        let found = read(self.clock.unwrap_or(Clock::UTC))?;
        // If the zone is unknown, the result must be the same by two different clocks, as for a string that contains
        // its own time zone.
        if self.clock.is_none() && found != read(Clock::ELSEWHERE)? {
            return Err(unknown_zone(&data_type, to));
        }
        Ok(found.filter(|value| *value != Literal::Null).unwrap_or_else(|| literal.clone()))
    }

    /// Returns the index of a term that converts the values of `term` to the type `to`.
    fn term_as(&mut self, term: usize, expr: &Expr, to: &DataType) -> Result<usize> {
        let from = plain(self.value_type(term)?);
        let clock = self.clock_for(&from, to)?;
        let function = Function::Cast(cast_type(to), clock);
        match self.arena.terms.get(term).map(|term| term.source.clone()) {
            Some(Source::Column { column, mut functions }) if function.result_type(&from).is_some() => {
                functions.push(function);
                Ok(self.ordered(column, functions, to.clone()))
            }
            Some(Source::Computed { of, .. }) => {
                let of = Expr::Call(function, Box::new(of));
                let value = self.cast_to(self.referred(term), to, clock, &of.to_string())?;
                Ok(self.computed(&of, value))
            }
            _ if self.lenient => {
                Err(Error::invalid_argument(format!("{expr} restricts no column as a time")))
            }
            _ => {
                let of = Expr::Call(function, Box::new(expr.clone()));
                let value = self.value(&of)?;
                Ok(self.computed(&of, value))
            }
        }
    }

    /// Returns the clock to use for converting values of type `from` to type `to`.
    ///
    /// # Errors
    /// InvalidArgument if the conversion depends on the session's time zone, and that zone is not known.
    pub(super) fn clock_for(&self, from: &DataType, to: &DataType) -> Result<Clock> {
        let is_instant = |of: &DataType| matches!(of, DataType::Timestamp(_, Some(_)));
        let is_local = |of: &DataType| *of == DataType::Utf8 || (is_time(of) && !is_instant(of));
        let depends = (is_instant(from) && is_local(to)) || (is_local(from) && is_instant(to));
        match self.clock {
            None if depends => Err(unknown_zone(from, to)),
            clock => Ok(clock.unwrap_or(Clock::UTC)),
        }
    }
}

fn unknown_zone(from: &DataType, to: &DataType) -> Error {
    Error::invalid_argument(format!(
        "the conversion of a {} to a {} depends on the time zone of the session, which is not known here",
        sql_name(from),
        sql_name(to)
    ))
    .with_hint("write TIMESTAMP '…' with an offset, as in TIMESTAMP '2024-01-01 00:00:00+00:00'")
}

pub(super) fn cast_type(time: &DataType) -> CastType {
    match time {
        DataType::Timestamp(_, Some(_)) => CastType::Timestamp,
        DataType::Timestamp(_, None) => CastType::TimestampNtz,
        _ => CastType::Date,
    }
}
