//! Appends.

use deltalog::{Operation, PendingWrite, SaveMode};
use deltalog_testkit::judge::{Intent, Outcome, Write};

use crate::session::Session;

/// Appends files to the newest version, or to the version of the handle. Creates the table if there
/// is none.
pub fn append(session: &mut Session<'_>) {
    let on_handle = session.process.below(2) == 0;
    session.operate("append", Intent::write(Write::default()), |session, intend| {
        let request = session.request(SaveMode::Append);
        let write = match session.handle.as_ref().filter(|_| on_handle) {
            Some(handle) => PendingWrite::begin_on(handle, request, &session.environment)?,
            None => PendingWrite::begin(&session.storage, request, &session.environment)?,
        };
        let write = write.expect("only the mode ignore returns nothing");
        let files = session.write_files(&write, None)?;
        intend(session.adding(&files, Write::default()));
        let committed = write.commit_or_fail(files.adds, Operation::new("WRITE"))?;
        Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
    });
}
