//! An index of the columns and terms that a binder has bound, because an expression may have thousands of them.

use std::hash::BuildHasher;

use arrow::datatypes::DataType;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::ast::Expr;
use super::bind_value::Value;
use super::bound::{Arena, BoundColumn, Source, Term};
use super::function::Function;

/// The positions of columns and terms in an arena, by their content.
#[derive(Default)]
pub(super) struct Known {
    hasher: DefaultHashBuilder,
    columns: HashTable<(u64, usize)>,
    terms: HashTable<(u64, usize)>,
}

impl Known {
    /// Returns the index of a column, and whether it is new. A new column is added to the arena.
    pub(super) fn column(&mut self, arena: &mut Arena, column: BoundColumn) -> (usize, bool) {
        let hash = self.hasher.hash_one(&column.path);
        let is_same = |at: usize| arena.columns.get(at).is_some_and(|known| known.path == column.path);
        match found(&self.columns, hash, is_same) {
            Some(at) => (at, false),
            None => {
                arena.columns.push(column);
                (insert(&mut self.columns, hash, arena.columns.len() - 1), true)
            }
        }
    }

    /// Returns the index of the term for functions of a column. The term is added if it is missing.
    pub(super) fn ordered(
        &mut self,
        arena: &mut Arena,
        column: usize,
        functions: Vec<Function>,
        data_type: DataType,
    ) -> usize {
        let hash = self.hasher.hash_one((column, &functions));
        let is_same = |at: usize| match arena.terms.get(at).map(|term| &term.source) {
            Some(Source::Column { column: known, functions: same }) => *known == column && *same == functions,
            _ => false,
        };
        found(&self.terms, hash, is_same).unwrap_or_else(|| {
            let at = add(arena, Source::Column { column, functions }, data_type);
            insert(&mut self.terms, hash, at)
        })
    }

    /// Returns the index of the term for the computed value `of`. The term is added if it is missing, or if its
    /// values may not be `shared` because they change from one use to the next.
    pub(super) fn computed(&mut self, arena: &mut Arena, of: &Expr, value: Value, shared: bool) -> usize {
        let Value { node, data_type } = value;
        let hash = self.hasher.hash_one((of, &data_type));
        let is_same = |at: usize| {
            arena.terms.get(at).is_some_and(|term| {
                term.data_type == data_type
                    && matches!(&term.source, Source::Computed { of: known, .. } if known == of)
            })
        };
        found(&self.terms, hash, is_same).filter(|_| shared).unwrap_or_else(|| {
            let at = add(arena, Source::Computed { of: of.clone(), value: node }, data_type);
            insert(&mut self.terms, hash, at)
        })
    }
}

fn found(table: &HashTable<(u64, usize)>, hash: u64, is_same: impl Fn(usize) -> bool) -> Option<usize> {
    table.find(hash, |(known, at)| *known == hash && is_same(*at)).map(|(_, at)| *at)
}

fn insert(table: &mut HashTable<(u64, usize)>, hash: u64, at: usize) -> usize {
    table.insert_unique(hash, (hash, at), |(hash, _)| *hash);
    at
}

fn add(arena: &mut Arena, source: Source, data_type: DataType) -> usize {
    arena.terms.push(Term { source, data_type, is_shared: false });
    arena.terms.len() - 1
}
