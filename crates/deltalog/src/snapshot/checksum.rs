//! The checksum file of a snapshot's version: whether it can be understood, and whether it can be believed.

use crate::error::Result;
use crate::log::name::LogFileName;
use crate::log::{LogSegment, VersionChecksum};
use crate::replay::State;
use crate::storage::Storage;

/// The path of the checksum file of a segment's version.
pub(super) fn path(segment: &LogSegment) -> String {
    LogFileName::Checksum(segment.version).path()
}

/// The checksum file of a segment's version, if it has one that can be read. The listing tells whether to ask
/// for it.
pub(super) fn understood(storage: &Storage, segment: &LogSegment) -> Result<Option<VersionChecksum>> {
    if segment.checksum.is_none() {
        return Ok(None);
    }
    let path = path(segment);
    let Some(bytes) = storage.get(&path)? else { return Ok(None) };
    let warn = |error: &crate::Error| {
        tracing::warn!(table = storage.url(), file = path, %error, "an invalid checksum file is ignored");
    };
    Ok(VersionChecksum::parse(&bytes).inspect_err(warn).ok())
}

/// Whether nothing in the commits shows that the checksum file is of another commit, or of another table.
pub(super) fn believable(storage: &Storage, state: &State, checksum: &VersionChecksum) -> bool {
    fn differ<T: PartialEq>(log: Option<&T>, checksum: Option<&T>) -> bool {
        matches!((log, checksum), (Some(log), Some(checksum)) if log != checksum)
    }
    let info = state
        .single_commits()
        .find(|commit| commit.version == state.segment().version)
        .and_then(|commit| commit.commit_info.as_ref());
    let is_foreign = differ(info.and_then(|info| info.txn_id.as_ref()), checksum.txn_id.as_ref())
        || differ(state.commits().find_map(|commit| commit.protocol.as_ref()), checksum.protocol.as_ref())
        || differ(state.commits().find_map(|commit| commit.metadata.as_ref()), checksum.metadata.as_ref());
    if is_foreign {
        let file = path(state.segment());
        tracing::warn!(
            table = storage.url(),
            file,
            "a checksum file is ignored: it does not belong to the commit of its version"
        );
    }
    !is_foreign
}
