//! Which columns of the table a scan needs, and where they come from.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};

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
    /// The fields of `needed` after those of `output`, with no more in them than the predicate reads.
    extra: Vec<FieldRef>,
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
        Self {
            table: Arc::clone(table),
            partitions: partitions.to_vec(),
            output,
            needed,
            extra: Vec::new(),
            file_predicate: None,
            row_predicate: None,
        }
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
        self.extra.clear();
        let paths: Vec<&[String]> = self.row_predicate.iter().flat_map(BoundPredicate::columns).map(|column| column.path.parts()).collect();
        for name in paths.iter().filter_map(|path| path.first()) {
            let index = find_field(self.table.fields(), name)?;
            let is_known = self.needed.contains(&index);
            if let Some(field) = self.table.fields().get(index).filter(|_| !is_known) {
                self.needed.push(index);
                self.extra.push(narrowed(field, &paths));
            }
        }
        Ok(())
    }

    /// The schema of what the scan returns.
    pub(super) fn output_schema(&self) -> SchemaRef {
        projected(&self.table, &self.output)
    }

    /// The columns to read: the output's come first.
    pub(super) fn needed(&self) -> Vec<NeededColumn> {
        let of_output = self.output.iter().filter_map(|index| self.table.fields().get(*index)).cloned();
        let fields = of_output.chain(self.extra.iter().cloned());
        fields.zip(&self.needed).map(|(field, index)| NeededColumn { field, is_partition: self.partitions.contains(index) }).collect()
    }

    /// How many of the columns that are read are returned.
    pub(super) fn output_len(&self) -> usize {
        self.output.len()
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

/// `field` with only those fields of structs that are on one of `paths`, all of which begin beside it.
fn narrowed(field: &FieldRef, paths: &[&[String]]) -> FieldRef {
    let below = paths.iter().filter(|path| path.first() == Some(field.name())).filter_map(|path| path.get(1..));
    let below: Vec<&[String]> = below.collect();
    match field.data_type() {
        DataType::Struct(fields) if below.iter().all(|path| !path.is_empty()) => {
            let is_read = |field: &&FieldRef| below.iter().any(|path| path.first() == Some(field.name()));
            let inner: Fields = fields.iter().filter(is_read).map(|field| narrowed(field, &below)).collect();
            Arc::new(field.as_ref().clone().with_data_type(DataType::Struct(inner)))
        }
        _ => Arc::clone(field),
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
