//! What tests measure with.

mod meter;

pub use meter::{Meter, measure};
