//! Binds values: determines their types, converts their arguments, and computes constants.

use super::ast::{CompareOp, Expr, Literal};
use super::bind::{Binder, not_understood, variant_value};
use super::bound::{Arena, Bound};
use super::compute::{
    Argument, Changes, DatePattern, JavaPattern, Link, Moment, Node, Operation, RegexUse, cast, field_of_one,
    is_castable, is_complete, plain, signature, sql_name,
};
use super::display::ChainText;
use super::filter::Rows;
use super::function::{CastType, Function};
use super::parse::SPARK;
use super::stack::on_stack;
use super::values::as_type;
use super::zone::Clock;
use crate::error::{Error, Result};
use crate::limits::CONSTANT_BYTES;
use crate::protocol::text::MICROS_PER_DAY;
use crate::runtime::row_bytes::weight;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array,
    Int32Array, Int64Array, NullArray, StringArray, TimestampMicrosecondArray,
};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType,
};
use std::sync::Arc;

/// A bound value with its type.
pub(super) struct Value {
    pub(super) node: Node,
    pub(super) data_type: DataType,
}

impl Binder<'_> {
    /// Binds an expression as a value.
    ///
    /// # Errors
    /// InvalidArgument if a column does not exist, or if an operation is not defined for its arguments.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Value> {
        on_stack(|| self.bound(expr))
    }

    fn bound(&mut self, expr: &Expr) -> Result<Value> {
        match expr {
            Expr::Column(path) => {
                let (column, is_variant) = self.resolved(path)?;
                if is_variant {
                    return Err(variant_value(path));
                }
                let data_type =
                    self.arena.columns.get(column).map_or(DataType::Null, |c| plain(&c.data_type));
                Ok(Value { node: Node::Column(column), data_type })
            }
            Expr::Literal(literal) => constant(literal),
            Expr::DoubleQuoted(text) => constant(&self.double_quoted(text)?),
            Expr::Typed(literal, to) => {
                let plain = constant(literal)?;
                self.cast_to(plain, &to.arrow(), Clock::UTC, &expr.to_string())
            }
            Expr::Call(function, of) => {
                let of = self.value(of)?;
                self.called(function, of, expr)
            }
            Expr::Apply(Operation::Now(moment, clock, begun), column) => {
                if let [column] = column.as_slice()
                    && let Ok(value) = self.value(column)
                {
                    return Ok(value);
                }
                self.changes = self.changes.max(Changes::ByStatement);
                constant(&literal_now(*moment, *clock, *begun)?)
            }
            Expr::Apply(operation, arguments) => self.applied(*operation, arguments, expr),
            Expr::Chain(first, steps) => self.chain(first, steps),
            Expr::Condition(condition) => {
                let bound = self.condition(condition)?;
                Ok(truth(bound))
            }
            Expr::Unknown(text) => Err(not_understood(text)),
        }
    }

    fn called(&self, function: &Function, of: Value, expr: &Expr) -> Result<Value> {
        match (function, function.result_type(&of.data_type)) {
            (function, Some(to)) => {
                let is_constant = of.node.constant().is_some();
                let node = Node::Ordered {
                    function: function.clone(),
                    of: Box::new(of.node),
                    text: expr.to_string(),
                };
                Ok(computed_once(node, to, is_constant))
            }
            (Function::Cast(to, clock), None) => self.cast_to(of, &to.arrow(), *clock, &expr.to_string()),
            _ => Err(undefined(expr, &[of.data_type])),
        }
    }

    /// Converts a value to the type `to`.
    pub(super) fn cast_to(&self, of: Value, to: &DataType, clock: Clock, text: &str) -> Result<Value> {
        if of.data_type == *to {
            return Ok(of);
        }
        if let Some((field, is_missing)) = field_of_one(&of.data_type, to) {
            let why =
                if is_missing { "is missing in" } else { "does not exist in the column, but is set by" };
            return Err(Error::schema_mismatch(format!("the field '{field}' {why} {text}"))
                .with_hint("give each field of the struct a value, which may be NULL, and no others"));
        }
        if !is_castable(&of.data_type, to) {
            return Err(Error::invalid_argument(format!(
                "{text}: a cast from {} to {} is not supported",
                sql_name(&of.data_type),
                sql_name(to)
            ))
            .with_hint(SPARK));
        }
        let is_constant = of.node.constant().is_some();
        let node = Node::Cast { of: Box::new(of.node), to: to.clone(), clock, text: text.to_owned() };
        Ok(computed_once(node, to.clone(), is_constant))
    }

    /// Binds the operators of a chain from left to right. Operations on constants at the beginning of the chain are
    /// computed at once, up to the first operation that fails. The text of the part bound so far is only built for an
    /// error message, because building it for each operator would take quadratic time.
    fn chain(&mut self, first: &Expr, steps: &[(Operation, Expr)]) -> Result<Value> {
        let Value { node: mut start, mut data_type } = self.value(first)?;
        let mut start_digits = digits(first);
        let mut links: Vec<Link> = Vec::new();
        // The number of operators whose result was already computed.
        let mut computed = 0;
        for (at, (operation, right)) in steps.iter().enumerate() {
            let so_far =
                || Expr::Chain(Box::new(first.clone()), steps.get(..=at).unwrap_or_default().to_vec());
            let text = right.to_string();
            let right_digits = digits(right);
            let right = self.value(right)?;
            let left = Argument {
                data_type: data_type.clone(),
                digits: start_digits.take(),
                constant: None,
                text: None,
            };
            let refused = || undefined(&so_far(), &[left.data_type.clone(), right.data_type.clone()]);
            let both = [left.clone(), described(&right, right_digits)];
            let signature = signature(*operation, &both).ok_or_else(refused)?;
            let [left_as, right_as] = signature.arguments.as_slice() else { return Err(refused()) };
            if !is_castable(&data_type, left_as) {
                return Err(refused());
            }
            let right = self.cast_to(right, right_as, Clock::UTC, &text)?;
            let link = Link {
                operation: *operation,
                left: left_as.clone(),
                right: right.node,
                to: signature.result.clone(),
                text,
            };
            match links.is_empty().then(|| computed_link(&start, &link)).flatten() {
                Some(value) => {
                    start = value;
                    computed = at + 1;
                }
                None => links.push(link),
            }
            data_type = signature.result;
        }
        if links.is_empty() {
            return Ok(Value { node: start, data_type });
        }
        let text = match steps.get(..computed) {
            None | Some([]) => first.to_string(),
            // This text is without parentheses, because the longer chain that begins with it adds its own.
            Some(steps) => {
                let whole = ChainText(first, steps.iter().map(|(of, right)| (*of, right))).to_string();
                let inner = whole.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
                inner.map(str::to_owned).unwrap_or(whole)
            }
        };
        Ok(Value { node: Node::Chain { first: Box::new(start), text, links }, data_type })
    }

    /// Binds `nullif(value, null)`: returns the arguments of an equivalent CASE.
    fn null_if(&mut self, value: &Expr, null: &Expr) -> Result<Vec<Value>> {
        let (side, kept) = self.shared(value)?;
        let is_same = self.compare_with(CompareOp::Eq, (value, side), null)?;
        Ok(vec![truth(is_same), constant(&Literal::Null)?, kept])
    }

    /// Binds `CASE value WHEN …`: returns the arguments of an equivalent CASE without a value.
    fn case_of(&mut self, value: &Expr, branches: &[Expr]) -> Result<Vec<Value>> {
        let side = self.side(value)?;
        let mut arguments = Vec::with_capacity(branches.len());
        for branch in branches.chunks(2) {
            let last = match branch {
                [when, then] => {
                    let is_same = self.compare_with(CompareOp::Eq, (value, side.clone()), when)?;
                    arguments.push(truth(is_same));
                    then
                }
                [last] => last,
                _ => continue,
            };
            arguments.push(self.value(last)?);
        }
        Ok(arguments)
    }

    fn applied(&mut self, operation: Operation, arguments: &[Expr], expr: &Expr) -> Result<Value> {
        let (operation, values) = match (operation, arguments) {
            (Operation::NullIf, [value, null]) => (Operation::Case, self.null_if(value, null)?),
            (Operation::CaseOf, [value, branches @ ..]) => (Operation::Case, self.case_of(value, branches)?),
            _ => (operation, arguments.iter().map(|of| self.value(of)).collect::<Result<Vec<_>>>()?),
        };
        let literals = arguments.iter().map(digits).chain(std::iter::repeat(None));
        let described: Vec<Argument> =
            values.iter().zip(literals).map(|(value, digits)| described(value, digits)).collect();
        let types = || values.iter().map(|value| value.data_type.clone()).collect::<Vec<_>>();
        let signature = signature(operation, &described).ok_or_else(|| undefined(expr, &types()))?;
        let clock = match operation {
            Operation::OfDate(_, clock)
            | Operation::OfTime(_, clock)
            | Operation::DateFormat(clock)
            | Operation::DateDiff(clock)
            | Operation::DateAdd(clock)
            | Operation::Shift(_, clock) => Some(clock),
            Operation::TryCast(to, _) => {
                let from = values.first().map_or(DataType::Null, |value| value.data_type.clone());
                if !is_castable(&from, &to.arrow()) || !is_complete(&from, &to.arrow()) {
                    return Err(undefined(expr, &[from]));
                }
                None
            }
            _ => None,
        };
        if let (Operation::DateFormat(_), [_, pattern]) = (operation, values.as_slice()) {
            let pattern = pattern.node.constant().ok_or_else(|| {
                Error::invalid_argument(format!("{expr}: the pattern is not a constant")).with_hint(SPARK)
            })?;
            if let Some(pattern) = pattern.as_string_opt::<i32>().filter(|pattern| pattern.null_count() == 0)
            {
                DatePattern::parse(pattern.value(0)).map_err(|error| error.with_hint(SPARK))?;
            }
        }
        if let (Operation::Regex(of), [_, pattern, more @ ..]) = (operation, values.as_slice()) {
            ensure_regex(of, pattern, more).map_err(|error| error.with_hint(SPARK))?;
        }
        let text = expr.to_string();
        let arguments = values
            .into_iter()
            .zip(&signature.arguments)
            .map(|(value, to)| {
                let clock = clock.map_or_else(|| self.clock_for(&value.data_type, to), Ok)?;
                Ok(self.cast_to(value, to, clock, &text)?.node)
            })
            .collect::<Result<Vec<_>>>()?;
        self.changes = self.changes.max(operation.changes());
        let is_constant = operation.changes() == Changes::Never
            && arguments.iter().all(|argument| argument.constant().is_some());
        let node = Node::Apply { operation, arguments, to: signature.result.clone(), text };
        Ok(computed_once(node, signature.result, is_constant))
    }
}

/// Returns a bound condition as a boolean value.
fn truth(condition: Bound) -> Value {
    Value { node: Node::Condition(Box::new(condition)), data_type: DataType::Boolean }
}

/// Returns the properties of an argument that determine the result type of an operation. `digits` is set if the
/// argument is a literal whole number.
fn described(value: &Value, digits: Option<u8>) -> Argument {
    Argument {
        data_type: value.data_type.clone(),
        digits,
        constant: value.node.constant().and_then(whole_number),
        text: value.node.constant().and_then(constant_text),
    }
}

/// Returns a literal for the time at which a statement began.
fn literal_now(moment: Moment, clock: Clock, begun: i64) -> Result<Literal> {
    let local = || {
        clock.local(begun).ok_or_else(|| Error::invalid_argument("the clock of this machine is out of range"))
    };
    Ok(match moment {
        Moment::CurrentTimestamp => Literal::Timestamp(begun),
        Moment::LocalTimestamp => Literal::TimestampNtz(local()?),
        Moment::CurrentDate => {
            Literal::Date(i32::try_from(local()?.div_euclid(MICROS_PER_DAY)).unwrap_or_default())
        }
    })
}

/// Refuses a regular expression that is not constant or cannot be parsed, and a group or replacement that does not
/// fit it.
fn ensure_regex(of: RegexUse, pattern: &Value, more: &[Value]) -> Result<()> {
    let constant = |value: &Value| {
        value.node.constant().cloned().ok_or_else(|| {
            Error::invalid_argument("a regular expression, its group and its replacement must be constants")
        })
    };
    let text = |value: &Value| -> Result<Option<String>> {
        let value = constant(value)?;
        let text = value.as_string_opt::<i32>().filter(|text| text.null_count() == 0);
        Ok(text.map(|text| text.value(0).to_owned()))
    };
    let Some(pattern) = text(pattern)? else { return Ok(()) };
    let pattern = JavaPattern::parse(&pattern)?;
    match (of, more.first()) {
        (RegexUse::Replace, Some(by)) => {
            text(by)?.map(|by| pattern.replacement(&by)).transpose()?;
            Ok(())
        }
        (RegexUse::Extract, None) => pattern.ensure_group(1),
        (RegexUse::Extract, Some(group)) => match whole_number(&constant(group)?) {
            Some(group) => pattern.ensure_group(group),
            None => Err(Error::invalid_argument("the group of a regular expression is not a number")),
        },
        _ => Ok(()),
    }
}

fn undefined(expr: &Expr, types: &[DataType]) -> Error {
    let types: Vec<String> = types.iter().map(sql_name).collect();
    Error::invalid_argument(format!("{expr} is not supported for values of type {}", types.join(", ")))
        .with_hint(SPARK)
}

/// Computes a value that is the same for all rows. If that fails, the value is computed for each batch instead,
/// because the error matters only if a row needs the value. A large value is also computed for each batch.
fn computed_once(node: Node, data_type: DataType, is_constant: bool) -> Value {
    let computed = if is_constant { constant_of(&node) } else { None };
    Value { node: computed.unwrap_or(node), data_type }
}

/// Computes a value that reads no columns; `None` if that fails, or if the value is large.
fn constant_of(node: &Node) -> Option<Node> {
    let no_columns =
        |_: &super::bound::BoundColumn| Err(Error::invalid_argument("a constant does not depend on columns"));
    let arena = Arena::default();
    let value = Rows::new(&arena, 1, no_columns).value(node, &BooleanBuffer::new_set(1)).ok()?;
    (weight(&value, 0, 1) <= CONSTANT_BYTES).then_some(Node::Constant(value))
}

/// Computes an operator of a chain, where `left` is the value so far. Returns `None` if one of its operands is not
/// constant, if the computation fails, or if the result is large.
fn computed_link(left: &Node, link: &Link) -> Option<Node> {
    left.constant().and(link.right.constant())?;
    // The text is never shown: if the operation fails here, it is bound again as a link of the chain, and then fails
    // only for a row that needs it.
    let text = String::new;
    let of = Box::new(left.clone());
    let cast = Node::Cast { of, to: link.left.clone(), clock: Clock::UTC, text: text() };
    let arguments = vec![cast, link.right.clone()];
    constant_of(&Node::Apply { operation: link.operation, arguments, to: link.to.clone(), text: text() })
}

/// Returns a literal as a value of the type that Spark gives to it.
pub(super) fn constant(literal: &Literal) -> Result<Value> {
    let value: ArrayRef = match literal {
        Literal::Null => Arc::new(NullArray::new(1)),
        Literal::Boolean(v) => Arc::new(BooleanArray::from(vec![*v])),
        Literal::Integer(v) => match i32::try_from(*v) {
            Ok(v) => Arc::new(Int32Array::from(vec![v])),
            Err(_) => Arc::new(Int64Array::from(vec![*v])),
        },
        Literal::Decimal { unscaled, scale } => {
            let precision = decimal_digits(*unscaled).max(*scale);
            let scale = i8::try_from(*scale).unwrap_or(i8::MAX);
            let decimal = Decimal128Array::from(vec![*unscaled]).with_precision_and_scale(precision, scale);
            Arc::new(decimal.map_err(|error| {
                Error::invalid_argument(format!("{literal} has too many digits")).with_source(error)
            })?)
        }
        Literal::Double(v) => Arc::new(Float64Array::from(vec![*v])),
        Literal::String(v) => Arc::new(StringArray::from(vec![v.as_str()])),
        Literal::Binary(v) => Arc::new(BinaryArray::from(vec![v.as_slice()])),
        Literal::Date(v) => Arc::new(Date32Array::from(vec![*v])),
        Literal::Timestamp(v) => Arc::new(TimestampMicrosecondArray::from(vec![*v]).with_timezone("UTC")),
        Literal::TimestampNtz(v) => Arc::new(TimestampMicrosecondArray::from(vec![*v])),
    };
    let data_type = value.data_type().clone();
    Ok(Value { node: Node::Constant(value), data_type })
}

fn decimal_digits(unscaled: i128) -> u8 {
    unscaled.unsigned_abs().checked_ilog10().map_or(1, |power| u8::try_from(power + 1).unwrap_or(u8::MAX))
}

/// Returns the number of digits of a literal whole number.
fn digits(expr: &Expr) -> Option<u8> {
    match expr {
        Expr::Literal(Literal::Integer(v))
        | Expr::Typed(
            Literal::Integer(v),
            CastType::TinyInt | CastType::SmallInt | CastType::Int | CastType::BigInt,
        ) => Some(decimal_digits((*v).into())),
        _ => None,
    }
}

fn constant_text(value: &ArrayRef) -> Option<String> {
    let text = value.as_string_opt::<i32>().filter(|text| text.is_valid(0))?;
    Some(text.value(0).to_owned())
}

fn whole_number(value: &ArrayRef) -> Option<i64> {
    value.data_type().is_signed_integer().then_some(())?;
    let wide = as_type(value, &DataType::Int64).ok()?;
    let wide = wide.as_primitive_opt::<Int64Type>()?;
    wide.is_valid(0).then(|| wide.value(0))
}

/// Returns a constant as a literal, which does not keep the constant's exact type. Returns `None` if no literal has
/// such a value, as for an array.
pub(crate) fn literal_of(value: &ArrayRef) -> Option<Literal> {
    if value.logical_null_count() > 0 {
        return Some(Literal::Null);
    }
    Some(match value.data_type() {
        DataType::Boolean => Literal::Boolean(value.as_boolean().value(0)),
        of if of.is_signed_integer() => Literal::Integer(whole_number(value)?),
        DataType::Decimal128(_, scale) => Literal::Decimal {
            unscaled: value.as_primitive::<Decimal128Type>().value(0),
            scale: u8::try_from(*scale).ok()?,
        },
        DataType::Float32 | DataType::Float64 => {
            let wide = cast(value, &DataType::Float64, Clock::UTC).ok()?;
            Literal::Double(wide.as_primitive::<Float64Type>().value(0))
        }
        DataType::Utf8 => Literal::String(value.as_string::<i32>().value(0).to_owned()),
        DataType::Binary => Literal::Binary(value.as_binary::<i32>().value(0).to_vec()),
        DataType::Date32 => Literal::Date(value.as_primitive::<Date32Type>().value(0)),
        DataType::Timestamp(_, zone) => {
            let micros = value.as_primitive::<TimestampMicrosecondType>().value(0);
            if zone.is_some() { Literal::Timestamp(micros) } else { Literal::TimestampNtz(micros) }
        }
        _ => return None,
    })
}
