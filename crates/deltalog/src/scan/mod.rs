//! Reading a snapshot: the list of its files, and their rows.

mod files;
mod partitions;
mod rows;

pub use files::{FileList, FileListing, ListColumn};
pub use partitions::PartitionColumns;
