//! Exact evaluation of a predicate on rows, in SQL's three-valued logic.

use super::ast::{ColumnPath, CompareOp};
use super::bound::{Bound, BoundPredicate};
use super::function::Purpose;
use super::values::{Datum, Domain, Values, as_type};
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StructArray, make_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{and_kleene, or_kleene};
use std::cmp::Ordering;

/// Returns for each row of `batch` whether the predicate is true, false or NULL. Only rows with true are
/// selected.
///
/// The columns are found in `batch` by name.
///
/// # Errors
/// InvalidArgument if a part of the predicate was not understood. SchemaMismatch if `batch` lacks a column,
/// or if the column's type cannot be cast to the type that the predicate was bound with.
pub fn filter_mask(predicate: &BoundPredicate, batch: &RecordBatch) -> Result<BooleanArray> {
    Filter { predicate, batch }.mask(&predicate.root)
}

struct Filter<'a> {
    predicate: &'a BoundPredicate,
    batch: &'a RecordBatch,
}

impl Filter<'_> {
    fn mask(&self, bound: &Bound) -> Result<BooleanArray> {
        let rows = self.batch.num_rows();
        Ok(match bound {
            Bound::Constant(Some(truth)) => BooleanArray::from(vec![*truth; rows]),
            Bound::Constant(None) => BooleanArray::new_null(rows),
            Bound::Unknown(why) => {
                return Err(Error::invalid_argument(format!("the predicate cannot be evaluated: {why}")));
            }
            Bound::UnlessNull { column, value } => {
                let truth =
                    if *value { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) };
                BooleanArray::new(truth, self.column(*column)?.logical_nulls())
            }
            Bound::IsNull(column) => {
                let nulls = self.column(*column)?.logical_nulls();
                BooleanArray::new(
                    nulls.map_or_else(|| BooleanBuffer::new_unset(rows), |nulls| !nulls.inner()),
                    None,
                )
            }
            Bound::Boolean(column) => {
                self.values(*column, Domain::Boolean)?.compared(CompareOp::Eq, &Datum::Boolean(true))?
            }
            Bound::Compare { column, op, value } => {
                self.values(*column, value.domain())?.compared(*op, value)?
            }
            Bound::CompareColumns { left, op, right, domain } => {
                self.values(*left, *domain)?.compared_rows(*op, &self.values(*right, *domain)?)?
            }
            Bound::In { column, domain, values: list, has_null } => {
                let values = self.values(*column, *domain)?;
                let found = |row: usize| {
                    let order = |v: &Datum| values.compare(row, v).map_or(Ordering::Equal, Ordering::reverse);
                    !values.is_null(row) && list.binary_search_by(order).is_ok()
                };
                let mask = rows_where(&values, found);
                if *has_null { false_as_null(&mask) } else { mask }
            }
            Bound::Like { column, pattern } => {
                let values = self.values(*column, Domain::Bytes)?;
                rows_where(&values, |row| values.bytes(row).is_some_and(|text| pattern.matches(text)))
            }
            Bound::Is { condition, truth } => {
                let mask = self.mask(condition)?;
                let is = |row: usize| mask.is_valid(row).then(|| mask.value(row)) == *truth;
                BooleanArray::new(BooleanBuffer::collect_bool(rows, is), None)
            }
            Bound::And(parts) => self.joined(parts, true, and_kleene)?,
            Bound::Or(parts) => self.joined(parts, false, or_kleene)?,
            Bound::Not(inner) => {
                let (values, nulls) = self.mask(inner)?.into_parts();
                BooleanArray::new(!&values, nulls)
            }
        })
    }

    fn joined<E>(
        &self,
        parts: &[Bound],
        neutral: bool,
        join: impl Fn(&BooleanArray, &BooleanArray) -> std::result::Result<BooleanArray, E>,
    ) -> Result<BooleanArray>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let start = BooleanArray::from(vec![neutral; self.batch.num_rows()]);
        parts.iter().try_fold(start, |whole, part| {
            let part = self.mask(part)?;
            join(&whole, &part)
                .map_err(|e| Error::invalid_argument("the predicate cannot be evaluated").with_source(e))
        })
    }

    fn values(&self, term: usize, domain: Domain) -> Result<Values> {
        let array = self.column(term)?;
        let (Some(bound), Some(term)) = (self.predicate.column_of(term), self.predicate.terms.get(term))
        else {
            return Err(Error::invalid_argument("the predicate refers to a column that was not bound"));
        };
        if term.functions.is_empty() {
            return Values::new(&array, &bound.data_type, domain);
        }
        let values = term.apply(as_type(&array, &bound.data_type)?, Purpose::Value)?;
        if values.null_count() > array.logical_null_count() {
            return Err(Error::invalid_argument(format!(
                "a value of column {} is out of range for the predicate's function",
                bound.path
            )));
        }
        Values::new(&values, &term.data_type, domain)
    }

    /// Returns the column of a term.
    fn column(&self, term: usize) -> Result<ArrayRef> {
        match self.predicate.column_of(term) {
            Some(bound) => leaf(self.batch, &bound.path),
            None => Err(Error::invalid_argument("the predicate refers to a column that was not bound")),
        }
    }
}

/// Returns a mask that is NULL where `values` are NULL.
fn rows_where(values: &Values, truth: impl FnMut(usize) -> bool) -> BooleanArray {
    BooleanArray::new(BooleanBuffer::collect_bool(values.len(), truth), values.nulls().cloned())
}

/// Returns `mask` with false replaced by NULL.
fn false_as_null(mask: &BooleanArray) -> BooleanArray {
    let found = BooleanBuffer::collect_bool(mask.len(), |row| mask.is_valid(row) && mask.value(row));
    BooleanArray::new(found.clone(), Some(NullBuffer::new(found)))
}

/// Returns the column at `path`, which is NULL wherever an enclosing struct is.
fn leaf(batch: &RecordBatch, path: &ColumnPath) -> Result<ArrayRef> {
    let missing = || Error::schema_mismatch(format!("the data has no column {path}"));
    let (first, inner) = path.parts().split_first().ok_or_else(missing)?;
    let mut array = batch.column_by_name(first).ok_or_else(missing)?.clone();
    for name in inner {
        let parent: &StructArray = array.as_struct_opt().ok_or_else(missing)?;
        let child = parent.column_by_name(name).ok_or_else(missing)?;
        let nulls = NullBuffer::union(parent.nulls(), child.logical_nulls().as_ref());
        let data = child.to_data().into_builder().nulls(nulls).build();
        array = make_array(
            data.map_err(|e| Error::schema_mismatch(format!("column {path} is malformed")).with_source(e))?,
        );
    }
    Ok(array)
}
