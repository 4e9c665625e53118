//! Compares queries of deltalog's tables in DataFusion with DataFusion's own results for the same rows in memory.

#![allow(clippy::disallowed_methods, reason = "tests wait for threads")]

mod filters;
mod inserts;
mod scans;
mod session;
mod support;
