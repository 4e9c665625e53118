//! Opens local files beneath a table's root without following links.
//!
//! A link beneath the root may lead to any place: to a directory whose files a clean-up would delete, or to a file that
//! a clone would copy. Relative paths in a log always lead beneath the root ([`crate::protocol::path`]), and the files
//! themselves should be there, too. Therefore one rule applies to everything that is read, written, listed and deleted:
//! **the root may be a link, but nothing beneath it may be one**. Files with an absolute path in the log are not
//! beneath the root; the user decides which of them may be read.
//!
//! - Reads and deletions open one directory after another by its descriptor, so a link that another process creates at
//!   the same time is not followed. For writes and listings, the directories are checked beforehand. A new file is
//!   never created through a link that has its name.
//! - Only regular files are read. Opening a pipe would wait for a writer, and reading a device may never end.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

/// A local path, together with the root that it is beneath.
#[derive(Debug, Clone)]
pub(super) struct Place {
    path: PathBuf,
    /// The path relative to the root. It is empty if the path is not beneath a root, or is the root itself.
    names: PathBuf,
}

/// Kinds of directory entries that are neither read nor entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// A link beneath the root.
    Link,
    /// A pipe, a socket or a device.
    Special,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "a symbolic link within a table is not followed",
            Self::Special => "the path is not a regular file but a pipe, a socket or a device",
        })
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// Returns which kind of entry was refused, if `error` is about a refused entry.
    pub(super) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref::<Self>().copied()
    }

    fn error(self) -> io::Error {
        io::Error::other(self)
    }
}

impl Place {
    /// Returns the location for `path`. It is beneath `root` if `path` begins with `root`.
    pub(super) fn new(path: PathBuf, root: &Path) -> Self {
        let names = path.strip_prefix(root).unwrap_or_else(|_| Path::new("")).to_owned();
        Self { path, names }
    }

    fn root(&self) -> &Path {
        let levels = self.names.components().count();
        self.path.ancestors().nth(levels).unwrap_or(&self.path)
    }

    /// Returns the path, for callers that create a file at the path or list it.
    ///
    /// # Errors
    /// [`Refused::Link`] if the path is a link, or if a directory between the root and the path is one.
    pub(super) fn path(&self) -> io::Result<&Path> {
        let mut path = self.root().to_owned();
        for name in self.names.components() {
            path.push(name);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => return Err(Refused::Link.error()),
                Ok(_) => {}
                // A missing directory cannot contain a link. The operation itself reports all other failures.
                Err(_) => break,
            }
        }
        Ok(&self.path)
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// [`Refused`]; `IsADirectory`; errors of the file system.
    pub(super) fn open(&self) -> io::Result<(File, Metadata)> {
        let file = self.open_any()?;
        let metadata = file.metadata()?;
        match metadata.file_type() {
            kind if kind.is_file() => Ok((file, metadata)),
            kind if kind.is_dir() => {
                Err(io::Error::new(io::ErrorKind::IsADirectory, "the path is a directory"))
            }
            _ => Err(Refused::Special.error()),
        }
    }

    /// Returns the names of the directories beneath the root, and the last name.
    fn split(&self) -> Option<(impl Iterator<Item = Component<'_>>, &Path)> {
        let last = Path::new(self.names.file_name()?);
        let directories = self.names.parent().unwrap_or(Path::new("")).components();
        Some((directories, last))
    }
}

#[cfg(unix)]
mod descriptors {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat, unlinkat};
    use rustix::io::Errno;

    use super::{Place, Refused};

    /// The flags with which files are opened. With them, opening a pipe that has no writer does not block, and opening
    /// a terminal does not make it the process's own terminal.
    const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

    /// Entering a directory does not require the permission to list it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const ENTER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const ENTER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    /// Converts the error of opening `name` in `directory`: to [`Refused::Link`] if `name` is a link, and otherwise to
    /// an I/O error. For a link, the system returns `ELOOP`, `EMLINK` or `ENOTDIR`.
    fn refused(directory: impl AsFd, name: &Path, error: Errno) -> io::Error {
        let is_link = matches!(error, Errno::LOOP | Errno::MLINK | Errno::NOTDIR)
            && statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
        if is_link { Refused::Link.error() } else { error.into() }
    }

    impl Place {
        /// Opens the directory of the file, and returns it with the file's name. Returns `None` if the file is not
        /// beneath the root.
        ///
        /// # Errors
        /// [`Refused::Link`] if there is a link between the root and the file; errors of the file system.
        fn directory(&self) -> io::Result<Option<(OwnedFd, &Path)>> {
            let Some((directories, last)) = self.split() else { return Ok(None) };
            let mut directory = openat(CWD, self.root(), ENTER, Mode::empty())?;
            for name in directories {
                let name: &Path = name.as_ref();
                directory = openat(&directory, name, ENTER | OFlags::NOFOLLOW, Mode::empty())
                    .map_err(|error| refused(&directory, name, error))?;
            }
            Ok(Some((directory, last)))
        }

        pub(super) fn open_any(&self) -> io::Result<File> {
            let opened = match self.directory()? {
                None => openat(CWD, &self.path, READ, Mode::empty())?,
                Some((directory, name)) => openat(&directory, name, READ | OFlags::NOFOLLOW, Mode::empty())
                    .map_err(|error| refused(&directory, name, error))?,
            };
            Ok(opened.into())
        }

        /// Deletes a file, or a link that is in its place.
        ///
        /// # Errors
        /// [`Refused::Link`] if a directory between the root and the file is a link; errors of the file system.
        pub(in crate::storage) fn delete(&self) -> io::Result<()> {
            match self.directory()? {
                None => std::fs::remove_file(&self.path),
                Some((directory, name)) => Ok(unlinkat(&directory, name, AtFlags::empty())?),
            }
        }
    }
}

#[cfg(not(unix))]
mod descriptors {
    use std::fs::{self, File};
    use std::io;

    use super::Place;

    impl Place {
        pub(super) fn open_any(&self) -> io::Result<File> {
            File::open(self.path()?)
        }

        /// Deletes a file.
        ///
        /// # Errors
        /// [`super::Refused::Link`]; errors of the file system.
        pub(in crate::storage) fn delete(&self) -> io::Result<()> {
            fs::remove_file(self.path()?)
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn refusal<T>(result: io::Result<T>) -> Option<Refused> {
        Refused::of(&result.err()?)
    }

    #[test]
    fn links_beneath_the_root_are_refused_and_the_root_may_be_one() {
        let directory = tempfile::tempdir().unwrap();
        let (real, outside) = (directory.path().join("real"), directory.path().join("outside"));
        fs::create_dir_all(real.join("a/b")).unwrap();
        fs::create_dir_all(outside.join("b")).unwrap();
        let root = directory.path().join("root");
        symlink(&real, &root).unwrap();
        for file in [real.join("a/b/f"), outside.join("b/f")] {
            fs::write(file, "x").unwrap();
        }
        symlink(&outside, real.join("link")).unwrap();
        symlink(outside.join("b/f"), real.join("a/file")).unwrap();
        symlink(real.join("nowhere"), real.join("dangling")).unwrap();
        let place = |name: &str| Place::new(root.join(name), &root);
        assert_eq!(place("a/b/f").open().unwrap().1.len(), 1);
        assert_eq!(place("a/b/f").path().unwrap(), root.join("a/b/f"));
        assert_eq!(place("").path().unwrap(), root.join(""));
        for name in ["link/b/f", "a/file", "dangling"] {
            assert_eq!(refusal(place(name).open()), Some(Refused::Link), "{name}");
            assert_eq!(refusal(place(name).path()), Some(Refused::Link), "{name}");
        }
        for name in ["link/b/f", "link/b/none"] {
            assert_eq!(refusal(place(name).delete()), Some(Refused::Link), "{name}");
        }
        assert!(outside.join("b/f").exists());
        // The link itself may be deleted.
        place("a/file").delete().unwrap();
        place("a/b/f").delete().unwrap();
        assert!(outside.join("b/f").exists() && !real.join("a/b/f").exists());
        for name in ["a/b/f", "none/f"] {
            assert_eq!(place(name).open().unwrap_err().kind(), io::ErrorKind::NotFound, "{name}");
            assert_eq!(place(name).delete().unwrap_err().kind(), io::ErrorKind::NotFound, "{name}");
            assert!(place(name).path().is_ok(), "{name}");
        }
        assert_eq!(place("a/b").open().unwrap_err().kind(), io::ErrorKind::IsADirectory);
        // A path without a root is treated as an ordinary path of the file system.
        let absolute = Place::new(real.join("link/b/f"), &outside);
        assert!(absolute.open().is_ok() && absolute.path().is_ok());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        for (path, root) in [(pipe.clone(), directory.path()), (pipe, Path::new("/elsewhere"))] {
            assert_eq!(refusal(Place::new(path, root).open()), Some(Refused::Special));
        }
        let device = Place::new("/dev/zero".into(), Path::new("/dev"));
        assert_eq!(refusal(device.open()), Some(Refused::Special));
    }
}
