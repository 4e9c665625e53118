//! Overwrites.

use deltalog::{Operation, PendingWrite, SaveMode};
use deltalog_testkit::judge::{Intent, Outcome, Write};

use crate::session::Session;

/// Replaces all files of the newest version, or of the version of the handle.
pub fn overwrite(session: &mut Session<'_>) {
    session.operate("overwrite", Intent::write(Write::default()), |session, intend| {
        let base = session.base(3)?;
        let write = Write { replaces: Some(base.version()), ..Write::default() };
        intend(Intent::write(write.clone()));
        let request = session.request(SaveMode::Overwrite);
        let pending = PendingWrite::begin_on(&base, request, &session.environment)?;
        let pending = pending.expect("only the mode ignore returns nothing");
        let files = session.write_files(&pending, None)?;
        intend(session.adding(&files, write));
        let committed = pending.commit_or_fail(files.adds, Operation::new("WRITE"))?;
        Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
    });
}
