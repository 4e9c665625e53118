//! The operators and functions of expressions, by their names in Spark's SQL.
//!
//! A function that preserves the order of a column is a [`Function`](super::super::function::Function) instead, because
//! conditions on its values can be used to skip files. This module contains all others.

use super::super::function::CastType;
use super::super::zone::Clock;
use super::digest::Digest;
use super::interval::Interval;
use super::math::Math;
use super::regex::RegexUse;

/// An operator or function with any number of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`; the result is a DOUBLE or a decimal.
    Divide,
    /// `a DIV b`; the result is a whole number.
    Quotient,
    /// `a % b`, with the sign of `a`.
    Remainder,
    /// `pmod(a, b)`, with the sign of `b`.
    Modulus,
    /// `- a`
    Negate,
    /// `abs(a)`
    Abs,
    /// `a & b`
    BitAnd,
    /// `a | b`
    BitOr,
    /// `a ^ b`
    BitXor,
    /// `~ a`
    BitNot,
    /// `round(a, digits)`, halves away from zero.
    Round,
    /// `bround(a, digits)`, halves to the even neighbor.
    RoundEven,
    /// `floor(a[, digits])`
    Floor,
    /// `ceil(a[, digits])`
    Ceil,
    /// `isnan(a)`; false for NULL.
    IsNan,
    /// `concat(a, …)` and `a || b`
    Concat,
    /// `upper(a)`
    Upper,
    /// `lower(a)`
    Lower,
    /// `initcap(a)`: the first letter of each word in upper case, the others in lower case.
    InitCap,
    /// `trim(a)`: without spaces at both ends.
    Trim,
    /// `ltrim(a)`
    TrimStart,
    /// `rtrim(a)`
    TrimEnd,
    /// `length(a)`: characters of a string, bytes of binary.
    Length,
    /// `octet_length(a)`
    OctetLength,
    /// `substring(a, from[, length])`: the first character is number 1, the last is number -1.
    Substring,
    /// `right(a, length)`
    Right,
    /// `replace(a, search, by)`
    Replace,
    /// `contains(a, b)`
    Contains,
    /// `startswith(a, b)`
    StartsWith,
    /// `endswith(a, b)`
    EndsWith,
    /// `instr(a, b)`: the position at which `b` first occurs in `a`, counted from 1; 0 if it does not occur.
    Position,
    /// `reverse(a)` of a string.
    Reverse,
    /// `lpad(a, length, pad)`
    PadStart,
    /// `rpad(a, length, pad)`
    PadEnd,
    /// `concat_ws(separator, a, …)`: the strings joined by the separator, leaving out NULLs.
    ConcatWith,
    /// `repeat(a, times)`
    Repeat,
    /// `hex(a)` of a whole number, a string or binary.
    Hex,
    /// `unhex(a)`; NULL if `a` is not hexadecimal.
    Unhex,
    /// `ascii(a)`: the code point of the first character; 0 for an empty string.
    Ascii,
    /// `chr(a)`: the Latin-1 character with this number.
    Character,
    /// `translate(a, from, to)`: replaces characters one by one.
    Translate,
    /// `sqrt(a)` and other functions of DOUBLE.
    Math(Math),
    /// `md5(a)` and other digests.
    Digest(Digest),
    /// `a RLIKE pattern` and other functions of regular expressions.
    Regex(RegexUse),
    /// `current_timestamp()` and similar functions: the time at which the statement began, in microseconds since
    /// 1970. The optional argument is a column with the same name as the function; if that column exists, it takes
    /// precedence.
    Now(Moment, Clock, i64),
    /// `uuid()`
    Uuid,
    /// `rand()`: a number from 0 up to, but not including, 1.
    Random,
    /// `a + INTERVAL …`
    Shift(Interval, Clock),
    /// A part of a date, such as `month(a)`.
    OfDate(DatePart, Clock),
    /// A part of a time, such as `hour(a)`.
    OfTime(TimePart, Clock),
    /// `date_format(a, pattern)`
    DateFormat(Clock),
    /// `datediff(end, start)`, in days.
    DateDiff(Clock),
    /// `date_add(a, days)` with a number of days that is not constant.
    DateAdd(Clock),
    /// `make_date(year, month, day)`
    MakeDate,
    /// `unix_seconds(a)`
    UnixSeconds,
    /// `unix_millis(a)`
    UnixMillis,
    /// `unix_micros(a)`
    UnixMicros,
    /// `timestamp_seconds(a)`
    TimestampSeconds,
    /// `timestamp_millis(a)`
    TimestampMillis,
    /// `timestamp_micros(a)`
    TimestampMicros,
    /// `TRY_CAST(a AS type)`: NULL for a value that the type cannot represent.
    TryCast(CastType, Clock),
    /// `array(a, …)`
    Array,
    /// `named_struct(name, a, …)`
    NamedStruct,
    /// `map(key, a, …)`
    Map,
    /// `size(a)` of an array or a map.
    Size,
    /// `array_contains(a, b)`; NULL if `a` does not contain `b` but contains NULLs.
    ArrayContains,
    /// `coalesce(a, …)`
    Coalesce,
    /// `greatest(a, …)`; NULL only if all arguments are NULL.
    Greatest,
    /// `least(a, …)`; NULL only if all arguments are NULL.
    Least,
    /// `nullif(a, b)`: NULL if `a` equals `b`, otherwise `a`, which is computed once.
    NullIf,
    /// `CASE WHEN c THEN a … [ELSE b] END`. The arguments are pairs of a condition and a value; an unpaired last
    /// argument is the ELSE value.
    Case,
    /// `CASE a WHEN b THEN c … [ELSE d] END`. The first argument is the value to compare, which is computed once; the
    /// others are as for `Case`.
    CaseOf,
}

/// A part of a date, as a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "Spark's names")]
pub enum DatePart {
    Month,
    Quarter,
    Day,
    /// Sunday is 1.
    DayOfWeek,
    /// Monday is 0.
    WeekDay,
    DayOfYear,
    /// The number of the week, as defined by ISO 8601.
    WeekOfYear,
}

/// The functions for the time at which a statement began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "Spark's names")]
pub enum Moment {
    CurrentDate,
    CurrentTimestamp,
    LocalTimestamp,
}

/// When the value of an operation may change although its arguments are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Changes {
    /// Never: the operation is deterministic.
    Never,
    /// From one statement to the next.
    ByStatement,
    /// From one row to the next.
    ByRow,
}

/// A part of the time of day, as a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "Spark's names")]
pub enum TimePart {
    Hour,
    Minute,
    Second,
}

/// The syntax of an operation in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// An operator between two values, and its precedence. An operator with a greater precedence binds more tightly.
    Infix(&'static str, u8),
    /// An operator before a value.
    Prefix(&'static str),
    /// A function call.
    Call(&'static str),
    Case,
    TryCast,
}

impl Operation {
    /// Returns the binary operator with the token `symbol`, and its precedence.
    ///
    /// ```text
    /// 5  *  /  %  DIV
    /// 4  +  -  ||
    /// 3  &
    /// 2  ^
    /// 1  |
    /// ```
    pub(crate) fn infix(symbol: &str) -> Option<(Self, u8)> {
        [
            Self::Multiply,
            Self::Divide,
            Self::Remainder,
            Self::Quotient,
            Self::Add,
            Self::Subtract,
            Self::BitAnd,
            Self::BitXor,
            Self::BitOr,
        ]
        .into_iter()
        .find_map(|operation| match operation.form() {
            Form::Infix(name, precedence) if name.eq_ignore_ascii_case(symbol) => {
                Some((operation, precedence))
            }
            _ => None,
        })
        .or_else(|| (symbol == "||").then_some((Self::Concat, 4)))
    }

    /// Returns when the value of the operation may change although its arguments are the same.
    pub(in crate::expression::predicate) fn changes(self) -> Changes {
        match self {
            Self::Now(..) => Changes::ByStatement,
            Self::Uuid | Self::Random => Changes::ByRow,
            _ => Changes::Never,
        }
    }

    /// Returns the symbol of a binary operator; `None` for other operations.
    pub(in crate::expression::predicate) fn symbol(self) -> Option<&'static str> {
        match self.form() {
            Form::Infix(symbol, _) => Some(symbol),
            _ => (self == Self::Concat).then_some("||"),
        }
    }

    /// Returns the precedence of a binary operator; `None` for other operations.
    pub(in crate::expression::predicate) fn precedence(self) -> Option<u8> {
        self.symbol().and_then(Self::infix).map(|(_, precedence)| precedence)
    }

    /// Returns whether the result can be NULL although no argument is NULL.
    pub(super) fn has_nulls(self) -> bool {
        matches!(self, Self::Unhex | Self::ArrayContains | Self::Digest(Digest::Sha2))
            || matches!(self, Self::Math(Math::Ln | Math::Log | Math::Log2 | Math::Log10))
    }

    /// Returns the syntax of the operation in SQL.
    pub(crate) fn form(self) -> Form {
        use DatePart as D;
        use TimePart as T;
        match self {
            Self::Multiply => Form::Infix("*", 5),
            Self::Divide => Form::Infix("/", 5),
            Self::Remainder => Form::Infix("%", 5),
            Self::Quotient => Form::Infix("DIV", 5),
            Self::Add => Form::Infix("+", 4),
            Self::Subtract => Form::Infix("-", 4),
            Self::BitAnd => Form::Infix("&", 3),
            Self::BitXor => Form::Infix("^", 2),
            Self::BitOr => Form::Infix("|", 1),
            Self::BitNot => Form::Prefix("~"),
            Self::Negate => Form::Call("negative"),
            Self::Modulus => Form::Call("pmod"),
            Self::Abs => Form::Call("abs"),
            Self::Round => Form::Call("round"),
            Self::RoundEven => Form::Call("bround"),
            Self::Floor => Form::Call("floor"),
            Self::Ceil => Form::Call("ceil"),
            Self::IsNan => Form::Call("isnan"),
            Self::Concat => Form::Call("concat"),
            Self::Upper => Form::Call("upper"),
            Self::Lower => Form::Call("lower"),
            Self::InitCap => Form::Call("initcap"),
            Self::Trim => Form::Call("trim"),
            Self::TrimStart => Form::Call("ltrim"),
            Self::TrimEnd => Form::Call("rtrim"),
            Self::Length => Form::Call("length"),
            Self::OctetLength => Form::Call("octet_length"),
            Self::Substring => Form::Call("substring"),
            Self::Right => Form::Call("right"),
            Self::Replace => Form::Call("replace"),
            Self::Contains => Form::Call("contains"),
            Self::StartsWith => Form::Call("startswith"),
            Self::EndsWith => Form::Call("endswith"),
            Self::Position => Form::Call("instr"),
            Self::Reverse => Form::Call("reverse"),
            Self::PadStart => Form::Call("lpad"),
            Self::PadEnd => Form::Call("rpad"),
            Self::ConcatWith => Form::Call("concat_ws"),
            Self::Repeat => Form::Call("repeat"),
            Self::Hex => Form::Call("hex"),
            Self::Unhex => Form::Call("unhex"),
            Self::Ascii => Form::Call("ascii"),
            Self::Character => Form::Call("chr"),
            Self::Translate => Form::Call("translate"),
            Self::Math(of) => Form::Call(of.name()),
            Self::Digest(of) => Form::Call(of.name()),
            Self::Regex(of) => Form::Call(of.name()),
            Self::Now(moment, ..) => Form::Call(match moment {
                Moment::CurrentDate => "current_date",
                Moment::CurrentTimestamp => "current_timestamp",
                Moment::LocalTimestamp => "localtimestamp",
            }),
            Self::Uuid => Form::Call("uuid"),
            Self::Random => Form::Call("rand"),
            Self::Shift(..) => Form::Call("+"),
            Self::OfDate(part, _) => Form::Call(match part {
                D::Month => "month",
                D::Quarter => "quarter",
                D::Day => "day",
                D::DayOfWeek => "dayofweek",
                D::WeekDay => "weekday",
                D::DayOfYear => "dayofyear",
                D::WeekOfYear => "weekofyear",
            }),
            Self::OfTime(part, _) => Form::Call(match part {
                T::Hour => "hour",
                T::Minute => "minute",
                T::Second => "second",
            }),
            Self::DateFormat(_) => Form::Call("date_format"),
            Self::DateDiff(_) => Form::Call("datediff"),
            Self::DateAdd(_) => Form::Call("date_add"),
            Self::MakeDate => Form::Call("make_date"),
            Self::UnixSeconds => Form::Call("unix_seconds"),
            Self::UnixMillis => Form::Call("unix_millis"),
            Self::UnixMicros => Form::Call("unix_micros"),
            Self::TimestampSeconds => Form::Call("timestamp_seconds"),
            Self::TimestampMillis => Form::Call("timestamp_millis"),
            Self::TimestampMicros => Form::Call("timestamp_micros"),
            Self::TryCast(..) => Form::TryCast,
            Self::Array => Form::Call("array"),
            Self::NamedStruct => Form::Call("named_struct"),
            Self::Map => Form::Call("map"),
            Self::Size => Form::Call("size"),
            Self::ArrayContains => Form::Call("array_contains"),
            Self::Coalesce => Form::Call("coalesce"),
            Self::Greatest => Form::Call("greatest"),
            Self::Least => Form::Call("least"),
            Self::NullIf => Form::Call("nullif"),
            Self::Case | Self::CaseOf => Form::Case,
        }
    }
}
