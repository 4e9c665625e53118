//! The files of the transaction log.

pub mod name;
