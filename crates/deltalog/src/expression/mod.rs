//! What is computed of a row: predicates, SQL expressions, and the rules of a table. No I/O.

pub(crate) mod constraints;
pub(crate) mod predicate;
