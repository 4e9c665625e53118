//! Deletion of files that are no longer needed. Protocol: "VACUUM Protocol Check".

use std::time::Duration;

use deltalog::{ErrorKind, Snapshot, VacuumRequest, VacuumSource, plan_vacuum};
use deltalog_testkit::judge::{Intent, Outcome};

use crate::session::Session;

/// How long files are kept: longer than any write takes, and shorter than the pause between the days of a run.
pub const RETENTION_MS: i64 = 24 * 3_600_000;

/// Deletes unneeded files, which are found by a listing or in the log.
pub fn vacuum(session: &mut Session<'_>) {
    let in_log = session.process.below(3) == 0;
    session.operate("vacuum", Intent::Maintain, |session, _| {
        let newest = Snapshot::open(&session.storage, None)?;
        let plan = |source: VacuumSource| {
            let request = VacuumRequest::new(source)
                .retention(Duration::from_millis(RETENTION_MS.unsigned_abs()))
                .enforce_retention(false);
            plan_vacuum(&newest, request, &session.environment)
        };
        let plan = match plan(if in_log { VacuumSource::Log } else { VacuumSource::Listing }) {
            // The log no longer reaches back to the last VACUUM.
            Err(error) if in_log && error.kind() == ErrorKind::VersionNotFound => {
                plan(VacuumSource::Listing)?
            }
            plan => plan?,
        };
        session.process.note(format!("deletes {} files", plan.files()));
        // Other processes may write while the VACUUM runs.
        session.process.sleep(Duration::from_millis(session.process.below(2_000)));
        match plan.delete() {
            // The commits of a VACUUM change nothing, so it does not matter whether they exist.
            Err(error) if error.kind() == ErrorKind::CommitStateUnknown => {
                session.process.note(format!("does not know its commit: {error}"));
            }
            deleted => session.process.note(format!("has deleted {} files", deleted?.files)),
        }
        Ok(Outcome::Done)
    });
}
