//! Derives a condition that is true for every row of the table that has a match. It limits the files that a MERGE
//! reads.
//!
//! - The condition lists the keys of the source. If there are too many, it only requires a value between the least and
//!   the greatest key. NaN is greater than all other keys.
//! - If rows without a match matter as well, the condition is always true, so all rows are read.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, UInt64Array};
use arrow::compute::{SortOptions, concat, partition, sort_to_indices, take};
use arrow::datatypes::{Float32Type, Float64Type};

use super::clauses::Clauses;
use super::matching::{Equality, Matcher};
use crate::error::{Error, Result};
use crate::expression::predicate::{CompareOp, Expr, Literal, Predicate, lit, literal_of, normal};
use crate::runtime::row_bytes::weight;

/// The maximum number of keys that the condition lists, and their maximum total size in bytes.
const MOST_KEYS: usize = 200;
const MOST_BYTES: usize = 4 << 20;

/// Returns a condition on columns of the table that is true for each row that may have a match. It is always true if
/// other rows matter as well.
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

/// Returns the conditions on a column of the table that follow from the keys with which it is compared.
fn of_keys(equality: &Equality) -> Result<Vec<Predicate>> {
    let Expr::Column(_) = &equality.target else { return Ok(Vec::new()) };
    let batches: Vec<ArrayRef> = equality.source.iter().map(with_one_nan).collect();
    if equality.null_safe && batches.iter().any(|keys| keys.logical_null_count() > 0) {
        return Ok(Vec::new());
    }
    let mut few: Option<FewKeys> = None;
    for keys in &batches {
        let of_batch = FewKeys::of(keys, MOST_BYTES)?;
        few = Some(match few {
            Some(few) => few.and(&of_batch, MOST_BYTES)?,
            None => of_batch,
        });
    }
    let Some(FewKeys { keys: sorted, are_all }) = few.filter(|few| !few.keys.is_empty()) else {
        return Ok(vec![Predicate::Value(lit(false))]);
    };
    let column = || equality.target.clone();
    let compare = |op: CompareOp, right: Literal| Predicate::Compare {
        op,
        left: column(),
        right: Expr::Literal(right),
    };
    let Some(least) = literal_at(&sorted, 0)? else { return Ok(Vec::new()) };
    let Some(greatest) = literal_at(&sorted, sorted.len() - 1)? else { return Ok(Vec::new()) };
    if !are_all {
        return Ok(vec![compare(CompareOp::GtEq, least), compare(CompareOp::LtEq, greatest)]);
    }
    let mut keys: Vec<Literal> = Vec::new();
    for row in 0..sorted.len() {
        let Some(key) = literal_at(&sorted, row)? else { return Ok(Vec::new()) };
        if keys.last() != Some(&key) {
            keys.push(key);
        }
    }
    Ok(vec![match keys.len() {
        1 => compare(CompareOp::Eq, least),
        _ => Predicate::In { value: column(), list: keys.into_iter().map(Expr::Literal).collect() },
    }])
}

/// The distinct keys of rows, sorted. If there are too many keys, or if they are too large, only the least and the
/// greatest key are kept.
struct FewKeys {
    keys: ArrayRef,
    are_all: bool,
}

impl FewKeys {
    /// Returns the keys of a batch that are not NULL. Keeps all of them if they have at most `most_bytes` bytes.
    fn of(keys: &ArrayRef, most_bytes: usize) -> Result<Self> {
        let sorted = sorted(keys)?;
        let Some(last) = sorted.len().checked_sub(1) else { return Ok(Self { keys: sorted, are_all: true }) };
        let different = partition(&[Arc::clone(&sorted)]).map_err(unsorted)?.ranges();
        let mut bytes = 0_usize;
        let are_all = different.len() <= MOST_KEYS
            && different.iter().all(|range| {
                bytes = bytes.saturating_add(weight(&sorted, range.start, 1));
                bytes <= most_bytes
            });
        let rows: UInt64Array = match are_all {
            true => different.iter().map(|range| range.start as u64).collect::<Vec<_>>().into(),
            false => vec![0, last as u64].into(),
        };
        Ok(Self { keys: take(&sorted, &rows, None).map_err(unsorted)?, are_all })
    }

    /// Returns the union of the two sets of keys.
    fn and(&self, other: &Self, most_bytes: usize) -> Result<Self> {
        let both = concat(&[self.keys.as_ref(), other.keys.as_ref()]).map_err(unsorted)?;
        let both = Self::of(&both, most_bytes)?;
        match self.are_all && other.are_all {
            true => Ok(both),
            false => both.only_ends(),
        }
    }

    fn only_ends(self) -> Result<Self> {
        let Some(last) = self.keys.len().checked_sub(1) else { return Ok(Self { are_all: false, ..self }) };
        let ends: UInt64Array = vec![0, last as u64].into();
        Ok(Self { keys: take(&self.keys, &ends, None).map_err(unsorted)?, are_all: false })
    }
}

/// Returns the keys that are not NULL, sorted.
fn sorted(keys: &ArrayRef) -> Result<ArrayRef> {
    let options = SortOptions { descending: false, nulls_first: false };
    let order = sort_to_indices(keys, Some(options), None).map_err(unsorted)?;
    let valid = keys.len() - keys.logical_null_count();
    take(keys, &order.slice(0, valid), None).map_err(unsorted)
}

/// Replaces all NaNs in `keys` by the NaN that Arrow sorts last, because Spark orders NaN after all other numbers.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arrow::array::StringArray;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Only a few keys are kept, including the least and the greatest key, regardless of the number of batches
        /// and the size of the keys.
        #[test]
        fn only_a_few_keys_are_kept(
            batches in prop::collection::vec(prop::collection::vec(prop::option::of(0..400_u32), 0..30), 1..40),
            most_bytes in prop::sample::select(vec![1_usize, 200, 1 << 20]),
        ) {
            let text = |key: u32| format!("{key:03}").repeat(10);
            let array = |keys: &Vec<Option<u32>>| -> ArrayRef {
                Arc::new(StringArray::from_iter(keys.iter().map(|key| key.map(text))))
            };
            let mut few = FewKeys::of(&array(&batches[0]), most_bytes).unwrap();
            for keys in &batches[1..] {
                few = few.and(&FewKeys::of(&array(keys), most_bytes).unwrap(), most_bytes).unwrap();
            }
            let all: BTreeSet<String> = batches.iter().flatten().flatten().map(|key| text(*key)).collect();
            let found: Vec<&str> = few.keys.as_string::<i32>().iter().flatten().collect();
            if few.are_all {
                prop_assert_eq!(&found, &all.iter().map(String::as_str).collect::<Vec<_>>());
                prop_assert!(weight(&few.keys, 0, few.keys.len()) <= most_bytes.max(found.len()));
            } else {
                prop_assert!(all.len() > MOST_KEYS || all.len() * 34 > most_bytes);
                prop_assert_eq!(found, [all.first().unwrap(), all.last().unwrap()]);
            }
        }
    }
}
