//! Everything that is computed from a row: predicates, SQL expressions, and the rules of a table. This layer does no
//! I/O.

pub(crate) mod constraints;
pub(crate) mod predicate;
