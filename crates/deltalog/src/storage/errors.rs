//! Converts a store's errors to errors of this crate, and adds the table and the path that they are about.

use std::io;

use super::Storage;
use super::answers::Failure;
use super::beneath::Refused;
use crate::error::{Error, ErrorKind};

impl Storage {
    /// Converts an I/O error of the local file system to an error of this crate.
    pub(super) fn io_error(&self, path: &str, error: io::Error) -> Error {
        if let Some(refused) = Refused::of(&error) {
            return self.refused(path, refused);
        }
        match error.kind() {
            io::ErrorKind::NotFound => Error::new(ErrorKind::FileNotFound, "the file is not there")
                .at_path(path)
                .in_table(self.url()),
            _ => self
                .error(path, object_store::Error::Generic { store: "LocalFileSystem", source: error.into() }),
        }
    }

    pub(super) fn error(&self, path: &str, failure: impl Into<Failure>) -> Error {
        failure.into().into_error().at_path(path).in_table(self.url())
    }

    fn refused(&self, path: &str, refused: Refused) -> Error {
        let hint = match refused {
            Refused::Link => {
                "a table's own path may be a link, but nothing within it: move its target into the table"
            }
            Refused::Special => "find out who created it, and remove it",
        };
        Error::unsupported(refused.to_string()).at_path(path).in_table(self.url()).with_hint(hint)
    }

    pub(super) fn not_written(&self, path: &str, error: std::io::Error) -> Error {
        if super::names::lacks_both(&error) {
            return Error::unsupported(
                "the file system has no operation that creates a file only if it does not exist: it supports neither \
                 hard links nor renames that never replace a file, so a commit could be lost",
            )
            .at_path(path)
            .in_table(self.url())
            .with_hint(
                "put the table on a file system such as ext4, XFS, Btrfs, APFS, NTFS or NFS, or in an object store",
            )
            .with_source(error);
        }
        let kind = if error.kind() == std::io::ErrorKind::PermissionDenied {
            ErrorKind::PermissionDenied
        } else {
            ErrorKind::Unavailable
        };
        Error::new(kind, "the file could not be created")
            .at_path(path)
            .in_table(self.url())
            .with_source(error)
    }
}
