//! Converts the columns of a checkpoint to the types of [`crate::log::replay::FileColumn`]. Other writers name the
//! entries of maps differently, use other integer widths, or leave out columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};

use crate::error::{Error, Result};

/// Returns the child `field` of an action, converted to the type of `field`. Returns nulls if the checkpoint lacks the
/// child.
pub(super) fn normalized(action: &StructArray, field: &Field) -> Result<ArrayRef> {
    let Some(column) = action.column_by_name(field.name()) else {
        return Ok(new_null_array(field.data_type(), action.len()));
    };
    to_type(column, field.data_type()).map_err(|error| {
        error.with_hint(format!(
            "column '{}' of the checkpoint has a type that the protocol does not define",
            field.name()
        ))
    })
}

fn to_type(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if column.data_type() == wanted {
        return Ok(Arc::clone(column));
    }
    let bad =
        || Error::corrupt_log(format!("a column has the type {} instead of {wanted}", column.data_type()));
    match wanted {
        DataType::Map(entries, sorted) => {
            let map = column.as_map_opt().ok_or_else(bad)?;
            let DataType::Struct(fields) = entries.data_type() else { return Err(bad()) };
            let [key, value] = fields.as_ref() else { return Err(bad()) };
            let children =
                vec![to_type(map.keys(), key.data_type())?, to_type(map.values(), value.data_type())?];
            let rows = StructArray::try_new(fields.clone(), children, None)
                .map_err(|error| bad().with_source(error))?;
            let map = MapArray::try_new(
                Arc::clone(entries),
                map.offsets().clone(),
                rows,
                map.nulls().cloned(),
                *sorted,
            );
            Ok(Arc::new(map.map_err(|error| bad().with_source(error))?))
        }
        DataType::Struct(fields) => {
            let rows = column.as_struct_opt().ok_or_else(bad)?;
            let children = fields.iter().map(|field| normalized(rows, field)).collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(
                StructArray::try_new(fields.clone(), children, rows.nulls().cloned())
                    .map_err(|error| bad().with_source(error))?,
            ))
        }
        _ => cast(column, wanted).map_err(|error| bad().with_source(error)),
    }
}
