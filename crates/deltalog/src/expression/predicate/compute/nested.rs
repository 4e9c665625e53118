//! Arrays, structs and maps: their types in expressions, and their construction from values.
//!
//! - Within expressions, all elements and fields may be NULL, and no field except a variant has metadata. The
//!   restrictions of a column are checked when a value is cast to the column's type (`nested_cast`).
//! - A key of a map is not NULL, and occurs once. As in Spark, -0.0 equals 0.0, and a NaN equals itself.

use super::super::filter::Rows;
use super::super::values::{Values, domain_of};
use super::evaluate::not_combined;
use super::node::Node;
use super::operation::Operation;
use super::types::{common, plain};
use crate::error::{Error, Result};
use crate::protocol::schema::is_variant;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, ListArray, MapArray, StructArray, UInt32Array,
    new_empty_array,
};
use arrow::buffer::{BooleanBuffer, OffsetBuffer};
use arrow::compute::{filter, interleave, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use std::cmp::Ordering;
use std::sync::Arc;

/// Returns the type of arrays with this type of elements.
pub(super) fn array_of(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", element, true)))
}

/// Returns the type of maps with these types of keys and values.
pub(super) fn map_of(key: DataType, value: DataType) -> DataType {
    map_with(key, Field::new("value", value, true))
}

fn map_with(key: DataType, value: Field) -> DataType {
    let parts = vec![Field::new("key", key, false), value];
    DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(parts.into()), false)), false)
}

/// Returns the type of structs with these fields.
pub(super) fn struct_of(fields: impl IntoIterator<Item = (String, DataType)>) -> DataType {
    let fields = fields.into_iter().map(|(name, of)| Field::new(name, of, true));
    DataType::Struct(fields.collect())
}

/// Returns the fields for the keys and the values of a map type. `entries` is the field for the map's entries.
pub(super) fn parts_of(entries: &Field) -> Option<(&FieldRef, &FieldRef)> {
    match entries.data_type() {
        DataType::Struct(parts) => match parts.as_ref() {
            [key, value] => Some((key, value)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the type that expressions use for values of a nested type: all parts are nullable and have no metadata.
/// Returns `None` for any other type.
pub(super) fn plain_nested(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => DataType::List(Arc::new(plain_part("element", element))),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| plain_part(field.name(), field)).collect())
        }
        DataType::Map(entries, _) => {
            let (key, value) = parts_of(entries)?;
            map_with(plain(key.data_type()), plain_part("value", value))
        }
        _ => return None,
    })
}

/// Returns a part of a nested type as expressions use it: nullable and without metadata. A variant remains a variant.
fn plain_part(name: &str, part: &Field) -> Field {
    match is_variant(part) {
        true => part.clone().with_name(name).with_nullable(true),
        false => Field::new(name, plain(part.data_type()), true),
    }
}

/// Returns the common type of two arrays, two maps, or two structs with the same field names.
pub(super) fn common_nested(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        (DataType::List(a), DataType::List(b)) => Some(array_of(common(a.data_type(), b.data_type())?)),
        (DataType::Map(a, _), DataType::Map(b, _)) => {
            let ((a_key, a_value), (b_key, b_value)) = (parts_of(a)?, parts_of(b)?);
            Some(map_of(
                common(a_key.data_type(), b_key.data_type())?,
                common(a_value.data_type(), b_value.data_type())?,
            ))
        }
        (DataType::Struct(a), DataType::Struct(b)) if a.len() == b.len() => {
            let field = |(a, b): (&FieldRef, &FieldRef)| {
                let is_same = a.name().to_lowercase() == b.name().to_lowercase();
                let both = common(a.data_type(), b.data_type()).filter(|_| is_same)?;
                Some((a.name().clone(), both))
            };
            Some(struct_of(a.iter().zip(b).map(field).collect::<Option<Vec<_>>>()?))
        }
        _ => None,
    }
}

/// Returns the type of `map(key, value, …)`.
pub(super) fn map_type(types: &[&DataType]) -> Option<DataType> {
    let of = |from: usize| {
        let mut each = types.iter().skip(from).step_by(2);
        each.try_fold(DataType::Null, |all, next| common(&all, next))
    };
    let (key, value) = (of(0)?, of(1)?);
    let is_key = key == DataType::Null || domain_of(&key).is_some();
    (types.len().is_multiple_of(2) && is_key).then(|| map_of(key, value))
}

impl Rows<'_> {
    /// Computes an array, a struct or a map from its parts.
    pub(super) fn nested(
        &self,
        operation: Operation,
        arguments: &[Node],
        to: &DataType,
        text: &str,
        active: &BooleanBuffer,
    ) -> Result<ArrayRef> {
        let every = |from: usize, step: usize| {
            let nodes = arguments.iter().skip(from).step_by(step);
            nodes.map(|node| self.value(node, active)).collect::<Result<Vec<_>>>()
        };
        Ok(match (operation, to) {
            (Operation::Array, DataType::List(element)) => {
                let elements = every(0, 1)?;
                let offsets = OffsetBuffer::from_repeated_length(elements.len(), self.rows);
                let values = side_by_side(&elements, element.data_type(), self.rows)?;
                Arc::new(
                    ListArray::try_new(Arc::clone(element), offsets, values, None).map_err(not_combined)?,
                )
            }
            (Operation::NamedStruct, DataType::Struct(fields)) => {
                let parts = StructArray::try_new_with_length(fields.clone(), every(1, 2)?, None, self.rows);
                Arc::new(parts.map_err(not_combined)?)
            }
            (Operation::Map, DataType::Map(entries, _)) => {
                let (key, value) = parts_of(entries).ok_or_else(|| not_nested(to))?;
                let keys = every(0, 2)?;
                self.check_keys(&keys, key.data_type(), text, active)?;
                let offsets = OffsetBuffer::from_repeated_length(keys.len(), self.rows);
                let values = side_by_side(&every(1, 2)?, value.data_type(), self.rows)?;
                let keys = side_by_side(&keys, key.data_type(), self.rows)?;
                map(entries, offsets, keys, values, active)?
            }
            _ => return Err(not_nested(to)),
        })
    }

    /// Refuses keys that are NULL or equal in one of the rows.
    fn check_keys(&self, keys: &[ArrayRef], of: &DataType, text: &str, active: &BooleanBuffer) -> Result<()> {
        let refused = |why: &str| {
            Error::invalid_argument(format!("{text} has no value: {why}"))
                .with_hint("exclude such keys with a condition or CASE")
        };
        let has_null = |key: &ArrayRef| match key.logical_nulls() {
            Some(nulls) => (&!nulls.inner() & active).count_set_bits() > 0,
            None => false,
        };
        if keys.iter().any(has_null) {
            return Err(refused("a key of a map is NULL"));
        }
        let Some(domain) = domain_of(of) else { return Ok(()) };
        let keys = keys.iter().map(|key| Values::new(key, of, domain)).collect::<Result<Vec<_>>>()?;
        let mut sorted: Vec<&Values> = keys.iter().collect();
        for row in active.set_indices() {
            let order = |a: &&Values, b: &&Values| a.compare_rows(row, b).unwrap_or(Ordering::Equal);
            sorted.sort_by(order);
            if sorted.windows(2).any(|pair| matches!(pair, [a, b] if order(a, b).is_eq())) {
                return Err(refused("a map has the same key twice"));
            }
        }
        Ok(())
    }
}

/// Computes a function of arrays or maps.
pub(super) fn of_parts(operation: Operation, arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let not_nested = || not_nested(arguments.first().map_or(&DataType::Null, |of| of.data_type()));
    let (offsets, nulls) = match arguments {
        [of, ..] if let Some(list) = of.as_list_opt::<i32>() => (list.offsets(), list.nulls()),
        [of, ..] if let Some(map) = of.as_map_opt() => (map.offsets(), map.nulls()),
        _ => return Err(not_nested()),
    };
    match (operation, arguments) {
        (Operation::Size, _) => {
            let sizes = offsets.lengths().map(|size| i32::try_from(size).unwrap_or(i32::MAX));
            Ok(Arc::new(Int32Array::new(sizes.collect(), nulls.cloned())))
        }
        (Operation::ArrayContains, [of, value]) => {
            let list = of.as_list_opt::<i32>().ok_or_else(not_nested)?;
            let domain = domain_of(value.data_type()).ok_or_else(not_nested)?;
            let first = usize::try_from(offsets.first().copied().unwrap_or_default()).unwrap_or_default();
            let elements = list.values().slice(first, offsets.lengths().sum());
            let rows = (0u32..).zip(offsets.lengths()).flat_map(|(row, length)| vec![row; length]);
            let wanted = take(value, &UInt32Array::from_iter_values(rows), None).map_err(not_combined)?;
            let elements = Values::new(&elements, value.data_type(), domain)?;
            let wanted = Values::new(&wanted, value.data_type(), domain)?;
            let mut start = 0;
            let found = offsets.lengths().enumerate().map(|(row, length)| {
                let mut places = start..start + length;
                start += length;
                (list.is_valid(row) && value.is_valid(row)).then_some(())?;
                let has_null = places.clone().any(|at| elements.is_null(at));
                let is_found = places.any(|at| elements.compare_rows(at, &wanted) == Some(Ordering::Equal));
                (is_found || !has_null).then_some(is_found)
            });
            Ok(Arc::new(found.collect::<BooleanArray>()))
        }
        _ => Err(not_nested()),
    }
}

/// Builds a map from its keys and values. Rows that are not active get no entries, because their keys may be NULL.
fn map(
    entries: &FieldRef,
    offsets: OffsetBuffer<i32>,
    keys: ArrayRef,
    values: ArrayRef,
    active: &BooleanBuffer,
) -> Result<ArrayRef> {
    let (mut keys, mut values, mut offsets) = (keys, values, offsets);
    if keys.logical_null_count() > 0 {
        let is_used: Vec<bool> =
            offsets.lengths().zip(active.iter()).flat_map(|(n, is)| vec![is; n]).collect();
        let is_used = is_used.into();
        keys = filter(&keys, &is_used).map_err(not_combined)?;
        values = filter(&values, &is_used).map_err(not_combined)?;
        offsets = OffsetBuffer::from_lengths(
            offsets.lengths().zip(active.iter()).map(|(n, is)| if is { n } else { 0 }),
        );
    }
    let DataType::Struct(parts) = entries.data_type() else { return Err(not_nested(entries.data_type())) };
    let parts = StructArray::try_new(parts.clone(), vec![keys, values], None).map_err(not_combined)?;
    let map = MapArray::try_new(Arc::clone(entries), offsets, parts, None, false).map_err(not_combined)?;
    Ok(Arc::new(map))
}

/// Interleaves several arrays: returns all their values of the first row, then of the second row, and so on.
fn side_by_side(arrays: &[ArrayRef], of: &DataType, rows: usize) -> Result<ArrayRef> {
    if arrays.is_empty() {
        return Ok(new_empty_array(of));
    }
    let places: Vec<(usize, usize)> =
        (0..rows).flat_map(|row| (0..arrays.len()).map(move |array| (array, row))).collect();
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    interleave(&arrays, &places).map_err(not_combined)
}

pub(super) fn not_nested(of: &DataType) -> Error {
    Error::invalid_argument(format!("{of} is not a nested type"))
}
