//! Commits that a catalog has accepted and not published yet.
//!
//! Protocol: the table feature `catalogManaged`. Only the catalog knows which staged commits count, so a path
//! alone does not give the newest version: who asked the catalog hands its answer over here.
//!
//! - A staged commit lies in `_delta_log/_staged_commits` under its own name, or the catalog gives its bytes.
//!   No other place is read.
//! - A version that is published too is read from where it is published.

use bytes::Bytes;
use uuid::Uuid;

use super::LOG_DIRECTORY;
use super::name::LogFileName;
use crate::error::{Error, Result};

/// One commit of a catalog's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedCommit {
    pub(super) version: u64,
    pub(super) uuid: Uuid,
    pub(super) bytes: Option<Bytes>,
}

impl StagedCommit {
    /// The staged commit in the file `path`: its name, or its path or URL, which must end in
    /// `_delta_log/_staged_commits/<name>`. Only the name counts; the file is looked for in the table's own
    /// log.
    ///
    /// # Errors
    /// `InvalidArgument` if that is no name of a staged commit.
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

    /// The commit of `version` that the catalog holds itself.
    pub fn inline(version: u64, bytes: impl Into<Bytes>) -> Self {
        Self { version, uuid: Uuid::nil(), bytes: Some(bytes.into()) }
    }

    /// The version that it makes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Path relative to the table's root, by which errors name it.
    pub fn path(&self) -> String {
        LogFileName::StagedCommit { version: self.version, uuid: self.uuid }.path()
    }

    /// What the catalog holds itself: path and bytes.
    pub(crate) fn inline_file(&self) -> Option<(String, Bytes)> {
        Some((self.path(), self.bytes.clone()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_staged_commits() {
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
