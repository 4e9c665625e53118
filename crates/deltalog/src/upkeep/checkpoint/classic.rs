//! Writes a checkpoint to one file, by the V1 spec. Protocol: "Classic checkpoint", "V1 Spec".

use std::sync::Arc;

use arrow::datatypes::Schema;

use super::action_file::ActionFile;
use super::file_actions::FileActions;
use super::table_actions::{rows, v1_actions, v1_fields};
use crate::error::Result;
use crate::log::LastCheckpoint;
use crate::log::replay::FileAction;
use crate::protocol::log_name::LogFileName;
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::upkeep::derived::take_back_if_gone;

/// Writes the checkpoint. Protocol: "If two checkpoint writers race to create the same classic checkpoint, the latest
/// writer wins."
pub(super) fn write(
    snapshot: &Snapshot,
    actions: &FileActions,
    environment: &Environment,
) -> Result<LastCheckpoint> {
    let path = LogFileName::ClassicCheckpoint(snapshot.version()).path();
    let schema = Arc::new(Schema::new([v1_fields(), actions.fields().to_vec()].concat()));
    let table = rows(&v1_actions(snapshot, environment.now_ms())?, &schema)?;
    let mut file = ActionFile::new(snapshot.storage().replace_file(&path)?, path.clone(), schema)?;
    file.write_group(&table)?;
    let mut adds = 0;
    for rows in actions.all(snapshot)? {
        let rows = rows?;
        adds += if rows.kind == FileAction::Add { rows.len() } else { 0 };
        file.write_actions(rows)?;
    }
    snapshot.check_still_there()?;
    let written = file.finish()?;
    take_back_if_gone(snapshot, &[path])?;
    Ok(LastCheckpoint {
        version: snapshot.version(),
        size: i64::try_from(written.rows).unwrap_or(i64::MAX),
        size_in_bytes: i64::try_from(written.bytes).ok(),
        num_of_add_files: i64::try_from(adds).ok(),
        ..LastCheckpoint::default()
    })
}
