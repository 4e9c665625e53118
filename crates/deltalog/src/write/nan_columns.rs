//! Finds the floating-point columns of a new file that contain a NaN, and lists them in the footer. Readers need the
//! list, because bounds in Parquet ignore NaN. ([`crate::values::stats::KnownNans`].)
//!
//! - Columns are identified by the number of their leaf column in the file. Columns inside of lists and maps have no
//!   bounds, so they are not searched.

use std::collections::BTreeSet;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::record_batch::RecordBatch;
use parquet::file::metadata::KeyValue;

use crate::scan::leaf_count;
use crate::values::stats::NANS;

/// The columns that contain a NaN.
#[derive(Debug, Default)]
pub(crate) struct NanColumns(BTreeSet<usize>);

impl NanColumns {
    /// Searches additional rows of the file.
    pub(crate) fn add(&mut self, rows: &RecordBatch) {
        let mut leaf = 0;
        for column in rows.columns() {
            self.add_column(column, &mut leaf);
        }
    }

    /// Returns the entry for the footer's key-value metadata.
    pub(crate) fn entry(&self) -> KeyValue {
        let list = self.0.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        KeyValue::new(NANS.to_owned(), format!("[{list}]"))
    }

    /// Searches a column whose first leaf column has the number `leaf`. Advances `leaf` to the number after its last
    /// leaf column.
    fn add_column(&mut self, array: &ArrayRef, leaf: &mut usize) {
        // The loops do not exit early, so they compile to vector instructions. They may find a NaN in the memory of a
        // NULL by mistake. The only effect is that the column then has no maximum in the statistics.
        let has_nan = match array.data_type() {
            DataType::Struct(_) => {
                for column in array.as_struct().columns() {
                    self.add_column(column, leaf);
                }
                return;
            }
            DataType::Float32 if !self.0.contains(leaf) => {
                let values = array.as_primitive::<Float32Type>().values();
                values.iter().fold(false, |found, value| found | value.is_nan())
            }
            DataType::Float64 if !self.0.contains(leaf) => {
                let values = array.as_primitive::<Float64Type>().values();
                values.iter().fold(false, |found, value| found | value.is_nan())
            }
            _ => false,
        };
        if has_nan {
            self.0.insert(*leaf);
        }
        *leaf += leaf_count(array.data_type());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, Float32Array, Float64Array, Int32Array, ListArray, StructArray};

    use super::*;

    #[test]
    fn columns_are_numbered_as_in_the_file() {
        let numbers = |values: [f64; 2]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
        let list = ListArray::from_iter_primitive::<Float64Type, _, _>([Some([Some(f64::NAN)]), None]);
        let inner: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN, 1.0]));
        let nested = StructArray::try_from(vec![
            ("i", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef),
            ("f", inner),
        ])
        .unwrap();
        let batch = |last| {
            let columns: [(&str, ArrayRef); 4] = [
                ("f", numbers([1.0, f64::INFINITY])),
                ("list", Arc::new(list.clone())),
                ("nested", Arc::new(nested.clone())),
                ("last", numbers(last)),
            ];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let mut nans = NanColumns::default();
        assert_eq!(nans.entry().value.as_deref(), Some("[]"));
        nans.add(&batch([0.0, -0.0]));
        assert_eq!(nans.entry().value.as_deref(), Some("[3]"));
        nans.add(&batch([0.0, f64::NAN]));
        assert_eq!(nans.entry().value.as_deref(), Some("[3,4]"));
        assert!(list.value(0).len() == 1);
    }
}
