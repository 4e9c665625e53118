//! The tables whose columns an expression may read, such as the target and the source of a MERGE.
//!
//! - The rows of a scope have the columns of all its tables, side by side. In a scope of several tables, column names
//!   contain the index of their table, so that all names differ.
//! - As in Spark, `t.c` is the column `c` of the table `t`. If there is no such column, it is the field `c` of a
//!   column `t`. A column name that is written without a table name must occur in only one table.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::ast::{ColumnPath, Expr, Literal, Predicate};
use super::bind::quoted_column;
use super::bind_times::cast_type;
use super::bound::{BoundColumn, BoundPredicate};
use super::compute::{Operation, common, is_time};
use super::expression::{Expression, is_literal};
use super::field_names::FieldNames;
use super::filter::leaf_placed;
use super::function::Function;
use super::parse::{ParseMode, parse_at, parse_value_at};
use super::zone::Clock;
use crate::error::{Error, Result};
use crate::protocol::schema::is_variant;
use crate::runtime::clock;

/// The columns that an expression may read.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    tables: Vec<Table>,
    schema: SchemaRef,
    /// The index of the names in `schema`.
    names: Arc<FieldNames>,
    time_zone: String,
    /// The time at which the statement began, in microseconds since 1970.
    begun: i64,
}

#[derive(Debug, Clone)]
struct Table {
    alias: String,
    fields: Vec<FieldRef>,
    names: Arc<FieldNames>,
    /// The prefix that the table's column names have in the rows of the scope.
    prefix: String,
}

/// A value in a scope.
#[derive(Debug, Clone)]
pub(crate) enum ScopedValue {
    /// A column, or a field of a column.
    Column(ColumnPath, FieldRef),
    /// A value that is computed.
    Computed(Expression),
}

impl Scope {
    /// Creates a scope of these tables, each with its alias. `time_zone` applies to times without a zone.
    pub(crate) fn new(tables: &[(&str, &Schema)], time_zone: &str) -> Self {
        let prefix = |place: usize| if tables.len() > 1 { format!("{place}.") } else { String::new() };
        let tables: Vec<Table> = tables
            .iter()
            .enumerate()
            .map(|(place, (alias, schema))| Table {
                alias: (*alias).to_owned(),
                fields: schema.fields().to_vec(),
                names: Arc::new(FieldNames::new(schema.fields())),
                prefix: prefix(place),
            })
            .collect();
        let named = |table: &Table, field: &FieldRef| {
            Arc::new(field.as_ref().clone().with_name(format!("{}{}", table.prefix, field.name())))
        };
        let fields: Vec<FieldRef> = tables
            .iter()
            .flat_map(|table| table.fields.iter().map(|field| named(table, field)))
            .map(|field| Arc::new(field.as_ref().clone().with_nullable(true)))
            .collect();
        Self {
            tables,
            names: Arc::new(FieldNames::new(&fields)),
            schema: Arc::new(Schema::new(fields)),
            time_zone: time_zone.to_owned(),
            begun: clock::micros(),
        }
    }

    /// Returns this scope with the start time of `other`, for expressions of the same statement.
    pub(crate) fn with_start_of(self, other: &Self) -> Self {
        Self { begun: other.begun, ..self }
    }

    /// Returns the name that the column `name` of the table with index `place` has in the rows of the scope.
    pub(crate) fn name_of(&self, place: usize, name: &str) -> String {
        let prefix = self.tables.get(place).map_or("", |table| table.prefix.as_str());
        format!("{prefix}{name}")
    }

    /// Returns the index of the table that a column of the rows belongs to, and the column's name in that table.
    pub(crate) fn table_of<'a>(&self, name: &'a str) -> Option<(usize, &'a str)> {
        let tables = self.tables.iter().enumerate();
        tables.filter_map(|(place, table)| Some((place, name.strip_prefix(table.prefix.as_str())?))).next()
    }

    /// Parses a condition over the columns of the rows.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the condition is not understood, or if a column does not exist or is ambiguous.
    pub(crate) fn parse(&self, sql: &str) -> Result<Predicate> {
        let mut predicate = parse_at(sql, &self.time_zone, ParseMode::Strict, self.begun)?;
        rename(&mut predicate, &|leaf| self.settle(leaf))?;
        Ok(predicate)
    }

    /// Parses and binds a condition.
    ///
    /// # Errors
    /// Returns the same errors as [`Scope::parse`] and [`Predicate::bind`].
    pub(crate) fn condition(&self, sql: &str) -> Result<BoundPredicate> {
        self.bind(&self.parse(sql)?)
    }

    /// Binds a condition that [`Scope::parse`] has returned, or a part of such a condition.
    ///
    /// # Errors
    /// Returns the same errors as [`Predicate::bind`].
    pub(crate) fn bind(&self, condition: &Predicate) -> Result<BoundPredicate> {
        condition.bind_named(&self.schema, &self.names)
    }

    /// Rewrites a condition that only reads the table with index `place` as a condition on that table alone.
    pub(crate) fn in_table(&self, predicate: &Predicate, place: usize) -> Result<Predicate> {
        let mut predicate = predicate.clone();
        let prefix = self.tables.get(place).map_or("", |table| table.prefix.as_str());
        rename(&mut predicate, &|leaf| {
            if let Expr::Column(path) = leaf {
                let mut parts = path.parts().iter();
                let first = parts.next().and_then(|name| name.strip_prefix(prefix)).map(str::to_owned);
                *path = ColumnPath::new(first.into_iter().chain(parts.cloned()));
            }
            Ok(())
        })?;
        Ok(predicate)
    }

    /// Binds a value that is part of a condition from [`Scope::parse`].
    ///
    /// # Errors
    /// Returns the same errors as [`Expression::bind`].
    pub(crate) fn expression(&self, value: &Expr) -> Result<Expression> {
        Expression::of_value(value, (&self.schema, &self.names), Clock::named(&self.time_zone))
    }

    /// Converts two dates or timestamps of different types to the type in which a condition compares them. Returns
    /// `None` for any other values, and if the time zone is not known.
    pub(crate) fn aligned_times(&self, values: [(&Expr, &Expression); 2]) -> Option<[(Expr, Expression); 2]> {
        let [from, other] = values.map(|(_, bound)| bound.data_type());
        let to = common(from, other).filter(|_| from != other && is_time(from) && is_time(other))?;
        let clock = Clock::named(&self.time_zone)?;
        let aligned = |(value, bound): (&Expr, &Expression)| {
            if *bound.data_type() == to {
                return Some((value.clone(), bound.clone()));
            }
            let cast = Expr::Call(Function::Cast(cast_type(&to), clock), Box::new(value.clone()));
            let bound = self.expression(&cast).ok()?;
            (*bound.data_type() == to).then_some((cast, bound))
        };
        let [first, second] = values.map(aligned);
        Some([first?, second?])
    }

    /// Parses and binds a value that is to be stored in the column `to`. A column is returned unchanged, with its own
    /// type; a computed value is cast.
    ///
    /// # Errors
    /// Returns the same errors as [`Scope::parse`] and [`Expression::bind_as`]. Returns `SchemaMismatch` for a
    /// literal that `to` cannot represent, and for a variant that is neither a column nor NULL.
    pub(crate) fn value(&self, sql: &str, to: &Field) -> Result<ScopedValue> {
        let mut value = parse_value_at(sql, &self.time_zone, self.begun)?;
        rename_value(&mut value, &|leaf| self.settle(leaf))?;
        if let Expr::Column(path) = &value
            && let Some((path, field)) = self.column(path)
        {
            return Ok(ScopedValue::Column(path, field));
        }
        if is_variant(to) && *self.expression(&value)?.data_type() != DataType::Null {
            return Err(Error::schema_mismatch("the value of a variant cannot be computed")
                .with_hint("assign a column that is a variant, or NULL"));
        }
        let to = to.data_type();
        let scope = (self.schema.as_ref(), self.names.as_ref());
        let computed = Expression::of_parsed(&value, scope, &self.time_zone, to, sql)?;
        if is_literal(&value) {
            self.expression(&value)?.ensure_unchanged(&computed, sql)?;
        }
        Ok(ScopedValue::Computed(computed))
    }

    /// Returns a column of the rows, and its path as the schema spells it. Returns `None` for a part of a variant.
    fn column(&self, path: &ColumnPath) -> Option<(ColumnPath, FieldRef)> {
        let (first, inner) = path.parts().split_first()?;
        let mut field = Arc::clone(self.schema.fields().get(self.names.exact(first)?)?);
        let mut names = vec![field.name().clone()];
        for name in inner {
            let DataType::Struct(parts) = field.data_type() else { return None };
            let part = named(parts, name).filter(|_| !is_variant(&field))?;
            field = Arc::clone(part);
            names.push(field.name().clone());
        }
        Some((ColumnPath::new(names), field))
    }

    /// Replaces a column with its path in the rows, and a string in double quotes with a constant.
    fn settle(&self, leaf: &mut Expr) -> Result<()> {
        *leaf = match leaf {
            Expr::Column(path) => Expr::Column(self.resolve(path)?),
            Expr::DoubleQuoted(text) => match self.tables.iter().find_map(|table| table.column_named(text)) {
                Some(column) => return Err(quoted_column(text, &column)),
                None => Literal::String(std::mem::take(text)).into(),
            },
            _ => return Ok(()),
        };
        Ok(())
    }

    /// Returns the path that a column has in the rows of the scope.
    fn resolve(&self, path: &ColumnPath) -> Result<ColumnPath> {
        let found = |parts: &[String], table: &Table| {
            let (name, inner) = parts.split_first()?;
            let field = table.field(name)?;
            let first = format!("{}{}", table.prefix, field.name());
            Some(ColumnPath::new(std::iter::once(first).chain(inner.iter().cloned())))
        };
        let parts = path.parts();
        let of_alias = self.tables.iter().filter_map(|table| {
            let (alias, rest) = parts.split_first()?;
            if rest.is_empty() || alias.to_lowercase() != table.alias.to_lowercase() {
                return None;
            }
            found(rest, table)
        });
        let mut all: Vec<ColumnPath> = of_alias.collect();
        if all.is_empty() {
            all = self.tables.iter().filter_map(|table| found(parts, table)).collect();
        }
        match (all.pop(), all.is_empty()) {
            (Some(path), true) => Ok(path),
            (Some(_), false) => {
                let aliases: Vec<String> =
                    self.tables.iter().map(|table| format!("{}.{path}", table.alias)).collect();
                Err(Error::invalid_argument(format!("column {path} is in more than one table"))
                    .with_hint(format!("write {}", aliases.join(" or "))))
            }
            (None, _) => {
                let columns: Vec<String> = self.tables.iter().map(Table::described).collect();
                Err(Error::invalid_argument(format!("there is no column {path}"))
                    .with_hint(format!("the columns are: {}", columns.join(", "))))
            }
        }
    }
}

impl Table {
    /// Returns the column `name`: the exact match, or else the only match that ignores case.
    fn field(&self, name: &str) -> Option<&FieldRef> {
        self.fields.get(self.names.find(name)?)
    }

    /// Returns the path of the column that the text names, with or without the table's alias.
    fn column_named(&self, text: &str) -> Option<Vec<String>> {
        let of_alias = || {
            let (alias, name) = text.split_once('.')?;
            let is_same = alias.to_lowercase() == self.alias.to_lowercase();
            let column = is_same.then(|| self.names.path_of(name, &self.fields))??;
            Some(std::iter::once(self.alias.clone()).chain(column).collect())
        };
        self.names.path_of(text, &self.fields).or_else(of_alias)
    }

    fn described(&self) -> String {
        let names: Vec<String> =
            self.fields.iter().map(|field| format!("{}.{}", self.alias, field.name())).collect();
        names.join(", ")
    }
}

impl ScopedValue {
    /// Computes the value for each row of `rows`, which have the columns of the scope that the value reads.
    /// `place_of` returns the index of a column in `rows`.
    ///
    /// # Errors
    /// Returns the same errors as [`Expression::evaluate`].
    pub(crate) fn of(
        &self,
        rows: &RecordBatch,
        place_of: impl Fn(&str) -> Option<usize>,
    ) -> Result<ArrayRef> {
        match self {
            Self::Column(path, _) => leaf_placed(rows, path, place_of),
            Self::Computed(expression) => expression.evaluate(rows),
        }
    }

    /// Returns the column, if the value is a column.
    pub(crate) fn column(&self) -> Option<&Field> {
        match self {
            Self::Column(_, field) => Some(field),
            Self::Computed(_) => None,
        }
    }

    /// Returns the columns that a computed value reads; empty if the value is a column.
    pub(crate) fn computed_from(&self) -> &[BoundColumn] {
        match self {
            Self::Column(..) => &[],
            Self::Computed(expression) => expression.columns(),
        }
    }

    /// Returns the top-level columns that the value reads.
    pub(crate) fn columns(&self) -> Vec<&str> {
        let paths: Vec<&ColumnPath> = match self {
            Self::Column(path, _) => vec![path],
            Self::Computed(expression) => expression.columns().iter().map(|column| &column.path).collect(),
        };
        paths.into_iter().filter_map(|path| path.parts().first().map(String::as_str)).collect()
    }
}

/// Returns the field `name`: the exact match, or else the only match that ignores case.
fn named<'a>(fields: &'a [FieldRef], name: &str) -> Option<&'a FieldRef> {
    let exact = fields.iter().find(|field| field.name() == name);
    let mut similar = fields.iter().filter(|field| field.name().to_lowercase() == name.to_lowercase());
    exact.or_else(|| similar.next().filter(|_| similar.next().is_none()))
}

type Change<'a> = dyn Fn(&mut Expr) -> Result<()> + 'a;

/// Applies `changed` to each column and each double-quoted string in `predicate`.
fn rename(predicate: &mut Predicate, changed: &Change<'_>) -> Result<()> {
    match predicate {
        Predicate::Value(value)
        | Predicate::IsNull(value)
        | Predicate::Like { value, .. }
        | Predicate::StartsWith { value, .. } => rename_value(value, changed),
        Predicate::Compare { left, right, .. } => {
            rename_value(left, changed)?;
            rename_value(right, changed)
        }
        Predicate::Between { value, low, high } => {
            [value, low, high].into_iter().try_for_each(|value| rename_value(value, changed))
        }
        Predicate::In { value, list } => {
            rename_value(value, changed)?;
            list.iter_mut().try_for_each(|value| rename_value(value, changed))
        }
        Predicate::Is { condition, .. } | Predicate::Not(condition) | Predicate::InZone { condition, .. } => {
            rename(condition, changed)
        }
        Predicate::And(parts) | Predicate::Or(parts) => {
            parts.iter_mut().try_for_each(|part| rename(part, changed))
        }
    }
}

/// Applies `changed` to each column and each double-quoted string in `value`.
fn rename_value(value: &mut Expr, changed: &Change<'_>) -> Result<()> {
    match value {
        Expr::Column(_) | Expr::DoubleQuoted(_) => changed(value),
        Expr::Call(_, of) => rename_value(of, changed),
        // The argument is a column with the function's name, which takes precedence. If no such column exists, the
        // argument is removed.
        Expr::Apply(Operation::Now(..), column) => {
            column.retain_mut(|column| rename_value(column, changed).is_ok());
            Ok(())
        }
        Expr::Apply(_, arguments) => {
            arguments.iter_mut().try_for_each(|argument| rename_value(argument, changed))
        }
        Expr::Chain(first, steps) => {
            rename_value(first, changed)?;
            steps.iter_mut().try_for_each(|(_, right)| rename_value(right, changed))
        }
        Expr::Condition(condition) => rename(condition, changed),
        Expr::Literal(_) | Expr::Typed(..) | Expr::Unknown(_) => Ok(()),
    }
}
