//! Appends of applications that number their writes. Protocol: "Transaction Identifiers".

use deltalog::engine::protocol::SetTransaction;
use deltalog::{Operation, PendingWrite, SaveMode, Snapshot};
use deltalog_testkit::judge::{Intent, Outcome, Write};

use crate::session::Session;

/// Appends the next write of one of two applications; several processes may act as the same application.
pub fn append_with_progress(session: &mut Session<'_>) {
    let app = format!("app-{}", session.process.below(2));
    session.operate("append with progress", Intent::write(Write::default()), |session, intend| {
        let recorded = Snapshot::open(&session.storage, None)?.app_transaction(&app)?;
        let next = recorded.map_or(1, |recorded| recorded.version + 1);
        let write = Write { progress: Some((app.clone(), next)), ..Write::default() };
        intend(Intent::write(write.clone()));
        let mut request = session.request(SaveMode::Append);
        request.app_transactions = vec![SetTransaction::new(app, next)];
        let pending = PendingWrite::begin(&session.storage, request, &session.environment)?;
        let pending = pending.expect("only the mode ignore returns nothing");
        let files = session.write_files(&pending, None)?;
        intend(session.adding(&files, write));
        let committed = pending.commit_or_fail(files.adds, Operation::new("STREAMING UPDATE"))?;
        Ok(Outcome::Committed { version: committed.version, txn_id: committed.txn_id })
    });
}
