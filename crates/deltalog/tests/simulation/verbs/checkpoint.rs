//! Checkpoints.

use deltalog::{Snapshot, write_checkpoint};
use deltalog_testkit::judge::{Intent, Outcome};

use crate::session::Session;

/// Writes the checkpoint of the newest version.
pub fn of_newest(session: &mut Session<'_>) {
    session.operate("checkpoint", Intent::Maintain, |session, _| {
        write_checkpoint(&Snapshot::open(&session.storage, None)?, &session.environment)?;
        Ok(Outcome::Done)
    });
}

/// Writes the checkpoint of the handle's version, which may be an old one.
pub fn of_handle(session: &mut Session<'_>) {
    let Some(handle) = session.handle.clone() else { return of_newest(session) };
    session.operate("checkpoint of a handle", Intent::Maintain, |session, _| {
        write_checkpoint(&handle, &session.environment)?;
        Ok(Outcome::Done)
    });
}
