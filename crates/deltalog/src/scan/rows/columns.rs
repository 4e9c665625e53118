//! Which columns of the table a scan needs, and where they come from.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef};

use super::projected;
use crate::error::{Error, Result};
use crate::predicate::BoundPredicate;

/// The columns to read: those of the output, then those that only the predicate needs.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    table: SchemaRef,
    partitions: Vec<usize>,
    /// Indices into `table`.
    output: Vec<usize>,
    /// Indices into `table`, beginning with `output`.
    needed: Vec<usize>,
    /// What only reads partition columns: decided once for each file.
    pub(super) file_predicate: Option<BoundPredicate>,
    /// The rest: decided for each row.
    pub(super) row_predicate: Option<BoundPredicate>,
}

/// A column to read.
#[derive(Debug, Clone)]
pub(super) struct NeededColumn {
    pub(super) field: FieldRef,
    pub(super) is_partition: bool,
}

impl Columns {
    pub(super) fn new(table: &SchemaRef, partitions: &[usize]) -> Self {
        let all: Vec<usize> = (0..table.fields().len()).collect();
        let (output, needed) = (all.clone(), all);
        Self { table: Arc::clone(table), partitions: partitions.to_vec(), output, needed, file_predicate: None, row_predicate: None }
    }

    pub(super) fn project<S: AsRef<str>>(&mut self, names: &[S]) -> Result<()> {
        let mut output = Vec::with_capacity(names.len());
        for name in names {
            let index = find_field(self.table.fields(), name.as_ref())?;
            if output.contains(&index) {
                return Err(Error::invalid_argument(format!("the column '{}' is asked for twice", name.as_ref())));
            }
            output.push(index);
        }
        self.output = output;
        self.need()
    }

    pub(super) fn filter(&mut self, predicate: &BoundPredicate) -> Result<()> {
        if predicate.has_unknown() {
            return Err(Error::invalid_argument("part of the predicate was not understood, so it cannot select rows"));
        }
        let names: Vec<&str> =
            self.partitions.iter().filter_map(|index| self.table.fields().get(*index)).map(|f| f.name().as_str()).collect();
        let (file, row) = predicate.split(|column| matches!(column.path.parts(), [name] if names.contains(&name.as_str())));
        (self.file_predicate, self.row_predicate) = (file, row);
        self.need()
    }

    fn need(&mut self) -> Result<()> {
        self.needed.clone_from(&self.output);
        for column in self.row_predicate.iter().flat_map(BoundPredicate::columns) {
            let Some(name) = column.path.parts().first() else { continue };
            let index = find_field(self.table.fields(), name)?;
            if !self.needed.contains(&index) {
                self.needed.push(index);
            }
        }
        Ok(())
    }

    /// The schema of what the scan returns.
    pub(super) fn output_schema(&self) -> SchemaRef {
        projected(&self.table, &self.output)
    }

    /// The schema of what is read: the output's fields come first.
    pub(super) fn needed_schema(&self) -> SchemaRef {
        projected(&self.table, &self.needed)
    }

    /// How many of the columns that are read are returned.
    pub(super) fn output_len(&self) -> usize {
        self.output.len()
    }

    /// The columns of [`Columns::needed_schema`].
    pub(super) fn needed(&self) -> impl Iterator<Item = NeededColumn> {
        self.needed.iter().filter_map(|index| {
            let field = Arc::clone(self.table.fields().get(*index)?);
            Some(NeededColumn { field, is_partition: self.partitions.contains(index) })
        })
    }

    /// One row with all partition columns, from `value_of` each.
    pub(super) fn partition_batch(&self, mut value_of: impl FnMut(&FieldRef) -> Result<arrow::array::ArrayRef>) -> Result<RecordBatch> {
        let schema: Arc<Schema> = projected(&self.table, &self.partitions);
        let values = schema.fields().iter().map(&mut value_of).collect::<Result<Vec<_>>>()?;
        let nullable: Vec<_> = schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(1));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(nullable)), values, &options)
            .map_err(|e| Error::invalid_argument("the partition values do not fit the schema").with_source(e))
    }
}

/// Where the field called `name` is: the one of exactly this name, else the only one that differs in case.
///
/// # Errors
/// `InvalidArgument` if there is none, or more than one.
pub(super) fn find_field(fields: &Fields, name: &str) -> Result<usize> {
    match match_name(fields, name) {
        NameMatch::One(index) => Ok(index),
        NameMatch::Many => Err(Error::invalid_argument(format!("the column '{name}' could be more than one of the table's"))),
        NameMatch::None => {
            let known: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            Err(Error::invalid_argument(format!("there is no column '{name}'")).with_hint(format!("the columns are: {}", known.join(", "))))
        }
    }
}

/// What was found under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameMatch {
    None,
    One(usize),
    Many,
}

/// The fields that `name` can mean.
pub(super) fn match_name(fields: &Fields, name: &str) -> NameMatch {
    let one = |matches: &dyn Fn(&str) -> bool| {
        let mut found = fields.iter().enumerate().filter(|(_, field)| matches(field.name()));
        match (found.next(), found.next()) {
            (None, _) => NameMatch::None,
            (Some((index, _)), None) => NameMatch::One(index),
            (Some(_), Some(_)) => NameMatch::Many,
        }
    };
    match one(&|field| field == name) {
        NameMatch::None => {
            let lower = name.to_lowercase();
            one(&|field| field.to_lowercase() == lower)
        }
        exact => exact,
    }
}
