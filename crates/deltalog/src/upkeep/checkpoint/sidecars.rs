//! Decides which sidecars of the previous checkpoint a new checkpoint of the V2 spec reuses, and writes new sidecars
//! for all other files. Protocol: "Sidecar Files", "V2 Spec".
//!
//! ```text
//!   checkpoint 10            commits 11 to 15             checkpoint 15
//!   a  ─────────────────────────────────────────────────────>  a
//!   b  ── a file of b is removed ──┐
//!   c  (small)  ───────────────────┼─>  the rest of b, c,
//!                     new files  ──┘    and the new files  ─>  d
//! ```
//!
//! - A sidecar is reused if no later commit has an action for one of its files. It must also have the columns that a
//!   new sidecar would have. If it contains tombstones, at least one of them must not have expired.
//! - A sidecar that is less than half full is rewritten together with new files, so that small sidecars do not
//!   accumulate. The number of rows written is therefore proportional to the number of new files, plus the size of the
//!   sidecars that have lost files.
//! - Live files and tombstones are in different sidecars, because only tombstones expire.
//! - Some tombstones in a reused sidecar may have expired. This is harmless: "tombstones only exist for the benefit of
//!   the VACUUM command".
//! - A reused sidecar can only be missing if a clean-up deletes the previous checkpoint before the new one is written.
//!   For that, there must be a still newer checkpoint that is already older than the log's retention.

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{Schema, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;

use super::CheckpointLimits;
use super::action_file::{ActionFile, ActionRows};
use super::file_actions::FileActions;
use crate::error::{Error, ErrorKind, Result};
use crate::log::replay::{FileAction, SidecarFile};
use crate::protocol::Sidecar;
use crate::protocol::log_name::LogFileName;
use crate::runtime::environment::Environment;
use crate::runtime::parallel;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// The maximum number of paths that are looked up in the Bloom filters of sidecars. For more paths, it takes less time
/// to read the paths in the sidecars.
const FILTERED_PATHS: usize = 10_000;

/// The sidecars of a checkpoint that is being written.
#[derive(Debug, Default)]
pub(super) struct Sidecars {
    pub(super) actions: Vec<Sidecar>,
    /// The number of file actions in these sidecars.
    pub(super) rows: u64,
    /// The number of `add` actions in these sidecars, if it is known.
    pub(super) adds: Option<u64>,
}

/// The sidecars of the previous checkpoint that are reused, and those that are rewritten.
pub(super) struct Reuse {
    kept: Vec<SidecarFile>,
    rewritten: Vec<SidecarFile>,
}

impl Reuse {
    /// Determines which sidecars of the checkpoint that `snapshot` starts from are reused or rewritten; `None` if none
    /// can be reused.
    ///
    /// # Errors
    /// Errors from the store. If a sidecar cannot be read, no sidecar is reused.
    pub(super) fn of(
        snapshot: &Snapshot,
        actions: &FileActions,
        limits: &CheckpointLimits,
    ) -> Result<Option<Self>> {
        match Self::find(snapshot, actions, limits) {
            Err(error) if matches!(error.kind(), ErrorKind::CorruptLog | ErrorKind::FileNotFound) => {
                tracing::warn!(
                    table = snapshot.storage().url(),
                    version = snapshot.version(),
                    %error,
                    "the sidecars of the previous checkpoint cannot be reused"
                );
                Ok(None)
            }
            found => found,
        }
    }

    fn find(snapshot: &Snapshot, actions: &FileActions, limits: &CheckpointLimits) -> Result<Option<Self>> {
        let Some(sidecars) = snapshot.state().sidecars()? else { return Ok(None) };
        let tail = snapshot.state().tail()?;
        let paths = tail.paths(FILTERED_PATHS)?;
        let wanted = ArrowSchemaConverter::new().convert(&sidecar_schema(actions)).map_err(|error| {
            Error::corrupt_log("the columns of a sidecar cannot be written").with_source(error)
        })?;
        let is_usable = |sidecar: &SidecarFile| -> Result<bool> {
            let is_expired = kind_of(sidecar) == Some(FileAction::Remove)
                && sidecar.newest_tombstone_ms().is_none_or(|newest| actions.has_expired(newest));
            Ok(kind_of(sidecar).is_some()
                && !is_expired
                && sidecar.schema().root_schema() == wanted.root_schema()
                && sidecar.is_current(&tail, paths.as_deref())?)
        };
        let usable = parallel::each(&sidecars, parallel::cores(), is_usable)?;
        let (mut kept, mut rewritten) = (Vec::new(), Vec::new());
        for (sidecar, is_usable) in sidecars.into_iter().zip(usable) {
            if is_usable { kept.push(sidecar) } else { rewritten.push(sidecar) }
        }
        for (kind, has_new) in [(FileAction::Add, tail.has_adds()), (FileAction::Remove, tail.has_removes())]
        {
            let is_small = |sidecar: &SidecarFile| {
                kind_of(sidecar) == Some(kind) && sidecar.count(kind) < Some(limits.sidecar_rows / 2)
            };
            let has_new = has_new || rewritten.iter().any(|sidecar| sidecar.count(kind) != Some(0));
            if has_new || kept.iter().filter(|sidecar| is_small(sidecar)).count() > 1 {
                rewritten.extend(kept.extract_if(.., |sidecar| is_small(sidecar)));
            }
        }
        Ok((!kept.is_empty()).then_some(Self { kept, rewritten }))
    }

    /// Returns the reused sidecars.
    pub(super) fn kept(&self) -> Sidecars {
        let counts = |kind| self.kept.iter().map(move |sidecar| sidecar.count(kind)).sum::<Option<u64>>();
        let (adds, removes) = (counts(FileAction::Add), counts(FileAction::Remove));
        Sidecars {
            actions: self.kept.iter().map(|sidecar| sidecar.action().clone()).collect(),
            rows: adds.unwrap_or_default() + removes.unwrap_or_default(),
            adds,
        }
    }

    /// Returns the file actions that are not in reused sidecars.
    ///
    /// # Errors
    /// `CorruptLog`; errors while reading come with the rows.
    pub(super) fn others<'a>(
        &'a self,
        snapshot: &Snapshot,
        actions: &'a FileActions,
    ) -> Result<impl Iterator<Item = Result<ActionRows>> + use<'a>> {
        let state = snapshot.state();
        let tail = state.tail()?;
        let (for_adds, for_removes) = (Arc::clone(&tail), Arc::clone(&tail));
        let columns = actions.replayed();
        let adds = self.rewritten.iter().flat_map(move |sidecar| sidecar.adds(columns));
        let adds = adds.map(move |batch| for_adds.filter(batch?));
        let removes = self.rewritten.iter().flat_map(SidecarFile::removes);
        let removes = removes.map(move |batch| for_removes.filter(batch?));
        let recent: Vec<_> = tail.removes().collect();
        let adds = actions.adds(state.files_of_commits(columns)?.chain(adds));
        Ok(adds.chain(actions.removes(recent.into_iter().chain(removes))))
    }
}

/// Returns the kind of the actions in a sidecar. Returns `None` if it has both kinds or neither, or if the kind is
/// unknown.
fn kind_of(sidecar: &SidecarFile) -> Option<FileAction> {
    match (sidecar.count(FileAction::Add)?, sidecar.count(FileAction::Remove)?) {
        (1.., 0) => Some(FileAction::Add),
        (0, 1..) => Some(FileAction::Remove),
        _ => None,
    }
}

/// Returns the columns of sidecars.
fn sidecar_schema(actions: &FileActions) -> Schema {
    Schema::new(actions.fields().to_vec())
}

/// Writes sidecars. If this is dropped before [`SidecarWriter::keep`] is called, it deletes them.
pub(super) struct SidecarWriter<'a> {
    storage: &'a Storage,
    environment: &'a Environment,
    full: u64,
    schema: SchemaRef,
    current: Option<Current>,
    paths: Vec<String>,
    sidecars: Sidecars,
}

/// A sidecar that is still being written.
struct Current {
    name: String,
    kind: FileAction,
    file: ActionFile,
}

impl<'a> SidecarWriter<'a> {
    /// Starts the sidecars of a checkpoint that also reuses the sidecars `kept`.
    pub(super) fn new(
        storage: &'a Storage,
        actions: &FileActions,
        kept: Sidecars,
        limits: &CheckpointLimits,
        environment: &'a Environment,
    ) -> Self {
        let (schema, full) = (Arc::new(sidecar_schema(actions)), limits.sidecar_rows.max(1));
        Self { storage, environment, full, schema, current: None, paths: Vec::new(), sidecars: kept }
    }

    /// Writes file actions.
    pub(super) fn write(&mut self, rows: &ActionRows) -> Result<()> {
        let mut start = 0;
        while start < rows.column.len() {
            let fits = |current: &Current| current.kind == rows.kind && current.file.rows() < self.full;
            if !self.current.as_ref().is_some_and(fits) {
                self.finish_current()?;
            }
            let current = match &mut self.current {
                Some(current) => current,
                none => none.insert(open(
                    self.storage,
                    self.environment,
                    &self.schema,
                    rows.kind,
                    &mut self.paths,
                )?),
            };
            let room = usize::try_from(self.full - current.file.rows()).unwrap_or(usize::MAX);
            let count = room.min(rows.column.len() - start);
            current
                .file
                .write_actions(ActionRows { kind: rows.kind, column: rows.column.slice(start, count) })?;
            start += count;
        }
        Ok(())
    }

    fn finish_current(&mut self) -> Result<()> {
        let Some(Current { name, kind, file }) = self.current.take() else { return Ok(()) };
        let written = file.finish()?;
        self.sidecars.rows += written.rows;
        if kind == FileAction::Add {
            self.sidecars.adds = self.sidecars.adds.map(|adds| adds + written.rows);
        }
        self.sidecars.actions.push(Sidecar {
            path: name,
            size_in_bytes: i64::try_from(written.bytes).unwrap_or(i64::MAX),
            modification_time: self.environment.now_ms(),
            tags: None,
        });
        Ok(())
    }

    /// Completes the last sidecar. Returns all sidecars of the checkpoint.
    pub(super) fn finish(&mut self) -> Result<&Sidecars> {
        self.finish_current()?;
        Ok(&self.sidecars)
    }

    /// Keeps the sidecars when this is dropped, because from now on, a head that refers to them may exist. Returns all
    /// sidecars of the checkpoint, and the paths of the newly written ones.
    pub(super) fn keep(mut self) -> (Sidecars, Vec<String>) {
        (std::mem::take(&mut self.sidecars), std::mem::take(&mut self.paths))
    }
}

fn open(
    storage: &Storage,
    environment: &Environment,
    schema: &SchemaRef,
    kind: FileAction,
    paths: &mut Vec<String>,
) -> Result<Current> {
    let name = format!("{}.parquet", environment.uuid());
    let path = LogFileName::Sidecar(name.clone()).path();
    let file = storage.create_file_beside_log(&path)?;
    paths.push(path.clone());
    Ok(Current { name, kind, file: ActionFile::sidecar(file, path, Arc::clone(schema))? })
}

impl Drop for SidecarWriter<'_> {
    fn drop(&mut self) {
        // Some systems do not allow open files to be deleted.
        self.current = None;
        for path in &self.paths {
            if let Err(error) = self.storage.delete(path) {
                tracing::debug!(table = self.storage.url(), file = path, %error, "an unused sidecar remains");
            }
        }
    }
}
