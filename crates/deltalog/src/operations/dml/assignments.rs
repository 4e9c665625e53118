//! The values that an UPDATE, or a clause of a MERGE, assigns to columns of the table.
//!
//! - A value that is just a column, of the table or of a source, is stored as an append would store it: without a
//!   change, and with an error if the types do not match. The same applies to a literal, except that a number is
//!   rounded for a floating-point column, and that a string is cast.
//! - A computed value is cast to the type of its column, which may round it. A value that does not fit is an error.
//! - The value of a struct column must have all fields of the column.
//! - A generated column to which no value is assigned is left out, so that it is computed from the new values.
//!   (PROTOCOL, "Generated Columns".)
//! - An identity column keeps its values in changed rows. Only new rows get new values. Users may provide these values
//!   only if the column accepts explicit values. (PROTOCOL, "Identity Columns".)

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::expression::predicate::{BoundColumn, ColumnPath, FieldNames, Scope, ScopedValue};
use crate::runtime::by_name::{ByName, names_of};
use crate::runtime::row_bytes::{BatchBytes, Steps, weight_of};
use crate::write::{TableWriteSpec, ensure_assignable};

/// The assignment of a value to a column.
struct Assignment {
    /// The index of the column in the table.
    column: usize,
    value: ScopedValue,
}

/// The rows to which the values are assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// Existing rows of the table, which are changed.
    Changed,
    /// Rows that are inserted.
    New,
}

/// The assignments of one statement or clause.
pub(super) struct Assignments {
    table: SchemaRef,
    /// The columns that are computed if no value is assigned to them.
    generated: HashSet<usize>,
    /// The assignments, ordered by column.
    assignments: Vec<Assignment>,
}

impl Assignments {
    /// Binds assignments. Each one is a pair: the name of a column, and a SQL expression for its value. Column names
    /// may be qualified by `alias`, the alias of the table.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a column that does not exist or is assigned twice, and for a value that is not
    /// understood or reads a column that does not exist. Returns `SchemaMismatch` for an identity column that must
    /// not be assigned, for a value of a type that the column cannot store, and for a struct that lacks a field.
    /// Returns `Unsupported` for an assignment to a part of a column.
    pub(super) fn bind(
        rows: Rows,
        values: &[(String, String)],
        spec: &TableWriteSpec,
        alias: &str,
        scope: &Scope,
    ) -> Result<Self> {
        let table = Arc::clone(spec.arrow());
        let names = FieldNames::new(table.fields());
        let mut assigned = HashSet::new();
        let mut assignments: Vec<Assignment> = Vec::new();
        for (name, sql) in values {
            let column = column_of(name, &table, &names, alias)?;
            let Some(field) = table.fields().get(column) else { continue };
            if !assigned.insert(column) {
                return Err(Error::invalid_argument(format!(
                    "the column '{}' is assigned twice",
                    field.name()
                )));
            }
            match rows {
                Rows::Changed => spec.rules().identities.check_kept(field.name())?,
                Rows::New => drop(spec.rules().identities.generates(field.name(), true)?),
            }
            let value = scope.value(sql, field).and_then(|value| {
                value.column().map_or(Ok(()), |given| ensure_assignable(given, field))?;
                Ok(value)
            });
            let value = value.map_err(|error| {
                error.within(format_args!("the value of column '{}' ({sql})", field.name()))
            })?;
            assignments.push(Assignment { column, value });
        }
        let generated = spec.rules().generated.iter().filter_map(|rule| names.exact(&rule.name)).collect();
        assignments.sort_by_key(|assigned| assigned.column);
        Ok(Self { generated, assignments, table })
    }

    /// Returns the columns of the scope from which values are computed. Columns that are assigned without a
    /// computation are not included.
    pub(super) fn computed_from(&self) -> Vec<BoundColumn> {
        self.assignments.iter().flat_map(|assigned| assigned.value.computed_from()).cloned().collect()
    }

    /// Returns the top-level columns of the scope that the values read.
    pub(super) fn columns(&self) -> impl Iterator<Item = &str> {
        self.assignments.iter().flat_map(|assigned| assigned.value.columns())
    }

    /// Calls `visit` with the rows before and after they get the new values, one batch at a time. `before` are the
    /// rows of the table; additional columns in them are kept. `rows` are the same rows with the columns of the scope.
    ///
    /// # Errors
    /// Returns the errors of `visit`, and `InvalidArgument` for a row whose value cannot be computed.
    pub(super) fn update_all(
        &self,
        limits: BatchBytes,
        before: &RecordBatch,
        rows: &RecordBatch,
        mut visit: impl FnMut(&RecordBatch, &RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let compute = |range: Range<usize>| {
            let before = before.slice(range.start, range.len());
            let after = self.update(&before, &rows.slice(range.start, range.len()))?;
            Ok((before, after))
        };
        let bytes = |(_, after): &(RecordBatch, RecordBatch)| weight_of(after, 0, after.num_rows());
        let mut steps = Steps::new(limits, before.num_rows());
        while let Some(step) = steps.next(compute, bytes) {
            let (before, after) = step?;
            visit(&before, &after)?;
        }
        Ok(())
    }

    /// Calls `visit` with new rows, one batch at a time. The rows have only the assigned columns.
    ///
    /// # Errors
    /// Returns the errors of `visit`, and `InvalidArgument` for a row whose value cannot be computed.
    pub(super) fn insert_all(
        &self,
        limits: BatchBytes,
        rows: &RecordBatch,
        mut visit: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let compute = |range: Range<usize>| self.insert(&rows.slice(range.start, range.len()));
        let bytes = |new: &RecordBatch| weight_of(new, 0, new.num_rows());
        let mut steps = Steps::new(limits, rows.num_rows());
        while let Some(new) = steps.next(compute, bytes) {
            visit(&new?)?;
        }
        Ok(())
    }

    /// Returns rows with the new values. `before` are the rows of the table; additional columns in them are kept.
    /// `rows` are the same rows with the columns of the scope.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a row whose value cannot be computed.
    fn update(&self, before: &RecordBatch, rows: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(before.num_columns());
        let names = names_of(rows.schema_ref().fields());
        for (index, (field, column)) in before.schema_ref().fields().iter().zip(before.columns()).enumerate()
        {
            match self.value(index, rows, &names)? {
                Some(value) => columns.push(self.column(index, value)?),
                None if self.generated.contains(&index) => {}
                None => columns.push((Arc::clone(field), Arc::clone(column))),
            }
        }
        of_columns(columns, before.num_rows())
    }

    /// Returns new rows, which have only the assigned columns.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for a row whose value cannot be computed.
    fn insert(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(self.assignments.len());
        let names = names_of(rows.schema_ref().fields());
        for assigned in &self.assignments {
            let value = assigned.value.of(rows, |name| names.find(name))?;
            columns.push(self.column(assigned.column, value)?);
        }
        of_columns(columns, rows.num_rows())
    }

    fn value<'a>(
        &self,
        column: usize,
        rows: &RecordBatch,
        names: &ByName<'a, impl Fn(usize) -> Option<&'a str>>,
    ) -> Result<Option<ArrayRef>> {
        let place = self.assignments.binary_search_by_key(&column, |assigned| assigned.column).ok();
        let assigned = place.and_then(|place| self.assignments.get(place));
        assigned.map(|assigned| assigned.value.of(rows, |name| names.find(name))).transpose()
    }

    /// Returns a value as a column of the table. The value keeps its own type, which may have to be converted later.
    fn column(&self, index: usize, value: ArrayRef) -> Result<(Arc<Field>, ArrayRef)> {
        let missing = || Error::invalid_argument("a column of the table is missing");
        let field = self.table.fields().get(index).ok_or_else(missing)?.as_ref().clone();
        let field = field.with_data_type(value.data_type().clone()).with_nullable(true);
        Ok((Arc::new(field), value))
    }
}

/// Returns the index of the table's column with the given name.
fn column_of(name: &str, table: &Schema, names: &FieldNames, alias: &str) -> Result<usize> {
    let path = ColumnPath::parse(name);
    let find = |name: &str| names.find(name);
    let found = match path.parts() {
        [name] => find(name),
        [table, name] if table.to_lowercase() == alias.to_lowercase() => find(name),
        [first, ..] if find(first).is_some() => {
            return Err(Error::unsupported(format!("{path} cannot be assigned: it is a part of a column"))
                .with_hint("assign the whole column"));
        }
        _ => None,
    };
    found.ok_or_else(|| {
        if let Some(column) = find(name) {
            let quoted = table.fields().get(column).map_or(name, |field| field.name().as_str());
            let quoted = ColumnPath::new([quoted]);
            return Error::invalid_argument(format!("the table has no column {path} to assign"))
                .with_hint(format!("a name with a dot is written in backticks: {quoted}"));
        }
        let names: Vec<&str> = table.fields().iter().map(|field| field.name().as_str()).collect();
        Error::invalid_argument(format!("the table has no column {path} to assign"))
            .with_hint(format!("the columns are: {}", names.join(", ")))
    })
}

fn of_columns(columns: Vec<(Arc<Field>, ArrayRef)>, rows: usize) -> Result<RecordBatch> {
    let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|error| Error::invalid_argument("assigned values have no rows").with_source(error))
}
