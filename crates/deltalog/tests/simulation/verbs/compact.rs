//! Log compactions. Protocol: "Log Compaction Files".

use deltalog::{Snapshot, compact_log};
use deltalog_testkit::judge::{Intent, Outcome};

use crate::session::Session;

/// Writes a log compaction of a random range of versions, up to the newest version or the version of the handle.
pub fn compact(session: &mut Session<'_>) {
    let on_handle = session.process.below(2) == 0;
    session.operate("compact", Intent::Maintain, |session, _| {
        let snapshot = match session.handle.as_ref().filter(|_| on_handle) {
            Some(handle) => handle.clone(),
            None => Snapshot::open(&session.storage, None)?,
        };
        if snapshot.version() > 0 {
            let end = 1 + session.process.below(snapshot.version());
            compact_log(&snapshot, session.process.below(end), end)?;
        }
        Ok(Outcome::Done)
    });
}
