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

use arrow::array::{Array, ArrayRef, AsArray, StructArray, make_array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Fields, Schema};

use super::decode::{stats_fields, with_default_tight_bounds};
use crate::conversion::{Misfit, convert, is_convertible};
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

/// Converts bounds to type `to`, with NULL for values that do not fit; returns `None` if their order or values could
/// change.
///
/// Timestamps of a finer unit are floored to microseconds, which a minimum may be and a maximum is widened for.
pub(crate) fn lossless(array: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    let is_trusted = match (array.data_type(), to) {
        // INT96 and old writers have no zone: their times are UTC for a column with one. The reverse is not true.
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, None)) => false,
        // Strings stored as bytes may have been compared as signed bytes.
        (from, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => from.is_string(),
        _ => true,
    };
    (is_trusted && is_convertible(array.data_type(), to)).then_some(())?;
    convert(array, to, Misfit::Null).ok()
}
