//! A batch brought to the table's schema: columns by name, types without loss.
//!
//! - Names are compared without regard to case, as Spark does. A column that is missing is NULL; one that the
//!   table does not have is an error.
//! - A value either arrives as it was or the whole batch is refused; nothing is rounded, cut off or wrapped.
//! - An instant stays the same instant in UTC whatever its zone; a time without a zone is never taken for an
//!   instant, nor the other way round.
//! - NULL where the table says NOT NULL is refused, at any depth, except below a struct that is NULL itself.
//! - What lies in the memory of a NULL list, map or struct is not looked at.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StructArray, UInt64Array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, nullif, take};
use arrow::datatypes::{DataType, Field, Fields, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

use super::fit_leaf::{fit_leaf, misfit};
use crate::error::{Error, Result};

/// `batch` with exactly the columns of `table_schema`.
///
/// Accepted are the same types, and those whose every value has an equal in the table's type: dictionaries,
/// run-end encoded, view and large arrays, lists of any layout, integers and decimals of any width as far as
/// the values at hand fit, floats that get wider, timestamps of any unit and zone as far as they are whole
/// microseconds.
///
/// # Errors
/// `SchemaMismatch` naming the column.
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

/// The columns `to` out of the columns `from`, all below `parent`, whose nulls are `outer`.
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
            let hint = "leave it out, or let the schema evolve first";
            return Err(Error::schema_mismatch(format!(
                "the table has no column '{}'",
                path(parent, field.name())
            ))
            .with_hint(hint));
        };
        if let Some((first, _)) = place.replace((field.name(), array)) {
            let second = path(parent, field.name());
            return Err(Error::schema_mismatch(format!(
                "columns '{}' and '{second}' are the same to the table",
                path(parent, first)
            )));
        }
    }
    let columns = to.iter().zip(found).map(|(field, found)| match found {
        Some((_, array)) => fit_array(array, field, outer, &path(parent, field.name())),
        None if field.is_nullable() => Ok(new_null_array(field.data_type(), rows)),
        None => Err(Error::schema_mismatch(format!(
            "column '{}' is required and missing",
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
    if array.data_type() == to.data_type() && !requires_inside(to.data_type()) {
        let unexpected = !to.is_nullable() && array.nulls().is_some_and(|nulls| !covered(nulls, outer));
        return if unexpected { Err(null_in_required(path)) } else { Ok(Arc::clone(array)) };
    }
    let plain = plain(array).map_err(refuse)?;
    let plain = masked(plain, outer).map_err(refuse)?;
    let fitted = match to.data_type() {
        DataType::Struct(fields) => fit_struct(&plain, fields, path)?,
        DataType::List(element) => fit_list(&plain, element, to, path)?,
        DataType::Map(entries, sorted) => fit_map(&plain, entries, *sorted, to, path)?,
        leaf => fit_leaf(&plain, leaf, path)?,
    };
    let unexpected = !to.is_nullable() && fitted.logical_nulls().is_some_and(|nulls| !covered(&nulls, outer));
    if unexpected { Err(null_in_required(path)) } else { Ok(fitted) }
}

/// Whether something in a column of this type is NOT NULL. Arrays that other programs hand over have not been
/// checked for it.
fn requires_inside(data_type: &DataType) -> bool {
    let requires = |field: &Field| !field.is_nullable() || requires_inside(field.data_type());
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| requires(field)),
        DataType::List(field) | DataType::Map(field, _) => requires(field),
        _ => false,
    }
}

/// Whether each null is below a struct that is null.
fn covered(nulls: &NullBuffer, outer: Option<&NullBuffer>) -> bool {
    nulls.null_count() == 0 || outer.is_some_and(|outer| outer.contains(nulls))
}

fn null_in_required(path: &str) -> Error {
    Error::schema_mismatch(format!("column '{path}' has a NULL, but the table says NOT NULL"))
}

/// The array without dictionary and run-end encoding.
fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Dictionary(_, values) => plain(&cast(array, values)?),
        DataType::RunEndEncoded(_, values) => plain(&cast(array, values.data_type())?),
        _ => Ok(Arc::clone(array)),
    }
}

/// The array with NULL wherever `outer` is, so that no conversion stumbles over what is hidden there.
fn masked(array: ArrayRef, outer: Option<&NullBuffer>) -> Result<ArrayRef, ArrowError> {
    match outer {
        Some(outer) if outer.null_count() > 0 && array.data_type() != &DataType::Null => {
            nullif(&array, &BooleanArray::new(!outer.inner(), None))
        }
        _ => Ok(array),
    }
}

fn fit_struct(array: &ArrayRef, to: &Fields, path: &str) -> Result<ArrayRef> {
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

/// Whether the lists with these offsets use all `values`.
fn tight(offsets: &[i32], values: usize) -> bool {
    offsets.first() == Some(&0) && offsets.last().and_then(|last| usize::try_from(*last).ok()) == Some(values)
}

/// The same lists without values that are in none of them.
fn compact(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    take(array, &UInt64Array::from_iter_values(0..array.len() as u64), None)
}
