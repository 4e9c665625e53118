//! Operations that maintain a table's files, statistics and versions.

pub(crate) mod analyze;
pub(crate) mod auto_compaction;
pub(crate) mod optimize;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod vacuum;
