//! Ids and commit versions of rows. (PROTOCOL, "Reader Requirements for Row Tracking".)
//!
//! ```text
//!                     in the column that the table keeps for it     else
//! row id              the value, where it is not NULL               baseRowId + number of the row in its file
//! row commit version  the value, where it is not NULL               defaultRowCommitVersion
//! ```
//!
//! - The number of a row counts every row of its file: those of row groups that are not read, and those that
//!   a deletion vector deletes, too.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type, Schema, SchemaRef};

use super::plan::{Plan, find_in_file};
use super::selection::SelectedRows;
use crate::error::{Error, Result};
use crate::protocol::MaterializedRowTracking;

/// The name of the column of row ids that a scan returns.
pub const ROW_ID: &str = "_row_id";
/// The name of the column of row commit versions that a scan returns.
pub const ROW_COMMIT_VERSION: &str = "_row_commit_version";

/// What an `add` or `remove` action says of the rows of its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowTracking {
    /// The id of the file's first row.
    pub base_row_id: Option<i64>,
    /// The version that the file's rows were added in.
    pub default_row_commit_version: Option<i64>,
}

/// The columns that a scan adds.
pub(super) fn fields() -> [FieldRef; 2] {
    [ROW_ID, ROW_COMMIT_VERSION].map(|name| Arc::new(Field::new(name, DataType::Int64, false)))
}

/// `schema`, and behind its fields those of the columns that a scan adds.
pub(in crate::scan) fn with_row_ids(schema: &Schema) -> SchemaRef {
    let fields: Fields = schema.fields().iter().cloned().chain(fields()).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// How the ids of one file's rows are found.
#[derive(Debug)]
pub(super) struct RowIds {
    base: i64,
    version: i64,
    /// The file's columns for ids and versions, where it has them.
    materialized: [Option<(String, Plan)>; 2],
}

impl RowIds {
    /// For a file with the columns `in_file`; the leaves that are needed are added to `leaves`.
    ///
    /// # Errors
    /// `CorruptLog` if the action lacks what it must say; `CorruptData` if a column is of a type that holds
    /// no ids.
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
            let Some((found, leaf)) = find_in_file(in_file, &wanted, name)? else { return Ok(None) };
            Ok(Some((
                found.name().clone(),
                Plan::new([&wanted, &wanted], found.data_type(), leaf, name, leaves)?,
            )))
        };
        Ok(Self {
            base: tracking.base_row_id.ok_or_else(|| missing("baseRowId"))?,
            version: tracking.default_row_commit_version.ok_or_else(|| missing("defaultRowCommitVersion"))?,
            materialized: [column(&names.row_id)?, column(&names.row_commit_version)?],
        })
    }

    /// Ids and versions of rows with these `numbers` in the file; `column` finds what was read of it.
    ///
    /// # Errors
    /// `CorruptData` for values that are no ids.
    pub(super) fn columns<'a>(
        &self,
        numbers: &[u64],
        column: impl Fn(&str) -> Option<&'a ArrayRef>,
    ) -> Result<[ArrayRef; 2]> {
        let unfit = || Error::corrupt_data("the file has a row id or row commit version that is no number");
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

/// The numbers, in their file, of the rows that a reader returns.
#[derive(Debug, Default)]
pub(super) struct RowNumbers {
    /// The rows of the groups that are still to come.
    groups: VecDeque<Range<u64>>,
    /// What is wanted of the group at hand, and still to come.
    current: VecDeque<Range<u64>>,
}

impl RowNumbers {
    /// For a reader of these groups, one after the other.
    pub(super) fn new(groups: Vec<Range<u64>>) -> Self {
        Self { groups: groups.into(), current: VecDeque::new() }
    }

    /// The numbers of the next `count` rows of those that are `wanted`.
    ///
    /// # Errors
    /// `CorruptData` if there are not so many.
    pub(super) fn next(&mut self, count: usize, wanted: &SelectedRows) -> Result<Vec<u64>> {
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            let Some(range) = self.current.front_mut() else {
                let group = self.groups.pop_front();
                let group = group
                    .ok_or_else(|| Error::corrupt_data("the file has more rows than its row groups count"))?;
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
