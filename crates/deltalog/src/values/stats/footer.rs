//! Returns the statistics of one column of a whole file, from the file's Parquet footer.
//!
//! - A statistic is only used if each row group either has it or has no values that it would cover.
//! - The deprecated statistics `min` and `max`, and statistics with an undefined column order, are only trusted for
//!   numbers, whose order was always well defined, and never for INT96.
//! - The maximum of a floating-point column is only used if the column certainly has no NaN ([`super::footer_nan`]).

use super::footer_nan::KnownNans;
use super::json::{Extreme, Side};
use crate::values::calendar::may_be_old;
use arrow::datatypes::DataType;
use parquet::basic::{ColumnOrder, ConvertedType, LogicalType, TimeUnit, Type};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;
use std::collections::HashMap;

/// The columns of a file, by path.
pub(super) struct FooterColumns<'a> {
    metadata: &'a ParquetMetaData,
    by_path: HashMap<&'a [String], usize>,
    /// Whether the file may use Spark's old calendar.
    is_old: bool,
    nans: KnownNans,
}

impl<'a> FooterColumns<'a> {
    pub(super) fn of(metadata: &'a ParquetMetaData) -> Self {
        let columns = metadata.file_metadata().schema_descr().columns().iter().enumerate();
        // If several columns have the same path, the first one is used.
        let by_path = columns.rev().map(|(index, column)| (column.path().parts(), index)).collect();
        Self { metadata, by_path, is_old: may_be_old(metadata), nans: KnownNans::of(metadata) }
    }

    /// Returns the column at `path`, if the file has it and it is not inside a list or map.
    pub(super) fn find(&self, path: &[String]) -> Option<FooterColumn<'_>> {
        let index = *self.by_path.get(path)?;
        let descriptor = self.metadata.file_metadata().schema_descr().columns().get(index)?.as_ref();
        let Self { metadata, is_old, nans, .. } = self;
        let column = FooterColumn { metadata, index, descriptor, is_old: *is_old, nans };
        (descriptor.max_rep_level() == 0).then_some(column)
    }
}

/// One column of a file.
pub(super) struct FooterColumn<'a> {
    metadata: &'a ParquetMetaData,
    index: usize,
    descriptor: &'a ColumnDescriptor,
    is_old: bool,
    nans: &'a KnownNans,
}

impl<'a> FooterColumn<'a> {
    /// Returns, for each row group that has rows, the number of rows and the statistics.
    fn row_groups(&self) -> impl Iterator<Item = (i64, Option<&'a Statistics>)> {
        let index = self.index;
        let groups = self.metadata.row_groups().iter().filter(|group| group.num_rows() > 0);
        groups.map(move |group| {
            (group.num_rows(), group.columns().get(index).and_then(|column| column.statistics()))
        })
    }

    /// Returns the number of NULLs among `rows` rows. An impossible number is treated as unknown.
    fn nulls(&self, rows: i64, statistics: Option<&Statistics>) -> Option<i64> {
        if self.descriptor.max_def_level() == 0 {
            return Some(0);
        }
        i64::try_from(statistics?.null_count_opt()?).ok().filter(|nulls| *nulls <= rows)
    }

    /// Returns the number of rows in which the column is NULL, including rows in which a struct around it is NULL.
    pub(super) fn null_count(&self) -> Option<i64> {
        self.row_groups()
            .try_fold(0i64, |sum, (rows, statistics)| sum.checked_add(self.nulls(rows, statistics)?))
    }

    /// Returns the least or the greatest value, converted to the type `data_type`.
    pub(super) fn extreme(&self, data_type: &DataType, side: Side) -> Option<Extreme> {
        let mut found: Option<Extreme> = None;
        for (rows, statistics) in self.row_groups() {
            if self.nulls(rows, statistics) == Some(rows) {
                continue;
            }
            let next = self.value(statistics?, data_type, side)?;
            found = Some(match found {
                None => next,
                Some(found) => more_extreme(found, next, side)?,
            });
        }
        found
    }

    fn value(&self, statistics: &Statistics, data_type: &DataType, side: Side) -> Option<Extreme> {
        macro_rules! pick {
            ($values:expr) => {
                match side {
                    Side::Min => $values.min_opt(),
                    Side::Max => $values.max_opt(),
                }
            };
        }
        let whole = match statistics {
            Statistics::Int32(values) => Some(i64::from(*pick!(values)?)),
            Statistics::Int64(values) => Some(*pick!(values)?),
            _ => None,
        };
        match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 if self.is_signed() => {
                whole.map(Extreme::Integer)
            }
            // Bounds in the old calendar are not bounds of the converted values.
            DataType::Date32 | DataType::Timestamp(..) if self.is_old => None,
            DataType::Date32 => whole.map(Extreme::Integer),
            DataType::Timestamp(..) => self.micros(whole?, side).map(Extreme::Integer),
            DataType::Float32 | DataType::Float64 => {
                let value = match statistics {
                    Statistics::Float(values) => f64::from(*pick!(values)?),
                    Statistics::Double(values) => *pick!(values)?,
                    _ => return None,
                };
                let is_bound = match side {
                    Side::Min => !value.is_nan(),
                    Side::Max => !value.is_nan() && self.nans.has_none(self.index, true),
                };
                is_bound.then_some(Extreme::Float(value))
            }
            DataType::Decimal128(_, scale) if self.descriptor.type_scale() == i32::from(*scale) => {
                match whole {
                    Some(whole) => self.is_signed().then_some(Extreme::Decimal(whole.into())),
                    None => big_endian(self.ordered_bytes(statistics, side)?).map(Extreme::Decimal),
                }
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let text = std::str::from_utf8(self.ordered_bytes(statistics, side)?).ok()?;
                Some(Extreme::Text(text.to_owned()))
            }
            _ => None,
        }
    }

    /// Returns the bytes of a minimum or maximum, if the writer has computed it with the order of the column's type.
    fn ordered_bytes<'s>(&self, statistics: &'s Statistics, side: Side) -> Option<&'s [u8]> {
        let is_bytes = matches!(statistics.physical_type(), Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY);
        let order = self.metadata.file_metadata().column_orders()?.get(self.index)?;
        let is_ordered =
            matches!(order, ColumnOrder::TYPE_DEFINED_ORDER(_)) && !statistics.is_min_max_deprecated();
        if !is_bytes || !is_ordered {
            return None;
        }
        match side {
            Side::Min => statistics.min_bytes_opt(),
            Side::Max => statistics.max_bytes_opt(),
        }
    }

    fn is_signed(&self) -> bool {
        use ConvertedType as C;
        let unsigned =
            matches!(self.descriptor.converted_type(), C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64);
        let logical = self.descriptor.logical_type_ref();
        !unsigned && !matches!(logical, Some(LogicalType::Integer(integer)) if !integer.is_signed)
    }

    /// Converts a timestamp of the file to microseconds. It is rounded down for a minimum and up for a maximum.
    fn micros(&self, value: i64, side: Side) -> Option<i64> {
        let unit = match (self.descriptor.logical_type_ref(), self.descriptor.converted_type()) {
            (Some(LogicalType::Timestamp(timestamp)), _) => timestamp.unit,
            (None, ConvertedType::TIMESTAMP_MICROS) => TimeUnit::MICROS,
            (None, ConvertedType::TIMESTAMP_MILLIS) => TimeUnit::MILLIS,
            _ => return None,
        };
        match unit {
            TimeUnit::MILLIS => value.checked_mul(1000),
            TimeUnit::MICROS => Some(value),
            TimeUnit::NANOS if side == Side::Min => Some(value.div_euclid(1000)),
            TimeUnit::NANOS => Some(value.checked_add(999)?.div_euclid(1000)),
        }
    }
}

/// Returns the least and the greatest value of a top-level column of 64-bit integers without NULLs.
pub(crate) fn whole_bounds(metadata: &ParquetMetaData, column: &str) -> Option<(i64, i64)> {
    let columns = FooterColumns::of(metadata);
    let column = columns.find(&[column.to_owned()])?;
    if column.null_count()? != 0 {
        return None;
    }
    let bound = |side| match column.extreme(&DataType::Int64, side)? {
        Extreme::Integer(value) => Some(value),
        _ => None,
    };
    Some((bound(Side::Min)?, bound(Side::Max)?))
}

/// Returns the lesser of two values for `Side::Min`, the greater for `Side::Max`.
fn more_extreme(a: Extreme, b: Extreme, side: Side) -> Option<Extreme> {
    let order = match (&a, &b) {
        (Extreme::Integer(a), Extreme::Integer(b)) => a.cmp(b),
        (Extreme::Decimal(a), Extreme::Decimal(b)) => a.cmp(b),
        (Extreme::Float(a), Extreme::Float(b)) => a.partial_cmp(b)?,
        (Extreme::Text(a), Extreme::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => return None,
    };
    let keep_first = if side == Side::Min { order.is_le() } else { order.is_ge() };
    Some(if keep_first { a } else { b })
}

/// Decodes a big-endian two's complement number of at most 16 bytes.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first()? & 0x80 != 0;
    let mut whole = [if negative { 0xff } else { 0 }; 16];
    whole.get_mut(16usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(whole))
}
