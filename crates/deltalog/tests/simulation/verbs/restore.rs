//! RESTORE, which makes an earlier version the newest one again.

use deltalog::{RestoreRequest, Snapshot, restore};
use deltalog_testkit::judge::{Intent, Outcome, Write};

use super::vacuum::RETENTION_MS;
use crate::session::Session;

/// The maximum number of versions by which a RESTORE goes back.
const MOST_VERSIONS: u64 = 6;

/// Restores a version before the newest one, or before the version of the handle.
pub fn run(session: &mut Session<'_>) {
    session.operate("restore", Intent::write(Write::default()), |session, intend| {
        let base = session.base(3)?;
        if base.version() == 0 {
            return Ok(Outcome::Done);
        }
        let back = 1 + session.process.below(MOST_VERSIONS.min(base.version()));
        let (version, mark) = (base.version() - back, session.mark("restore"));
        intend(Intent::write(Write {
            replaces: Some(base.version()),
            restores: Some((version, mark.clone())),
            ..Write::default()
        }));
        let earlier = Snapshot::open(&session.storage, Some(version))?;
        // The files of versions that were replaced long ago may be deleted at any time, even after RESTORE has found
        // them.
        let age_ms = session.environment.now_ms() - earlier.timestamp_ms()?;
        if earlier.metadata().id != base.metadata().id || age_ms > RETENTION_MS / 2 {
            return Ok(Outcome::Done);
        }
        let mut request = RestoreRequest::default();
        request.operation.user_metadata = Some(mark);
        match restore(&base, &earlier, request, &session.environment)?.committed {
            Some(committed) => {
                Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
            }
            None => Ok(Outcome::Done),
        }
    });
}
