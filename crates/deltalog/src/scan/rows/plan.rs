//! Converts a column of a file to a column of the table.
//!
//! A plan is created once per file from the two types, and then applied to each batch. It also determines
//! which leaf columns of the file are read.
//!
//! - Struct fields are found by the names or ids that the table's schema gives them in files. The parts of lists and
//!   maps are found by their role, because writers give them different names.
//! - At least one leaf column of each struct is read, because only its definition levels show where the struct is
//!   NULL.
//! - A void field is NULL in every row, and is not looked up in the file.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use arrow::error::ArrowError;

use super::columns::FileFields;
use super::variant::{assemble, is_stored_variant};
use super::views::view_of;
use crate::error::{Error, Result};
use crate::protocol::schema::is_variant;
use crate::runtime::by_name::{ByName, names_of};
use crate::values::calendar::{FileCalendar, Rebase};
use crate::values::conversion::{Misfit, convert, is_convertible};

/// The conversion of an array from the file's type to the table's type.
#[derive(Debug, Clone)]
pub(super) enum Plan {
    /// All values are NULL.
    Nulls(DataType),
    /// A leaf column, converted to this type.
    Convert(DataType),
    /// A leaf column with dates or timestamps in the old calendar.
    Rebase(DataType, Rebase),
    /// For each field of a struct, its name in the file and its plan; `None` if the file does not have the field.
    Struct(Fields, Vec<Option<(String, Plan)>>),
    List(FieldRef, Box<Plan>),
    /// A variant, shredded or not, as a struct of these fields.
    Variant(Fields),
    /// The entries field of a map, the plans of its keys and values, and whether the keys are sorted.
    Map(FieldRef, Box<[Plan; 2]>, bool),
}

impl Plan {
    /// Creates the plan that reads a column with the file's type `file` as the table's `field`. Adds the leaf columns
    /// that must be read to `leaves`.
    ///
    /// `in_files` is `field` with the names and ids that it has in files. `first_leaf` is the index of the column's
    /// first leaf column. `name` is used in messages.
    ///
    /// # Errors
    /// `CorruptData` if the types are incompatible, or if a name is ambiguous.
    pub(super) fn new(
        [field, in_files]: [&FieldRef; 2],
        (file, calendar): (&DataType, &FileCalendar),
        first_leaf: usize,
        name: &str,
        leaves: &mut Vec<usize>,
    ) -> Result<Self> {
        let table = field.data_type();
        let mismatch = || {
            Error::corrupt_data(format!(
                "the column '{name}' is of type {file} in the file and cannot be read as {table}"
            ))
        };
        match (table, in_files.data_type(), file) {
            (DataType::Struct(parts), _, DataType::Struct(in_file)) if is_variant(field) => {
                // A value may be spread over all parts of a shredded variant, so all parts are read.
                leaves.extend(first_leaf..first_leaf + leaf_count(file));
                is_stored_variant(in_file).then(|| Self::Variant(parts.clone())).ok_or_else(mismatch)
            }
            (DataType::Struct(fields), DataType::Struct(names), DataType::Struct(in_file)) => {
                Self::of_struct([fields, names], (in_file, calendar), first_leaf, name, leaves)
            }
            (DataType::List(element), DataType::List(names), DataType::List(in_file)) => {
                let inner = Self::new(
                    [element, names],
                    (in_file.data_type(), calendar),
                    first_leaf,
                    &format!("{name}.element"),
                    leaves,
                )?;
                Ok(Self::List(Arc::clone(element), Box::new(inner)))
            }
            (DataType::Map(entries, sorted), DataType::Map(names, _), DataType::Map(in_file, _)) => {
                let [key, value] = pair(entries).ok_or_else(mismatch)?;
                let [key_names, value_names] = pair(names).ok_or_else(mismatch)?;
                let [key_in_file, value_in_file] = pair(in_file).ok_or_else(mismatch)?;
                let after_key = first_leaf + leaf_count(key_in_file.data_type());
                let key = Self::new(
                    [key, key_names],
                    (key_in_file.data_type(), calendar),
                    first_leaf,
                    &format!("{name}.key"),
                    leaves,
                )?;
                let value = Self::new(
                    [value, value_names],
                    (value_in_file.data_type(), calendar),
                    after_key,
                    &format!("{name}.value"),
                    leaves,
                )?;
                Ok(Self::Map(Arc::clone(entries), Box::new([key, value]), *sorted))
            }
            (_, _, DataType::Null) => {
                leaves.push(first_leaf);
                Ok(Self::Nulls(table.clone()))
            }
            _ if !table.is_nested() && !file.is_nested() && is_convertible(file, table) => {
                leaves.push(first_leaf);
                Ok(match calendar.rebase(first_leaf, file, table) {
                    Some(rebase) => Self::Rebase(table.clone(), rebase),
                    None => Self::Convert(table.clone()),
                })
            }
            _ => Err(mismatch()),
        }
    }

    fn of_struct(
        [fields, in_files]: [&Fields; 2],
        (in_file, calendar): (&Fields, &FileCalendar),
        first_leaf: usize,
        name: &str,
        leaves: &mut Vec<usize>,
    ) -> Result<Self> {
        let before = leaves.len();
        let mut children = Vec::with_capacity(fields.len());
        let in_file = FileFields::new(in_file);
        for (field, names) in fields.iter().zip(in_files) {
            let name = format!("{name}.{}", field.name());
            let is_stored = *field.data_type() != DataType::Null;
            children.push(match is_stored.then(|| in_file.find(names, &name)).transpose()?.flatten() {
                Some((found, leaf)) => {
                    let file = (found.data_type(), calendar);
                    let plan = Self::new([field, names], file, first_leaf + leaf, &name, leaves)?;
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

    /// Returns the type with which to read a column of type `file`. It has views wherever the table's type has them.
    pub(super) fn read_as(&self, file: &DataType) -> DataType {
        let inner = |field: &FieldRef, plan: &Self| {
            Arc::new(Field::clone(field).with_data_type(plan.read_as(field.data_type())))
        };
        match (self, file) {
            (Self::Convert(table), file) if *table == view_of(file) => table.clone(),
            (Self::Struct(_, children), DataType::Struct(fields)) => {
                let planned: Vec<&(String, Self)> = children.iter().flatten().collect();
                let by_name = ByName::new(planned.len(), |at| Some(planned.get(at)?.0.as_str()));
                let plan_of = |field: &FieldRef| planned.get(by_name.find(field.name())?);
                DataType::Struct(
                    fields
                        .iter()
                        .map(|field| {
                            plan_of(field).map_or_else(|| Arc::clone(field), |(_, plan)| inner(field, plan))
                        })
                        .collect(),
                )
            }
            (Self::List(_, plan), DataType::List(element)) => DataType::List(inner(element, plan)),
            (Self::Map(_, plans, _), DataType::Map(entries, sorted)) => match (pair(entries), plans.as_ref())
            {
                (Some([key, value]), [of_key, of_value]) => {
                    let fields = Fields::from(vec![inner(key, of_key), inner(value, of_value)]);
                    DataType::Map(
                        Arc::new(Field::clone(entries).with_data_type(DataType::Struct(fields))),
                        *sorted,
                    )
                }
                (None, _) => file.clone(),
            },
            _ => file.clone(),
        }
    }

    /// Returns whether a column of type `file`, or a part of it, is a number or a date with a type that differs from
    /// the table's.
    pub(super) fn converts_numbers(&self, file: &DataType) -> bool {
        match (self, file) {
            (Self::Convert(table) | Self::Rebase(table, _), file) => {
                (file.is_numeric() || *file == DataType::Date32) && table != file
            }
            (Self::Struct(_, children), DataType::Struct(fields)) => {
                let by_name = names_of(fields);
                children.iter().flatten().any(|(name, plan)| {
                    let in_file = by_name.find(name).and_then(|at| fields.get(at));
                    in_file.is_some_and(|field| plan.converts_numbers(field.data_type()))
                })
            }
            (Self::List(_, plan), DataType::List(element)) => plan.converts_numbers(element.data_type()),
            (Self::Map(_, plans, _), DataType::Map(entries, _)) => match (pair(entries), plans.as_ref()) {
                (Some([key, value]), [of_key, of_value]) => {
                    of_key.converts_numbers(key.data_type()) || of_value.converts_numbers(value.data_type())
                }
                (None, _) => false,
            },
            _ => false,
        }
    }

    /// Converts `array` to the table's type.
    ///
    /// # Errors
    /// Fails if a value does not fit, or is NULL where the table does not allow NULL.
    pub(super) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Nulls(data_type) => Ok(new_null_array(data_type, array.len())),
            Self::Convert(data_type) => convert(array, data_type, Misfit::Error),
            Self::Rebase(data_type, rebase @ Rebase::Dates) => {
                convert(&rebase.apply(array)?, data_type, Misfit::Error)
            }
            Self::Rebase(data_type, rebase) => rebase.apply(&convert(array, data_type, Misfit::Error)?),
            Self::Struct(fields, children) => {
                let found = array.as_struct_opt().ok_or_else(|| unexpected(array))?;
                let mut arrays = Vec::with_capacity(children.len());
                let by_name = names_of(found.fields());
                for (field, child) in fields.iter().zip(children) {
                    arrays.push(match child {
                        Some((name, plan)) => {
                            let column = by_name.find(name).and_then(|at| found.columns().get(at));
                            plan.apply(column.ok_or_else(|| unexpected(array))?)?
                        }
                        None => new_null_array(field.data_type(), found.len()),
                    });
                }
                let nulls = found.nulls().cloned();
                Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, found.len())?))
            }
            Self::Variant(parts) => assemble(array.as_struct_opt().ok_or_else(|| unexpected(array))?, parts),
            Self::List(element, plan) => {
                let found = array.as_list_opt::<i32>().ok_or_else(|| unexpected(array))?;
                let values = plan.apply(found.values())?;
                Ok(Arc::new(ListArray::try_new(
                    Arc::clone(element),
                    found.offsets().clone(),
                    values,
                    found.nulls().cloned(),
                )?))
            }
            Self::Map(entries, plans, sorted) => {
                let found = array.as_map_opt().ok_or_else(|| unexpected(array))?;
                let DataType::Struct(fields) = entries.data_type() else { return Err(unexpected(array)) };
                let [key, value] = plans.as_ref();
                let columns = vec![key.apply(found.keys())?, value.apply(found.values())?];
                let pairs =
                    StructArray::try_new_with_length(fields.clone(), columns, None, found.keys().len())?;
                let (offsets, nulls) = (found.offsets().clone(), found.nulls().cloned());
                Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *sorted)?))
            }
        }
    }
}

/// Returns the number of leaf columns that a column of type `data_type` has in a Parquet file.
pub(crate) fn leaf_count(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| leaf_count(field.data_type())).sum(),
        DataType::List(inner) | DataType::Map(inner, _) => leaf_count(inner.data_type()),
        _ => 1,
    }
}

/// Returns the key field and the value field of a map's entries.
fn pair(entries: &FieldRef) -> Option<[&FieldRef; 2]> {
    match entries.data_type() {
        DataType::Struct(fields) => <[_; 2]>::try_from(fields.iter().collect::<Vec<_>>()).ok(),
        _ => None,
    }
}

fn unexpected(array: &ArrayRef) -> ArrowError {
    ArrowError::SchemaError(format!(
        "an array has the type {}, unlike in the file's schema",
        array.data_type()
    ))
}
