//! Finding commits by their ids. Protocol: "Commit Provenance Information".

use deltalog::find_commit;
use deltalog_testkit::judge::{Found, Intent, Outcome};

use crate::session::Session;

/// Looks for one of the commits of this process.
pub fn find(session: &mut Session<'_>) {
    if session.commits.is_empty() {
        return;
    }
    let index = session.process.below(session.commits.len() as u64) as usize;
    let (txn_id, version) = session.commits[index].clone();
    session.operate("find", Intent::Find(txn_id.clone(), version), |session, _| {
        Ok(Outcome::Found(find_commit(&session.storage, &txn_id)?.map_or(Found::Nowhere, Found::At)))
    });
}
