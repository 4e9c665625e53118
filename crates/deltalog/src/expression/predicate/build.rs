//! A builder for predicates without SQL: `col("a").gt(lit(5)).and(col("b").is_null())`.

use super::ast::{ColumnPath, CompareOp, Expr, Literal, Predicate};

/// Returns the column `name`. Separate struct fields with `.`, and put a name that contains a dot in
/// backticks.
///
/// ```
/// use deltalog::{col, lit};
///
/// let predicate = col("a.b").gt(lit(5)).and(col("`c.d`").is_null().not());
/// assert_eq!(predicate.to_string(), "a.b > 5 AND `c.d` IS NOT NULL");
/// ```
pub fn col(name: &str) -> Expr {
    Expr::Column(ColumnPath::parse(name))
}

impl ColumnPath {
    /// Parses the path of a column, as [`col`] does.
    pub fn parse(name: &str) -> Self {
        let mut parts = vec![String::new()];
        let mut quoted = false;
        let mut chars = name.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '`' if quoted && chars.peek() == Some(&'`') => {
                    chars.next();
                    push(&mut parts, '`');
                }
                '`' => quoted = !quoted,
                '.' if !quoted => parts.push(String::new()),
                c => push(&mut parts, c),
            }
        }
        Self::new(parts)
    }
}

fn push(parts: &mut [String], c: char) {
    if let Some(last) = parts.last_mut() {
        last.push(c);
    }
}

/// Returns the constant `value`.
pub fn lit(value: impl Into<Literal>) -> Expr {
    Expr::Literal(value.into())
}

macro_rules! literal_from {
    ($($from:ty => |$v:ident| $make:expr),* $(,)?) => {
        $(impl From<$from> for Literal {
            fn from($v: $from) -> Self {
                $make
            }
        })*
    };
}

literal_from! {
    bool => |v| Self::Boolean(v),
    i8 => |v| Self::Integer(v.into()),
    i16 => |v| Self::Integer(v.into()),
    i32 => |v| Self::Integer(v.into()),
    i64 => |v| Self::Integer(v),
    u32 => |v| Self::Integer(v.into()),
    f32 => |v| Self::Double(v.into()),
    f64 => |v| Self::Double(v),
    &str => |v| Self::String(v.to_owned()),
    String => |v| Self::String(v),
    Vec<u8> => |v| Self::Binary(v),
    &[u8] => |v| Self::Binary(v.to_vec()),
}

impl From<Literal> for Expr {
    fn from(literal: Literal) -> Self {
        Self::Literal(literal)
    }
}

impl Expr {
    fn compare(self, op: CompareOp, right: impl Into<Expr>) -> Predicate {
        Predicate::Compare { op, left: self, right: right.into() }
    }

    /// `self = right`
    #[must_use]
    pub fn eq(self, right: impl Into<Expr>) -> Predicate {
        self.compare(CompareOp::Eq, right)
    }

    /// `self <> right`
    #[must_use]
    pub fn not_eq(self, right: impl Into<Expr>) -> Predicate {
        self.compare(CompareOp::NotEq, right)
    }

    /// `self < right`
    #[must_use]
    pub fn lt(self, right: impl Into<Expr>) -> Predicate {
        self.compare(CompareOp::Lt, right)
    }

    /// `self <= right`
    #[must_use]
    pub fn lt_eq(self, right: impl Into<Expr>) -> Predicate {
        self.compare(CompareOp::LtEq, right)
    }

    /// `self > right`
    #[must_use]
    pub fn gt(self, right: impl Into<Expr>) -> Predicate {
        self.compare(CompareOp::Gt, right)
    }

    /// `self >= right`
    #[must_use]
    pub fn gt_eq(self, right: impl Into<Expr>) -> Predicate {
        self.compare(CompareOp::GtEq, right)
    }

    /// `self <=> right`
    #[must_use]
    pub fn null_safe_eq(self, right: impl Into<Expr>) -> Predicate {
        self.compare(CompareOp::NullSafeEq, right)
    }

    /// `self BETWEEN low AND high`
    #[must_use]
    pub fn between(self, low: impl Into<Expr>, high: impl Into<Expr>) -> Predicate {
        match self.is_of_column() {
            true => self.clone().gt_eq(low).and(self.lt_eq(high)),
            false => Predicate::Between { value: self, low: low.into(), high: high.into() },
        }
    }

    /// Returns whether the value is a constant, a column, or functions of a column that preserve the column's order.
    fn is_of_column(&self) -> bool {
        let mut inner = self;
        while let Self::Call(_, of) = inner {
            inner = of;
        }
        matches!(
            inner,
            Self::Column(_) | Self::Literal(_) | Self::Typed(..) | Self::DoubleQuoted(_) | Self::Unknown(_)
        )
    }

    /// `self IN (list)`
    #[must_use]
    pub fn is_in<E: Into<Expr>>(self, list: impl IntoIterator<Item = E>) -> Predicate {
        Predicate::In { value: self, list: list.into_iter().map(Into::into).collect() }
    }

    /// `self IS NULL`
    #[must_use]
    pub fn is_null(self) -> Predicate {
        Predicate::IsNull(self)
    }

    /// `self IS NOT NULL`
    #[must_use]
    pub fn is_not_null(self) -> Predicate {
        self.is_null().not()
    }

    /// `self LIKE pattern`, with `\` as the escape character.
    #[must_use]
    pub fn like(self, pattern: impl Into<String>) -> Predicate {
        Predicate::Like { value: self, pattern: pattern.into(), escape: '\\' }
    }

    /// `startswith(self, prefix)`
    #[must_use]
    pub fn starts_with(self, prefix: impl Into<String>) -> Predicate {
        Predicate::StartsWith { value: self, prefix: prefix.into() }
    }

    /// Uses the boolean value as a condition.
    #[must_use]
    pub fn is_true(self) -> Predicate {
        Predicate::Value(self)
    }
}

impl Predicate {
    /// Combines two conditions with `AND`.
    #[must_use]
    #[expect(clippy::result_large_err, reason = "the `Err` is the predicate itself, not an error")]
    pub fn and(self, other: Predicate) -> Self {
        Self::And(joined(self, other, |p| if let Self::And(all) = p { Ok(all) } else { Err(p) }))
    }

    /// Combines two conditions with `OR`.
    #[must_use]
    #[expect(clippy::result_large_err, reason = "the `Err` is the predicate itself, not an error")]
    pub fn or(self, other: Predicate) -> Self {
        Self::Or(joined(self, other, |p| if let Self::Or(all) = p { Ok(all) } else { Err(p) }))
    }

    /// Negates the condition.
    #[must_use]
    #[allow(clippy::should_implement_trait)] // reads like `and` and `or`
    pub fn not(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Returns a condition that cannot be evaluated, so that its value may be anything. `text` is shown in its place.
    pub(crate) fn unknown(text: impl Into<String>) -> Self {
        Self::Value(Expr::Unknown(text.into()))
    }
}

fn joined(
    left: Predicate,
    right: Predicate,
    parts: impl Fn(Predicate) -> Result<Vec<Predicate>, Predicate>,
) -> Vec<Predicate> {
    let mut all = parts(left).unwrap_or_else(|one| vec![one]);
    match parts(right) {
        Ok(more) => all.extend(more),
        Err(one) => all.push(one),
    }
    all
}
