//! Converts `add.stats_parsed`, a struct column of a checkpoint, to the columns that [`super::decode_stats`] returns.
//! (PROTOCOL, "Checkpoint Schema".)
//!
//! ```text
//! stats_parsed.minValues.a: Int32   ──the table has a: Int64──>   minValues.a: Int64
//! ```
//!
//! - Fields are found by name. If a field does not have the table's type, it is converted if this cannot change any
//!   value; otherwise it is treated as unknown. Types can differ because of "Type Widening", INT96, and other units of
//!   time.
//! - A field that is NULL, or is inside a struct that is NULL, is unknown.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray, make_array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Fields, Schema};

use super::decode::{stats_fields, with_default_tight_bounds};
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::values::conversion::{Misfit, convert, is_convertible};

/// Converts `parsed`, a `stats_parsed` column of any structure, to a struct array of [`stats_fields`] for `columns`,
/// leaf columns of a table with the schema `schema`.
///
/// # Errors
/// `InvalidArgument` if a column is not a leaf column of `schema`. The content of `parsed` never causes an error.
pub fn normalize_stats(parsed: &StructArray, schema: &Schema, columns: &[ColumnPath]) -> Result<StructArray> {
    let fields = stats_fields(schema, columns)?;
    let stats = as_struct(Some(&(Arc::new(parsed.clone()) as ArrayRef)), &fields, parsed.len())?;
    Ok(with_default_tight_bounds(&stats, parsed.len()))
}

/// Returns `array` as a struct of `fields`. Fields that it lacks are NULL.
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

/// Returns the field `name` of `parent`, with NULL wherever `parent` is NULL.
fn visible(parent: &StructArray, name: &str) -> Option<ArrayRef> {
    let child = parent.column_by_name(name)?;
    if parent.null_count() == 0 {
        return Some(Arc::clone(child));
    }
    let nulls = NullBuffer::union(parent.nulls(), child.logical_nulls().as_ref());
    Some(make_array(child.to_data().into_builder().nulls(nulls).build().ok()?))
}

/// Converts bounds to type `to`. Values that do not fit become NULL. Returns `None` if the order of the values or the
/// values themselves could change.
///
/// Timestamps with a finer unit are rounded down to microseconds. A minimum then remains a lower bound, and a maximum
/// is later widened to the end of its millisecond.
pub(crate) fn lossless(array: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    let is_trusted = match (array.data_type(), to) {
        // INT96 values and the timestamps of old writers have no time zone and are in UTC, so they fit a column with a
        // time zone. An instant does not fit a column without one.
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, None)) => false,
        // Strings that are stored as bytes may have been compared as signed bytes, so their bounds are not used.
        (from, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => from.is_string(),
        _ => true,
    };
    (is_trusted && is_convertible(array.data_type(), to)).then_some(())?;
    convert(array, to, Misfit::Null).ok()
}
