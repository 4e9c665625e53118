//! Statements that delete, change and add rows: DELETE, UPDATE and MERGE.
//!
//! ```text
//!   rows of the base that go ──┐
//!   files that go as a whole ──┼── RowChange ──► one commit, with the metrics of the statement
//!   new files, change files  ──┘
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `delete`, `update`, `merge` | the statements |
//! | `run` | what they have in common |
//! | `listed` | the files of a version |
//! | `candidates` | the files in which a statement may find rows |
//! | `finder` | finds the positions of rows in files |
//! | `assignments` | computes the new values of columns |
//! | `row_writer` | writes the new files, and the files of the change data feed |
//! | `numbered` | numbers files for the tasks of an engine, and rows by their positions |
//! | `marked_rows` | notes in a task what happens to rows |
//! | `tasks` | statements whose rows are found and written by tasks in several processes |
//! | `row_change` | commits what a statement has done, however its rows were found |
//! | `statement` | the description of a statement in the log |
//! | `metrics` | names and computes what a commit says about a statement |
//!
//! - A statement that changes nothing does not commit.
//! - Two statements on different rows of one file both commit, if rows are deleted by vectors.

mod assignments;
mod candidates;
mod delete;
mod emptied;
mod finder;
mod listed;
mod marked_rows;
mod merge;
mod metrics;
mod numbered;
mod partition_choice;
mod row_change;
mod row_writer;
mod run;
mod statement;
mod tasks;
mod update;

pub use crate::change_files::ensure_recordable;
pub use candidates::{FilesApart, listed_apart};
pub(crate) use candidates::{reads_partitions_only, truth_in_partition};
pub use delete::delete;
pub(crate) use finder::{Finder, condition_of};
pub use listed::{ListedFile, listed_files};
pub(crate) use listed::{current_actions, files_in_doubt, visit_files};
pub use marked_rows::MarkedRows;
pub use merge::{Clause, ClauseAction, Merge, MergeSource, merge};
pub use metrics::{RowCounts, StatementMetrics};
pub use numbered::{FileNumbers, NumberedFile, NumberedRows};
pub(crate) use partition_choice::PartitionChoice;
pub use row_change::{RowChange, RowChangeOutcome, cardinality_violation};
pub(crate) use row_writer::RowWriter;
pub(crate) use run::copy_others;
pub use run::{Request, deletes_by_vectors, files_of_statement};
pub use statement::{MergeClause, Statement};
pub use tasks::{StatementFragment, StatementTask, TaskedStatement};
pub use update::update;
