//! Packs the list of files to read for the Java side of `deltalog.spark`.
//!
//! ```text
//! i32 length, the version of this wheel, which Java classes of other versions refuse
//! i64 files of the snapshot, u8 whether any of the listed files has a vector
//! i32 length, the table's root as a Hadoop path
//! i32 D, D directories:
//!     the partition row: for each column u8 present, then (if 1) the value in Catalyst's form
//!     i32 F, i32 length of the F files:
//!         i64 size, i64 modification time in ms, i32 length, path, u8 flags, then the fields of set flags:
//!         1  the rows that are not returned: a vector
//!         2  the only rows that are returned: a vector
//!         4  the change type of all rows of the file in a change data feed: i32 length, text
//!         8  i64 id of the first row, i64 version that added the rows
//!         16 no field: the path is absolute and not below the root
//!         32 i32 number of the file in the plan of a statement that changes rows
//!
//! vector = i64 cardinality, u8 place
//!     place 0: i32 length, the vector itself
//!     else: i32 length, path (1: below the root, 2: absolute), i64 offset, i32 size
//! ```
//!
//! - Numbers are big endian, except inside of deletion vectors. Paths are decoded, because a Hadoop `Path` that is
//!   created from a string is not decoded again.
//! - Files with equal partition values are grouped in one directory of the list.
//! - Deletion vectors are passed as resolved descriptors, and the tasks that read the files also read the vectors.
//!   Planning does no I/O for them, and the driver's memory does not depend on the number of deleted rows.

mod answers;
mod batch;
mod changes;
mod copies;
mod packer;
mod plan;
mod statement;
mod values;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, TimestampMillisecondType};
use deltalog::engine::predicate::{ParseMode, parse};
use deltalog::engine::protocol::{MaterializedRowTracking, TableFeature};
use deltalog::engine::replay::DeletionVectorColumn;
use deltalog::engine::scan::{FileListing, ListColumn};
use deltalog::{Error, Result, Snapshot};

pub(crate) use answers::pack_answers;
pub(crate) use batch::pack_batch;
pub(crate) use changes::pack_changes;
pub(crate) use copies::pack_copies;
use packer::{Packed, Packer, PlannedFile, PlannedPath, is_absolute};
pub(crate) use plan::SparkPlan;
pub(crate) use statement::{GivenRows, NumberedFile, file_number, pack_numbered};

/// A packed list of files to read.
pub(crate) struct Plan {
    packed: Packed,
    /// Number of files in the list.
    kept: u64,
    /// Number of files in the snapshot.
    total: u64,
}

/// Packs the files of `snapshot` that may contain rows for which `filter_sql` is true.
pub(crate) fn pack(snapshot: &Snapshot, filter_sql: &str, time_zone: &str) -> Result<Plan> {
    let mut listing = FileListing::new(snapshot).columns(columns(snapshot));
    let is_filtered = !filter_sql.trim().is_empty();
    if is_filtered {
        listing = listing.pruning(&parse(filter_sql, time_zone, ParseMode::Pruning)?);
    }
    let mut packer = Packer::new(snapshot.resolver());
    for batch in listing.read()? {
        add_files(&mut packer, snapshot, &batch?)?;
    }
    if packer.has_vectors() && !snapshot.protocol().reader_features().contains(&TableFeature::DeletionVectors)
    {
        // Without the feature, Spark is not told to apply deletion vectors.
        return Err(Error::corrupt_log(
            "files have deletion vectors, but the table's protocol does not have the feature 'deletionVectors'",
        )
        .in_table(snapshot.storage().url())
        .at_version(snapshot.version()));
    }
    let total = if is_filtered { snapshot.totals()?.files } else { packer.files() };
    finish(packer, snapshot, total)
}

/// Returns the columns of the file list that are packed for each file, in the order that `add_files` expects.
fn columns(snapshot: &Snapshot) -> Vec<ListColumn> {
    let mut columns = vec![
        ListColumn::Path,
        ListColumn::Size,
        ListColumn::ModificationTime,
        ListColumn::PartitionValues,
        ListColumn::DeletionVector,
    ];
    if MaterializedRowTracking::of(snapshot.protocol(), snapshot.metadata()).is_ok() {
        columns.extend([ListColumn::BaseRowId, ListColumn::DefaultRowCommitVersion]);
    }
    columns
}

fn finish(packer: Packer<'_>, snapshot: &Snapshot, total: u64) -> Result<Plan> {
    Ok(Plan { kept: packer.files(), total, packed: packer.finish(total, &hadoop_root(snapshot)?)? })
}

fn add_files(packer: &mut Packer<'_>, snapshot: &Snapshot, batch: &RecordBatch) -> Result<()> {
    let [paths, sizes, times, values, _, ids @ ..] = batch.columns() else {
        return Err(Error::corrupt_log("the file list does not have the requested columns"));
    };
    let (paths, sizes) = (paths.as_string::<i32>(), sizes.as_primitive::<Int64Type>());
    let (times, values) = (times.as_primitive::<TimestampMillisecondType>(), values.as_struct());
    let vectors = DeletionVectorColumn::of_list(batch)?;
    let ids: Vec<_> = ids.iter().map(|column| column.as_primitive::<Int64Type>()).collect();
    let of_row = |row: usize| match ids.as_slice() {
        [base, version] if base.is_valid(row) && version.is_valid(row) => {
            Some((base.value(row), version.value(row)))
        }
        _ => None,
    };
    let located = |error| snapshot.located(error);
    for row in 0..batch.num_rows() {
        let path = paths.value(row);
        let outside = if is_absolute(path) {
            Some(snapshot.resolver().resolve_decoded(path).map_err(located)?)
        } else {
            None
        };
        packer.add(PlannedFile {
            path: outside.as_ref().map_or(PlannedPath::Relative(path), PlannedPath::new),
            size: sizes.value(row),
            modification_time_ms: if times.is_valid(row) { times.value(row) } else { 0 },
            values: values.columns(),
            row,
            rows: vectors.get(row).map_err(|error| error.at_path(path))?.into(),
            change_type: None,
            row_tracking: of_row(row),
            number: None,
            given: None,
        })?;
    }
    Ok(())
}

/// Returns the table's root as Hadoop spells it: the scheme and the decoded path.
fn hadoop_root(snapshot: &Snapshot) -> Result<String> {
    let root = snapshot.storage().root();
    let path = deltalog::engine::protocol::path::decode(root.path())?.into_owned();
    // The authority is the bucket or, in Azure, the container and the account.
    Ok(match root.authority() {
        "" => format!("{}:{path}", root.scheme()),
        authority => format!("{}://{authority}{path}", root.scheme()),
    })
}
