//! The requirements of Iceberg compatibility for a table that is changed. Protocol: "Iceberg Compatibility V1", "… V2";
//! "Iceberg Compatibility V3" of the protocol's requests for comments.
//!
//! - Every change gives ids to the parts of arrays and maps that have none: to new columns, and to all columns when
//!   the compatibility begins.
//! - When it begins, the existing files must already be as writers must write them from then on. Otherwise a conversion
//!   to Iceberg would find columns that it cannot name, or rows that are deleted. The protocol requires this of
//!   existing files only in version 1 ("any Parquet data file that is present in the table"); in versions 2 and 3 it
//!   speaks of newly written files, so checking all files is a stricter rule of this crate. The JVM implementation
//!   rewrites the files when version 2 begins ("REORG TABLE … UPGRADE UNIFORM"), and does not allow version 3 to begin
//!   on a table with row tracking.

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

/// Checks the table as drafted, which has `protocol`, and gives ids to parts of arrays and maps.
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

/// Checks the files of the table if the compatibility begins with the change.
///
/// # Errors
/// `InvalidArgument` for a file that does not meet the requirements for new files. Also errors of the store.
pub(super) fn check_files(draft: &mut Draft<'_>, protocol: &Protocol) -> Result<()> {
    let base = draft.base;
    let begins = match IcebergCompat::of(protocol, &draft.metadata)? {
        // Two versions that are both enabled are invalid, so neither is in force.
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
    // Files that are added concurrently are not checked.
    draft.depends_on_rows = true;
    Ok(())
}

/// Returns why a file of the table does not meet the requirements.
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
        "replace the table by one that is created with this property, and write its rows again in the same commit",
    )
}
