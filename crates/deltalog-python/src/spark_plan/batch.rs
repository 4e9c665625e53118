//! Packs the files of a batch of a stream, in the same format as the files of a snapshot.

use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::{Result, StreamBatch};

use super::packer::Packer;
use super::{Plan, add_files, columns, finish, pack_changes};

/// Packs the files of `batch` that may contain rows for which `filter_sql` is true.
pub(crate) fn pack_batch(batch: &StreamBatch, filter_sql: &str, time_zone: &str) -> Result<Plan> {
    let snapshot = batch.snapshot();
    let is_filtered = !filter_sql.trim().is_empty();
    let predicate = is_filtered.then(|| parse(filter_sql, time_zone, ParseMode::Pruning)).transpose()?;
    if batch.is_change_feed() {
        return pack_changes(&batch.changes(predicate.as_ref())?, "", time_zone);
    }
    let mut packer = Packer::new(snapshot.resolver());
    for files in batch.listing(predicate.as_ref())?.columns(columns(snapshot)).read()? {
        add_files(&mut packer, snapshot, &files?)?;
    }
    finish(packer, snapshot, batch.file_count()?)
}
