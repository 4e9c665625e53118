//! The files of the transaction log.
