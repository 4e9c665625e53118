//! Reads checkpoints. Protocol: "Checkpoints", "V1 Spec", "V2 Spec", "Sidecar Files".
//!
//! ```text
//!   classic                multi-part              V2
//!   N.checkpoint.parquet   …1.3  …2.3  …3.3   N.checkpoint.<uuid>.json|parquet, or classic
//!   all actions            all actions             all but file actions ──sidecar──> _sidecars/*.parquet
//! ```
//!
//! - A checkpoint is an optimization. If it cannot be read, the state of its version is computed from an older
//!   checkpoint or from the commits alone, with a warning in the process's log. If that is not possible either, reading
//!   fails.
//! - The footer of each file is read only once, however often the file is read. Files are not kept open between reads.
//! - A checkpoint follows the V2 spec if its name contains a UUID, or if it has the classic name and contains
//!   `checkpointMetadata`.
//! - A sidecar is a file directly in `_delta_log/_sidecars`; a reference to any other file is refused.

mod batches;
mod check;
mod normalize;
mod parquet_file;
mod parsed;
mod reader;
#[cfg(test)]
mod reader_tests;
mod references;
mod rows;
mod sidecars;
#[cfg(test)]
mod wide_tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::commit::Commit;
use super::state::State;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{CheckpointFiles, CheckpointKind, LOG_DIRECTORY, StagedCommit};
use crate::protocol::{Action, PathResolver};
use crate::runtime::parallel;
use crate::storage::{Listed, Storage};

use parquet_file::ParquetFile;
use references::References;

pub(crate) use check::{check_checkpoint, sidecars_of};
pub use reader::CheckpointReader;
pub use rows::{AddRequest, RowGroupFilter};

pub(crate) use rows::STATS_PARSED;
pub(crate) use sidecars::{FileAction, PLAIN_PATHS, SidecarFile};

/// A checkpoint that is read on demand. If it cannot be read, other files of the log replace it.
pub(crate) struct Checkpoint {
    storage: Storage,
    resolver: PathResolver,
    files: CheckpointFiles,
    /// The checkpoints that could not be read before this one was tried.
    without: Vec<CheckpointFiles>,
    staged: Arc<[StagedCommit]>,
    top: OnceLock<Arc<Top>>,
    /// Whether a part of the checkpoint could not be read. All copies share this flag, so that each of them avoids the
    /// checkpoint.
    is_damaged: Arc<AtomicBool>,
    /// Whether the checkpoint had to be replaced. All copies share this flag.
    is_lost: Arc<AtomicBool>,
    replacement: OnceLock<Arc<State>>,
}

/// The top-level files of a checkpoint: the footers of Parquet files, or the parsed lines of a JSON file.
struct Top {
    parquet: Vec<ParquetFile>,
    /// The lines of a top-level file of JSON lines.
    json: Option<Commit>,
    sidecars: OnceLock<References>,
}

/// A kind of action about the table rather than about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableAction {
    Protocol,
    Metadata,
    Transaction,
    Domain,
}

impl TableAction {
    /// Returns the column for actions of this kind, and a field of the column that is never null.
    fn column(self) -> (&'static str, &'static str) {
        match self {
            Self::Protocol => ("protocol", "minReaderVersion"),
            Self::Metadata => ("metaData", "id"),
            Self::Transaction => ("txn", "appId"),
            Self::Domain => ("domainMetadata", "domain"),
        }
    }

    /// Returns the actions of this kind in a commit, newest first.
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
            is_damaged: Arc::default(),
            is_lost: Arc::default(),
            replacement: OnceLock::new(),
        }
    }

    /// Returns a copy that has not opened any files.
    pub(crate) fn unopened(&self) -> Self {
        let Self { storage, resolver, files, without, staged, is_damaged, is_lost, .. } = self;
        Self {
            is_damaged: Arc::clone(is_damaged),
            is_lost: Arc::clone(is_lost),
            ..Self::new(storage, resolver, files.clone(), without, staged)
        }
    }

    /// Returns the checkpoint's files, as listed.
    pub(crate) fn files(&self) -> &CheckpointFiles {
        &self.files
    }

    /// Returns the actions of `kinds`, newest first.
    ///
    /// # Errors
    /// `CorruptLog` if the checkpoint cannot be read and cannot be replaced; also errors from the store.
    pub(crate) fn table_actions(&self, kinds: &[TableAction]) -> Result<Vec<Action>> {
        if let Some(state) = self.replacement.get() {
            return state.table_actions(kinds);
        }
        match self.read_table_actions(kinds) {
            Ok(actions) => Ok(actions),
            Err(error) => self.replace(error)?.table_actions(kinds),
        }
    }

    fn read_table_actions(&self, kinds: &[TableAction]) -> Result<Vec<Action>> {
        let top = self.top()?;
        if let Some(json) = &top.json {
            return Ok(kinds.iter().flat_map(|kind| kind.of(json)).collect());
        }
        let mut actions = Vec::new();
        let columns: Vec<_> = kinds.iter().map(|kind| kind.column()).collect();
        let files: Vec<ParquetFile> = top.parquet.iter().map(|file| file.expecting(&columns)).collect();
        // In a multi-part checkpoint, the protocol and the metadata are each in only one file, usually the first or the
        // last.
        for kind in kinds {
            let (column, required) = kind.column();
            let is_single = matches!(kind, TableAction::Protocol | TableAction::Metadata);
            for file in &files {
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

    /// Computes the state of this version without this checkpoint, which cannot be read because of `error`.
    ///
    /// # Errors
    /// `error` itself if the rest of the log does not suffice for the version, or if the error is not about damage.
    fn replace(&self, error: Error) -> Result<Arc<State>> {
        if !matches!(error.kind(), ErrorKind::CorruptLog | ErrorKind::FileNotFound) {
            return Err(error);
        }
        if let Some(state) = self.replacement.get() {
            return Ok(Arc::clone(state));
        }
        self.is_lost.store(true, Ordering::Relaxed);
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
                tracing::warn!(
                    table = self.storage.url(),
                    version = self.files.version,
                    file,
                    %error,
                    "a checkpoint cannot be read: reading {base} instead"
                );
                Ok(Arc::clone(self.replacement.get_or_init(|| Arc::new(state))))
            }
            Err(other) => {
                tracing::warn!(
                    table = self.storage.url(),
                    version = self.files.version,
                    file,
                    error = %other,
                    "a checkpoint cannot be read and cannot be replaced"
                );
                Err(error.with_hint(
                    "restore the file: earlier commits were cleaned up, so the checkpoint cannot be replaced",
                ))
            }
        }
    }

    fn located(&self, error: Error) -> Error {
        error.at_version(self.files.version).in_table(self.storage.url())
    }

    /// Returns the state that replaces the checkpoint, if the checkpoint is known to be damaged.
    fn replacement(&self) -> Option<Arc<State>> {
        if let Some(state) = self.replacement.get() {
            return Some(Arc::clone(state));
        }
        if !self.is_damaged.load(Ordering::Relaxed) {
            return None;
        }
        self.replace(Error::corrupt_log("a part of the checkpoint is damaged")).ok()
    }

    /// Returns whether the checkpoint could not be read, so that the log should be searched for a newer one.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Records that part of the checkpoint cannot be read.
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
        let heads: Vec<(String, Option<Listed>)> = self
            .files
            .files
            .iter()
            .map(|file| (format!("{LOG_DIRECTORY}/{}", file.name), file.listed()))
            .collect();
        if self.files.kind == CheckpointKind::UuidJson {
            let (path, listed) = heads.into_iter().next().unwrap_or_default();
            return self.open_json(&path, listed).map_err(|error| error.at_path(path));
        }
        let files = open_listed(&self.storage, &heads)?;
        let mut actions = Vec::new();
        for file in &files {
            file.actions("checkpointMetadata", "version", true, &mut actions)?;
        }
        // A checkpoint with the classic name may follow the V1 or the V2 spec; its content shows which.
        let is_v2 = match self.files.kind {
            CheckpointKind::UuidParquet => true,
            CheckpointKind::Classic => !actions.is_empty(),
            CheckpointKind::MultiPart | CheckpointKind::UuidJson => false,
        };
        if is_v2 {
            self.check_version(&actions)
                .map_err(|error| heads.iter().fold(error, |error, (path, _)| error.at_path(path)))?;
        }
        // Files are closed, because snapshots live long and a process may keep only a few hundred files open.
        let parquet = files.into_iter().map(ParquetFile::idle).collect();
        Ok(Top { parquet, json: None, sidecars: OnceLock::new() })
    }

    fn open_json(&self, path: &str, listed: Option<Listed>) -> Result<Top> {
        let bytes = self.storage.read_listed(path, listed)?;
        let json = Commit::parse(&bytes, self.files.version, 0)?;
        let mut actions = Vec::new();
        for (line, number) in bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).zip(1..) {
            // File actions are skipped: there may be many of them, and `json` already contains them all.
            if line.is_empty() || line.starts_with(b"{\"add\"") || line.starts_with(b"{\"remove\"") {
                continue;
            }
            actions.extend(Action::parse_line(line).map_err(|error| error.at_line(number))?);
        }
        self.check_version(&actions)?;
        // A file of JSON lines has no end mark. It counts as complete if it has the actions that every V2 checkpoint
        // contains.
        if json.protocol.is_none() || json.metadata.is_none() {
            return Err(Error::corrupt_log(
                "the checkpoint is incomplete: it lacks 'protocol' or 'metaData'",
            ));
        }
        let sidecars = References::among(actions)?;
        Ok(Top { parquet: Vec::new(), json: Some(json), sidecars: sidecars.into() })
    }

    /// Checks the version in the checkpoint's `checkpointMetadata`. Protocol: "V2 Spec", "exactly one Checkpoint
    /// Metadata action".
    fn check_version(&self, actions: &[Action]) -> Result<()> {
        let found = actions.iter().find_map(|action| match action {
            Action::CheckpointMetadata(metadata) => Some(metadata.version),
            _ => None,
        });
        match found {
            Some(version) if u64::try_from(version) == Ok(self.files.version) => Ok(()),
            Some(version) => Err(Error::corrupt_log(format!(
                "the checkpoint's 'checkpointMetadata' states version {version}"
            ))),
            None => Err(Error::corrupt_log(
                "the checkpoint lacks 'checkpointMetadata', which every V2 checkpoint has",
            )),
        }
    }

    /// Returns the paths of the sidecars, relative to the table's root.
    fn sidecars<'a>(&self, top: &'a Top) -> Result<&'a [String]> {
        Ok(&self.references(top)?.paths)
    }

    fn references<'a>(&self, top: &'a Top) -> Result<&'a References> {
        if let Some(sidecars) = top.sidecars.get() {
            return Ok(sidecars);
        }
        let mut actions = Vec::new();
        for file in &top.parquet {
            file.actions("sidecar", "path", false, &mut actions)?;
        }
        let sidecars = References::among(actions)?;
        Ok(top.sidecars.get_or_init(|| sidecars))
    }
}

/// Opens the files, several at once.
fn open_all(storage: &Storage, paths: &[String]) -> Result<Vec<ParquetFile>> {
    parallel::each(paths, storage.readers(paths.len()), |path| ParquetFile::open(storage, path, None))
}

/// Opens files whose metadata is known from a listing, several at once.
fn open_listed(storage: &Storage, files: &[(String, Option<Listed>)]) -> Result<Vec<ParquetFile>> {
    let open = |(path, listed): &(String, Option<Listed>)| ParquetFile::open(storage, path, *listed);
    parallel::each(files, storage.readers(files.len()), open)
}
