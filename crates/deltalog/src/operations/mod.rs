//! The operations on tables. Each folder contains one kind of operation, and imports only from folders above it in
//! this table.
//!
//! | folder | what it does |
//! | --- | --- |
//! | `rewrite` | code that the other folders share: finding rows in the files of a version, rewriting files |
//! | `define` | creates and replaces tables, and changes their schema, properties and features |
//! | `maintain` | OPTIMIZE, VACUUM, RESTORE, statistics, repair |
//! | `insert` | writes rows: from one process or from several, also replacing existing rows |
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
