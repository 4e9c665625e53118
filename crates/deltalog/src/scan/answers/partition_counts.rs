//! The number of rows in each partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::row::{RowConverter, SortField};

use super::extremes::Extremes;
use super::{too_many, unfit};
use crate::error::Result;
use crate::expression::predicate::ColumnPath;
use crate::scan::partitions::PartitionColumns;

/// The number of rows for each combination of partition values.
pub(super) struct PartitionCounts {
    fields: Vec<FieldRef>,
    converter: RowConverter,
    /// The number of each partition, in order of appearance. The keys are the partition values, encoded as bytes that
    /// sort like the values.
    numbers: BTreeMap<Box<[u8]>, usize>,
    counts: Vec<u64>,
}

impl PartitionCounts {
    pub(super) fn new(partitions: &PartitionColumns) -> Result<Self> {
        let fields: Vec<FieldRef> = partitions.fields().iter().cloned().collect();
        let sorts = fields.iter().map(|field| SortField::new(field.data_type().clone())).collect();
        let converter = RowConverter::new(sorts).map_err(unfit)?;
        Ok(Self { fields, converter, numbers: BTreeMap::new(), counts: Vec::new() })
    }

    /// Adds the row counts of files. Returns for each file the number that identifies its partition, or `None` for a
    /// file without rows.
    pub(super) fn add(&mut self, values: &[ArrayRef], rows: &[u64]) -> Result<Vec<Option<usize>>> {
        let keys = if values.is_empty() {
            None
        } else {
            Some(self.converter.convert_columns(values).map_err(unfit)?)
        };
        let mut groups = vec![None; rows.len()];
        for ((row, more), group) in
            rows.iter().enumerate().zip(&mut groups).filter(|((_, more), _)| **more > 0)
        {
            let key = keys.as_ref().map(|keys| keys.row(row));
            let key = key.as_ref().map_or(&[][..], AsRef::as_ref);
            let number = match self.numbers.get(key) {
                Some(number) => *number,
                None => {
                    self.numbers.insert(key.into(), self.counts.len());
                    self.counts.push(0);
                    self.counts.len() - 1
                }
            };
            if let Some(sum) = self.counts.get_mut(number) {
                *sum = sum.checked_add(*more).ok_or_else(too_many)?;
            }
            *group = Some(number);
        }
        Ok(groups)
    }

    pub(super) fn finish(mut self) -> Result<RecordBatch> {
        if self.fields.is_empty() && self.counts.is_empty() {
            self.numbers.insert(Box::default(), 0);
            self.counts.push(0);
        }
        self.finish_with(&[], Vec::new())
    }

    pub(super) fn finish_with(
        mut self,
        columns: &[ColumnPath],
        extremes: Vec<Extremes>,
    ) -> Result<RecordBatch> {
        let order: Vec<usize> = self.numbers.values().copied().collect();
        let mut arrays = Vec::new();
        if !self.fields.is_empty() {
            let parser = self.converter.parser();
            arrays = self
                .converter
                .convert_rows(self.numbers.keys().map(|key| parser.parse(key)))
                .map_err(unfit)?;
        }
        let counts = order.iter().filter_map(|number| self.counts.get(*number));
        let counts =
            counts.map(|count| i64::try_from(*count).map_err(|_| too_many())).collect::<Result<Vec<_>>>()?;
        arrays.push(Arc::new(Int64Array::from(counts)));
        self.fields.push(Arc::new(Field::new("count", DataType::Int64, false)));
        for (column, extremes) in columns.iter().zip(extremes) {
            let found = extremes.finish(&order)?;
            for (what, array) in [("min", found.min), ("max", found.max)] {
                self.fields.push(Arc::new(Field::new(
                    format!("{what}({})", column.parts().join(".")),
                    array.data_type().clone(),
                    true,
                )));
                arrays.push(array);
            }
        }
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), arrays).map_err(unfit)
    }
}
