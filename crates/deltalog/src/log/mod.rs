//! The files of the transaction log: their names, the listing, and how each is read.

pub mod name;

/// The directory of the log below the table's root.
pub const LOG_DIRECTORY: &str = "_delta_log";
