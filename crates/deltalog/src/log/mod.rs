//! The files of the transaction log: their names, the listing, and how each is read.

pub mod name;

mod checkpoint_files;
mod last_checkpoint;
mod segment;
mod times;

pub use last_checkpoint::LastCheckpoint;
pub use segment::{CheckpointFiles, CommitFile, LogSegment};
pub use times::{CommitTimes, HistoryEntry, history};

/// The directory of the log below the table's root.
pub const LOG_DIRECTORY: &str = "_delta_log";
