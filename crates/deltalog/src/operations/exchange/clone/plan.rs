//! Plans a clone. Its files can then be copied by this process or by an engine, before the clone is committed.
//!
//! ```text
//!   plan_clone ──► ClonePlan ──┬─ execute ─────────────────────────────────────┬──► one commit
//!                              └─ copies ──► an engine copies ─ commit_copied ─┘
//! ```
//!
//! - The unique parts of the names of all copies that an engine makes begin with the mark of the plan. The engine
//!   chooses a different rest for each attempt. An attempt that continues although it is presumed dead therefore
//!   writes to a file that no version refers to.
//! - The engine's report is compared with the plan: each file must occur exactly once, with the size that the log
//!   states. This process must also find the copies in the table's location.
//! - If the engine fails, its copies are found by the mark, because the engine does not report the copies of
//!   abandoned attempts.
//! - Deletion vector files are small, and this process always copies them itself.

use super::files::{ClonedFiles, DataCopy, Way};
use super::marked::delete_marked;
use super::places::check_places;
use super::table::ClonedTable;
use super::{CloneMetrics, CloneRequest, Cloned};
use crate::commit::own_files::OwnFiles;
use crate::commit::{Committed, IsolationLevel, Operation, Transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::operations::define::CreationMode;
use crate::operations::insert::newest;
use crate::protocol::TableHeader;
use crate::protocol::{LogPath, TableFeature};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use uuid::Uuid;

/// A planned clone. No files have been copied yet.
pub struct ClonePlan {
    source: Snapshot,
    target: Storage,
    environment: Environment,
    /// The first half of the unique part in the names of the copies that an engine makes.
    mark: u64,
    cloned: Cloned,
    /// The work to do; `None` if there is nothing to do.
    work: Option<Work>,
}

/// The work to do.
struct Work {
    base: Option<Snapshot>,
    table: ClonedTable,
    files: ClonedFiles,
    mode: CreationMode,
    operation: Operation,
}

/// A data file to copy. The path of the copy is `<start><unique>-<name>`, where the engine chooses `<unique>`.
#[derive(Debug, Clone)]
pub struct FileCopy<'a> {
    /// The file of the source.
    pub from: &'a LogPath,
    /// The size of the file, in bytes.
    pub size: u64,
    /// The beginning of the copy's path, decoded and relative to the clone: the directory, followed by the mark of
    /// the plan.
    pub start: String,
    /// The end of the copy's file name, which follows the mark and the unique number.
    pub name: &'a str,
}

/// A data file that an engine has copied.
#[derive(Debug, Clone, Copy)]
pub struct CopiedFile {
    /// The index of the file in [`ClonePlan::copies`].
    pub number: usize,
    /// The unique part of the copy's name: the number whose 16 hexadecimal digits follow the mark of the plan.
    pub unique: u64,
    /// The size of the copy, in bytes.
    pub size: u64,
}

/// Plans a clone of `source` at `target`, without copying files.
///
/// # Errors
/// Returns the same errors as [`super::clone_table`], except for the errors of copying and of the commit.
pub fn plan_clone(
    source: &Snapshot,
    target: &Storage,
    request: CloneRequest,
    environment: &Environment,
) -> Result<ClonePlan> {
    let located = |error: Error| error.in_table(target.url());
    let base = newest(target)?;
    let mut plan = ClonePlan {
        source: source.clone(),
        target: target.clone(),
        environment: environment.clone(),
        mark: environment.uuid().as_u64_pair().1,
        cloned: Cloned { committed: None, metrics: CloneMetrics::default(), roots: Vec::new() },
        work: None,
    };
    match (&base, request.mode) {
        (Some(_), CreationMode::Ignore) => return Ok(plan),
        (Some(base), CreationMode::ErrorIfExists) => {
            return Err(located(
                Error::new(
                    ErrorKind::TableAlreadyExists,
                    "there is already a table at the location of the clone",
                )
                .at_version(base.version())
                .with_hint("choose another location, or replace the table"),
            ));
        }
        _ => {}
    }
    check_places(source, target, request.is_shallow).map_err(located)?;
    let table = ClonedTable::of(source, base.as_ref(), &request.properties, environment).map_err(located)?;
    let way = if request.is_shallow { Way::Shallow } else { Way::Deep };
    let tracks_rows = table.protocol.supports(&TableFeature::RowTracking);
    let files = ClonedFiles::of(source, target, base.as_ref(), way, tracks_rows, environment)
        .map_err(|error| source.located(error))?;
    if let Some(base) = base.as_ref().filter(|_| !files.removes.is_empty()) {
        base.ensure_removable()?;
    }
    plan.cloned.metrics = files.metrics;
    if request.is_shallow {
        let own = source.storage().url();
        plan.cloned.roots = std::iter::once(own).chain(source.resolver().allowed_roots()).collect();
    }
    let is_unchanged = files.is_empty() && base.as_ref().is_some_and(|base| table.is_unchanged(base));
    if !request.dry_run && !is_unchanged {
        let CloneRequest { is_shallow, source_name, operation, mode, .. } = request;
        let name = source_name.unwrap_or_else(|| format!("delta.`{}`", source.storage().url()));
        let operation = described(operation, name, source.version(), is_shallow, &files.metrics);
        plan.work = Some(Work { base, table, files, mode, operation });
    }
    Ok(plan)
}

impl ClonePlan {
    /// Returns the data files to copy, ordered by their indices.
    pub fn copies(&self) -> impl ExactSizeIterator<Item = FileCopy<'_>> {
        self.data_copies().iter().map(|copy| FileCopy {
            from: &copy.from,
            size: copy.size,
            start: format!("{}{:016x}", copy.directory, self.mark),
            name: &copy.name,
        })
    }

    /// Returns the total size of the data files to copy, in bytes.
    pub fn bytes(&self) -> u64 {
        self.data_copies().iter().map(|copy| copy.size).sum()
    }

    fn data_copies(&self) -> &[DataCopy] {
        self.work.as_ref().map_or(&[], |work| work.files.copies())
    }

    /// Copies the files, and commits the clone.
    ///
    /// # Errors
    /// Returns the same errors as [`super::clone_table`].
    pub fn execute(self) -> Result<Cloned> {
        self.commit(ClonedFiles::copy)
    }

    /// Commits the clone after an engine has made the copies. If the commit fails, the copies are deleted.
    ///
    /// # Errors
    /// Returns the same errors as [`super::clone_table`], `CorruptData` if a report does not match the plan, and
    /// `FileNotFound` if this process does not find the copies in the clone's location.
    pub fn commit_copied(mut self, copied: &[CopiedFile]) -> Result<Cloned> {
        let unique = match self.unique_names(copied) {
            Ok(unique) => unique,
            Err(error) => {
                let located = error.in_table(self.target.url());
                self.abandon();
                return Err(located);
            }
        };
        if let Some(work) = &mut self.work {
            work.files.rename(unique)?;
        }
        self.commit(ClonedFiles::complete)
    }

    /// Deletes the copies that an engine made before it failed, including copies that it has not reported.
    pub fn abandon(self) {
        let directories = self.data_copies().iter().map(|copy| copy.directory.as_str()).collect();
        delete_marked(&self.target, directories, self.mark);
    }

    /// Returns the unique parts of the copies' names, in the order of [`ClonePlan::copies`].
    fn unique_names(&self, copied: &[CopiedFile]) -> Result<Vec<Uuid>> {
        let all = self.data_copies();
        let mut found = vec![None; all.len()];
        for CopiedFile { number, unique, size } in copied {
            let (Some(copy), Some(found)) = (all.get(*number), found.get_mut(*number)) else {
                return Err(faulty(format!("there is no file {number} in the plan")));
            };
            if found.replace(Uuid::from_u64_pair(self.mark, *unique)).is_some() {
                return Err(faulty(format!("two tasks have copied the file {}", copy.from)));
            }
            if *size != copy.size {
                let expected = copy.size;
                return Err(faulty(format!(
                    "{size} of {expected} bytes of the file {} were copied",
                    copy.from
                )));
            }
        }
        let each = all.iter().zip(found);
        each.map(|(copy, unique)| {
            unique.ok_or_else(|| faulty(format!("no task has copied the file {}", copy.from)))
        })
        .collect()
    }

    /// Creates the missing copies by calling `copy`, and commits the clone.
    fn commit(self, copy: impl FnOnce(&ClonedFiles, &Snapshot, &Storage) -> Result<()>) -> Result<Cloned> {
        let Self { source, target, environment, mut cloned, work, .. } = self;
        let Some(work) = work else { return Ok(cloned) };
        let mut copied = OwnFiles::new(&target, None);
        copied.add(work.files.copied_paths());
        let committed = copy(&work.files, &source, &target)
            .and_then(|()| work.commit(&target, &cloned.roots, &environment));
        cloned.committed =
            copied.settle_unless(committed, Option::is_some).map_err(|error| error.in_table(target.url()))?;
        if cloned.committed.is_none() {
            cloned.metrics = CloneMetrics::default();
        }
        Ok(cloned)
    }
}

fn faulty(text: String) -> Error {
    Error::corrupt_data(format!("the engine has reported something unexpected: {text}"))
}

impl Work {
    /// Commits the clone. Returns `None` if another writer has created a table and the mode is `Ignore`.
    fn commit(
        self,
        target: &Storage,
        roots: &[String],
        environment: &Environment,
    ) -> Result<Option<Committed>> {
        let Self { base, table, files, mode, operation } = self;
        let mut transaction = match &base {
            None => {
                let header = TableHeader::new(table.protocol, table.metadata);
                Transaction::create(target, header, operation, environment)?
            }
            Some(base) => {
                let mut transaction = Transaction::new(base, operation, environment)?
                    .with_isolation(IsolationLevel::Serializable);
                transaction.read_whole_table();
                transaction.read_domains();
                if table.protocol != *base.protocol() {
                    transaction.set_protocol(table.protocol);
                }
                if table.metadata != *base.metadata() {
                    transaction.set_metadata(table.metadata);
                }
                transaction
            }
        };
        transaction.allow_roots(roots)?;
        table.domains.into_iter().for_each(|domain| transaction.set_system_domain(domain));
        files.removes.iter().try_for_each(|batch| transaction.remove_files(batch))?;
        files.adds.into_iter().for_each(|batch| transaction.add_batch(batch));
        match transaction.attempt()? {
            Ok(committed) => Ok(Some(committed)),
            Err(_) if base.is_none() && mode == CreationMode::Ignore => Ok(None),
            Err(lost) => Err(lost.into_error()),
        }
    }
}

/// Returns the description of the commit, with the names that the JVM implementation uses.
fn described(
    mut operation: Operation,
    source: String,
    version: u64,
    is_shallow: bool,
    metrics: &CloneMetrics,
) -> Operation {
    "CLONE".clone_into(&mut operation.name);
    operation
        .parameter("source", source)
        .parameter("sourceVersion", version)
        .parameter("isShallow", is_shallow)
        .metric("sourceTableSize", metrics.source_bytes)
        .metric("sourceNumOfFiles", metrics.source_files)
        .metric("numRemovedFiles", metrics.removed_files)
        .metric("removedFilesSize", metrics.removed_bytes)
        .metric("numCopiedFiles", metrics.copied_files)
        .metric("copiedFilesSize", metrics.copied_bytes)
}
