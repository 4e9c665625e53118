//! Tools for tests: they measure memory, make stores fail, simulate many processes, and check the results.
//!
//! | module | what it contains |
//! | --- | --- |
//! | [`coverage`] | records which code has run, if the code was compiled with counters |
//! | [`meter`] | an allocator that measures the peak memory of a piece of code |
//! | [`random`] | random numbers that depend only on a seed |
//! | [`store`] | a store in memory, whose requests can be made to fail |
//! | [`simulation`] | processes that share a store, take turns, and fail or crash as determined by a seed |
//! | [`s3`] | a server for S3 that counts requests and makes them fail |
//! | [`servers`] | object-store servers of other projects, which must be installed separately |
//! | [`judge`] | a naive replay of a log, and checks of the results that processes received |
//!
//! This crate does not use deltalog, so that the judge does not share deltalog's mistakes.

pub mod coverage;
pub mod judge;
pub mod meter;
pub mod random;
pub mod s3;
pub mod servers;
pub mod simulation;
pub mod store;

pub use meter::{Meter, measure};
