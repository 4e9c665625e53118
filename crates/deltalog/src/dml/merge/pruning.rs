//! The condition that a row of the table meets if it has a match: what the statement reads.
//!
//! - Keys of the source are a list, or their least and greatest value if there are many. NaN is the greatest.
//! - If rows without a match matter too, all rows are read.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, UInt64Array};
use arrow::compute::{SortOptions, concat, partition, sort_to_indices, take};
use arrow::datatypes::{Float32Type, Float64Type};

use super::clauses::Clauses;
use super::matching::{Equality, Matcher};
use crate::error::{Error, Result};
use crate::predicate::{CompareOp, Expr, Literal, Predicate, lit, literal_of, normal};

/// The most keys that are compared one by one.
const MOST_KEYS: usize = 200;

/// Returns a condition on columns of the table that is true for each row that may have a match; true, if other rows
/// matter too.
///
/// # Errors
/// `InvalidArgument` for keys that need too much memory.
pub(super) fn pruning(matcher: &Matcher<'_>, clauses: &Clauses) -> Result<Predicate> {
    if matcher.reads_all() {
        return Ok(Predicate::Value(lit(true)));
    }
    if matcher.source_rows() == 0 {
        return Ok(Predicate::Value(lit(false)));
    }
    let mut all = Vec::new();
    for equality in &matcher.equalities {
        all.extend(of_keys(equality)?);
    }
    all.extend(matcher.of_target.iter().cloned());
    let in_table = |part: &Predicate| clauses.joint.in_table(part, 0);
    let mut all = all.iter().map(in_table).collect::<Result<Vec<_>>>()?;
    Ok(match all.len() {
        0 => Predicate::Value(lit(true)),
        1 => all.remove(0),
        _ => Predicate::And(all),
    })
}

/// Returns conditions on a column by the keys that it is compared with.
fn of_keys(equality: &Equality) -> Result<Vec<Predicate>> {
    let Expr::Column(_) = &equality.target else { return Ok(Vec::new()) };
    let batches: Vec<ArrayRef> = equality.source.iter().map(with_one_nan).collect();
    if equality.null_safe && batches.iter().any(|keys| keys.logical_null_count() > 0) {
        return Ok(Vec::new());
    }
    let few = batches.iter().map(few_keys).collect::<Result<Vec<_>>>()?;
    let few: Vec<&dyn Array> = few.iter().map(AsRef::as_ref).collect();
    if few.iter().all(|keys| keys.is_empty()) {
        return Ok(vec![Predicate::Value(lit(false))]);
    }
    let sorted = sorted(&concat(&few).map_err(unsorted)?)?;
    let valid = sorted.len();
    let column = || equality.target.clone();
    let compare = |op: CompareOp, right: Literal| Predicate::Compare {
        op,
        left: column(),
        right: Expr::Literal(right),
    };
    let Some(least) = literal_at(&sorted, 0)? else { return Ok(Vec::new()) };
    let Some(greatest) = literal_at(&sorted, valid - 1)? else { return Ok(Vec::new()) };
    let mut keys: Vec<Literal> = Vec::new();
    for row in 0..valid {
        let Some(key) = literal_at(&sorted, row)? else { return Ok(Vec::new()) };
        if keys.last() != Some(&key) {
            keys.push(key);
        }
        if keys.len() > MOST_KEYS {
            return Ok(vec![compare(CompareOp::GtEq, least), compare(CompareOp::LtEq, greatest)]);
        }
    }
    Ok(vec![match keys.len() {
        1 => compare(CompareOp::Eq, least),
        _ => Predicate::In { value: column(), list: keys.into_iter().map(Expr::Literal).collect() },
    }])
}

/// Returns valid keys of a batch, sorted, each of them once. If there are more of them than are compared one by one,
/// some and the greatest are enough.
fn few_keys(keys: &ArrayRef) -> Result<ArrayRef> {
    let sorted = sorted(keys)?;
    let Some(last) = sorted.len().checked_sub(1) else { return Ok(sorted) };
    let ends = partition(&[Arc::clone(&sorted)]).map_err(unsorted)?.ranges();
    let rows = ends.iter().map(|range| range.start).take(MOST_KEYS + 1).chain([last]);
    let rows: UInt64Array = rows.map(|row| row as u64).collect::<Vec<_>>().into();
    take(&sorted, &rows, None).map_err(unsorted)
}

/// Returns the valid keys, sorted.
fn sorted(keys: &ArrayRef) -> Result<ArrayRef> {
    let options = SortOptions { descending: false, nulls_first: false };
    let order = sort_to_indices(keys, Some(options), None).map_err(unsorted)?;
    let valid = keys.len() - keys.logical_null_count();
    take(keys, &order.slice(0, valid), None).map_err(unsorted)
}

/// Returns `keys` with all NaNs as the one that Arrow sorts last, as Spark orders them.
fn with_one_nan(keys: &ArrayRef) -> ArrayRef {
    if let Some(keys) = keys.as_primitive_opt::<Float32Type>() {
        return Arc::new(keys.unary::<_, Float32Type>(|key| if key.is_nan() { f32::NAN } else { key }));
    }
    match keys.as_primitive_opt::<Float64Type>() {
        Some(keys) => Arc::new(keys.unary::<_, Float64Type>(normal)),
        None => Arc::clone(keys),
    }
}

fn literal_at(keys: &ArrayRef, row: usize) -> Result<Option<Literal>> {
    let row = u32::try_from(row).unwrap_or(u32::MAX);
    let one = take(keys, &UInt32Array::from(vec![row]), None).map_err(unsorted)?;
    Ok(literal_of(&one))
}

fn unsorted(error: arrow::error::ArrowError) -> Error {
    Error::invalid_argument("the keys of the source cannot be sorted").with_source(error)
}
