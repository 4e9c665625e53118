//! Measuring tools for tests.

mod meter;

pub use meter::{Meter, measure};
