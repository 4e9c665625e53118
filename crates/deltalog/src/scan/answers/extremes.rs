//! The minima and maxima of a column for groups of files.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, UInt64Array, make_comparator, new_empty_array};
use arrow::compute::{SortOptions, concat, take};
use arrow::datatypes::DataType;

use super::{MinMax, unfit};
use crate::error::Result;

/// The minima and maxima of the values seen so far, with one value for each batch and group.
pub(super) struct Extremes {
    data_type: DataType,
    min: Extreme,
    max: Extreme,
}

impl Extremes {
    pub(super) fn new(data_type: &DataType) -> Self {
        let extreme = |least| Extreme { least, values: Vec::new(), groups: Vec::new() };
        Self { data_type: data_type.clone(), min: extreme(true), max: extreme(false) }
    }

    /// Adds the bounds of files; files without a group are ignored.
    pub(super) fn add(
        &mut self,
        min: &ArrayRef,
        max: &ArrayRef,
        group: impl Fn(usize) -> Option<usize>,
    ) -> Result<()> {
        self.min.add(min, &group)?;
        self.max.add(max, &group)
    }

    /// Returns the minimum and maximum of each of `groups`; NULL for a group without values.
    pub(super) fn finish(self, groups: &[usize]) -> Result<MinMax> {
        Ok(MinMax {
            min: self.min.finish(&self.data_type, groups)?,
            max: self.max.finish(&self.data_type, groups)?,
        })
    }
}

struct Extreme {
    least: bool,
    values: Vec<ArrayRef>,
    /// The group of each value.
    groups: Vec<usize>,
}

impl Extreme {
    fn add(&mut self, array: &ArrayRef, group: impl Fn(usize) -> Option<usize>) -> Result<()> {
        let best = self.of_groups(array, group)?;
        let rows: UInt64Array = best.values().map(|row| *row as u64).collect();
        self.values.push(take(array, &rows, None).map_err(unfit)?);
        self.groups.extend(best.keys());
        Ok(())
    }

    fn finish(mut self, data_type: &DataType, groups: &[usize]) -> Result<ArrayRef> {
        self.values.push(new_empty_array(data_type));
        let values: Vec<&dyn Array> = self.values.iter().map(AsRef::as_ref).collect();
        let values = concat(&values).map_err(unfit)?;
        let best = self.of_groups(&values, |row| self.groups.get(row).copied())?;
        let rows: UInt64Array = groups.iter().map(|group| best.get(group).map(|row| *row as u64)).collect();
        take(&values, &rows, None).map_err(unfit)
    }

    /// Returns for each group the index of the row with its minimum or maximum.
    fn of_groups(
        &self,
        array: &ArrayRef,
        group: impl Fn(usize) -> Option<usize>,
    ) -> Result<BTreeMap<usize, usize>> {
        let compare = make_comparator(array, array, SortOptions::default()).map_err(unfit)?;
        let better = if self.least { Ordering::Less } else { Ordering::Greater };
        let mut best = BTreeMap::new();
        for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
            if let Some(group) = group(row) {
                let known = best.entry(group).or_insert(row);
                if compare(row, *known) == better {
                    *known = row;
                }
            }
        }
        Ok(best)
    }
}
