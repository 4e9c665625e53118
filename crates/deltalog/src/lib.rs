//! Delta tables: the protocol, its log, snapshots, scans and transactions, without a query engine.
//!
//! The layers, each importing only from those below it:
//!
//! | module | what it is |
//! | --- | --- |
//! | `table`, `snapshot`, `scan`, `transaction` | what a user holds |
//! | `replay`, `predicate`, `stats` | what the protocol computes, without I/O |
//! | `log`, `storage` | the files of the log, and the only I/O |
//! | `protocol` | what the protocol says: actions, schema, features, paths; no I/O |
//! | `error` | what can go wrong |
//!
//! A table is made by the first write to it, a second one appends, and a scan reads what is there:
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::array::{Int64Array, RecordBatch};
//! use deltalog::protocol::{PrimitiveType, StructField, StructType};
//! use deltalog::scan::TableScan;
//! use deltalog::transaction::{Operation, SaveMode};
//! use deltalog::{Environment, PendingWrite, Snapshot, Storage, WriteRequest};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let location = directory.path().to_str().ok_or("no UTF-8")?;
//! let storage = Storage::open(location, [])?;
//! let environment = Environment::system();
//! let schema = StructType::try_new(vec![StructField::new("id", PrimitiveType::Long, true)])?;
//!
//! for ids in [vec![1, 2], vec![3]] {
//!     let request = WriteRequest {
//!         schema: schema.clone(),
//!         mode: SaveMode::Append,
//!         partition_by: None,
//!         configuration: Default::default(),
//!         name: None,
//!         description: None,
//!     };
//!     // Only the modes that may leave the table alone give `None`.
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
//! // Versions stay readable.
//! assert_eq!(Snapshot::open(&storage, Some(0))?.totals()?.files, 1);
//! # Ok(())
//! # }
//! ```

mod calendar;
pub mod changes;
pub mod checkpoint;
pub mod commit_actions;
pub mod deletion_vector;
pub mod environment;
pub mod error;
pub mod history;
pub mod log;
mod parallel;
pub mod pending_write;
pub mod predicate;
pub mod protocol;
pub mod replay;
pub mod scan;
pub mod snapshot;
pub mod stats;
pub mod storage;
pub mod transaction;
pub mod verify;
pub mod write;

pub use environment::Environment;
pub use error::{Error, ErrorKind, Result};
pub use pending_write::{PendingWrite, WriteRequest};
pub use snapshot::{Snapshot, SnapshotBuilder, Totals};
pub use storage::Storage;

/// Compiles the Rust example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
