//! Code that statements and maintenance share: finding rows in the files of a version, and rewriting files.
//!
//! | file | what it does |
//! | --- | --- |
//! | `listed` | lists the files of a version |
//! | `candidates` | selects the files in which a statement may find rows |
//! | `finder` | finds the positions of rows in files |
//! | `partition_choice` | selects whole partitions |
//! | `row_writer` | writes the new files of a statement, and the files for its change data feed |
//! | `copied` | copies the remaining rows of a file when other rows are removed |
//! | `rewriter` | rewrites files with the same rows |

mod candidates;
mod copied;
mod finder;
mod listed;
mod partition_choice;
mod rewriter;
mod row_writer;

pub(crate) use candidates::{Candidate, candidates, live_rows, reads_partitions_only, truth_in_partition};
pub use candidates::{FilesApart, listed_apart};
pub(crate) use copied::copy_others;
pub(crate) use finder::{Finder, Found, Positions, condition_of, read_file, scan_of, truth};
pub use listed::{ListedFile, listed_files};
pub(crate) use listed::{current_actions, files_in_doubt, list, visit_files};
pub(crate) use partition_choice::PartitionChoice;
pub(crate) use rewriter::{Rewriter, Rewritten};
pub(crate) use row_writer::RowWriter;
