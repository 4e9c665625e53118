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
//! | `run` | the parts that all statements share |
//! | `assignments` | computes the new values of columns |
//! | `numbered` | numbers files for the tasks of an engine, and reads rows with their positions |
//! | `marked_rows` | records in a task what is done to rows |
//! | `tasks` | statements whose rows are found and written by tasks in several processes |
//! | `row_change` | commits the changes of a statement, however its rows were found |
//! | `statement` | the description of a statement in the log |
//! | `metrics` | names and computes what a commit says about a statement |
//!
//! - A statement that changes nothing does not commit.
//! - If rows are deleted by deletion vectors, two concurrent statements on different rows of the same file can both
//!   commit.

mod assignments;
mod delete;
mod emptied;
mod marked_rows;
mod merge;
mod metrics;
mod numbered;
mod row_change;
mod run;
mod statement;
mod tasks;
mod update;

pub use crate::write::change_files::ensure_recordable;
pub use delete::delete;
pub use marked_rows::MarkedRows;
pub use merge::{Clause, ClauseAction, Merge, MergeSource, merge};
pub use metrics::{RowCounts, StatementMetrics};
pub use numbered::{FileNumbers, NumberedFile, NumberedRows};
pub use row_change::{RowChange, RowChangeOutcome, cardinality_violation};
pub use run::{Request, files_of_statement};
pub use statement::{MergeClause, Statement};
pub use tasks::{StatementFragment, StatementTask, TaskedStatement};
pub use update::update;
