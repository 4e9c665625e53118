//! Overwrites.

use deltalog::{Operation, PendingWrite, SaveMode, Snapshot};
use deltalog_testkit::judge::{Intent, Outcome, Write};

use crate::session::Session;

/// Replaces all files of the newest version, or of that of the handle.
pub fn overwrite(session: &mut Session<'_>) {
    let files = session.file_names();
    let write = Write { files: files.clone(), ..Write::default() };
    let on_handle = session.process.below(3) == 0;
    session.operate("overwrite", Intent::Write(write.clone()), |session, intend| {
        let base = match session.handle.as_ref().filter(|_| on_handle) {
            Some(handle) => handle.clone(),
            None => Snapshot::open(&session.storage, None)?,
        };
        intend(Intent::Write(Write { replaces: Some(base.version()), ..write }));
        let request = session.request(SaveMode::Overwrite);
        let pending = PendingWrite::begin_on(&base, request, &session.environment)?;
        let pending = pending.expect("only the mode ignore gives nothing");
        let files = session.write_files(&files)?;
        let committed = pending.commit_or_fail(files, Operation::new("WRITE"))?;
        Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
    });
}
