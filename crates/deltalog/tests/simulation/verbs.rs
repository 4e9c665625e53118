//! The operations of processes. Each verb is a function of a session, in its own file.

mod add_column;
mod append;
mod append_computed;
mod checkpoint;
mod clean_up;
mod cluster;
mod compact;
mod delete_rows;
mod find;
mod optimize;
mod overwrite;
mod progress;
mod read;
mod recompute;
mod redefine;
mod replace_rows;
mod restore;
mod set_property;
mod tail;
mod update_rows;
mod vacuum;

use crate::session::Session;

/// One kind of operation on the table.
pub type Verb = fn(&mut Session<'_>);

/// The verbs that a kind of process performs, with their weights.
pub type Role = &'static [(u64, Verb)];

/// Writes, and reads the table in between.
pub const WRITER: Role = &[
    (6, append::append),
    (3, append_computed::append_computed),
    (3, overwrite::overwrite),
    (3, progress::append_with_progress),
    (4, delete_rows::delete_rows),
    (3, replace_rows::replace_rows),
    (3, update_rows::update_rows),
    (4, optimize::run),
    (2, cluster::cluster),
    (1, recompute::run),
    (1, redefine::redefine),
    (2, restore::run),
    (1, set_property::set_property),
    (1, add_column::add_column),
    (1, read::open),
    (1, read::refresh),
    (1, find::find),
];

/// Opens the table at the newest or an older version, refreshes and reopens it, and writes checkpoints.
pub const READER: Role = &[
    (3, read::open),
    (4, read::refresh),
    (2, read::open_older),
    (2, read::reopen),
    (1, checkpoint::of_handle),
];

/// Opens the table once and refreshes its handle, and writes checkpoints of versions that are no longer the newest.
pub const FOLLOWER: Role = &[(6, read::refresh), (1, read::reopen), (2, checkpoint::of_handle)];

/// Reads the table as a stream, and writes batches that must be written exactly once.
pub const TAILER: Role = &[(6, tail::tail), (1, progress::append_with_progress)];

/// Keeps the log short.
pub const KEEPER: Role = &[
    (3, checkpoint::of_newest),
    (2, checkpoint::of_handle),
    (3, compact::compact),
    (2, optimize::run),
    (2, recompute::run),
    (2, clean_up::clean_up),
    (2, vacuum::vacuum),
    (1, read::refresh),
];

pub use append::append;
pub use read::{open, open_all};
pub use tail::Tail;
pub use vacuum::RETENTION_MS as VACUUM_RETENTION_MS;
