//! Predicates bound to the columns and types of a schema.

use super::ast::{ColumnPath, CompareOp, Expr, Predicate};
use super::compute::Node;
use super::function::{Function, Purpose, are_total};
use super::like::Pattern;
use super::values::{Datum, Domain};
use crate::error::Result;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use std::mem::replace;
use std::sync::Arc;

/// A column that a predicate reads, with its name spelled as in the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundColumn {
    /// The path of the column.
    pub path: ColumnPath,
    /// The type of the column.
    pub data_type: DataType,
}

impl BoundColumn {
    /// Returns the name of the top-level column: this column itself, or the one that contains it.
    pub(crate) fn top_level(&self) -> Option<&str> {
        self.path.parts().first().map(String::as_str)
    }
}

/// A value that conditions refer to by index, and its type.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) source: Source,
    pub(super) data_type: DataType,
    /// Whether several conditions and values refer to the term, so that its values should be kept once they are
    /// computed.
    pub(super) is_shared: bool,
}

/// A reference from a condition or a value to a column or a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Index into [`Arena::columns`].
    Column(usize),
    /// Index into [`Arena::terms`].
    Term(usize),
}

/// The way to get a term's values.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A column, or nested functions of a column, the innermost first. Bounds of the column give bounds of the term.
    Column {
        /// Index into [`Arena::columns`].
        column: usize,
        functions: Vec<Function>,
    },
    /// Any other expression, which is evaluated.
    Computed { of: Expr, value: Node },
}

/// The columns and terms of a bound predicate or expression, which refers to them by index.
#[derive(Debug, Clone, Default)]
pub(super) struct Arena {
    pub(super) columns: Vec<BoundColumn>,
    pub(super) terms: Vec<Term>,
}

/// Computes the values of nested functions from the values of their column.
///
/// # Errors
/// Fails if `array` does not have the column's type.
pub(super) fn apply_all(functions: &[Function], array: ArrayRef, purpose: Purpose) -> Result<ArrayRef> {
    functions.iter().try_fold(array, |array, function| function.apply(&array, purpose))
}

/// A [`Predicate`] bound to a schema.
#[derive(Debug, Clone)]
pub struct BoundPredicate {
    pub(super) source: Predicate,
    pub(super) arena: Arc<Arena>,
    pub(super) root: Bound,
    /// The columns that the condition `root` reads.
    columns: Vec<BoundColumn>,
}

/// A condition on terms. All literals have been converted to the type in which they are compared. A `column` is an
/// index into [`Arena::terms`].
#[derive(Debug, Clone)]
pub(super) enum Bound {
    /// The result is the same for all rows.
    Constant(Option<bool>),
    /// The result may be anything, because the part with this text cannot be computed.
    Unknown(String),
    /// The result is the same for all rows in which the column is not NULL, and NULL for the other rows.
    UnlessNull {
        column: usize,
        value: bool,
    },
    IsNull(usize),
    /// The value of a boolean column.
    Boolean(usize),
    /// A comparison. `op` is never `NullSafeEq`.
    Compare {
        column: usize,
        op: CompareOp,
        value: Datum,
    },
    CompareColumns {
        left: usize,
        op: CompareOp,
        right: usize,
        domain: Domain,
    },
    /// All `values` have the same domain, and they are sorted.
    In {
        column: usize,
        domain: Domain,
        values: Vec<Datum>,
        has_null: bool,
    },
    Like {
        column: usize,
        pattern: Pattern,
    },
    Is {
        condition: Box<Bound>,
        truth: Option<bool>,
    },
    And(Vec<Bound>),
    Or(Vec<Bound>),
    Not(Box<Bound>),
}

impl Arena {
    /// Returns the columns on which some parts depend, without duplicates. `visit` calls its argument for each of these
    /// parts. Each term is visited once, even if there are several references to it.
    pub(super) fn columns_of(&self, visit: impl FnOnce(&mut dyn FnMut(Part))) -> Vec<BoundColumn> {
        let (mut seen_columns, mut seen_terms) =
            (vec![false; self.columns.len()], vec![false; self.terms.len()]);
        let is_new = |seen: &mut [bool], at: usize| seen.get_mut(at).is_some_and(|seen| !replace(seen, true));
        let (mut found, mut open) = (Vec::new(), Vec::new());
        visit(&mut |part| open.push(part));
        open.reverse();
        while let Some(part) = open.pop() {
            match part {
                Part::Column(column) if is_new(&mut seen_columns, column) => {
                    found.extend(self.columns.get(column).cloned());
                }
                Part::Term(term) if is_new(&mut seen_terms, term) => {
                    let before = open.len();
                    match self.terms.get(term).map(|term| &term.source) {
                        Some(Source::Column { column, .. }) => open.push(Part::Column(*column)),
                        Some(Source::Computed { value, .. }) => value.visit(&mut |part| open.push(part)),
                        None => {}
                    }
                    open.get_mut(before..).unwrap_or_default().reverse();
                }
                Part::Column(_) | Part::Term(_) => {}
            }
        }
        found
    }

    /// Marks the terms that several parts refer to. `visit` calls its argument for each part of the condition or
    /// value.
    pub(super) fn mark_shared(&mut self, visit: impl FnOnce(&mut dyn FnMut(Part))) {
        let mut uses = vec![0_usize; self.terms.len()];
        let mut count = |part| {
            if let Part::Term(term) = part
                && let Some(uses) = uses.get_mut(term)
            {
                *uses += 1;
            }
        };
        visit(&mut count);
        for term in &self.terms {
            if let Source::Computed { value, .. } = &term.source {
                value.visit(&mut count);
            }
        }
        for (term, uses) in self.terms.iter_mut().zip(uses) {
            term.is_shared = uses > 1;
        }
    }
}

impl BoundPredicate {
    pub(super) fn new(source: Predicate, arena: Arc<Arena>, root: Bound) -> Self {
        let columns = arena.columns_of(|visit| root.visit(visit));
        Self { source, arena, root, columns }
    }

    /// Returns the original predicate, before it was bound.
    pub fn predicate(&self) -> &Predicate {
        &self.source
    }

    /// Returns the columns that the predicate reads, without duplicates.
    pub fn columns(&self) -> &[BoundColumn] {
        &self.columns
    }

    /// Splits the conditions that are joined by AND at the top level into two groups: those that read only columns
    /// for which `is_partition` returns true, and all others.
    ///
    /// The two groups together are equivalent to `self`. A group without conditions, which is always true, is `None`.
    /// For each group, [`Self::predicate`] still returns the whole original predicate, but [`Self::columns`] returns
    /// only the columns that the group reads.
    pub fn split(&self, is_partition: impl Fn(&BoundColumn) -> bool) -> (Option<Self>, Option<Self>) {
        let conjuncts = match &self.root {
            Bound::And(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        let (partition, other): (Vec<&Bound>, Vec<&Bound>) = conjuncts.iter().partition(|conjunct| {
            !conjunct.has_unknown()
                && self.arena.columns_of(|visit| conjunct.visit(visit)).iter().all(&is_partition)
        });
        (self.part(partition), self.part(other))
    }

    fn part(&self, conjuncts: Vec<&Bound>) -> Option<Self> {
        let mut conjuncts: Vec<Bound> = conjuncts.into_iter().cloned().collect();
        let root = if conjuncts.len() > 1 { Bound::And(conjuncts) } else { conjuncts.pop()? };
        Some(Self::new(self.source.clone(), Arc::clone(&self.arena), root))
    }

    /// Returns whether the predicate is NULL for a row only if one of its columns is NULL in that row. If so, and a
    /// file has no NULL in these columns, the predicate is true for every row of the file for which it is not false.
    pub(crate) fn is_null_only_by_columns(&self) -> bool {
        self.root.is_null_only_by_columns(&self.arena.terms)
    }

    /// Returns whether a part of the predicate could not be parsed or bound. Such a predicate can only be used for
    /// pruning.
    pub fn has_unknown(&self) -> bool {
        self.root.has_unknown()
    }
}

impl Bound {
    pub(super) fn has_unknown(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::Is { condition, .. } => condition.has_unknown(),
            Self::Not(condition) => condition.has_unknown(),
            Self::And(parts) | Self::Or(parts) => parts.iter().any(Self::has_unknown),
            _ => false,
        }
    }

    fn is_null_only_by_columns(&self, terms: &[Term]) -> bool {
        // Functions of a column are NULL only where the column is NULL, or where the function has no result.
        let is_column = |term: &usize| {
            terms.get(*term).is_some_and(
                |term| matches!(&term.source, Source::Column { functions, .. } if are_total(functions)),
            )
        };
        match self {
            Self::Constant(truth) => truth.is_some(),
            Self::Unknown(_) => false,
            Self::UnlessNull { column, .. }
            | Self::IsNull(column)
            | Self::Boolean(column)
            | Self::Compare { column, .. }
            | Self::Like { column, .. } => is_column(column),
            Self::In { column, has_null, .. } => !has_null && is_column(column),
            Self::CompareColumns { left, right, .. } => is_column(left) && is_column(right),
            Self::Is { condition, .. } | Self::Not(condition) => condition.is_null_only_by_columns(terms),
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().all(|part| part.is_null_only_by_columns(terms))
            }
        }
    }

    /// Calls `visit` for each reference in the condition.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(Part)) {
        match self {
            Self::Constant(_) | Self::Unknown(_) => {}
            Self::UnlessNull { column, .. }
            | Self::IsNull(column)
            | Self::Boolean(column)
            | Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::Like { column, .. } => visit(Part::Term(*column)),
            Self::CompareColumns { left, right, .. } => {
                visit(Part::Term(*left));
                visit(Part::Term(*right));
            }
            Self::Is { condition, .. } | Self::Not(condition) => condition.visit(visit),
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.visit(visit)),
        }
    }
}
