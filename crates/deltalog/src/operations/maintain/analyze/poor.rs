//! Decides whether the statistics of a file are poor, that is, incomplete or inexact.
//!
//! They are poor if they lack the number of rows, the NULL count of an indexed column, or a bound of a column that
//! can have bounds and has a value. They are also poor if their bounds are wide although no row is deleted. Arrays
//! and maps do not need a NULL count, because footers do not contain it.

use arrow::datatypes::DataType;

use crate::error::Result;
use crate::expression::predicate::ColumnPath;
use crate::protocol::Add;
use crate::snapshot::Snapshot;
use crate::values::stats::{OF_ROWS, StatsTree, indexed, is_bounded};
use crate::write::TableWriteSpec;

/// The statistics that the files of a version should have.
pub(super) struct Expected {
    /// The columns that should have statistics, by their physical names.
    pub(super) columns: Vec<(ColumnPath, DataType)>,
}

impl Expected {
    /// # Errors
    /// Returns the same errors as [`TableWriteSpec::of`].
    pub(super) fn of(base: &Snapshot) -> Result<Self> {
        let spec = TableWriteSpec::of(base)?;
        let mut columns = indexed(&spec.data_schema(), spec.indexed());
        columns.retain(|(_, data_type)| !data_type.is_nested());
        Ok(Self { columns })
    }

    /// Returns whether the statistics of a file are poor.
    pub(super) fn is_poor(&self, add: &Add) -> bool {
        let Some(stats) = add.stats.as_deref().and_then(StatsTree::parse) else { return true };
        let is_final = add.tags.as_ref().is_some_and(|tags| tags.contains_key(OF_ROWS));
        let is_wide = !stats.is_tight() && add.deletion_vector.is_none();
        let lacks = |(path, data_type): &(ColumnPath, DataType)| {
            stats.lacks(path.parts(), is_final || !is_bounded(data_type))
        };
        stats.rows().is_none() || is_wide || self.columns.iter().any(lacks)
    }
}
