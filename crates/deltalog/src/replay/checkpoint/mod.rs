//! Reading checkpoints. Protocol: "Checkpoints", "V1 Spec", "V2 Spec", "Sidecar Files".
//!
//! ```text
//!   classic             in parts                    V2
//!   N.checkpoint.parquet   …1.3  …2.3  …3.3   N.checkpoint.<uuid>.json|parquet, or classic
//!   all actions            all actions             all but file actions ──sidecar──> _sidecars/*.parquet
//! ```
//!
//! - A checkpoint is a short-cut: one that cannot be read is replaced by what it stands for, the state of its
//!   version from an older checkpoint or from the commits alone. That is said in the log. Only when there is
//!   nothing to replace it by is it an error.
//! - Files are opened once, however often they are asked for something.
//! - Sidecars lie in `_delta_log/_sidecars` under a bare name; whatever else is named is not read.

mod normalize;
mod parquet_file;
mod parsed;
mod reader;
mod rows;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::commit::Commit;
use super::state::State;
use crate::error::{Error, ErrorKind, Result};
use crate::log::name::LogFileName;
use crate::log::{CheckpointFiles, CheckpointKind, LOG_DIRECTORY, StagedCommit};
use crate::parallel;
use crate::protocol::{Action, PathResolver, Sidecar, path};
use crate::storage::Storage;

use parquet_file::ParquetFile;

pub use reader::CheckpointReader;
pub use rows::{AddRequest, RowGroupFilter};

pub(crate) use rows::STATS_PARSED;

/// A checkpoint that is read as it is needed, and replaced if it cannot be.
pub(crate) struct Checkpoint {
    storage: Storage,
    resolver: PathResolver,
    files: CheckpointFiles,
    /// Checkpoints that could not be read before this one was tried.
    without: Vec<CheckpointFiles>,
    staged: Arc<[StagedCommit]>,
    top: OnceLock<Arc<Top>>,
    is_damaged: AtomicBool,
    instead: OnceLock<Arc<State>>,
}

/// The files that the listing shows, open.
struct Top {
    parquet: Vec<ParquetFile>,
    /// The lines of a top-level file in JSON.
    json: Option<Commit>,
    sidecars: OnceLock<Vec<String>>,
}

/// An action that is about the table and not about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableAction {
    Protocol,
    Metadata,
    Transaction,
    Domain,
}

impl TableAction {
    /// Its column, and a field of it that is never null.
    fn column(self) -> (&'static str, &'static str) {
        match self {
            Self::Protocol => ("protocol", "minReaderVersion"),
            Self::Metadata => ("metaData", "id"),
            Self::Transaction => ("txn", "appId"),
            Self::Domain => ("domainMetadata", "domain"),
        }
    }

    /// Those of a commit, newest first.
    pub(crate) fn of(self, commit: &Commit) -> Vec<Action> {
        match self {
            Self::Protocol => commit.protocol.iter().cloned().map(Action::Protocol).collect(),
            Self::Metadata => commit.metadata.iter().cloned().map(Action::Metadata).collect(),
            Self::Transaction => commit.transactions.iter().cloned().map(Action::Txn).collect(),
            Self::Domain => commit.domains.iter().cloned().map(Action::DomainMetadata).collect(),
        }
    }
}

impl Checkpoint {
    pub(crate) fn new(
        storage: &Storage,
        resolver: &PathResolver,
        files: CheckpointFiles,
        without: &[CheckpointFiles],
        staged: &Arc<[StagedCommit]>,
    ) -> Self {
        Self {
            storage: storage.clone(),
            resolver: resolver.clone(),
            files,
            without: without.to_vec(),
            staged: Arc::clone(staged),
            top: OnceLock::new(),
            is_damaged: AtomicBool::new(false),
            instead: OnceLock::new(),
        }
    }

    /// Its files, as the listing shows them.
    pub(crate) fn files(&self) -> &CheckpointFiles {
        &self.files
    }

    /// The actions of `kinds`, newest first.
    ///
    /// # Errors
    /// `CorruptLog` if the checkpoint cannot be read and nothing stands in for it, and the store's own.
    pub(crate) fn table_actions(&self, kinds: &[TableAction]) -> Result<Vec<Action>> {
        if let Some(state) = self.instead.get() {
            return state.table_actions(kinds);
        }
        match self.read_table_actions(kinds) {
            Ok(actions) => Ok(actions),
            Err(error) => self.replaced(error)?.table_actions(kinds),
        }
    }

    fn read_table_actions(&self, kinds: &[TableAction]) -> Result<Vec<Action>> {
        let top = self.top()?;
        if let Some(json) = &top.json {
            return Ok(kinds.iter().flat_map(|kind| kind.of(json)).collect());
        }
        let mut actions = Vec::new();
        // Protocol and metadata stand in one file of a checkpoint in parts, and mostly in the first or the
        // last.
        for kind in kinds {
            let (column, required) = kind.column();
            let is_single = matches!(kind, TableAction::Protocol | TableAction::Metadata);
            for file in &top.parquet {
                let mut found = Vec::new();
                file.actions(column, required, is_single, &mut found).map_err(|error| self.located(error))?;
                let is_done = is_single && !found.is_empty();
                actions.extend(found);
                if is_done {
                    break;
                }
            }
        }
        Ok(actions)
    }

    /// The state of this version without this checkpoint, which `error` says to be unreadable.
    ///
    /// # Errors
    /// `error` itself if the log does not hold the version otherwise, or if it does not speak of damage.
    fn replaced(&self, error: Error) -> Result<Arc<State>> {
        if !matches!(error.kind(), ErrorKind::CorruptLog | ErrorKind::FileNotFound) {
            return Err(error);
        }
        if let Some(state) = self.instead.get() {
            return Ok(Arc::clone(state));
        }
        let file = error.path().map_or_else(
            || self.files.files.first().map(|file| file.name.clone()).unwrap_or_default(),
            str::to_owned,
        );
        let without: Vec<_> = self.without.iter().chain([&self.files]).cloned().collect();
        match State::find(&self.storage, &self.resolver, &self.staged, self.files.version, without) {
            Ok(state) => {
                let base = state.base_version().map_or_else(
                    || "the commits alone".to_owned(),
                    |version| format!("the checkpoint of version {version}"),
                );
                tracing::warn!(table = self.storage.url(), version = self.files.version, file, %error, "a checkpoint cannot be read: reading {base} instead");
                Ok(Arc::clone(self.instead.get_or_init(|| Arc::new(state))))
            }
            Err(other) => {
                tracing::warn!(table = self.storage.url(), version = self.files.version, file, error = %other, "a checkpoint cannot be read, and nothing stands in for it");
                Err(error.with_hint("the log before the checkpoint was cleaned up, so that nothing stands in for it; restore the file"))
            }
        }
    }

    fn located(&self, error: Error) -> Error {
        error.at_version(self.files.version).in_table(self.storage.url())
    }

    /// What stands in for it, if it is known to be damaged.
    fn stand_in(&self) -> Option<Arc<State>> {
        if let Some(state) = self.instead.get() {
            return Some(Arc::clone(state));
        }
        if !self.is_damaged.load(Ordering::Relaxed) {
            return None;
        }
        self.replaced(Error::corrupt_log("a part of the checkpoint was found damaged")).ok()
    }

    /// Remembers that a part of it cannot be read.
    fn mark_damaged(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
    }

    fn top(&self) -> Result<Arc<Top>> {
        if let Some(top) = self.top.get() {
            return Ok(Arc::clone(top));
        }
        let top = self.open().map_err(|error| self.located(error))?;
        Ok(Arc::clone(self.top.get_or_init(|| Arc::new(top))))
    }

    fn open(&self) -> Result<Top> {
        let paths: Vec<String> =
            self.files.files.iter().map(|file| format!("{LOG_DIRECTORY}/{}", file.name)).collect();
        if self.files.kind == CheckpointKind::UuidJson {
            let path = paths.first().map(String::as_str).unwrap_or_default();
            return self.open_json(path).map_err(|error| error.at_path(path));
        }
        let top = Top { parquet: open_all(&self.storage, &paths)?, json: None, sidecars: OnceLock::new() };
        if self.files.kind == CheckpointKind::UuidParquet {
            let mut actions = Vec::new();
            for file in &top.parquet {
                file.actions("checkpointMetadata", "version", true, &mut actions)?;
            }
            self.check_version(&actions)
                .map_err(|error| paths.iter().fold(error, |error, path| error.at_path(path)))?;
        }
        Ok(top)
    }

    fn open_json(&self, path: &str) -> Result<Top> {
        let bytes = self.storage.read(path)?;
        let json = Commit::parse(&bytes, self.files.version, 0)?;
        let mut actions = Vec::new();
        for (line, number) in bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).zip(1..) {
            // File actions, of which there may be many, are in `json` already.
            if line.is_empty() || line.starts_with(b"{\"add\"") || line.starts_with(b"{\"remove\"") {
                continue;
            }
            let text = std::str::from_utf8(line).map_err(|error| {
                Error::corrupt_log("the line is not UTF-8").with_source(error).at_line(number)
            })?;
            actions.extend(Action::parse_line(text).map_err(|error| error.at_line(number))?);
        }
        self.check_version(&actions)?;
        // Lines have no end mark: what every V2 checkpoint holds tells that it is whole.
        if json.protocol.is_none() || json.metadata.is_none() {
            return Err(Error::corrupt_log("the checkpoint is not whole: it lacks 'protocol' or 'metaData'"));
        }
        let sidecars = self.sidecar_paths(actions)?;
        Ok(Top { parquet: Vec::new(), json: Some(json), sidecars: sidecars.into() })
    }

    /// Protocol: "V2 Spec", "exactly one Checkpoint Metadata action".
    fn check_version(&self, actions: &[Action]) -> Result<()> {
        let found = actions.iter().find_map(|action| match action {
            Action::CheckpointMetadata(metadata) => Some(metadata.version),
            _ => None,
        });
        match found {
            Some(version) if u64::try_from(version) == Ok(self.files.version) => Ok(()),
            Some(version) => {
                Err(Error::corrupt_log(format!("the checkpoint says that it is of version {version}")))
            }
            None => Err(Error::corrupt_log(
                "the checkpoint lacks 'checkpointMetadata', which every V2 checkpoint has",
            )),
        }
    }

    /// The paths of the sidecars, relative to the table's root.
    fn sidecars<'a>(&self, top: &'a Top) -> Result<&'a [String]> {
        if let Some(sidecars) = top.sidecars.get() {
            return Ok(sidecars);
        }
        let mut actions = Vec::new();
        for file in &top.parquet {
            file.actions("sidecar", "path", false, &mut actions)?;
        }
        let sidecars = self.sidecar_paths(actions)?;
        Ok(top.sidecars.get_or_init(|| sidecars))
    }

    fn sidecar_paths(&self, actions: Vec<Action>) -> Result<Vec<String>> {
        let sidecars = actions.into_iter().filter_map(|action| match action {
            Action::Sidecar(sidecar) => Some(sidecar_path(&sidecar)),
            _ => None,
        });
        sidecars.collect()
    }
}

/// Where a sidecar lies. Protocol: "Sidecar File Information".
fn sidecar_path(sidecar: &Sidecar) -> Result<String> {
    let decoded = path::decode(&sidecar.path)?;
    match LogFileName::parse(&format!("_sidecars/{decoded}")) {
        Some(name @ LogFileName::Sidecar(_)) if !decoded.contains(char::is_control) => Ok(name.path()),
        _ => Err(Error::corrupt_log(format!(
            "the sidecar '{}' is not a file name in {LOG_DIRECTORY}/_sidecars",
            sidecar.path
        ))),
    }
}

/// Opens several files at once, if there are several.
fn open_all(storage: &Storage, paths: &[String]) -> Result<Vec<ParquetFile>> {
    parallel::each(paths, parallel::cores(), |path| ParquetFile::open(storage, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Sidecar files must always reside in the table's own _delta_log/_sidecars directory".
    #[test]
    fn sidecars_are_bare_names() {
        let of = |path: &str| sidecar_path(&Sidecar { path: path.to_owned(), ..Sidecar::default() });
        assert_eq!(of("a%20b.parquet").unwrap(), "_delta_log/_sidecars/a b.parquet");
        for path in [
            "",
            "../x.parquet",
            "a/x.parquet",
            "a%2Fx.parquet",
            "/x.parquet",
            "file:///x.parquet",
            "%2e%2e%2fx.parquet",
            "x.json",
            ".x.parquet",
            "x%00.parquet",
        ] {
            assert!(of(path).is_err(), "{path}");
        }
    }
}
