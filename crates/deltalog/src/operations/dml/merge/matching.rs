//! Decides what a MERGE does to each row of one file of the table.

use std::collections::BTreeSet;
use std::iter::once;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::DataType;
use roaring::RoaringBitmap;

use super::Merge;
use super::clauses::{Bound, Clauses, decide, ensure_target_bytes};
use super::keys::{KeyIndex, key_type};
use super::pairs::{Sides, taken};
use crate::error::Result;
use crate::expression::predicate::{
    BoundColumn, BoundPredicate, CompareOp, Expr, Expression, Predicate, Scope,
};
use crate::operations::dml::row_change::cardinality_violation;
use crate::operations::rewrite::{Found, ListedFile, Positions, read_file, scan_of, truth};
use crate::scan::RowScan;
use crate::snapshot::Snapshot;

/// The maximum number of pairs of rows for which the condition is evaluated at once.
const PAIRS_AT_ONCE: usize = 1 << 16;

/// What is done to a row of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fate {
    /// The position of the row in its file.
    pub(super) position: u64,
    /// The row of the source that matches; `None` if no row matches.
    pub(super) source: Option<u32>,
    /// The index of the clause that applies, among the clauses for this kind of row.
    pub(super) clause: usize,
}

/// What was found out about one file.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    /// The rows to be changed or deleted.
    pub(super) rows: Found,
    pub(super) fates: Vec<Fate>,
    /// The rows of the source that match a row in the file.
    pub(super) matched: RoaringBitmap,
    /// Whether a row that matches remains unchanged.
    pub(super) has_kept: bool,
}

/// A part of the condition that compares a value of the table with a value of the source for equality.
pub(super) struct Equality {
    /// The value of the table, as an expression.
    pub(super) target: Expr,
    of_target: Expression,
    /// The values of the source, one array for each batch.
    pub(super) source: Vec<ArrayRef>,
    /// The type in which both values are compared.
    key_type: DataType,
    pub(super) null_safe: bool,
}

/// A finder of matching rows.
pub(super) struct Matcher<'a> {
    base: &'a Snapshot,
    clauses: &'a Clauses,
    sides: &'a Sides<'a>,
    scan: RowScan,
    pub(super) equalities: Vec<Equality>,
    /// The parts of the condition that only read the table, with the column names of the scope.
    pub(super) of_target: Vec<Predicate>,
    index: Option<KeyIndex>,
    /// The part of the condition that must still be evaluated after keys were compared.
    rest: Option<BoundPredicate>,
}

impl<'a> Matcher<'a> {
    /// Binds the condition of `merge`.
    ///
    /// # Errors
    /// `InvalidArgument` for a condition that is not understood.
    pub(super) fn new(
        base: &'a Snapshot,
        merge: &Merge,
        clauses: &'a Clauses,
        sides: &'a Sides<'a>,
    ) -> Result<Self> {
        let scope = &clauses.joint;
        let parsed = scope.parse(&merge.condition)?;
        let whole = scope.bind(&parsed)?;
        ensure_target_bytes(whole.columns(), scope, base)?;
        let scan = scan_of(base, columns_of_target(&whole, clauses))?;
        let of_source = sides.named_source()?;
        let (mut equalities, mut of_target, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for conjunct in conjuncts_of(parsed) {
            let bound = scope.bind(&conjunct)?;
            if tables(bound.columns(), scope) == BTreeSet::from([0]) {
                of_target.push(conjunct.clone());
            }
            match equality(&conjunct, scope, &of_source)? {
                Some(equality) => equalities.push(equality),
                None => rest.push(conjunct),
            }
        }
        let index = index(&equalities)?;
        let rest = (!rest.is_empty()).then(|| scope.bind(&Predicate::And(rest))).transpose()?;
        Ok(Self { base, clauses, sides, scan, equalities, of_target, index, rest })
    }

    /// Returns whether rows of the table that match no row of the source have to be read.
    pub(super) fn reads_all(&self) -> bool {
        !self.clauses.not_matched_by_source.is_empty()
    }

    /// Returns the number of rows of the source.
    pub(super) fn source_rows(&self) -> usize {
        self.sides.source.num_rows()
    }

    /// Decides what is done to each row of a file.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a row with several matches, and for a row for which a condition cannot be
    /// evaluated. Also returns `CorruptData`, and errors from the store.
    pub(super) fn find(&self, file: &ListedFile) -> Result<FileMatches> {
        let mut positions = Positions::of(self.base, file)?;
        let mut found = FileMatches::default();
        for batch in read_file(&self.scan, &file.file) {
            let batch = batch?;
            let at = positions.take(batch.num_rows());
            found.rows.live += batch.num_rows() as u64;
            self.find_in(&batch, &at, &mut found)?;
        }
        found.rows.all = positions.all();
        found.rows.rows = found.fates.iter().map(|fate| fate.position).collect();
        Ok(found)
    }

    fn find_in(&self, batch: &RecordBatch, at: &[u64], found: &mut FileMatches) -> Result<()> {
        let mut matches = self.matches(batch)?;
        found.matched.extend(matches.iter().map(|(_, source)| *source));
        let several = |pair: &[(u32, u32)]| matches!(pair, [(a, _), (b, _)] if a == b);
        if self.clauses.need_one_match() && matches.windows(2).any(several) {
            return Err(cardinality_violation());
        }
        let fate = |row: u32, source, clause| Some(Fate { position: *at.get(row as usize)?, source, clause });
        if self.reads_all() {
            let mut is_matched = vec![false; batch.num_rows()];
            for (row, _) in &matches {
                if let Some(is_matched) = is_matched.get_mut(*row as usize) {
                    *is_matched = true;
                }
            }
            let open: Vec<u32> = (0u32..)
                .zip(&is_matched)
                .filter(|(_, is_matched)| !**is_matched)
                .map(|(row, _)| row)
                .collect();
            let (decided, _) =
                decide(&self.clauses.not_matched_by_source, open, |rows, _| taken(batch, rows))?;
            found.fates.extend(decided.into_iter().filter_map(|(row, clause)| fate(row, None, clause)));
        }
        matches.dedup_by_key(|(row, _)| *row);
        let conditions = self.clauses.matched.iter().filter_map(|clause| clause.condition.as_ref());
        let read = conditions.flat_map(BoundPredicate::columns).filter_map(BoundColumn::top_level);
        for part in self.sides.parts(batch, &matches, read) {
            let paired = |pairs: &[_], condition: &BoundPredicate| self.paired(batch, pairs, condition);
            let (decided, has_kept) = decide(&self.clauses.matched, part.to_vec(), paired)?;
            let fates =
                decided.into_iter().filter_map(|((row, source), clause)| fate(row, Some(source), clause));
            found.fates.extend(fates);
            found.has_kept |= has_kept;
        }
        Ok(())
    }

    /// Returns the pairs of a row of the batch and a row of the source for which the condition is true, ordered by
    /// the row of the batch.
    fn matches(&self, batch: &RecordBatch) -> Result<Vec<(u32, u32)>> {
        let named = self.sides.named(0, batch)?;
        let keys: Vec<ArrayRef> = self
            .equalities
            .iter()
            .map(|equality| equality.of_target.evaluate(&named))
            .collect::<Result<_>>()?;
        let looked_up = self.index.as_ref().map(|index| index.look_up(&keys)).transpose()?;
        let sources = u32::try_from(self.source_rows()).unwrap_or(u32::MAX);
        let (mut all, mut pairs) = (Vec::new(), Vec::new());
        for row in 0..batch.num_rows() {
            let target = u32::try_from(row).unwrap_or(u32::MAX);
            match (&self.index, &looked_up) {
                (Some(index), Some(keys)) => {
                    for source in index.rows(keys, row) {
                        pairs.push((target, source));
                        self.flush(batch, &mut pairs, &mut all, PAIRS_AT_ONCE)?;
                    }
                }
                _ => {
                    for source in 0..sources {
                        pairs.push((target, source));
                        self.flush(batch, &mut pairs, &mut all, PAIRS_AT_ONCE)?;
                    }
                }
            }
        }
        self.flush(batch, &mut pairs, &mut all, 1)?;
        Ok(all)
    }

    /// If there are at least `enough` pairs, evaluates the rest of the condition for `pairs`, and moves the pairs for
    /// which it is true to `all`.
    fn flush(
        &self,
        batch: &RecordBatch,
        pairs: &mut Vec<(u32, u32)>,
        all: &mut Vec<(u32, u32)>,
        enough: usize,
    ) -> Result<()> {
        if pairs.len() < enough {
            return Ok(());
        }
        match &self.rest {
            None => all.append(pairs),
            Some(rest) => {
                let read = rest.columns().iter().filter_map(BoundColumn::top_level);
                for part in self.sides.parts(batch, pairs, read) {
                    let mask = truth(rest, &self.paired(batch, part, rest)?)?;
                    let is_true = part.iter().zip(mask.values()).filter(|(_, is_true)| *is_true);
                    all.extend(is_true.map(|(pair, _)| *pair));
                }
                pairs.clear();
            }
        }
        Ok(())
    }

    /// Returns pairs of rows, with the columns that `condition` reads.
    fn paired(
        &self,
        batch: &RecordBatch,
        pairs: &[(u32, u32)],
        condition: &BoundPredicate,
    ) -> Result<RecordBatch> {
        let targets: UInt32Array = pairs.iter().map(|(target, _)| *target).collect::<Vec<_>>().into();
        let sources: Vec<u32> = pairs.iter().map(|(_, source)| *source).collect();
        let columns = condition.columns().iter().filter_map(BoundColumn::top_level);
        self.sides.pairs(batch, Some(&targets), &sources, columns)
    }
}

/// Returns the indices of the tables that the columns belong to.
fn tables(columns: &[BoundColumn], scope: &Scope) -> BTreeSet<usize> {
    let names = columns.iter().filter_map(BoundColumn::top_level);
    names.filter_map(|name| scope.table_of(name).map(|(place, _)| place)).collect()
}

/// Returns the columns of the table that determine what is done to a row: the columns of the condition and of the
/// clauses.
fn columns_of_target<'a>(
    condition: &'a BoundPredicate,
    clauses: &'a Clauses,
) -> impl Iterator<Item = &'a str> {
    fn conditions(clauses: &[Bound]) -> impl Iterator<Item = &BoundPredicate> {
        clauses.iter().filter_map(|clause| clause.condition.as_ref())
    }
    fn columns(condition: &BoundPredicate) -> impl Iterator<Item = &str> {
        condition.columns().iter().filter_map(BoundColumn::top_level)
    }
    let joint = once(condition).chain(conditions(&clauses.matched)).flat_map(columns);
    let of_target = joint.filter_map(|name| match clauses.joint.table_of(name)? {
        (0, name) => Some(name),
        _ => None,
    });
    of_target.chain(conditions(&clauses.not_matched_by_source).flat_map(columns))
}

/// Returns an index of the source's rows by the values of `equalities`; `None` if there are no equalities.
fn index(equalities: &[Equality]) -> Result<Option<KeyIndex>> {
    if equalities.is_empty() {
        return Ok(None);
    }
    let batches = equalities.first().map_or(0, |equality| equality.source.len());
    let of_batch =
        |batch: usize| equalities.iter().filter_map(|equality| equality.source.get(batch).cloned()).collect();
    let keys: Vec<Vec<ArrayRef>> = (0..batches).map(of_batch).collect();
    let types = equalities.iter().map(|equality| equality.key_type.clone()).collect();
    let null_safe = equalities.iter().map(|equality| equality.null_safe).collect();
    KeyIndex::new(&keys, types, null_safe).map(Some)
}

/// Splits a condition into the parts that are joined by AND. Each part keeps the time zone of the whole condition.
fn conjuncts_of(condition: Predicate) -> Vec<Predicate> {
    match condition {
        Predicate::And(all) => all,
        Predicate::InZone { clock, condition } => {
            let in_zone = |part| Predicate::InZone { clock, condition: Box::new(part) };
            conjuncts_of(*condition).into_iter().map(in_zone).collect()
        }
        one => vec![one],
    }
}

/// If `conjunct` compares a value of the table with a value of the source for equality, and they can be compared as
/// keys, returns them as an [`Equality`].
fn equality(conjunct: &Predicate, scope: &Scope, of_source: &[RecordBatch]) -> Result<Option<Equality>> {
    // The scope has already applied the time zone of the condition.
    let compared = match conjunct {
        Predicate::InZone { condition, .. } => condition.as_ref(),
        plain => plain,
    };
    let Predicate::Compare { op, left, right } = compared else { return Ok(None) };
    let null_safe = match op {
        CompareOp::Eq => false,
        CompareOp::NullSafeEq => true,
        _ => return Ok(None),
    };
    let (Ok(a), Ok(b)) = (scope.expression(left), scope.expression(right)) else { return Ok(None) };
    let place = |value: &Expression| {
        let places = tables(value.columns(), scope);
        places.first().copied().filter(|_| places.len() == 1)
    };
    let [target, source] = match (place(&a), place(&b)) {
        (Some(0), Some(1)) => [(left, a), (right, b)],
        (Some(1), Some(0)) => [(right, b), (left, a)],
        _ => return Ok(None),
    };
    let aligned = scope.aligned_times([(target.0, &target.1), (source.0, &source.1)]);
    let [(target, of_target), (_, source)] =
        aligned.unwrap_or_else(|| [target, source].map(|(value, bound)| (value.clone(), bound)));
    let Some(key_type) = key_type(of_target.data_type(), source.data_type()) else { return Ok(None) };
    let source = of_source.iter().map(|batch| source.evaluate(batch)).collect::<Result<_>>()?;
    Ok(Some(Equality { target, of_target, source, key_type, null_safe }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{BooleanArray, Date32Array, TimestampMicrosecondArray};
    use arrow::compute::{cast, kernels::cmp};

    use super::*;
    use crate::expression::predicate::filter_mask;

    const DAY: i64 = 86_400_000_000;
    const HOUR: i64 = DAY / 24;

    /// Comparing keys gives the same result as the condition, even in time zones where a day may begin later than
    /// midnight.
    #[test]
    fn times_of_different_types_are_keys_in_every_time_zone() {
        // In 2018, the clocks of São Paulo went from midnight to one o'clock on 4 November, day 17,839.
        let days = [0, 17_838, 17_839, 17_840, -1];
        let times: Vec<i64> = days
            .iter()
            .flat_map(|day| (-14..=14).map(move |hour| i64::from(*day) * DAY + hour * HOUR))
            .collect();
        let (mut dates, mut instants) = (Vec::new(), Vec::new());
        for day in days {
            for time in &times {
                dates.push(Some(day));
                instants.push(Some(*time));
            }
        }
        dates.extend([None, Some(0)]);
        instants.extend([Some(0), None]);
        let instants = TimestampMicrosecondArray::from(instants);
        let columns: [(&str, ArrayRef); 3] = [
            ("d", Arc::new(Date32Array::from(dates))),
            ("t", Arc::new(instants.clone().with_timezone("UTC"))),
            ("n", Arc::new(instants)),
        ];
        let table =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, of)| (name, of, true))).unwrap();
        for zone in ["UTC", "Europe/Berlin", "America/Sao_Paulo", "+05:00"] {
            let schema = table.schema();
            let scope = Scope::new(&[("a", &schema), ("b", &schema)], zone);
            let of_table = |place: usize| {
                let columns = schema.fields().iter().zip(table.columns());
                columns.map(move |(field, column)| (place, field.name(), Arc::clone(column)))
            };
            let both = of_table(0).chain(of_table(1));
            let both = both.map(|(place, name, column)| (scope.name_of(place, name), column, true));
            let rows = RecordBatch::try_from_iter_with_nullable(both).unwrap();
            let source = rows.clone();
            for (left, right) in
                [("a.d", "b.t"), ("a.t", "b.d"), ("b.d", "a.n"), ("a.t", "b.n"), ("b.t", "a.t")]
            {
                let condition = scope.parse(&format!("{left} = {right} AND a.d IS NOT NULL")).unwrap();
                let conjuncts = conjuncts_of(condition);
                assert_eq!(conjuncts.len(), 2);
                let found = equality(&conjuncts[0], &scope, std::slice::from_ref(&source)).unwrap();
                let found = found.unwrap_or_else(|| panic!("{left} = {right} has no keys in {zone}"));
                let keys = [found.of_target.evaluate(&rows).unwrap(), Arc::clone(&found.source[0])];
                let keys = keys.map(|keys| cast(&keys, &found.key_type).unwrap());
                let same = cmp::eq(&keys[0], &keys[1]).unwrap();
                let expected: BooleanArray = filter_mask(&scope.bind(&conjuncts[0]).unwrap(), &rows).unwrap();
                assert_eq!(same, expected, "{left} = {right} in {zone}");
                let has_date = left.ends_with('d') || right.ends_with('d');
                assert!(expected.true_count() > 0 || !has_date, "{left} = {right} in {zone}");
            }
        }
    }
}
