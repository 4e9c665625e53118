//! Decimal numbers as digits, and their rounding.

/// The number `0.digits * 10^point`, without zeros at the start of its digits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Digits {
    negative: bool,
    digits: Vec<u8>,
    point: i64,
}

/// The direction in which a number is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest number; halves are rounded away from zero.
    HalfUp,
    /// To the nearest number; halves are rounded to the even neighbor.
    HalfEven,
    /// Down to the next smaller number.
    Down,
    /// Up to the next greater number.
    Up,
}

impl Rounding {
    /// Divides `value` by the positive number `by`, and returns the rounded quotient.
    pub(super) fn quotient(self, value: i128, by: i128) -> i128 {
        let (floor, rest) = (value.div_euclid(by), value.rem_euclid(by));
        let up = match self {
            Self::Down => false,
            Self::Up => rest > 0,
            Self::HalfUp if value < 0 => rest > by - rest,
            Self::HalfUp => rest >= by - rest,
            Self::HalfEven => rest > by - rest || (rest == by - rest && floor % 2 != 0),
        };
        floor + i128::from(up)
    }
}

/// Parses a number in plain or exponent notation.
pub(super) fn parse_digits(text: &str) -> Option<Digits> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, i64::from(exponent.parse::<i32>().ok()?)),
        None => (text, 0),
    };
    let (negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    let all = whole.bytes().chain(fraction.bytes());
    let digits: Vec<u8> =
        all.map(|byte| byte.is_ascii_digit().then(|| byte - b'0')).collect::<Option<_>>()?;
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let point = i64::try_from(whole.len()).ok()? - i64::try_from(zeros).ok()? + exponent;
    Some(Digits { negative, digits: digits.into_iter().skip(zeros).collect(), point })
}

impl Digits {
    /// Returns the number times `10^scale`, rounded to a whole number; `None` if the result does not fit in an `i128`.
    fn rounded(&self, scale: i64, how: Rounding) -> Option<i128> {
        let kept = self.point.checked_add(scale)?;
        if kept > 39 && !self.digits.is_empty() {
            return None;
        }
        let digit = |at: i64| {
            usize::try_from(at).ok().and_then(|at| self.digits.get(at)).map_or(0, |digit| i128::from(*digit))
        };
        let mut value = 0i128;
        for at in 0..kept {
            value = value.checked_mul(10)?.checked_add(digit(at))?;
        }
        // The first dropped digit decides whether the value is rounded up. If `kept` is negative, that digit is one of
        // the zeros between the point and the first digit.
        let is_half = || {
            let after = usize::try_from(kept + 1).ok().and_then(|after| self.digits.get(after..));
            digit(kept) == 5 && after.unwrap_or_default().iter().all(|digit| *digit == 0)
        };
        let stays = how == Rounding::HalfEven && value % 2 == 0;
        if kept >= 0 && digit(kept) >= 5 && !(stays && is_half()) {
            value = value.checked_add(1)?;
        }
        Some(if self.negative { -value } else { value })
    }
}

/// Returns the number in `text` times `10^scale`, rounded, if the result has at most `precision` digits.
pub(super) fn rounded_to(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let value = parse_digits(text)?.rounded(scale.into(), Rounding::HalfUp)?;
    (value.unsigned_abs() < 10u128.checked_pow(precision.into())?).then_some(value)
}

/// Rounds the number in `text` to `digits` digits after the point, and returns the result as text that can be parsed
/// again.
pub(super) fn rounded_text(text: &str, digits: i64, how: Rounding) -> Option<String> {
    let number = parse_digits(text)?;
    if number.digits.is_empty() {
        return Some("0".to_owned());
    }
    // Rounding to more digits than the number has does not change it.
    if number.point.checked_add(digits)? >= i64::try_from(number.digits.len()).ok()? {
        return Some(text.to_owned());
    }
    Some(format!("{}e{}", number.rounded(digits, how)?, digits.checked_neg()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::text::{decimal_text, parse_decimal};
    use proptest::prelude::*;

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (text, scale, expected) in [
            ("2.5", 0, 3),
            ("-2.5", 0, -3),
            ("2.4999999999999999999999999999999999999999", 0, 2),
            ("0.05", 1, 1),
            ("0.049", 1, 0),
            ("0.5", 0, 1),
            ("0.05", 0, 0),
            ("9.99", 1, 100),
            ("1e3", 2, 100_000),
            ("15e-1", 0, 2),
            ("150", -2, 2),
            ("49", -2, 0),
            ("50", -2, 1),
            ("-0", 3, 0),
        ] {
            assert_eq!(rounded_to(text, 38, scale), Some(expected), "{text}");
        }
        for text in ["", ".", "-", "1.2.3", "1e", "x", "1e99", "1 "] {
            assert_eq!(rounded_to(text, 38, 0), None, "{text}");
        }
        assert_eq!(rounded_to("99.5", 2, 0), None);
        let rounded = |text, digits, how| rounded_text(text, digits, how).unwrap().parse::<f64>().unwrap();
        for (text, digits, up, even) in [
            ("2.675", 2, 2.68, 2.68),
            ("2.665", 2, 2.67, 2.66),
            ("2.6651", 2, 2.67, 2.67),
            ("0.5", 0, 1.0, 0.0),
            ("-1.5", 0, -2.0, -2.0),
            ("1e300", 2, 1e300, 1e300),
            ("1250", -2, 1300.0, 1200.0),
            ("1234.5", -2, 1200.0, 1200.0),
        ] {
            assert_eq!(rounded(text, digits, Rounding::HalfUp), up, "{text}");
            assert_eq!(rounded(text, digits, Rounding::HalfEven), even, "{text}");
        }
    }

    #[test]
    fn quotients_are_rounded_in_each_direction() {
        use Rounding::{Down, HalfEven, HalfUp, Up};
        for (value, expected) in [
            (25, [3, 2, 2, 3]),
            (-25, [-3, -2, -3, -2]),
            (35, [4, 4, 3, 4]),
            (-35, [-4, -4, -4, -3]),
            (24, [2, 2, 2, 3]),
            (-26, [-3, -3, -3, -2]),
            (30, [3; 4]),
            (-30, [-3; 4]),
            (0, [0; 4]),
        ] {
            assert_eq!([HalfUp, HalfEven, Down, Up].map(|how| how.quotient(value, 10)), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_if_nothing_is_rounded(unscaled in -10i128.pow(37)..10i128.pow(37), scale in 0i8..=38) {
            let text = decimal_text(unscaled, scale).unwrap();
            prop_assert_eq!(rounded_to(&text, 38, scale), parse_decimal(&text, 38, scale));
        }

        #[test]
        fn rounding_is_to_the_nearest(unscaled in -10i128.pow(20)..10i128.pow(20), fewer in 1u32..10) {
            let rounded = rounded_to(&decimal_text(unscaled, 12).unwrap(), 38, 12 - fewer as i8).unwrap();
            let power = 10i128.pow(fewer);
            let error = unscaled - rounded * power;
            prop_assert!(2 * error.abs() <= power);
            // If the number was exactly halfway, it was rounded away from zero.
            prop_assert!(2 * error.abs() < power || error.signum() != unscaled.signum());
        }
    }
}
