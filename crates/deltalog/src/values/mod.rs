//! Facts about the values in a file: statistics, footers, and old forms of dates. This layer does no I/O.

pub(crate) mod calendar;
pub(crate) mod conversion;
pub(crate) mod footer;
pub(crate) mod int96;
pub(crate) mod stats;
