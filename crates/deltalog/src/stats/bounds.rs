//! Statistics and partition values as bounds for pruning.
//!
//! - A timestamp's maximum may be cut off to milliseconds (protocol, "Per-file Statistics", footnote), so it
//!   stands for the whole millisecond.
//! - A string's maximum that ends in U+FFFD may be one that an old writer cut off, which took that for the
//!   greatest character. It is not, so it stands for whatever starts as the string does before it.
//! - A count of NULLs or records below 0 is not known.

use crate::error::{Error, Result};
use crate::predicate::{ColumnPath, FileBounds};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use std::sync::Arc;

/// The bounds of a batch of files, from [`super::decode_stats`] and the files' partition values.
#[derive(Debug, Clone)]
pub struct StatsBounds {
    stats: StructArray,
    partition_values: Option<StructArray>,
}

impl StatsBounds {
    /// `partition_values` has one typed column for each partition column, one row for each file.
    ///
    /// # Errors
    /// InvalidArgument if the two are not of the same length.
    pub fn new(stats: StructArray, partition_values: Option<StructArray>) -> Result<Self> {
        match &partition_values {
            Some(values) if values.len() != stats.len() => {
                let message = format!("{} rows of statistics for {} files", stats.len(), values.len());
                Err(Error::invalid_argument(message))
            }
            _ => Ok(Self { stats, partition_values }),
        }
    }

    /// The values of a partition column.
    fn partition(&self, column: &ColumnPath) -> Option<&ArrayRef> {
        match column.parts() {
            [name] => self.partition_values.as_ref()?.column_by_name(name),
            _ => None,
        }
    }

    /// The statistic of one kind of a leaf column.
    fn statistic(&self, kind: &str, column: &ColumnPath) -> Option<&ArrayRef> {
        let mut array = self.stats.column_by_name(kind)?;
        for part in column.parts() {
            array = array.as_struct_opt()?.column_by_name(part)?;
        }
        Some(array)
    }
}

/// `counts`, with NULL for what cannot be a count.
fn counts(counts: &ArrayRef) -> Option<Int64Array> {
    let counts = counts.as_primitive_opt::<Int64Type>()?;
    Some(counts.unary_opt(|count| (count >= 0).then_some(count)))
}

/// Bounds for what the maxima `max` may have been cut off from.
pub(crate) fn widened_max(max: &ArrayRef) -> Option<ArrayRef> {
    match max.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => whole_milliseconds(max),
        DataType::Utf8 => Some(Arc::new(above_old_cuts(max.as_string_opt()?))),
        _ => Some(Arc::clone(max)),
    }
}

/// The last microsecond of the milliseconds that `max` may have been cut off to.
fn whole_milliseconds(max: &ArrayRef) -> Option<ArrayRef> {
    let micros = cast(max, &DataType::Int64).ok()?;
    let widened = micros.as_primitive_opt::<Int64Type>()?.unary::<_, Int64Type>(|v| v.saturating_add(999));
    cast(&widened, max.data_type()).ok()
}

/// `max` with the greatest character for a last U+FFFD.
fn above_old_cuts(max: &StringArray) -> StringArray {
    const OLD_END: char = '\u{fffd}';
    let is_cut = |text: Option<&str>| text.is_some_and(|text| text.ends_with(OLD_END));
    if !max.iter().any(is_cut) {
        return max.clone();
    }
    let widened = |text: &str| match text.strip_suffix(OLD_END) {
        Some(start) => format!("{start}{}", char::MAX),
        None => text.to_owned(),
    };
    max.iter().map(|text| text.map(widened)).collect()
}

impl FileBounds for StatsBounds {
    fn num_files(&self) -> usize {
        self.stats.len()
    }

    fn num_records(&self) -> Option<Int64Array> {
        counts(self.stats.column_by_name("numRecords")?)
    }

    fn min(&self, column: &ColumnPath) -> Option<ArrayRef> {
        self.partition(column).or_else(|| self.statistic("minValues", column)).cloned()
    }

    fn max(&self, column: &ColumnPath) -> Option<ArrayRef> {
        if let Some(values) = self.partition(column) {
            return Some(Arc::clone(values));
        }
        let max = self.statistic("maxValues", column)?;
        widened_max(max)
    }

    fn null_count(&self, column: &ColumnPath) -> Option<Int64Array> {
        let Some(values) = self.partition(column) else {
            return counts(self.statistic("nullCount", column)?);
        };
        let records = self.num_records();
        let count = |file: usize| match &records {
            _ if values.is_valid(file) => Some(0),
            Some(records) if records.is_valid(file) => Some(records.value(file)),
            _ => None,
        };
        Some((0..values.len()).map(count).collect())
    }
}
