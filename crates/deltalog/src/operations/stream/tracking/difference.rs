//! Finds the differences between two schemas of a stream.

use std::collections::BTreeMap;

use super::SchemaChange;
use crate::error::Result;
use crate::protocol::schema::is_widening;
use crate::protocol::{
    ColumnMappingMode, DataType, FieldMetadata, MappedSchema, Metadata, StructType, TableHeader,
};

/// The keys of field metadata that only affect writers.
const OF_WRITERS: [&str; 5] = [
    "delta.generationExpression",
    "delta.identity.start",
    "delta.identity.step",
    "delta.identity.highWaterMark",
    "delta.identity.allowExplicitInsert",
];

/// Returns whether `new` differs from `old` in a way that affects readers.
///
/// # Errors
/// `CorruptLog` for an invalid schema.
pub(super) fn is_other(new: &Metadata, old: &Metadata) -> Result<bool> {
    Ok(for_readers(new)? != for_readers(old)?
        || new.partition_columns != old.partition_columns
        || of_delta(new) != of_delta(old))
}

fn for_readers(metadata: &Metadata) -> Result<StructType> {
    let without = |of_field: &FieldMetadata| {
        OF_WRITERS.iter().fold(of_field.clone(), |of_field, key| of_field.with(key, None))
    };
    Ok(metadata.schema()?.with_metadata(&without))
}

fn of_delta(metadata: &Metadata) -> BTreeMap<&str, &str> {
    let properties = metadata.configuration.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    properties.filter(|(name, _)| name.starts_with("delta.")).collect()
}

/// The differences between a schema and an earlier one, except for new columns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// The renamed columns, as pairs of an old and a new name.
    renamed: Vec<(String, String)>,
    dropped: Vec<String>,
    widened: Vec<String>,
    /// A column whose values cannot be read with the new schema, if there is one.
    pub(super) incompatible: Option<String>,
}

impl Differences {
    /// Compares columns that have the same name in data files. With column mapping, this name differs from the
    /// column's logical name.
    ///
    /// # Errors
    /// Returns `CorruptLog` for an invalid schema.
    pub(super) fn between(earlier: &TableHeader, later: &TableHeader) -> Result<Self> {
        let mapped = |header: &TableHeader| {
            let mode = ColumnMappingMode::of(&header.protocol, &header.metadata)?;
            MappedSchema::new(header.metadata.schema()?, mode)
        };
        let (earlier, later) = (mapped(earlier)?, mapped(later)?);
        let mut found = Self::default();
        found.compare_fields(
            [earlier.logical(), earlier.physical()],
            [later.logical(), later.physical()],
            "",
        );
        Ok(found)
    }

    /// Returns each kind of change that was found, with a description that names the columns.
    pub(super) fn found(&self) -> Vec<(SchemaChange, String)> {
        let renamed: Vec<_> = self.renamed.iter().map(|(old, new)| format!("'{old}' to '{new}'")).collect();
        let quoted = |columns: &[String]| {
            columns.iter().map(|column| format!("'{column}'")).collect::<Vec<_>>().join(", ")
        };
        let mut found = Vec::new();
        if !renamed.is_empty() {
            found.push((SchemaChange::Rename, format!("it renames {}", renamed.join(", "))));
        }
        if !self.dropped.is_empty() {
            found.push((SchemaChange::Drop, format!("it drops {}", quoted(&self.dropped))));
        }
        if !self.widened.is_empty() {
            found.push((SchemaChange::TypeChange, format!("it widens {}", quoted(&self.widened))));
        }
        found
    }

    /// Compares two structs. Each is given twice, with logical and with physical names.
    fn compare_fields(&mut self, earlier: [&StructType; 2], later: [&StructType; 2], place: &str) {
        let [fields, fields_in_files] = earlier.map(StructType::fields);
        let [others, others_in_files] = later.map(StructType::fields);
        for (field, in_files) in fields.iter().zip(fields_in_files) {
            let name = format!("{place}{}", field.name);
            let same = others_in_files.iter().zip(others).find(|(other, _)| other.name == in_files.name);
            let Some((other_in_files, other)) = same else {
                self.dropped.push(name);
                continue;
            };
            if other.name != field.name {
                self.renamed.push((name.clone(), format!("{place}{}", other.name)));
            }
            self.compare_types(
                [&field.data_type, &in_files.data_type],
                [&other.data_type, &other_in_files.data_type],
                &name,
            );
        }
    }

    fn compare_types(&mut self, earlier: [&DataType; 2], later: [&DataType; 2], name: &str) {
        match (earlier, later) {
            ([DataType::Struct(a), DataType::Struct(b)], [DataType::Struct(c), DataType::Struct(d)]) => {
                self.compare_fields([a, b], [c, d], &format!("{name}."));
            }
            ([DataType::Array(a), DataType::Array(b)], [DataType::Array(c), DataType::Array(d)]) => {
                self.compare_types(
                    [&a.element_type, &b.element_type],
                    [&c.element_type, &d.element_type],
                    &format!("{name}.element"),
                );
            }
            ([DataType::Map(a), DataType::Map(b)], [DataType::Map(c), DataType::Map(d)]) => {
                self.compare_types(
                    [&a.key_type, &b.key_type],
                    [&c.key_type, &d.key_type],
                    &format!("{name}.key"),
                );
                self.compare_types(
                    [&a.value_type, &b.value_type],
                    [&c.value_type, &d.value_type],
                    &format!("{name}.value"),
                );
            }
            ([_, a], [_, b]) if a == b => {}
            ([DataType::Primitive(a), _], [DataType::Primitive(b), _]) if is_widening(*a, *b) => {
                self.widened.push(name.to_owned());
            }
            _ => self.incompatible = self.incompatible.take().or_else(|| Some(name.to_owned())),
        }
    }
}
