//! Evaluates a predicate exactly on rows, in SQL's three-valued logic.

use super::ast::{ColumnPath, CompareOp};
use super::bound::{Arena, Bound, BoundColumn, BoundPredicate, Source, Term, apply_all};
use super::compute::{Failure, Memory, Node, is_true};
use super::function::Purpose;
use super::stack::on_stack;
use super::values::{Datum, Domain, Values, as_type};
use crate::error::{Error, Result};
use crate::runtime::by_name::names_of;
use crate::runtime::row_bytes::{is_too_large, within_arrays};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StructArray, make_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{and_kleene, or_kleene};
use arrow::datatypes::DataType;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// Returns for each row of `batch` whether the predicate is true, false or NULL. Only rows for which it is true are
/// selected.
///
/// Columns are found by name in `batch`.
///
/// # Errors
/// InvalidArgument if a part of the predicate could not be parsed. SchemaMismatch if `batch` lacks a column, or if the
/// column's type cannot be cast to the type that the predicate was bound with.
pub fn filter_mask(predicate: &BoundPredicate, batch: &RecordBatch) -> Result<BooleanArray> {
    let computed = within_arrays(|| {
        let rows = Rows::of_batch(&predicate.arena, batch);
        rows.mask(&predicate.root, &BooleanBuffer::new_set(rows.rows))
    });
    match halves(batch).filter(|_| computed.as_ref().is_err_and(is_too_large)) {
        None => computed,
        Some([first, second]) => {
            let both = [filter_mask(predicate, &first)?, filter_mask(predicate, &second)?];
            Ok(both.iter().flat_map(|half| half.iter()).collect())
        }
    }
}

/// Splits a batch in half; `None` if it has less than two rows.
pub(super) fn halves(batch: &RecordBatch) -> Option<[RecordBatch; 2]> {
    let (rows, half) = (batch.num_rows(), batch.num_rows() / 2);
    (half > 0).then(|| [batch.slice(0, half), batch.slice(half, rows - half)])
}

type Read<'a> = dyn Fn(&BoundColumn) -> Result<ArrayRef> + 'a;

/// The rows for which conditions and values are evaluated.
pub(super) struct Rows<'a> {
    pub(super) arena: &'a Arena,
    /// The number of rows.
    pub(super) rows: usize,
    /// Returns the values of a column, not yet converted to the type that it was bound with.
    read: Box<Read<'a>>,
    /// The values of shared terms, and the rows for which they have been computed.
    kept: RefCell<HashMap<usize, (BooleanBuffer, ArrayRef)>>,
    pub(super) memory: Memory,
}

impl<'a> Rows<'a> {
    /// Returns the rows of a batch, in which columns are found by name.
    pub(super) fn of_batch(arena: &'a Arena, batch: &'a RecordBatch) -> Self {
        let names = names_of(batch.schema_ref().fields());
        Self::new(arena, batch.num_rows(), move |column| {
            leaf_placed(batch, &column.path, |name| names.find(name))
        })
    }

    /// Creates rows whose columns are returned by `read`.
    pub(super) fn new(
        arena: &'a Arena,
        rows: usize,
        read: impl Fn(&BoundColumn) -> Result<ArrayRef> + 'a,
    ) -> Self {
        Self { arena, rows, read: Box::new(read), kept: RefCell::default(), memory: Memory::default() }
    }
}

impl Rows<'_> {
    /// Evaluates a condition. Only the rows in `active` need a correct result; the other rows get an arbitrary one.
    pub(super) fn mask(&self, bound: &Bound, active: &BooleanBuffer) -> Result<BooleanArray> {
        self.memory.released(|| on_stack(|| self.truth(bound, active)))
    }

    fn truth(&self, bound: &Bound, active: &BooleanBuffer) -> Result<BooleanArray> {
        let rows = self.rows;
        Ok(match bound {
            Bound::Constant(Some(truth)) => BooleanArray::from(vec![*truth; rows]),
            Bound::Constant(None) => BooleanArray::new_null(rows),
            Bound::Unknown(why) => {
                return Err(Error::invalid_argument(format!("the predicate cannot be evaluated: {why}")));
            }
            Bound::UnlessNull { column, value } => {
                let truth =
                    if *value { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) };
                BooleanArray::new(truth, self.nulls(*column, active)?)
            }
            Bound::IsNull(column) => {
                let nulls = self.nulls(*column, active)?;
                BooleanArray::new(
                    nulls.map_or_else(|| BooleanBuffer::new_unset(rows), |nulls| !nulls.inner()),
                    None,
                )
            }
            Bound::Boolean(column) => self
                .values(*column, Domain::Boolean, active)?
                .compared(CompareOp::Eq, &Datum::Boolean(true))?,
            Bound::Compare { column, op, value } => {
                self.values(*column, value.domain(), active)?.compared(*op, value)?
            }
            Bound::CompareColumns { left, op, right, domain } => self
                .values(*left, *domain, active)?
                .compared_rows(*op, &self.values(*right, *domain, active)?)?,
            Bound::In { column, domain, values: list, has_null } => {
                let values = self.values(*column, *domain, active)?;
                let found = |row: usize| {
                    let order = |v: &Datum| values.compare(row, v).map_or(Ordering::Equal, Ordering::reverse);
                    !values.is_null(row) && list.binary_search_by(order).is_ok()
                };
                let mask = rows_where(&values, found);
                if *has_null { false_as_null(&mask) } else { mask }
            }
            Bound::Like { column, pattern } => {
                let values = self.values(*column, Domain::Bytes, active)?;
                rows_where(&values, |row| values.bytes(row).is_some_and(|text| pattern.matches(text)))
            }
            Bound::Is { condition, truth } => {
                let mask = self.mask(condition, active)?;
                let is = |row: usize| mask.is_valid(row).then(|| mask.value(row)) == *truth;
                BooleanArray::new(BooleanBuffer::collect_bool(rows, is), None)
            }
            Bound::And(parts) => self.joined(parts, true, active, and_kleene)?,
            Bound::Or(parts) => self.joined(parts, false, active, or_kleene)?,
            Bound::Not(inner) => negated(self.mask(inner, active)?),
        })
    }

    /// Joins conditions by AND or OR. `neutral` is true for AND and false for OR: once a condition has the opposite
    /// result for a row, the row is decided, and later conditions are not evaluated for it.
    fn joined<E>(
        &self,
        parts: &[Bound],
        neutral: bool,
        active: &BooleanBuffer,
        join: impl Fn(&BooleanArray, &BooleanArray) -> std::result::Result<BooleanArray, E>,
    ) -> Result<BooleanArray>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut whole = BooleanArray::from(vec![neutral; self.rows]);
        let mut open = active.clone();
        for part in parts {
            let part = self.mask(part, &open)?;
            let decided = if neutral { is_true(&negated(part.clone())) } else { is_true(&part) };
            open = &open & &!&decided;
            whole = join(&whole, &part)
                .map_err(|e| Error::invalid_argument("the predicate cannot be evaluated").with_source(e))?;
        }
        Ok(whole)
    }

    /// Returns the values of a term, converted to the given domain.
    fn values(&self, term: usize, domain: Domain, active: &BooleanBuffer) -> Result<Values> {
        let data_type = &self.arena.terms.get(term).ok_or_else(not_bound)?.data_type;
        Values::new(&self.term(term, active)?, data_type, domain)
    }

    /// Computes a term for each row. The values of shared terms are kept for their other uses.
    pub(super) fn term(&self, term: usize, active: &BooleanBuffer) -> Result<ArrayRef> {
        let Term { source, is_shared, .. } = self.arena.terms.get(term).ok_or_else(not_bound)?;
        match source {
            Source::Column { column, functions } if functions.is_empty() => self.column(*column),
            Source::Column { column, functions } => {
                let of = self.column(*column)?;
                let values = apply_all(functions, Arc::clone(&of), Purpose::Value)?;
                self.checked(values, &[of], active, "a function of the predicate", Failure::Function)
            }
            Source::Computed { value, .. } if *is_shared => self.kept(term, value, active),
            Source::Computed { value, .. } => self.value(value, active),
        }
    }

    /// Returns the values of a shared term. If the kept values cover all `active` rows, returns them. Otherwise,
    /// computes the term for these rows and for all rows that were covered before, and keeps the new values.
    fn kept(&self, term: usize, value: &Node, active: &BooleanBuffer) -> Result<ArrayRef> {
        let needed = match self.kept.borrow().get(&term) {
            Some((known, values)) if (active & &!known).count_set_bits() == 0 => {
                return Ok(Arc::clone(values));
            }
            Some((known, _)) => known | active,
            None => active.clone(),
        };
        let values = self.value(value, &needed)?;
        let before = self.kept.borrow_mut().insert(term, (needed, Arc::clone(&values)));
        self.memory.keep(&values, before.as_ref().map(|(_, values)| values));
        Ok(values)
    }

    /// Returns the rows in which a term is not NULL; `None` if it is never NULL.
    fn nulls(&self, term: usize, active: &BooleanBuffer) -> Result<Option<NullBuffer>> {
        match self.arena.terms.get(term).map(|term| &term.source) {
            // Functions that preserve order are NULL only if their column is NULL.
            Some(Source::Column { column, .. }) => match self.arena.columns.get(*column) {
                Some(bound) => Ok((self.read)(bound)?.logical_nulls()),
                None => Err(not_bound()),
            },
            Some(Source::Computed { .. }) => Ok(self.term(term, active)?.logical_nulls()),
            None => Err(not_bound()),
        }
    }

    /// Returns the values of a column, converted to the type that it was bound with.
    pub(super) fn column(&self, column: usize) -> Result<ArrayRef> {
        match self.arena.columns.get(column) {
            Some(bound) => as_type(&(self.read)(bound)?, &bound.data_type),
            None => Err(not_bound()),
        }
    }
}

fn not_bound() -> Error {
    Error::invalid_argument("the predicate refers to a column that was not bound")
}

fn negated(mask: BooleanArray) -> BooleanArray {
    let (values, nulls) = mask.into_parts();
    BooleanArray::new(!&values, nulls)
}

/// Returns a mask that is NULL where `values` are NULL.
fn rows_where(values: &Values, truth: impl FnMut(usize) -> bool) -> BooleanArray {
    BooleanArray::new(BooleanBuffer::collect_bool(values.len(), truth), values.nulls().cloned())
}

/// Returns `mask` with each false replaced by NULL.
fn false_as_null(mask: &BooleanArray) -> BooleanArray {
    let found = BooleanBuffer::collect_bool(mask.len(), |row| mask.is_valid(row) && mask.value(row));
    BooleanArray::new(found.clone(), Some(NullBuffer::new(found)))
}

/// Returns the column at `path`. It is NULL wherever an enclosing struct is NULL.
pub(crate) fn leaf(batch: &RecordBatch, path: &ColumnPath) -> Result<ArrayRef> {
    leaf_placed(batch, path, |name| Some(batch.schema_ref().column_with_name(name)?.0))
}

/// Returns the same column as [`leaf`]. `place_of` returns the position of the top-level column with a given name. It
/// can use an index, so that conditions on many columns do not search the whole schema for each of them.
pub(super) fn leaf_placed(
    batch: &RecordBatch,
    path: &ColumnPath,
    place_of: impl Fn(&str) -> Option<usize>,
) -> Result<ArrayRef> {
    let missing = || Error::schema_mismatch(format!("the data has no column {path}"));
    let (first, inner) = path.parts().split_first().ok_or_else(missing)?;
    let first = place_of(first).and_then(|place| batch.columns().get(place));
    let mut array = Arc::clone(first.ok_or_else(missing)?);
    for name in inner {
        let parent: &StructArray = array.as_struct_opt().ok_or_else(missing)?;
        let child = parent.column_by_name(name).ok_or_else(missing)?;
        if *child.data_type() == DataType::Null {
            // An array of NULLs has no bitmap, but all of its values are NULL.
            array = Arc::clone(child);
            continue;
        }
        let nulls = NullBuffer::union(parent.nulls(), child.logical_nulls().as_ref());
        let data = child.to_data().into_builder().nulls(nulls).build();
        array = make_array(
            data.map_err(|e| Error::schema_mismatch(format!("column {path} is malformed")).with_source(e))?,
        );
    }
    Ok(array)
}
