//! Predicates: what a scan may leave out, and which rows it keeps.
