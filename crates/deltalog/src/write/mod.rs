//! Writes data files, and turns files that an engine has written into `add` actions.
//!
//! | file | what it does |
//! | --- | --- |
//! | `fit` | converts a batch to the table's schema, or reports the column that does not fit |
//! | `assignable` | decides which types of values can be assigned to a column |
//! | `fit_variant` | converts variants to the form that tables store |
//! | `split` | finds the partition of each row |
//! | `inbox` | joins small batches |
//! | `group` | finds which rows of a batch belong to which partition |
//! | `held` | keeps rows that wait in memory |
//! | `overflow` | keeps rows that do not fit in memory |
//! | `partitions` | decides which rows wait, which are encoded, and which files are open |
//! | `output` | names files, and describes completed files |
//! | `footer` | reads the footer of a file |
//! | `hive` | formats and parses the names of partition directories |
//! | `data_file` | writes one Parquet file |
//! | `chunk` | divides the rows of a file into chunks that are encoded at once |
//! | `completion` | completes rows, and checks them |
//! | `data_writer` | checks the rows of one write, and passes them to their partitions |
//! | `task_report` | reads the reports of an engine's tasks |
//! | `statement_report` | writes the report of a task that is part of a statement |
//! | `reported` | turns the files in reports into `add` and `cdc` actions |
//! | `counted` | collects the values that an engine has assigned to identity columns |
//! | `iceberg` | checks files against the rules of Iceberg compatibility |
//! | `indexed` | reads from the table's properties which columns have statistics |
//! | `blooms` | reads from the table's properties which columns have Bloom filters |
//! | `nan_columns` | records which columns of a file contain a NaN |
//! | `dictionaries` | learns from files which columns should have dictionaries |
//! | `spec` | derives all rules for writers from the table's protocol and metadata |
//! | `rename` | gives a batch the physical names that a table with column mapping uses |
//!
//! - A whole batch is checked before any byte of it is written.
//! - A file is durable before its `add` action is returned. Nothing in this module commits.
//! - Files of a failed or aborted write are deleted.

mod assignable;
mod blooms;
pub(crate) mod change_files;
mod chunk;
mod completion;
mod counted;
mod data_file;
mod data_writer;
mod dictionaries;
mod encoder;
mod fit;
mod fit_leaf;
mod fit_variant;
mod footer;
mod format;
mod group;
mod held;
mod hive;
mod iceberg;
mod inbox;
mod indexed;
mod nan_columns;
mod output;
mod overflow;
mod partitions;
mod rename;
mod reported;
mod required_void;
pub(crate) mod row_copy;
pub(crate) mod row_counts;
mod spec;
mod split;
mod statement_report;
mod stored;
mod task_report;

pub(crate) use assignable::ensure_assignable;
pub use blooms::BloomFilters;
pub(crate) use blooms::{COLUMNS as BLOOM_FILTER_COLUMNS, check_bloom_filters};
pub(crate) use completion::RowCompletion;
pub use data_writer::{DataWriter, WriteOptions};
pub use dictionaries::Dictionaries;
pub use fit::fit;
pub(crate) use footer::{THREADS as FOOTER_THREADS, read_footer};
pub(crate) use held::bytes as bytes_of_rows;
pub(crate) use hive::{directory as partition_directory, partition_of_directory};
pub(crate) use iceberg::fault as iceberg_fault;
pub(crate) use indexed::{
    NAMES as STATISTICS_COLUMNS, parse_names as parse_statistics_columns, selected_columns,
};
#[cfg(test)]
pub(crate) use nan_columns::NanColumns;
pub(crate) use overflow::{Overflow, Place};
pub use reported::{Reported, ReportedBin, has_change_files, removed_rows};
pub(crate) use reported::{ensure_required, reported, reported_paths};
pub use spec::TableWriteSpec;
pub(crate) use statement_report::{RowsByFile, statement_report};
pub use task_report::StatementCounts;

#[cfg(test)]
mod chunk_tests;
#[cfg(test)]
mod data_writer_tests;
#[cfg(test)]
mod fit_tests;
#[cfg(test)]
mod iceberg_tests;
#[cfg(test)]
mod partitions_tests;
#[cfg(test)]
mod reported_tests;
