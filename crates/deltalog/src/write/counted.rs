//! Finds out which identity values an engine has generated, by reading the statistics of the engine's files.
//! (PROTOCOL, "Identity Columns".)
//!
//! Only committed files count, so the values of failed attempts do not move the high water mark.

use parquet::file::metadata::ParquetMetaData;

use super::spec::TableWriteSpec;
use crate::error::{Error, Result};
use crate::protocol::Add;
use crate::values::stats::whole_bounds;

/// Adds the identity values of one file, whose footer is `metadata`, to the high water marks of the write.
///
/// # Errors
/// Returns `CorruptData` if the footer does not show the file's values, or if they are not values that an engine could
/// have generated, for example because they are not beyond the high water mark.
pub(super) fn note(metadata: &ParquetMetaData, add: &Add, spec: &TableWriteSpec) -> Result<()> {
    let identities = &spec.rules().identities;
    for column in identities.by_engine() {
        let place = spec.arrow().index_of(&column).ok();
        let physical = place.and_then(|index| spec.physical_arrow().fields().get(index));
        let bounds = physical.and_then(|field| match add.partition_values.get(field.name()) {
            Some(value) => value.as_deref()?.parse().ok().map(|value: i64| (value, value)),
            None => whole_bounds(metadata, field.name()),
        });
        let (least, greatest) = bounds.ok_or_else(|| {
            Error::corrupt_data(format!(
                "the file has no minimum and maximum of the identity column '{column}'; nothing was committed"
            ))
            .with_hint("let the engine's Parquet writer write the statistics of the column")
        })?;
        identities.note(&column, least, greatest)?;
    }
    Ok(())
}
