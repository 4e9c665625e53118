//! Operations that keep a table in order: its files, its statistics and its versions.

pub(crate) mod analyze;
pub(crate) mod auto_compaction;
pub(crate) mod optimize;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod vacuum;
