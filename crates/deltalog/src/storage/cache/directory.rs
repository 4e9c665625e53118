//! The directory of a cache: finds, adds and evicts pieces, while other processes do the same.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, DirBuilder, DirEntry, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tempfile::NamedTempFile;

use super::piece::{self, Identity, Piece};
use crate::runtime::clock;
use crate::runtime::per_process::PerProcess;
use crate::storage::lock::Locked;

/// The name of the directory. It changes if the format of the cache changes.
const NAME: &str = "deltalog-1";
const USED: &str = "used";
const NEW: &str = "new";
/// The minimum size of a file on disk.
const CLUSTER: u64 = 4096;
/// How many times the cache tries to get the lock, and the pause in between. The lock is held for microseconds, unless
/// pieces are evicted.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);
/// For how long no piece is added after a failure.
const REST: Duration = Duration::from_secs(60);
/// A file of this age that is still being written belongs to a process that has died.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The directories for which a warning was already logged.
static WARNED: PerProcess<Mutex<HashSet<PathBuf>>> = PerProcess::new();

#[derive(Debug)]
pub(super) struct Directory {
    root: PathBuf,
    limit: u64,
    /// The time from which pieces may be added again after a failure, in seconds since the epoch.
    rests_until: AtomicU64,
}

/// The locked file with the total size of all pieces.
struct Ledger(Locked);

impl Directory {
    /// Opens the directory of a cache below `path`, and creates it if necessary. If it cannot be used, logs a warning.
    pub(super) fn open(path: PathBuf, limit: u64) -> Option<Self> {
        let prepare = || {
            let root = std::path::absolute(&path)?.join(NAME);
            create_private(&root)?;
            check_private(&root)?;
            Ok(root)
        };
        match prepare() {
            Ok(root) => Some(Self { root, limit, rests_until: AtomicU64::new(0) }),
            Err(error) => {
                warn_once(&path, &error);
                None
            }
        }
    }

    /// Returns the directory of the object with the hash `hash`.
    pub(super) fn of_object(&self, hash: u128) -> PathBuf {
        let name = format!("{hash:032x}");
        let (first, rest) = name.split_at(2);
        self.root.join(first).join(rest)
    }

    /// Returns the pieces in the directory of an object.
    pub(super) fn pieces(&self, directory: &Path) -> Vec<Piece> {
        let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
        entries.filter_map(|entry| Piece::parse(entry.ok()?.file_name().to_str()?)).collect()
    }

    /// Adds a piece to the directory of its object, and deletes the object's pieces with another tag. Failures are only
    /// logged as warnings.
    pub(super) fn add(&self, directory: &Path, identity: &Identity<'_>, start: u64, content: &Bytes) {
        if content.is_empty() || seconds(clock::system_time()) < self.rests_until.load(Ordering::Relaxed) {
            return;
        }
        let piece = Piece::new(identity, start..start + content.len() as u64);
        match self.try_add(directory, &piece, identity, content) {
            Ok(()) => {}
            Err(error) => {
                self.rests_until.store(seconds(clock::system_time() + REST), Ordering::Relaxed);
                warn_once(&self.root, &error);
            }
        }
    }

    fn try_add(
        &self,
        directory: &Path,
        piece: &Piece,
        identity: &Identity<'_>,
        content: &Bytes,
    ) -> io::Result<()> {
        let target = directory.join(piece.name());
        if target.exists() {
            return Ok(());
        }
        let preamble = piece::preamble(identity, piece.range.start, content)?;
        let length = preamble.len() as u64 + content.len() as u64;
        let Some(mut file) = self.reserve(length)? else { return Ok(()) };
        file.write_all(&preamble)?;
        file.write_all(content)?;
        create_private(directory)?;
        self.pieces(directory)
            .iter()
            .filter(|other| other.tag != piece.tag)
            .for_each(|other| other.discard(directory));
        match file.persist(&target) {
            // Another process has just removed the directory, because it was empty.
            Err(error) if error.error.kind() == io::ErrorKind::NotFound => {
                create_private(directory)?;
                error.file.persist(&target).map(drop).map_err(|error| error.error)
            }
            persisted => persisted.map(drop).map_err(|error| error.error),
        }
    }

    /// Creates a file for `length` bytes, if there is room in addition to the bytes that other processes are adding.
    fn reserve(&self, length: u64) -> io::Result<Option<NamedTempFile>> {
        let size = on_disk(length);
        if size > self.limit {
            return Ok(None);
        }
        create_private(&self.root.join(NEW))?;
        let Some(mut ledger) = Ledger::lock(&self.root.join(USED))? else { return Ok(None) };
        let used = match ledger.used() {
            Some(used) if used.saturating_add(size) <= self.limit => used,
            _ => self.evict(size),
        };
        let fits = used.saturating_add(size) <= self.limit;
        // From here on, other processes count this file.
        let file = match fits {
            true => {
                let file = tempfile::Builder::new().tempfile_in(self.root.join(NEW))?;
                file.as_file().set_len(length)?;
                Some(file)
            }
            false => None,
        };
        ledger.set_used(if fits { used + size } else { used })?;
        Ok(file)
    }

    /// Deletes the least recently used pieces until there is room for `size` bytes and some more. Returns the total
    /// size of the remaining pieces.
    fn evict(&self, size: u64) -> u64 {
        let mut used = 0_u64;
        let mut by_time: BTreeMap<u64, u64> = BTreeMap::new();
        let now = clock::system_time();
        // Files that are still being written are counted first. So if a file is renamed during the count, it is counted
        // twice rather than missed.
        for entry in entries(&self.root.join(NEW)) {
            let Ok(meta) = entry.metadata() else { continue };
            let age = meta.modified().ok().and_then(|modified| now.duration_since(modified).ok());
            match age {
                Some(age) if age > ABANDONED => drop(fs::remove_file(entry.path())),
                _ => used = used.saturating_add(on_disk(meta.len())),
            }
        }
        self.each_piece(|_, length, modified| {
            used = used.saturating_add(on_disk(length));
            *by_time.entry(seconds(modified)).or_default() += on_disk(length);
        });
        if used.saturating_add(size) <= self.limit {
            return used;
        }
        let wanted = (self.limit - self.limit / 8).saturating_sub(size);
        let mut excess = used.saturating_sub(wanted);
        let mut sum = 0_u64;
        let mut times = by_time.into_iter();
        let newest = times.find_map(|(time, bytes)| {
            sum = sum.saturating_add(bytes);
            (sum >= excess).then_some(time)
        });
        let newest = newest.unwrap_or(u64::MAX);
        let mut evicted = 0_u64;
        self.each_piece(|path, length, modified| {
            if excess > 0 && seconds(modified) <= newest && fs::remove_file(path).is_ok() {
                excess = excess.saturating_sub(on_disk(length));
                used = used.saturating_sub(on_disk(length));
                evicted += 1;
                if let Some(directory) = path.parent() {
                    // This fails if the directory contains other pieces.
                    let _ = fs::remove_dir(directory);
                }
            }
        });
        tracing::debug!(directory = %self.root.display(), evicted, used, "pieces of the cache were evicted");
        used
    }

    /// Calls `visit` with the path, the size and the time of each piece.
    fn each_piece(&self, mut visit: impl FnMut(&Path, u64, SystemTime)) {
        for shelf in entries(&self.root).filter(|entry| entry.file_name().len() == 2) {
            for object in entries(&shelf.path()) {
                for piece in entries(&object.path()) {
                    let Ok(meta) = piece.metadata() else { continue };
                    visit(&piece.path(), meta.len(), meta.modified().unwrap_or(UNIX_EPOCH));
                }
            }
        }
    }
}

impl Ledger {
    /// Locks the file with the total size. Returns `None` if other processes hold the lock for too long.
    fn lock(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Locked::new(file, TRIES, PAUSE)?.map(Self))
    }

    /// Returns the total size, if it is known.
    fn used(&mut self) -> Option<u64> {
        let mut bytes = Vec::new();
        let mut file = self.0.file();
        file.rewind().ok()?;
        file.take(9).read_to_end(&mut bytes).ok()?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    }

    fn set_used(&mut self, used: u64) -> io::Result<()> {
        let mut file = self.0.file();
        file.rewind()?;
        file.write_all(&used.to_le_bytes())
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok)
}

/// Returns the disk space that a piece takes. It includes a directory, because most pieces have a directory of their
/// own.
fn on_disk(length: u64) -> u64 {
    (length.div_ceil(CLUSTER) + 1).saturating_mul(CLUSTER)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Creates a directory and its parents, unless they exist. Only this user gets access to them.
fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes sure that other users can neither read nor change the cache.
#[cfg(unix)]
fn check_private(root: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let meta = fs::symlink_metadata(root)?;
    if !meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory"));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(root, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(windows)]
fn check_private(_: &Path) -> io::Result<()> {
    Ok(())
}

fn warn_once(path: &Path, error: &io::Error) {
    if WARNED.get().lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned()) {
        tracing::warn!(
            directory = %path.display(),
            %error,
            "the cache on the local disk cannot be used or added to: the store is read instead"
        );
    }
}
