//! Deletes of rows, by deletion vectors. Protocol: "Deletion Vectors".

use deltalog::Operation;
use deltalog::engine::commit::Transaction;
use deltalog::engine::deletion_vector::DeletionVector;
use deltalog_testkit::judge::{Intent, Outcome, Write};

use crate::session::Session;

/// Deletes one or two rows of a file of the newest version, or of the version of the handle. Other processes delete
/// rows of the same file, sometimes the same rows.
pub fn delete_rows(session: &mut Session<'_>) {
    if !session.cast.has("delta.enableDeletionVectors") {
        return super::append::append(session);
    }
    let mark = session.mark("delete");
    let write = Write { progress: Some((mark.clone(), 1)), ..Write::default() };
    session.operate("delete rows", Intent::write(write.clone()), |session, intend| {
        let base = session.base(2)?;
        let Some((file, rows)) = session.some_rows(&base)? else { return Ok(Outcome::Done) };
        intend(Intent::write(Write { deletes: Some((file.path.clone(), rows.clone())), ..write }));
        let mut transaction = Transaction::new(&base, Operation::new("DELETE"), &session.environment)?;
        transaction.record_progress(mark, 1);
        transaction.delete_rows(file, rows.into_iter().collect::<DeletionVector>());
        let committed = transaction.commit_or_fail()?;
        Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
    });
}
