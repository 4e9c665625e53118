//! Overwrites of the rows for which a predicate is true.

use deltalog::{Operation, PendingWrite, ReplaceWhere, RowsRead, SaveMode};
use deltalog_testkit::judge::{CLASSES, Intent, Outcome, Write};

use crate::session::{Session, rows_of_class};

/// Replaces the rows of one class in the newest version, or in the version of the handle. Sometimes the new rows are
/// computed from another class. Other processes add, delete and replace rows of this and other classes at the same
/// time.
pub fn replace_rows(session: &mut Session<'_>) {
    if !session.cast.has_rows {
        return super::append::append(session);
    }
    let class = session.process.below(CLASSES as u64) as i64;
    let reads_class = (session.process.below(2) == 0).then_some((class + 1) % CLASSES);
    let write = Write { replaces_class: Some(class), reads_class, ..Write::default() };
    session.operate("replace rows", Intent::write(write.clone()), |session, intend| {
        let base = session.base(3)?;
        let mut request = session.request(SaveMode::Overwrite);
        request.replace_where = Some(ReplaceWhere::new(format!("class = {class}")));
        request.reads = reads_class.map_or(RowsRead::Nothing, rows_of_class);
        let pending = PendingWrite::begin_on(&base, request, &session.environment)?;
        let pending = pending.expect("only the mode ignore returns nothing");
        let files = session.write_files(&pending, Some(class))?;
        intend(session.adding(&files, write));
        let committed = pending.commit_or_fail(files.adds, Operation::new("WRITE"))?;
        Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
    });
}
