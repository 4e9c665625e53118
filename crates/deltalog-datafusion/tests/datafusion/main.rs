//! Tables of deltalog in DataFusion, compared with what DataFusion computes of the same rows in memory.

#![allow(clippy::disallowed_methods, reason = "tests wait for threads")]

mod filters;
mod inserts;
mod scans;
mod session;
mod support;
