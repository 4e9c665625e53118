//! Optimistic transactions.
