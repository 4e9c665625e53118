//! Computes a term for the files in which all columns that it reads are constant, such as partition columns.

use super::bound::{BoundColumn, Source};
use super::compute::is_true;
use super::filter::Rows;
use super::prune::Pruner;
use super::values::as_type;
use crate::error::Error;
use arrow::array::{ArrayRef, BooleanArray, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::eq;
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use std::rc::Rc;

/// The values of a computed term, for the files in which it has only one value.
pub(super) struct Constants {
    /// The value for each file; NULL for files in which the term may have several values.
    pub(super) values: ArrayRef,
    pub(super) is_constant: BooleanBuffer,
}

impl Pruner<'_> {
    /// Computes a term for the files in which all of its columns are constant.
    pub(super) fn constants(&mut self, term: usize) -> Option<Rc<Constants>> {
        if let Some(known) = self.constants.get(&term) {
            return known.clone();
        }
        let computed = self.compute(term).map(Rc::new);
        self.constants.insert(term, computed.clone());
        computed
    }

    fn compute(&self, term: usize) -> Option<Constants> {
        let arena = &self.predicate.arena;
        let Source::Computed { value, .. } = &arena.terms.get(term)?.source else { return None };
        let columns = arena.columns_of(|visit| value.visit(visit));
        let mut is_constant = BooleanBuffer::new_set(self.files);
        for column in &columns {
            is_constant = &is_constant & &self.only_values(column);
        }
        (is_constant.count_set_bits() > 0).then_some(())?;
        let others = !&is_constant;
        let rows = Rows::new(arena, self.files, |column| {
            let absent = &self.only_nulls_of(column) | &others;
            match self.bounds.min(&column.path).filter(|min| min.len() == self.files) {
                Some(min) => nullif(&min, &BooleanArray::new(absent, None)).map_err(not_computed),
                None => Ok(new_null_array(&column.data_type, self.files)),
            }
        });
        // An error is ignored here. If rows of a file need the value, evaluating them raises the same error.
        let values = rows.value(value, &is_constant).ok()?;
        let values = nullif(&values, &BooleanArray::new(others.clone(), None)).ok()?;
        Some(Constants { values, is_constant })
    }

    /// Returns the files in which the column certainly has the same value in all rows, or only NULLs.
    fn only_values(&self, column: &BoundColumn) -> BooleanBuffer {
        let only_nulls = self.only_nulls_of(column);
        // The bounds of a floating-point column do not show that it has only one value: it may have NaNs outside of its
        // bounds, and zeros of both signs.
        let is_float = matches!(column.data_type, DataType::Float32 | DataType::Float64);
        let bounds = |bound: Option<ArrayRef>| {
            let bound = bound.filter(|bound| bound.len() == self.files && !is_float)?;
            as_type(&bound, &column.data_type).ok()
        };
        let both = bounds(self.bounds.min(&column.path)).zip(bounds(self.bounds.max(&column.path)));
        let Some(same) = both.and_then(|(min, max)| eq(&min, &max).ok()) else { return only_nulls };
        &only_nulls | &(&is_true(&same) & &self.no_nulls_of(column))
    }
}

fn not_computed(error: arrow::error::ArrowError) -> Error {
    Error::invalid_argument("the bounds of a column cannot be used").with_source(error)
}
