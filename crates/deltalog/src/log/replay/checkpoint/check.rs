//! Checks whether a checkpoint can be read, for example before a clean-up deletes the older files that could replace
//! it.

use std::sync::Arc;

use super::{AddRequest, Checkpoint, CheckpointReader, TableAction};
use crate::error::{Error, Result};
use crate::log::CheckpointFiles;
use crate::log::replay::columns::FileColumns;
use crate::protocol::{Action, PathResolver};
use crate::storage::Storage;

/// Reads a whole checkpoint. Returns an error if it is damaged, because readers would then need other files of the log.
///
/// # Errors
/// `CorruptLog` or `FileNotFound` for a checkpoint that cannot be read; also errors from the store.
pub(crate) fn check_checkpoint(
    storage: &Storage,
    resolver: &PathResolver,
    files: &CheckpointFiles,
) -> Result<()> {
    let checkpoint = Arc::new(Checkpoint::new(storage, resolver, files.clone(), &[], &Arc::from([])));
    let located = |error: Error| checkpoint.located(error);
    let kinds = [TableAction::Protocol, TableAction::Metadata, TableAction::Transaction, TableAction::Domain];
    let actions = checkpoint.read_table_actions(&kinds).map_err(located)?;
    let has = |wanted: fn(&Action) -> bool| actions.iter().any(wanted);
    if !has(|action| matches!(action, Action::Protocol(_)))
        || !has(|action| matches!(action, Action::Metadata(_)))
    {
        return Err(located(Error::corrupt_log("the checkpoint lacks 'protocol' or 'metaData'")));
    }
    let adds = CheckpointReader::adds_of(&checkpoint, AddRequest::new(FileColumns::all()));
    let removes = CheckpointReader::removes_of(&checkpoint);
    for batch in adds.chain(removes) {
        batch?;
    }
    // A reader that finds damage continues with the replacement, without an error.
    match checkpoint.replacement.get() {
        Some(_) => Err(located(Error::corrupt_log("a part of the checkpoint is damaged"))),
        None => Ok(()),
    }
}

/// Returns the paths of the sidecars that a checkpoint refers to, relative to the table's root.
///
/// # Errors
/// `CorruptLog` or `FileNotFound` for a checkpoint that cannot be read; also errors from the store.
pub(crate) fn sidecars_of(
    storage: &Storage,
    resolver: &PathResolver,
    files: &CheckpointFiles,
) -> Result<Vec<String>> {
    let checkpoint = Checkpoint::new(storage, resolver, files.clone(), &[], &Arc::from([]));
    let located = |error: Error| checkpoint.located(error);
    let top = checkpoint.top()?;
    checkpoint.sidecars(&top).map(<[String]>::to_vec).map_err(located)
}
