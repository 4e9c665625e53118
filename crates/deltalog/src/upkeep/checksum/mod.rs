//! Writing the checksum file of a committed version. (PROTOCOL, "Version Checksum File".)
//!
//! ```text
//!   N.crc of the base  +  the commits since  =  M.crc
//! ```
//!
//! - Neither the file list nor a commit is read for a checksum: a transaction has the commits since its base in memory.
//!   If the checksum of the base is not known, a version has none until the next checkpoint, whose files are counted.
//! - A field that cannot be told exactly is left out. If a required one cannot, no file is written.
//! - Every checkpoint counts the files. If there are others than a checksum would say, they are counted for it anew,
//!   and the checksums of later versions, which were derived meanwhile, are deleted.
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
use crate::snapshot::KnownChecksum;
use crate::storage::Storage;

use super::CommittedVersion;
use super::duties::Duties;
use running::extended;

/// The size in bytes up to which the commits of a table without a checkpoint are counted when no checksum is
/// known. A snapshot has them in memory.
const SMALL_LOG: u64 = 1 << 20;

/// A checksum that was derived without counting files.
pub(super) struct Derived {
    checksum: VersionChecksum,
    /// Whether it has all totals. A total that is not known would not be known of later versions either.
    pub(super) is_complete: bool,
}

impl Derived {
    /// Returns whether it has the number of live files that the checkpoint of its version has counted, and logs if not.
    pub(super) fn agrees_with(&self, duties: &Duties, counted: u64) -> bool {
        let derived = self.checksum.num_files;
        if counted != derived {
            let (table, version) = (duties.storage().url(), duties.version);
            tracing::warn!(
                table,
                version,
                derived,
                counted,
                "the checksums of earlier versions have a wrong number of files: counting them for this version"
            );
        }
        counted == derived
    }
}

/// Returns the checksum of a committed version if it can be derived without reading the file list.
pub(super) fn derive(committed: &CommittedVersion<'_>) -> Result<Option<Derived>> {
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
    Ok(Some(Derived { checksum, is_complete }))
}

/// Writes a checksum that was derived.
pub(super) fn write(storage: &Storage, version: u64, derived: &Derived) -> Result<()> {
    put(storage, version, &derived.checksum)
}

/// Writes the checksum of a committed version by counting its files, which a checkpoint has just listed.
pub(super) fn recount(duties: &Duties) -> Result<()> {
    let Duties { base, version, .. } = duties;
    put(base.storage(), *version, &recount::of(&base.at_version(*version)?)?)
}

/// Makes sure that the checksums that were written since the committed version are not carried on, neither by snapshots
/// that have read them nor by other writers. They were derived from one that turned out to be wrong.
pub(super) fn doubt_later(duties: &Duties) -> Result<()> {
    let newest = duties.base.newest_version()?;
    let versions = duties.version + 1..=newest;
    if versions.is_empty() {
        return Ok(());
    }
    duties.base.left_over().doubt_checksums(versions.clone());
    versions
        .into_iter()
        .try_for_each(|version| duties.storage().delete(&LogFileName::Checksum(version).path()))
}

fn put(storage: &Storage, version: u64, checksum: &VersionChecksum) -> Result<()> {
    let path = LogFileName::Checksum(version).path();
    storage.put_volatile_if_absent(&path, checksum.to_json()?.into()).map(drop)
}

/// Returns the checksum from which that of the committed version can be derived.
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
