//! Binding a predicate to a schema.
//!
//! - Names resolve as in Spark, ignoring case. If several columns differ only in case, the name must be spelled
//!   exactly like one of them; otherwise it is ambiguous.
//! - Dates, timestamps and strings are compared as their common type, using the clock of the session.
//! - A comparison whose result is the same for all values of a column's type becomes [`Bound::UnlessNull`]; a
//!   comparison with NULL becomes NULL.
//! - Values are computed (`bind_value`), except columns and functions of a column that preserve its order.
//! - [`Predicate::bind_for_pruning`] turns each part that `bind` refuses into [`Bound::Unknown`].

use super::ast::{ColumnPath, CompareOp, Expr, Literal, Predicate};
use super::bind_value::{Value, literal_of};
use super::bound::{Arena, Bound, BoundColumn, BoundPredicate, Source, Term};
use super::compute::{Changes, Node, Operation, plain, sql_name};
use super::field_names::FieldNames;
use super::function::Function;
use super::known::Known;
use super::like::Pattern;
use super::parse::CONDITION;
use super::size::Tree;
use super::stack::on_stack;
use super::zone::Clock;
use crate::error::{Error, Result};
use crate::protocol::schema::is_variant;
use crate::runtime::spelling::nearest_first;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use std::collections::HashMap;
use std::sync::Arc;

impl Predicate {
    /// Binds the predicate to `schema`, for pruning and for [`super::filter_mask`].
    ///
    /// # Errors
    /// InvalidArgument if a column does not exist or is ambiguous, if a literal cannot be compared exactly with its
    /// column, if a part of the predicate could not be parsed, or if a value differs from row to row, like a random
    /// number.
    pub fn bind(&self, schema: &Schema) -> Result<BoundPredicate> {
        self.bind_named(schema, &FieldNames::new(schema.fields()))
    }

    /// Binds as [`Predicate::bind`] does, to a schema whose names have already been indexed.
    ///
    /// # Errors
    /// Returns the same errors as [`Predicate::bind`].
    pub(super) fn bind_named(&self, schema: &Schema, names: &FieldNames) -> Result<BoundPredicate> {
        Tree::Condition(self).ensure_bounded()?;
        let mut binder = Binder::new(schema, names);
        let root = binder.condition(self)?;
        binder.arena.mark_shared(|visit| root.visit(visit));
        if binder.changes == Changes::ByRow {
            return Err(Error::invalid_argument(format!(
                "the condition {self} is not deterministic: it selects different rows each time that it is evaluated"
            ))
            .with_hint("use uuid() and rand() in assigned values only"));
        }
        Ok(BoundPredicate::new(self.clone(), Arc::new(binder.arena), root))
    }

    /// Binds the predicate to `schema`, for pruning only. A part that cannot be bound is treated as if it could have
    /// any value.
    pub fn bind_for_pruning(&self, schema: &Schema) -> BoundPredicate {
        // Spark writes the name of a column such as `null` without backticks, so the literals TRUE, FALSE and NULL are
        // ambiguous if such a column exists.
        let is_keyword = |f: &arrow::datatypes::FieldRef| {
            ["true", "false", "null"].iter().any(|k| f.name().eq_ignore_ascii_case(k))
        };
        let keyword_columns = schema.fields().iter().any(is_keyword);
        let names = FieldNames::new(schema.fields());
        let mut binder = Binder { lenient: true, keyword_columns, ..Binder::new(schema, &names) };
        let bounded = Tree::Condition(self).ensure_bounded();
        let root = bounded.and_then(|()| binder.condition(self));
        let root = root.unwrap_or_else(|error| Bound::Unknown(error.to_string()));
        BoundPredicate::new(self.clone(), Arc::new(binder.arena), root)
    }
}

/// Binds conditions, and the values in them (in the file `bind_value`).
pub(super) struct Binder<'a> {
    schema: &'a Schema,
    /// The names in `schema`.
    names: &'a FieldNames,
    /// Whether a part that cannot be bound becomes unknown instead of an error.
    pub(super) lenient: bool,
    keyword_columns: bool,
    /// The clock of the session, if its time zone is known.
    pub(super) clock: Option<Clock>,
    /// Whether, and when, the bound values may change although their arguments do not.
    pub(super) changes: Changes,
    pub(super) arena: Arena,
    /// An index of the columns and terms that have been bound so far.
    known: Known,
    /// The columns of type variant, by their index.
    variants: HashMap<usize, ColumnPath>,
}

/// A side of a comparison.
#[derive(Debug, Clone)]
pub(super) enum Side {
    Literal(Literal),
    /// Index into [`Arena::terms`].
    Term(usize),
}

impl<'a> Binder<'a> {
    /// Creates a binder for `schema`, whose column names are `names`.
    pub(super) fn new(schema: &'a Schema, names: &'a FieldNames) -> Self {
        Self {
            schema,
            names,
            lenient: false,
            keyword_columns: false,
            clock: Some(Clock::UTC),
            changes: Changes::Never,
            arena: Arena::default(),
            known: Known::default(),
            variants: HashMap::new(),
        }
    }
}

impl Binder<'_> {
    pub(super) fn condition(&mut self, predicate: &Predicate) -> Result<Bound> {
        match on_stack(|| self.strict_condition(predicate)) {
            Err(error) if self.lenient => Ok(Bound::Unknown(error.to_string())),
            bound => bound,
        }
    }

    fn strict_condition(&mut self, predicate: &Predicate) -> Result<Bound> {
        match predicate {
            Predicate::Value(value) => self.boolean(value),
            Predicate::Compare { op, left, right } => self.compare(*op, left, right),
            Predicate::Between { value, low, high } => {
                let side = self.side(value)?;
                let least = self.compare_with(CompareOp::GtEq, (value, side.clone()), low)?;
                Ok(Bound::And(vec![least, self.compare_with(CompareOp::LtEq, (value, side), high)?]))
            }
            Predicate::IsNull(Expr::Condition(condition)) => {
                Ok(Bound::Is { condition: Box::new(self.condition(condition)?), truth: None })
            }
            Predicate::IsNull(value) => match self.side(value)? {
                Side::Literal(literal) => {
                    self.check_keyword(&literal)?;
                    Ok(Bound::Constant(Some(literal == Literal::Null)))
                }
                Side::Term(term) => Ok(Bound::IsNull(term)),
            },
            Predicate::In { value, list } => self.is_in(value, list),
            Predicate::Like { value, pattern, escape } => self.like(value, Pattern::new(pattern, *escape)?),
            Predicate::StartsWith { value, prefix } => self.like(value, Pattern::starts_with(prefix)),
            Predicate::Is { condition, truth } => {
                Ok(Bound::Is { condition: Box::new(self.condition(condition)?), truth: *truth })
            }
            Predicate::And(all) => {
                let mut parts = Vec::with_capacity(all.len());
                for part in all {
                    // A BETWEEN is bound as two conditions, which become parts of this AND.
                    match (part, self.condition(part)?) {
                        (Predicate::Between { .. }, Bound::And(both)) => parts.extend(both),
                        (_, bound) => parts.push(bound),
                    }
                }
                Ok(Bound::And(parts))
            }
            Predicate::Or(any) => {
                Ok(Bound::Or(any.iter().map(|p| self.condition(p)).collect::<Result<_>>()?))
            }
            Predicate::Not(inner) => Ok(Bound::Not(Box::new(self.condition(inner)?))),
            Predicate::InZone { clock, condition } => {
                let outer = std::mem::replace(&mut self.clock, *clock);
                let bound = self.condition(condition);
                self.clock = outer;
                bound
            }
        }
    }

    fn boolean(&mut self, value: &Expr) -> Result<Bound> {
        if let Expr::Condition(condition) = value {
            return self.condition(condition);
        }
        let term = match self.side(value)? {
            Side::Literal(literal) => {
                self.check_keyword(&literal)?;
                return match literal {
                    Literal::Boolean(truth) => Ok(Bound::Constant(Some(truth))),
                    Literal::Null => Ok(Bound::Constant(None)),
                    other => {
                        Err(Error::invalid_argument(format!("{other} is not a condition: it is not boolean")))
                    }
                };
            }
            Side::Term(term) => term,
        };
        match self.value_type(term)? {
            DataType::Boolean => Ok(Bound::Boolean(term)),
            other => Err(Error::invalid_argument(match value {
                Expr::Column(path) => {
                    format!("column {path} is not a condition: it has the type {}", sql_name(other))
                }
                value => format!("{value} is not a condition: it has the type {}", sql_name(other)),
            })
            .with_hint(CONDITION)),
        }
    }

    /// Refuses the literals TRUE, FALSE and NULL if a column has the same name.
    pub(super) fn check_keyword(&self, literal: &Literal) -> Result<()> {
        match literal {
            Literal::Boolean(_) | Literal::Null if self.keyword_columns => Err(Error::invalid_argument(
                format!("{literal} is ambiguous: it could be the column of that name"),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the type of a term. Refuses a variant column, because conditions cannot read its values.
    pub(super) fn value_type(&self, term: usize) -> Result<&DataType> {
        if let Some(Term { source: Source::Column { column, .. }, .. }) = self.arena.terms.get(term)
            && let Some(path) = self.variants.get(column)
        {
            return Err(variant_value(path));
        }
        Ok(self.data_type(term))
    }

    /// Returns the type of a term.
    pub(super) fn data_type(&self, term: usize) -> &DataType {
        self.arena.terms.get(term).map_or(&DataType::Null, |term| &term.data_type)
    }

    /// Binds a side of a comparison, as a literal or a term.
    pub(super) fn side(&mut self, value: &Expr) -> Result<Side> {
        match value {
            Expr::Literal(literal) | Expr::Typed(literal, _) => return Ok(Side::Literal(literal.clone())),
            Expr::DoubleQuoted(text) => return self.double_quoted(text).map(Side::Literal),
            _ => {}
        }
        if let Some(term) = self.restricted(value)? {
            return Ok(Side::Term(term));
        }
        if self.lenient && !matches!(value, Expr::Apply(Operation::Now(..), _)) {
            return Err(Error::invalid_argument(format!("{value} restricts no single column")));
        }
        let bound = self.value(value)?;
        Ok(self.side_of(value, bound).0)
    }

    /// Binds a side of a comparison, as a literal or a term, and also returns it as a value. If the value has to be
    /// computed, the side and the value refer to the same term, so that it is computed once.
    pub(super) fn shared(&mut self, value: &Expr) -> Result<(Side, Value)> {
        let bound = self.value(value)?;
        match self.restricted(value)? {
            Some(term) => Ok((Side::Term(term), bound)),
            None => Ok(self.side_of(value, bound)),
        }
    }

    fn side_of(&mut self, value: &Expr, bound: Value) -> (Side, Value) {
        match bound.node.constant().and_then(literal_of) {
            Some(literal) => (Side::Literal(literal), bound),
            None => {
                let data_type = bound.data_type.clone();
                let term = self.computed(value, bound);
                (Side::Term(term), Value { node: Node::Term(term), data_type })
            }
        }
    }

    /// Returns the index of the term for a column, or for functions of a column that preserve its order. Returns
    /// `None` for any other value.
    fn restricted(&mut self, value: &Expr) -> Result<Option<usize>> {
        let mut functions = Vec::new();
        let mut inner = value;
        while let Expr::Call(function, argument) = inner {
            functions.push(function.clone());
            inner = argument;
        }
        functions.reverse();
        let path = match inner {
            Expr::Column(path) => path,
            Expr::Unknown(text) => return Err(not_understood(text)),
            _ => return Ok(None),
        };
        let (column, is_variant) = self.resolved(path)?;
        if is_variant && !functions.is_empty() {
            return Err(variant_value(path));
        }
        let mut data_type = self.arena.columns.get(column).map_or(DataType::Null, |c| c.data_type.clone());
        for function in &functions {
            match function.result_type(&data_type) {
                Some(to) => data_type = to,
                None if self.lenient => {
                    let of = Expr::Call(function.clone(), Box::new(Expr::Column(path.clone())));
                    return Err(Error::invalid_argument(format!(
                        "{of} does not preserve the order of values of type {data_type}"
                    )));
                }
                None => return Ok(None),
            }
        }
        Ok(Some(self.ordered(column, functions, data_type)))
    }

    /// Returns the index of the term for functions of a column that preserve the column's order.
    pub(super) fn ordered(&mut self, column: usize, functions: Vec<Function>, data_type: DataType) -> usize {
        self.known.ordered(&mut self.arena, column, functions, data_type)
    }

    /// Returns the index of the term for a computed value. If an equal value has been bound before, returns its term,
    /// unless the values may differ from row to row.
    pub(super) fn computed(&mut self, of: &Expr, value: Value) -> usize {
        self.known.computed(&mut self.arena, of, value, self.changes != Changes::ByRow)
    }

    /// Returns the index of a term that converts the values of the term with index `term` to the type `to`. `value` is
    /// the expression of that term.
    pub(super) fn converted(&mut self, term: usize, value: &Expr, to: &DataType) -> Result<usize> {
        let bound = match self.arena.terms.get(term).map(|term| &term.source) {
            Some(Source::Column { .. }) => self.value(value)?,
            _ => self.referred(term),
        };
        let bound = self.cast_to(bound, to, Clock::UTC, &value.to_string())?;
        Ok(self.computed(value, bound))
    }

    /// Returns a value that refers to a term.
    pub(super) fn referred(&self, term: usize) -> Value {
        Value { node: Node::Term(term), data_type: plain(self.data_type(term)) }
    }

    /// Returns a string in double quotes as a constant. Refuses it if a column has the same name.
    pub(super) fn double_quoted(&self, text: &str) -> Result<Literal> {
        match self.names.path_of(text, self.schema.fields()) {
            Some(column) => Err(quoted_column(text, &column)),
            None => Ok(Literal::String(text.to_owned())),
        }
    }

    /// Returns the index of the column at `path`, and whether it is a variant.
    pub(super) fn resolved(&mut self, path: &ColumnPath) -> Result<(usize, bool)> {
        let (column, is_variant) = resolve(self.schema.fields(), self.names, path)?;
        let path = column.path.clone();
        let (at, is_new) = self.known.column(&mut self.arena, column);
        if is_new && is_variant {
            self.variants.insert(at, path);
        }
        Ok((at, is_variant))
    }
}

/// Returns the error for a predicate that uses the value of a variant column. Such a predicate is refused because the
/// values may have any type, and because files store the parts of a variant differently from its Arrow form.
pub(super) fn variant_value(path: &ColumnPath) -> Error {
    Error::invalid_argument(format!(
        "column {path} is a variant: a predicate can only test it with IS NULL or IS NOT NULL"
    ))
    .with_hint("read the column and filter afterwards")
}

/// Returns the error for a double-quoted string that is also the name of a column.
pub(super) fn quoted_column(text: &str, column: &[String]) -> Error {
    let column: Vec<String> = column.iter().map(|part| format!("`{}`", part.replace('`', "``"))).collect();
    Error::invalid_argument(format!(
        "\"{text}\" is a string, because it is in double quotes, but there is a column of that name"
    ))
    .with_hint(format!("write the column in backticks, {}, and a string in single quotes", column.join(".")))
}

pub(super) fn not_understood(text: &str) -> Error {
    Error::invalid_argument(format!("this part of the predicate is not understood: {text}"))
}

/// Returns the column at `path` and whether it is a variant. `names` is the index of the names of `fields`.
fn resolve(fields: &Fields, names: &FieldNames, path: &ColumnPath) -> Result<(BoundColumn, bool)> {
    let (mut fields, mut known) = (fields, Some(names));
    let mut names = Vec::with_capacity(path.parts().len());
    let mut found: Option<(usize, &Field)> = None;
    for part in path.parts() {
        if let Some((place, parent)) = found {
            match parent.data_type() {
                _ if is_variant(parent) => return Err(variant_value(&ColumnPath::new(names))),
                DataType::Struct(children) => {
                    (fields, known) = (children, known.and_then(|known| known.inside(place, children)));
                }
                other => {
                    return Err(Error::invalid_argument(format!(
                        "{path} is not a column: {} has the type {}",
                        ColumnPath::new(names),
                        sql_name(other)
                    ))
                    .with_hint(
                        "only structs have named parts; write a name with a dot in backticks, `a.b`",
                    ));
                }
            }
        }
        let place = known.and_then(|known| known.find(part));
        let Some((place, field)) = place.and_then(|place| Some((place, fields.get(place)?))) else {
            if known.is_some_and(|known| known.has(part)) {
                return Err(Error::invalid_argument(format!("column {path} is ambiguous")).with_hint(
                    "write the name exactly as in the schema: several names differ only in case",
                ));
            }
            let known = fields.iter().map(|field| field.name().as_str());
            let hint = match fields.is_empty() {
                true => "write an expression without columns, and strings in single quotes".to_owned(),
                false => format!("the columns are: {}", nearest_first(part, known)),
            };
            return Err(Error::invalid_argument(format!("there is no column {path}")).with_hint(hint));
        };
        names.push(field.name().clone());
        found = Some((place, field));
    }
    match found {
        Some((_, field)) => Ok((
            BoundColumn { path: ColumnPath::new(names), data_type: field.data_type().clone() },
            is_variant(field),
        )),
        None => Err(Error::invalid_argument("a column has an empty path")),
    }
}
