//! Binds comparisons of a value with a literal, with a list of literals, with a pattern, and with another value.

use super::ast::{CompareOp, Expr, Literal};
use super::bind::{Binder, Side};
use super::bound::{Bound, Source};
use super::compute::{clocks, common, instants, sql_name};
use super::like::Pattern;
use super::parse::SPARK;
use super::place::{Place, place};
use super::values::{Datum, Domain, domain_of};
use crate::error::{Error, Result};
use arrow::datatypes::DataType;
use std::cmp::Ordering;

/// The hint for values whose types cannot be compared.
const SAME_TYPE: &str = "compare values of one type: a number as 1, a string as 'a'; or convert one of them, as in \
                         CAST(`amount` AS STRING) = '1'";

impl Binder<'_> {
    pub(super) fn compare(&mut self, op: CompareOp, left: &Expr, right: &Expr) -> Result<Bound> {
        let side = self.side(left)?;
        self.compare_with(op, (left, side), right)
    }

    /// Binds the comparison of `left`, which is already bound, with `right`.
    pub(super) fn compare_with(&mut self, op: CompareOp, left: (&Expr, Side), right: &Expr) -> Result<Bound> {
        let mut sides = vec![left, (right, self.side(right)?)];
        self.align_times(&mut sides)?;
        match (sides.pop(), sides.pop()) {
            (Some(right), Some(left)) => self.compare_sides(op, left, right),
            _ => Err(Error::invalid_argument("a comparison has two sides")),
        }
    }

    fn compare_sides(&mut self, op: CompareOp, left: (&Expr, Side), right: (&Expr, Side)) -> Result<Bound> {
        match (left.1, right.1) {
            (Side::Term(a), Side::Term(b)) => self.compare_terms(op, (left.0, a), (right.0, b)),
            (Side::Term(term), Side::Literal(literal)) => self.compare_literal(op, term, &literal),
            (Side::Literal(literal), Side::Term(term)) => self.compare_literal(op.flipped(), term, &literal),
            (Side::Literal(a), Side::Literal(b)) => {
                self.check_keyword(&a)?;
                self.check_keyword(&b)?;
                compare_literals(op, &a, &b)
            }
        }
    }

    fn compare_literal(&self, op: CompareOp, column: usize, literal: &Literal) -> Result<Bound> {
        self.check_keyword(literal)?;
        if *literal == Literal::Null {
            return Ok(if op == CompareOp::NullSafeEq {
                Bound::IsNull(column)
            } else {
                Bound::Constant(None)
            });
        }
        Ok(match (op, self.place(column, literal)?) {
            (CompareOp::NullSafeEq, place) => null_safe(match place {
                Place::At(value) => Bound::Compare { column, op: CompareOp::Eq, value },
                _ => Bound::Constant(Some(false)),
            }),
            (op, Place::At(value)) => Bound::Compare { column, op, value },
            (CompareOp::Lt | CompareOp::LtEq, Place::JustAbove(value)) => {
                Bound::Compare { column, op: CompareOp::LtEq, value }
            }
            (CompareOp::Gt | CompareOp::GtEq, Place::JustAbove(value)) => {
                Bound::Compare { column, op: CompareOp::Gt, value }
            }
            (CompareOp::Eq, _) => Bound::UnlessNull { column, value: false },
            (CompareOp::NotEq, _) => Bound::UnlessNull { column, value: true },
            (op, place) => {
                let less = matches!(op, CompareOp::Lt | CompareOp::LtEq);
                Bound::UnlessNull { column, value: less == (place == Place::Above) }
            }
        })
    }

    fn compare_terms(
        &mut self,
        op: CompareOp,
        (left_expr, left): (&Expr, usize),
        (right_expr, right): (&Expr, usize),
    ) -> Result<Bound> {
        let (left_type, right_type) = (self.value_type(left)?.clone(), self.value_type(right)?.clone());
        let Some(domain) = comparison_domain(&left_type, &right_type) else {
            let refused = || {
                Error::invalid_argument(format!(
                    "values of type {} and {} cannot be compared",
                    sql_name(&left_type),
                    sql_name(&right_type)
                ))
                .with_hint(SPARK)
            };
            let both = common(&left_type, &right_type).filter(|_| !self.lenient).ok_or_else(refused)?;
            let domain = domain_of(&both).ok_or_else(refused)?;
            let left = self.converted(left, left_expr, &both)?;
            let right = self.converted(right, right_expr, &both)?;
            return Ok(compared_terms(op, left, right, domain));
        };
        Ok(compared_terms(op, left, right, domain))
    }

    pub(super) fn is_in(&mut self, value: &Expr, list: &[Expr]) -> Result<Bound> {
        let all = std::iter::once(value).chain(list);
        let mut sides = all.map(|expr| Ok((expr, self.side(expr)?))).collect::<Result<Vec<_>>>()?;
        self.align_times(&mut sides)?;
        let items = sides.split_off(1);
        let Some((_, Side::Term(column))) = sides.first() else {
            let literal = sides.pop().map_or(Side::Literal(Literal::Null), |(_, side)| side);
            let compare = |item| self.compare_sides(CompareOp::Eq, (value, literal.clone()), item);
            return Ok(Bound::Or(items.into_iter().map(compare).collect::<Result<_>>()?));
        };
        let column = *column;
        let mut others = Vec::new();
        let (mut values, mut has_null) = (Vec::new(), false);
        let domain = domain_of(self.value_type(column)?).ok_or_else(|| self.incomparable(column))?;
        for (item, side) in items {
            let literal = match side {
                Side::Literal(literal) => literal,
                term => {
                    others.push(self.compare_sides(
                        CompareOp::Eq,
                        (value, Side::Term(column)),
                        (item, term),
                    )?);
                    continue;
                }
            };
            self.check_keyword(&literal)?;
            if literal == Literal::Null {
                has_null = true;
                continue;
            }
            match self.place(column, &literal)? {
                Place::At(datum) if datum.domain() == domain => values.push(datum),
                Place::At(value) => others.push(Bound::Compare { column, op: CompareOp::Eq, value }),
                Place::JustAbove(_) | Place::Below | Place::Above => {}
            }
        }
        values.sort_by(|a: &Datum, b| a.compare(b).unwrap_or(Ordering::Equal));
        let listed = Bound::In { column, domain, values, has_null };
        if others.is_empty() {
            return Ok(listed);
        }
        others.push(listed);
        Ok(Bound::Or(others))
    }

    pub(super) fn like(&mut self, value: &Expr, pattern: Pattern) -> Result<Bound> {
        let column = match self.side(value)? {
            Side::Literal(literal) => {
                self.check_keyword(&literal)?;
                return match literal {
                    Literal::Null => Ok(Bound::Constant(None)),
                    Literal::String(text) => Ok(Bound::Constant(Some(pattern.matches(text.as_bytes())))),
                    other => Err(Error::invalid_argument(format!("{other} is not a string"))),
                };
            }
            Side::Term(term) => term,
        };
        match self.value_type(column)? {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(Bound::Like { column, pattern }),
            other => Err(Error::invalid_argument(format!(
                "{value} is not a string: it has the type {}",
                sql_name(other)
            ))
            .with_hint("compare it as a string, as in CAST(`day` AS STRING)")),
        }
    }

    fn place(&self, column: usize, literal: &Literal) -> Result<Place> {
        let data_type = self.value_type(column)?;
        place(literal, data_type).ok_or_else(|| {
            let name = match self.arena.terms.get(column).map(|term| &term.source) {
                Some(Source::Column { column, .. }) => {
                    self.arena.columns.get(*column).map(|column| format!("column {}", column.path))
                }
                Some(Source::Computed { of, .. }) => Some(of.to_string()),
                None => None,
            };
            let error = Error::invalid_argument(format!(
                "{} of type {} cannot be compared with {literal}",
                name.unwrap_or_default(),
                sql_name(data_type)
            ));
            match (literal, data_type) {
                (Literal::String(_), DataType::Timestamp(..)) => {
                    error.with_hint("write a timestamp as '2024-01-31 12:30:00'")
                }
                (Literal::String(_), DataType::Date32) => error.with_hint("write a date as '2024-01-31'"),
                (_, of) if of.is_nested() => error.with_hint(SPARK),
                _ => error.with_hint(SAME_TYPE),
            }
        })
    }

    fn incomparable(&self, column: usize) -> Error {
        Error::invalid_argument(format!(
            "values of type {} cannot be compared",
            sql_name(self.data_type(column))
        ))
        .with_hint(SPARK)
    }
}

/// Returns the domain in which values of the two types can be compared directly; `None` if there is none.
fn comparison_domain(left: &DataType, right: &DataType) -> Option<Domain> {
    let whole = |t: &DataType| t.is_signed_integer();
    let float = |t: &DataType| matches!(t, DataType::Float32 | DataType::Float64);
    let number = |t: &DataType| whole(t) || float(t) || matches!(t, DataType::Decimal128(..));
    match (left, right) {
        (DataType::Decimal128(_, a), DataType::Decimal128(_, b)) if a == b => Some(Domain::Decimal),
        (DataType::Decimal128(..), DataType::Decimal128(..)) => None,
        (a, b) if whole(a) && whole(b) => Some(Domain::Integer),
        (a, b) if number(a) && number(b) => (float(a) || float(b)).then_some(Domain::Float),
        (a, b) if a == b => domain_of(a),
        _ => None,
    }
}

fn compared_terms(op: CompareOp, left: usize, right: usize, domain: Domain) -> Bound {
    if op != CompareOp::NullSafeEq {
        return Bound::CompareColumns { left, op, right, domain };
    }
    let same = null_safe(Bound::CompareColumns { left, op: CompareOp::Eq, right, domain });
    Bound::Or(vec![same, Bound::And(vec![Bound::IsNull(left), Bound::IsNull(right)])])
}

/// Returns a condition that is false wherever `equal` is NULL.
fn null_safe(equal: Bound) -> Bound {
    match equal {
        Bound::Constant(truth) => Bound::Constant(truth),
        equal => Bound::Is { condition: Box::new(equal), truth: Some(true) },
    }
}

/// Compares two constants.
fn compare_literals(op: CompareOp, left: &Literal, right: &Literal) -> Result<Bound> {
    let null = |l: &Literal| *l == Literal::Null;
    if null(left) || null(right) {
        let truth = (op == CompareOp::NullSafeEq).then_some(null(left) && null(right));
        return Ok(Bound::Constant(truth));
    }
    let refused =
        || Error::invalid_argument(format!("{left} and {right} cannot be compared")).with_hint(SAME_TYPE);
    let data_type = match left {
        Literal::Integer(_) => DataType::Int64,
        Literal::Decimal { scale, .. } => DataType::Decimal128(38, i8::try_from(*scale).unwrap_or(i8::MAX)),
        Literal::Double(_) => DataType::Float64,
        Literal::Boolean(_) => DataType::Boolean,
        Literal::String(_) => DataType::Utf8,
        Literal::Binary(_) => DataType::Binary,
        Literal::Date(_) => DataType::Date32,
        Literal::Timestamp(_) => instants(),
        Literal::TimestampNtz(_) => clocks(),
        _ => return Err(refused()),
    };
    let (Some(Place::At(a)), Some(place)) = (place(left, &data_type), place(right, &data_type)) else {
        return Err(refused());
    };
    let ordering = match place {
        Place::At(b) => match (&a, &b) {
            (Datum::Integer(v), Datum::Float(_)) => Datum::Float(*v as f64).compare(&b),
            _ => a.compare(&b),
        },
        Place::JustAbove(b) => a.compare(&b).map(|o| if o == Ordering::Equal { Ordering::Less } else { o }),
        Place::Below => Some(Ordering::Greater),
        Place::Above => Some(Ordering::Less),
    };
    let ordering = ordering.ok_or_else(refused)?;
    Ok(Bound::Constant(Some(holds(op, ordering))))
}

/// Returns whether the operator `op` is true for two values with this ordering.
fn holds(op: CompareOp, ordering: Ordering) -> bool {
    match op {
        CompareOp::Eq | CompareOp::NullSafeEq => ordering.is_eq(),
        CompareOp::NotEq => ordering.is_ne(),
        CompareOp::Lt => ordering.is_lt(),
        CompareOp::LtEq => ordering.is_le(),
        CompareOp::Gt => ordering.is_gt(),
        CompareOp::GtEq => ordering.is_ge(),
    }
}
