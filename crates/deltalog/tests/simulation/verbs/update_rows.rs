//! UPDATE, which deletes the old rows with a deletion vector, and writes the new rows to new files. Protocol: "Deletion
//! Vectors".

use deltalog::engine::dml::{RowChange, RowChangeOutcome, RowCounts, Statement};
use deltalog::{Operation, PendingWrite, SaveMode, SetTransaction};
use deltalog_testkit::judge::{Intent, Outcome, Write};

use crate::session::Session;

/// Changes one or two rows of a file of the newest version, or of the version of the handle. Other processes change
/// rows of the same file, sometimes the same rows.
pub fn update_rows(session: &mut Session<'_>) {
    // Of the statements that change rows, only MERGE generates values of an identity column, so tables with such a
    // column get an append instead.
    if !session.cast.has("delta.enableDeletionVectors") || session.cast.counts {
        return super::append::append(session);
    }
    let mark = session.mark("update");
    let write = Write { progress: Some((mark.clone(), 1)), ..Write::default() };
    session.operate("update rows", Intent::write(write.clone()), |session, intend| {
        let base = session.base(2)?;
        let Some((file, rows)) = session.some_rows(&base)? else { return Ok(Outcome::Done) };
        let mut change = RowChange::new(&base, &session.environment)?;
        let request = session.request(SaveMode::Append);
        let pending = PendingWrite::on(&session.storage, Some(base), request, &session.environment)?;
        let pending = pending.expect("only the mode ignore returns nothing");
        let new = session.write_files(&pending, None)?;
        let deletes = Some((file.path.clone(), rows.clone()));
        intend(session.adding(&new, Write { deletes, ..write }));
        change.record([SetTransaction::new(mark, 1)]);
        change.delete_rows(file, rows.into_iter().collect());
        change.add_files(new.adds);
        let statement = Statement::Update { predicate: None };
        match change.commit(&statement, Operation::default(), &RowCounts::default())? {
            RowChangeOutcome::Committed(committed, _) => {
                Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
            }
            other => panic!("not committed: {other:?}"),
        }
    });
}
