//! Walks a directory: returns all files below it in batches, using several listings at the same time.
//!
//! ```text
//!   local:   each directory is a job, which finds further ones
//!   remote:  one page of all keys ──► complete: done
//!                                 └─► else the upper levels by delimiter, until there are enough prefixes,
//!                                     then ranges of neighbouring prefixes, each page by page
//! ```
//!
//! - Every file is returned once. The order of the batches, and the order of files within a batch, are undefined.
//! - The number of batches that wait in memory depends on the number of threads, not on the number of files: a listing
//!   that is faster than its consumer has to wait.
//! - A directory that is not entered causes no requests of its own.

mod jobs;
mod local;
mod remote;

use object_store::ObjectMeta;
use object_store::path::Path;

use self::jobs::Lister;
use super::{Backend, FileMeta, Storage};
use crate::error::Result;
use crate::runtime::parallel;

/// The number of local directories that are read at the same time. It may exceed the number of cores, because network
/// file systems respond slowly.
const DIRECTORIES: usize = 4;

/// Decides whether a nested directory is walked. Its argument is the path relative to the directory where the walk
/// began.
type Enters<'a> = &'a (dyn Fn(&str) -> bool + Sync);

impl Storage {
    /// Calls `visit` with batches of the files below `directory`, in no particular order, until it returns an error. A
    /// nested directory is only walked if `enters` returns true for its path relative to `directory`, such as
    /// `a=1/b=2`. A directory that does not exist has no files.
    ///
    /// In a local directory, links to directories are not followed, because they may lead to files that do not belong
    /// to the table.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`; also the errors of `visit`.
    #[doc(hidden)]
    pub fn walk(
        &self,
        directory: &str,
        enters: &(dyn Fn(&str) -> bool + Sync),
        visit: impl FnMut(Vec<FileMeta>) -> Result<()>,
    ) -> Result<()> {
        let prefix = self.path(directory)?;
        let named = |error| self.io_error(directory, error);
        match &self.backend {
            Backend::Local => {
                let root = self.local_file(directory, &prefix)?;
                let lister = local::Directories { root: &root, enters, named: &named };
                lister.walk(parallel::waiting(DIRECTORIES), visit)
            }
            Backend::Remote(store) => {
                let failed = |failure| self.error(directory, failure);
                let lister = remote::Prefixes::new(store, &prefix, enters, &failed);
                lister.walk(self.most_readers(), visit)
            }
        }
    }
}

/// Returns the entry of an object, with its path relative to the directory. `skip` is the length of the directory's
/// path, including the slash.
fn entry(meta: &ObjectMeta, skip: usize) -> Option<FileMeta> {
    Some(FileMeta::of_store(relative(&meta.location, skip)?, meta))
}

fn relative(path: &Path, skip: usize) -> Option<String> {
    path.as_ref().get(skip..).filter(|name| !name.is_empty()).map(ToOwned::to_owned)
}
