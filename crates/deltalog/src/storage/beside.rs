//! Writes files that accompany the commits of a log: checkpoints, the hint at them, checksums and compactions.
//!
//! Only commits and data files create the directories of a table. These files are written after a commit, perhaps in
//! the background, when the program may already have deleted the table. Writing them must not bring the table back. The
//! only directory created here is one within a log (`_delta_log/_sidecars`).

use std::io::Write;

use bytes::Bytes;
use object_store::PutMode;

use super::write::{FileWriter, create_whole};
use super::{Backend, Storage};
use crate::error::Result;

impl Storage {
    /// Writes a file in an existing directory, replacing an existing file. The file is durable when this returns.
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

    /// Creates a file in an existing directory unless the file exists. Returns whether it was created. It appears whole
    /// or not at all, and is durable when this returns.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`. The file may exist nevertheless.
    #[doc(hidden)]
    pub fn put_beside_log_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool> {
        self.create_once(path, bytes, true)
    }

    /// Does the same without waiting until the file is durable.
    ///
    /// A power failure may leave a torn file. This is only for files that readers check and can do without.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`. The file may exist nevertheless.
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

    /// Writes a file in an existing directory. It appears when [`FileWriter::finish`] is called, and replaces an
    /// existing file. It is durable when that returns.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`.
    #[doc(hidden)]
    pub fn replace_file(&self, path: &str) -> Result<FileWriter> {
        self.write_file(path, FileWriter::replace_local)
    }

    /// Writes a whole file, creates its directories, and replaces an existing file. The file is durable when
    /// this returns.
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

    /// Creates a file like [`Storage::create_file`], in a directory that is created if the one above it exists.
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

    /// A deleted table stays deleted, even if files were about to be written to its log directory.
    #[test]
    fn nothing_beside_a_log_creates_the_log() {
        type Write = fn(&Storage, &str) -> Result<()>;
        let writes: [(&str, Write); 6] = [
            ("put", |storage, path| storage.put(path, "x".into())),
            ("put_if_unchanged", |storage, path| {
                storage.put_if_unchanged(path, "x".into(), None).map(|is_written| assert!(is_written))
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
    fn what_exists_is_not_replaced_by_what_is_created_once() {
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
        assert_eq!(storage.list_after("", "").unwrap().len(), 2, "nothing temporary is left");
    }
}
