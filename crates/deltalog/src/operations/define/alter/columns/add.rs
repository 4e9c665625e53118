//! Adds columns and nested fields. (Protocol: "Schema Serialization Format", "Writer Requirements for Column
//! Mapping".)
//!
//! - Existing rows have NULL in a new column, so it must be nullable.
//! - With column mapping, a new column gets an id and a physical name that no column has ever had.

use serde_json::{Value, json};

use super::{described, name_of};
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::constraints::LENGTH_TYPE;
use crate::expression::predicate::ColumnPath;
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::path::{edit_fields, position, split};
use crate::operations::define::{MAX_COLUMN_ID, check_names, last_column_id};
use crate::protocol::schema::column_rules::COMMENT;
use crate::protocol::{ColumnMappingMode, NewMapping, StructField, StructType};
use crate::runtime::spelling::nearest_first;

/// A column or a nested field to add.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NewColumn {
    /// The path of the struct to which the field is added; empty for a top-level column.
    pub parent: ColumnPath,
    /// The field to add.
    pub field: StructField,
    /// The position among the existing fields; `None` for the end.
    pub position: Option<ColumnPosition>,
}

impl NewColumn {
    /// Returns a request to add `field` as the last field of the struct at `parent`.
    pub fn new(parent: ColumnPath, field: StructField) -> Self {
        Self { parent, field, position: None }
    }
}

/// A position among the fields of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnPosition {
    /// Before all other fields.
    First,
    /// After the field with this name.
    After(String),
}

impl ColumnPosition {
    /// Inserts `field` at this position.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for the position after a field that does not exist.
    pub(super) fn insert(&self, fields: &mut Vec<StructField>, field: StructField) -> Result<()> {
        let index = match self {
            Self::First => 0,
            Self::After(name) => position(fields, name).map(|index| index + 1).ok_or_else(|| {
                Error::invalid_argument(format!(
                    "the column '{}' cannot be put after '{name}', because there is no column '{name}'",
                    field.name
                ))
                .with_hint(match fields.is_empty() {
                    true => "put it first".to_owned(),
                    false => {
                        let known = fields.iter().map(|field| field.name.as_str());
                        format!("the columns are: {}", nearest_first(name, known))
                    }
                })
            })?,
        };
        fields.insert(index, field);
        Ok(())
    }

    /// Returns the position as the table's history shows it.
    pub(super) fn described(&self) -> String {
        match self {
            Self::First => "FIRST".to_owned(),
            Self::After(name) => format!("AFTER {}", name_of(&ColumnPath::new([name]))),
        }
    }
}

/// Adds the columns `new`, in order.
///
/// # Errors
/// Returns `SchemaMismatch` for a column that already exists, for a name or a type that a column cannot have, and for
/// a column that is not nullable. Returns `InvalidArgument` for a parent or a position that does not exist, and for
/// metadata other than a comment.
pub(in crate::operations::define::alter) fn add(
    draft: &mut Draft<'_>,
    new: &[NewColumn],
) -> Result<Operation> {
    let mut described_columns = Vec::new();
    // All new columns of one struct are added together, so that the schema is copied once per struct and not once per
    // column.
    for columns in new.chunk_by(|one, next| one.parent == next.parent) {
        let mut added = Vec::with_capacity(columns.len());
        for column in columns {
            check(draft, &column.field)?;
            let field = with_mapping(draft, &column.field)?;
            let path = ColumnPath::new(column.parent.parts().iter().chain([&field.name]));
            let mut entry = json!({ "column": described(&path, &column.field) });
            if let (Some(position), Some(entry)) = (&column.position, entry.as_object_mut()) {
                entry.insert("position".to_owned(), position.described().into());
            }
            described_columns.push(entry);
            added.push((&column.position, field));
            // Refuses an empty name.
            split(&path)?;
        }
        let parent = columns.first().map_or(&[][..], |column| column.parent.parts());
        draft.schema = edit_fields(&draft.schema, parent, |mut fields| {
            for (position, field) in added {
                match position {
                    Some(position) => position.insert(&mut fields, field)?,
                    None => fields.push(field),
                }
            }
            Ok(fields)
        })?;
    }
    Ok(Operation::new("ADD COLUMNS").parameter("columns", Value::Array(described_columns).to_string()))
}

/// Refuses a field that cannot be added.
pub(super) fn check(draft: &Draft<'_>, field: &StructField) -> Result<()> {
    let name = &field.name;
    if name.is_empty() {
        return Err(Error::schema_mismatch("the name of the new column is empty"));
    }
    if !field.nullable {
        return Err(Error::schema_mismatch(format!(
            "the new column '{name}' is not nullable, but existing rows have NULL in it"
        ))
        .with_hint("add it as a nullable column, fill it, and then forbid NULL"));
    }
    let of_one = StructType::try_new(vec![field.clone()])?;
    let mut unknown = None;
    of_one.any_field(&mut |field| {
        unknown = field
            .metadata
            .entries()
            .into_iter()
            .map(|(key, _)| key)
            .find(|key| ![COMMENT, LENGTH_TYPE].contains(&key.as_str()));
        unknown.is_some()
    });
    if let Some(key) = unknown {
        return Err(Error::invalid_argument(format!(
            "the new column '{name}' has the metadata '{key}', and a new column may only have a comment and a \
             length"
        ))
        .with_hint("leave it out"));
    }
    match draft.column_mapping() {
        ColumnMappingMode::None => check_names(&of_one),
        ColumnMappingMode::Name | ColumnMappingMode::Id => Ok(()),
    }
}

/// Assigns ids and physical names to `field` and its nested fields, if the table uses column mapping.
pub(super) fn with_mapping(draft: &mut Draft<'_>, field: &StructField) -> Result<StructField> {
    if draft.column_mapping() == ColumnMappingMode::None {
        return Ok(field.clone());
    }
    let environment = draft.environment;
    let mut mapping = NewMapping::new(last_column_id(&draft.metadata)?, |_: &StructField| {
        format!("col-{}", environment.uuid())
    });
    let assigned = mapping.assign(&StructType::try_new(vec![field.clone()])?)?;
    draft.metadata.configuration.insert(MAX_COLUMN_ID.to_owned(), mapping.last_id().to_string());
    assigned.fields().first().cloned().ok_or_else(|| Error::schema_mismatch("the new column has no name"))
}
