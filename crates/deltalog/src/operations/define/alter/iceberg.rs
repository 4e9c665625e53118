//! Applies the requirements of Iceberg compatibility to a table that is changed. (Protocol: "Iceberg Compatibility
//! V1", "… V2"; "Iceberg Compatibility V3" of the protocol's requests for comments.)
//!
//! - Parts of arrays and maps get ids if they have none: the parts of new columns by every change, and the parts of
//!   all columns when compatibility is enabled.
//! - When compatibility is enabled, the existing files must already meet the requirements for new files. Otherwise, a
//!   conversion to Iceberg would find columns without ids, or deleted rows. The protocol requires this of existing
//!   files only in version 1 ("any Parquet data file that is present in the table"). In versions 2 and 3 it mentions
//!   newly written files, so checking all files is a stricter rule of this crate. The JVM implementation rewrites the
//!   files when version 2 is enabled ("REORG TABLE … UPGRADE UNIFORM"), and does not allow enabling version 3 for a
//!   table with row tracking.

use super::draft::Draft;
use crate::error::{Error, Result};
use crate::log::replay::{FileColumns, adds_of};
use crate::operations::define::{MAX_COLUMN_ID, last_column_id};
use crate::protocol::schema::with_part_ids;
use crate::protocol::{Add, IcebergCompat, Metadata, Protocol};
use crate::runtime::parallel;
use crate::snapshot::Snapshot;
use crate::values::stats::num_records;
use crate::write::{FOOTER_THREADS, TableWriteSpec, iceberg_fault, read_footer};

/// Checks the drafted table, which has `protocol`, and assigns ids to parts of arrays and maps.
///
/// # Errors
/// Returns the same errors as [`IcebergCompat::of`] and [`IcebergCompat::check`].
pub(super) fn follow_up(draft: &mut Draft<'_>, protocol: &Protocol) -> Result<()> {
    let Some(iceberg) = IcebergCompat::of(protocol, &draft.metadata)? else { return Ok(()) };
    iceberg.check(protocol, &draft.metadata, &draft.schema)?;
    if iceberg.identifies_parts() {
        let before = last_column_id(&draft.metadata)?;
        let mut last_id = before;
        draft.schema = with_part_ids(&draft.schema, &mut last_id)?;
        if last_id != before {
            draft.metadata.configuration.insert(MAX_COLUMN_ID.to_owned(), last_id.to_string());
        }
    }
    Ok(())
}

/// Checks the files of the table if the change enables Iceberg compatibility.
///
/// # Errors
/// Returns `InvalidArgument` for a file that does not meet the requirements for new files, and errors from the store.
pub(super) fn check_files(draft: &mut Draft<'_>, protocol: &Protocol) -> Result<()> {
    let base = draft.base;
    let begins = match IcebergCompat::of(protocol, &draft.metadata)? {
        // If `base` enables two versions at once, it is invalid and counts as not compatible.
        Some(iceberg) => IcebergCompat::of(base.protocol(), base.metadata()).ok().flatten() != Some(iceberg),
        None => false,
    };
    if !begins {
        return Ok(());
    }
    let metadata = Metadata { schema_string: draft.schema.to_json(), ..draft.metadata.clone() };
    let spec = TableWriteSpec::of_evolved(base, protocol, &metadata)?;
    for batch in base.replay_files(FileColumns::all())? {
        let adds = adds_of(&batch?)?;
        parallel::each(&adds, FOOTER_THREADS, |add| match fault(base, add, &spec)? {
            Some(fault) => Err(refusal(&spec, &fault).at_path(&add.path)),
            None => Ok(()),
        })?;
    }
    // Files that other writers add concurrently are not checked here, so they must conflict with the change.
    draft.depends_on_rows = true;
    Ok(())
}

/// Returns the reason why a file of the table does not meet the requirements; `None` if it does.
fn fault(base: &Snapshot, add: &Add, spec: &TableWriteSpec) -> Result<Option<String>> {
    if add.deletion_vector.is_some() && !spec.iceberg().is_some_and(IcebergCompat::allows_vectors) {
        return Ok(Some("the file has a deletion vector".to_owned()));
    }
    if add.stats.as_deref().and_then(num_records).is_none() {
        return Ok(Some("the log does not have the number of rows of the file".to_owned()));
    }
    let located = |error: Error| error.at_path(&add.path);
    let path = base.resolver().resolve(&add.path).map_err(located)?;
    let file = base.storage().open_log_path(&path).map_err(located)?;
    let footer = read_footer(&file).map_err(located)?;
    Ok(iceberg_fault(&footer, spec))
}

fn refusal(spec: &TableWriteSpec, fault: &str) -> Error {
    let what = format!("the table has a file that does not comply: {fault}");
    let error = match spec.iceberg() {
        Some(iceberg) => iceberg.refusal(&what),
        None => Error::invalid_argument(what),
    };
    error.with_hint(
        "replace the table with a new one that has this property, and write its rows again in the same commit",
    )
}
