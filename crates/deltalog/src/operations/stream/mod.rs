//! Streams: a table is read as a sequence of batches, in which each row occurs exactly once. (Delta Lake paper, §4.4
//! and §5: tables replace message queues.)
//!
//! ```text
//!            start ──────────────────────────────────────────► newest
//! snapshot   v3: file 0, file 1, …, file n │ v4: file 0 │ v5: file 0, file 1 │ …       the places of a stream
//!                       └─ offset: (v3, 1, in the snapshot)   └─ (v5, 0)
//!
//! latest(offset) ──admission──► next offset            batch(offset, next) ──► files ──► rows
//! ```
//!
//! - A stream does not store its progress. Its reader stores the [`StreamOffset`] up to which it has processed the
//!   rows, and asks for the next offset. The same two offsets always stand for the same files, even in another
//!   process.
//! - The JSON of offsets is the same as the JVM connector's, byte for byte, so that each connector can continue a
//!   checkpoint of the other one.
//! - A stream that begins with a snapshot first reads the snapshot's files in the order of (`modificationTime`,
//!   `path`), and then the commits after it. The files are sorted once; a long list is sorted in a temporary file.
//! - Only the files of `add` actions with `dataChange` belong to the stream. A commit that removes rows is an error,
//!   unless the options say how to treat it: see [`ChangeHandling`].
//! - A stream of the change data feed reads the change data files of a commit or, if it has none, its `add` and
//!   `remove` actions. Changes that belong together, such as the two rows of an update, are always in the same batch.
//! - All rows have the schema of the snapshot with which the stream was opened. If a commit changes the schema in
//!   such a way that its rows cannot be read with this schema, the stream fails. A stream that is opened again
//!   continues with the new schema, if that is possible. A stream with schema tracking ([`tracking`]) can continue
//!   after any change.
//! - The files of a commit are read once, and kept until [`TableStream::release`]. To look for new versions, a stream
//!   refreshes its snapshot, which also reads new commits ([`Snapshot::refresh`](crate::Snapshot::refresh)). As long
//!   as there are no new versions, it sends at most one request per second.

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
