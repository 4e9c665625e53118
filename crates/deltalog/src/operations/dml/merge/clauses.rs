//! The clauses of a MERGE, resolved against the columns of the two tables.

use std::collections::{BTreeMap, HashSet};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use super::Merge;
use super::matching::Fate;
use super::pairs::{Sides, taken};
use crate::error::{Error, Result};
use crate::expression::constraints::ensure_bytes;
use crate::expression::predicate::{BoundColumn, BoundPredicate, ColumnPath, FieldNames, Scope};
use crate::operations::dml::assignments::{Assignments, Rows};
use crate::operations::dml::metrics::RowCounts;
use crate::operations::rewrite::{RowWriter, truth};
use crate::runtime::row_bytes::BatchBytes;
use crate::runtime::spelling::nearest_first;
use crate::snapshot::Snapshot;
use crate::write::TableWriteSpec;

/// The rows to which a clause applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Rows of the table that match a row of the source.
    Matched,
    /// Rows of the source that match no row of the table.
    NotMatched,
    /// Rows of the table that match no row of the source.
    NotMatchedBySource,
}

impl When {
    fn name(self) -> &'static str {
        match self {
            Self::Matched => "WHEN MATCHED",
            Self::NotMatched => "WHEN NOT MATCHED",
            Self::NotMatchedBySource => "WHEN NOT MATCHED BY SOURCE",
        }
    }
}

/// The action of a clause. Columns and their values are pairs of a name and a SQL expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClauseAction {
    /// Assigns these values to columns.
    Update(Vec<(String, String)>),
    /// Assigns each column of the source, except the listed ones, to the table's column of the same name. Columns
    /// that the table lacks are ignored.
    UpdateAll(Vec<String>),
    /// Deletes the row.
    Delete,
    /// Inserts a row with these values.
    Insert(Vec<(String, String)>),
    /// Inserts a row with the columns of the source, except the listed ones. Columns that the table lacks are
    /// ignored.
    InsertAll(Vec<String>),
}

impl ClauseAction {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Update(_) | Self::UpdateAll(_) => "update",
            Self::Delete => "delete",
            Self::Insert(_) | Self::InsertAll(_) => "insert",
        }
    }
}

/// A clause of a MERGE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// Whether the clause applies to rows of the table that match no row of the source (`NOT MATCHED BY SOURCE`),
    /// instead of rows that match one. This has no effect on a clause that inserts: it always applies to rows of the
    /// source that match no row of the table.
    pub by_source: bool,
    /// The condition that a row must also meet, in Spark's SQL.
    pub condition: Option<String>,
    /// What to do with the row.
    pub action: ClauseAction,
}

impl Clause {
    /// Returns the kind of rows to which the clause applies.
    pub(super) fn when(&self) -> When {
        match (&self.action, self.by_source) {
            (ClauseAction::Insert(_) | ClauseAction::InsertAll(_), _) => When::NotMatched,
            (_, true) => When::NotMatchedBySource,
            (_, false) => When::Matched,
        }
    }
}

/// A clause that is bound to the columns of the rows to which it applies.
pub(super) struct Bound {
    pub(super) condition: Option<BoundPredicate>,
    /// The new values; `None` for a DELETE.
    assignments: Option<Assignments>,
    when: When,
}

impl Bound {
    pub(super) fn is_update(&self) -> bool {
        self.assignments.is_some() && self.when != When::NotMatched
    }

    pub(super) fn is_delete(&self) -> bool {
        self.assignments.is_none()
    }

    /// Inserts rows of the source.
    pub(super) fn insert(
        &self,
        limits: BatchBytes,
        rows: &RecordBatch,
        writer: &mut RowWriter,
    ) -> Result<()> {
        let Some(assignments) = &self.assignments else { return Ok(()) };
        assignments.insert_all(limits, rows, |new| writer.insert(new))
    }
}

/// All clauses, by the kind of rows to which they apply. Clauses of the same kind keep their order.
pub(super) struct Clauses {
    /// The scope of rows of both tables, side by side.
    pub(super) joint: Scope,
    pub(super) matched: Vec<Bound>,
    pub(super) not_matched: Vec<Bound>,
    pub(super) not_matched_by_source: Vec<Bound>,
}

impl Clauses {
    /// Binds the clauses of `merge`.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a MERGE without clauses, for a clause that can never apply because the clause
    /// before it applies to all rows, and for a condition or a value that is not understood. Also returns the errors
    /// of [`Assignments::bind`].
    pub(super) fn bind(base: &Snapshot, merge: &Merge, source: &Schema) -> Result<Self> {
        if merge.clauses.is_empty() {
            return Err(Error::invalid_argument("a MERGE needs at least one WHEN clause")
                .with_hint("say what happens to rows with a match, or to rows without one"));
        }
        let (target_alias, source_alias) = (merge.target_alias.as_str(), merge.source_alias.as_str());
        if target_alias.to_lowercase() == source_alias.to_lowercase() {
            return Err(Error::invalid_argument(format!(
                "the table and the source of a MERGE have the same alias '{target_alias}'"
            ))
            .with_hint("give one of them another alias"));
        }
        let target = base.arrow_schema();
        let both = Scope::new(&[(target_alias, target), (source_alias, source)], "UTC");
        let scope_of = |when: When| match when {
            When::Matched => both.clone(),
            When::NotMatched => Scope::new(&[(source_alias, source)], "UTC").with_start_of(&both),
            When::NotMatchedBySource => Scope::new(&[(target_alias, target)], "UTC").with_start_of(&both),
        };
        let spec = TableWriteSpec::of(base)?;
        let of = |when: When| -> Result<Vec<Bound>> {
            let scope = scope_of(when);
            let clauses: Vec<&Clause> = merge.clauses.iter().filter(|clause| clause.when() == when).collect();
            let without = clauses.iter().rev().skip(1).any(|clause| clause.condition.is_none());
            if without {
                return Err(Error::invalid_argument(format!(
                    "only the last {} clause of a MERGE can be without a condition",
                    when.name()
                ))
                .with_hint("put the one without a condition last: it is for all other rows"));
            }
            let bind = |clause: &&Clause| {
                let condition = clause.condition.as_ref().map(|sql| scope.condition(sql)).transpose()?;
                let values = match &clause.action {
                    ClauseAction::Delete => None,
                    ClauseAction::Update(values) | ClauseAction::Insert(values) => Some(values.clone()),
                    ClauseAction::UpdateAll(except) | ClauseAction::InsertAll(except) => {
                        Some(all_columns(source, target, except, source_alias)?)
                    }
                };
                if values.as_ref().is_some_and(Vec::is_empty) {
                    return Err(Error::invalid_argument(format!(
                        "a {} clause of a MERGE assigns no column",
                        when.name()
                    ))
                    .with_hint("give at least one column a value, or leave the clause out"));
                }
                let rows = if when == When::NotMatched { Rows::New } else { Rows::Changed };
                let assignments = values
                    .map(|values| Assignments::bind(rows, &values, &spec, target_alias, &scope))
                    .transpose()?;
                if when != When::NotMatched {
                    let mut read: Vec<BoundColumn> =
                        condition.iter().flat_map(BoundPredicate::columns).cloned().collect();
                    read.extend(assignments.iter().flat_map(Assignments::computed_from));
                    ensure_target_bytes(&read, &scope, base)?;
                }
                Ok(Bound { condition, assignments, when })
            };
            clauses.iter().map(bind).collect()
        };
        Ok(Self {
            joint: scope_of(When::Matched),
            matched: of(When::Matched)?,
            not_matched: of(When::NotMatched)?,
            not_matched_by_source: of(When::NotMatchedBySource)?,
        })
    }

    /// Returns whether any clause for rows of the table satisfies `is`.
    pub(super) fn have(&self, is: impl Fn(&Bound) -> bool) -> bool {
        self.matched.iter().chain(&self.not_matched_by_source).any(is)
    }

    /// Returns whether a row with several matches is refused. The documentation of the module `merge` has a table of
    /// the cases.
    pub(super) fn need_one_match(&self) -> bool {
        match self.matched.as_slice() {
            [] => !self.not_matched_by_source.is_empty(),
            [only] => !only.is_delete() || only.condition.is_some(),
            _ => true,
        }
    }

    /// Returns whether the clause in `fate` updates the row, rather than deleting it.
    pub(super) fn update(&self, fate: &Fate) -> bool {
        let clauses = if fate.source.is_some() { &self.matched } else { &self.not_matched_by_source };
        clauses.get(fate.clause).is_some_and(Bound::is_update)
    }

    /// Adds the numbers of rows that `fates` update and delete to the counts.
    pub(super) fn count(&self, fates: &[Fate], counts: &mut RowCounts) {
        for fate in fates {
            let by_source = u64::from(fate.source.is_none());
            if self.update(fate) {
                counts.updated += 1;
                counts.updated_by_source += by_source;
            } else {
                counts.deleted = counts.deleted.map(|deleted| deleted + 1);
                counts.deleted_by_source += by_source;
            }
        }
    }

    /// Updates and deletes rows of a file of the table, according to `fates`, which are ordered by the position of
    /// their row.
    ///
    /// # Errors
    /// Returns the same errors as [`RowWriter::update`], and `InvalidArgument` for a row whose value cannot be
    /// computed.
    pub(super) fn apply(
        &self,
        sides: &Sides<'_>,
        fates: &[Fate],
        writer: &mut RowWriter,
        rows: &RecordBatch,
        positions: &[u64],
    ) -> Result<()> {
        let limits = sides.limits;
        // For each clause, the rows of the batch to which it applies and, for each of them, the row of the source.
        let mut groups: BTreeMap<(bool, usize), (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for (row, position) in (0u32..).zip(positions) {
            let Ok(index) = fates.binary_search_by_key(position, |fate| fate.position) else { continue };
            let Some(fate) = fates.get(index) else { continue };
            let (targets, sources) = groups.entry((fate.source.is_some(), fate.clause)).or_default();
            targets.push(row);
            sources.extend(fate.source);
        }
        for ((is_matched, clause), (targets, sources)) in groups {
            let clauses = if is_matched { &self.matched } else { &self.not_matched_by_source };
            let Some(clause) = clauses.get(clause) else { continue };
            let Some(assignments) = &clause.assignments else {
                writer.delete(&taken(rows, &targets)?)?;
                continue;
            };
            if !is_matched {
                let before = taken(rows, &targets)?;
                assignments
                    .update_all(limits, &before, &before, |before, after| writer.update(before, after))?;
                continue;
            }
            let pairs: Vec<(u32, u32)> = targets.into_iter().zip(sources).collect();
            for part in sides.parts(rows, &pairs, assignments.columns()) {
                let (targets, sources): (Vec<u32>, Vec<u32>) = part.iter().copied().unzip();
                let before = taken(rows, &targets)?;
                let pairs = sides.pairs(&before, None, &sources, assignments.columns())?;
                assignments
                    .update_all(limits, &before, &pairs, |before, after| writer.update(before, after))?;
            }
        }
        Ok(())
    }
}

/// Decides which of `clauses` applies to each item of `open`, where an item is a row or a pair of rows: the first
/// clause whose condition is true. `rows` returns the rows of some items, with the columns that a condition reads.
///
/// Returns the items to which a clause applies, each with the index of its clause, ordered by clause. Also returns
/// whether any items remain.
///
/// # Errors
/// Returns the errors of `rows`, and `InvalidArgument` for a row for which a condition has no value.
pub(super) fn decide<T: Copy>(
    clauses: &[Bound],
    mut open: Vec<T>,
    rows: impl Fn(&[T], &BoundPredicate) -> Result<RecordBatch>,
) -> Result<(Vec<(T, usize)>, bool)> {
    let mut decided = Vec::new();
    for (place, clause) in clauses.iter().enumerate() {
        if open.is_empty() {
            break;
        }
        let chosen = match &clause.condition {
            None => std::mem::take(&mut open),
            Some(condition) => {
                let mask = truth(condition, &rows(&open, condition)?)?;
                split(&mut open, mask.values().iter())
            }
        };
        decided.extend(chosen.into_iter().map(|item| (item, place)));
    }
    Ok((decided, !open.is_empty()))
}

/// Removes the items for which `mask` is true, and returns them.
fn split<T: Copy>(open: &mut Vec<T>, mask: impl Iterator<Item = bool>) -> Vec<T> {
    let (mut chosen, mut others) = (Vec::new(), Vec::new());
    for (item, is_chosen) in open.iter().zip(mask) {
        if is_chosen { chosen.push(*item) } else { others.push(*item) }
    }
    *open = others;
    chosen
}

/// Refuses columns of the table with a collation that does not compare strings byte by byte.
pub(super) fn ensure_target_bytes(read: &[BoundColumn], scope: &Scope, base: &Snapshot) -> Result<()> {
    let of_target = |column: &BoundColumn| {
        let (first, inner) = column.path.parts().split_first()?;
        let (place, name) = scope.table_of(first)?;
        let path = ColumnPath::new(std::iter::once(name.to_owned()).chain(inner.iter().cloned()));
        (place == 0).then(|| BoundColumn { path, data_type: column.data_type.clone() })
    };
    let columns: Vec<BoundColumn> = read.iter().filter_map(of_target).collect();
    ensure_bytes(&columns, base.schema())
}

/// Returns assignments of the source's columns, except the listed ones, to the table's columns of the same names.
fn all_columns(
    source: &Schema,
    target: &Schema,
    except: &[String],
    alias: &str,
) -> Result<Vec<(String, String)>> {
    let known = source.fields().iter().map(|field| field.name().as_str());
    let (of_source, of_target) = (FieldNames::new(source.fields()), FieldNames::new(target.fields()));
    if let Some(name) = except.iter().find(|name| !of_source.has(name)) {
        return Err(Error::invalid_argument(format!(
            "the source of the MERGE has no column '{name}' that could be left out"
        ))
        .with_hint(format!("the columns are: {}", nearest_first(name, known))));
    }
    let except: HashSet<String> = except.iter().map(|name| name.to_lowercase()).collect();
    let fields = source.fields().iter().filter(|field| !except.contains(&field.name().to_lowercase()));
    let kept = fields.filter(|field| of_target.has(field.name()));
    Ok(kept
        .map(|field| {
            let column = ColumnPath::new([field.name().as_str()]);
            (column.to_string(), ColumnPath::new([alias, field.name().as_str()]).to_string())
        })
        .collect())
}
