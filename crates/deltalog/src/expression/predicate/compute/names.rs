//! The names of the functions, and the number of arguments that each accepts.

use super::super::zone::Clock;
use super::digest::Digest as G;
use super::math::Math as M;
use super::operation::{Changes, DatePart as D, Operation, TimePart as T};
use super::regex::RegexUse as R;

use Operation as O;

/// The operation that a function name denotes.
enum Of {
    Any(Operation),
    /// The operation depends on the time zone of the session.
    Clock(fn(Clock) -> Operation),
}

const MANY: usize = usize::MAX;

/// The names of functions, each with the minimum and maximum number of arguments.
#[rustfmt::skip]
const FUNCTIONS: &[(&[&str], Of, usize, usize)] = &[
    (&["MOD"], Of::Any(O::Remainder), 2, 2),
    (&["DIV"], Of::Any(O::Quotient), 2, 2),
    (&["PMOD"], Of::Any(O::Modulus), 2, 2),
    (&["NEGATIVE"], Of::Any(O::Negate), 1, 1),
    (&["ABS"], Of::Any(O::Abs), 1, 1),
    (&["ROUND"], Of::Any(O::Round), 1, 2),
    (&["BROUND"], Of::Any(O::RoundEven), 1, 2),
    (&["FLOOR"], Of::Any(O::Floor), 1, 2),
    (&["CEIL", "CEILING"], Of::Any(O::Ceil), 1, 2),
    (&["RAND", "RANDOM"], Of::Any(O::Random), 0, 0),
    (&["UUID"], Of::Any(O::Uuid), 0, 0),
    (&["ISNAN"], Of::Any(O::IsNan), 1, 1),
    (&["CONCAT"], Of::Any(O::Concat), 1, MANY),
    (&["UPPER", "UCASE"], Of::Any(O::Upper), 1, 1),
    (&["LOWER", "LCASE"], Of::Any(O::Lower), 1, 1),
    (&["INITCAP"], Of::Any(O::InitCap), 1, 1),
    (&["TRIM", "BTRIM"], Of::Any(O::Trim), 1, 1),
    (&["LTRIM"], Of::Any(O::TrimStart), 1, 1),
    (&["RTRIM"], Of::Any(O::TrimEnd), 1, 1),
    (&["LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"], Of::Any(O::Length), 1, 1),
    (&["OCTET_LENGTH"], Of::Any(O::OctetLength), 1, 1),
    (&["SUBSTRING", "SUBSTR"], Of::Any(O::Substring), 2, 3),
    (&["RIGHT"], Of::Any(O::Right), 2, 2),
    (&["REPLACE"], Of::Any(O::Replace), 2, 3),
    (&["CONTAINS"], Of::Any(O::Contains), 2, 2),
    (&["STARTSWITH"], Of::Any(O::StartsWith), 2, 2),
    (&["ENDSWITH"], Of::Any(O::EndsWith), 2, 2),
    (&["INSTR"], Of::Any(O::Position), 2, 2),
    (&["REVERSE"], Of::Any(O::Reverse), 1, 1),
    (&["LPAD"], Of::Any(O::PadStart), 2, 3),
    (&["RPAD"], Of::Any(O::PadEnd), 2, 3),
    (&["MONTH"], Of::Clock(|clock| O::OfDate(D::Month, clock)), 1, 1),
    (&["QUARTER"], Of::Clock(|clock| O::OfDate(D::Quarter, clock)), 1, 1),
    (&["DAY", "DAYOFMONTH"], Of::Clock(|clock| O::OfDate(D::Day, clock)), 1, 1),
    (&["DAYOFWEEK"], Of::Clock(|clock| O::OfDate(D::DayOfWeek, clock)), 1, 1),
    (&["WEEKDAY"], Of::Clock(|clock| O::OfDate(D::WeekDay, clock)), 1, 1),
    (&["DAYOFYEAR"], Of::Clock(|clock| O::OfDate(D::DayOfYear, clock)), 1, 1),
    (&["WEEKOFYEAR"], Of::Clock(|clock| O::OfDate(D::WeekOfYear, clock)), 1, 1),
    (&["HOUR"], Of::Clock(|clock| O::OfTime(T::Hour, clock)), 1, 1),
    (&["MINUTE"], Of::Clock(|clock| O::OfTime(T::Minute, clock)), 1, 1),
    (&["SECOND"], Of::Clock(|clock| O::OfTime(T::Second, clock)), 1, 1),
    (&["DATE_FORMAT"], Of::Clock(O::DateFormat), 2, 2),
    (&["DATEDIFF", "DATE_DIFF"], Of::Clock(O::DateDiff), 2, 2),
    (&["DATE_ADD", "DATEADD"], Of::Clock(O::DateAdd), 2, 2),
    (&["MAKE_DATE"], Of::Any(O::MakeDate), 3, 3),
    (&["UNIX_SECONDS"], Of::Any(O::UnixSeconds), 1, 1),
    (&["UNIX_MILLIS"], Of::Any(O::UnixMillis), 1, 1),
    (&["UNIX_MICROS"], Of::Any(O::UnixMicros), 1, 1),
    (&["TIMESTAMP_SECONDS"], Of::Any(O::TimestampSeconds), 1, 1),
    (&["TIMESTAMP_MILLIS"], Of::Any(O::TimestampMillis), 1, 1),
    (&["TIMESTAMP_MICROS"], Of::Any(O::TimestampMicros), 1, 1),
    (&["ARRAY"], Of::Any(O::Array), 0, MANY),
    (&["NAMED_STRUCT"], Of::Any(O::NamedStruct), 2, MANY),
    (&["MAP"], Of::Any(O::Map), 0, MANY),
    (&["SIZE", "CARDINALITY"], Of::Any(O::Size), 1, 1),
    (&["ARRAY_CONTAINS"], Of::Any(O::ArrayContains), 2, 2),
    (&["COALESCE"], Of::Any(O::Coalesce), 1, MANY),
    (&["NVL", "IFNULL"], Of::Any(O::Coalesce), 2, 2),
    (&["GREATEST"], Of::Any(O::Greatest), 2, MANY),
    (&["LEAST"], Of::Any(O::Least), 2, MANY),
    (&["CBRT"], Of::Any(O::Math(M::Cbrt)), 1, 1),
    (&["EXP"], Of::Any(O::Math(M::Exp)), 1, 1),
    (&["LN"], Of::Any(O::Math(M::Ln)), 1, 1),
    (&["LOG10"], Of::Any(O::Math(M::Log10)), 1, 1),
    (&["LOG2"], Of::Any(O::Math(M::Log2)), 1, 1),
    (&["SQRT"], Of::Any(O::Math(M::Sqrt)), 1, 1),
    (&["SIGN", "SIGNUM"], Of::Any(O::Math(M::Sign)), 1, 1),
    (&["POW", "POWER"], Of::Any(O::Math(M::Power)), 2, 2),
    (&["LOG"], Of::Any(O::Math(M::Ln)), 1, 1),
    (&["LOG"], Of::Any(O::Math(M::Log)), 2, 2),
    (&["MD5"], Of::Any(O::Digest(G::Md5)), 1, 1),
    (&["SHA", "SHA1"], Of::Any(O::Digest(G::Sha1)), 1, 1),
    (&["SHA2"], Of::Any(O::Digest(G::Sha2)), 2, 2),
    (&["CRC32"], Of::Any(O::Digest(G::Crc32)), 1, 1),
    (&["CONCAT_WS"], Of::Any(O::ConcatWith), 1, MANY),
    (&["REPEAT"], Of::Any(O::Repeat), 2, 2),
    (&["HEX"], Of::Any(O::Hex), 1, 1),
    (&["UNHEX"], Of::Any(O::Unhex), 1, 1),
    (&["ASCII"], Of::Any(O::Ascii), 1, 1),
    (&["CHR", "CHAR"], Of::Any(O::Character), 1, 1),
    (&["TRANSLATE"], Of::Any(O::Translate), 3, 3),
    (&["RLIKE", "REGEXP", "REGEXP_LIKE"], Of::Any(O::Regex(R::Like)), 2, 2),
    (&["REGEXP_REPLACE"], Of::Any(O::Regex(R::Replace)), 3, 3),
    (&["SPLIT"], Of::Any(O::Regex(R::Split)), 2, 3),
    (&["REGEXP_EXTRACT"], Of::Any(O::Regex(R::Extract)), 2, 3),
];

/// Returns the names of all functions in `FUNCTIONS`, with their aliases, in upper case.
pub(in crate::expression::predicate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().flat_map(|(names, ..)| names.iter().copied())
}

/// Returns whether there is a function with this name, which is in upper case.
pub(in crate::expression::predicate) fn is_function(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Returns whether the value of the function `name` (in upper case) may change although its arguments are the same, and
/// how often. The value of a function that is not in `FUNCTIONS` never changes.
pub(in crate::expression::predicate) fn changes_of(name: &str) -> Changes {
    match FUNCTIONS.iter().find(|(names, ..)| names.contains(&name)) {
        Some((_, Of::Any(operation), ..)) => operation.changes(),
        Some((_, Of::Clock(_), ..)) | None => Changes::Never,
    }
}

impl Operation {
    /// Returns the function with this name if it accepts `count` arguments. The name must be in upper case.
    pub(in crate::expression::predicate) fn function(
        name: &str,
        count: usize,
        clock: Option<Clock>,
    ) -> Option<Self> {
        let fits = |least: usize, most: usize| (least..=most).contains(&count);
        let mut named = FUNCTIONS.iter().filter(|(names, ..)| names.contains(&name));
        let (_, of, ..) = named.find(|(_, _, least, most)| fits(*least, *most))?;
        match of {
            Of::Any(operation) => Some(*operation),
            Of::Clock(operation) => clock.map(operation),
        }
    }
}
