//! The metadata of a field, kept as its writer left it. (PROTOCOL, "Column Metadata".)

use serde_json::{Map, Value};

use crate::{Error, Result};

/// A JSON object, kept byte for byte; equal when the bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldMetadata {
    json: Box<str>,
}

impl Default for FieldMetadata {
    fn default() -> Self {
        Self { json: "{}".into() }
    }
}

impl FieldMetadata {
    /// The metadata that `json` spells.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::ErrorKind::CorruptLog) when it is not a JSON object.
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str::<Map<String, Value>>(json).map_err(|error| {
            Error::corrupt_log("metadata of a column is not a JSON object").with_source(error)
        })?;
        Ok(Self { json: json.into() })
    }

    /// The JSON as it was read.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.entries().remove(key)
    }

    /// Every key with its value.
    pub fn entries(&self) -> Map<String, Value> {
        // Most fields have none; those that do were checked when they were made.
        match &*self.json {
            "{}" => Map::new(),
            json => serde_json::from_str(json).unwrap_or_default(),
        }
    }
}
