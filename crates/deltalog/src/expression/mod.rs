//! Everything that is computed from rows: predicates, SQL expressions, and the rules of a table. This layer does no
//! I/O.

pub(crate) mod constraints;
pub(crate) mod predicate;
