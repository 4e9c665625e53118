//! Computes the values of a bound expression for rows.

use super::super::display::ChainText;
use super::super::filter::Rows;
use super::super::function::Purpose;
use super::super::stack::on_stack;
use super::super::values::{Values, as_type, domain_of};
use super::super::zone::Clock;
use super::arithmetic;
use super::cast::{cast, castable_values};
use super::digest::digest;
use super::failure::Failure;
use super::interval::shift;
use super::math::math;
use super::nested::of_parts;
use super::node::Node;
use super::operation::Operation;
use super::random::random;
use super::regex::matches;
use super::strings::strings;
use super::text::text;
use super::time::time;
use super::types::plain;
use crate::error::{Error, Result};
use crate::runtime::row_bytes::weight;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array, new_null_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{interleave, take};
use arrow::datatypes::{DataType, Int32Type};
use arrow::util::display::array_value_to_string;
use std::cmp::Ordering;
use std::fmt::Display;
use std::sync::Arc;

impl Rows<'_> {
    /// Computes the value for each row. Only the rows in `active` need a correct value; the other rows get an
    /// arbitrary one.
    ///
    /// # Errors
    /// InvalidArgument if the value of an active row cannot be computed.
    pub(in crate::expression::predicate) fn value(
        &self,
        node: &Node,
        active: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let function = match node {
            // Columns are in memory anyway, so they do not count toward the limit.
            Node::Column(_) | Node::Term(_) => return self.computed(node, active),
            Node::Constant(value) => {
                self.memory.ensure("a constant", weight(value, 0, 1).saturating_mul(self.rows))?;
                "a constant"
            }
            Node::Ordered { .. } => "a function",
            Node::Cast { .. } => "CAST",
            Node::Chain { links, .. } => links.last().map_or("a chain", |link| link.operation.name()),
            Node::Condition(_) => "a condition",
            Node::Apply { operation, .. } => operation.name(),
        };
        self.memory.counted(function, || on_stack(|| self.computed(node, active)))
    }

    fn computed(&self, node: &Node, active: &BooleanBuffer) -> Result<ArrayRef> {
        match node {
            Node::Term(term) => {
                let array = self.term(*term, active)?;
                as_type(&array, &plain(array.data_type()))
            }
            Node::Column(column) => {
                let array = self.column(*column)?;
                as_type(&array, &plain(array.data_type()))
            }
            Node::Constant(value) => {
                take(value, &UInt32Array::from(vec![0; self.rows]), None).map_err(not_combined)
            }
            Node::Ordered { function, of, text } => {
                let of = self.value(of, active)?;
                let result = function.apply(&of, Purpose::Value)?;
                self.checked(result, &[of], active, text, Failure::Function)
            }
            Node::Cast { of, to, clock, text } => {
                let of = castable_values(self.value(of, active)?, to);
                let result = cast(&of, to, *clock)?;
                self.checked(result, &[of], active, text, Failure::Cast(to))
            }
            Node::Chain { first, text, links } => {
                let mut left = self.value(first, active)?;
                for (at, link) in links.iter().enumerate() {
                    let so_far = |end: usize| {
                        let links = links.get(..end).unwrap_or_default().iter();
                        ChainText(text, links.map(|link| (link.operation, &link.text)))
                    };
                    let of = cast(&left, &link.left, Clock::UTC)?;
                    let of = self.checked(of, &[left], active, so_far(at), Failure::Cast(&link.left))?;
                    let values = [of, self.value(&link.right, active)?];
                    left = self.operate(link.operation, &values, &link.to, so_far(at + 1), active)?;
                }
                Ok(left)
            }
            Node::Condition(condition) => Ok(Arc::new(self.mask(condition, active)?)),
            Node::Apply { to, .. } if *to == DataType::Null => Ok(new_null_array(to, self.rows)),
            Node::Apply { operation, arguments, to, text } => match operation {
                Operation::Case => self.case(arguments, to, active),
                Operation::Coalesce => self.coalesce(arguments, to, active),
                Operation::Greatest => self.extreme(arguments, Ordering::Greater, to, active),
                Operation::Least => self.extreme(arguments, Ordering::Less, to, active),
                Operation::Uuid | Operation::Random => random(*operation, self.rows),
                Operation::Array | Operation::NamedStruct | Operation::Map => {
                    self.nested(*operation, arguments, to, text, active)
                }
                _ => self.strict(*operation, arguments, to, text, active),
            },
        }
    }

    /// Computes an operation whose result is NULL if any argument is NULL.
    fn strict(
        &self,
        operation: Operation,
        arguments: &[Node],
        to: &DataType,
        source: &str,
        active: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let values = arguments.iter().map(|node| self.value(node, active)).collect::<Result<Vec<_>>>()?;
        self.operate(operation, &values, to, source, active)
    }

    /// Computes an operation from arguments that have already been computed.
    fn operate(
        &self,
        operation: Operation,
        values: &[ArrayRef],
        to: &DataType,
        source: impl Display,
        active: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        use Operation as O;
        let result = match (operation, values) {
            (O::TryCast(_, clock), [of]) => return cast(of, to, clock),
            (
                O::Add
                | O::Subtract
                | O::Multiply
                | O::Divide
                | O::Quotient
                | O::Remainder
                | O::Modulus
                | O::BitAnd
                | O::BitOr
                | O::BitXor,
                [a, b],
            ) => arithmetic::binary(operation, a, b, to)?,
            (O::Negate | O::Abs | O::BitNot | O::IsNan, [a]) => arithmetic::unary(operation, a, 0, to)?,
            (O::Round | O::RoundEven | O::Floor | O::Ceil, [a, digits @ ..]) => {
                // The number of digits is the same for all rows.
                let digits = digits.first().and_then(|digits| digits.as_primitive_opt::<Int32Type>());
                let digits = digits.filter(|digits| !digits.is_empty()).map_or(0, |digits| digits.value(0));
                arithmetic::unary(operation, a, digits.into(), to)?
            }
            (
                O::OfDate(..)
                | O::OfTime(..)
                | O::DateFormat(_)
                | O::DateDiff(_)
                | O::DateAdd(_)
                | O::MakeDate
                | O::UnixSeconds
                | O::UnixMillis
                | O::UnixMicros
                | O::TimestampSeconds
                | O::TimestampMillis
                | O::TimestampMicros,
                _,
            ) => time(operation, values, &self.room(operation, active)?)?,
            (O::Shift(by, clock), [of]) => shift(by, clock, of)?,
            (O::Math(of), _) => math(of, values)?,
            (O::Digest(of), _) => digest(of, values)?,
            (O::Size | O::ArrayContains, _) => of_parts(operation, values)?,
            (O::Regex(of), _) => matches(of, values, &self.room(operation, active)?)?,
            (O::ConcatWith | O::Repeat | O::Hex | O::Unhex | O::Ascii | O::Character | O::Translate, _) => {
                strings(operation, values, &self.room(operation, active)?)?
            }
            _ => text(operation, values, &self.room(operation, active)?)?,
        };
        if operation.has_nulls() {
            return Ok(result);
        }
        let failure = match operation {
            O::Divide | O::Quotient | O::Remainder | O::Modulus => Failure::Division(to),
            O::Add | O::Subtract | O::Multiply | O::Negate | O::Abs | O::Floor | O::Ceil => {
                Failure::Overflow(to)
            }
            O::Round | O::RoundEven => Failure::Overflow(to),
            _ => Failure::Function,
        };
        self.checked(result, values, active, source, failure)
    }

    /// Returns the results, or an error if an active row has a NULL result although its arguments are not NULL.
    pub(in crate::expression::predicate) fn checked(
        &self,
        result: ArrayRef,
        arguments: &[ArrayRef],
        active: &BooleanBuffer,
        text: impl Display,
        failure: Failure<'_>,
    ) -> Result<ArrayRef> {
        if result.null_count() == 0 {
            return Ok(result);
        }
        let nulls = arguments.iter().map(|argument| argument.logical_nulls());
        let nulls = nulls.reduce(|a, b| NullBuffer::union(a.as_ref(), b.as_ref())).flatten();
        if nulls.as_ref().is_some_and(|nulls| nulls.null_count() == result.null_count()) {
            return Ok(result);
        }
        let is_lost = |row: &usize| {
            active.value(*row)
                && result.is_null(*row)
                && nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row))
        };
        let Some(row) = (0..self.rows).find(is_lost) else { return Ok(result) };
        let values: Vec<String> = arguments
            .iter()
            .map(|argument| array_value_to_string(argument, row).unwrap_or_else(|_| "?".to_owned()))
            .collect();
        Err(failure.error(&text.to_string(), arguments, &values))
    }

    fn case(&self, arguments: &[Node], to: &DataType, active: &BooleanBuffer) -> Result<ArrayRef> {
        let mut open = active.clone();
        let mut choice = Choice::new(self.rows, to);
        for branch in arguments.chunks(2) {
            let (taken, value) = match branch {
                [condition, value] => {
                    let truth = self.value(condition, &open)?;
                    (&is_true(truth.as_boolean()) & &open, value)
                }
                [value] => (open.clone(), value),
                _ => continue,
            };
            if taken.count_set_bits() > 0 {
                choice.take(&taken, self.value(value, &taken)?);
            }
            open = &open & &!&taken;
        }
        choice.array()
    }

    fn coalesce(&self, arguments: &[Node], to: &DataType, active: &BooleanBuffer) -> Result<ArrayRef> {
        let mut open = active.clone();
        let mut choice = Choice::new(self.rows, to);
        for argument in arguments {
            if open.count_set_bits() == 0 {
                break;
            }
            let value = self.value(argument, &open)?;
            let taken = match value.logical_nulls() {
                Some(nulls) => nulls.inner() & &open,
                None => open.clone(),
            };
            choice.take(&taken, value);
            open = &open & &!&taken;
        }
        choice.array()
    }

    fn extreme(
        &self,
        arguments: &[Node],
        wanted: Ordering,
        to: &DataType,
        active: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let incomparable = || Error::invalid_argument(format!("values of type {to} cannot be compared"));
        let domain = domain_of(to).ok_or_else(incomparable)?;
        let arrays = arguments.iter().map(|node| self.value(node, active)).collect::<Result<Vec<_>>>()?;
        let values = arrays.iter().map(|array| Values::new(array, to, domain)).collect::<Result<Vec<_>>>()?;
        let mut choice = Choice::new(self.rows, to);
        let best = |row: usize| {
            let valid = values.iter().enumerate().filter(|(_, values)| !values.is_null(row));
            valid.reduce(
                |best, next| {
                    if next.1.compare_rows(row, best.1) == Some(wanted) { next } else { best }
                },
            )
        };
        let best: Vec<Option<usize>> = (0..self.rows).map(|row| Some(best(row)?.0)).collect();
        for (at, array) in arrays.into_iter().enumerate() {
            let taken = BooleanBuffer::collect_bool(self.rows, |row| best.get(row) == Some(&Some(at)));
            choice.take(&taken, array);
        }
        choice.array()
    }
}

/// Returns the rows in which a condition is true.
pub(in crate::expression::predicate) fn is_true(condition: &BooleanArray) -> BooleanBuffer {
    match condition.nulls() {
        Some(nulls) => condition.values() & nulls.inner(),
        None => condition.values().clone(),
    }
}

/// A column whose rows are chosen from several arrays of one type. Rows that are not chosen from any array are NULL.
struct Choice {
    arrays: Vec<ArrayRef>,
    places: Vec<(usize, usize)>,
}

impl Choice {
    fn new(rows: usize, of: &DataType) -> Self {
        Self { arrays: vec![new_null_array(of, 1)], places: vec![(0, 0); rows] }
    }

    fn take(&mut self, rows: &BooleanBuffer, from: ArrayRef) {
        let array = self.arrays.len();
        for row in rows.set_indices() {
            if let Some(place) = self.places.get_mut(row) {
                *place = (array, row);
            }
        }
        self.arrays.push(from);
    }

    fn array(self) -> Result<ArrayRef> {
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
        interleave(&arrays, &self.places).map_err(not_combined)
    }
}

pub(super) fn not_combined(error: arrow::error::ArrowError) -> Error {
    Error::invalid_argument("the values of an expression cannot be combined").with_source(error)
}
