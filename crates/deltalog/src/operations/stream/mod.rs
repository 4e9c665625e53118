//! Streams: a table read as a sequence of batches, each row once. (Paper, §4.4 and §5: tables replace message queues.)
//!
//! ```text
//!            start ──────────────────────────────────────────► newest
//! snapshot   v3: file 0, file 1, …, file n │ v4: file 0 │ v5: file 0, file 1 │ …       the places of a stream
//!                       └─ offset: (v3, 1, in the snapshot)   └─ (v5, 0)
//!
//! latest(offset) ──admission──► next offset            batch(offset, next) ──► files ──► rows
//! ```
//!
//! - A stream does not store its progress: its reader keeps the [`StreamOffset`] up to which rows were handled, and
//!   requests the next one. Any two offsets give the same files at any time, in any process.
//! - An offset is written as the JVM connector writes it, byte for byte, so that each continues the checkpoints of the
//!   other.
//! - A stream that begins with a snapshot reads its files in the order of (`modificationTime`, `path`), then the
//!   commits after it. The snapshot is sorted once; beyond some size, in a temporary file.
//! - Only `add` actions with `dataChange` are rows of the stream. A commit that removes rows is an error unless the
//!   reader has said what it means: see [`ChangeHandling`].
//! - A stream of the change data feed goes through the change data files of a commit, or through its `add` and `remove`
//!   actions. Changes that belong together, such as the two rows of an update, are never in different batches.
//! - All rows have the schema of the snapshot with which the stream was opened. A commit that changes the schema so
//!   that this is no longer possible is an error; opened again, the stream continues with the new schema where that is
//!   possible. A stream that notes its schemas ([`tracking`]) goes on after any change.
//! - The files of a commit are read once, and kept until [`TableStream::release`]. A look for news reads new commits,
//!   too, as [`Snapshot::refresh`](crate::Snapshot::refresh) does. A stream that has nothing new sends at most one
//!   request per second.

mod admission;
mod backlog;
mod batch;
mod commits;
mod initial;
mod offset;
mod options;
mod parts;
mod schema;
mod seen;
mod sorted;
mod start;
mod table_stream;
mod tracking;
mod wait;
mod walk;

pub use admission::StreamLimits;
pub use backlog::StreamBacklog;
pub use batch::StreamBatch;
pub use offset::StreamOffset;
pub use options::{ChangeHandling, StreamOptions, StreamStart};
pub use table_stream::TableStream;
pub use tracking::{AllowedVersion, SchemaChange, SchemaTracking};

#[cfg(test)]
mod feed_tests;
#[cfg(test)]
mod loss_tests;
#[cfg(test)]
mod tests;
