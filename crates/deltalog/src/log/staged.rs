//! Commits that a catalog has accepted but has not published yet. (PROTOCOL, table feature `catalogManaged`.)
//!
//! Only the catalog knows which staged commits are valid, so the newest version of such a table cannot be determined
//! from its path alone. The caller asks the catalog and passes its response on.
//!
//! - A staged commit is either a file in `_delta_log/_staged_commits`, or bytes that the catalog provides. No other
//!   place is ever read.
//! - If a version is both staged and published, the published commit is read.

use bytes::Bytes;
use uuid::Uuid;

use super::LOG_DIRECTORY;
use crate::error::{Error, Result};
use crate::protocol::log_name::LogFileName;

/// A staged commit, as a catalog lists it in its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedCommit {
    pub(super) version: u64,
    pub(super) uuid: Uuid,
    pub(super) bytes: Option<Bytes>,
}

impl StagedCommit {
    /// Creates a staged commit whose content is in the file `path`: a name, or a path or URL that ends in
    /// `_delta_log/_staged_commits/<name>`. Only the name is used; the file is read from the log of the table itself.
    ///
    /// # Errors
    /// `InvalidArgument` if this is not the name of a staged commit.
    pub fn file(path: &str) -> Result<Self> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let staged = format!("{LOG_DIRECTORY}/_staged_commits");
        let in_place = directory.is_empty()
            || directory == "_staged_commits"
            || directory == staged
            || directory.ends_with(&format!("/{staged}"));
        match LogFileName::parse(&format!("_staged_commits/{name}")) {
            Some(LogFileName::StagedCommit { version, uuid }) if in_place => {
                Ok(Self { version, uuid, bytes: None })
            }
            _ => Err(Error::invalid_argument("this is not the name of a staged commit")
                .at_path(path)
                .with_hint(format!(
                    "staged commits are named {staged}/<version with 20 digits>.<uuid>.json"
                ))),
        }
    }

    /// Creates a staged commit of `version` with the content `bytes`, which the catalog has provided.
    pub fn inline(version: u64, bytes: impl Into<Bytes>) -> Self {
        Self { version, uuid: Uuid::nil(), bytes: Some(bytes.into()) }
    }

    /// Returns the version of the commit.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the commit's path relative to the table's root. Errors use this path as the name of the commit.
    pub fn path(&self) -> String {
        LogFileName::StagedCommit { version: self.version, uuid: self.uuid }.path()
    }

    /// Returns the path and content of a commit that the catalog provides, or `None` if the commit is in a file.
    pub(crate) fn inline_file(&self) -> Option<(String, Bytes)> {
        Some((self.path(), self.bytes.clone()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_staged_commits_are_accepted() {
        let name = "00000000000000000002.a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d.json";
        for prefix in [
            "",
            "_staged_commits/",
            "_delta_log/_staged_commits/",
            "file:///t/_delta_log/_staged_commits/",
            "/t/_delta_log/_staged_commits/",
        ] {
            let staged = StagedCommit::file(&format!("{prefix}{name}")).unwrap();
            assert_eq!(
                (staged.version(), staged.path()),
                (2, format!("_delta_log/_staged_commits/{name}")),
                "{prefix}"
            );
        }
        for path in [
            "",
            "x.json",
            "00000000000000000002.json",
            &format!("/elsewhere/{name}"),
            &format!("../{name}"),
            &format!("{name}/"),
        ] {
            assert!(StagedCommit::file(path).is_err(), "{path}");
        }
    }
}
