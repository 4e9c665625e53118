//! The operations on a table: each folder is one kind of operation, and imports only from those above it in this table.
//!
//! | folder | what it does |
//! | --- | --- |
//! | `rewrite` | what the others share: rows found in the files of a version, files written again |
//! | `define` | creates and replaces tables, and changes their schema, properties and features |
//! | `maintain` | OPTIMIZE, VACUUM, RESTORE, statistics, repair |
//! | `insert` | writes rows: alone, from several processes, in place of others |
//! | `dml` | DELETE, UPDATE and MERGE |
//! | `exchange` | CONVERT and CLONE |
//! | `stream` | reads a table as a stream of batches |

pub(crate) mod define;
pub(crate) mod dml;
pub(crate) mod exchange;
pub(crate) mod insert;
pub(crate) mod maintain;
pub(crate) mod rewrite;
pub(crate) mod stream;
