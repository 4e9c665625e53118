//! The tree of a predicate, independent of any schema.

use super::compute::Operation;
use super::function::{CastType, Function};
use super::stack::on_stack;
use super::zone::Clock;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The path of a column: its name, or the names of the nested struct fields that lead to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnPath(Vec<String>);

impl ColumnPath {
    /// Creates a path from `parts`, the outermost name first.
    pub fn new<S: Into<String>>(parts: impl IntoIterator<Item = S>) -> Self {
        Self(parts.into_iter().map(Into::into).collect())
    }

    /// Returns the names in the path, the outermost first.
    pub fn parts(&self) -> &[String] {
        &self.0
    }
}

/// A set of paths can be searched with a slice of names.
impl Borrow<[String]> for ColumnPath {
    fn borrow(&self) -> &[String] {
        &self.0
    }
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `<=>`: equality in which NULL equals NULL. The result is never NULL.
    NullSafeEq,
}

impl CompareOp {
    /// Returns the operator that gives the same result when the two sides are exchanged, such as `>` for `<`.
    pub fn flipped(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::LtEq => Self::GtEq,
            Self::Gt => Self::Lt,
            Self::GtEq => Self::LtEq,
            Self::Eq | Self::NotEq | Self::NullSafeEq => self,
        }
    }

    /// Returns the operator as SQL writes it.
    pub fn as_sql(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::NotEq => "<>",
            Self::Lt => "<",
            Self::LtEq => "<=",
            Self::Gt => ">",
            Self::GtEq => ">=",
            Self::NullSafeEq => "<=>",
        }
    }
}

impl fmt::Display for CompareOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_sql())
    }
}

/// A constant.
///
/// A `FLOAT` constant is a [`Literal::Double`] with the same value, which represents it exactly.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Literal {
    /// NULL of any type.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// A whole number of any width.
    Integer(i64),
    /// The number `unscaled / 10^scale`.
    Decimal {
        /// The digits as a whole number.
        unscaled: i128,
        /// Number of digits after the decimal point.
        scale: u8,
    },
    /// A binary floating-point number.
    Double(f64),
    /// A string.
    String(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
    /// Microseconds since 1970-01-01 00:00:00, without a time zone.
    TimestampNtz(i64),
}

impl PartialEq for Literal {
    /// Compares literals as parts of a tree, not as SQL values: a NaN equals itself, and -0.0 differs from 0.0.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Integer(a), Self::Integer(b)) | (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::TimestampNtz(a), Self::TimestampNtz(b)) => a == b,
            (Self::Decimal { unscaled: a, scale: s }, Self::Decimal { unscaled: b, scale: t }) => {
                a == b && s == t
            }
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Binary(a), Self::Binary(b)) => a == b,
            (Self::Date(a), Self::Date(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Boolean(v) => v.hash(state),
            Self::Integer(v) | Self::Timestamp(v) | Self::TimestampNtz(v) => v.hash(state),
            Self::Decimal { unscaled, scale } => (unscaled, scale).hash(state),
            Self::Double(v) => (if v.is_nan() { f64::NAN } else { *v }).to_bits().hash(state),
            Self::String(v) => v.hash(state),
            Self::Binary(v) => v.hash(state),
            Self::Date(v) => v.hash(state),
        }
    }
}

/// A value in a predicate.
#[derive(Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Expr {
    /// The value of a column.
    Column(ColumnPath),
    /// A constant.
    Literal(Literal),
    /// A constant of a specific numeric type, such as `1L`. Comparisons ignore the type.
    #[doc(hidden)]
    Typed(Literal, CastType),
    /// A string in double quotes: a constant, as in Spark. It is refused if a column has the same name.
    #[doc(hidden)]
    DoubleQuoted(String),
    /// A function that preserves the order of its argument, or a cast.
    #[doc(hidden)]
    Call(Function, Box<Expr>),
    /// Any other operator or function.
    #[doc(hidden)]
    Apply(Operation, Vec<Expr>),
    /// Two or more operators of the same precedence, evaluated from left to right: `a + b - c`. A chain of any length
    /// is a single level of the tree.
    #[doc(hidden)]
    Chain(Box<Expr>, Vec<(Operation, Expr)>),
    /// The truth value of a condition.
    #[doc(hidden)]
    Condition(Box<Predicate>),
    /// The text of an expression that this crate cannot compute. Its value may be anything.
    Unknown(String),
}

impl Clone for Expr {
    fn clone(&self) -> Self {
        on_stack(|| match self {
            Self::Column(path) => Self::Column(path.clone()),
            Self::Literal(literal) => Self::Literal(literal.clone()),
            Self::Typed(literal, of) => Self::Typed(literal.clone(), *of),
            Self::DoubleQuoted(text) => Self::DoubleQuoted(text.clone()),
            Self::Call(function, of) => Self::Call(function.clone(), of.clone()),
            Self::Apply(operation, arguments) => Self::Apply(*operation, arguments.clone()),
            Self::Chain(first, steps) => Self::Chain(first.clone(), steps.clone()),
            Self::Condition(condition) => Self::Condition(condition.clone()),
            Self::Unknown(text) => Self::Unknown(text.clone()),
        })
    }
}

/// A condition on a row: true, false or NULL.
///
/// The `AND`s and `OR`s that the builder and the parser create are flat: an `And` contains no `And` and an
/// `Or` no `Or`, and each contains at least two conditions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Predicate {
    /// A boolean column, a constant, or a condition that this crate cannot compute.
    Value(Expr),
    /// `left op right`
    Compare {
        /// The operator.
        op: CompareOp,
        /// The left side.
        left: Expr,
        /// The right side.
        right: Expr,
    },
    /// `value BETWEEN low AND high`, for a computed value. If the value is a column, the parser writes two
    /// comparisons instead.
    #[doc(hidden)]
    Between {
        /// The value to compare, which is computed once.
        value: Expr,
        /// The least value.
        low: Expr,
        /// The greatest value.
        high: Expr,
    },
    /// `value IS NULL`
    IsNull(Expr),
    /// `value IN (list)`
    In {
        /// The value to search for.
        value: Expr,
        /// The values to compare it with.
        list: Vec<Expr>,
    },
    /// `value LIKE pattern ESCAPE escape`: `%` matches any string, `_` matches any character, and `escape`
    /// makes the next character literal.
    Like {
        /// The string to test.
        value: Expr,
        /// The pattern.
        pattern: String,
        /// The escape character; by default `\`, as in Spark.
        escape: char,
    },
    /// `startswith(value, prefix)`
    StartsWith {
        /// The string to test.
        value: Expr,
        /// The required start of the string.
        prefix: String,
    },
    /// `condition IS TRUE`, `condition IS FALSE`, or, if `truth` is `None`, `condition IS UNKNOWN`, which is true if
    /// the condition is NULL. The result is never NULL.
    Is {
        /// The condition to test.
        condition: Box<Predicate>,
        /// The truth value to test for.
        truth: Option<bool>,
    },
    /// True if all of the conditions are true.
    And(Vec<Predicate>),
    /// True if at least one of the conditions is true.
    Or(Vec<Predicate>),
    /// The negation; NULL stays NULL.
    Not(Box<Predicate>),
    /// A condition that was written in a session. The session's clock determines which instant a date or a time
    /// without a zone means. Conditions outside of an `InZone` are in UTC.
    #[doc(hidden)]
    InZone {
        /// The clock of the session; `None` if its time zone is not known.
        clock: Option<Clock>,
        /// The condition.
        condition: Box<Predicate>,
    },
}
