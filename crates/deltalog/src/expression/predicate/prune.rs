//! Pruning: selects the files that may contain a row for which a predicate is true.
//!
//! For each condition and file, pruning answers two questions: *can it be true* for some row, and *can it be false*
//! for some row? AND, OR and NOT combine the answers. A file is kept if the whole predicate can be true.
//!
//! - "Yes" is always a safe answer. It is the answer whenever something is not known.
//! - If a column contains only NULLs, a comparison with it is neither true nor false.
//! - Bounds are only bounds: `min` is at most every value and `max` at least every value, so truncated
//!   strings need no special case.
//! - Statistics may ignore NaN, which Spark orders above all numbers: a floating-point `max` is only an upper bound if
//!   the file is known to have no NaN.
//! - A computed value has no bounds. But if each column that it reads has only one value in a file, as partition
//!   columns do, the computed value is known as well.
//! - `null_count` is only used if it is 0 or equal to `num_records` (protocol, "Per-file Statistics", wide bounds).

use super::ast::{ColumnPath, CompareOp};
use super::bound::{Bound, BoundColumn, BoundPredicate, Source, Term, apply_all};
use super::function::Purpose;
use super::like::Pattern;
use super::prune_constants::Constants;
use super::values::{Datum, Domain, Values, array_of, as_type, domain_of};
use crate::error::Result;
use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::DataType;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// The statistics of the columns in some files, as arrays with one row per file.
///
/// Only leaf columns have statistics. Columns are named as in the table's schema. `None` instead of an array, and a
/// NULL in an array, mean that the statistic is not known. A partition column has its value as `min` and `max`; its
/// `null_count` is 0, or `num_records` if the value is NULL.
pub trait FileBounds {
    /// Returns the number of files, which is the length of every array.
    fn num_files(&self) -> usize;

    /// Returns the number of rows of each file.
    fn num_records(&self) -> Option<Int64Array>;

    /// Returns a lower bound of each file's values other than NaN, in the column's type.
    fn min(&self, column: &ColumnPath) -> Option<ArrayRef>;

    /// Returns an upper bound of each file's values other than NaN, in the column's type.
    fn max(&self, column: &ColumnPath) -> Option<ArrayRef>;

    /// Returns for each file whether the column certainly has no NaN, so that `max` bounds all values. `None`, or
    /// NULL for a file, means that the column may contain NaNs. Only called for floating-point columns.
    fn without_nan(&self, _column: &ColumnPath) -> Option<BooleanArray> {
        None
    }

    /// Returns the number of NULLs, which is exact only if it is 0 or the number of records.
    fn null_count(&self, column: &ColumnPath) -> Option<Int64Array>;

    /// Returns whether the column may contain one of `values` in file number `file`; true if that is not known. The
    /// `values` have the column's type, and none is NULL. Only called for values that the bounds do not rule out.
    fn may_have(&self, _file: usize, _column: &ColumnPath, _values: &ArrayRef) -> bool {
        true
    }
}

/// Returns for each file whether it must be read, that is, whether it may contain a row for which `predicate`
/// is true.
///
/// # Errors
/// SchemaMismatch if an array of `bounds` cannot be cast to its column's type.
pub fn prune(predicate: &BoundPredicate, bounds: &dyn FileBounds) -> Result<BooleanArray> {
    let mut pruner = Pruner {
        predicate,
        bounds,
        files: bounds.num_files(),
        records: bounds.num_records(),
        known: HashMap::new(),
        constants: HashMap::new(),
    };
    Ok(BooleanArray::new(pruner.answer(&predicate.root)?.may_be_true, None))
}

/// The answers to the two questions, with one bit per file.
struct Answer {
    may_be_true: BooleanBuffer,
    may_be_false: BooleanBuffer,
}

impl Answer {
    fn negated(self) -> Self {
        Self { may_be_true: self.may_be_false, may_be_false: self.may_be_true }
    }
}

/// The known statistics of one column, converted to one domain.
struct Known {
    min: Option<Values>,
    max: Option<Values>,
    only_nulls: BooleanBuffer,
    /// The files in which the column may have a NaN; `None` if there is no such file.
    may_be_nan: Option<BooleanBuffer>,
    /// The column, if these are its own statistics, without functions or a conversion to another domain.
    column: Option<BoundColumn>,
}

pub(super) struct Pruner<'a> {
    pub(super) predicate: &'a BoundPredicate,
    pub(super) bounds: &'a dyn FileBounds,
    pub(super) files: usize,
    records: Option<Int64Array>,
    known: HashMap<(usize, Domain), Rc<Known>>,
    /// For each computed term that was looked up, its values per file; `None` if its value is not known for any file.
    pub(super) constants: HashMap<usize, Option<Rc<Constants>>>,
}

impl Pruner<'_> {
    fn answer(&mut self, bound: &Bound) -> Result<Answer> {
        Ok(match bound {
            Bound::Constant(truth) => self.answers(|_| *truth == Some(true), |_| *truth == Some(false)),
            Bound::Unknown(_) => self.answers(|_| true, |_| true),
            Bound::UnlessNull { column, value } => {
                let only_nulls = self.only_nulls(*column);
                self.answers(|i| *value && !only_nulls.value(i), |i| !*value && !only_nulls.value(i))
            }
            Bound::IsNull(column) => {
                let (only_nulls, no_nulls) = (self.only_nulls(*column), self.no_nulls(*column));
                self.answers(|i| !no_nulls.value(i), |i| !only_nulls.value(i))
            }
            Bound::Boolean(column) => {
                let known = self.known(*column, Domain::Boolean)?;
                self.compare(&known, CompareOp::Eq, &Datum::Boolean(true))
            }
            Bound::Compare { column, op, value } => {
                let known = self.known(*column, value.domain())?;
                self.compare(&known, *op, value)
            }
            Bound::CompareColumns { left, op, right, domain } => {
                let (left, right) = (self.known(*left, *domain)?, self.known(*right, *domain)?);
                self.compare_columns(&left, *op, &right)
            }
            Bound::In { column, domain, values, has_null } => {
                let known = self.known(*column, *domain)?;
                self.is_in(&known, values, *has_null)
            }
            Bound::Like { column, pattern } => {
                let known = self.known(*column, Domain::Bytes)?;
                self.like(&known, pattern)
            }
            Bound::Is { condition, truth } => {
                let inner = self.answer(condition)?;
                let all = BooleanBuffer::new_set(self.files);
                let may_be_true = match truth {
                    Some(true) => inner.may_be_true,
                    Some(false) => inner.may_be_false,
                    None => all.clone(),
                };
                Answer { may_be_true, may_be_false: all }
            }
            Bound::And(parts) => {
                let mut whole = self.answers(|_| true, |_| false);
                for part in parts {
                    let part = self.answer(part)?;
                    whole.may_be_true = &whole.may_be_true & &part.may_be_true;
                    whole.may_be_false = &whole.may_be_false | &part.may_be_false;
                }
                whole
            }
            Bound::Or(parts) => {
                let mut whole = self.answers(|_| false, |_| true);
                for part in parts {
                    let part = self.answer(part)?;
                    whole.may_be_true = &whole.may_be_true | &part.may_be_true;
                    whole.may_be_false = &whole.may_be_false & &part.may_be_false;
                }
                whole
            }
            Bound::Not(inner) => self.answer(inner)?.negated(),
        })
    }

    fn answers(
        &self,
        may_be_true: impl FnMut(usize) -> bool,
        may_be_false: impl FnMut(usize) -> bool,
    ) -> Answer {
        Answer {
            may_be_true: BooleanBuffer::collect_bool(self.files, may_be_true),
            may_be_false: BooleanBuffer::collect_bool(self.files, may_be_false),
        }
    }

    fn compare(&self, known: &Known, op: CompareOp, value: &Datum) -> Answer {
        let asks = [op, opposite(op)].contains(&CompareOp::Eq);
        let values = if asks { known.as_array(std::slice::from_ref(value)) } else { None };
        let may = |op: CompareOp| {
            let values = values.as_ref().filter(|_| op == CompareOp::Eq);
            move |file: usize| {
                !known.only_nulls.value(file)
                    && known.may_hold(file, op, value)
                    && self.may_have(file, known, values)
            }
        };
        self.answers(may(op), may(opposite(op)))
    }

    /// Returns whether a column may contain one of the values that its bounds do not rule out.
    fn may_have(&self, file: usize, known: &Known, values: Option<&ArrayRef>) -> bool {
        match (&known.column, values) {
            (Some(column), Some(values)) => self.bounds.may_have(file, &column.path, values),
            _ => true,
        }
    }

    fn compare_columns(&self, left: &Known, op: CompareOp, right: &Known) -> Answer {
        let is_exact = |file: usize| !left.may_be_nan(file) && !right.may_be_nan(file);
        let order = |a: &Option<Values>, b: &Option<Values>, file: usize| match (a, b) {
            (Some(a), Some(b)) if is_exact(file) => a.compare_rows(file, b),
            _ => None,
        };
        let may = |op: CompareOp| {
            move |file: usize| {
                if left.only_nulls.value(file) || right.only_nulls.value(file) {
                    return false;
                }
                let least_to_greatest = order(&left.min, &right.max, file);
                let greatest_to_least = order(&left.max, &right.min, file);
                match op {
                    CompareOp::Lt => least_to_greatest.is_none_or(Ordering::is_lt),
                    CompareOp::LtEq => least_to_greatest.is_none_or(Ordering::is_le),
                    CompareOp::Gt => greatest_to_least.is_none_or(Ordering::is_gt),
                    CompareOp::GtEq => greatest_to_least.is_none_or(Ordering::is_ge),
                    CompareOp::Eq | CompareOp::NullSafeEq => {
                        least_to_greatest.is_none_or(Ordering::is_le)
                            && greatest_to_least.is_none_or(Ordering::is_ge)
                    }
                    // If both columns have the same single value in a file, they never differ there.
                    CompareOp::NotEq => {
                        !(least_to_greatest == Some(Ordering::Equal)
                            && greatest_to_least == Some(Ordering::Equal)
                            && order(&left.min, &right.min, file) == Some(Ordering::Equal))
                    }
                }
            }
        };
        self.answers(may(op), may(opposite(op)))
    }

    fn is_in(&self, known: &Known, values: &[Datum], has_null: bool) -> Answer {
        let array = known.as_array(values);
        let may_be_true = |file: usize| {
            if known.only_nulls.value(file) {
                return false;
            }
            // The index of the first value in the list that is not below the file's minimum.
            let first = values.partition_point(|v| known.order_of_min(file, v).is_some_and(Ordering::is_gt));
            let last = values.partition_point(|v| !known.order_of_max(file, v).is_some_and(Ordering::is_lt));
            let within = array.as_ref().map(|array| array.slice(first, last.saturating_sub(first)));
            (values.get(first).is_some_and(|v| known.may_hold(file, CompareOp::Eq, v))
                && self.may_have(file, known, within.as_ref()))
                || (known.may_be_nan(file) && values.last().is_some_and(Datum::is_nan))
        };
        // If the list contains NULL, the condition is NULL, not false, for a value that is not in the list.
        let may_be_false = |file: usize| {
            !has_null
                && !known.only_nulls.value(file)
                && (known.may_be_nan(file) || {
                    let first =
                        values.partition_point(|v| known.order_of_min(file, v).is_some_and(Ordering::is_gt));
                    values.get(first).is_none_or(|v| known.may_hold(file, CompareOp::NotEq, v))
                })
        };
        self.answers(may_be_true, may_be_false)
    }

    fn like(&self, known: &Known, pattern: &Pattern) -> Answer {
        if let Some(exact) = pattern.as_exact() {
            return self.compare(known, CompareOp::Eq, &Datum::Bytes(exact.to_vec()));
        }
        let prefix = pattern.prefix();
        let min = |file| known.min.as_ref().and_then(|v| v.bytes(file));
        let max = |file| known.max.as_ref().and_then(|v| v.bytes(file));
        let may_be_true = |file: usize| {
            let not_all_below = max(file).is_none_or(|max| max >= prefix);
            let not_all_above = min(file).is_none_or(|min| min <= prefix || min.starts_with(prefix));
            !known.only_nulls.value(file) && not_all_below && not_all_above
        };
        let may_be_false = |file: usize| {
            let every_match = pattern.is_prefix()
                && min(file).is_some_and(|min| min.starts_with(prefix))
                && max(file).is_some_and(|max| max.starts_with(prefix));
            !known.only_nulls.value(file) && !every_match
        };
        self.answers(may_be_true, may_be_false)
    }

    fn known(&mut self, column: usize, domain: Domain) -> Result<Rc<Known>> {
        if let Some(known) = self.known.get(&(column, domain)) {
            return Ok(Rc::clone(known));
        }
        let only_nulls = self.only_nulls(column);
        let (mut min, mut max, mut may_be_nan, mut of_column) = (None, None, None, None);
        match self.predicate.arena.terms.get(column) {
            Some(Term { source: Source::Column { column, functions }, data_type, .. }) => {
                if let Some(bound) = self.predicate.arena.columns.get(*column) {
                    let read = |array: Option<ArrayRef>, purpose: Purpose| -> Result<Option<Values>> {
                        let Some(array) = array.filter(|array| array.len() == self.files) else {
                            return Ok(None);
                        };
                        let array = if functions.is_empty() {
                            array
                        } else {
                            apply_all(functions, as_type(&array, &bound.data_type)?, purpose)?
                        };
                        Values::new(&array, data_type, domain).map(Some)
                    };
                    min = read(self.bounds.min(&bound.path), Purpose::Min)?;
                    max = read(self.bounds.max(&bound.path), Purpose::Max)?;
                    let is_float = matches!(bound.data_type, DataType::Float32 | DataType::Float64);
                    may_be_nan = is_float.then(|| self.may_be_nan(&bound.path));
                    let is_its_own = functions.is_empty() && domain_of(&bound.data_type) == Some(domain);
                    of_column = is_its_own.then(|| bound.clone());
                }
            }
            Some(Term { source: Source::Computed { .. }, data_type, .. }) => {
                if let Some(constants) = self.constants(column) {
                    min = Some(Values::new(&constants.values, data_type, domain)?);
                    max = Some(Values::new(&constants.values, data_type, domain)?);
                }
            }
            None => {}
        }
        let known = Rc::new(Known { min, max, only_nulls, may_be_nan, column: of_column });
        self.known.insert((column, domain), Rc::clone(&known));
        Ok(known)
    }

    /// Returns the files in which a floating-point column may have a NaN.
    fn may_be_nan(&self, column: &ColumnPath) -> BooleanBuffer {
        match self.bounds.without_nan(column).filter(|known| known.len() == self.files) {
            Some(known) => {
                BooleanBuffer::collect_bool(self.files, |file| !(known.is_valid(file) && known.value(file)))
            }
            None => BooleanBuffer::new_set(self.files),
        }
    }

    fn null_count(&self, column: &BoundColumn) -> Option<Int64Array> {
        self.bounds.null_count(&column.path).filter(|counts| counts.len() == self.files)
    }

    /// Returns the files in which every row of the term is certainly NULL.
    fn only_nulls(&mut self, term: usize) -> BooleanBuffer {
        match self.source_of(term) {
            Some(column) => self.only_nulls_of(&column),
            None => match self.constants(term) {
                Some(known) => match known.values.logical_nulls() {
                    Some(nulls) => &known.is_constant & &!nulls.inner(),
                    None => BooleanBuffer::new_unset(self.files),
                },
                None => BooleanBuffer::new_unset(self.files),
            },
        }
    }

    /// Returns the files in which certainly no row of the term is NULL.
    fn no_nulls(&mut self, term: usize) -> BooleanBuffer {
        match self.source_of(term) {
            Some(column) => self.no_nulls_of(&column),
            None => match self.constants(term) {
                Some(known) => match known.values.logical_nulls() {
                    Some(nulls) => &known.is_constant & nulls.inner(),
                    None => known.is_constant.clone(),
                },
                None => BooleanBuffer::new_unset(self.files),
            },
        }
    }

    /// Returns a column that is NULL exactly where the term is, if there is one.
    fn source_of(&self, term: usize) -> Option<BoundColumn> {
        match self.predicate.arena.terms.get(term)?.source {
            Source::Column { column, .. } => self.predicate.arena.columns.get(column).cloned(),
            Source::Computed { .. } => None,
        }
    }

    pub(super) fn only_nulls_of(&self, column: &BoundColumn) -> BooleanBuffer {
        let records = self.records.as_ref().filter(|records| records.len() == self.files);
        match (self.null_count(column), records) {
            (Some(nulls), Some(records)) => BooleanBuffer::collect_bool(self.files, |i| {
                nulls.is_valid(i) && records.is_valid(i) && nulls.value(i) == records.value(i)
            }),
            _ => BooleanBuffer::new_unset(self.files),
        }
    }

    pub(super) fn no_nulls_of(&self, column: &BoundColumn) -> BooleanBuffer {
        match self.null_count(column) {
            Some(nulls) => {
                BooleanBuffer::collect_bool(self.files, |i| nulls.is_valid(i) && nulls.value(i) == 0)
            }
            None => BooleanBuffer::new_unset(self.files),
        }
    }
}

impl Known {
    /// Returns `values` as an array of the column's type; `None` if `column` is `None`, or if [`array_of`] fails.
    fn as_array(&self, values: &[Datum]) -> Option<ArrayRef> {
        array_of(values, &self.column.as_ref()?.data_type)
    }

    fn may_be_nan(&self, file: usize) -> bool {
        self.may_be_nan.as_ref().is_some_and(|files| files.value(file))
    }

    /// Compares the minimum with `value`, if the minimum is known. Some writers write NaN for an unknown minimum.
    fn order_of_min(&self, file: usize, value: &Datum) -> Option<Ordering> {
        self.min.as_ref().filter(|min| !min.is_nan(file)).and_then(|min| min.compare(file, value))
    }

    fn order_of_max(&self, file: usize, value: &Datum) -> Option<Ordering> {
        self.max.as_ref().filter(|max| !max.is_nan(file)).and_then(|max| max.compare(file, value))
    }

    /// Returns whether some value other than NULL may satisfy the comparison `op` with `value`.
    fn may_hold(&self, file: usize, op: CompareOp, value: &Datum) -> bool {
        let min = self.order_of_min(file, value);
        let max = self.order_of_max(file, value);
        // A file may have NaNs that its bounds do not cover. NaN equals itself and is greater than all other values.
        let nan = |of_nan: bool, of_other: bool| {
            self.may_be_nan(file) && if value.is_nan() { of_nan } else { of_other }
        };
        match op {
            CompareOp::Lt => min.is_none_or(Ordering::is_lt),
            CompareOp::LtEq => min.is_none_or(Ordering::is_le) || nan(true, false),
            CompareOp::Gt => max.is_none_or(Ordering::is_gt) || nan(false, true),
            CompareOp::GtEq => max.is_none_or(Ordering::is_ge) || nan(true, true),
            CompareOp::Eq | CompareOp::NullSafeEq => {
                (min.is_none_or(Ordering::is_le) && max.is_none_or(Ordering::is_ge)) || nan(true, false)
            }
            CompareOp::NotEq => {
                !(min == Some(Ordering::Equal) && max == Some(Ordering::Equal)) || nan(false, true)
            }
        }
    }
}

/// Returns the operator that is true where `op` is false.
fn opposite(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq | CompareOp::NullSafeEq => CompareOp::NotEq,
        CompareOp::NotEq => CompareOp::Eq,
        CompareOp::Lt => CompareOp::GtEq,
        CompareOp::LtEq => CompareOp::Gt,
        CompareOp::Gt => CompareOp::LtEq,
        CompareOp::GtEq => CompareOp::Lt,
    }
}
