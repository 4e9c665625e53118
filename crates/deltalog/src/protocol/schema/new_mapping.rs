//! Assigns physical names and ids to new columns. (PROTOCOL, "Writer Requirements for Column Mapping".)

use serde_json::Value;

use super::mapping::{ID, PHYSICAL_NAME};
use super::part_ids::without_part_ids;
use super::{ArrayType, DataType, FieldMetadata, MapType, StructField, StructType};
use crate::error::Result;

/// Assigns names and ids to the columns of one schema.
pub struct NewMapping<N> {
    new_name: N,
    last_id: i64,
}

impl<N: FnMut(&StructField) -> String> NewMapping<N> {
    /// Creates an assignment. It takes physical names from `new_name`, which must never return the same name twice for
    /// fields of the same struct. New ids follow `last_id`, the highest id assigned before, or 0.
    pub fn new(last_id: i64, new_name: N) -> Self {
        Self { new_name, last_id }
    }

    /// Returns `schema` with a physical name and an id for each field, including nested fields. Names and ids that the
    /// fields have from another table are replaced. Ids of the parts of arrays and maps are removed.
    ///
    /// # Errors
    /// Never fails for metadata that was parsed before.
    pub fn assign(&mut self, schema: &StructType) -> Result<StructType> {
        let fields = schema.fields().iter().map(|field| self.field(field)).collect::<Result<_>>()?;
        Ok(StructType::of_distinct(fields))
    }

    /// Returns the highest id that was assigned, which is the value of the property `delta.columnMapping.maxColumnId`.
    pub fn last_id(&self) -> i64 {
        self.last_id
    }

    fn field(&mut self, field: &StructField) -> Result<StructField> {
        self.last_id += 1;
        let mut entries = without_part_ids(&field.metadata).entries();
        entries.insert(ID.to_owned(), self.last_id.into());
        entries.insert(PHYSICAL_NAME.to_owned(), Value::String((self.new_name)(field)));
        Ok(StructField {
            metadata: FieldMetadata::parse(&Value::Object(entries).to_string())?,
            data_type: self.data_type(&field.data_type)?,
            ..field.clone()
        })
    }

    fn data_type(&mut self, data_type: &DataType) -> Result<DataType> {
        Ok(match data_type {
            DataType::Primitive(_) | DataType::Variant => data_type.clone(),
            DataType::Struct(fields) => DataType::Struct(self.assign(fields)?),
            DataType::Array(array) => DataType::Array(Box::new(ArrayType {
                element_type: self.data_type(&array.element_type)?,
                contains_null: array.contains_null,
            })),
            DataType::Map(map) => DataType::Map(Box::new(MapType {
                key_type: self.data_type(&map.key_type)?,
                value_type: self.data_type(&map.value_type)?,
                value_contains_null: map.value_contains_null,
            })),
        })
    }
}
