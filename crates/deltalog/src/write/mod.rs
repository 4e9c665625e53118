//! Data files that are being written, and files that an engine has written, as `add` actions.
//!
//! | file | what it does |
//! | --- | --- |
//! | `fit` | brings a batch to the table's schema, or says which column does not fit |
//! | `split` | parts a batch by its partition values |
//! | `hive` | names the directories of partitions, and reads the names back |
//! | `data_file` | one Parquet file in the making |
//! | `data_writer` | all files of one write, within a memory budget |
//! | `adopt` | takes the files that an engine put below a directory into the table |
//! | `indexed` | which columns the table's properties want statistics of |
//!
//! - A batch is checked as a whole before a byte of it is written.
//! - A file is durable before its `add` is handed out; nothing here commits.
//! - What a write that failed or was given up had written is deleted.

mod adopt;
mod data_file;
mod data_writer;
mod fit;
mod fit_leaf;
mod hive;
mod indexed;
mod split;

pub use adopt::{AdoptOptions, Adopted, Written, adopt};
pub use data_writer::{DataWriter, WriteOptions};
pub use fit::fit;
pub use indexed::indexed_columns;

#[cfg(test)]
mod adopt_tests;
#[cfg(test)]
mod data_writer_tests;
#[cfg(test)]
mod fit_tests;
