//! How a column of a file becomes one of the table.
//!
//! A plan is made once for each file from the two types, and then applied to each batch. It also says which leaf columns of the file are read.
//!
//! - Fields of structs are found by name, those of lists and maps by their role: writers disagree on the names in between.
//! - Of a struct at least one leaf is read, for without one nobody knows where the struct is NULL.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, new_null_array};
use arrow::datatypes::{DataType, FieldRef, Fields};
use arrow::error::ArrowError;

use super::columns::{NameMatch, match_name};
use super::convert::{convert, is_convertible};
use crate::error::{Error, Result};

/// What to do with an array of the file's type.
#[derive(Debug, Clone)]
pub(super) enum Plan {
    /// Only NULLs.
    Nulls(DataType),
    /// A leaf.
    Convert(DataType),
    /// The name that each field has in the file, and its plan; `None` if it is not there.
    Struct(Fields, Vec<Option<(String, Plan)>>),
    List(FieldRef, Box<Plan>),
    /// The field of the entries, the plans of key and value, whether the keys are sorted.
    Map(FieldRef, Box<[Plan; 2]>, bool),
}

impl Plan {
    /// The plan to read a column of type `file`, whose first leaf is number `first_leaf`, as `table`; its leaves are added to `leaves`. `name` is for
    /// messages.
    ///
    /// # Errors
    /// `CorruptData` if no value could be read so, or a name is ambiguous.
    pub(super) fn new(table: &DataType, file: &DataType, first_leaf: usize, name: &str, leaves: &mut Vec<usize>) -> Result<Self> {
        let mismatch = || Error::corrupt_data(format!("the column '{name}' is of type {file} in the file and cannot be read as {table}"));
        match (table, file) {
            (DataType::Struct(fields), DataType::Struct(in_file)) => Self::of_struct(fields, in_file, first_leaf, name, leaves),
            (DataType::List(element), DataType::List(in_file)) => {
                let inner = Self::new(element.data_type(), in_file.data_type(), first_leaf, &format!("{name}.element"), leaves)?;
                Ok(Self::List(Arc::clone(element), Box::new(inner)))
            }
            (DataType::Map(entries, sorted), DataType::Map(in_file, _)) => {
                let ([key, value], [key_in_file, value_in_file]) =
                    (pair(entries).ok_or_else(mismatch)?, pair(in_file).ok_or_else(mismatch)?);
                let after_key = first_leaf + leaf_count(key_in_file.data_type());
                let key = Self::new(key.data_type(), key_in_file.data_type(), first_leaf, &format!("{name}.key"), leaves)?;
                let value = Self::new(value.data_type(), value_in_file.data_type(), after_key, &format!("{name}.value"), leaves)?;
                Ok(Self::Map(Arc::clone(entries), Box::new([key, value]), *sorted))
            }
            (_, DataType::Null) => {
                leaves.push(first_leaf);
                Ok(Self::Nulls(table.clone()))
            }
            _ if !table.is_nested() && !file.is_nested() && is_convertible(file, table) => {
                leaves.push(first_leaf);
                Ok(Self::Convert(table.clone()))
            }
            _ => Err(mismatch()),
        }
    }

    fn of_struct(fields: &Fields, in_file: &Fields, first_leaf: usize, name: &str, leaves: &mut Vec<usize>) -> Result<Self> {
        let before = leaves.len();
        let mut children = Vec::with_capacity(fields.len());
        for field in fields {
            let name = format!("{name}.{}", field.name());
            children.push(match find_in_file(in_file, field.name(), &name)? {
                Some((found, leaf)) => {
                    let plan = Self::new(field.data_type(), found.data_type(), first_leaf + leaf, &name, leaves)?;
                    Some((found.name().clone(), plan))
                }
                None => None,
            });
        }
        if leaves.len() == before {
            leaves.push(first_leaf);
        }
        Ok(Self::Struct(fields.clone(), children))
    }

    /// `array` in the table's type.
    ///
    /// # Errors
    /// If a value does not fit, or is NULL where the table has none.
    pub(super) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Nulls(data_type) => Ok(new_null_array(data_type, array.len())),
            Self::Convert(data_type) => convert(array, data_type),
            Self::Struct(fields, children) => {
                let found = array.as_struct_opt().ok_or_else(|| unexpected(array))?;
                let mut arrays = Vec::with_capacity(children.len());
                for (field, child) in fields.iter().zip(children) {
                    arrays.push(match child {
                        Some((name, plan)) => plan.apply(found.column_by_name(name).ok_or_else(|| unexpected(array))?)?,
                        None => new_null_array(field.data_type(), found.len()),
                    });
                }
                let nulls = found.nulls().cloned();
                Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, found.len())?))
            }
            Self::List(element, plan) => {
                let found = array.as_list_opt::<i32>().ok_or_else(|| unexpected(array))?;
                let values = plan.apply(found.values())?;
                Ok(Arc::new(ListArray::try_new(Arc::clone(element), found.offsets().clone(), values, found.nulls().cloned())?))
            }
            Self::Map(entries, plans, sorted) => {
                let found = array.as_map_opt().ok_or_else(|| unexpected(array))?;
                let DataType::Struct(fields) = entries.data_type() else { return Err(unexpected(array)) };
                let [key, value] = plans.as_ref();
                let columns = vec![key.apply(found.keys())?, value.apply(found.values())?];
                let pairs = StructArray::try_new_with_length(fields.clone(), columns, None, found.keys().len())?;
                let (offsets, nulls) = (found.offsets().clone(), found.nulls().cloned());
                Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *sorted)?))
            }
        }
    }
}

/// The field of a file that `name` means, with the number of leaves before it. `full_name` is for messages.
pub(super) fn find_in_file<'a>(fields: &'a Fields, name: &str, full_name: &str) -> Result<Option<(&'a FieldRef, usize)>> {
    match match_name(fields, name) {
        NameMatch::None => Ok(None),
        NameMatch::Many => Err(Error::corrupt_data(format!("the file has more than one column that could be '{full_name}'"))),
        NameMatch::One(index) => {
            let before = fields.iter().take(index).map(|field| leaf_count(field.data_type())).sum();
            Ok(fields.get(index).map(|field| (field, before)))
        }
    }
}

/// How many leaf columns of a Parquet file a column of type `data_type` has.
pub(super) fn leaf_count(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| leaf_count(field.data_type())).sum(),
        DataType::List(inner) | DataType::Map(inner, _) => leaf_count(inner.data_type()),
        _ => 1,
    }
}

/// Key and value of a map's entries.
fn pair(entries: &FieldRef) -> Option<[&FieldRef; 2]> {
    match entries.data_type() {
        DataType::Struct(fields) => <[_; 2]>::try_from(fields.iter().collect::<Vec<_>>()).ok(),
        _ => None,
    }
}

fn unexpected(array: &ArrayRef) -> ArrowError {
    ArrowError::SchemaError(format!("the file announced another type than {}", array.data_type()))
}
