//! Translates filters of DataFusion to predicates of deltalog.
//!
//! - A translated predicate is true for every row for which the filter is true. It is exact if it is true for no
//!   other row; then DataFusion does not have to evaluate the filter again.
//! - Only columns, fields of structs and constants are compared, and both sides must have the same kind of type.
//!   Arithmetic is never translated, because an overflow is an error in deltalog and a wrapped number in DataFusion.
//! - Filters of floating-point numbers are never exact. Arrow orders these by sign and bits: a NaN is less or greater
//!   than all numbers depending on its sign, and -0.0 is less than 0.0. In deltalog, as in Spark, NaN is the greatest
//!   value and both zeros are equal. So all NaNs are kept, `<` becomes `<=` and `>` becomes `>=`.
//! - Inside of a NOT, all parts must be exact.
//! - A filter that is not translated is not an error: DataFusion evaluates it.

use arrow::datatypes::{DataType, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::expr::{Between, InList, Like, ScalarFunction};
use datafusion_expr::{BinaryExpr, Expr, Operator};
use deltalog::{ColumnPath, CompareOp, Expr as CoreExpr, Literal, ParseMode, Predicate, parse_predicate};

/// The maximum number of values in the list of an IN that is translated.
const MOST_VALUES: usize = 10_000;

/// The maximum number of nesting levels in a filter that is translated. A chain of ANDs or ORs is one level.
const MOST_LEVELS: usize = 64;

/// A filter as a predicate of deltalog.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    /// True for each row for which the filter is true.
    pub(crate) predicate: Predicate,
    /// Whether the predicate is true for no other rows.
    pub(crate) is_exact: bool,
}

impl Condition {
    fn exact(predicate: Predicate) -> Self {
        Self { predicate, is_exact: true }
    }

    /// Translates a filter on rows with this schema. Returns `None` for a filter that cannot be translated.
    pub(crate) fn of(filter: &Expr, schema: &Schema) -> Option<Self> {
        let condition = Translation { schema }.condition(filter, MOST_LEVELS)?;
        condition.predicate.bind(schema).is_ok().then_some(condition)
    }
}

/// One side of a comparison.
struct Operand {
    value: CoreExpr,
    data_type: DataType,
    is_column: bool,
}

struct Translation<'a> {
    schema: &'a Schema,
}

impl Translation<'_> {
    fn condition(&self, filter: &Expr, levels: usize) -> Option<Condition> {
        let levels = levels.checked_sub(1)?;
        match filter {
            Expr::BinaryExpr(binary) => match binary.op {
                Operator::And => self.all(operands(filter, Operator::And), levels),
                Operator::Or => self.any(operands(filter, Operator::Or), levels),
                _ => self.comparison(binary),
            },
            Expr::Not(inner) => negated(self.condition(inner, levels)?),
            Expr::IsNull(inner) => Some(Condition::exact(self.column(inner)?.value.is_null())),
            Expr::IsNotNull(inner) => Some(Condition::exact(self.column(inner)?.value.is_not_null())),
            Expr::IsTrue(inner) => self.truth(inner, Some(true), levels),
            Expr::IsFalse(inner) => self.truth(inner, Some(false), levels),
            Expr::IsUnknown(inner) => self.truth(inner, None, levels),
            Expr::IsNotTrue(inner) => negated(self.truth(inner, Some(true), levels)?),
            Expr::IsNotFalse(inner) => negated(self.truth(inner, Some(false), levels)?),
            Expr::IsNotUnknown(inner) => negated(self.truth(inner, None, levels)?),
            Expr::Between(between) => self.between(between),
            Expr::InList(list) => self.membership(list),
            Expr::Like(like) => self.like(like),
            Expr::Column(_) | Expr::ScalarFunction(_) => {
                let column = self.column(filter)?;
                (column.data_type == DataType::Boolean)
                    .then(|| Condition::exact(Predicate::Value(column.value)))
            }
            _ => None,
        }
    }

    /// Translates conditions joined by AND. Conditions that cannot be translated are left to DataFusion.
    fn all(&self, parts: Vec<&Expr>, levels: usize) -> Option<Condition> {
        let count = parts.len();
        let translated: Vec<Condition> =
            parts.into_iter().filter_map(|part| self.condition(part, levels)).collect();
        let is_exact = translated.len() == count && translated.iter().all(|part| part.is_exact);
        let predicate = translated.into_iter().map(|part| part.predicate).reduce(Predicate::and)?;
        Some(Condition { predicate, is_exact })
    }

    /// Translates conditions joined by OR. Returns `None` if any of them cannot be translated.
    fn any(&self, parts: Vec<&Expr>, levels: usize) -> Option<Condition> {
        let translated: Vec<Condition> =
            parts.into_iter().map(|part| self.condition(part, levels)).collect::<Option<_>>()?;
        let is_exact = translated.iter().all(|part| part.is_exact);
        let predicate = translated.into_iter().map(|part| part.predicate).reduce(Predicate::or)?;
        Some(Condition { predicate, is_exact })
    }

    /// Translates `condition IS TRUE`, `IS FALSE` and `IS UNKNOWN`.
    fn truth(&self, condition: &Expr, truth: Option<bool>, levels: usize) -> Option<Condition> {
        let condition = self.condition(condition, levels)?;
        condition
            .is_exact
            .then(|| Condition::exact(Predicate::Is { condition: Box::new(condition.predicate), truth }))
    }

    fn comparison(&self, binary: &BinaryExpr) -> Option<Condition> {
        let (left, right) = (self.operand(&binary.left)?, self.operand(&binary.right)?);
        compared(binary.op, left, right)
    }

    fn between(&self, between: &Between) -> Option<Condition> {
        let side =
            |op: Operator, bound: &Expr| compared(op, self.operand(&between.expr)?, self.operand(bound)?);
        let (low, high) = (side(Operator::GtEq, &between.low)?, side(Operator::LtEq, &between.high)?);
        let is_exact = low.is_exact && high.is_exact;
        let both = Condition { predicate: low.predicate.and(high.predicate), is_exact };
        if between.negated { negated(both) } else { Some(both) }
    }

    fn membership(&self, list: &InList) -> Option<Condition> {
        let column = self.column(&list.expr)?;
        if list.list.len() > MOST_VALUES {
            return None;
        }
        let value = |value: &Expr| {
            let value = self.operand(value)?;
            (!value.is_column && is_comparable(&column.data_type, &value.data_type)).then_some(value.value)
        };
        let values = list.list.iter().map(value).collect::<Option<Vec<_>>>()?;
        let condition = with_nans(column.value.clone().is_in(values), &[&column])?;
        if list.negated { negated(condition) } else { Some(condition) }
    }

    fn like(&self, like: &Like) -> Option<Condition> {
        let column = self.column(&like.expr)?;
        let Expr::Literal(pattern, _) = like.pattern.as_ref() else { return None };
        let pattern = pattern.try_as_str()??;
        // In both languages, a backslash escapes the next character, but not all combinations mean the same.
        let is_plain = like.escape_char.is_none() && !like.case_insensitive && !pattern.contains('\\');
        if !is_plain || !is_text(&column.data_type) {
            return None;
        }
        let condition = Condition::exact(column.value.like(pattern));
        if like.negated { negated(condition) } else { Some(condition) }
    }

    fn operand(&self, expr: &Expr) -> Option<Operand> {
        match expr {
            Expr::Literal(value, _) => Some(Operand {
                value: literal(value)?.into(),
                data_type: value.data_type(),
                is_column: false,
            }),
            _ => self.column(expr),
        }
    }

    /// Returns a column, or a field of a struct.
    fn column(&self, expr: &Expr) -> Option<Operand> {
        let (path, data_type) = self.path(expr)?;
        let value = CoreExpr::Column(ColumnPath::new(path));
        Some(Operand { value, data_type: data_type.clone(), is_column: true })
    }

    fn path(&self, expr: &Expr) -> Option<(Vec<String>, &DataType)> {
        match expr {
            Expr::Column(column) => {
                let field = self.schema.field_with_name(&column.name).ok()?;
                Some((vec![column.name.clone()], field.data_type()))
            }
            Expr::ScalarFunction(call) if call.name() == "get_field" => self.field(call),
            _ => None,
        }
    }

    fn field(&self, call: &ScalarFunction) -> Option<(Vec<String>, &DataType)> {
        let (first, names) = call.args.split_first()?;
        let Expr::Column(column) = first else { return None };
        let mut path = vec![column.name.clone()];
        let mut data_type = self.schema.field_with_name(&column.name).ok()?.data_type();
        for name in names {
            let (Expr::Literal(name, _), DataType::Struct(fields)) = (name, data_type) else { return None };
            let name = name.try_as_str()??;
            data_type = fields.find(name)?.1.data_type();
            path.push(name.to_owned());
        }
        Some((path, data_type))
    }
}

/// Returns the operands of a chain of the operator `op`, from left to right. The chain may have any length.
fn operands(chain: &Expr, op: Operator) -> Vec<&Expr> {
    let (mut found, mut rest) = (Vec::new(), vec![chain]);
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::BinaryExpr(binary) if binary.op == op => rest.extend([&*binary.right, &*binary.left]),
            _ => found.push(expr),
        }
    }
    found
}

fn negated(condition: Condition) -> Option<Condition> {
    condition.is_exact.then(|| Condition::exact(condition.predicate.not()))
}

fn compared(op: Operator, left: Operand, right: Operand) -> Option<Condition> {
    if !(left.is_column || right.is_column) || !is_comparable(&left.data_type, &right.data_type) {
        return None;
    }
    let (op, is_negated) = if left.data_type.is_floating() {
        // Zeros with different signs are equal in deltalog and different in DataFusion.
        let op = match op {
            Operator::Eq => CompareOp::Eq,
            Operator::Lt | Operator::LtEq => CompareOp::LtEq,
            Operator::Gt | Operator::GtEq => CompareOp::GtEq,
            _ => return None,
        };
        (op, false)
    } else {
        match op {
            Operator::Eq => (CompareOp::Eq, false),
            Operator::NotEq => (CompareOp::NotEq, false),
            Operator::Lt => (CompareOp::Lt, false),
            Operator::LtEq => (CompareOp::LtEq, false),
            Operator::Gt => (CompareOp::Gt, false),
            Operator::GtEq => (CompareOp::GtEq, false),
            Operator::IsNotDistinctFrom => (CompareOp::NullSafeEq, false),
            Operator::IsDistinctFrom => (CompareOp::NullSafeEq, true),
            _ => return None,
        }
    };
    let predicate = Predicate::Compare { op, left: left.value.clone(), right: right.value.clone() };
    let condition = with_nans(predicate, &[&left, &right])?;
    if is_negated { negated(condition) } else { Some(condition) }
}

/// Extends the predicate to rows in which a floating-point operand is NaN.
fn with_nans(predicate: Predicate, operands: &[&Operand]) -> Option<Condition> {
    let floats = operands.iter().filter(|operand| operand.is_column && operand.data_type.is_floating());
    let mut condition = Condition::exact(predicate);
    for float in floats {
        let is_nan = parse_predicate(&format!("isnan({})", float.value), "UTC", ParseMode::Strict).ok()?;
        condition = Condition { predicate: condition.predicate.or(is_nan), is_exact: false };
    }
    Some(condition)
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Returns whether deltalog compares values of these types in the same way as DataFusion.
fn is_comparable(left: &DataType, right: &DataType) -> bool {
    use DataType::{Binary, BinaryView, Boolean, Date32, Decimal128, LargeBinary, Timestamp};
    let is_bytes = |data_type: &DataType| matches!(data_type, Binary | LargeBinary | BinaryView);
    match (left, right) {
        (Boolean, Boolean) | (Date32, Date32) | (Decimal128(..), Decimal128(..)) => true,
        (Timestamp(left, left_zone), Timestamp(right, right_zone)) => {
            left == right && left_zone.is_some() == right_zone.is_some()
        }
        _ => {
            (left.is_signed_integer() && right.is_signed_integer())
                || (left.is_floating() && right.is_floating())
                || (is_text(left) && is_text(right))
                || (is_bytes(left) && is_bytes(right))
        }
    }
}

fn literal(value: &ScalarValue) -> Option<Literal> {
    Some(match value {
        ScalarValue::Boolean(Some(value)) => Literal::Boolean(*value),
        ScalarValue::Int8(Some(value)) => (*value).into(),
        ScalarValue::Int16(Some(value)) => (*value).into(),
        ScalarValue::Int32(Some(value)) => (*value).into(),
        ScalarValue::Int64(Some(value)) => (*value).into(),
        ScalarValue::Float32(Some(value)) if !value.is_nan() => (*value).into(),
        ScalarValue::Float64(Some(value)) if !value.is_nan() => (*value).into(),
        ScalarValue::Decimal128(Some(value), _, scale) => {
            Literal::Decimal { unscaled: *value, scale: u8::try_from(*scale).ok()? }
        }
        ScalarValue::Utf8(Some(value))
        | ScalarValue::LargeUtf8(Some(value))
        | ScalarValue::Utf8View(Some(value)) => value.as_str().into(),
        ScalarValue::Binary(Some(value))
        | ScalarValue::LargeBinary(Some(value))
        | ScalarValue::BinaryView(Some(value)) => value.as_slice().into(),
        ScalarValue::Date32(Some(value)) => Literal::Date(*value),
        ScalarValue::TimestampMicrosecond(Some(value), Some(_)) => Literal::Timestamp(*value),
        ScalarValue::TimestampMicrosecond(Some(value), None) => Literal::TimestampNtz(*value),
        _ => return None,
    })
}
