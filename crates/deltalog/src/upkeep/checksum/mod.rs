//! Writes the checksum file of a committed version. (PROTOCOL, "Version Checksum File".)
//!
//! ```text
//!   N.crc of the base  +  the commits since  =  M.crc
//! ```
//!
//! - To write a checksum, neither the file list nor any commit is read, because a transaction has the commits since its
//!   base in memory. If the checksum of the base is not known, versions have no checksum until the next checkpoint,
//!   which counts the files.
//! - For a commit of this crate, its actions show how the totals change. For commits of other writers this is
//!   uncertain, so totals are only carried across them as long as the checksum lists all files.
//! - A field whose exact value is not known is left out. If the field is required, no checksum file is written.
//! - Every checkpoint that is written after a commit counts the files. If the count differs from the derived checksum,
//!   the checksum is computed again by counting. The checksums of later versions are then deleted, because they may
//!   have been derived from the wrong one.
//! - An existing file is never replaced. The protocol forbids it, because another writer may have recorded more in it.
//! - If the file was not written immediately after its commit, the table may have been dropped in between. In a store
//!   without directories, the file is then deleted again if its commit does not exist any more or is a different one.
//! - The file is not synced to disk. If it is incomplete after a power failure, readers ignore it.

mod live_files;
mod recount;
mod running;

use crate::commit::OwnCommit;
use crate::error::Result;
use crate::log::VersionChecksum;
use crate::log::replay::Commit;
use crate::protocol::PathResolver;
use crate::protocol::log_name::LogFileName;
use crate::snapshot::{KnownChecksum, Snapshot, doubt_checksums, is_checksum_doubted};
use crate::storage::Storage;

use super::derived::put_derived;
use super::duties::Duties;
use running::extended;

/// The files of a table are counted if no checksum is known, the table has no checkpoint, and its commits have at most
/// this total size in bytes. A snapshot has these commits in memory, so this takes little time.
const SMALL_LOG: u64 = 1 << 20;

/// A checksum that was derived without counting files.
pub(super) struct Derived {
    checksum: VersionChecksum,
    /// Whether all totals are known. A total that is missing here would also be missing in later versions.
    pub(super) is_complete: bool,
}

impl Derived {
    /// Returns whether the derived number of live files equals the number that was counted for the checkpoint of this
    /// version. Logs a difference.
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

/// A committed version, and the data from which its checksum is derived.
pub(super) struct Since {
    pub(super) storage: Storage,
    pub(super) version: u64,
    /// The version on which the transaction was based; `None` if the transaction created the table.
    pub(super) base: Option<Snapshot>,
    /// The commits in between. See [`CommittedVersion::winners`](crate::commit::CommittedVersion::winners).
    pub(super) winners: Option<Vec<Commit>>,
    /// The commit of the version.
    pub(super) own: OwnCommit,
}

/// Returns the checksum of a committed version, if it can be derived without reading the file list. The checksum is
/// kept for later commits.
pub(super) fn derive(committed: &Since) -> Result<Option<Derived>> {
    let Some(winners) = &committed.winners else { return Ok(None) };
    let Some(known) = known_before(committed)? else { return Ok(None) };
    let earlier: Vec<&Commit> = known.since.iter().map(|commit| &**commit).chain(winners).collect();
    let resolver = match &committed.base {
        Some(base) => base.resolver().clone(),
        None => PathResolver::new(committed.storage.root())?,
    };
    let Some((mut checksum, is_complete)) = extended(known.checksum, &earlier, &committed.own, &resolver)?
    else {
        return Ok(None);
    };
    // Checksums of early writers lack the protocol and the metadata. If no later commit has set them, they are taken
    // from the base.
    if let Some(base) = &committed.base {
        checksum.protocol.get_or_insert_with(|| base.protocol().clone());
        checksum.metadata.get_or_insert_with(|| base.metadata().clone());
        base.left_over().keep_checksum(committed.version, &checksum);
    }
    Ok(Some(Derived { checksum, is_complete }))
}

/// Writes the checksum of a version right after its commit, if it can be derived.
pub(super) fn write_derived(committed: &Since) -> Result<()> {
    match derive(committed)? {
        Some(derived) => write(&committed.storage, committed.version, &derived),
        None => Ok(()),
    }
}

/// Writes a checksum that was derived, right after its commit.
pub(super) fn write(storage: &Storage, version: u64, derived: &Derived) -> Result<()> {
    let path = LogFileName::Checksum(version).path();
    storage.put_volatile_if_absent(&path, derived.checksum.to_json()?.into())?;
    take_back_if_doubted(storage, version)
}

/// Deletes the derived checksum that was just written, if it may be wrong. This is the case if a checkpoint has found
/// in the meantime that an earlier checksum was wrong: the checkpoint then deletes later checksums, but may have missed
/// this one.
pub(super) fn take_back_if_doubted(storage: &Storage, version: u64) -> Result<()> {
    match is_checksum_doubted(storage, version) {
        true => storage.delete(&LogFileName::Checksum(version).path()),
        false => Ok(()),
    }
}

/// Writes a derived checksum soon after its commit. The commit does not wait for it.
pub(super) fn write_behind(duties: &Duties, derived: &Derived) -> Result<()> {
    put(duties, &derived.checksum)
}

/// Writes a derived checksum, perhaps long after its commit.
pub(super) fn write_later(duties: &Duties, derived: &Derived) -> Result<()> {
    put_later(duties, &derived.checksum)
}

/// Writes the checksum of a committed version by counting its files, which a checkpoint has just listed.
pub(super) fn recount(duties: &Duties) -> Result<()> {
    put_later(duties, &recount::of(&duties.base.at_version(duties.version)?)?)
}

/// After a checksum turned out to be wrong, makes sure that only the checksum of the committed version is used to
/// derive later ones, both by snapshots that have read a checksum and by other writers. Deletes the checksums of later
/// versions, because each is derived from the one before.
pub(super) fn doubt_others(duties: &Duties) -> Result<()> {
    let mut next = duties.version + 1;
    loop {
        // The newest version is looked up, not taken from a listing, because a stray file may have a version that is
        // far too high.
        let newest = duties.base.refresh()?.version();
        duties.base.left_over().forget_checksum();
        // The doubt is recorded before checksums are deleted, so that a checksum that is being written concurrently is
        // deleted either here or by its writer.
        doubt_checksums(duties.storage(), newest, duties.version);
        // Versions that were committed before the doubt was recorded are handled in the next round.
        if next > newest {
            return Ok(());
        }
        for version in next..=newest {
            duties.storage().delete(&LogFileName::Checksum(version).path())?;
        }
        next = newest + 1;
    }
}

/// Writes a checksum, unless the table was replaced. Otherwise it would be taken for the checksum of the new table once
/// that table reaches this version.
fn put_later(duties: &Duties, checksum: &VersionChecksum) -> Result<()> {
    duties.base.newest_version()?;
    put(duties, checksum)
}

fn put(duties: &Duties, checksum: &VersionChecksum) -> Result<()> {
    let path = LogFileName::Checksum(duties.version).path();
    put_derived(&duties.base, &path, checksum.to_json()?.into(), Storage::put_volatile_if_absent).map(drop)
}

/// Returns the checksum from which the checksum of the committed version is derived.
fn known_before(committed: &Since) -> Result<Option<KnownChecksum>> {
    let Some(base) = &committed.base else {
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
