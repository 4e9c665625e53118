//! Predicates bound to the columns and types of a schema.

use super::ast::{ColumnPath, CompareOp, Predicate};
use super::function::{Function, Purpose};
use super::like::Pattern;
use super::values::{Datum, Domain};
use crate::error::Result;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

/// A column that a predicate reads, spelled as in the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundColumn {
    /// The path of the column.
    pub path: ColumnPath,
    /// The type of the column.
    pub data_type: DataType,
}

/// A column, or nested functions of a column, innermost first. `data_type` is the type of the outermost
/// result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    /// Index into [`BoundPredicate::columns`].
    pub(super) column: usize,
    pub(super) functions: Vec<Function>,
    pub(super) data_type: DataType,
}

impl Term {
    /// Computes the term's values from those of its column.
    ///
    /// # Errors
    /// If `array` does not have the column's type.
    pub(super) fn apply(&self, array: ArrayRef, purpose: Purpose) -> Result<ArrayRef> {
        self.functions.iter().try_fold(array, |array, function| function.apply(&array, purpose))
    }
}

/// A [`Predicate`] bound to a schema.
#[derive(Debug, Clone)]
pub struct BoundPredicate {
    pub(super) source: Predicate,
    pub(super) columns: Vec<BoundColumn>,
    pub(super) terms: Vec<Term>,
    pub(super) root: Bound,
}

/// A condition on terms, with every literal converted to the domain of its comparison. A `column` is an index
/// into [`BoundPredicate::terms`].
#[derive(Debug, Clone)]
pub(super) enum Bound {
    /// The same for all rows.
    Constant(Option<bool>),
    /// Any value.
    Unknown(String),
    /// The same for all rows where the column is not NULL; NULL where it is.
    UnlessNull {
        column: usize,
        value: bool,
    },
    IsNull(usize),
    /// The value of a boolean column.
    Boolean(usize),
    /// `op` is not `NullSafeEq`.
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
    /// `values` have one domain and are sorted.
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

impl BoundPredicate {
    /// Returns the predicate that was bound.
    pub fn predicate(&self) -> &Predicate {
        &self.source
    }

    /// Returns the columns that the predicate reads, without duplicates.
    pub fn columns(&self) -> &[BoundColumn] {
        &self.columns
    }

    /// Splits the conditions joined by AND at the top level into those that only read columns for which
    /// `is_partition` holds, and all others.
    ///
    /// Both parts together are equivalent to `self`; `None` is a condition that is always true. Each part
    /// keeps the whole [`Self::predicate`] of `self`, but only the columns that it reads.
    pub fn split(&self, is_partition: impl Fn(&BoundColumn) -> bool) -> (Option<Self>, Option<Self>) {
        let conjuncts = match &self.root {
            Bound::And(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        let (partition, other): (Vec<&Bound>, Vec<&Bound>) = conjuncts.iter().partition(|conjunct| {
            let mut only = !conjunct.has_unknown();
            conjunct.visit_columns(&mut |term| only &= self.column_of(term).is_some_and(&is_partition));
            only
        });
        (self.part(partition), self.part(other))
    }

    fn part(&self, conjuncts: Vec<&Bound>) -> Option<Self> {
        let mut used: Vec<usize> = Vec::new();
        for conjunct in &conjuncts {
            conjunct.visit_columns(&mut |term| {
                if !used.contains(&term) {
                    used.push(term);
                }
            });
        }
        let mut conjuncts: Vec<Bound> = conjuncts.into_iter().cloned().collect();
        for conjunct in &mut conjuncts {
            conjunct.renumber(&|term| used.iter().position(|u| *u == term).unwrap_or(term));
        }
        let root = if conjuncts.len() > 1 { Bound::And(conjuncts) } else { conjuncts.pop()? };
        let (mut columns, mut terms): (Vec<BoundColumn>, Vec<Term>) = (Vec::new(), Vec::new());
        for term in used.iter().filter_map(|term| self.terms.get(*term)) {
            let column = self.columns.get(term.column)?;
            let at = columns.iter().position(|known| known == column).unwrap_or_else(|| {
                columns.push(column.clone());
                columns.len() - 1
            });
            terms.push(Term { column: at, ..term.clone() });
        }
        Some(Self { source: self.source.clone(), columns, terms, root })
    }

    /// Returns the column of a term.
    pub(super) fn column_of(&self, term: usize) -> Option<&BoundColumn> {
        self.columns.get(self.terms.get(term)?.column)
    }

    /// Returns whether a part of the predicate was not understood, so that it can only be used for pruning.
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

    fn visit_columns(&self, visit: &mut dyn FnMut(usize)) {
        match self {
            Self::Constant(_) | Self::Unknown(_) => {}
            Self::UnlessNull { column, .. } | Self::IsNull(column) | Self::Boolean(column) => visit(*column),
            Self::Compare { column, .. } | Self::In { column, .. } | Self::Like { column, .. } => {
                visit(*column)
            }
            Self::CompareColumns { left, right, .. } => {
                visit(*left);
                visit(*right);
            }
            Self::Is { condition, .. } => condition.visit_columns(visit),
            Self::Not(condition) => condition.visit_columns(visit),
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.visit_columns(visit)),
        }
    }

    fn renumber(&mut self, to: &dyn Fn(usize) -> usize) {
        match self {
            Self::Constant(_) | Self::Unknown(_) => {}
            Self::UnlessNull { column, .. } | Self::IsNull(column) | Self::Boolean(column) => {
                *column = to(*column)
            }
            Self::Compare { column, .. } | Self::In { column, .. } | Self::Like { column, .. } => {
                *column = to(*column)
            }
            Self::CompareColumns { left, right, .. } => {
                *left = to(*left);
                *right = to(*right);
            }
            Self::Is { condition, .. } => condition.renumber(to),
            Self::Not(condition) => condition.renumber(to),
            Self::And(parts) | Self::Or(parts) => parts.iter_mut().for_each(|part| part.renumber(to)),
        }
    }
}
