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

pub mod checkpoint;
pub mod environment;
pub mod error;
pub mod log;
pub mod pending_write;
pub mod predicate;
pub mod protocol;
pub mod replay;
pub mod scan;
pub mod snapshot;
pub mod stats;
pub mod storage;
pub mod transaction;
pub mod write;

pub use environment::Environment;
pub use error::{Error, ErrorKind, Result};
pub use pending_write::{PendingWrite, WriteRequest};
pub use snapshot::{Snapshot, Totals};
pub use storage::Storage;
