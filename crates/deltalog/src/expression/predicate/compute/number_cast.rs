//! Casts between floating-point numbers, decimals and whole numbers, without formatting each value as text.
//!
//! - A floating-point number is converted to a decimal through the shortest digits that represent it. These digits
//!   are not computed if the direction of rounding is clear without them.
//! - A decimal becomes the nearest floating-point number.
//! - As in Spark, a floating-point number is truncated toward zero when it becomes a whole number, and 2^63 becomes
//!   the greatest BIGINT.

use super::super::values::{Short, decimal_to_float};
use arrow::array::{ArrayRef, ArrowPrimitiveType, Decimal128Array, Float64Array, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type};
use std::fmt::Write;
use std::sync::Arc;

/// The exponent of the largest power of ten that a DOUBLE represents exactly.
const MAX_EXACT_POWER: i8 = 22;

/// Casts floating-point numbers to decimals; a number that does not fit becomes NULL.
pub(super) fn floats_to_decimals(numbers: &Float64Array, precision: u8, scale: i8) -> Decimal128Array {
    let limit = 10u128.checked_pow(precision.into()).unwrap_or(u128::MAX);
    let power = (0..=MAX_EXACT_POWER).contains(&scale).then(|| 10f64.powi(scale.into()));
    numbers.unary_opt::<_, Decimal128Type>(|number| {
        let unscaled = power.and_then(|power| clearly_rounded(number * power));
        let unscaled = unscaled.or_else(|| rounded(number, scale))?;
        (unscaled.unsigned_abs() < limit).then_some(unscaled)
    })
}

/// Rounds a product. Returns `None` if the inexactness of the product could change the result. It has two sources,
/// each at most 2^-53 of the number: the multiplication itself, and the difference between the floating-point factor
/// and its shortest digits.
fn clearly_rounded(product: f64) -> Option<i128> {
    const TWICE_THE_ERROR: f64 = 1.0 / (1u64 << 51) as f64;
    let from_half = (product - product.floor() - 0.5).abs();
    (from_half > product.abs() * TWICE_THE_ERROR).then(|| product.round() as i128)
}

/// Returns the number times `10^scale`, rounded to a whole number, halves away from zero.
fn rounded(number: f64, scale: i8) -> Option<i128> {
    number.is_finite().then_some(())?;
    let mut text = Short::default();
    write!(text, "{:e}", number.abs()).ok()?;
    let (digits, exponent) = text.as_str().split_once('e')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut mantissa = 0i128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        mantissa = mantissa * 10 + i128::from(digit - b'0');
    }
    let exponent = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()? + i32::from(scale);
    let power = 10i128.checked_pow(exponent.unsigned_abs());
    let magnitude = match power {
        _ if mantissa == 0 => 0,
        Some(power) if exponent >= 0 => mantissa.checked_mul(power)?,
        None if exponent >= 0 => return None,
        Some(power) => mantissa / power + i128::from(mantissa % power >= power / 2),
        None => 0,
    };
    Some(if number < 0.0 { -magnitude } else { magnitude })
}

/// Returns the nearest number of type FLOAT.
pub(super) fn decimal_to_f32(unscaled: i128, scale: i8) -> f32 {
    // A number that is exactly between two FLOATs after rounding to DOUBLE may have been closer to either of them
    // before.
    const DROPPED: u64 = (1 << 29) - 1;
    const MIDDLE: u64 = 1 << 28;
    let wide = decimal_to_float(unscaled, scale);
    let is_normal =
        wide == 0.0 || (wide.abs() >= f64::from(f32::MIN_POSITIVE) && wide.abs() < f64::from(f32::MAX));
    if is_normal && wide.to_bits() & DROPPED != MIDDLE {
        return wide as f32;
    }
    let mut text = Short::default();
    let written = write!(text, "{unscaled}e{}", -i32::from(scale));
    written.ok().and_then(|()| text.as_str().parse().ok()).unwrap_or(wide as f32)
}

/// Casts floating-point numbers to whole numbers; `None` if `to` is not a type of whole numbers.
pub(super) fn floats_to_whole(numbers: &Float64Array, to: &DataType) -> Option<ArrayRef> {
    Some(match to {
        DataType::Int8 => whole::<Int8Type>(numbers, i8::MIN.into(), i8::MAX.into(), |v| v as i8),
        DataType::Int16 => whole::<Int16Type>(numbers, i16::MIN.into(), i16::MAX.into(), |v| v as i16),
        DataType::Int32 => whole::<Int32Type>(numbers, i32::MIN.into(), i32::MAX.into(), |v| v as i32),
        DataType::Int64 => whole::<Int64Type>(numbers, i64::MIN as f64, i64::MAX as f64, |v| v as i64),
        _ => return None,
    })
}

fn whole<T: ArrowPrimitiveType>(
    numbers: &Float64Array,
    least: f64,
    greatest: f64,
    of: impl Fn(f64) -> T::Native,
) -> ArrayRef {
    let whole: PrimitiveArray<T> =
        numbers.unary_opt(|v| (v.floor() <= greatest && v.ceil() >= least).then(|| of(v)));
    Arc::new(whole)
}

#[cfg(test)]
mod tests {
    use super::super::digits::rounded_to;
    use super::*;
    use crate::protocol::text::decimal_text;
    use arrow::array::{Array, AsArray};
    use proptest::prelude::*;

    /// Generates numbers of all magnitudes, and numbers with few digits as people write them.
    fn numbers() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            (-1_000_000i64..1_000_000, 0i32..7).prop_map(|(n, digits)| n as f64 / 10f64.powi(digits)),
            any::<f32>().prop_map(f64::from),
            (any::<i64>(), 0i32..30).prop_map(|(n, digits)| n as f64 / 10f64.powi(digits)),
        ]
    }

    fn decimals() -> impl Strategy<Value = (i128, i8)> {
        (any::<i128>(), 0u32..100, 0i8..=38)
            .prop_map(|(v, shift, scale)| ((v >> shift) % 10i128.pow(38), scale))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn decimal_casts_agree_with_casts_through_text(number in numbers(), precision in 1u8..=38, scale in 0i8..=38) {
            let cast = floats_to_decimals(&Float64Array::from(vec![number]), precision, scale);
            let expected = rounded_to(&number.to_string(), precision, scale);
            let found = cast.is_valid(0).then(|| cast.value(0));
            prop_assert_eq!(found, expected, "{} to ({}, {})", number, precision, scale);
        }

        #[test]
        fn casts_to_floats_agree_with_casts_through_text((unscaled, scale) in decimals()) {
            let text = decimal_text(unscaled, scale).unwrap();
            prop_assert_eq!(decimal_to_float(unscaled, scale), text.parse::<f64>().unwrap(), "{}", &text);
            prop_assert_eq!(decimal_to_f32(unscaled, scale), text.parse::<f32>().unwrap(), "{}", &text);
        }

        #[test]
        fn middles_of_two_floats_are_not_rounded_twice(
            bits in 0u32..0x7f00_0000, more in -1i128..=1, scale in 0i8..=12,
        ) {
            let (low, high) = (f32::from_bits(bits), f32::from_bits(bits + 1));
            let unscaled = ((f64::from(low) + f64::from(high)) / 2.0 * 10f64.powi(scale.into())) as i128;
            prop_assume!(unscaled.unsigned_abs() < 10u128.pow(37));
            let text = decimal_text(unscaled + more, scale).unwrap();
            prop_assert_eq!(decimal_to_f32(unscaled + more, scale), text.parse::<f32>().unwrap(), "{}", &text);
        }

        #[test]
        fn numbers_in_range_are_cast_to_whole_numbers(number in numbers()) {
            let array = Float64Array::from(vec![number]);
            let exact = number.is_finite().then_some(number.trunc());
            let short = floats_to_whole(&array, &DataType::Int16).unwrap();
            let short = short.as_primitive::<Int16Type>().iter().next().flatten().map(f64::from);
            prop_assert_eq!(short, exact.filter(|v| (-32_768.0..=32_767.0).contains(v)).map(|v| v + 0.0));
            let long = floats_to_whole(&array, &DataType::Int64).unwrap();
            let long = long.as_primitive::<Int64Type>().iter().next().flatten();
            let in_range = exact.filter(|v| v.abs() <= 9_223_372_036_854_775_808.0);
            prop_assert_eq!(long, in_range.map(|v| v as i64));
        }
    }

    #[test]
    fn halves_and_edges() {
        for (number, scale, expected) in [
            (0.005, 2, Some(1)),
            (1.005, 2, Some(101)),
            (-2.5, 0, Some(-3)),
            (2.675, 2, Some(268)),
            (5e-324, 38, Some(0)),
            (1e22, 2, Some(10i128.pow(24))),
            (f64::NAN, 0, None),
            (f64::INFINITY, 0, None),
            (1e300, 0, None),
        ] {
            let cast = floats_to_decimals(&Float64Array::from(vec![number]), 38, scale);
            assert_eq!(cast.is_valid(0).then(|| cast.value(0)), expected, "{number}");
        }
    }
}
