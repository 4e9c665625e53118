//! Length limits of strings of the types `char(n)` and `varchar(n)`, including strings inside of structs, arrays and
//! maps. In the schema, these types are plain strings.
//!
//! Spark records the type in the metadata of the column, and this module enforces it as Spark does:
//!
//! - `varchar(n)` holds at most `n` characters.
//! - `char(n)` holds exactly `n` characters: shorter values are padded with spaces.
//! - Trailing spaces beyond the limit are cut off. Any other value that is too long is refused.
//! - NULL is allowed. Values that are in memory but belong to a NULL struct, array or map are ignored.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StringArray, StructArray, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{nullif, take};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use super::length_type::{Characters, Limit};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::StructField;

/// The key in a column's metadata under which Spark records a type such as `varchar(10)` or `array<char(2)>`.
pub(crate) const TYPE: &str = "__CHAR_VARCHAR_TYPE_STRING";

/// A column with strings of limited length.
#[derive(Debug, Clone)]
pub(super) struct Length {
    column: String,
    limit: Limit,
}

impl Length {
    /// Returns the limits of a top-level column, if it has any.
    ///
    /// # Errors
    /// Returns CorruptLog for a recorded type that Spark does not write, and for one that does not fit the schema.
    /// Returns Unsupported if the fields of a struct were changed after Spark recorded the type.
    pub(super) fn of(field: &StructField) -> Result<Option<Self>> {
        let Some(value) = field.metadata.get(TYPE) else { return Ok(None) };
        let unreadable =
            || Error::corrupt_log(format!("the metadata '{TYPE}' of column {} is {value}", field.name));
        let text = value.as_str().ok_or_else(unreadable)?;
        let limit = Limit::parse(text, &field.data_type).map_err(|error| match error.kind() {
            ErrorKind::Unsupported => {
                Error::unsupported(format!("column '{}' cannot be written", field.name))
                    .with_hint("copy its values to a new column without lengths, and drop it")
                    .with_source(error)
            }
            _ => unreadable().with_source(error),
        })?;
        Ok(limit.map(|limit| Self { column: field.name.clone(), limit }))
    }

    pub(super) fn column(&self) -> &str {
        &self.column
    }

    /// Returns the values padded or cut as the type demands; `None` if they already fit.
    ///
    /// # Errors
    /// SchemaMismatch naming the column and the length of the first value that is too long.
    pub(super) fn apply(&self, values: &ArrayRef) -> Result<Option<ArrayRef>> {
        fitted(&self.limit, values, &self.column)
    }
}

/// Returns `values` padded or cut as `limit` demands; `None` if they already fit. `path` is the path of the column.
fn fitted(limit: &Limit, values: &ArrayRef, path: &str) -> Result<Option<ArrayRef>> {
    let unfit = |error: ArrowError| {
        let message = format!("the strings in column '{path}' cannot be padded or cut to their length");
        Error::schema_mismatch(message).with_source(error)
    };
    let other =
        || Error::corrupt_log(format!("column '{path}' does not have the type that its length needs"));
    match limit {
        Limit::Text(characters) => texts(*characters, values.as_string_opt().ok_or_else(other)?, path),
        Limit::Struct(limits) => {
            let parent = values.as_struct_opt().ok_or_else(other)?;
            let mut columns = parent.columns().to_vec();
            let mut is_changed = false;
            for (place, limit) in limits {
                let (Some(column), Some(name)) =
                    (columns.get_mut(*place), parent.column_names().get(*place).copied())
                else {
                    return Err(other());
                };
                let visible = match parent.nulls() {
                    Some(nulls) => nullif(column, &BooleanArray::new(!nulls.inner(), None)).map_err(unfit)?,
                    None => Arc::clone(column),
                };
                if let Some(changed) = fitted(limit, &visible, &format!("{path}.{name}"))? {
                    (*column, is_changed) = (changed, true);
                }
            }
            let (fields, nulls) = (parent.fields().clone(), parent.nulls().cloned());
            let made =
                is_changed.then(|| StructArray::try_new_with_length(fields, columns, nulls, parent.len()));
            Ok(made.transpose().map_err(unfit)?.map(|array| Arc::new(array) as ArrayRef))
        }
        Limit::Elements(limit) => {
            let lists = values.as_list_opt::<i32>().ok_or_else(other)?;
            let shown = without_hidden(values, lists.offsets(), lists.values().len()).map_err(unfit)?;
            let lists = shown.as_list_opt::<i32>().ok_or_else(other)?;
            let Some(elements) = fitted(limit, lists.values(), &format!("{path}.element"))? else {
                return Ok(None);
            };
            let arrow::datatypes::DataType::List(field) = lists.data_type() else { return Err(other()) };
            let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            let made = ListArray::try_new(Arc::clone(field), offsets, elements, nulls).map_err(unfit)?;
            Ok(Some(Arc::new(made)))
        }
        Limit::Entries(key, value) => {
            let maps = values.as_map_opt().ok_or_else(other)?;
            let shown = without_hidden(values, maps.offsets(), maps.entries().len()).map_err(unfit)?;
            let maps = shown.as_map_opt().ok_or_else(other)?;
            let part = |limit: &Option<Box<Limit>>, column: &ArrayRef, name: &str| match limit {
                Some(limit) => fitted(limit, column, &format!("{path}.{name}")),
                None => Ok(None),
            };
            let (keys, items) = (part(key, maps.keys(), "key")?, part(value, maps.values(), "value")?);
            if keys.is_none() && items.is_none() {
                return Ok(None);
            }
            let (keys, items) = (
                keys.unwrap_or_else(|| Arc::clone(maps.keys())),
                items.unwrap_or_else(|| Arc::clone(maps.values())),
            );
            ensure_distinct(&keys, maps.offsets(), path)?;
            let entries = StructArray::try_new(maps.entries().fields().clone(), vec![keys, items], None);
            let arrow::datatypes::DataType::Map(field, sorted) = maps.data_type() else {
                return Err(other());
            };
            let (offsets, nulls) = (maps.offsets().clone(), maps.nulls().cloned());
            let made = MapArray::try_new(Arc::clone(field), offsets, entries.map_err(unfit)?, nulls, *sorted);
            Ok(Some(Arc::new(made.map_err(unfit)?)))
        }
    }
}

/// Refuses maps in which two keys became equal when they were padded or cut. `offsets` are the offsets of the maps.
fn ensure_distinct(keys: &ArrayRef, offsets: &OffsetBuffer<i32>, path: &str) -> Result<()> {
    let incomparable = |error: ArrowError| {
        Error::schema_mismatch(format!("the keys of column '{path}' cannot be compared")).with_source(error)
    };
    let converter =
        RowConverter::new(vec![SortField::new(keys.data_type().clone())]).map_err(incomparable)?;
    let rows = converter.convert_columns(&[Arc::clone(keys)]).map_err(incomparable)?;
    let mut seen = HashSet::new();
    for map in offsets.windows(2) {
        let [start, end] = map else { continue };
        seen.clear();
        // Offsets are never negative.
        if !(start.unsigned_abs()..end.unsigned_abs()).all(|entry| seen.insert(rows.row(entry as usize))) {
            return Err(Error::schema_mismatch(format!(
                "two keys of a map in column '{path}' become equal when they are padded or cut to the length of their \
                 type"
            )));
        }
    }
    Ok(())
}

/// Removes the values in memory that belong to no list or map, or to a NULL one. The lists or maps stay the same
/// otherwise. `offsets` are their offsets, and `count` is the number of all values in memory.
fn without_hidden(
    array: &ArrayRef,
    offsets: &OffsetBuffer<i32>,
    count: usize,
) -> Result<ArrayRef, ArrowError> {
    let begins = offsets.first() == Some(&0);
    let ends = offsets.last().is_some_and(|end| usize::try_from(*end) == Ok(count));
    let nulls_are_empty = array.nulls().is_none_or(|nulls| {
        nulls
            .iter()
            .zip(offsets.windows(2))
            .all(|(is_valid, range)| is_valid || range.first() == range.last())
    });
    if begins && ends && nulls_are_empty {
        return Ok(Arc::clone(array));
    }
    take(array, &UInt64Array::from_iter_values(0..array.len() as u64), None)
}

fn texts(characters: Characters, strings: &StringArray, path: &str) -> Result<Option<ArrayRef>> {
    let is_exact = |text: &str| match characters {
        Characters::Exactly(count) => text.chars().count() == count,
        // The number of bytes of a string is at least its number of characters.
        Characters::AtMost(count) => text.len() <= count || text.chars().count() <= count,
    };
    if strings.iter().flatten().all(is_exact) {
        return Ok(None);
    }
    let fitted = strings.iter().map(|text| text.map(|text| fit(characters, text, path)).transpose());
    Ok(Some(Arc::new(fitted.collect::<Result<StringArray>>()?)))
}

fn fit(characters: Characters, text: &str, path: &str) -> Result<String> {
    let (Characters::Exactly(count) | Characters::AtMost(count)) = characters;
    let end = text.char_indices().nth(count).map_or(text.len(), |(index, _)| index);
    let (kept, rest) = text.split_at(end);
    if !rest.bytes().all(|byte| byte == b' ') {
        return Err(Error::schema_mismatch(format!(
            "column '{path}' has the type {characters}, and a value has {} characters: '{}…'",
            text.chars().count(),
            kept.chars().take(40).collect::<String>()
        )));
    }
    let missing = count.saturating_sub(kept.chars().count());
    Ok(match characters {
        Characters::Exactly(_) => format!("{kept}{}", " ".repeat(missing)),
        Characters::AtMost(_) => kept.to_owned(),
    })
}
