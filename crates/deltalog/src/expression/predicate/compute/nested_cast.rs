//! Casts of arrays, structs and maps, part by part.
//!
//! - Fields are matched by name, regardless of order and case. A struct must have exactly the fields of the target
//!   type, like a value that is assigned to a column.
//! - If a part cannot be cast, or is NULL although the type forbids it, the whole value becomes NULL, which the caller
//!   turns into an error. The same happens to a map in which two keys become equal, because a key occurs only once in a
//!   map, as in Spark.

use super::super::values::{domain_of, normal};
use super::super::zone::Clock;
use super::cast::{cast, is_castable};
use super::evaluate::not_combined;
use super::nested::{not_nested, parts_of};
use crate::error::{Error, Result};
use crate::protocol::schema::is_variant;
use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt32Array};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type};
use arrow::row::{RowConverter, SortField};
use std::collections::HashSet;
use std::sync::Arc;

/// Returns whether an array, struct or map of type `from` can be cast to `to`.
pub(super) fn is_castable_nested(from: &DataType, to: &DataType) -> bool {
    let part = |from: &FieldRef, to: &FieldRef| match is_variant(to) {
        true => *from.data_type() == DataType::Null || is_variant(from),
        false => is_castable(from.data_type(), to.data_type()),
    };
    match (from, to) {
        (DataType::List(from), DataType::List(to)) => part(from, to),
        (DataType::Struct(from), DataType::Struct(to)) => {
            from.len() == to.len()
                && to.iter().all(|to| named(from, to.name()).is_some_and(|(_, from)| part(from, to)))
        }
        (DataType::Map(from, _), DataType::Map(to, _)) => match (parts_of(from), parts_of(to)) {
            (Some((key, value)), Some((to_key, to_value))) => part(key, to_key) && part(value, to_value),
            _ => false,
        },
        _ => false,
    }
}

/// Returns the path of a field that only one of the types has, and whether `from` lacks it.
pub(in crate::expression::predicate) fn field_of_one(
    from: &DataType,
    to: &DataType,
) -> Option<(String, bool)> {
    let below = |name: &str, from: &FieldRef, to: &FieldRef| {
        let (path, is_missing) = field_of_one(from.data_type(), to.data_type())?;
        Some((format!("{name}.{path}"), is_missing))
    };
    match (from, to) {
        (DataType::List(from), DataType::List(to)) => below("element", from, to),
        (DataType::Map(from, _), DataType::Map(to, _)) => {
            let ((key, value), (to_key, to_value)) = (parts_of(from)?, parts_of(to)?);
            below("key", key, to_key).or_else(|| below("value", value, to_value))
        }
        (DataType::Struct(from), DataType::Struct(to)) => {
            let missing = to.iter().find_map(|to| match named(from, to.name()) {
                Some((_, from)) => below(to.name(), from, to),
                None => Some((to.name().clone(), true)),
            });
            let other = || from.iter().find(|from| named(to, from.name()).is_none());
            missing.or_else(|| Some((other()?.name().clone(), false)))
        }
        _ => None,
    }
}

/// Returns the field `name`, ignoring case, and its index.
fn named<'a>(fields: &'a Fields, name: &str) -> Option<(usize, &'a FieldRef)> {
    let folded = name.to_lowercase();
    fields.iter().enumerate().find(|(_, field)| field.name().to_lowercase() == folded)
}

/// Casts arrays, structs or maps. A whole value becomes NULL if a part of it cannot be cast.
///
/// # Errors
/// Fails if the types are not castable.
pub(super) fn cast_nested(array: &ArrayRef, to: &DataType, clock: Clock) -> Result<ArrayRef> {
    match (array.data_type(), to) {
        (DataType::List(_), DataType::List(element)) => {
            let list = array.as_list::<i32>();
            let values = cast(list.values(), element.data_type(), clock)?;
            let lost = lost(list.values(), &values, element);
            let nulls = without(list.nulls(), list.offsets(), lost.as_ref());
            let optional = Arc::new(element.as_ref().clone().with_nullable(true));
            let whole = ListArray::try_new(optional, list.offsets().clone(), values, nulls);
            let whole = compact(Arc::new(whole.map_err(not_combined)?), lost.is_some())?;
            let (_, offsets, values, nulls) = whole.as_list::<i32>().clone().into_parts();
            let list = ListArray::try_new(Arc::clone(element), offsets, values, nulls);
            Ok(Arc::new(list.map_err(not_combined)?))
        }
        (DataType::Struct(from), DataType::Struct(fields)) => {
            let parts = array.as_struct();
            let mut nulls = parts.nulls().cloned();
            let mut columns = Vec::with_capacity(fields.len());
            for field in fields {
                let column = named(from, field.name()).and_then(|(at, _)| parts.columns().get(at));
                let column = column.ok_or_else(|| not_nested(to))?;
                let values = cast(column, field.data_type(), clock)?;
                if let Some(lost) = lost(column, &values, field) {
                    nulls = NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(!&lost)));
                }
                columns.push(values);
            }
            let whole = StructArray::try_new_with_length(fields.clone(), columns, nulls, parts.len());
            Ok(Arc::new(whole.map_err(not_combined)?))
        }
        (DataType::Map(..), DataType::Map(entries, is_sorted)) => {
            let map = array.as_map();
            let (key, value) = parts_of(entries).ok_or_else(|| not_nested(to))?;
            let DataType::Struct(parts) = entries.data_type() else { return Err(not_nested(to)) };
            let keys = cast(map.keys(), key.data_type(), clock)?;
            let values = cast(map.values(), value.data_type(), clock)?;
            let repeated = match map.keys().data_type() == keys.data_type() {
                true => None,
                false => repeated(&keys, map.offsets())?,
            };
            let lost = [lost(map.keys(), &keys, key), lost(map.values(), &values, value), repeated];
            let lost = lost.into_iter().flatten().reduce(|a, b| &a | &b);
            let nulls = without(map.nulls(), map.offsets(), lost.as_ref());
            let of = |name: &str, of: &FieldRef| Field::new(name, of.data_type().clone(), true);
            let optional: Fields = vec![of(key.name(), key), of(value.name(), value)].into();
            let pairs =
                StructArray::try_new(optional.clone(), vec![keys, values], None).map_err(not_combined)?;
            let pair = Arc::new(Field::new("pair", DataType::Struct(optional), true));
            let whole = ListArray::try_new(pair, map.offsets().clone(), Arc::new(pairs), nulls);
            let whole = compact(Arc::new(whole.map_err(not_combined)?), lost.is_some())?;
            let (_, offsets, pairs, nulls) = whole.as_list::<i32>().clone().into_parts();
            let columns = pairs.as_struct().columns().to_vec();
            let pairs = StructArray::try_new(parts.clone(), columns, None).map_err(not_combined)?;
            let map = MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *is_sorted);
            Ok(Arc::new(map.map_err(not_combined)?))
        }
        (from, to) => Err(Error::invalid_argument(format!("{from} cannot be cast to {to}"))),
    }
}

/// Returns the parts that became NULL in a cast to `to`, and the parts that are NULL although the field `to` is not
/// nullable.
fn lost(before: &ArrayRef, after: &ArrayRef, to: &Field) -> Option<BooleanBuffer> {
    let nulls = !after.logical_nulls().filter(|nulls| nulls.null_count() > 0)?.inner();
    match before.logical_nulls().filter(|_| to.is_nullable()) {
        Some(before) => Some(&nulls & before.inner()).filter(|lost| lost.count_set_bits() > 0),
        None => Some(nulls),
    }
}

/// Returns the entries of maps that repeat the key of an earlier entry; `None` if there are none. As in
/// expressions, -0.0 equals 0.0, and a NaN equals itself.
fn repeated(keys: &ArrayRef, offsets: &OffsetBuffer<i32>) -> Result<Option<BooleanBuffer>> {
    if domain_of(keys.data_type()).is_none() {
        return Ok(None);
    }
    let keys = match keys.data_type() {
        DataType::Float32 | DataType::Float64 => {
            let wide = cast(keys, &DataType::Float64, Clock::UTC)?;
            Arc::new(wide.as_primitive::<Float64Type>().unary::<_, Float64Type>(normal)) as ArrayRef
        }
        _ => Arc::clone(keys),
    };
    let converter =
        RowConverter::new(vec![SortField::new(keys.data_type().clone())]).map_err(not_combined)?;
    let rows = converter.convert_columns(&[keys]).map_err(not_combined)?;
    let mut repeated = vec![false; rows.num_rows()];
    let mut start = usize::try_from(offsets.first().copied().unwrap_or_default()).unwrap_or_default();
    for length in offsets.lengths() {
        let mut seen = HashSet::with_capacity(length);
        for at in start..start + length {
            if !seen.insert(rows.row(at))
                && let Some(repeated) = repeated.get_mut(at)
            {
                *repeated = true;
            }
        }
        start += length;
    }
    Ok(repeated.contains(&true).then(|| BooleanBuffer::from(repeated)))
}

/// Returns the null mask of lists, in which lists that lost a part are NULL as well.
fn without(
    nulls: Option<&NullBuffer>,
    offsets: &OffsetBuffer<i32>,
    lost: Option<&BooleanBuffer>,
) -> Option<NullBuffer> {
    let Some(lost) = lost else { return nulls.cloned() };
    let mut start = usize::try_from(offsets.first().copied().unwrap_or_default()).unwrap_or_default();
    let kept = offsets.lengths().map(|length| {
        let is_kept = lost.slice(start, length).count_set_bits() == 0;
        start += length;
        is_kept
    });
    NullBuffer::union(nulls, Some(&NullBuffer::from(kept.collect::<Vec<bool>>())))
}

/// If `lost` is true, which means that some lists became NULL in the cast, removes the elements that NULL lists still
/// have in memory.
fn compact(lists: ArrayRef, lost: bool) -> Result<ArrayRef> {
    if !lost {
        return Ok(lists);
    }
    let rows = u32::try_from(lists.len()).unwrap_or(u32::MAX);
    let row = |row: u32| lists.is_valid(row as usize).then_some(row);
    take(&lists, &(0..rows).map(row).collect::<UInt32Array>(), None).map_err(not_combined)
}
