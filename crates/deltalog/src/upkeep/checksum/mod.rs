//! Writing the checksum file of a committed version. (PROTOCOL, "Version Checksum File".)
//!
//! ```text
//!   N.crc of the base  +  the commits since  =  M.crc
//! ```
//!
//! - Neither the file list nor a commit is read for a checksum: a transaction has the commits since its base in memory.
//!   If the checksum of the base is not known, a version has none until the next checkpoint, whose files are counted.
//! - A field that cannot be told exactly is left out. If a required one cannot, no file is written.
//! - Every checkpoint counts the files. If there are others than a checksum would say, they are counted for it anew.
//! - An existing file is never replaced, as the protocol asks: another writer may have counted more than this one.
//! - The file is not synced. If a power failure tears it, readers ignore it.

mod live_files;
mod recount;
mod running;

use crate::error::Result;
use crate::log::VersionChecksum;
use crate::log::name::LogFileName;
use crate::protocol::PathResolver;
use crate::replay::Commit;
use crate::snapshot::{KnownChecksum, Snapshot};
use crate::storage::Storage;

use super::CommittedVersion;
use running::extended;

/// The size in bytes up to which the commits of a table without a checkpoint are counted when no checksum is
/// known. A snapshot has them in memory.
const SMALL_LOG: u64 = 1 << 20;

/// A checksum that was told without counting files.
pub(super) struct Told {
    checksum: VersionChecksum,
    /// Whether it has all totals.
    is_complete: bool,
}

impl Told {
    /// Returns whether the checksum may stay although the checkpoint of its version has `counted` files. A wrong number
    /// of files would be carried on from version to version, and so would a total that is not known.
    pub(super) fn agrees_with(&self, committed: &CommittedVersion<'_>, counted: Option<u64>) -> bool {
        let told = self.checksum.num_files;
        let Some(counted) = counted else { return true };
        if counted != told {
            let (table, version) = (committed.storage.url(), committed.version);
            tracing::warn!(
                table,
                version,
                told,
                counted,
                "the checksums of earlier versions have a wrong number of files: counting them for this version"
            );
        }
        counted == told && self.is_complete
    }
}

/// Returns the checksum of a committed version if it can be told without reading the file list.
pub(super) fn tell(committed: &CommittedVersion<'_>) -> Result<Option<Told>> {
    let Some(since) = &committed.since else { return Ok(None) };
    let Some(known) = known_before(committed)? else { return Ok(None) };
    let commits: Vec<&Commit> =
        known.since.iter().map(|commit| &**commit).chain(since.iter().copied()).collect();
    let resolver = match committed.base {
        Some(base) => base.resolver().clone(),
        None => PathResolver::new(committed.storage.root())?,
    };
    let Some((mut checksum, is_complete)) = extended(known.checksum, &commits, &resolver)? else {
        return Ok(None);
    };
    // Files of early writers lack both. No commit after the base has set what is still missing.
    if let Some(base) = committed.base {
        checksum.protocol.get_or_insert_with(|| base.protocol().clone());
        checksum.metadata.get_or_insert_with(|| base.metadata().clone());
    }
    Ok(Some(Told { checksum, is_complete }))
}

/// Writes a checksum that was told.
pub(super) fn write(committed: &CommittedVersion<'_>, told: &Told) -> Result<()> {
    put(committed.storage, committed.version, &told.checksum)
}

/// Writes the checksum of a committed version by counting its files, which a checkpoint has just listed.
pub(super) fn recount(committed: &CommittedVersion<'_>, base: &Snapshot) -> Result<()> {
    let checksum = recount::of(&base.at_version(committed.version)?)?;
    put(committed.storage, committed.version, &checksum)
}

fn put(storage: &Storage, version: u64, checksum: &VersionChecksum) -> Result<()> {
    let path = LogFileName::Checksum(version).path();
    storage.put_volatile_if_absent(&path, checksum.to_json()?.into()).map(drop)
}

/// Returns the checksum from which that of the committed version can be told.
fn known_before(committed: &CommittedVersion<'_>) -> Result<Option<KnownChecksum>> {
    let Some(base) = committed.base else {
        let nothing = KnownChecksum { checksum: VersionChecksum::of_nothing(), since: Vec::new() };
        return Ok((committed.version == 0).then_some(nothing));
    };
    if let Some(known) = base.known_checksum()? {
        return Ok(Some(known));
    }
    let segment = base.segment();
    let is_small = segment.checkpoint.is_none()
        && segment.commits.iter().map(|commit| commit.size).sum::<u64>() <= SMALL_LOG;
    let counted = is_small.then(|| recount::of(base)).transpose()?;
    Ok(counted.map(|checksum| KnownChecksum { checksum, since: Vec::new() }))
}
