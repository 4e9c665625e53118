//! Appends of rows that are computed from other rows.

use deltalog::{Operation, PendingWrite, SaveMode};
use deltalog_testkit::judge::{CLASSES, Intent, Outcome, Write};

use crate::session::{Session, rows_of_class};

/// Appends rows that are computed from the rows of one class. They are read at the newest version, or at the version
/// of the handle.
pub fn append_computed(session: &mut Session<'_>) {
    if !session.cast.has_rows {
        return super::append::append(session);
    }
    let class = session.process.below(CLASSES as u64) as i64;
    let write = Write { reads_class: Some(class), ..Write::default() };
    session.operate("append, computed", Intent::write(write.clone()), |session, intend| {
        let base = session.base(3)?;
        let mut request = session.request(SaveMode::Append);
        request.reads = rows_of_class(class);
        let pending = PendingWrite::begin_on(&base, request, &session.environment)?;
        let pending = pending.expect("only the mode ignore returns nothing");
        let files = session.write_files(&pending, None)?;
        intend(session.adding(&files, write));
        let committed = pending.commit_or_fail(files.adds, Operation::new("WRITE"))?;
        Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
    });
}
