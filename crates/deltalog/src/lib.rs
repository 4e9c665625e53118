//! Delta tables: the protocol, its log, snapshots, scans and transactions, without a query engine.
//!
//! | what for | where to start |
//! | --- | --- |
//! | open a table | [`Storage::open`], [`Snapshot::open`], [`Snapshot::builder`] |
//! | keep a table's newest snapshot in memory | [`Table`] |
//! | follow a table's new commits | [`Snapshot::commits`] |
//! | read a table's rows as a stream, each row once | [`TableStream`] |
//! | list a table's files | [`FileListing`] |
//! | read a table's rows, or the rows that versions have changed | [`TableScan`], [`ChangeFeed`] |
//! | share a read among several processes | [`TableScan::tasks`], [`ScanTask`] |
//! | get row counts, minima and maxima from the log alone | [`Answers`] |
//! | write the predicate of a scan | [`parse_predicate`], [`col`] and [`lit`] |
//! | evaluate SQL expressions | [`Expression`] |
//! | enforce a table's constraints | [`Constraints`], [`Check`], [`Generated`] |
//! | write | [`WriteRequest`], [`PendingWrite`] |
//! | share a write among several processes | [`DistributedWrite`], [`WriteTask`], [`Fragment`] |
//! | create and replace tables | [`TableDefinition`], [`PendingWrite::define`] |
//! | change properties, columns and constraints | [`alter_table`], [`TableChange`] |
//! | drop table features | [`drop_feature`] |
//! | combine small files into larger ones, or order rows by several columns | [`optimize`], [`Curve`] |
//! | restore an earlier version | [`restore`] |
//! | compute missing file statistics | [`recompute_statistics`] |
//! | find files that are missing or damaged, and repair the log | [`check_files`], [`repair`] |
//! | write manifests of a table's files for Presto and Athena | [`generate_manifests`] |
//! | copy a table, or create one that refers to the files of another | [`clone_table`] |
//! | turn Parquet files into a table | [`plan_conversion`] |
//! | delete files that are no longer needed | [`plan_vacuum`], [`VacuumRequest`] |
//! | keep the log small | [`write_checkpoint`], [`compact_log`], [`clean_up_log`] |
//! | write checkpoints in the background | [`Background`] |
//! | let a service decide which commits succeed | [`CommitCoordinator`] |
//! | handle errors | [`Error`], [`ErrorKind`] |
//!
//! Calls block, so callers need no async runtime. Data is passed as Arrow record batches.
//!
//! The first write creates a table, the second appends to it, and a scan reads the rows:
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::array::{Int64Array, RecordBatch};
//! use deltalog::{
//!     Environment, Operation, PendingWrite, PrimitiveType, SaveMode, Snapshot, Storage, StructField, StructType,
//!     TableScan, WriteRequest,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let location = directory.path().to_str().ok_or("no UTF-8")?;
//! let storage = Storage::open(location, [])?;
//! let environment = Environment::system();
//! let schema = StructType::try_new(vec![StructField::new("id", PrimitiveType::Long, true)])?;
//!
//! for ids in [vec![1, 2], vec![3]] {
//!     let request = WriteRequest::new(schema.clone(), SaveMode::Append);
//!     // `begin` returns `None` only in the mode `Ignore`.
//!     let write = PendingWrite::begin(&storage, request, &environment)?.ok_or("nothing to write")?;
//!     let batch = RecordBatch::try_new(Arc::clone(write.arrow_schema()), vec![Arc::new(Int64Array::from(ids))])?;
//!     let mut writer = write.writer()?;
//!     writer.write(&batch)?;
//!     let files = writer.finish()?;
//!     write.commit(files, Operation::new("WRITE"))?;
//! }
//!
//! let snapshot = Snapshot::open(&storage, None)?;
//! assert_eq!((snapshot.version(), snapshot.totals()?.files), (1, 2));
//! let mut rows = 0;
//! for batch in TableScan::new(&snapshot).read()? {
//!     rows += batch?.num_rows();
//! }
//! assert_eq!(rows, 3);
//!
//! // Earlier versions can still be read.
//! assert_eq!(Snapshot::open(&storage, Some(0))?.totals()?.files, 1);
//! # Ok(())
//! # }
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests wait for threads and measure"))]

mod commit;
#[doc(hidden)]
pub mod engine;
mod error;
mod expression;
mod limits;
mod log;
mod operations;
mod protocol;
mod runtime;
mod scan;
mod snapshot;
mod storage;
mod upkeep;
mod values;
mod write;

pub use commit::{
    AlreadyApplied, Committed, Operation, PartitionOverwrite, RowsRead, SaveMode, SchemaMode, find_commit,
};
pub use error::{Error, ErrorKind, Result};
#[doc(hidden)]
pub use expression::constraints::rule_functions;
pub use expression::constraints::{
    Check, Constraints, DefaultValue, Generated, IdentityValues, RowRules, RuleText, Violation,
};
#[doc(hidden)]
pub use expression::predicate::expression_bytes;
#[doc(hidden)]
pub use expression::predicate::function_names;
pub use expression::predicate::{
    BoundColumn, ColumnPath, CompareOp, Expr, Expression, Literal, ParseMode, Predicate, col, lit,
    parse as parse_predicate,
};
pub use log::StagedCommit;
pub use log::commit_actions::{CommitActions, CommitEntry, Commits};
pub use operations::define::alter::{ColumnPosition, NewColumn, TableChange, alter_table, drop_feature};
pub use operations::define::{CreationMode, TableDefinition};
pub use operations::exchange::clone::{CloneMetrics, CloneRequest, Cloned, clone_table};
pub use operations::exchange::convert::{Conversion, ConvertRequest, ConvertSource, plan_conversion};
pub use operations::insert::distributed::{
    CheckedFragments, DistributedWrite, Fragment, FragmentFile, WriteTask,
};
pub use operations::insert::replacement::ReplaceWhere;
pub use operations::insert::write_request::WriteRequest;
pub use operations::insert::{PendingWrite, WriteOutcome};
pub use operations::maintain::analyze::{
    RecomputeMetrics, RecomputeRequest, Recomputed, recompute_statistics,
};
pub use operations::maintain::optimize::{
    ClusteringStats, Curve, FileCount, FileSizes, OptimizeMetrics, OptimizeRequest, Optimized, optimize,
};
pub use operations::maintain::repair::{
    CheckLevel, FileCheck, FileProblem, RepairMetrics, RepairRequest, Repaired, RepairedFile, check_files,
    repair,
};
pub use operations::maintain::restore::{RestoreMetrics, RestoreRequest, Restored, restore};
pub use operations::maintain::vacuum::{
    VacuumPlan, VacuumReason, VacuumRequest, VacuumSource, Vacuumed, plan_vacuum,
};
pub use operations::stream::{
    AllowedVersion, ChangeHandling, SchemaChange, SchemaTracking, StreamBacklog, StreamBatch, StreamLimits,
    StreamOffset, StreamOptions, StreamStart, TableStream,
};
pub use protocol::{
    Add, ArrayType, CommitInfo, DataType, DeletionVectorDescriptor, DeletionVectorStorage, DomainMetadata,
    FieldMetadata, Format, MapType, Metadata, PrimitiveType, Protocol, SetTransaction, StructField,
    StructType,
};
pub use runtime::background::Background;
pub use runtime::environment::{AutoCompaction, ColumnFormat, Environment, FileFormat};
pub use runtime::progress::{ProgressObserver, ProgressReport};
pub use scan::changes::{ChangeBound, ChangeFeed, ChangePlan};
pub use scan::{
    Answers, FileList, FileListing, FileRows, ListColumn, MinMax, RowStream, ScanSize, ScanTask, TableScan,
};
pub use snapshot::history::HistoryEntry;
pub use snapshot::table::Table;
pub use snapshot::verify::{Difference, Verification};
pub use snapshot::{Snapshot, SnapshotBuilder, Totals};
pub use storage::{
    CacheStatistics, CommitCoordinator, CoordinatorEntry, CredentialProvider, Credentials, Storage,
};
pub use upkeep::checkpoint::write_checkpoint;
pub use upkeep::manifest::{GeneratedManifests, generate_manifests};
pub use upkeep::{CleanedLog, clean_up_log, compact_log};
pub use write::DataWriter;

/// Compiles the Rust example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
