//! The files in a store, which are found by listing the table's directory once.
//!
//! - If the listing does not contain a file of the log, the store is asked for this file alone. The file may be
//!   outside of the table's directory, behind a link, or hidden from the listing. It counts as missing only if the
//!   store answers that it does not exist. If an allowed directory outside of the table does not exist, that is an
//!   error instead, because the directory may just not be mounted.
//! - The log is read before the listing, and newer commits are read after it. A file is unreferenced if it is listed
//!   but no live file and no recorded removal of these versions refers to it. Such a file may belong to a write that
//!   is not committed yet, or to an old version, because checkpoints do not keep removals forever.
//! - The directory of change data files is not listed, because the state of a version does not refer to these files.
//!   Only commits do.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use url::Url;

use crate::error::{Error, ErrorKind, Result};
use crate::operations::maintain::vacuum::{CHANGES, Retained, Visible};
use crate::protocol::{AbsolutePath, LogPath};
use crate::snapshot::Snapshot;
use crate::storage::{FileMeta, Storage};

/// The files that a store contains.
#[derive(Debug)]
pub(super) struct Stored {
    storage: Storage,
    /// The allowed roots outside of the table's directory, as URIs.
    roots: Vec<String>,
    /// The sizes of the files that the log refers to.
    sizes: HashMap<String, u64>,
    /// The files that the log does not refer to.
    pub(super) unreferenced: Vec<FileMeta>,
}

impl Stored {
    /// Lists the table's directory.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store.
    pub(super) fn of(snapshot: &Snapshot) -> Result<Self> {
        let storage = snapshot.storage();
        let newest = snapshot.refresh()?;
        let mut named = Retained::of(&newest, i64::MIN)?;
        if newest.version() != snapshot.version() {
            named.keep_live(snapshot)?;
        }
        let visible = Visible::of(snapshot);
        let enters = |directory: &str| directory != CHANGES && visible.enters(directory);
        let has_markers = !storage.has_directories();
        let (mut sizes, mut unreferenced) = (HashMap::new(), Vec::<FileMeta>::new());
        storage.walk("", &enters, |files| {
            for file in files {
                if named.keeps(&file.name) {
                    sizes.insert(file.name, file.size);
                } else if Visible::shows(&file.name)
                    && !(has_markers && file.size == 0)
                    && !named.has_expired(&file.name)
                {
                    unreferenced.push(file);
                }
            }
            Ok(())
        })?;
        let tables = visible.other_tables();
        unreferenced.retain(|file| !tables.iter().any(|table| file.name.starts_with(table)));
        let later = newest.refresh()?;
        if later.version() != newest.version() && !unreferenced.is_empty() {
            let named = Retained::of(&later, i64::MIN)?;
            unreferenced.retain(|file| !named.keeps(&file.name) && !named.has_expired(&file.name));
        }
        unreferenced.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let roots = snapshot.resolver().allowed_roots().collect();
        Ok(Self { storage: storage.clone(), roots, sizes, unreferenced })
    }

    /// Returns the size of a file in bytes; `None` if the store says that it does not exist.
    ///
    /// # Errors
    /// Returns `Unavailable`, `PermissionDenied`, and `Unsupported` if the file is in another store than the table.
    pub(super) fn size_of(&self, path: &LogPath) -> Result<Option<u64>> {
        let seen = match path {
            LogPath::Relative(path) => self.sizes.get(path),
            LogPath::Absolute(_) => None,
        };
        let found = seen.map_or_else(|| self.storage.size_of_log_path(path), |size| Ok(Some(*size)))?;
        if found.is_none()
            && let LogPath::Absolute(path) = path
            && let Some(root) = self.lost_root(path)
        {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "the directory {}, which has files outside of the table, does not exist",
                    root.display()
                ),
            )
            .with_hint("mount or restore the directory: its files may be unreachable and not lost"));
        }
        Ok(found)
    }

    /// If a local file is below an allowed root that no longer exists, returns that root.
    fn lost_root(&self, path: &AbsolutePath) -> Option<PathBuf> {
        let roots = self.roots.iter().filter_map(|root| Url::parse(root).ok()?.to_file_path().ok());
        let mut roots =
            roots.filter(|root| path.scheme() == "file" && Path::new(path.path()).starts_with(root));
        roots.find(|root| !root.exists())
    }
}
