//! Tools for tests: they measure memory, make stores fail, simulate many processes, and judge what these have done.
//!
//! | module | what |
//! | --- | --- |
//! | [`coverage`] | which code has run, if the compiler counts it |
//! | [`meter`] | an allocator that measures the peak memory of a piece of code |
//! | [`random`] | random numbers that depend on a seed alone |
//! | [`store`] | a store in memory, and the ways in which its requests fail |
//! | [`simulation`] | processes that share a store, take turns, and fail or crash as a seed says |
//! | [`s3`] | a server for S3 that counts requests and makes them fail |
//! | [`servers`] | object-store servers of other projects, installed apart |
//! | [`judge`] | a naive replay of a log, and checks of what processes were told |
//!
//! This crate does not use deltalog, so the judge does not share deltalog's mistakes.

pub mod coverage;
pub mod judge;
pub mod meter;
pub mod random;
pub mod s3;
pub mod servers;
pub mod simulation;
pub mod store;

pub use meter::{Meter, measure};
