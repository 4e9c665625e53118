//! Clean-ups of the log. Protocol: "Metadata Cleanup".

use deltalog::{Snapshot, clean_up_log};
use deltalog_testkit::judge::{Intent, Outcome};

use crate::session::Session;

/// Deletes the expired part of the log.
pub fn clean_up(session: &mut Session<'_>) {
    session.operate("clean up", Intent::Maintain, |session, _| {
        let newest = Snapshot::open(&session.storage, None)?;
        let cleaned = clean_up_log(&newest, &session.environment, false)?;
        session.process.note(format!("deletes {} files", cleaned.files.len()));
        Ok(Outcome::Done)
    });
}
