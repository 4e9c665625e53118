//! Walks a directory: returns all files below it, in batches, from several listings at the same time.
//!
//! ```text
//!   local:   each directory is a job, which finds further ones
//!   remote:  one page of all keys ──► complete: done
//!                                 └─► else the upper levels by delimiter, until there are enough prefixes,
//!                                     then ranges of neighbouring prefixes, each page by page
//! ```
//!
//! - Every file comes once. The order of the batches is undefined, and so is the order within a batch.
//! - The number of batches that wait in memory depends on the number of threads, not on the number of files, because a
//!   listing that is faster than its consumer waits.
//! - A directory that is not entered costs no request.

mod jobs;
mod local;
mod remote;

use object_store::ObjectMeta;
use object_store::path::Path;

use self::jobs::Lister;
use super::{Backend, FileMeta, Storage};
use crate::error::Result;
use crate::runtime::parallel;

/// The number of local directories that are read at the same time. A network file system answers slowly.
const DIRECTORIES: usize = 4;

/// Decides whether a nested directory is walked, by its path relative to the walked one.
type Enters<'a> = &'a (dyn Fn(&str) -> bool + Sync);

impl Storage {
    /// Calls `visit` with the files below `directory`, in batches and in no particular order, until it fails. Nested
    /// directories are walked if `enters` returns true for their path relative to `directory`, such as `a=1/b=2`. A
    /// directory that does not exist has no files.
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

/// Returns the entry of an object with its path relative to the directory. `skip` is the length of the directory's path
/// with its slash.
fn entry(meta: &ObjectMeta, skip: usize) -> Option<FileMeta> {
    Some(FileMeta::of_store(relative(&meta.location, skip)?, meta))
}

fn relative(path: &Path, skip: usize) -> Option<String> {
    path.as_ref().get(skip..).filter(|name| !name.is_empty()).map(ToOwned::to_owned)
}
