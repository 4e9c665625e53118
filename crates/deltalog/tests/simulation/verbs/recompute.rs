//! Statistics that are computed anew. Protocol: "Per-file Statistics", "Add File and Remove File".

use deltalog::{ErrorKind, RecomputeRequest, Snapshot, recompute_statistics};
use deltalog_testkit::judge::{Intent, Outcome};

use super::optimize::ABOUT_THE_TABLE;
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
        match recompute_statistics(&base, request, &session.environment) {
            Ok(done) => session.process.note(format!("has computed {:?}", done.metrics)),
            // Its commits change no rows, so it does not matter whether one of them is there.
            Err(error) if error.kind() == ErrorKind::CommitStateUnknown => {
                session.process.note(format!("does not know its commit: {error}"));
            }
            Err(error)
                if error.kind() == ErrorKind::CommitConflict
                    && error.reason().is_some_and(|reason| ABOUT_THE_TABLE.contains(&reason)) =>
            {
                session.process.note(format!("gives up: {error}"));
            }
            Err(error) => return Err(error),
        }
        Ok(Outcome::Done)
    });
}
