//! Gives a complete local file its name, unless another file has that name. Every commit to a local table is made in
//! this way.
//!
//! - The name is created as a hard link to the file, which is already complete. Creating a link either succeeds or
//!   fails in one step.
//! - Some file systems do not have hard links: FAT and exFAT, many FUSE file systems, some network shares. There, Linux
//!   and macOS can rename a file without replacing another one. Both operations fail if the name exists, so one writer
//!   may create a link while another one renames.
//! - A file system that supports neither is refused at the first commit. If a plain rename after a check were used
//!   instead, a writer could replace the commit of another one.
//! - If the system refuses the operation, the file certainly did not get the name. After other failures, the outcome is
//!   unknown: for example, a network file system may have renamed the file before the connection was lost.

use std::fmt;
use std::io;
use std::path::Path;

/// The reason why a file did not get its name.
#[derive(Debug)]
pub(super) enum Unpublished {
    /// The file certainly does not have the name.
    Refused(io::Error),
    /// The file may have the name.
    Unknown(io::Error),
}

impl Unpublished {
    pub(super) fn into_error(self) -> io::Error {
        match self {
            Self::Refused(error) | Self::Unknown(error) => error,
        }
    }
}

/// The error for a file system that supports neither hard links nor renames that never replace a file.
#[derive(Debug)]
struct LacksBoth {
    link: io::Error,
    rename: io::Error,
}

impl fmt::Display for LacksBoth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { link, rename } = self;
        write!(
            f,
            "creating a hard link failed ({link}), and so did a rename that never replaces a file ({rename})"
        )
    }
}

impl std::error::Error for LacksBoth {}

/// Returns whether `error` says that the file system supports neither of the two operations.
pub(super) fn lacks_both(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<LacksBoth>())
}

/// Gives the file `from` the name `to`, unless another file has that name. Returns whether it got the name. The file
/// may also keep its old name.
pub(super) fn publish_if_absent(from: &Path, to: &Path) -> Result<bool, Unpublished> {
    publish(|| std::fs::hard_link(from, to), || rename_if_absent(from, to))
}

fn publish(
    link: impl FnOnce() -> io::Result<()>,
    rename: impl FnOnce() -> io::Result<()>,
) -> Result<bool, Unpublished> {
    match link() {
        Err(link) if is_missing(&link) => match rename() {
            Err(rename) if is_missing(&rename) => Err(Unpublished::Refused(io::Error::new(
                io::ErrorKind::Unsupported,
                LacksBoth { link, rename },
            ))),
            // A network file system may have sent the request twice. If the first request has renamed the file, the
            // second one no longer finds the old name.
            Err(rename) if rename.kind() == io::ErrorKind::NotFound => Err(Unpublished::Unknown(rename)),
            renamed => created(renamed),
        },
        linked => created(linked),
    }
}

fn created(result: io::Result<()>) -> Result<bool, Unpublished> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if is_refusal(&error) => Err(Unpublished::Refused(error)),
        Err(error) => Err(Unpublished::Unknown(error)),
    }
}

/// Returns whether the error means that the call is not supported, either by the system or by this file system. Linux
/// returns `EPERM` for unsupported links and `EINVAL` for unsupported flags; FUSE returns `ENOSYS`.
#[cfg(unix)]
fn is_missing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let missing = [Errno::PERM, Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP, Errno::MLINK];
    error.kind() == io::ErrorKind::Unsupported
        || missing.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Checks for `ERROR_INVALID_FUNCTION` and `ERROR_NOT_SUPPORTED`.
#[cfg(not(unix))]
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || matches!(error.raw_os_error(), Some(1 | 50))
}

/// Returns whether an error means that the file did not get the name. Returns false for errors such as a lost
/// connection or a failed disk, because the file may have got the name before that.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::PermissionDenied
            | Kind::NotFound
            | Kind::NotADirectory
            | Kind::IsADirectory
            | Kind::ReadOnlyFilesystem
            | Kind::StorageFull
            | Kind::QuotaExceeded
            | Kind::CrossesDevices
            | Kind::InvalidFilename
            | Kind::InvalidInput
            | Kind::Unsupported
    )
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_if_absent(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_if_absent(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    fn answer(errno: Option<Errno>) -> io::Result<()> {
        errno.map_or(Ok(()), |errno| Err(errno.into()))
    }

    /// Returns the outcome, and whether the rename was tried.
    fn outcome(link: Option<Errno>, rename: Option<Errno>) -> (String, bool) {
        let mut is_tried = false;
        let published = publish(
            || answer(link),
            || {
                is_tried = true;
                answer(rename)
            },
        );
        let outcome = match published {
            Ok(true) => "created",
            Ok(false) => "exists",
            Err(Unpublished::Refused(error)) if lacks_both(&error) => "unsupported",
            Err(Unpublished::Refused(_)) => "refused",
            Err(Unpublished::Unknown(_)) => "unknown",
        };
        (outcome.to_owned(), is_tried)
    }

    #[test]
    fn without_hard_links_a_rename_is_tried_and_only_ambiguous_failures_are_unknown() {
        let unused = Some(Errno::IO);
        for (link, rename, expected) in [
            (None, unused, ("created", false)),
            (Some(Errno::EXIST), unused, ("exists", false)),
            (Some(Errno::ACCESS), unused, ("refused", false)),
            (Some(Errno::NOSPC), unused, ("refused", false)),
            (Some(Errno::ROFS), unused, ("refused", false)),
            (Some(Errno::NOENT), unused, ("refused", false)),
            (Some(Errno::IO), None, ("unknown", false)),
            (Some(Errno::STALE), None, ("unknown", false)),
            (Some(Errno::PERM), None, ("created", true)),
            (Some(Errno::OPNOTSUPP), Some(Errno::EXIST), ("exists", true)),
            (Some(Errno::NOSYS), Some(Errno::INVAL), ("unsupported", true)),
            (Some(Errno::PERM), Some(Errno::NOSYS), ("unsupported", true)),
            (Some(Errno::PERM), Some(Errno::NOSPC), ("refused", true)),
            (Some(Errno::PERM), Some(Errno::IO), ("unknown", true)),
            (Some(Errno::PERM), Some(Errno::NOENT), ("unknown", true)),
        ] {
            let (outcome, is_tried) = outcome(link, rename);
            assert_eq!((outcome.as_str(), is_tried), expected, "{link:?} {rename:?}");
        }
    }

    #[test]
    fn a_rename_does_not_replace_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| directory.path().join(name));
        std::fs::write(&a, "a").unwrap();
        std::fs::write(&b, "b").unwrap();
        let exists = created(rename_if_absent(&a, &b));
        assert!(matches!(exists, Ok(false)), "{exists:?}");
        assert!(matches!(created(rename_if_absent(&a, &c)), Ok(true)));
        assert_eq!(
            ["b", "c"].map(|name| std::fs::read_to_string(directory.path().join(name)).unwrap()),
            ["b", "a"]
        );
        assert!(!a.exists());
    }
}
