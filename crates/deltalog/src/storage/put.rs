//! Creates a file unless it exists. Commits are based on this operation.

use object_store::PutPayload;

use super::names::Unpublished;
use super::{Backend, Storage, cache, local};
use crate::error::{Error, Result};

/// The outcome of a put-if-absent.
#[derive(Debug)]
pub enum PutOutcome {
    /// The file was created with the given content, and is durable.
    Created,
    /// A file already existed. The caller may have created it itself, with an earlier put that got no response.
    AlreadyExists,
    /// The outcome is unknown: the file may or may not exist. The caller has to read it to find out.
    Unknown(Error),
}

impl Storage {
    /// Creates a file unless it exists. Every commit is based on this operation, which is never retried.
    ///
    /// # Errors
    /// `CorruptLog` for a path that is not valid in the store; `Unavailable` or `PermissionDenied` if the file
    /// certainly was not written; `Unsupported` for a store that would replace files. If the file may exist after a
    /// failure, the result is not an error but [`PutOutcome::Unknown`].
    #[doc(hidden)]
    pub fn put_if_absent(&self, path: &str, bytes: impl Into<PutPayload>) -> Result<PutOutcome> {
        self.put_if_absent_tagged(path, bytes).map(|(outcome, _)| outcome)
    }

    /// Does the same as [`Storage::put_if_absent`]. If a file was created and the store has returned its tag, also
    /// returns the tag that listings show for the file.
    ///
    /// # Errors
    /// Returns the same errors as [`Storage::put_if_absent`].
    pub(crate) fn put_if_absent_tagged(
        &self,
        path: &str,
        bytes: impl Into<PutPayload>,
    ) -> Result<(PutOutcome, Option<u64>)> {
        let bytes = bytes.into();
        if let Some(outcome) = self.put_coordinated(path, &bytes)? {
            return Ok((outcome, None));
        }
        if let Backend::Remote(store) = &self.backend {
            self.ensure_checked(store)?;
        }
        self.put_tagged(path, bytes)
    }

    pub(super) fn put_unchecked(&self, path: &str, bytes: impl Into<PutPayload>) -> Result<PutOutcome> {
        self.put_tagged(path, bytes.into()).map(|(outcome, _)| outcome)
    }

    fn put_tagged(&self, path: &str, bytes: PutPayload) -> Result<(PutOutcome, Option<u64>)> {
        let located = self.path(path)?;
        let store = match &self.backend {
            Backend::Local => {
                let created = local::create(&self.local_file(path, &located)?, &bytes);
                let outcome = match created.map_err(|error| self.not_written(path, error))?.publish() {
                    Ok(true) => PutOutcome::Created,
                    Ok(false) => PutOutcome::AlreadyExists,
                    Err(Unpublished::Refused(error)) => return Err(self.not_written(path, error)),
                    // The file may exist: for example, syncing the directory may have failed after the file was
                    // created.
                    Err(Unpublished::Unknown(error)) => PutOutcome::Unknown(self.io_error(path, error)),
                };
                return Ok((outcome, None));
            }
            Backend::Remote(store) => store,
        };
        match store.create(located, bytes) {
            Ok(e_tag) => Ok((PutOutcome::Created, e_tag.as_deref().map(cache::tag))),
            Err(failure) if failure.is_existing() => Ok((PutOutcome::AlreadyExists, None)),
            Err(failure) if failure.is_unsent() => Err(self.error(path, failure)),
            // The file may exist: for example, the store may have created it, but the response was lost.
            Err(failure) => Ok((PutOutcome::Unknown(self.error(path, failure)), None)),
        }
    }
}
