//! Computes statistics of files again. Protocol: "Per-file Statistics", "Add File and Remove File".

use deltalog::{RecomputeRequest, Snapshot, recompute_statistics};
use deltalog_testkit::judge::Intent;

use crate::session::Session;

/// Computes the statistics of all files, in one commit or in several.
pub fn run(session: &mut Session<'_>) {
    if !session.cast.has_rows {
        return super::compact::compact(session);
    }
    session.operate("recompute statistics", Intent::Maintain, |session, _| {
        let base = Snapshot::open(&session.storage, None)?;
        let mut request = RecomputeRequest::default();
        request.all_files = true;
        request.files_of_a_commit = 1 + session.process.below(4) as usize;
        let done = recompute_statistics(&base, request, &session.environment);
        session.maintained(done.map(|done| done.metrics))
    });
}
