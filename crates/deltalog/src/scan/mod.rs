//! Reads snapshots: the list of their files, and the rows in the files.

mod answers;
pub(crate) mod changes;
mod checkpoint_groups;
mod files;
mod partition_groups;
mod partitions;
mod pruner;
mod rows;
mod size;
mod statistics;
mod table;
mod task_files;
mod tasks;

pub use answers::{Answers, MinMax};
pub use files::{FileList, FileListing, ListColumn};
pub use partitions::PartitionColumns;
pub(crate) use pruner::{certain_file_filters, file_filters};
pub(crate) use rows::leaf_count;
pub use rows::{
    DataFile, FileRows, PartitionRow, ROW_COMMIT_VERSION, ROW_ID, RowScan, RowStream, RowTracking,
};
pub use size::ScanSize;
pub(crate) use statistics::StatisticsColumns;
pub(crate) use table::data_files;
pub use table::{DataFiles, TableScan};
pub use tasks::ScanTask;

#[cfg(test)]
mod skipping_tests;
