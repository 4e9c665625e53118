//! The state of a log segment: its checkpoint with its commits applied.
//!
//! - Commits are read and parsed only once, on all cores. If a compaction is unreadable or invalid, the commits that it
//!   covers are read instead.
//! - Loading a state does not check whether the table's features are supported. The caller checks its protocol and
//!   metadata.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;

use super::checkpoint::{AddRequest, Checkpoint, CheckpointReader, SidecarFile, TableAction};
use super::columns::FileColumns;
use super::commit::Commit;
use super::replayed::{Compaction, Replayed};
use super::tail::{FileReplay, Tail};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{CheckpointFiles, CommitFile, CommitKind, LogSegment, SegmentSource, StagedCommit};
use crate::protocol::{Action, PathResolver};
use crate::runtime::parallel;
use crate::storage::Storage;

/// The state of the table at one version, as recorded in the log.
#[derive(Clone)]
pub(crate) struct State {
    storage: Storage,
    resolver: PathResolver,
    segment: Arc<LogSegment>,
    /// The commits after the checkpoint, newest first. Some may be replaced by compactions.
    replayed: Arc<[Replayed]>,
    checkpoint: Option<Arc<Checkpoint>>,
    tail: Arc<OnceLock<Arc<Tail>>>,
}

impl State {
    /// Reads the commits of `segment`. Commits that `older` has already read are not read again.
    ///
    /// # Errors
    /// `CorruptLog` for a damaged commit; also errors from the store.
    pub(crate) fn load(
        storage: &Storage,
        resolver: &PathResolver,
        staged: &Arc<[StagedCommit]>,
        segment: LogSegment,
        older: Option<&Self>,
        without: &[CheckpointFiles],
    ) -> Result<Self> {
        let known = |file: &CommitFile| {
            let replayed = &older?.replayed;
            let index = replayed.binary_search_by(|known| file.version.cmp(&known.version())).ok()?;
            replayed.get(index).filter(|known| known.start() == file.start()).cloned()
        };
        let replayed = read_commits(storage, resolver, &segment, known)?;
        let checkpoint = segment.checkpoint.as_ref().map(|files| {
            let same = older
                .and_then(|older| older.checkpoint.as_ref())
                .filter(|checkpoint| checkpoint.files().is_same(files));
            // Reuse the checkpoint of the older state: its footers need not be read again, and it knows whether it is
            // damaged.
            same.cloned().unwrap_or_else(|| {
                Arc::new(Checkpoint::new(storage, resolver, files.clone(), without, staged))
            })
        });
        Ok(Self {
            storage: storage.clone(),
            resolver: resolver.clone(),
            segment: Arc::new(segment),
            replayed: replayed.into(),
            checkpoint,
            tail: Arc::default(),
        })
    }

    /// Returns a copy that shares the commits but has no open files.
    pub(crate) fn without_open_files(&self) -> Self {
        Self {
            storage: self.storage.clone(),
            resolver: self.resolver.clone(),
            segment: Arc::clone(&self.segment),
            replayed: Arc::clone(&self.replayed),
            checkpoint: self.checkpoint.as_ref().map(|checkpoint| Arc::new(checkpoint.unopened())),
            tail: Arc::clone(&self.tail),
        }
    }

    /// Returns whether the checkpoint turned out to be unreadable.
    pub(crate) fn has_lost_checkpoint(&self) -> bool {
        self.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.is_lost())
    }

    /// Returns approximately how many bytes of memory the commits take. Only file actions are counted, because they
    /// take nearly all of the memory.
    pub(crate) fn memory(&self) -> u64 {
        let of = |commit: &Arc<Commit>| {
            let changes: usize = commit.cdc.iter().map(|file| size_of_val(file) + file.path.len()).sum();
            let actions = [&commit.adds, &commit.removes].map(RecordBatch::get_array_memory_size);
            (changes + actions.iter().sum::<usize>() + commit.order.len()) as u64
        };
        self.newest_actions().map(of).sum()
    }

    /// Loads the state of `version` from the newest checkpoint that is not in `without`.
    pub(super) fn find(
        storage: &Storage,
        resolver: &PathResolver,
        staged: &Arc<[StagedCommit]>,
        version: u64,
        without: Vec<CheckpointFiles>,
    ) -> Result<Self> {
        let source = SegmentSource { storage, staged, without: &without };
        let segment = LogSegment::find_in(source, Some(version))?;
        Self::load(storage, resolver, staged, segment, None, &without)
    }

    pub(crate) fn segment(&self) -> &LogSegment {
        &self.segment
    }

    /// Returns the commits after the checkpoint, newest first. Commits that a compaction replaces are left out.
    pub(crate) fn commits(&self) -> impl Iterator<Item = &Arc<Commit>> + Clone {
        self.replayed.iter().filter_map(Replayed::commit)
    }

    /// Returns the actions after the checkpoint on which the state depends, newest first. See
    /// [`Replayed::newest_actions`].
    pub(crate) fn newest_actions(&self) -> impl Iterator<Item = &Arc<Commit>> + Clone {
        self.replayed.iter().map(Replayed::newest_actions)
    }

    /// Returns the version of the checkpoint that the state starts from.
    pub(super) fn base_version(&self) -> Option<u64> {
        self.segment.checkpoint.as_ref().map(|checkpoint| checkpoint.version)
    }

    /// Returns the actions of `kinds`, newest first. Only the newest protocol and the newest metadata matter, so older
    /// ones may be left out.
    ///
    /// # Errors
    /// Returns the same errors as [`State::load`].
    pub(crate) fn table_actions(&self, kinds: &[TableAction]) -> Result<Vec<Action>> {
        let mut actions: Vec<Action> =
            self.newest_actions().flat_map(|commit| kinds.iter().flat_map(|kind| kind.of(commit))).collect();
        let is_found = |kind: &TableAction| {
            actions.iter().any(|action| {
                matches!(
                    (kind, action),
                    (TableAction::Protocol, Action::Protocol(_))
                        | (TableAction::Metadata, Action::Metadata(_))
                )
            })
        };
        let missing: Vec<TableAction> = kinds.iter().filter(|kind| !is_found(kind)).copied().collect();
        if let Some(checkpoint) = self.checkpoint.as_ref().filter(|_| !missing.is_empty()) {
            actions.extend(checkpoint.table_actions(&missing)?);
        }
        Ok(actions)
    }

    /// Returns the live files. Files that the newest commits have added come first.
    ///
    /// # Errors
    /// `CorruptLog` for an invalid path. Errors that occur while files are read are returned by the iterator.
    pub(crate) fn files(&self, request: AddRequest) -> Result<FileReplay> {
        let tail = self.tail()?;
        let read = FileReplay::request_for(&tail, &request);
        let checkpoint =
            self.checkpoint.as_ref().map(|checkpoint| CheckpointReader::adds_of(checkpoint, read));
        Ok(FileReplay::new(self.storage.clone(), tail, checkpoint, request))
    }

    /// Returns the tombstones.
    ///
    /// # Errors
    /// Returns the same errors as [`State::files`].
    pub(crate) fn removes(&self) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        let tail = self.tail()?;
        let recent: Vec<_> = tail.removes().collect();
        let older = self.checkpoint.as_ref().map(CheckpointReader::removes_of);
        Ok(Box::new(
            recent.into_iter().chain(older.into_iter().flatten().map(move |batch| tail.filter(batch?))),
        ))
    }

    /// Returns the live files that were added by the commits after the checkpoint.
    ///
    /// # Errors
    /// Returns the same errors as [`State::files`].
    pub(crate) fn files_of_commits(&self, columns: FileColumns) -> Result<FileReplay> {
        Ok(FileReplay::new(self.storage.clone(), self.tail()?, None, AddRequest::new(columns)))
    }

    /// Opens the sidecars of the checkpoint. Returns `None` if it has no sidecars that can be used.
    ///
    /// # Errors
    /// `CorruptLog`, `FileNotFound` and errors from the store, for a checkpoint that cannot be read.
    pub(crate) fn sidecars(&self) -> Result<Option<Vec<SidecarFile>>> {
        self.checkpoint.as_ref().map_or(Ok(None), |checkpoint| checkpoint.open_sidecars())
    }

    /// Returns the file actions of the commits after the checkpoint, reconciled with each other.
    pub(crate) fn tail(&self) -> Result<Arc<Tail>> {
        if let Some(tail) = self.tail.get() {
            return Ok(Arc::clone(tail));
        }
        let commits: Vec<_> = self.newest_actions().collect();
        let tail =
            Tail::reconcile(commits, &self.resolver).map_err(|error| error.in_table(self.storage.url()))?;
        Ok(Arc::clone(self.tail.get_or_init(|| Arc::new(tail))))
    }
}

/// If the commits after the checkpoint have at most this many bytes in total, the statistics of their files are kept in
/// memory. Otherwise, the statistics are read again when they are needed: they make up most of the commits' bytes, and
/// a state lives long.
const HELD_STATISTICS: u64 = 64 << 20;

/// Reads and parses commits and compactions on all cores. Returns them newest first.
fn read_commits(
    storage: &Storage,
    resolver: &PathResolver,
    segment: &LogSegment,
    known: impl Fn(&CommitFile) -> Option<Replayed>,
) -> Result<Vec<Replayed>> {
    let files = segment.files();
    let with_stats = files.iter().map(|file| file.size).sum::<u64>() <= HELD_STATISTICS;
    let known: Vec<_> = files.iter().rev().map(|file| (*file, known(file))).collect();
    let missing = known.iter().filter(|(_, commit)| commit.is_none()).count();
    let read = |(file, commit): &(CommitFile, Option<Replayed>)| match commit {
        Some(commit) => Ok(vec![commit.clone()]),
        None => read_file(storage, resolver, segment, *file, with_stats),
    };
    // Reading a commit from a local file takes less time than starting a thread, so each thread reads several of them.
    let threads = storage.readers(if storage.waits() { missing } else { missing.div_ceil(8) });
    let commits = parallel::each(&known, threads, read)?;
    Ok(commits.into_iter().flatten().collect())
}

/// Reads one file of the log. If it is a compaction that cannot be used, returns the commits that it covers, newest
/// first.
fn read_file(
    storage: &Storage,
    resolver: &PathResolver,
    segment: &LogSegment,
    file: CommitFile,
    with_stats: bool,
) -> Result<Vec<Replayed>> {
    let read = |file: CommitFile| {
        let read = if with_stats { Commit::read } else { Commit::read_without_stats };
        Ok(Replayed::Commit(Arc::new(read(storage, file)?)))
    };
    if !matches!(file.kind, CommitKind::Compacted { .. }) {
        return Ok(vec![read(file)?]);
    }
    match read_compaction(storage, resolver, file) {
        Ok(actions) => Ok(vec![Replayed::Compaction(Compaction::new(file.start(), actions))]),
        Err(error) if matches!(error.kind(), ErrorKind::CorruptLog | ErrorKind::FileNotFound) => {
            tracing::warn!(
                table = storage.url(),
                file = file.path(),
                %error,
                "a compaction cannot be used: reading its commits instead"
            );
            let commits = segment
                .commits
                .iter()
                .rev()
                .filter(|commit| (file.start()..=file.version).contains(&commit.version));
            commits.map(|commit| read(*commit)).collect()
        }
        Err(error) => Err(error),
    }
}

/// Reads a compaction, and checks that it is reconciled. Some writers merely concatenate the lines of the commits,
/// newest first. Such a file has several actions for the same file, and their order is not known. Protocol: "Log
/// Compaction Files".
fn read_compaction(storage: &Storage, resolver: &PathResolver, file: CommitFile) -> Result<Arc<Commit>> {
    let bytes = storage.read_listed(&file.path(), file.listed)?;
    let commit = Arc::new(Commit::parse(&bytes, file.version, file.modified_ms)?);
    let has_twice = |prefix: &[u8]| {
        bytes.split(|byte| *byte == b'\n').filter(|line| line.starts_with(prefix)).nth(1).is_some()
    };
    let is_unique = |names: Vec<&str>| names.iter().collect::<HashSet<_>>().len() == names.len();
    let is_reconciled = Tail::is_reconciled(&commit, resolver)?
        && is_unique(commit.transactions.iter().map(|transaction| transaction.app_id.as_str()).collect())
        && is_unique(commit.domains.iter().map(|domain| domain.domain.as_str()).collect())
        && !has_twice(b"{\"metaData\"")
        && !has_twice(b"{\"protocol\"");
    if is_reconciled {
        Ok(commit)
    } else {
        Err(Error::corrupt_log(
            "the compaction is not reconciled: it repeats a file, application, domain, metadata or protocol",
        ))
    }
}
