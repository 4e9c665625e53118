//! A checksum of rows, by which the rows before and after a rewrite can be compared.
//!
//! - Each row has a hash of all its values, and the checksum is the sum of the hashes, so it does not depend on the
//!   order of the rows. If a row is lost, duplicated or changed, the sum differs, except with a probability of one in
//!   2^64.
//! - Values are hashed in Arrow's row format, in which equal values of a type always have the same bytes. The format
//!   does not support maps, so maps are hashed as lists of their entries.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use crate::error::{Error, Result};

/// The number of rows, and the sum of the rows' hashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowSum {
    pub(super) rows: u64,
    sum: u64,
}

impl RowSum {
    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// `CorruptData` for values that cannot be converted to the row format.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.try_add(batch).map_err(|error| Error::corrupt_data("rows cannot be hashed").with_source(error))
    }

    fn try_add(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns =
            batch.columns().iter().map(without_maps).collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone()));
        if !columns.is_empty() {
            let rows = RowConverter::new(fields.collect())?.convert_columns(&columns)?;
            for row in &rows {
                let mut hasher = DefaultHasher::new();
                hasher.write(row.as_ref());
                self.sum = self.sum.wrapping_add(hasher.finish());
            }
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }
}

/// Replaces maps with lists of their entries, at any depth.
fn without_maps(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !has_maps(values.data_type()) {
        return Ok(Arc::clone(values));
    }
    let element = |values: &ArrayRef| Arc::new(Field::new("element", values.data_type().clone(), true));
    match values.data_type() {
        DataType::Map(..) => {
            let map = values.as_map();
            let entries = without_maps(&(Arc::new(map.entries().clone()) as ArrayRef))?;
            let list =
                ListArray::try_new(element(&entries), map.offsets().clone(), entries, map.nulls().cloned())?;
            Ok(Arc::new(list))
        }
        DataType::Struct(fields) => {
            let columns = values.as_struct().columns().iter().map(without_maps);
            let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
            let fields: Fields = fields
                .iter()
                .zip(&columns)
                .map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true))
                .collect();
            Ok(Arc::new(StructArray::try_new(fields, columns, values.nulls().cloned())?))
        }
        DataType::List(_) => {
            let list = values.as_list::<i32>();
            let items = without_maps(list.values())?;
            let list =
                ListArray::try_new(element(&items), list.offsets().clone(), items, list.nulls().cloned())?;
            Ok(Arc::new(list))
        }
        _ => Ok(Arc::clone(values)),
    }
}

fn has_maps(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_maps(field.data_type())),
        DataType::List(field) => has_maps(field.data_type()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::UInt32Array;
    use arrow::array::{Int64Array, Int64Builder, MapBuilder, StringArray, StringBuilder};
    use arrow::compute::{concat_batches, take_record_batch};

    use super::*;

    /// Returns rows of several types, including nested types with NULLs.
    fn rows(ids: &[i64]) -> RecordBatch {
        let texts = ids.iter().map(|id| (id % 3 > 0).then(|| format!("text {}", id % 7)));
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        for id in ids {
            for key in 0..id % 3 {
                map.keys().append_value(format!("key {key}"));
                map.values().append_option((key > 0).then_some(*id));
            }
            map.append(id % 5 > 0).unwrap();
        }
        let map: ArrayRef = Arc::new(map.finish());
        let nested = StructArray::from(vec![(
            Arc::new(Field::new("map", map.data_type().clone(), true)),
            Arc::clone(&map),
        )]);
        let columns: [(&str, ArrayRef); 4] = [
            ("id", Arc::new(Int64Array::from(ids.to_vec()))),
            ("text", Arc::new(StringArray::from_iter(texts))),
            ("map", map),
            ("nested", Arc::new(nested)),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
    }

    fn sum<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> RowSum {
        let mut sum = RowSum::default();
        batches.into_iter().for_each(|batch| sum.add(batch).unwrap());
        sum
    }

    #[test]
    fn the_order_and_the_batches_of_rows_do_not_matter() {
        let all = rows(&(0..40).collect::<Vec<_>>());
        let turned = take_record_batch(&all, &UInt32Array::from_iter_values((0..40).rev())).unwrap();
        assert_eq!(sum([&all]), sum([&turned]));
        assert_eq!(sum([&all]), sum([&all.slice(0, 13), &all.slice(13, 27)]));
    }

    #[test]
    fn a_row_that_is_lost_doubled_or_changed_is_noticed() {
        let all = rows(&(0..40).collect::<Vec<_>>());
        let with = |more: RecordBatch| concat_batches(&all.schema(), [&all.slice(0, 39), &more]).unwrap();
        for other in [all.slice(0, 39), with(all.slice(0, 1)), with(rows(&[41]))] {
            assert_ne!(sum([&all]), sum([&other]));
        }
        // The two rows differ in a single value inside of a map.
        let (one, other) = (rows(&[4]).project(&[2]).unwrap(), rows(&[7]).project(&[2]).unwrap());
        assert_ne!(sum([&one]), sum([&one.slice(0, 0)]));
        assert_eq!(one.column(0).as_map().value_length(0), other.column(0).as_map().value_length(0));
        let (two, three) = (rows(&[2]).project(&[3]).unwrap(), rows(&[8]).project(&[3]).unwrap());
        assert_ne!(sum([&two]), sum([&three]));
    }
}
