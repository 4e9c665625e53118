//! Everything that is computed from a row: predicates, SQL expressions, and the rules of a table. Does no I/O.

pub(crate) mod constraints;
pub(crate) mod predicate;
