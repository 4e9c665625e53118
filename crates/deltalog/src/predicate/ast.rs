//! The tree of a predicate, independent of any schema.

use super::function::Function;
use std::fmt;

/// The path of a column: one name, or the names of the struct fields that lead to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnPath(Vec<String>);

impl ColumnPath {
    /// The path made of `parts`, outermost first.
    pub fn new<S: Into<String>>(parts: impl IntoIterator<Item = S>) -> Self {
        Self(parts.into_iter().map(Into::into).collect())
    }

    /// The names, outermost first.
    pub fn parts(&self) -> &[String] {
        &self.0
    }
}

/// A comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// `<=>`: equality where NULL equals NULL; never NULL itself.
    NullSafeEq,
}

impl CompareOp {
    /// The operator that says the same with the sides exchanged.
    pub fn flipped(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::LtEq => Self::GtEq,
            Self::Gt => Self::Lt,
            Self::GtEq => Self::LtEq,
            Self::Eq | Self::NotEq | Self::NullSafeEq => self,
        }
    }

    /// As in SQL.
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
/// A `FLOAT` constant is a [`Literal::Double`] of the same number, which is exact.
#[derive(Debug, Clone)]
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
        /// How many of the digits are behind the point.
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
    /// Microseconds since 1970-01-01 00:00:00 of no time zone.
    TimestampNtz(i64),
}

impl PartialEq for Literal {
    /// Equal as trees: a NaN equals itself, and -0.0 differs from 0.0.
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

/// A value in a predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// The value of a column.
    Column(ColumnPath),
    /// A constant.
    Literal(Literal),
    /// A function that keeps the order of its argument.
    Call(Function, Box<Expr>),
    /// Something this crate cannot compute, with its text. It may have any value.
    Unknown(String),
}

/// A condition on a row: true, false or NULL.
///
/// `AND`s and `OR`s that the builder and the parser make are flat: an `And` holds no `And`, an `Or` no `Or`,
/// and both at least two conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicate {
    /// A boolean column, constant, or a condition this crate cannot compute.
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
    /// `value IS NULL`
    IsNull(Expr),
    /// `value IN (list)`
    In {
        /// What is looked for.
        value: Expr,
        /// Where it is looked for.
        list: Vec<Expr>,
    },
    /// `value LIKE pattern ESCAPE escape`: `%` is any string, `_` any character, `escape` makes the next
    /// character stand for itself.
    Like {
        /// The string to test.
        value: Expr,
        /// The pattern.
        pattern: String,
        /// The escape character, in Spark `\` unless said otherwise.
        escape: char,
    },
    /// `startswith(value, prefix)`
    StartsWith {
        /// The string to test.
        value: Expr,
        /// What it starts with.
        prefix: String,
    },
    /// `condition IS TRUE`, `IS FALSE`, or with `None` `IS UNKNOWN` (that is, NULL); never NULL itself.
    Is {
        /// The condition tested.
        condition: Box<Predicate>,
        /// What it is tested for.
        truth: Option<bool>,
    },
    /// All of them.
    And(Vec<Predicate>),
    /// At least one of them.
    Or(Vec<Predicate>),
    /// The opposite; NULL stays NULL.
    Not(Box<Predicate>),
}
