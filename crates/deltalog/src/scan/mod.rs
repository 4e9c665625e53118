//! Reading a snapshot: the list of its files, and their rows.

mod rows;

pub use rows::{DataFile, PartitionRow, RowScan, RowStream};
