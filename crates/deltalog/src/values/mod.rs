//! Information about the values in files: statistics, footers, and old formats of dates. This module does no I/O.

pub(crate) mod calendar;
pub(crate) mod conversion;
pub(crate) mod footer;
pub(crate) mod int96;
pub(crate) mod stats;
