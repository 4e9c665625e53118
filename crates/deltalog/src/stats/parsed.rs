//! `add.stats_parsed` of a checkpoint, a struct, in the form of [`super::decode_stats`] (protocol,
//! "Checkpoint Schema").
//!
//! ```text
//! stats_parsed.minValues.a: Int32   ──the table has a: Int64──>   minValues.a: Int64
//! ```
//!
//! - Whatever the checkpoint has in another place or of another type than the table is brought to the table's
//!   type if no value can change on the way, and is not known otherwise: types that were widened since
//!   (protocol, "Type Widening"), INT96, other units of time.
//! - A field that is NULL, or whose struct is, is not known.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StructArray, make_array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Fields, Int64Type, Schema, TimeUnit};

use super::decode::{stats_fields, with_default_tight_bounds};
use crate::error::{Error, Result};
use crate::predicate::ColumnPath;

/// The statistics that `parsed`, a column `stats_parsed` of any shape, has of the leaf columns `columns` of a
/// table of schema `schema`: a struct array of [`stats_fields`].
///
/// # Errors
/// InvalidArgument if a column is not a leaf column of `schema`. Never because of what `parsed` is like.
pub fn normalize_stats(parsed: &StructArray, schema: &Schema, columns: &[ColumnPath]) -> Result<StructArray> {
    let fields = stats_fields(schema, columns)?;
    let stats = as_struct(Some(&(Arc::new(parsed.clone()) as ArrayRef)), &fields, parsed.len())?;
    Ok(with_default_tight_bounds(&stats, parsed.len()))
}

/// The struct of `fields` that `array` has; NULLs inside for what it does not have.
fn as_struct(array: Option<&ArrayRef>, fields: &Fields, rows: usize) -> Result<StructArray> {
    let found = array.and_then(|array| array.as_struct_opt());
    let child = |field: &arrow::datatypes::FieldRef| -> Result<ArrayRef> {
        let child = found.and_then(|found| visible(found, field.name()));
        Ok(match field.data_type() {
            DataType::Struct(inner) => Arc::new(as_struct(child.as_ref(), inner, rows)?),
            leaf => {
                child.and_then(|child| lossless(&child, leaf)).unwrap_or_else(|| new_null_array(leaf, rows))
            }
        })
    };
    let children = fields.iter().map(child).collect::<Result<Vec<_>>>()?;
    StructArray::try_new_with_length(fields.clone(), children, None, rows)
        .map_err(|error| Error::schema_mismatch("statistics do not fit their type").with_source(error))
}

/// The field `name` of `parent`, NULL wherever `parent` is.
fn visible(parent: &StructArray, name: &str) -> Option<ArrayRef> {
    let child = parent.column_by_name(name)?;
    if parent.null_count() == 0 {
        return Some(Arc::clone(child));
    }
    let nulls = NullBuffer::union(parent.nulls(), child.logical_nulls().as_ref());
    Some(make_array(child.to_data().into_builder().nulls(nulls).build().ok()?))
}

/// `array` as one of type `to`, NULL for values that `to` does not have; `None` if values could change.
pub(crate) fn lossless(array: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    use DataType as T;
    let text = |t: &T| matches!(t, T::Utf8 | T::LargeUtf8 | T::Utf8View);
    let from = array.data_type();
    match (from, to) {
        _ if from == to => Some(Arc::clone(array)),
        (T::Timestamp(unit, zone), T::Timestamp(TimeUnit::Microsecond, _)) => {
            micros(array, *unit, zone.is_some(), to)
        }
        (T::Date32, T::Timestamp(TimeUnit::Microsecond, None)) => cast(array, to).ok(),
        (whole, T::Int8 | T::Int16 | T::Int32 | T::Int64) if whole.is_integer() => cast(array, to).ok(),
        (T::Int8 | T::Int16 | T::Int32, T::Float64)
        | (T::Int8 | T::Int16, T::Float32)
        | (T::Float32, T::Float64) => cast(array, to).ok(),
        (whole, T::Decimal128(..)) if whole.is_integer() => cast(array, to).ok(),
        (
            T::Decimal32(_, scale) | T::Decimal64(_, scale) | T::Decimal128(_, scale),
            T::Decimal128(_, wanted),
        ) if scale <= wanted => cast(array, to).ok(),
        (from, to) if text(from) && text(to) => cast(array, to).ok(),
        _ => None,
    }
}

/// Timestamps in microseconds: those of a finer unit are cut to the microsecond below, which a minimum may be
/// and a maximum is widened for.
fn micros(array: &ArrayRef, unit: TimeUnit, has_zone: bool, to: &DataType) -> Option<ArrayRef> {
    // INT96 and old writers know no zone: their times are UTC for a column with one. A time with a zone is
    // not one without.
    if has_zone && matches!(to, DataType::Timestamp(_, None)) {
        return None;
    }
    let numbers = cast(array, &DataType::Int64).ok()?;
    let numbers = numbers.as_primitive_opt::<Int64Type>()?;
    let micros: Int64Array = match unit {
        TimeUnit::Second => numbers.unary_opt(|v| v.checked_mul(1_000_000)),
        TimeUnit::Millisecond => numbers.unary_opt(|v| v.checked_mul(1_000)),
        TimeUnit::Microsecond => numbers.clone(),
        TimeUnit::Nanosecond => numbers.unary(|v| v.div_euclid(1_000)),
    };
    cast(&micros, to).ok()
}
