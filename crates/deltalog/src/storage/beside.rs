//! Writes files that accompany the commits of a log: checkpoints, `_last_checkpoint`, checksums, compactions and
//! manifests.
//!
//! Most of these files may be written in the background, when the program may already have deleted the table. Writing
//! them must not bring the table back, so they are only written to existing directories. There are two exceptions: a
//! directory inside an existing log is created (`_delta_log/_sidecars`), and so are the directories of manifests, which
//! are written before the commit returns ([`Storage::publish_file`]).

use std::io::Write;

use bytes::Bytes;
use object_store::PutMode;

use super::write::{FileWriter, create_whole};
use super::{Backend, Storage};
use crate::error::Result;

impl Storage {
    /// Writes a file in an existing directory. An existing file is replaced. The file is durable when this returns.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        match &self.backend {
            Backend::Local => {
                let mut file = self.replace_file(path)?;
                file.write_all(&bytes).map_err(|error| self.not_written(path, error))?;
                file.finish().map(drop).map_err(|error| error.in_table(self.url()))
            }
            Backend::Remote(store) => {
                let put = store.put(self.path(path)?, bytes.into(), PutMode::Overwrite);
                put.map_err(|error| self.error(path, error))
            }
        }
    }

    /// Creates a file in an existing directory, unless the file exists. Returns whether it was created. The file
    /// becomes visible completely or not at all, and is durable when this returns.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`. Even then, the file may exist.
    #[doc(hidden)]
    pub fn put_beside_log_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool> {
        self.create_once(path, bytes, true)
    }

    /// Does the same as [`Storage::put_beside_log_if_absent`], without waiting until the file is durable.
    ///
    /// A power failure may leave an incomplete file. This is only for files that readers check and do not depend on.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`. Even then, the file may exist.
    #[doc(hidden)]
    pub fn put_volatile_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool> {
        self.create_once(path, bytes, false)
    }

    fn create_once(&self, path: &str, bytes: Bytes, is_durable: bool) -> Result<bool> {
        let located = self.path(path)?;
        match &self.backend {
            Backend::Local => create_whole(&self.local_file(path, &located)?, path, &bytes, is_durable)
                .map_err(|error| self.not_written(path, error)),
            Backend::Remote(store) => match store.put(located, bytes.into(), PutMode::Create) {
                Ok(()) => Ok(true),
                Err(failure) if failure.is_existing() => Ok(false),
                Err(failure) => Err(self.error(path, failure)),
            },
        }
    }

    /// Writes a file in an existing directory. When [`FileWriter::finish`] is called, the file becomes visible,
    /// replaces an existing file, and becomes durable.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn replace_file(&self, path: &str) -> Result<FileWriter> {
        self.write_file(path, FileWriter::replace_local)
    }

    /// Writes a whole file, and creates its directories. An existing file is replaced. The file is durable when this
    /// returns.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    pub(crate) fn publish_file(&self, path: &str, bytes: Bytes) -> Result<()> {
        match &self.backend {
            Backend::Local => {
                let mut file = self.write_file(path, FileWriter::publish_local)?;
                file.write_all(&bytes).map_err(|error| self.not_written(path, error))?;
                file.finish().map(drop).map_err(|error| error.in_table(self.url()))
            }
            Backend::Remote(_) => self.put(path, bytes),
        }
    }

    /// Creates a file in the same way as [`Storage::create_file`]. Its directory is created only if the directory above
    /// that exists.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn create_file_beside_log(&self, path: &str) -> Result<FileWriter> {
        self.write_file(path, FileWriter::create_local_in_log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::storage::Replacement;

    /// A deleted table stays deleted, even if files are still to be written to its log.
    #[test]
    fn writing_files_beside_a_log_does_not_create_the_log() {
        type Write = fn(&Storage, &str) -> Result<()>;
        let writes: [(&str, Write); 6] = [
            ("put", |storage, path| storage.put(path, "x".into())),
            ("put_if_unchanged", |storage, path| {
                let replaced = storage.put_if_unchanged(path, "x".into(), None);
                replaced.map(|replaced| assert_eq!(replaced, Replacement::Done))
            }),
            ("put_beside_log_if_absent", |storage, path| {
                storage.put_beside_log_if_absent(path, "x".into()).map(|is_new| assert!(is_new))
            }),
            ("put_volatile_if_absent", |storage, path| {
                storage.put_volatile_if_absent(path, "x".into()).map(|is_new| assert!(is_new))
            }),
            ("replace_file", |storage, path| {
                let mut file = storage.replace_file(path)?;
                file.write_all(b"x").unwrap();
                file.finish().map(drop)
            }),
            ("create_file_beside_log", |storage, path| {
                let mut file = storage.create_file_beside_log(&path.replace("/", "/_sidecars/"))?;
                file.write_all(b"x").unwrap();
                file.finish().map(drop)
            }),
        ];
        for (name, write) in writes {
            let above = tempfile::tempdir().unwrap();
            let root = above.path().join("table");
            let storage = Storage::open(root.to_str().unwrap(), []).unwrap();
            for is_root_left in [false, true] {
                if is_root_left {
                    std::fs::create_dir(&root).unwrap();
                }
                assert_eq!(
                    write(&storage, "_delta_log/f").unwrap_err().kind(),
                    ErrorKind::Unavailable,
                    "{name}"
                );
                assert_eq!(root.exists(), is_root_left, "{name}");
                assert!(!root.join("_delta_log").exists(), "{name}");
            }
            std::fs::create_dir(root.join("_delta_log")).unwrap();
            write(&storage, "_delta_log/f").unwrap();
            let found = storage.list_after("_delta_log", "").unwrap();
            assert!(
                matches!(&found[..], [file] if file.name.ends_with('f') && file.size == 1),
                "{name}: {found:?}"
            );
        }
    }

    #[test]
    fn a_file_that_is_created_if_absent_does_not_replace_an_existing_one() {
        let root = tempfile::tempdir().unwrap();
        let storage = Storage::open(root.path().to_str().unwrap(), []).unwrap();
        for (path, put) in [
            ("durable", Storage::put_beside_log_if_absent as fn(&Storage, &str, Bytes) -> Result<bool>),
            ("volatile", Storage::put_volatile_if_absent),
        ] {
            assert!(put(&storage, path, "first".into()).unwrap());
            assert!(!put(&storage, path, "second".into()).unwrap());
            assert_eq!(storage.read(path).unwrap(), "first");
        }
        assert_eq!(storage.list_after("", "").unwrap().len(), 2, "no temporary file is left");
    }
}
