//! Arithmetic of decimals. Results are computed exactly in 256 bits, and then rounded to the scale of the result
//! type, with halves away from zero. A result with too many digits is NULL here.

use super::arithmetic::{undefined, zip};
use super::digits::Rounding;
use super::operation::Operation;
use crate::error::Result;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, i256};
use std::sync::Arc;

/// Computes an operation of two decimals, with results of type `to`.
pub(super) fn binary(operation: Operation, a: &ArrayRef, b: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    use DataType as T;
    use Operation as O;
    let (s, t) = match (a.data_type(), b.data_type()) {
        (T::Decimal128(_, s), T::Decimal128(_, t)) => (i64::from(*s), i64::from(*t)),
        (left, right) => return Err(undefined(operation, &[left, right])),
    };
    let finest = s.max(t);
    let aligned = move |a: i128, b: i128| Some((scaled(a, finest - s)?, scaled(b, finest - t)?));
    if let (O::Quotient, T::Int64) = (operation, to) {
        let of = move |a: i128, b: i128| {
            let (a, b) = aligned(a, b)?;
            i64::try_from(a.checked_div(b)?.to_i128()?).ok()
        };
        return Ok(Arc::new(zip::<Decimal128Type, Decimal128Type, Int64Type>(a, b, of)));
    }
    let T::Decimal128(_, scale) = to else { return Err(undefined(operation, &[a.data_type(), to])) };
    let scale = i64::from(*scale);
    let of = move |x: i128, y: i128| -> Option<i256> {
        match operation {
            O::Add => aligned(x, y).and_then(|(x, y)| rounded(x.checked_add(y)?, finest - scale)),
            O::Subtract => aligned(x, y).and_then(|(x, y)| rounded(x.checked_sub(y)?, finest - scale)),
            O::Multiply => rounded(i256::from_i128(x).checked_mul(i256::from_i128(y))?, s + t - scale),
            O::Divide => match scale - s + t {
                more @ 0.. => divided(scaled(x, more)?, i256::from_i128(y)),
                less => divided(i256::from_i128(x), scaled(y, -less)?),
            },
            O::Remainder => aligned(x, y).and_then(|(x, y)| rounded(x.checked_rem(y)?, finest - scale)),
            O::Modulus => aligned(x, y).and_then(|(x, y)| {
                let remainder = x.checked_rem(y)?;
                let positive = match remainder < i256::ZERO {
                    true => remainder.checked_add(y)?.checked_rem(y)?,
                    false => remainder,
                };
                rounded(positive, finest - scale)
            }),
            _ => None,
        }
    };
    let of = |x: i128, y: i128| of(x, y)?.to_i128().filter(|value| fits(*value, to));
    Ok(Arc::new(zip::<Decimal128Type, Decimal128Type, Decimal128Type>(a, b, of).with_data_type(to.clone())))
}

/// Returns whether the unscaled value has at most as many digits as the decimal type `to` allows.
pub(super) fn fits(unscaled: i128, to: &DataType) -> bool {
    match to {
        DataType::Decimal128(precision, _) => {
            10u128.checked_pow(u32::from(*precision)).is_none_or(|limit| unscaled.unsigned_abs() < limit)
        }
        _ => false,
    }
}

/// Returns `10^exponent`.
pub(super) fn power(exponent: i64) -> Option<i128> {
    10i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// Rounds a number of scale `scale` to `digits` digits after the point. The result has the scale `digits`, or 0 if
/// `digits` is negative. If `scale` is not greater than `digits`, the number is returned unchanged.
pub(super) fn round(unscaled: i128, scale: i64, digits: i64, how: Rounding) -> Option<i128> {
    if digits >= scale {
        return Some(unscaled);
    }
    let rounded = match power(scale.checked_sub(digits)?) {
        Some(power) => how.quotient(unscaled, power),
        // The power of ten is greater than any `i128`, so the quotient is between -1 and 1.
        None => match how {
            Rounding::Up if unscaled > 0 => 1,
            Rounding::Down if unscaled < 0 => -1,
            _ => 0,
        },
    };
    match digits {
        0.. => Some(rounded),
        _ if rounded == 0 => Some(0),
        _ => rounded.checked_mul(power(digits.checked_neg()?)?),
    }
}

fn ten(exponent: i64) -> Option<i256> {
    i256::from_i128(10).checked_pow(u32::try_from(exponent).ok()?)
}

fn scaled(value: i128, more: i64) -> Option<i256> {
    i256::from_i128(value).checked_mul(ten(more)?)
}

/// Removes the last `digits` digits and rounds, with halves away from zero.
fn rounded(value: i256, digits: i64) -> Option<i256> {
    if digits <= 0 { Some(value) } else { divided(value, ten(digits)?) }
}

fn divided(value: i256, by: i256) -> Option<i256> {
    let quotient = value.checked_div(by)?;
    let remainder = value.checked_rem(by)?.wrapping_abs();
    // Compares the remainder with the rest of the divisor, because twice the remainder could overflow.
    let is_half = remainder >= by.wrapping_abs().checked_sub(remainder)?;
    let negative = (value < i256::ZERO) != (by < i256::ZERO);
    match is_half {
        true if negative => quotient.checked_sub(i256::ONE),
        true => quotient.checked_add(i256::ONE),
        false => Some(quotient),
    }
}
