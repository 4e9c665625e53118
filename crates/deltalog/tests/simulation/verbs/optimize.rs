//! Rows that are moved to fewer, larger files. Protocol: "Add File and Remove File", "Deletion Vectors".

use deltalog::{ErrorKind, OptimizeRequest, Snapshot, optimize};
use deltalog_testkit::judge::{Intent, Outcome};

use crate::session::{Session, live_files};

/// Reasons of conflicts with changes of the table, and not of its rows.
pub const ABOUT_THE_TABLE: [&str; 4] =
    ["metadata_changed", "protocol_changed", "table_replaced", "log_cleaned_up"];

/// Makes one file of some, in one commit or in several.
pub fn run(session: &mut Session<'_>) {
    if !session.cast.has_rows {
        return super::compact::compact(session);
    }
    session.operate("optimize", Intent::Maintain, |session, _| {
        let base = Snapshot::open(&session.storage, None)?;
        let size = live_files(&base)?.iter().map(|file| file.size.unsigned_abs()).max().unwrap_or(1);
        let mut request = OptimizeRequest::default();
        request.target_size = Some(size * (2 + session.process.below(3)));
        if session.process.below(2) == 0 {
            request.bytes_of_a_commit = 1;
        }
        match optimize(&base, request, &session.environment) {
            Ok(done) => {
                session.process.note(format!("has moved rows by {:?}", done.commits));
            }
            // Its commits change no rows, so it does not matter whether one of them is there.
            Err(error) if error.kind() == ErrorKind::CommitStateUnknown => {
                session.process.note(format!("does not know its commit: {error}"));
            }
            Err(error)
                if error.kind() == ErrorKind::CommitConflict
                    && error.reason().is_some_and(|reason| ABOUT_THE_TABLE.contains(&reason)) =>
            {
                session.process.note(format!("gives up: {error}"));
            }
            Err(error) => return Err(error),
        }
        Ok(Outcome::Done)
    });
}
