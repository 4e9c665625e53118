//! The types of arguments and results of each operation, as in Spark with ANSI mode.
//!
//! | operation | arguments | result |
//! | --- | --- | --- |
//! | `+` `-` `*` `%` `pmod` | the common type | that type; decimals below |
//! | `/` | DOUBLE, or decimals | DOUBLE, or a decimal |
//! | `DIV` | BIGINT, or decimals | BIGINT |
//! | date `+` days, date `-` days | DATE, INT | DATE |
//! | `\|\|` `concat` `concat_ws` | STRING; numbers, booleans and dates are converted to STRING | STRING |
//! | date `+` INTERVAL of months or days | DATE | DATE; with an interval of times, TIMESTAMP |
//! | timestamp `+` INTERVAL | | the same type |
//! | `length`, `instr`, parts of dates and times, `datediff` | | INT |
//! | `round` `bround` | numbers | the same type; for decimals, one with the digits that remain |
//! | `floor` `ceil` | numbers | BIGINT, or a decimal without digits after the point |
//! | `floor` `ceil` with digits | decimals | a decimal with the digits that remain |
//! | CASE, `coalesce`, `greatest`, `least` | the common type | that type |
//! | `array`, `map` | the common type of the elements, of the keys and of the values | an array, a map |
//!
//! The types of results for decimals of precision `p`, `q` and scale `s`, `t`, before [`adjusted`] limits them:
//!
//! | operation | scale | digits before the point |
//! | --- | --- | --- |
//! | `+` `-` | max(s, t) | max(p - s, q - t) + 1 |
//! | `*` | s + t | p + q + 1 - (s + t) |
//! | `/` | max(6, s + q + 1) | p - s + t |
//! | `%` `pmod` | max(s, t) | min(p - s, q - t) |

use super::super::values::domain_of;
use super::digest::Digest;
use super::nested::{array_of, map_type, parts_of, struct_of};
use super::operation::Operation;
use super::regex::RegexUse;
use super::types::{
    adjusted, clocks, common, decimal, decimal_digits, instants, is_decimal, is_float, is_number, is_whole,
};
use arrow::datatypes::DataType;

/// The properties of an argument that determine the types of an operation.
#[derive(Debug, Clone)]
pub(in crate::expression::predicate) struct Argument {
    pub(in crate::expression::predicate) data_type: DataType,
    /// The number of digits, if the argument is a literal whole number.
    pub(in crate::expression::predicate) digits: Option<u8>,
    /// The value, if the argument is a constant whole number.
    pub(in crate::expression::predicate) constant: Option<i64>,
    /// The value, if the argument is a constant string.
    pub(in crate::expression::predicate) text: Option<String>,
}

/// The types to which an operation converts its arguments, and the type of its result.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::expression::predicate) struct Signature {
    pub(in crate::expression::predicate) arguments: Vec<DataType>,
    pub(in crate::expression::predicate) result: DataType,
}

/// Returns the types of an operation with these arguments; `None` if the operation is not defined for them.
pub(in crate::expression::predicate) fn signature(
    operation: Operation,
    arguments: &[Argument],
) -> Option<Signature> {
    use DataType as T;
    use Operation as O;
    let types: Vec<&T> = arguments.iter().map(|argument| &argument.data_type).collect();
    let fixed = |arguments: &[T], result: T| {
        let fits = |(from, to): (&&T, &T)| *from == to || **from == T::Null || is_implicit(from, to);
        types.iter().zip(arguments).all(fits).then(|| Signature {
            arguments: arguments.get(..types.len()).unwrap_or(arguments).to_vec(),
            result,
        })
    };
    let same = |result: &dyn Fn(&T) -> T| {
        let all = types.iter().try_fold(T::Null, |all, next| common(&all, next))?;
        Some(Signature { result: result(&all), arguments: vec![all; types.len()] })
    };
    let is_text =
        |t: &&T| is_whole(t) || is_decimal(t) || matches!(t, T::Utf8 | T::Boolean | T::Date32 | T::Null);
    match operation {
        O::Add | O::Subtract | O::Multiply | O::Remainder | O::Modulus | O::Divide | O::Quotient => {
            arithmetic(operation, arguments)
        }
        O::Negate | O::Abs => is_number(types.first()?).then(|| same(&T::clone))?,
        O::BitAnd | O::BitOr | O::BitXor | O::BitNot => {
            types.iter().all(|t| is_whole(t)).then(|| same(&T::clone))?
        }
        O::Round | O::RoundEven => to_digits((*types.first()?).clone(), arguments),
        O::Floor | O::Ceil if types.len() > 1 => {
            let number = match types.first()? {
                T::Float32 => decimal(14, 7)?,
                T::Float64 => decimal(30, 15)?,
                number => decimal_digits(number).and_then(|(precision, scale)| decimal(precision, scale))?,
            };
            to_digits(number, arguments)
        }
        O::Floor | O::Ceil => match types.first()? {
            T::Decimal128(_, 0) => same(&T::clone),
            T::Decimal128(p, s) => {
                let whole = decimal((i32::from(*p) - i32::from(*s) + 1).min(38), 0)?;
                same(&|_| whole.clone())
            }
            t if is_float(t) || **t == T::Null => fixed(&[T::Float64], T::Int64),
            t if is_whole(t) => fixed(&[T::Int64], T::Int64),
            _ => None,
        },
        O::IsNan => is_float(types.first()?).then(|| same(&|_| T::Boolean))?,
        O::Concat => types
            .iter()
            .all(is_text)
            .then(|| Signature { arguments: vec![T::Utf8; types.len()], result: T::Utf8 }),
        O::Upper | O::Lower | O::InitCap | O::Trim | O::TrimStart | O::TrimEnd | O::Reverse => {
            fixed(&[T::Utf8], T::Utf8)
        }
        O::Length | O::OctetLength if types.first() == Some(&&T::Binary) => fixed(&[T::Binary], T::Int32),
        O::Length | O::OctetLength => fixed(&[T::Utf8], T::Int32),
        O::Substring => fixed(&[T::Utf8, T::Int32, T::Int32], T::Utf8),
        O::Right => fixed(&[T::Utf8, T::Int32], T::Utf8),
        O::Replace => fixed(&[T::Utf8, T::Utf8, T::Utf8], T::Utf8),
        O::Contains | O::StartsWith | O::EndsWith => fixed(&[T::Utf8, T::Utf8], T::Boolean),
        O::Position => fixed(&[T::Utf8, T::Utf8], T::Int32),
        O::PadStart | O::PadEnd => fixed(&[T::Utf8, T::Int32, T::Utf8], T::Utf8),
        O::ConcatWith => types
            .iter()
            .all(is_text)
            .then(|| Signature { arguments: vec![T::Utf8; types.len()], result: T::Utf8 }),
        O::Repeat => fixed(&[T::Utf8, T::Int32], T::Utf8),
        O::Hex => match types.first()? {
            T::Utf8 | T::Binary => {
                same(&|_| T::Utf8).map(|of| Signature { arguments: vec![T::Binary], ..of })
            }
            _ => fixed(&[T::Int64], T::Utf8),
        },
        O::Unhex => fixed(&[T::Utf8], T::Binary),
        O::Ascii => fixed(&[T::Utf8], T::Int32),
        O::Character => fixed(&[T::Int64], T::Utf8),
        O::Translate => fixed(&[T::Utf8, T::Utf8, T::Utf8], T::Utf8),
        O::Math(of) => {
            let are_numbers = types.iter().all(|t| is_number(t) || **t == T::Null);
            (are_numbers && types.len() == of.count())
                .then(|| Signature { arguments: vec![T::Float64; types.len()], result: T::Float64 })
        }
        O::Digest(of) => {
            matches!(types.first()?, T::Utf8 | T::Binary | T::Null).then_some(())?;
            let bits = types.get(1).is_none_or(|t| matches!(t, T::Int8 | T::Int16 | T::Int32 | T::Null));
            let mut arguments = vec![T::Binary];
            arguments.resize(types.len(), T::Int32);
            let result = if of == Digest::Crc32 { T::Int64 } else { T::Utf8 };
            bits.then_some(Signature { arguments, result })
        }
        O::Regex(RegexUse::Like) => fixed(&[T::Utf8, T::Utf8], T::Boolean),
        O::Regex(RegexUse::Replace) => fixed(&[T::Utf8, T::Utf8, T::Utf8], T::Utf8),
        O::Regex(RegexUse::Split) => fixed(&[T::Utf8, T::Utf8, T::Int32], array_of(T::Utf8)),
        O::Regex(RegexUse::Extract) => fixed(&[T::Utf8, T::Utf8, T::Int32], T::Utf8),
        // The binder replaces `NullIf` and `CaseOf` with `Case`, and `Now` with a constant or a column.
        O::Now(..) | O::NullIf | O::CaseOf => None,
        O::Uuid => fixed(&[], T::Utf8),
        O::Random => fixed(&[], T::Float64),
        O::Shift(by, _) => {
            let from = *types.first()?;
            let result = by.result_type(from)?;
            let of = if *from == T::Date32 { result.clone() } else { from.clone() };
            Some(Signature { arguments: vec![of], result })
        }
        O::OfDate(..) => fixed(&[T::Date32], T::Int32),
        O::OfTime(..) => fixed(&[clocks()], T::Int32),
        O::DateFormat(_) => fixed(&[clocks(), T::Utf8], T::Utf8),
        O::DateDiff(_) => fixed(&[T::Date32, T::Date32], T::Int32),
        O::DateAdd(_) => fixed(&[T::Date32, T::Int32], T::Date32),
        O::MakeDate => fixed(&[T::Int32, T::Int32, T::Int32], T::Date32),
        O::UnixSeconds | O::UnixMillis | O::UnixMicros => fixed(&[instants()], T::Int64),
        O::TimestampSeconds | O::TimestampMillis | O::TimestampMicros => {
            is_whole(types.first()?).then(|| fixed(&[T::Int64], instants()))?
        }
        O::TryCast(to, _) => {
            let from = (*types.first()?).clone();
            Some(Signature { arguments: vec![from], result: to.arrow() })
        }
        O::Array => same(&|element| array_of(element.clone())),
        O::Map => {
            let result = map_type(&types)?;
            let T::Map(entries, _) = &result else { return None };
            let (key, value) = parts_of(entries)?;
            let part = |at: usize| if at.is_multiple_of(2) { key } else { value };
            let arguments = (0..types.len()).map(|at| part(at).data_type().clone()).collect();
            Some(Signature { arguments, result })
        }
        O::Size => {
            let of = *types.first()?;
            matches!(of, T::List(_) | T::Map(..))
                .then(|| Signature { arguments: vec![of.clone()], result: T::Int32 })
        }
        O::ArrayContains => {
            let [T::List(element), value] = types.as_slice() else { return None };
            let both = common(element.data_type(), value)?;
            domain_of(&both)?;
            Some(Signature { arguments: vec![array_of(both.clone()), both], result: T::Boolean })
        }
        O::NamedStruct => {
            let field = |pair: &[Argument]| match pair {
                [name, value] => Some((name.text.clone()?, value.data_type.clone())),
                _ => None,
            };
            let fields = arguments.chunks(2).map(field).collect::<Option<Vec<_>>>()?;
            Some(Signature { arguments: types.into_iter().cloned().collect(), result: struct_of(fields) })
        }
        O::Coalesce => same(&T::clone),
        O::Greatest | O::Least => same(&T::clone).filter(|of| !of.result.is_nested()),
        O::Case => case(&types),
    }
}

/// Returns whether arguments of type `from` are converted to `to` without a cast in the query.
fn is_implicit(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    match (from, to) {
        (from, T::Int32) => matches!(from, T::Int8 | T::Int16),
        (from, T::Int64) => is_whole(from),
        (T::Float32, T::Float64) => true,
        // The conversion uses the clock of the operation.
        (T::Timestamp(..), T::Date32) => true,
        (T::Timestamp(..) | T::Date32, T::Timestamp(_, None)) => true,
        _ => false,
    }
}

fn case(types: &[&DataType]) -> Option<Signature> {
    use DataType as T;
    let is_condition = |at: usize| at.is_multiple_of(2) && at + 1 < types.len();
    let mut result = T::Null;
    for (at, data_type) in types.iter().enumerate() {
        if is_condition(at) {
            matches!(data_type, T::Boolean | T::Null).then_some(())?;
        } else {
            result = common(&result, data_type)?;
        }
    }
    let of = |at: usize| if is_condition(at) { T::Boolean } else { result.clone() };
    Some(Signature { arguments: (0..types.len()).map(of).collect(), result })
}

/// Returns the types of an operation that rounds numbers of type `number` to a constant number of digits.
fn to_digits(number: DataType, arguments: &[Argument]) -> Option<Signature> {
    let digits = match arguments.get(1) {
        Some(digits) => i32::try_from(digits.constant?).ok()?,
        None => 0,
    };
    let result = rounded(&number, digits)?;
    let mut types = vec![number];
    types.resize(arguments.len(), DataType::Int32);
    Some(Signature { arguments: types, result })
}

/// Returns the type of `round(number, digits)`.
fn rounded(number: &DataType, digits: i32) -> Option<DataType> {
    match number {
        DataType::Decimal128(precision, scale) => {
            let (precision, scale) = (i32::from(*precision), i32::from(*scale));
            // One more digit, because 9.9 becomes 10.
            let whole = precision - scale + 1;
            match digits {
                ..0 => decimal(whole.max(-digits + 1).min(38), 0),
                _ => decimal((whole + scale.min(digits)).min(38), scale.min(digits)),
            }
        }
        number => is_number(number).then(|| number.clone()),
    }
}

fn arithmetic(operation: Operation, arguments: &[Argument]) -> Option<Signature> {
    use DataType as T;
    use Operation as O;
    let [left, right] = arguments else { return None };
    let (a, b) = (&left.data_type, &right.data_type);
    let both = |of: T, result: T| Some(Signature { arguments: vec![of.clone(), of], result });
    match (operation, a, b) {
        (O::Add | O::Subtract, T::Date32, days) if is_whole(days) => {
            return Some(Signature { arguments: vec![T::Date32, T::Int32], result: T::Date32 });
        }
        (O::Add, days, T::Date32) if is_whole(days) => {
            return Some(Signature { arguments: vec![T::Int32, T::Date32], result: T::Date32 });
        }
        _ => {}
    }
    let is_operand = |t: &T| is_number(t) || *t == T::Null;
    (is_operand(a) && is_operand(b)).then_some(())?;
    let decimals = is_decimal(a) || is_decimal(b);
    let floats = is_float(a) || is_float(b);
    if !decimals || floats {
        return match operation {
            O::Divide => both(T::Float64, T::Float64),
            O::Quotient if floats => None,
            O::Quotient => both(T::Int64, T::Int64),
            _ => {
                let both_types = match common(a, b)? {
                    T::Null => T::Float64,
                    common => common,
                };
                both(both_types.clone(), both_types)
            }
        };
    }
    // A literal needs only the digits that it has, not all digits of its type.
    let digits = |argument: &Argument, other: &T| match (argument.digits, &argument.data_type) {
        (Some(digits), _) => Some((i32::from(digits), 0)),
        (None, T::Null) => decimal_digits(other),
        (None, of) => decimal_digits(of),
    };
    let ((p, s), (q, t)) = (digits(left, b)?, digits(right, a)?);
    let (before, after) = ((p - s).max(q - t), s.max(t));
    let result = match operation {
        O::Add | O::Subtract => adjusted(before + after + 1, after)?,
        O::Multiply => adjusted(p + q + 1, s + t)?,
        O::Divide => {
            let scale = (s + q + 1).max(6);
            adjusted(p - s + t + scale, scale)?
        }
        O::Remainder | O::Modulus => adjusted((p - s).min(q - t) + after, after)?,
        _ => T::Int64,
    };
    Some(Signature { arguments: vec![decimal(p, s)?, decimal(q, t)?], result })
}
