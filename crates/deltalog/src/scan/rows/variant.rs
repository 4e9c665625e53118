//! Converts the variants in files to the single representation that a scan returns. (Table features `variantType` and
//! `variantShredding`; Parquet's `VariantEncoding.md` and `VariantShredding.md`.)
//!
//! ```text
//! struct<metadata, value>                                         unchanged
//! struct<metadata, value, typed_value:                            reassembled: all typed parts
//!     struct<id: struct<value, typed_value: long>, …>>            are encoded in `value` again
//! ```
//!
//! - The parts of a variant's struct are found by name, as Parquet's specification requires, because Spark writes
//!   `value` first.
//! - A variant that is present but has no value is the variant null, not a NULL, as the shredding specification
//!   requires.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Fields};
use arrow::error::ArrowError;
use parquet_variant_compute::{VariantArray, unshred_variant};

use super::variant_levels;

const METADATA: &str = "metadata";
pub(super) const VALUE: &str = "value";
const TYPED_VALUE: &str = "typed_value";

/// The encoding of the variant null: a primitive of type 0.
const NULL: &[u8] = &[0];

/// Returns whether a struct in a file may be a variant.
pub(super) fn is_stored_variant(fields: &Fields) -> bool {
    let is_binary = |name: &str| {
        let is_bytes = |data_type: &DataType| {
            matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
        };
        fields.iter().filter(|field| field.name() == name).all(|field| is_bytes(field.data_type()))
    };
    let has = |name: &str| fields.find(name).is_some();
    has(METADATA) && (has(VALUE) || has(TYPED_VALUE)) && is_binary(METADATA) && is_binary(VALUE)
}

/// Returns a file's variants as structs with the fields `parts`, which are `metadata` and `value`.
pub(super) fn assemble(stored: &StructArray, parts: &Fields) -> Result<ArrayRef, ArrowError> {
    let whole = match stored.column_by_name(TYPED_VALUE) {
        Some(_) => {
            variant_levels::check(stored)?;
            Cow::Owned(unshred_variant(&VariantArray::try_new(stored)?)?.into_inner())
        }
        None => Cow::Borrowed(stored),
    };
    let part = |name: &str| {
        let column = whole
            .column_by_name(name)
            .ok_or_else(|| ArrowError::SchemaError(format!("a variant has no field '{name}'")))?;
        cast(column, &DataType::Binary)
    };
    let (metadata, value) = (part(METADATA)?, part(VALUE)?);
    let value = if value.null_count() > 0 { without_nulls(value.as_binary()) } else { value };
    let columns = parts
        .iter()
        .map(|field| if field.name() == METADATA { Arc::clone(&metadata) } else { Arc::clone(&value) })
        .collect();
    Ok(Arc::new(StructArray::try_new_with_length(
        parts.clone(),
        columns,
        stored.nulls().cloned(),
        stored.len(),
    )?))
}

/// Replaces NULL with the variant null in `values`.
fn without_nulls(values: &BinaryArray) -> ArrayRef {
    Arc::new(BinaryArray::from_iter_values(values.iter().map(|value| value.unwrap_or(NULL))))
}
