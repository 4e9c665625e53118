//! Converts columns that are not nested, without losing information.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    DECIMAL256_MAX_PRECISION, DataType, Date32Type, Decimal128Type, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use arrow::util::display::array_value_to_string;

use crate::error::{Error, Result};
use crate::protocol::schema::type_name;
use crate::protocol::text::MICROS_PER_DAY;
use crate::runtime::row_bytes::with_small_offsets;

/// How to convert values of one type to another type.
enum Conversion {
    /// All values are NULL.
    Nulls,
    /// Arrow's cast, which refuses values that it cannot represent.
    Cast,
    /// Arrow's cast, which may round. The result is therefore cast back and compared.
    CastAndBack,
    /// Like [`Conversion::CastAndBack`], for decimals with a negative scale that become integers or floating-point
    /// numbers. Arrow's casts of such decimals overflow or round too early, so the decimals get the scale 0 first.
    WholeAndBack,
    /// Dates become midnight. If the target type has a time zone, it is midnight in UTC, as a Spark session with the
    /// time zone UTC converts dates.
    Midnight,
}

/// Converts `array` to the type `to`. Error messages name the column `path`.
pub(super) fn fit_leaf(array: &ArrayRef, to: &DataType, path: &str) -> Result<ArrayRef> {
    let from = array.data_type();
    let wrong = |value: Option<String>, outcome: &str| {
        let value = value.map_or_else(|| "a value".to_owned(), |value| format!("the value {value}"));
        Error::schema_mismatch(format!(
            "column '{path}' has {value} of type {}, which {outcome} type {}",
            type_name(from),
            type_name(to)
        ))
    };
    let unfit = |error: ArrowError| wrong(None, "does not fit").with_source(error);
    if from == to {
        if let Some(decimals) = array.as_primitive_opt::<Decimal128Type>() {
            decimals.validate_decimal_precision(decimals.precision()).map_err(unfit)?;
        }
        return Ok(Arc::clone(array));
    }
    let lost_of = |array: &ArrayRef, to: &DataType, error: ArrowError| match lost_value(array, to) {
        None => unfit(error),
        value => wrong(value, "does not fit"),
    };
    let lost = |error: ArrowError| lost_of(array, to, error);
    let there_and_back = |array: &ArrayRef| {
        let there = strict_cast(array, to).map_err(|error| lost_of(array, to, error))?;
        let back = strict_cast(&there, array.data_type()).map_err(|error| lost_of(array, to, error))?;
        match distinct(array, &back).map_err(unfit)?.iter().position(|is_other| is_other == Some(true)) {
            Some(row) => Err(wrong(shown(array, row), "would be rounded to fit")),
            None => Ok(there),
        }
    };
    let too_large = |error: ArrowError| unfit(error).with_hint("a column of a row has at most 2 GiB");
    match conversion(from, to) {
        None => Err(misfit(from, to, path)),
        Some(Conversion::Nulls) => Ok(new_null_array(to, array.len())),
        Some(Conversion::Cast) if from.is_binary() || from.is_string() => {
            let array = with_small_offsets(array).map_err(unfit)?;
            strict_cast(&array, to).map_err(too_large)
        }
        Some(Conversion::Cast) => strict_cast(array, to).map_err(lost),
        Some(Conversion::CastAndBack) => there_and_back(array),
        Some(Conversion::WholeAndBack) => {
            let whole = DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0);
            there_and_back(&strict_cast(array, &whole).map_err(|error| lost_of(array, &whole, error))?)
        }
        Some(Conversion::Midnight) => {
            let days = fit_leaf(array, &DataType::Date32, path)?;
            let midnight = |day: i32| {
                i64::from(day).checked_mul(MICROS_PER_DAY).ok_or_else(|| {
                    ArrowError::CastError(format!("the day {day} is beyond the range of timestamps"))
                })
            };
            let micros =
                days.as_primitive::<Date32Type>().try_unary::<_, TimestampMicrosecondType, _>(midnight);
            Ok(Arc::new(micros.map_err(unfit)?.with_data_type(to.clone())))
        }
    }
}

/// Returns the error for data of type `from` that cannot be written to column `path` of type `to`.
pub(super) fn misfit(from: &DataType, to: &DataType, path: &str) -> Error {
    let error = Error::schema_mismatch(format!(
        "column '{path}' has type {} in the table, but type {} in the data",
        type_name(to),
        type_name(from)
    ));
    match (from, to) {
        (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(_))) => {
            error.with_hint("assign a time zone to the column: a time without a zone is not an instant")
        }
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, None)) => {
            error.with_hint(
                "convert the column to a time without a zone: an instant has a different local time in every zone",
            )
        }
        (_, DataType::Null) => {
            error.with_hint("merge the schema, so that the column gets the type of the data")
        }
        _ => error.with_hint(format!("cast the column to {}", type_name(to))),
    }
}

/// Returns the first number or time that has no value of type `to`, or that cannot be cast back, for error messages.
fn lost_value(array: &ArrayRef, to: &DataType) -> Option<String> {
    let back = cast(&cast(array, to).ok()?, array.data_type()).ok()?;
    let row = (0..array.len()).find(|row| array.is_valid(*row) && back.is_null(*row))?;
    shown(array, row)
}

fn shown(array: &ArrayRef, row: usize) -> Option<String> {
    array_value_to_string(array, row).ok()
}

fn strict_cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })
}

fn conversion(from: &DataType, to: &DataType) -> Option<Conversion> {
    use DataType as T;
    let is_text = |t: &T| matches!(t, T::Utf8 | T::LargeUtf8 | T::Utf8View);
    let is_binary = |t: &T| matches!(t, T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_));
    match (from, to) {
        (T::Null, _) => Some(Conversion::Nulls),
        (a, b) if is_text(a) && is_text(b) || is_binary(a) && is_binary(b) => Some(Conversion::Cast),
        (a, b) if a.is_integer() && b.is_integer() => Some(Conversion::Cast),
        (T::Int8 | T::UInt8 | T::Int16 | T::UInt16, T::Float32 | T::Float64)
        | (T::Int32 | T::UInt32, T::Float64) => Some(Conversion::Cast),
        (T::Int32 | T::UInt32 | T::Int64 | T::UInt64, T::Float32) | (T::Int64 | T::UInt64, T::Float64) => {
            Some(Conversion::CastAndBack)
        }
        (T::Float16, T::Float32 | T::Float64) | (T::Float32, T::Float64) => Some(Conversion::Cast),
        (a, b) if a.is_decimal() && b.is_decimal() => Some(Conversion::CastAndBack),
        (a, b) if a.is_integer() && b.is_decimal() => Some(Conversion::Cast),
        (
            T::Decimal32(_, scale)
            | T::Decimal64(_, scale)
            | T::Decimal128(_, scale)
            | T::Decimal256(_, scale),
            b,
        ) if *scale <= 0 && (b.is_integer() || matches!(b, T::Float32 | T::Float64)) => {
            Some(if *scale < 0 { Conversion::WholeAndBack } else { Conversion::CastAndBack })
        }
        (T::Date64, T::Date32) => Some(Conversion::CastAndBack),
        (T::Date32 | T::Date64, T::Timestamp(TimeUnit::Microsecond, _)) => Some(Conversion::Midnight),
        (T::Timestamp(from, a), T::Timestamp(to, b)) if a.is_some() == b.is_some() => {
            Some(if rank(*from) > rank(*to) { Conversion::CastAndBack } else { Conversion::Cast })
        }
        _ => None,
    }
}

/// Returns the rank of a unit of time; finer units have a higher rank.
fn rank(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}
