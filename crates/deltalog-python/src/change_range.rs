//! The argument that names a range of changes.

use deltalog::Snapshot;
use deltalog::engine::changes::{ChangeBound, ChangeFeed};
use pyo3::prelude::*;

/// A range of changes: `deltalog.arguments.ChangeRange` in Python.
#[derive(FromPyObject)]
pub(crate) struct ChangeRange {
    start_version: Option<u64>,
    end_version: Option<u64>,
    start_timestamp_ms: Option<i64>,
    end_timestamp_ms: Option<i64>,
}

impl ChangeRange {
    /// Returns the change feed of `snapshot` for this range.
    pub(crate) fn feed(&self, snapshot: &Snapshot) -> deltalog::Result<ChangeFeed> {
        let mut feed = ChangeFeed::new(snapshot);
        if let Some(start) = change_bound("begin", self.start_version, self.start_timestamp_ms)? {
            feed = feed.from(start);
        }
        if let Some(end) = change_bound("end", self.end_version, self.end_timestamp_ms)? {
            feed = feed.to(end);
        }
        Ok(feed)
    }
}

/// Returns the version or time at which changes begin or end, if one is given.
fn change_bound(
    verb: &str,
    version: Option<u64>,
    timestamp_ms: Option<i64>,
) -> deltalog::Result<Option<ChangeBound>> {
    match (version, timestamp_ms) {
        (Some(_), Some(_)) => Err(deltalog::Error::invalid_argument(format!(
            "changes {verb} at a version or at a timestamp, not at both"
        ))),
        (version, timestamp_ms) => {
            Ok(version.map(ChangeBound::Version).or(timestamp_ms.map(ChangeBound::Timestamp)))
        }
    }
}
