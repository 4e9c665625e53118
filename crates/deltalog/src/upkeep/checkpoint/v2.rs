//! Writes a checkpoint by the V2 spec. Protocol: "V2 Spec", "UUID-named checkpoint", "Handling Backward compatibility
//! while moving to UUID-named v2 Checkpoints".
//!
//! | number of file actions | where they are | format of the head (the top-level file) |
//! | --- | --- | --- |
//! | few | the head | Parquet |
//! | many | sidecars | JSON if it has few actions, else Parquet |
//!
//! - The name of the head contains a UUID, so that a checkpoint never replaces another one.
//! - The first checkpoint, and then every tenth one, has the classic name instead. Clients that do not know names with
//!   a UUID then find it, and learn from its protocol that they do not support the table.
//! - Sidecars are written first. Writing the head completes the checkpoint. If the head is not written, the sidecars
//!   are deleted. If it is unknown whether the head was written, they are kept.

use std::sync::Arc;

use arrow::datatypes::Schema;
use serde_json::Value;

use super::CheckpointLimits;
use super::action_file::{ActionFile, ActionRows};
use super::file_actions::FileActions;
use super::interval;
use super::sidecars::{Reuse, SidecarWriter, Sidecars};
use super::table_actions::{rows, v2_actions, v2_fields};
use crate::error::{Error, Result};
use crate::log::replay::FileAction;
use crate::log::{LastCheckpoint, V2CheckpointHint};
use crate::protocol::Action;
use crate::protocol::log_name::{CheckpointFormat, LogFileName};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::upkeep::derived::take_back_if_gone;

/// One of this many successive checkpoints has the classic name.
const CLASSIC_EVERY: u64 = 10;

/// The maximum number of actions that `_last_checkpoint` repeats, and also of sidecars.
const HINT_ACTIONS: usize = 30;

/// Writes the checkpoint.
pub(super) fn write(
    snapshot: &Snapshot,
    actions: &FileActions,
    limits: &CheckpointLimits,
    environment: &Environment,
) -> Result<LastCheckpoint> {
    let head = Head {
        snapshot,
        limits,
        actions: v2_actions(snapshot, environment.now_ms())?,
        is_classic: is_classic_due(snapshot),
        environment,
    };
    let writer = |kept| SidecarWriter::new(snapshot.storage(), actions, kept, limits, environment);
    if let Some(reuse) = Reuse::of(snapshot, actions, limits)? {
        let writer = writer(reuse.kept());
        return head.write_after(writer, reuse.others(snapshot, actions)?);
    }
    let mut few = Vec::new();
    let mut count = 0;
    let mut all = actions.all(snapshot)?;
    while let Some(rows) = all.next().transpose()? {
        count += rows.len();
        few.push(rows);
        if count > limits.inline_rows {
            let writer = writer(Sidecars { adds: Some(0), ..Sidecars::default() });
            return head.write_after(writer, few.into_iter().map(Ok).chain(all));
        }
    }
    head.write_with(actions, few)
}

/// Returns whether the next checkpoint must have the classic name.
fn is_classic_due(snapshot: &Snapshot) -> bool {
    let every = interval(snapshot).saturating_mul(CLASSIC_EVERY);
    snapshot.segment().checkpoint.is_none() || snapshot.version().is_multiple_of(every)
}

/// The top-level file of a checkpoint.
struct Head<'a> {
    snapshot: &'a Snapshot,
    limits: &'a CheckpointLimits,
    /// The actions except file actions.
    actions: Vec<Action>,
    is_classic: bool,
    environment: &'a Environment,
}

impl Head<'_> {
    /// Writes the head, including `files`, the file actions.
    fn write_with(self, actions: &FileActions, files: Vec<ActionRows>) -> Result<LastCheckpoint> {
        let adds = files.iter().filter(|rows| rows.kind == FileAction::Add).map(ActionRows::len).sum();
        self.snapshot.check_still_there()?;
        let name = self.name(CheckpointFormat::Parquet);
        let schema = Schema::new([v2_fields(), actions.fields().to_vec()].concat());
        let mut file = self.open(&name, schema, &self.actions)?;
        for rows in files {
            file.write_actions(rows)?;
        }
        let written = file.finish()?;
        take_back_if_gone(self.snapshot, &[name.path()])?;
        self.hint(
            &name,
            written.bytes,
            &Sidecars { rows: written.rows, adds: Some(adds), actions: Vec::new() },
        )
    }

    /// Writes `files`, the file actions, to sidecars, and then the head.
    fn write_after(
        self,
        mut writer: SidecarWriter<'_>,
        files: impl Iterator<Item = Result<ActionRows>>,
    ) -> Result<LastCheckpoint> {
        for rows in files {
            writer.write(&rows?)?;
        }
        let sidecars = writer.finish()?.actions.iter().cloned().map(Action::Sidecar);
        self.snapshot.check_still_there()?;
        let all: Vec<Action> = self.actions.iter().cloned().chain(sidecars).collect();
        if !self.is_classic && all.len() <= self.limits.json_actions {
            let name = self.name(CheckpointFormat::Json);
            let mut text = String::new();
            for action in &all {
                text.push_str(&action.to_json_line()?);
                text.push('\n');
            }
            let bytes = text.len() as u64;
            let (mut sidecars, mut written) = writer.keep();
            self.snapshot.storage().put(&name.path(), text.into())?;
            written.insert(0, name.path());
            take_back_if_gone(self.snapshot, &written)?;
            sidecars.rows += self.actions.len() as u64 + sidecars.actions.len() as u64;
            return self.hint(&name, bytes, &sidecars);
        }
        let name = self.name(CheckpointFormat::Parquet);
        let file = self.open(&name, Schema::new(v2_fields()), &all)?;
        let (mut sidecars, mut paths) = writer.keep();
        let written = file.finish()?;
        paths.insert(0, name.path());
        take_back_if_gone(self.snapshot, &paths)?;
        sidecars.rows += written.rows;
        self.hint(&name, written.bytes, &sidecars)
    }

    fn name(&self, format: CheckpointFormat) -> LogFileName {
        let version = self.snapshot.version();
        match self.is_classic {
            true => LogFileName::ClassicCheckpoint(version),
            false => LogFileName::UuidCheckpoint { version, uuid: self.environment.uuid(), format },
        }
    }

    /// Creates a Parquet file and writes `actions`, which are the non-file actions, as its first row group.
    fn open(&self, name: &LogFileName, schema: Schema, actions: &[Action]) -> Result<ActionFile> {
        let file = self.snapshot.storage().replace_file(&name.path())?;
        let mut file = ActionFile::new(file, name.path(), Arc::new(schema))?;
        let table = rows(actions, file.schema())?;
        file.write_group(&table)?;
        Ok(file)
    }

    /// Returns the content of `_last_checkpoint` for the head `name`, which has `bytes` bytes.
    fn hint(&self, name: &LogFileName, bytes: u64, sidecars: &Sidecars) -> Result<LastCheckpoint> {
        let of_sidecars: i64 = sidecars.actions.iter().map(|sidecar| sidecar.size_in_bytes).sum();
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        // If the head has the classic name, readers do not need these details to find it.
        let v2_checkpoint = match self.is_classic {
            true => None,
            false => Some(V2CheckpointHint {
                path: name.to_string(),
                size_in_bytes: bytes,
                modification_time: self.modified_ms(name)?,
                non_file_actions: self.repeated()?,
                sidecar_files: (sidecars.actions.len() <= HINT_ACTIONS).then(|| sidecars.actions.clone()),
            }),
        };
        Ok(LastCheckpoint {
            version: self.snapshot.version(),
            size: i64::try_from(sidecars.rows).unwrap_or(i64::MAX),
            size_in_bytes: bytes.checked_add(of_sidecars),
            num_of_add_files: sidecars.adds.and_then(|adds| i64::try_from(adds).ok()),
            v2_checkpoint,
            ..LastCheckpoint::default()
        })
    }

    fn modified_ms(&self, name: &LogFileName) -> Result<i64> {
        let file = self.snapshot.storage().head(&name.path())?;
        Ok(file.map_or_else(|| self.environment.now_ms(), |file| file.modified_ms))
    }

    /// Returns the actions that are not file actions, unless there are too many of them.
    fn repeated(&self) -> Result<Option<Vec<Value>>> {
        let value = |action: &Action| {
            serde_json::to_value(action).map_err(|error| {
                Error::invalid_argument("an action cannot be written to _last_checkpoint").with_source(error)
            })
        };
        (self.actions.len() <= HINT_ACTIONS)
            .then(|| self.actions.iter().map(value).collect::<Result<Vec<_>>>())
            .transpose()
    }
}
