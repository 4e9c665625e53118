//! Converts variants to the representation in which they are stored: a struct of `metadata` and `value`, never
//! shredded into parts. (Table feature `variantType`; Parquet's `VariantEncoding.md`.)
//!
//! - The data must also have this representation. A shredded variant is refused, because its parts would be lost.
//! - Only two checks distinguish variants from other pairs of binary values: the version in the metadata, and the
//!   presence of a value. As with other writers, the encoded values themselves are stored unchanged.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Fields};

use super::fit::fit_struct;
use crate::error::{Error, Result};

/// The only version of the variant encoding. It is stored in the low bits of the first byte of the metadata.
const VERSION: u8 = 1;
const VERSION_BITS: u8 = 0x0f;

/// Converts `array` to variants with the fields `parts`.
///
/// # Errors
/// Returns `SchemaMismatch`, which names the column.
pub(super) fn fit_variant(array: &ArrayRef, parts: &Fields, path: &str) -> Result<ArrayRef> {
    if let DataType::Struct(fields) = array.data_type()
        && fields.iter().any(|field| field.name().eq_ignore_ascii_case("typed_value"))
    {
        return Err(Error::schema_mismatch(format!(
            "column '{path}' has shredded variants, which cannot be written"
        ))
        .with_hint("reassemble the variants: a struct of the binary fields 'metadata' and 'value'"));
    }
    let fitted = fit_struct(array, parts, path)?;
    let variants = fitted.as_struct();
    let bytes = |name: &str| variants.column_by_name(name).and_then(|column| column.as_binary_opt::<i32>());
    let (Some(metadata), Some(values)) = (bytes("metadata"), bytes("value")) else {
        return Err(Error::schema_mismatch(format!("column '{path}' is not a variant in the table")));
    };
    for row in (0..variants.len()).filter(|row| variants.is_valid(*row)) {
        let version = metadata.value(row).first().map(|header| header & VERSION_BITS);
        if version != Some(VERSION) || values.value(row).is_empty() {
            return Err(Error::schema_mismatch(format!(
                "column '{path}' is a variant in the table, and row {row} of the data is not: its metadata must \
                 have version {VERSION}, and its value must not be empty"
            )));
        }
    }
    Ok(fitted)
}
