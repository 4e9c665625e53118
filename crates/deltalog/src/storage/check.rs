//! Finds out whether a store can hold tables, that is, whether it refuses to create a file that already exists.
//!
//! Every commit relies on that. A store that ignores the condition of a put would let a writer replace another writer's
//! commit without notice. The stores of Amazon, Google and Microsoft are known to respect the condition. Any other
//! store is tested once per process, before the first commit, by creating a file with a new name twice.

use uuid::Uuid;

use super::remote::Remote;
use super::{PutOutcome, Storage};
use crate::error::{Error, ErrorKind, Result};

/// How many times a create is tried if there is no response.
const TRIES: usize = 4;

impl Storage {
    /// Checks that the store can hold tables: creates a file, makes sure that it cannot be created again, and deletes
    /// it. The file is in the table's root, under a new name that readers ignore. If there is a coordinator, also
    /// checks that it responds. In this case, the store may replace files, because the coordinator decides commits.
    ///
    /// # Errors
    /// `Unsupported` for a store that ignores the condition of a put; `Unavailable`, `PermissionDenied`.
    pub fn check(&self) -> Result<()> {
        let is_coordinated = self.ask_coordinator()?;
        let (checked, deleted) = self.try_creates();
        match checked {
            // The coordinator decides commits, so the store need not refuse to replace files.
            Err(error) if is_coordinated && error.kind() == ErrorKind::Unsupported => deleted,
            checked => checked.and(deleted),
        }
    }

    /// Checks a store before the first commit of this process, unless the store is known to respect conditional puts.
    pub(super) fn ensure_checked(&self, store: &Remote) -> Result<()> {
        if store.is_proven().map_err(|failure| self.error("", failure))? {
            return Ok(());
        }
        let (checked, deleted) = self.try_creates();
        // A writer that is not allowed to delete files may still commit.
        if let Err(error) = deleted {
            tracing::warn!(%error, "a file that was made to check the store could not be deleted");
        }
        checked?;
        store.prove().map_err(|failure| self.error("", failure))
    }

    /// Creates a file with a new name twice, and deletes it. Returns the outcome of the check, and the outcome of the
    /// deletion.
    fn try_creates(&self) -> (Result<()>, Result<()>) {
        let path = format!(".deltalog-check-{}", Uuid::new_v4());
        (self.check_at(&path), self.delete(&path))
    }

    fn check_at(&self, path: &str) -> Result<()> {
        // No other writer knows the name, so if the file exists, an earlier create has succeeded.
        self.create_for_check(path, "first")?;
        match self.create_for_check(path, "second")? {
            PutOutcome::AlreadyExists if self.read(path)? == "first" => Ok(()),
            _ => Err(Error::unsupported(
                "the store replaces existing files instead of refusing to create them: a commit could be lost",
            )
            .in_table(self.url())
            .with_hint(
                "use a store that honours the condition 'If-None-Match: *', as S3, MinIO, R2, Ceph and versitygw do",
            )),
        }
    }

    /// Creates a file, unless it exists. If there is no response, tries again.
    fn create_for_check(&self, path: &str, content: &'static str) -> Result<PutOutcome> {
        let mut last = None;
        for _ in 0..TRIES {
            match self.put_unchecked(path, content)? {
                PutOutcome::Unknown(error) if error.kind() == ErrorKind::PermissionDenied => {
                    return Err(error);
                }
                PutOutcome::Unknown(error) => last = Some(error),
                outcome => return Ok(outcome),
            }
        }
        Err(last
            .unwrap_or_else(|| Error::new(ErrorKind::Unavailable, "the store gave no answer").at_path(path)))
    }
}
