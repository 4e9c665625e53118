//! The files of a change data feed, packed like those of a snapshot.
//!
//! The version and time of the commit are partition values that follow those of the table.

use arrow::array::ArrayRef;
use deltalog::engine::changes::{COMMIT_TIMESTAMP, COMMIT_VERSION, ChangeFile, ChangePlan};
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::{Error, ErrorKind, Result};

use super::packer::{Packer, PlannedFile, PlannedPath};
use super::{Plan, finish};

/// Packs the files of `changes` that may contain rows for which `filter_sql` is true.
pub(crate) fn pack_changes(changes: &ChangePlan, filter_sql: &str, time_zone: &str) -> Result<Plan> {
    if filter_sql.trim().is_empty() {
        return pack_files(changes, None);
    }
    let total = changes.files()?.try_fold(0, |total, file| file.map(|_| total + 1))?;
    match changes.pruned(parse(filter_sql, time_zone, ParseMode::Pruning)?) {
        Ok(pruned) => pack_files(&pruned, Some(total)),
        // The log was cleaned up after the changes were planned.
        Err(error) if error.kind() == ErrorKind::VersionNotFound => pack_files(changes, None),
        Err(error) => Err(error),
    }
}

/// Packs all files of `changes`; `total` is the number of files before pruning.
fn pack_files(changes: &ChangePlan, total: Option<u64>) -> Result<Plan> {
    let snapshot = changes.snapshot();
    let names = snapshot
        .metadata()
        .partition_columns
        .iter()
        .map(String::as_str)
        .chain([COMMIT_VERSION, COMMIT_TIMESTAMP]);
    let names: Vec<_> = names.collect();
    let mut packer = Packer::new(snapshot.resolver());
    for file in changes.files()? {
        let file = file?;
        add_file(&mut packer, &file, &names)
            .map_err(|error| error.in_table(snapshot.storage().url()).at_version(file.version))?;
    }
    let files = packer.files();
    finish(packer, snapshot, total.unwrap_or(files))
}

fn add_file(packer: &mut Packer<'_>, changed: &ChangeFile, names: &[&str]) -> Result<()> {
    let file = &changed.file;
    let column = |name: &&str| {
        file.partition_values
            .column(name)
            .cloned()
            .ok_or_else(|| Error::corrupt_log(format!("a changed file has no value for '{name}'")))
    };
    let values = names
        .iter()
        .map(column)
        .collect::<Result<Vec<ArrayRef>>>()
        .map_err(|error| error.at_path(file.path.to_string()))?;
    packer.add(PlannedFile {
        path: PlannedPath::new(&file.path),
        size: i64::try_from(file.size).unwrap_or(i64::MAX),
        modification_time_ms: changed.timestamp_ms,
        values: &values,
        row: file.partition_values.row(),
        rows: file.rows.clone(),
        change_type: changed.kind.change_type(),
        row_tracking: None,
    })
}
