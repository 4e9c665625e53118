//! Functions of floating-point numbers, with the results of Java's `StrictMath`, which is fdlibm.

use super::arithmetic::zip;
use crate::error::{Error, Result};
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Float64Type;
use std::sync::Arc;

/// A function of one or two numbers of type DOUBLE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Math {
    /// `cbrt(a)`
    Cbrt,
    /// `exp(a)`
    Exp,
    /// `ln(a)`; NULL unless `a` is greater than zero.
    Ln,
    /// `log(base, a)`
    Log,
    /// `log10(a)`
    Log10,
    /// `log2(a)`
    Log2,
    /// `power(a, b)`
    Power,
    /// `sign(a)`
    Sign,
    /// `sqrt(a)`; NaN for a number below zero.
    Sqrt,
}

impl Math {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cbrt => "cbrt",
            Self::Exp => "exp",
            Self::Ln => "ln",
            Self::Log => "log",
            Self::Log10 => "log10",
            Self::Log2 => "log2",
            Self::Power => "power",
            Self::Sign => "sign",
            Self::Sqrt => "sqrt",
        }
    }

    /// Returns the number of arguments of the function.
    pub(super) fn count(self) -> usize {
        if matches!(self, Self::Log | Self::Power) { 2 } else { 1 }
    }

    fn of(self, a: f64) -> Option<f64> {
        // A NaN is neither negative nor zero, so it counts as positive.
        let positive = || (a > 0.0 || a.is_nan()).then_some(a);
        Some(match self {
            Self::Cbrt => cbrt(a),
            Self::Exp => libm::exp(a),
            Self::Ln => libm::log(positive()?),
            Self::Log10 => log10(positive()?),
            Self::Log2 => libm::log(positive()?) / libm::log(2.0),
            Self::Sign if a == 0.0 || a.is_nan() => a,
            Self::Sign => a.signum(),
            Self::Sqrt => a.sqrt(),
            Self::Log | Self::Power => return None,
        })
    }

    fn of_two(self, a: f64, b: f64) -> Option<f64> {
        match self {
            Self::Power => Some(power(a, b)),
            Self::Log if a <= 0.0 || b <= 0.0 => None,
            Self::Log => Some(libm::log(b) / libm::log(a)),
            _ => None,
        }
    }
}

/// Computes a function of arrays of type DOUBLE. A result that does not exist is NULL.
pub(super) fn math(of: Math, arguments: &[ArrayRef]) -> Result<ArrayRef> {
    match arguments {
        [a] => Ok(Arc::new(a.as_primitive::<Float64Type>().unary_opt::<_, Float64Type>(|a| of.of(a)))),
        [a, b] => Ok(Arc::new(zip::<Float64Type, Float64Type, Float64Type>(a, b, |a, b| of.of_two(a, b)))),
        _ => Err(Error::invalid_argument(format!("{of:?} is not defined for {} values", arguments.len()))),
    }
}

/// In Java, a power whose base is 1 or -1 is NaN if the exponent is NaN or infinite.
fn power(a: f64, b: f64) -> f64 {
    match b {
        0.0 => 1.0,
        b if a.is_nan() || b.is_nan() || (a.abs() == 1.0 && b.is_infinite()) => f64::NAN,
        b => libm::pow(a, b),
    }
}

/// Translated from `e_log10.c` of fdlibm.
fn log10(a: f64) -> f64 {
    const LOG10_2_HIGH: f64 = 0.301_029_995_663_611_77;
    const LOG10_2_LOW: f64 = 3.694_239_077_158_931e-13;
    if !a.is_finite() {
        return a;
    }
    let is_subnormal = a < f64::MIN_POSITIVE;
    let a = if is_subnormal { a * 18_014_398_509_481_984.0 } else { a };
    let bits = a.to_bits();
    let exponent = (bits >> 52) as i32 - 1023 - if is_subnormal { 54 } else { 0 };
    let below = i32::from(exponent < 0);
    let mantissa = (bits & 0x000f_ffff_ffff_ffff) | ((0x3ff - below as u64) << 52);
    let whole = f64::from(exponent + below);
    let low = whole * LOG10_2_LOW + std::f64::consts::LOG10_E * libm::log(f64::from_bits(mantissa));
    low + whole * LOG10_2_HIGH
}

/// Translated from `s_cbrt.c` of fdlibm.
fn cbrt(a: f64) -> f64 {
    const ROUGH: u32 = 715_094_163;
    const ROUGH_SUBNORMAL: u32 = 696_219_795;
    const C: f64 = 19.0 / 35.0;
    const D: f64 = -864.0 / 1225.0;
    const E: f64 = 99.0 / 70.0;
    const F: f64 = 45.0 / 28.0;
    const G: f64 = 5.0 / 14.0;
    if a == 0.0 || !a.is_finite() {
        return a;
    }
    let high = |value: f64| (value.to_bits() >> 32) as u32;
    let of_high = |high: u32| f64::from_bits(u64::from(high) << 32);
    let x = a.abs();
    let mut t = match x < f64::MIN_POSITIVE {
        true => of_high(high(18_014_398_509_481_984.0 * x) / 3 + ROUGH_SUBNORMAL),
        false => of_high(high(x) / 3 + ROUGH),
    };
    let r = t * t / x;
    let s = C + r * t;
    t *= G + F / (s + E + D / s);
    t = of_high(high(t) + 1);
    let s = t * t;
    let r = x / s;
    let w = t + t;
    let r = (r - t) / (w + r);
    (t + t * r).copysign(a)
}
