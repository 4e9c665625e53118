//! What processes do. Each verb is a function of a session, in a file of its own.

mod append;
mod checkpoint;
mod compact;
mod delete_rows;
mod find;
mod overwrite;
mod progress;
mod read;
mod set_property;

use crate::session::Session;

/// Does one thing with the table.
pub type Verb = fn(&mut Session<'_>);

/// The verbs of a process with their weights.
pub type Role = &'static [(u64, Verb)];

/// Writes, and looks at the table in between.
pub const WRITER: Role = &[
    (6, append::append),
    (3, overwrite::overwrite),
    (3, progress::append_with_progress),
    (4, delete_rows::delete_rows),
    (1, set_property::set_property),
    (1, read::open),
    (1, read::refresh),
    (1, find::find),
];

/// Looks at the table in every way.
pub const READER: Role = &[
    (3, read::open),
    (4, read::refresh),
    (2, read::open_older),
    (2, read::reopen),
    (1, checkpoint::of_handle),
];

/// Keeps the log short.
pub const KEEPER: Role =
    &[(3, checkpoint::of_newest), (2, checkpoint::of_handle), (3, compact::compact), (1, read::refresh)];

pub use append::append;
pub use read::{open, open_all};
