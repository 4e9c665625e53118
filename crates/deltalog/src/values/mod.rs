//! What is known of the values of a file: statistics, footers, and old forms of dates. No I/O.

pub(crate) mod calendar;
pub(crate) mod conversion;
pub(crate) mod footer;
pub(crate) mod int96;
pub(crate) mod stats;
