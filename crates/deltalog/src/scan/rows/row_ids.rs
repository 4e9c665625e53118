//! Row ids and row commit versions. (PROTOCOL, "Reader Requirements for Row Tracking".)
//!
//! ```text
//!                     in the materialized column     otherwise
//! row id              the value, unless it is NULL   baseRowId + position of the row in its file
//! row commit version  the value, unless it is NULL   defaultRowCommitVersion
//! ```
//!
//! - The position of a row counts all rows of its file, including rows in row groups that are not read, and rows that
//!   a deletion vector deletes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type, Schema, SchemaRef};

use super::columns::FileFields;
use super::plan::Plan;
use super::selection::SelectedRows;
use crate::error::{Error, Result};
use crate::protocol::MaterializedRowTracking;
use crate::values::calendar::FileCalendar;

/// The name of the row id column that a scan returns.
pub const ROW_ID: &str = "_row_id";
/// The name of the row commit version column that a scan returns.
pub const ROW_COMMIT_VERSION: &str = "_row_commit_version";

/// The row tracking fields of an `add` or `remove` action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowTracking {
    /// The id of the file's first row.
    pub base_row_id: Option<i64>,
    /// The version that added the file's rows.
    pub default_row_commit_version: Option<i64>,
}

/// Returns the two columns that a scan appends.
pub(super) fn fields() -> [FieldRef; 2] {
    [ROW_ID, ROW_COMMIT_VERSION].map(|name| Arc::new(Field::new(name, DataType::Int64, false)))
}

/// Appends the row id columns to `schema`.
pub(in crate::scan) fn with_row_ids(schema: &Schema) -> SchemaRef {
    let fields: Fields = schema.fields().iter().cloned().chain(fields()).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Where the row ids and commit versions of one file's rows come from.
#[derive(Debug)]
pub(super) struct RowIds {
    base: i64,
    version: i64,
    /// The file's own columns of row ids and commit versions, if it has them.
    materialized: [Option<(String, Plan)>; 2],
}

impl RowIds {
    /// Prepares the row ids of a file with the columns `in_file`. Adds the leaf columns that must be read to
    /// `leaves`.
    ///
    /// # Errors
    /// Returns `CorruptLog` if the action lacks a required field, and `CorruptData` if a column has a type that
    /// cannot hold row ids.
    pub(super) fn new(
        tracking: RowTracking,
        names: &MaterializedRowTracking,
        in_file: &Fields,
        leaves: &mut Vec<usize>,
    ) -> Result<Self> {
        let missing = |field: &str| {
            Error::corrupt_log(format!("row tracking is enabled, but the file's action has no '{field}'"))
        };
        let mut column = |name: &String| -> Result<Option<(String, Plan)>> {
            let wanted = Arc::new(Field::new(name, DataType::Int64, true));
            let Some((found, leaf)) = FileFields::new(in_file).find(&wanted, name)? else { return Ok(None) };
            Ok(Some((
                found.name().clone(),
                Plan::new(
                    [&wanted, &wanted],
                    (found.data_type(), &FileCalendar::default()),
                    leaf,
                    name,
                    leaves,
                )?,
            )))
        };
        Ok(Self {
            base: tracking.base_row_id.ok_or_else(|| missing("baseRowId"))?,
            version: tracking.default_row_commit_version.ok_or_else(|| missing("defaultRowCommitVersion"))?,
            materialized: [column(&names.row_id)?, column(&names.row_commit_version)?],
        })
    }

    /// Returns the row ids and commit versions of the rows at the positions `numbers`. `column` returns a column that
    /// was read from the file.
    ///
    /// # Errors
    /// `CorruptData` for values that are not valid ids.
    pub(super) fn columns<'a>(
        &self,
        numbers: &[u64],
        column: impl Fn(&str) -> Option<&'a ArrayRef>,
    ) -> Result<[ArrayRef; 2]> {
        let unfit = || Error::corrupt_data("the file has an invalid row id or row commit version");
        let materialized = |place: &Option<(String, Plan)>| -> Result<Option<Int64Array>> {
            let Some((name, plan)) = place else { return Ok(None) };
            let array =
                plan.apply(column(name).ok_or_else(unfit)?).map_err(|error| unfit().with_source(error))?;
            Ok(Some(array.as_primitive_opt::<Int64Type>().ok_or_else(unfit)?.clone()))
        };
        let [ids, versions] = &self.materialized;
        let (ids, versions) = (materialized(ids)?, materialized(versions)?);
        let given = |array: &Option<Int64Array>, row: usize| {
            array.as_ref().filter(|array| array.is_valid(row)).map(|array| array.value(row))
        };
        let id = |(row, number): (usize, &u64)| match given(&ids, row) {
            Some(id) => Ok(id),
            None => {
                i64::try_from(*number).ok().and_then(|number| self.base.checked_add(number)).ok_or_else(unfit)
            }
        };
        let ids = numbers.iter().enumerate().map(id).collect::<Result<Vec<i64>>>()?;
        let versions =
            (0..numbers.len()).map(|row| given(&versions, row).unwrap_or(self.version)).collect::<Vec<i64>>();
        Ok([Arc::new(Int64Array::from(ids)), Arc::new(Int64Array::from(versions))])
    }
}

/// The positions, within their file, of the rows that a reader returns.
#[derive(Debug, Default)]
pub(super) struct RowNumbers {
    /// The rows of the row groups that have not been read yet.
    groups: VecDeque<Range<u64>>,
    /// The selected rows of the current row group that have not been read yet.
    current: VecDeque<Range<u64>>,
}

impl RowNumbers {
    /// Creates the positions for a reader of these row groups, in order.
    pub(super) fn new(groups: Vec<Range<u64>>) -> Self {
        Self { groups: groups.into(), current: VecDeque::new() }
    }

    /// Returns the positions of the next `count` rows among those that are `wanted`.
    ///
    /// # Errors
    /// Returns `CorruptData` if there are fewer than `count`.
    pub(super) fn next(&mut self, count: usize, wanted: &SelectedRows) -> Result<Vec<u64>> {
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            let Some(range) = self.current.front_mut() else {
                let group = self.groups.pop_front();
                let group = group
                    .ok_or_else(|| Error::corrupt_data("the file has more rows than its footer states"))?;
                self.current = wanted.ranges(&group);
                continue;
            };
            let end = range.end.min(range.start.saturating_add((count - numbers.len()) as u64));
            numbers.extend(range.start..end);
            range.start = end;
            if range.is_empty() {
                self.current.pop_front();
            }
        }
        Ok(numbers)
    }
}
