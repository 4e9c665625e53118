//! Partition values in Catalyst's form.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use deltalog::{Error, Result};

use super::packer::{blob, text};

/// Packs a row of partition values: for each column u8 present, and if 1 the value.
pub(super) fn pack_partition_row(columns: &[ArrayRef], row: usize, bytes: &mut Vec<u8>) -> Result<()> {
    for column in columns {
        if column.is_null(row) || *column.data_type() == DataType::Null {
            bytes.push(0);
            continue;
        }
        bytes.push(1);
        match column.data_type() {
            DataType::Boolean => bytes.push(u8::from(column.as_boolean().value(row))),
            DataType::Int8 => {
                bytes.extend(i32::from(column.as_primitive::<Int8Type>().value(row)).to_be_bytes())
            }
            DataType::Int16 => {
                bytes.extend(i32::from(column.as_primitive::<Int16Type>().value(row)).to_be_bytes())
            }
            DataType::Int32 => bytes.extend(column.as_primitive::<Int32Type>().value(row).to_be_bytes()),
            DataType::Date32 => bytes.extend(column.as_primitive::<Date32Type>().value(row).to_be_bytes()),
            DataType::Int64 => bytes.extend(column.as_primitive::<Int64Type>().value(row).to_be_bytes()),
            DataType::Timestamp(..) => {
                bytes.extend(column.as_primitive::<TimestampMicrosecondType>().value(row).to_be_bytes())
            }
            DataType::Float32 => bytes.extend(column.as_primitive::<Float32Type>().value(row).to_be_bytes()),
            DataType::Float64 => bytes.extend(column.as_primitive::<Float64Type>().value(row).to_be_bytes()),
            DataType::Decimal128(..) => {
                blob(&column.as_primitive::<Decimal128Type>().value(row).to_be_bytes(), bytes)?
            }
            DataType::Utf8 => text(column.as_string::<i32>().value(row), bytes)?,
            DataType::Binary => blob(column.as_binary::<i32>().value(row), bytes)?,
            other => {
                return Err(Error::unsupported(format!(
                    "a partition column of the type {other} cannot be handed to Spark yet"
                )));
            }
        }
    }
    Ok(())
}
