//! The snapshot with which a stream begins.

use std::sync::Arc;

use arrow::datatypes::Schema;

use super::commits::COLUMNS;
use super::schema;
use super::sorted::{SortedFiles, Sorter};
use crate::error::{Error, ErrorKind, Result};
use crate::log::replay::{FileColumn, FileColumns, with_columns};
use crate::snapshot::Snapshot;

/// Returns the files of the snapshot of `version`, in the order in which a stream reads them.
///
/// # Errors
/// Returns `VersionNotFound` if the version can no longer be read, and `SchemaMismatch` if its rows cannot be read
/// with the schema of `read`. Also returns the errors of [`Snapshot::replay_files`].
pub(super) fn sorted(read: &Snapshot, version: u64, most_memory: usize) -> Result<SortedFiles> {
    let snapshot = read.at_version(version).map_err(|error| match error.kind() {
        ErrorKind::VersionNotFound => {
            let message =
                format!("the snapshot of version {version}, with which the stream begins, was cleaned up");
            Error::new(ErrorKind::VersionNotFound, message)
                .with_source(error)
                .at_version(version)
                .with_hint("begin with a new checkpoint")
        }
        _ => error,
    })?;
    if version != read.version() {
        schema::check(read, version, snapshot.protocol(), snapshot.metadata())
            .map_err(|error| snapshot.located(error))?;
    }
    let columns: Vec<FileColumn> = COLUMNS.into_iter().chain([FileColumn::Stats]).collect();
    let fields: Vec<_> = columns.iter().map(|column| column.field()).collect();
    let mut sorter = Sorter::new(Arc::new(Schema::new(fields.clone())), most_memory);
    for files in snapshot.replay_files(FileColumns::of(&columns))? {
        sorter.push(with_columns(&files?, fields.clone())?)?;
    }
    sorter.finish().map_err(|error| snapshot.located(error))
}
