//! Reading a snapshot: the list of its files, and their rows.

mod files;
mod partitions;
mod rows;
mod table;

pub use files::{FileList, FileListing, ListColumn};
pub use partitions::PartitionColumns;
pub use rows::{DataFile, PartitionRow, RowScan, RowStream};
pub use table::{DataFiles, TableScan};
