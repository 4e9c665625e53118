//! Binding a predicate to a schema.
//!
//! - Names resolve as in Spark, ignoring case. Among columns that differ only in case, the one with the same
//!   spelling is used; if there is none, the name is ambiguous.
//! - A comparison with the same result for all values of a column's type becomes [`Bound::UnlessNull`]; a
//!   comparison with NULL becomes NULL.
//! - [`Predicate::bind_for_pruning`] turns each part that `bind` refuses into [`Bound::Unknown`].

use super::ast::{ColumnPath, CompareOp, Expr, Literal, Predicate};
use super::bound::{Bound, BoundColumn, BoundPredicate, Term};
use super::like::Pattern;
use super::place::{Place, place};
use super::values::{Datum, Domain, domain_of};
use crate::error::{Error, Result};
use crate::protocol::schema::is_variant;
use arrow::datatypes::{DataType, Field, Schema};
use std::cmp::Ordering;

/// The maximum nesting depth of conditions.
const MAX_DEPTH: usize = 300;

impl Predicate {
    /// Binds to `schema`, for pruning and for [`super::filter_mask`].
    ///
    /// # Errors
    /// InvalidArgument if a column does not exist or is ambiguous, if a literal cannot be compared exactly
    /// with its column, or if a part of the predicate was not understood.
    pub fn bind(&self, schema: &Schema) -> Result<BoundPredicate> {
        let mut binder = Binder {
            schema,
            lenient: false,
            keyword_columns: false,
            columns: Vec::new(),
            variants: Vec::new(),
            terms: Vec::new(),
        };
        let root = binder.condition(self, 0)?;
        Ok(BoundPredicate { source: self.clone(), columns: binder.columns, terms: binder.terms, root })
    }

    /// Binds to `schema`, for pruning only: a part that cannot be bound may have any value.
    pub fn bind_for_pruning(&self, schema: &Schema) -> BoundPredicate {
        // Spark writes the name of a column called `null` without backticks.
        let is_keyword = |f: &arrow::datatypes::FieldRef| {
            ["true", "false", "null"].iter().any(|k| f.name().eq_ignore_ascii_case(k))
        };
        let keyword_columns = schema.fields().iter().any(is_keyword);
        let mut binder = Binder {
            schema,
            lenient: true,
            keyword_columns,
            columns: Vec::new(),
            variants: Vec::new(),
            terms: Vec::new(),
        };
        let root = binder.condition(self, 0).unwrap_or_else(|error| Bound::Unknown(error.to_string()));
        BoundPredicate { source: self.clone(), columns: binder.columns, terms: binder.terms, root }
    }
}

struct Binder<'a> {
    schema: &'a Schema,
    lenient: bool,
    keyword_columns: bool,
    columns: Vec<BoundColumn>,
    /// The variants among `columns`.
    variants: Vec<(usize, ColumnPath)>,
    terms: Vec<Term>,
}

impl Binder<'_> {
    fn condition(&mut self, predicate: &Predicate, depth: usize) -> Result<Bound> {
        let bound = if depth < MAX_DEPTH {
            self.strict_condition(predicate, depth + 1)
        } else {
            Err(Error::invalid_argument(format!("the predicate is nested deeper than {MAX_DEPTH} levels")))
        };
        match bound {
            Err(error) if self.lenient => Ok(Bound::Unknown(error.to_string())),
            bound => bound,
        }
    }

    fn strict_condition(&mut self, predicate: &Predicate, depth: usize) -> Result<Bound> {
        match predicate {
            Predicate::Value(value) => self.boolean(value),
            Predicate::Compare { op, left, right } => self.compare(*op, left, right),
            Predicate::IsNull(Expr::Literal(literal)) => {
                self.check_keyword(literal)?;
                Ok(Bound::Constant(Some(*literal == Literal::Null)))
            }
            Predicate::IsNull(value) => Ok(Bound::IsNull(self.column(value)?)),
            Predicate::In { value, list } => self.is_in(value, list),
            Predicate::Like { value, pattern, escape } => self.like(value, Pattern::new(pattern, *escape)?),
            Predicate::StartsWith { value, prefix } => self.like(value, Pattern::starts_with(prefix)),
            Predicate::Is { condition, truth } => {
                Ok(Bound::Is { condition: Box::new(self.condition(condition, depth)?), truth: *truth })
            }
            Predicate::And(all) => {
                Ok(Bound::And(all.iter().map(|p| self.condition(p, depth)).collect::<Result<_>>()?))
            }
            Predicate::Or(any) => {
                Ok(Bound::Or(any.iter().map(|p| self.condition(p, depth)).collect::<Result<_>>()?))
            }
            Predicate::Not(inner) => Ok(Bound::Not(Box::new(self.condition(inner, depth)?))),
        }
    }

    fn boolean(&mut self, value: &Expr) -> Result<Bound> {
        if let Expr::Literal(literal) = value {
            self.check_keyword(literal)?;
        }
        match value {
            Expr::Literal(Literal::Boolean(truth)) => Ok(Bound::Constant(Some(*truth))),
            Expr::Literal(Literal::Null) => Ok(Bound::Constant(None)),
            Expr::Literal(other) => {
                Err(Error::invalid_argument(format!("{other} is not a condition: it is not boolean")))
            }
            Expr::Column(path) => {
                let column = self.column(value)?;
                match self.value_type(column)? {
                    DataType::Boolean => Ok(Bound::Boolean(column)),
                    other => Err(Error::invalid_argument(format!(
                        "column {path} is not a condition: it has the type {other}"
                    ))),
                }
            }
            Expr::Call(..) => {
                let term = self.column(value)?;
                match self.value_type(term)? {
                    DataType::Boolean => Ok(Bound::Boolean(term)),
                    other => Err(Error::invalid_argument(format!(
                        "{value} is not a condition: it has the type {other}"
                    ))),
                }
            }
            Expr::Unknown(text) => Err(not_understood(text)),
        }
    }

    fn compare(&mut self, op: CompareOp, left: &Expr, right: &Expr) -> Result<Bound> {
        match (left, right) {
            (Expr::Column(_) | Expr::Call(..), Expr::Column(_) | Expr::Call(..)) => {
                self.compare_columns(op, left, right)
            }
            (Expr::Column(_) | Expr::Call(..), Expr::Literal(literal)) => {
                let column = self.column(left)?;
                self.compare_literal(op, column, literal)
            }
            (Expr::Literal(literal), Expr::Column(_) | Expr::Call(..)) => {
                let column = self.column(right)?;
                self.compare_literal(op.flipped(), column, literal)
            }
            (Expr::Literal(a), Expr::Literal(b)) => {
                self.check_keyword(a)?;
                self.check_keyword(b)?;
                compare_literals(op, a, b)
            }
            (Expr::Unknown(text), _) | (_, Expr::Unknown(text)) => Err(not_understood(text)),
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

    fn compare_columns(&mut self, op: CompareOp, left: &Expr, right: &Expr) -> Result<Bound> {
        let (left, right) = (self.column(left)?, self.column(right)?);
        let (left_type, right_type) = (self.value_type(left)?, self.value_type(right)?);
        let whole = |t: &DataType| t.is_signed_integer();
        let number = |t: &DataType| {
            whole(t) || matches!(t, DataType::Float32 | DataType::Float64 | DataType::Decimal128(..))
        };
        let domain = match (left_type, right_type) {
            (DataType::Decimal128(_, a), DataType::Decimal128(_, b)) if a == b => Some(Domain::Decimal),
            (DataType::Decimal128(..), DataType::Decimal128(..)) => None,
            (a, b) if whole(a) && whole(b) => Some(Domain::Integer),
            (a, b) if number(a) && number(b) => [a, b]
                .iter()
                .any(|t| matches!(t, DataType::Float32 | DataType::Float64))
                .then_some(Domain::Float),
            (a, b) if a == b => domain_of(a),
            _ => None,
        };
        let Some(domain) = domain else {
            return Err(Error::invalid_argument(format!(
                "columns of type {left_type} and {right_type} cannot be compared"
            )));
        };
        if op != CompareOp::NullSafeEq {
            return Ok(Bound::CompareColumns { left, op, right, domain });
        }
        let same = null_safe(Bound::CompareColumns { left, op: CompareOp::Eq, right, domain });
        Ok(Bound::Or(vec![same, Bound::And(vec![Bound::IsNull(left), Bound::IsNull(right)])]))
    }

    fn is_in(&mut self, value: &Expr, list: &[Expr]) -> Result<Bound> {
        let mut others = Vec::new();
        let (mut values, mut has_null) = (Vec::new(), false);
        let (Expr::Column(_) | Expr::Call(..)) = value else {
            let any = list
                .iter()
                .map(|item| self.compare(CompareOp::Eq, value, item))
                .collect::<Result<Vec<_>>>()?;
            return Ok(Bound::Or(any));
        };
        let column = self.column(value)?;
        let domain = domain_of(self.value_type(column)?).ok_or_else(|| self.incomparable(column))?;
        for item in list {
            let Expr::Literal(literal) = item else {
                others.push(self.compare(CompareOp::Eq, value, item)?);
                continue;
            };
            self.check_keyword(literal)?;
            if *literal == Literal::Null {
                has_null = true;
                continue;
            }
            match self.place(column, literal)? {
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

    fn like(&mut self, value: &Expr, pattern: Pattern) -> Result<Bound> {
        if let Expr::Literal(literal) = value {
            self.check_keyword(literal)?;
            return match literal {
                Literal::Null => Ok(Bound::Constant(None)),
                Literal::String(text) => Ok(Bound::Constant(Some(pattern.matches(text.as_bytes())))),
                other => Err(Error::invalid_argument(format!("{other} is not a string"))),
            };
        }
        let column = self.column(value)?;
        match self.value_type(column)? {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(Bound::Like { column, pattern }),
            other => {
                Err(Error::invalid_argument(format!("{value} is not a string: it has the type {other}")))
            }
        }
    }

    fn place(&self, column: usize, literal: &Literal) -> Result<Place> {
        let data_type = self.value_type(column)?;
        place(literal, data_type).ok_or_else(|| {
            let path = self
                .terms
                .get(column)
                .and_then(|term| self.columns.get(term.column))
                .map(|c| c.path.to_string())
                .unwrap_or_default();
            let error = Error::invalid_argument(format!(
                "column {path} of type {data_type} cannot be compared with {literal}"
            ));
            match (literal, data_type) {
                (Literal::String(_), DataType::Timestamp(..)) => error.with_hint("write TIMESTAMP '…'"),
                _ => error,
            }
        })
    }

    fn incomparable(&self, column: usize) -> Error {
        Error::invalid_argument(format!("values of type {} cannot be compared", self.data_type(column)))
    }

    /// Refuses TRUE, FALSE and NULL if they could be the names of columns.
    fn check_keyword(&self, literal: &Literal) -> Result<()> {
        match literal {
            Literal::Boolean(_) | Literal::Null if self.keyword_columns => Err(Error::invalid_argument(
                format!("{literal} is ambiguous: it could be the column of that name"),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the type of a term whose values are read.
    fn value_type(&self, term: usize) -> Result<&DataType> {
        match self
            .terms
            .get(term)
            .and_then(|term| self.variants.iter().find(|(column, _)| *column == term.column))
        {
            Some((_, path)) => Err(variant_value(path)),
            None => Ok(self.data_type(term)),
        }
    }

    /// Returns the type of a term.
    fn data_type(&self, term: usize) -> &DataType {
        self.terms.get(term).map_or(&DataType::Null, |term| &term.data_type)
    }

    /// Returns the index of the term for `value`, adding it if it is new.
    fn column(&mut self, value: &Expr) -> Result<usize> {
        let mut functions = Vec::new();
        let mut inner = value;
        while let Expr::Call(function, argument) = inner {
            functions.push(function.clone());
            inner = argument;
        }
        functions.reverse();
        let path = match inner {
            Expr::Column(path) => path,
            Expr::Literal(literal) => {
                return Err(Error::invalid_argument(format!("{literal} is not a column")));
            }
            Expr::Unknown(text) => return Err(not_understood(text)),
            Expr::Call(function, _) => {
                return Err(Error::invalid_argument(format!("{function:?} is not a column")));
            }
        };
        let (column, is_variant) = resolve(self.schema, path)?;
        if is_variant && !functions.is_empty() {
            return Err(variant_value(&column.path));
        }
        let mut data_type = column.data_type.clone();
        for function in &functions {
            data_type = function.result_type(&data_type).ok_or_else(|| {
                let of = Expr::Call(function.clone(), Box::new(Expr::Column(path.clone())));
                Error::invalid_argument(format!(
                    "{of} is not supported in a predicate for values of type {data_type}"
                ))
            })?;
        }
        let column = self.columns.iter().position(|known| known.path == column.path).unwrap_or_else(|| {
            if is_variant {
                self.variants.push((self.columns.len(), column.path.clone()));
            }
            self.columns.push(column);
            self.columns.len() - 1
        });
        let term = Term { column, functions, data_type };
        Ok(self.terms.iter().position(|known| *known == term).unwrap_or_else(|| {
            self.terms.push(term);
            self.terms.len() - 1
        }))
    }
}

/// Returns the error for a use of a variant's value: values have any type, and files store the parts of a
/// variant differently from its Arrow form.
fn variant_value(path: &ColumnPath) -> Error {
    Error::invalid_argument(format!(
        "column {path} is a variant: a predicate can only test it with IS NULL or IS NOT NULL"
    ))
    .with_hint("read the column and filter afterwards")
}

fn not_understood(text: &str) -> Error {
    Error::invalid_argument(format!("this part of the predicate is not understood: {text}"))
}

/// Returns `equal` with NULL replaced by false.
fn null_safe(equal: Bound) -> Bound {
    match equal {
        Bound::Constant(truth) => Bound::Constant(truth),
        equal => Bound::Is { condition: Box::new(equal), truth: Some(true) },
    }
}

/// Returns the column at `path`, and whether it is a variant.
fn resolve(schema: &Schema, path: &ColumnPath) -> Result<(BoundColumn, bool)> {
    let mut fields = schema.fields();
    let mut names = Vec::with_capacity(path.parts().len());
    let mut found: Option<&Field> = None;
    for part in path.parts() {
        if let Some(parent) = found {
            match parent.data_type() {
                _ if is_variant(parent) => return Err(variant_value(&ColumnPath::new(names))),
                DataType::Struct(children) => fields = children,
                other => {
                    return Err(Error::invalid_argument(format!(
                        "{path} is not a column: {} has the type {other}",
                        ColumnPath::new(names)
                    )));
                }
            }
        }
        let mut same_name = fields.iter().filter(|f| f.name() == part);
        let mut similar = fields.iter().filter(|f| f.name().to_lowercase() == part.to_lowercase());
        let field = match (same_name.next(), similar.next(), similar.next()) {
            (Some(exact), _, _) => exact,
            (None, Some(one), None) => one,
            (None, Some(_), Some(_)) => {
                return Err(Error::invalid_argument(format!("column {path} is ambiguous")));
            }
            (None, None, _) => return Err(Error::invalid_argument(format!("there is no column {path}"))),
        };
        names.push(field.name().clone());
        found = Some(field);
    }
    match found {
        Some(field) => Ok((
            BoundColumn { path: ColumnPath::new(names), data_type: field.data_type().clone() },
            is_variant(field),
        )),
        None => Err(Error::invalid_argument("a column has an empty path")),
    }
}

/// Compares two constants.
fn compare_literals(op: CompareOp, left: &Literal, right: &Literal) -> Result<Bound> {
    let null = |l: &Literal| *l == Literal::Null;
    if null(left) || null(right) {
        let truth = (op == CompareOp::NullSafeEq).then_some(null(left) && null(right));
        return Ok(Bound::Constant(truth));
    }
    let data_type = match left {
        Literal::Integer(_) => DataType::Int64,
        Literal::Decimal { scale, .. } => DataType::Decimal128(38, i8::try_from(*scale).unwrap_or(i8::MAX)),
        Literal::Double(_) => DataType::Float64,
        Literal::Boolean(_) => DataType::Boolean,
        Literal::String(_) => DataType::Utf8,
        Literal::Binary(_) => DataType::Binary,
        Literal::Date(_) => DataType::Date32,
        _ => return Err(Error::invalid_argument(format!("{left} and {right} cannot be compared"))),
    };
    let (Some(Place::At(a)), Some(place)) = (place(left, &data_type), place(right, &data_type)) else {
        return Err(Error::invalid_argument(format!("{left} and {right} cannot be compared")));
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
    let ordering =
        ordering.ok_or_else(|| Error::invalid_argument(format!("{left} and {right} cannot be compared")))?;
    Ok(Bound::Constant(Some(holds(op, ordering))))
}

/// Returns whether `op` holds for values that compare as `ordering`.
pub(super) fn holds(op: CompareOp, ordering: Ordering) -> bool {
    match op {
        CompareOp::Eq | CompareOp::NullSafeEq => ordering.is_eq(),
        CompareOp::NotEq => ordering.is_ne(),
        CompareOp::Lt => ordering.is_lt(),
        CompareOp::LtEq => ordering.is_le(),
        CompareOp::Gt => ordering.is_gt(),
        CompareOp::GtEq => ordering.is_ge(),
    }
}
