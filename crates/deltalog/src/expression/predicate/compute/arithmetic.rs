//! Arithmetic of whole and floating-point numbers.
//!
//! - An overflow, and any division by zero, even of floating-point numbers, results in NULL here. The caller turns it
//!   into an error, as Spark does in ANSI mode.
//! - `%` has the sign of the dividend, `pmod` the sign of the divisor.

use super::decimals;
use super::digits::{Rounding, rounded_text};
use super::operation::Operation;
use super::types::sql_name;
use crate::error::{Error, Result};
use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use std::ops::{BitAnd, BitOr, BitXor, Not};
use std::sync::Arc;

/// Computes an operation of two numbers of the same type, of two decimals, or of a date and a number of days, with
/// results of type `to`.
pub(super) fn binary(operation: Operation, a: &ArrayRef, b: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    use DataType as T;
    Ok(match (a.data_type(), b.data_type()) {
        (T::Int8, T::Int8) => whole::<Int8Type>(operation, a, b),
        (T::Int16, T::Int16) => whole::<Int16Type>(operation, a, b),
        (T::Int32, T::Int32) => whole::<Int32Type>(operation, a, b),
        (T::Int64, T::Int64) => whole::<Int64Type>(operation, a, b),
        (T::Float32, T::Float32) => float::<Float32Type>(operation, a, b),
        (T::Float64, T::Float64) => float::<Float64Type>(operation, a, b),
        (T::Decimal128(..), T::Decimal128(..)) => decimals::binary(operation, a, b, to)?,
        (T::Date32, T::Int32) => days(a, b, operation == Operation::Subtract),
        (T::Int32, T::Date32) => days(b, a, false),
        (left, right) => return Err(undefined(operation, &[left, right])),
    })
}

/// Returns the error for an operation that is not defined for its arguments.
pub(super) fn undefined(operation: Operation, types: &[&DataType]) -> Error {
    let types: Vec<String> = types.iter().map(|of| sql_name(of)).collect();
    Error::invalid_argument(format!("{operation:?} is not defined for values of type {}", types.join(", ")))
}

/// Applies `of` to the rows in which both values are not NULL; a result of `None` becomes NULL.
pub(super) fn zip<A: ArrowPrimitiveType, B: ArrowPrimitiveType, O: ArrowPrimitiveType>(
    a: &ArrayRef,
    b: &ArrayRef,
    of: impl Fn(A::Native, B::Native) -> Option<O::Native>,
) -> PrimitiveArray<O> {
    a.as_primitive::<A>().iter().zip(b.as_primitive::<B>()).map(|(a, b)| of(a?, b?)).collect()
}

fn whole<T>(operation: Operation, a: &ArrayRef, b: &ArrayRef) -> ArrayRef
where
    T: ArrowPrimitiveType,
    T::Native: BitAnd<Output = T::Native> + BitOr<Output = T::Native> + BitXor<Output = T::Native>,
{
    use Operation as O;
    let of = |a: T::Native, b: T::Native| match operation {
        O::Add => a.add_checked(b).ok(),
        O::Subtract => a.sub_checked(b).ok(),
        O::Multiply => a.mul_checked(b).ok(),
        O::Quotient => a.div_checked(b).ok(),
        O::Remainder => remainder(a, b),
        O::Modulus => modulus(a, b),
        O::BitAnd => Some(a & b),
        O::BitOr => Some(a | b),
        O::BitXor => Some(a ^ b),
        _ => None,
    };
    Arc::new(zip::<T, T, T>(a, b, of))
}

fn float<T: ArrowPrimitiveType>(operation: Operation, a: &ArrayRef, b: &ArrayRef) -> ArrayRef {
    use Operation as O;
    let of = |a: T::Native, b: T::Native| match operation {
        O::Add => Some(a.add_wrapping(b)),
        O::Subtract => Some(a.sub_wrapping(b)),
        O::Multiply => Some(a.mul_wrapping(b)),
        // Minus zero equals zero, so this covers both.
        O::Divide if b == T::Native::ZERO => None,
        O::Divide => Some(a.div_wrapping(b)),
        O::Remainder => remainder(a, b),
        O::Modulus => modulus(a, b),
        _ => None,
    };
    Arc::new(zip::<T, T, T>(a, b, of))
}

/// Returns the remainder; `None` only if `b` is zero. It exists even where the quotient is out of range.
fn remainder<N: ArrowNativeTypeOp>(a: N, b: N) -> Option<N> {
    (b != N::ZERO).then(|| a.mod_wrapping(b))
}

fn modulus<N: ArrowNativeTypeOp>(a: N, b: N) -> Option<N> {
    let rest = remainder(a, b)?;
    if rest < N::ZERO { remainder(rest.add_wrapping(b), b) } else { Some(rest) }
}

fn days(dates: &ArrayRef, days: &ArrayRef, back: bool) -> ArrayRef {
    Arc::new(zip::<Date32Type, Int32Type, Date32Type>(dates, days, |date, days| match back {
        true => date.checked_sub(days),
        false => date.checked_add(days),
    }))
}

/// Computes an operation of a single number. `digits` is the second argument of `round`.
pub(super) fn unary(operation: Operation, a: &ArrayRef, digits: i64, to: &DataType) -> Result<ArrayRef> {
    use DataType as T;
    use Operation as O;
    Ok(match (operation, a.data_type()) {
        (O::IsNan, T::Float32) => is_nan(a.as_primitive::<Float32Type>(), |v| v.is_nan()),
        (O::IsNan, T::Float64) => is_nan(a.as_primitive::<Float64Type>(), |v| v.is_nan()),
        (O::Floor | O::Ceil, T::Int64) => Arc::clone(a),
        // Like Spark, converts NaN to the whole number 0.
        (O::Floor | O::Ceil, T::Float64) => {
            let whole = |v: f64| match operation {
                _ if v.is_nan() => Some(0),
                O::Floor => whole_of(v.floor()),
                _ => whole_of(v.ceil()),
            };
            Arc::new(a.as_primitive::<Float64Type>().unary_opt::<_, Int64Type>(whole))
        }
        (O::Round | O::RoundEven, T::Float32) => {
            let round = |v: f32| match v.is_finite() {
                true => rounded_text(&f64::from(v).to_string(), digits, half_of(operation))?.parse().ok(),
                false => Some(v),
            };
            Arc::new(a.as_primitive::<Float32Type>().unary_opt::<_, Float32Type>(round))
        }
        (O::Round | O::RoundEven, T::Float64) => {
            let round = |v: f64| match v.is_finite() {
                true => rounded_text(&v.to_string(), digits, half_of(operation))?.parse().ok(),
                false => Some(v),
            };
            Arc::new(a.as_primitive::<Float64Type>().unary_opt::<_, Float64Type>(round))
        }
        (_, T::Int8) => unary_whole::<Int8Type>(operation, a, digits),
        (_, T::Int16) => unary_whole::<Int16Type>(operation, a, digits),
        (_, T::Int32) => unary_whole::<Int32Type>(operation, a, digits),
        (_, T::Int64) => unary_whole::<Int64Type>(operation, a, digits),
        (O::Negate, T::Float32) => Arc::new(a.as_primitive::<Float32Type>().unary::<_, Float32Type>(|v| -v)),
        (O::Negate, T::Float64) => Arc::new(a.as_primitive::<Float64Type>().unary::<_, Float64Type>(|v| -v)),
        (O::Abs, T::Float32) => Arc::new(a.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::abs)),
        (O::Abs, T::Float64) => Arc::new(a.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::abs)),
        (_, T::Decimal128(_, scale)) => {
            let scale = i64::from(*scale);
            let of = |v: i128| match operation {
                O::Negate => v.checked_neg(),
                O::Abs => v.checked_abs(),
                O::Round | O::RoundEven => decimals::round(v, scale, digits, half_of(operation)),
                O::Floor => decimals::round(v, scale, digits, Rounding::Down),
                O::Ceil => decimals::round(v, scale, digits, Rounding::Up),
                _ => None,
            };
            let fits = |v: &i128| decimals::fits(*v, to);
            let decimals = a.as_primitive::<Decimal128Type>();
            let results = decimals.unary_opt::<_, Decimal128Type>(|v| of(v).filter(fits));
            Arc::new(results.with_data_type(to.clone()))
        }
        (_, other) => return Err(undefined(operation, &[other])),
    })
}

fn half_of(operation: Operation) -> Rounding {
    if operation == Operation::RoundEven { Rounding::HalfEven } else { Rounding::HalfUp }
}

/// Converts a floating-point number that has no fraction to a BIGINT. Returns `None` if it is too large.
fn whole_of(v: f64) -> Option<i64> {
    (v >= i64::MIN as f64 && v < i64::MAX as f64).then_some(v as i64)
}

fn unary_whole<T>(operation: Operation, a: &ArrayRef, digits: i64) -> ArrayRef
where
    T: ArrowPrimitiveType,
    T::Native: Not<Output = T::Native> + Into<i64> + TryFrom<i128>,
{
    use Operation as O;
    let of = |v: T::Native| match operation {
        O::Negate => v.neg_checked().ok(),
        O::Abs if v < T::Native::ZERO => v.neg_checked().ok(),
        O::Abs => Some(v),
        O::BitNot => Some(!v),
        O::Round | O::RoundEven if digits >= 0 => Some(v),
        O::Round | O::RoundEven => {
            let wide: i64 = v.into();
            T::Native::try_from(decimals::round(wide.into(), 0, digits, half_of(operation))?).ok()
        }
        _ => None,
    };
    Arc::new(a.as_primitive::<T>().unary_opt::<_, T>(of))
}

fn is_nan<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, of: impl Fn(T::Native) -> bool) -> ArrayRef {
    let is_nan = |row: usize| values.is_valid(row) && of(values.value(row));
    Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(values.len(), is_nan), None))
}
