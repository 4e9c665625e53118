//! OPTIMIZE, which moves rows to fewer, larger files. Protocol: "Add File and Remove File", "Deletion Vectors".

use deltalog::{ColumnPath, OptimizeRequest, Snapshot, optimize};
use deltalog_testkit::judge::Intent;

use crate::session::{Session, live_files};

/// Merges some files into one, or orders the rows of all files along a curve, in one commit or in several.
pub fn run(session: &mut Session<'_>) {
    if !session.cast.has_rows {
        return super::compact::compact(session);
    }
    session.operate("optimize", Intent::Maintain, |session, _| {
        let base = Snapshot::open(&session.storage, None)?;
        let size = live_files(&base)?.iter().map(|file| file.size.unsigned_abs()).max().unwrap_or(1);
        let mut request = OptimizeRequest::default();
        request.target_size = Some(size * (2 + session.process.below(3)));
        match session.process.below(4) {
            0 => request.full = !base.clustering_columns()?.is_empty(),
            1 if base.clustering_columns()?.is_empty() => request.z_order = vec![ColumnPath::new(["class"])],
            _ => {}
        }
        if session.process.below(2) == 0 {
            request.bytes_of_a_commit = 1;
        }
        let done = optimize(&base, request, &session.environment);
        session.maintained(done.map(|done| done.commits))
    });
}
