//! Converts partition values from the log's map of strings to typed columns. (Protocol: "Partition Value
//! Serialization".)

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray};
use arrow::datatypes::{Field, Fields};

use crate::error::{Error, Result};
use crate::protocol::{DataType, MappedSchema, PartitionColumnBuilder, PrimitiveType};
use crate::snapshot::Snapshot;

/// The partition columns of a table. Their types are looked up once, so that the values of many files can be parsed.
#[derive(Debug, Clone)]
pub struct PartitionColumns {
    /// The types of the columns, with the names that the log uses for them.
    types: Vec<(String, PrimitiveType)>,
    /// The columns as Arrow fields, with their logical names.
    fields: Fields,
}

impl PartitionColumns {
    /// Returns the partition columns of `snapshot`, in the order of the table's metadata.
    ///
    /// # Errors
    /// `CorruptLog` if a partition column is not in the schema or does not have a primitive type.
    pub fn of(snapshot: &Snapshot) -> Result<Self> {
        Self::new(snapshot.mapped_schema(), &snapshot.metadata().partition_columns)
    }

    /// Creates the partition columns `names` of a table with the schema `schema`.
    ///
    /// # Errors
    /// Returns the same errors as [`PartitionColumns::of`].
    pub fn new(schema: &MappedSchema, names: &[String]) -> Result<Self> {
        let (mut types, mut fields) = (Vec::new(), Vec::new());
        for name in names {
            let bad = |what: &str| Error::corrupt_log(format!("the partition column '{name}' {what}"));
            let logical = schema.logical();
            let field = logical.exact_index_of(name).and_then(|at| logical.fields().get(at));
            let field = field.ok_or_else(|| bad("is not in the schema"))?;
            let DataType::Primitive(primitive) = &field.data_type else {
                return Err(bad("does not have a primitive type"));
            };
            let in_log = schema.physical_name(name).ok_or_else(|| bad("is not in the schema"))?;
            types.push((in_log.to_owned(), *primitive));
            fields.push(Arc::new(Field::new(name, primitive.to_arrow(), true)));
        }
        Ok(Self { types, fields: fields.into() })
    }

    /// Returns the Arrow fields. All of them are nullable.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Returns whether there are no partition columns.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Returns only the columns for which `keep` returns true.
    #[must_use]
    pub fn retain(&self, keep: impl Fn(&str) -> bool) -> Self {
        let kept = self.types.iter().zip(&self.fields).filter(|(_, field)| keep(field.name()));
        let (types, fields): (Vec<_>, Vec<_>) =
            kept.map(|(typed, field)| (typed.clone(), Arc::clone(field))).unzip();
        Self { types, fields: fields.into() }
    }

    /// Parses the maps in a column `partitionValues`. Returns one row for each file.
    ///
    /// # Errors
    /// Returns `CorruptLog` for a value that does not have the type of its column.
    pub fn parse(&self, values: &MapArray) -> Result<StructArray> {
        let keys = values
            .keys()
            .as_string_opt::<i32>()
            .ok_or_else(|| Error::corrupt_log("the keys of 'partitionValues' are not strings"))?;
        let texts = values
            .values()
            .as_string_opt::<i32>()
            .ok_or_else(|| Error::corrupt_log("the values of 'partitionValues' are not strings"))?;
        let offsets = values.value_offsets();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.types.len());
        for (position, ((name, primitive), field)) in self.types.iter().zip(&self.fields).enumerate() {
            let mut column = PartitionColumnBuilder::new(field.name(), primitive);
            for row in offsets.windows(2) {
                let (start, end) = (row[0] as usize, row[1] as usize);
                // The entries of a map nearly always have the order of the columns.
                let guess = start + position;
                let entry = if guess < end && keys.value(guess) == name {
                    Some(guess)
                } else {
                    (start..end).find(|entry| keys.value(*entry) == name)
                };
                let text = entry.filter(|entry| texts.is_valid(*entry)).map(|entry| texts.value(entry));
                column.append(text)?;
            }
            columns.push(column.finish());
        }
        self.assemble(columns, values.len())
    }

    /// Combines typed columns into a struct with one row for each file.
    ///
    /// # Errors
    /// `CorruptLog` if the arrays do not have the types of these columns.
    pub fn assemble(&self, columns: Vec<ArrayRef>, files: usize) -> Result<StructArray> {
        StructArray::try_new_with_length(self.fields.clone(), columns, None, files).map_err(|error| {
            Error::corrupt_log("partition values do not match the types of their columns").with_source(error)
        })
    }
}
