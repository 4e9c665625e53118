//! The values that are the same for all rows of a file in a change feed.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, StringArray, StructArray, TimestampMicrosecondArray};
use arrow::datatypes::{Field, FieldRef};

use super::files::ChangeKind;
use super::schema::change_fields;
use crate::error::{Error, Result};

/// Returns the partition values of the files of a commit, and those columns of the feed that are the same for all
/// rows of a file.
pub(super) fn values(
    version: u64,
    timestamp_ms: i64,
    partitions: &StructArray,
    kind: ChangeKind,
) -> Result<StructArray> {
    let files = partitions.len();
    let version =
        i64::try_from(version).map_err(|_| Error::corrupt_log("a version does not fit in an i64"))?;
    let micros = timestamp_ms
        .checked_mul(1000)
        .ok_or_else(|| Error::corrupt_log("a commit time in microseconds does not fit in an i64"))?;
    let [change_type, commit_version, commit_timestamp] = change_fields();
    let mut given: Vec<(Field, ArrayRef)> = vec![
        (commit_version, Arc::new(Int64Array::from(vec![version; files]))),
        (
            commit_timestamp,
            Arc::new(TimestampMicrosecondArray::from(vec![micros; files]).with_timezone("UTC")),
        ),
    ];
    if let Some(name) = kind.change_type() {
        given.push((change_type, Arc::new(StringArray::from(vec![name; files]))));
    }
    let (fields, columns): (Vec<_>, Vec<_>) =
        given.into_iter().map(|(field, column)| (Arc::new(field), column)).unzip();
    let fields: Vec<FieldRef> = partitions.fields().iter().cloned().chain(fields).collect();
    let columns = partitions.columns().iter().cloned().chain(columns).collect();
    StructArray::try_new_with_length(fields.into(), columns, None, files).map_err(|error| {
        Error::corrupt_log("the values of changed files do not match the types of their columns")
            .with_source(error)
    })
}
