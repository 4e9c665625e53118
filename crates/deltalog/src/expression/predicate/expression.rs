//! Expressions that are bound to a schema and computed for each row of a batch.

use super::ast::Expr;
use super::bind::Binder;
use super::bind_value::Value;
use super::bound::{Arena, BoundColumn};
use super::compute::{Changes, Node, Operation, cast, is_number, plain, sql_name};
use super::field_names::FieldNames;
use super::filter::{Rows, halves};
use super::parse::{parse_value, parse_value_at};
use super::size::Tree;
use super::zone::Clock;
use crate::error::{Error, Result};
use crate::runtime::row_bytes::{BatchBytes, Steps, is_too_large, weight, within_arrays};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::compute::concat;
use arrow::compute::kernels::cmp::distinct;
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::array_value_to_string;
use std::ops::Range;
use std::sync::Arc;

/// An expression of any type, bound to a schema.
#[derive(Debug, Clone)]
pub struct Expression {
    arena: Arena,
    value: Node,
    data_type: DataType,
    columns: Vec<BoundColumn>,
    changes: Changes,
}

/// Returns whether `sql` is a constant, such as `DATE '2024-01-01'` or `-1.5`, that needs no computation.
pub(crate) fn is_constant(sql: &str) -> bool {
    parse_value(sql, "UTC").is_ok_and(|value| is_scalar(&value))
}

/// Returns whether a value is a literal, with or without a sign.
fn is_scalar(value: &Expr) -> bool {
    let is_plain = |value: &Expr| matches!(value, Expr::Literal(_) | Expr::DoubleQuoted(_) | Expr::Typed(..));
    match value {
        Expr::Apply(Operation::Negate, operands) => operands.iter().all(is_plain),
        value => is_plain(value),
    }
}

/// Returns whether a value is a literal, or an array, a struct or a map that contains only literals.
pub(super) fn is_literal(value: &Expr) -> bool {
    match value {
        Expr::Apply(Operation::Array | Operation::NamedStruct | Operation::Map, parts) => {
            parts.iter().all(is_literal)
        }
        value => is_scalar(value),
    }
}

impl Expression {
    /// Parses `sql`, a value in Spark's SQL, and binds it to `schema`. `time_zone` means the same as in
    /// [`super::parse`].
    ///
    /// # Errors
    /// InvalidArgument if a part of the text cannot be parsed, if a column does not exist, or if an operation is not
    /// defined for its arguments.
    pub fn bind(sql: &str, schema: &Schema, time_zone: &str) -> Result<Self> {
        Self::bind_named(sql, schema, &FieldNames::new(schema.fields()), time_zone)
    }

    /// Binds as [`Expression::bind`] does, to a schema whose names have already been indexed.
    ///
    /// # Errors
    /// Returns the same errors as [`Expression::bind`].
    pub(crate) fn bind_named(
        sql: &str,
        schema: &Schema,
        names: &FieldNames,
        time_zone: &str,
    ) -> Result<Self> {
        Self::of_value(&parse_value(sql, time_zone)?, (schema, names), Clock::named(time_zone))
    }

    /// Binds a parsed value.
    ///
    /// # Errors
    /// Returns the same errors as [`Expression::bind`].
    pub(super) fn of_value(
        parsed: &Expr,
        (schema, names): (&Schema, &FieldNames),
        clock: Option<Clock>,
    ) -> Result<Self> {
        Tree::Value(parsed).ensure_bounded()?;
        let mut binder = Binder::new(schema, names);
        binder.clock = clock;
        let value = binder.value(parsed)?;
        Ok(Self::new(binder, value))
    }

    /// Parses and binds as [`Expression::bind`] does, and casts the value to `to` if it has another type.
    ///
    /// # Errors
    /// Returns the same errors as [`Expression::bind`], and InvalidArgument if the value's type cannot be cast to
    /// `to`.
    pub fn bind_as(sql: &str, schema: &Schema, time_zone: &str, to: &DataType) -> Result<Self> {
        Self::bind_named_as(sql, schema, &FieldNames::new(schema.fields()), time_zone, to)
    }

    /// Binds as [`Expression::bind_as`] does, to a schema whose names have already been indexed.
    ///
    /// # Errors
    /// Returns the same errors as [`Expression::bind_as`].
    pub(crate) fn bind_named_as(
        sql: &str,
        schema: &Schema,
        names: &FieldNames,
        time_zone: &str,
        to: &DataType,
    ) -> Result<Self> {
        Self::of_parsed(&parse_value(sql, time_zone)?, (schema, names), time_zone, to, sql)
    }

    /// Binds a value that reads no columns, as [`Expression::bind_as`] does, for a statement that began at `begun`, in
    /// microseconds since 1970.
    ///
    /// # Errors
    /// Returns the same errors as [`Expression::bind_as`].
    pub(crate) fn bind_default(sql: &str, time_zone: &str, begun: i64, to: &DataType) -> Result<Self> {
        let parsed = parse_value_at(sql, time_zone, begun)?;
        Self::of_parsed(&parsed, (&Schema::empty(), &FieldNames::default()), time_zone, to, sql)
    }

    /// Binds a value that was parsed from `sql`, as [`Expression::bind_as`] does.
    ///
    /// # Errors
    /// Returns the same errors as [`Expression::bind_as`].
    pub(super) fn of_parsed(
        parsed: &Expr,
        (schema, names): (&Schema, &FieldNames),
        time_zone: &str,
        to: &DataType,
        sql: &str,
    ) -> Result<Self> {
        Tree::Value(parsed).ensure_bounded()?;
        let clock = Clock::named(time_zone).ok_or_else(|| {
            Error::invalid_argument(format!(
                "the time zone '{time_zone}' is neither in the IANA database nor an offset such as +02:00"
            ))
        })?;
        let mut binder = Binder::new(schema, names);
        binder.clock = Some(clock);
        let value = binder.value(parsed)?;
        let value = binder.cast_to(value, to, clock, sql)?;
        Ok(Self::new(binder, value))
    }

    fn new(binder: Binder<'_>, value: Value) -> Self {
        let (mut arena, changes) = (binder.arena, binder.changes);
        arena.mark_shared(|visit| value.node.visit(visit));
        let columns = arena.columns_of(|visit| value.node.visit(visit));
        Self { arena, value: value.node, data_type: value.data_type, columns, changes }
    }

    /// Checks that a cast does not change a literal. `sql` is the literal's text.
    ///
    /// A number must not lose digits, unless it becomes a floating-point number: then the nearest number is accepted.
    ///
    /// # Errors
    /// SchemaMismatch if the cast has changed the value.
    pub(super) fn ensure_unchanged(&self, cast_value: &Self, sql: &str) -> Result<()> {
        let (from, to) = (&self.data_type, &cast_value.data_type);
        if from == to || !may_lose(from, to) {
            return Ok(());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
            .map_err(|error| Error::invalid_argument("a literal has no row").with_source(error))?;
        let Some((from, to)) = changed(&self.evaluate(&row)?, &cast_value.evaluate(&row)?)? else {
            return Ok(());
        };
        let (to, whole) = (sql_name(&to), from.is_none());
        let error = Error::schema_mismatch(match &from {
            None => format!("{sql} would be changed to fit type {to}"),
            Some(part) => format!("{part} in {sql} would be changed to fit type {to}"),
        });
        Err(error.with_hint(match whole {
            true => format!("write CAST({sql} AS {to}) if you want this conversion"),
            false => format!("write CAST(… AS {to}) there if you want this conversion"),
        }))
    }

    /// Returns the type of the value.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Returns whether the value has the type `column`, ignoring nullability and metadata.
    pub(crate) fn is_of(&self, column: &DataType) -> bool {
        self.data_type == plain(column)
    }

    /// Returns the columns that the value depends on, without duplicates.
    pub fn columns(&self) -> &[BoundColumn] {
        &self.columns
    }

    /// Refuses an expression whose value may be different each time it is computed.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the value may be different each time it is computed.
    pub(crate) fn ensure_deterministic(&self) -> Result<()> {
        let when = match self.changes {
            Changes::Never => return Ok(()),
            Changes::ByStatement => "over time",
            Changes::ByRow => "each time that it is computed",
        };
        Err(Error::invalid_argument(format!("its value changes {when}, so rows could not be checked again")))
    }

    /// Returns whether the value of an expression without columns is the same for all rows.
    pub(crate) fn is_same_for_all_rows(&self) -> bool {
        self.changes != Changes::ByRow
    }

    /// Computes the value for each row of `batch`, in which columns are found by name.
    ///
    /// # Errors
    /// Returns InvalidArgument if the value of a row cannot be computed, for example because of a division by zero,
    /// or if the values need more than 2 GiB, the maximum size of an Arrow array. Returns SchemaMismatch if `batch`
    /// lacks a column, or if the column's type cannot be cast to the type that the expression was bound with.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        // If each value of the result has a small fixed size, only intermediate values can be too large, and the
        // results for the two halves can be joined.
        let is_small = self.data_type.primitive_width().is_some() || self.data_type == DataType::Boolean;
        self.by_halves(batch, is_small)
    }

    /// Computes the values as [`Expression::evaluate`] does. If they are too large to be computed at once, they are
    /// computed in parts and then joined.
    pub(crate) fn evaluate_all(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        self.by_halves(batch, true)
    }

    fn by_halves(&self, batch: &RecordBatch, may_halve: bool) -> Result<ArrayRef> {
        let computed = within_arrays(|| {
            let rows = Rows::of_batch(&self.arena, batch);
            rows.value(&self.value, &BooleanBuffer::new_set(rows.rows))
        });
        match halves(batch).filter(|_| may_halve && computed.as_ref().is_err_and(is_too_large)) {
            None => computed,
            Some([first, second]) => within_arrays(|| {
                let both = [self.by_halves(&first, true)?, self.by_halves(&second, true)?];
                concat(&[&both[0], &both[1]]).map_err(|error| {
                    Error::invalid_argument("values cannot be put together").with_source(error)
                })
            }),
        }
    }

    /// Computes the value for each row of `batch` as [`Expression::evaluate`] does. If the values take much memory,
    /// they are computed for a few megabytes of rows at a time.
    pub fn evaluate_in_parts(
        self: Arc<Self>,
        batch: &RecordBatch,
    ) -> impl Iterator<Item = Result<ArrayRef>> + use<> {
        let limits = BatchBytes::default();
        limits.pieces(batch).flat_map(move |piece| {
            let expression = Arc::clone(&self);
            let mut steps = Steps::new(limits, piece.num_rows());
            std::iter::from_fn(move || {
                let compute = |rows: Range<usize>| expression.evaluate(&piece.slice(rows.start, rows.len()));
                steps.next(compute, |values| weight(values, 0, values.len()))
            })
        })
    }
}

/// Returns whether a cast may change values or parts of them.
fn may_lose(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    match to {
        T::Date32 => matches!(from, T::Timestamp(..)),
        T::Decimal128(..) => is_number(from),
        to if to.is_nested() => true,
        to => to.is_integer() && is_number(from),
    }
}

/// Returns the type of the first value that a cast has changed; if only a part of that value has changed, also the
/// text of this part.
fn changed(before: &ArrayRef, after: &ArrayRef) -> Result<Option<(Option<String>, DataType)>> {
    let (from, to) = (before.data_type(), after.data_type());
    if from == to || *from == DataType::Null || !may_lose(from, to) {
        return Ok(None);
    }
    let part = |before: &ArrayRef, after: &ArrayRef| {
        let found = changed(before, after)?;
        Ok(found.map(|(value, to)| (value.or_else(|| Some(listed(before))), to)))
    };
    match (from, to) {
        (DataType::List(_), DataType::List(_)) => {
            part(before.as_list::<i32>().values(), after.as_list::<i32>().values())
        }
        (DataType::Map(..), DataType::Map(..)) => {
            let (before, after) = (before.as_map(), after.as_map());
            match part(before.keys(), after.keys())? {
                None => part(before.values(), after.values()),
                found => Ok(found),
            }
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let before = before.as_struct();
            for (field, after) in fields.iter().zip(after.as_struct().columns()) {
                let mut given = before.column_names().into_iter().zip(before.columns());
                let given = given.find(|(name, _)| name.to_lowercase() == field.name().to_lowercase());
                if let Some((_, before)) = given
                    && let Some(found) = part(before, after)?
                {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        }
        (from, to) => {
            let is_changed = distinct(before, &cast(after, from, Clock::UTC)?)
                .map_err(|error| Error::invalid_argument("a literal is not compared").with_source(error))?;
            Ok((is_changed.true_count() > 0).then(|| (None, to.clone())))
        }
    }
}

/// Returns the values as one string, for error messages.
fn listed(values: &ArrayRef) -> String {
    let text = |row| array_value_to_string(values, row).unwrap_or_else(|_| "?".to_owned());
    (0..values.len()).map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::is_constant;

    #[test]
    fn constants_are_distinguished_from_computed_values() {
        for sql in ["1", "-1", "+2L", "- 1.5", "'a'", "x'00'", "TRUE", "null", "DATE '2024-01-01'", "1e3"] {
            assert!(is_constant(sql), "{sql}");
        }
        for sql in [
            "1 + 1",
            "abs(1)",
            "current_date()",
            "array(1)",
            "CAST(1 AS STRING)",
            "- (1 + 1)",
            "a",
            "'",
            "f(1)",
        ] {
            assert!(!is_constant(sql), "{sql}");
        }
    }
}
