//! Converts batches to the table's schema. Columns are matched by name, and no conversion loses information.
//!
//! - Names are compared case-insensitively, as in Spark. A missing column becomes NULL; a column that the table does
//!   not have is an error.
//! - Every value is preserved, or the whole batch is refused. Nothing is rounded, truncated or wrapped.
//! - An instant with any time zone becomes the same instant in UTC. A time without a zone is never converted to an
//!   instant, and an instant is never converted to a time without a zone.
//! - A NULL in a NOT NULL column is refused at any depth, except inside of a struct that is NULL itself.
//! - Hidden values in the memory of a NULL list, map or struct are ignored.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, LargeListArray, ListArray, MapArray, StructArray, UInt64Array,
    new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, nullif, take};
use arrow::datatypes::{DataType, Field, Fields, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

use super::fit_leaf::{fit_leaf, misfit};
use super::fit_variant::fit_variant;
use crate::error::{Error, Result};
use crate::protocol::schema::is_variant;

/// Converts `batch` to exactly the columns of `table_schema`.
///
/// In addition to the table's own types, the data may have:
///
/// - dictionary, run-end encoded, view and large arrays, and lists of any layout;
/// - integers and decimals of any width, if their values fit; for integer columns, also decimals without fraction
///   digits;
/// - for floating-point columns, narrower floating-point numbers, and whole numbers that the column's type represents
///   exactly;
/// - timestamps of any unit and zone, if they are whole microseconds;
/// - for timestamp columns, dates, which become midnight, in UTC if the column has a time zone.
///
/// # Errors
/// Returns `SchemaMismatch`, which names the column.
pub fn fit(batch: &RecordBatch, table_schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = fit_fields(
        batch.schema_ref().fields(),
        batch.columns(),
        table_schema.fields(),
        batch.num_rows(),
        None,
        "",
    )?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(table_schema), columns, &options)
        .map_err(|error| Error::schema_mismatch("the batch does not fit the table").with_source(error))
}

/// Converts the columns `from` to the columns `to`. They are all fields of one struct, `parent`, whose NULLs are
/// `outer`.
fn fit_fields(
    from: &Fields,
    arrays: &[ArrayRef],
    to: &Fields,
    rows: usize,
    outer: Option<&NullBuffer>,
    parent: &str,
) -> Result<Vec<ArrayRef>> {
    let places: HashMap<String, usize> =
        to.iter().enumerate().map(|(index, field)| (field.name().to_lowercase(), index)).collect();
    let mut found: Vec<Option<(&str, &ArrayRef)>> = vec![None; to.len()];
    for (field, array) in from.iter().zip(arrays) {
        let place = places.get(&field.name().to_lowercase()).and_then(|index| found.get_mut(*index));
        let Some(place) = place else {
            let hint = "drop the column from the data, or add it to the table first";
            return Err(Error::schema_mismatch(format!(
                "the table has no column '{}'",
                path(parent, field.name())
            ))
            .with_hint(hint));
        };
        if let Some((first, _)) = place.replace((field.name(), array)) {
            let second = path(parent, field.name());
            return Err(Error::schema_mismatch(format!(
                "columns '{}' and '{second}' refer to the same column of the table",
                path(parent, first)
            )));
        }
    }
    let columns = to.iter().zip(found).map(|(field, found)| match found {
        Some((_, array)) => fit_array(array, field, outer, &path(parent, field.name())),
        None if field.is_nullable() => Ok(new_null_array(field.data_type(), rows)),
        None => Err(Error::schema_mismatch(format!(
            "column '{}' is required but missing",
            path(parent, field.name())
        ))),
    });
    columns.collect()
}

fn path(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

fn fit_array(array: &ArrayRef, to: &Field, outer: Option<&NullBuffer>, path: &str) -> Result<ArrayRef> {
    let refuse = |error: ArrowError| misfit(array.data_type(), to.data_type(), path).with_source(error);
    if array.data_type() == to.data_type() && !is_checked(to.data_type()) {
        let unexpected = !to.is_nullable() && array.nulls().is_some_and(|nulls| !covered(nulls, outer));
        return if unexpected { Err(null_in_required(path)) } else { Ok(Arc::clone(array)) };
    }
    let plain = plain(array).map_err(refuse)?;
    let plain = masked(plain, outer).map_err(refuse)?;
    let fitted = match to.data_type() {
        DataType::Struct(parts) if is_variant(to) && array.data_type() != &DataType::Null => {
            fit_variant(&plain, parts, path)?
        }
        DataType::Struct(fields) => fit_struct(&plain, fields, path)?,
        DataType::List(element) => fit_list(&plain, element, to, path)?,
        DataType::Map(entries, sorted) => fit_map(&plain, entries, *sorted, to, path)?,
        leaf => fit_leaf(&plain, leaf, path)?,
    };
    let unexpected = !to.is_nullable() && fitted.logical_nulls().is_some_and(|nulls| !covered(&nulls, outer));
    if unexpected { Err(null_in_required(path)) } else { Ok(fitted) }
}

/// Returns whether values of this type are checked even if the data has the same type. Nothing has checked arrays from
/// other programs yet: they may have NULLs in NOT NULL fields, and decimals with more digits than their type allows.
/// Parquet would store such decimals with wrong digits.
fn is_checked(data_type: &DataType) -> bool {
    let is_field = |field: &Field| !field.is_nullable() || is_checked(field.data_type());
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| is_field(field)),
        DataType::List(field) | DataType::Map(field, _) => is_field(field),
        other => other.is_decimal(),
    }
}

/// Returns whether each NULL in `nulls` is inside of a struct that is NULL.
fn covered(nulls: &NullBuffer, outer: Option<&NullBuffer>) -> bool {
    nulls.null_count() == 0 || outer.is_some_and(|outer| outer.contains(nulls))
}

fn null_in_required(path: &str) -> Error {
    Error::schema_mismatch(format!("column '{path}' contains NULL, but it is NOT NULL in the table"))
}

/// Returns the array's values without dictionary or run-end encoding.
fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(_, values) => plain(&cast(array, values)?),
        DataType::RunEndEncoded(_, values) => plain(&cast(array, values.data_type())?),
        _ => Ok(Arc::clone(array)),
    }
}

/// Returns the array with NULL wherever `outer` is NULL, so that hidden values cannot make a conversion fail.
fn masked(array: ArrayRef, outer: Option<&NullBuffer>) -> Result<ArrayRef, ArrowError> {
    match outer {
        Some(outer) if outer.null_count() > 0 && array.data_type() != &DataType::Null => {
            nullif(&array, &BooleanArray::new(!outer.inner(), None))
        }
        _ => Ok(array),
    }
}

pub(super) fn fit_struct(array: &ArrayRef, to: &Fields, path: &str) -> Result<ArrayRef> {
    let target = DataType::Struct(to.clone());
    let DataType::Struct(from) = array.data_type() else { return fit_leaf(array, &target, path) };
    let source = array.as_struct();
    let children = fit_fields(from, source.columns(), to, source.len(), source.nulls(), path)?;
    let fitted =
        StructArray::try_new_with_length(to.clone(), children, source.nulls().cloned(), source.len());
    Ok(Arc::new(fitted.map_err(|error| misfit(array.data_type(), &target, path).with_source(error))?))
}

fn fit_list(array: &ArrayRef, element: &Arc<Field>, to: &Field, path: &str) -> Result<ArrayRef> {
    let (DataType::List(from)
    | DataType::LargeList(from)
    | DataType::FixedSizeList(from, _)
    | DataType::ListView(from)
    | DataType::LargeListView(from)) = array.data_type()
    else {
        return fit_leaf(array, to.data_type(), path);
    };
    let refuse = |error: ArrowError| misfit(array.data_type(), to.data_type(), path).with_source(error);
    // A small slice of a large array may begin beyond the 32-bit offsets that the table's arrays use.
    let is_far =
        |list: &LargeListArray| list.value_offsets().last().is_some_and(|last| *last > i32::MAX.into());
    let array = match array.as_list_opt::<i64>() {
        Some(list) if is_far(list) => &compact(array).map_err(refuse)?,
        _ => array,
    };
    let list = cast(array, &DataType::List(Arc::clone(from))).map_err(refuse)?;
    let is_tight = |list: &ListArray| tight(list.value_offsets(), list.values().len());
    let list = if is_tight(list.as_list()) && list.null_count() == 0 {
        list
    } else {
        compact(&list).map_err(refuse)?
    };
    let list = list.as_list::<i32>();
    let values = fit_array(list.values(), element, None, &format!("{path}.element"))?;
    let fitted =
        ListArray::try_new(Arc::clone(element), list.offsets().clone(), values, list.nulls().cloned());
    Ok(Arc::new(fitted.map_err(refuse)?))
}

fn fit_map(array: &ArrayRef, entries: &Arc<Field>, sorted: bool, to: &Field, path: &str) -> Result<ArrayRef> {
    let refuse = |error: ArrowError| misfit(array.data_type(), to.data_type(), path).with_source(error);
    let (Some(_), DataType::Struct(fields)) = (array.as_map_opt(), entries.data_type()) else {
        return fit_leaf(array, to.data_type(), path);
    };
    let is_tight = |map: &MapArray| tight(map.value_offsets(), map.entries().len());
    let map = if is_tight(array.as_map()) && array.null_count() == 0 {
        Arc::clone(array)
    } else {
        compact(array).map_err(refuse)?
    };
    let map = map.as_map();
    let [key, value] = fields.iter().collect::<Vec<_>>()[..] else {
        return Err(misfit(array.data_type(), to.data_type(), path));
    };
    let keys = fit_array(map.keys(), key, None, &format!("{path}.key"))?;
    let values = fit_array(map.values(), value, None, &format!("{path}.value"))?;
    let pairs = StructArray::try_new(fields.clone(), vec![keys, values], None).map_err(refuse)?;
    let fitted =
        MapArray::try_new(Arc::clone(entries), map.offsets().clone(), pairs, map.nulls().cloned(), sorted);
    Ok(Arc::new(fitted.map_err(refuse)?))
}

/// Returns whether lists with these offsets use all `values` values.
fn tight(offsets: &[i32], values: usize) -> bool {
    offsets.first() == Some(&0) && offsets.last().and_then(|last| usize::try_from(*last).ok()) == Some(values)
}

/// Returns the same lists, without hidden values that belong to none of them.
fn compact(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    take(array, &UInt64Array::from_iter_values(0..array.len() as u64), None)
}
