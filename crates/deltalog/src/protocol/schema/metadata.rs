//! The metadata of a field, kept exactly as it was written. (PROTOCOL, "Column Metadata".)

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// A JSON object, kept byte for byte. Two objects are equal if their bytes are equal.
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
    /// Parses the metadata in `json`.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::error::ErrorKind::CorruptLog) when it is not a JSON object.
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str::<Map<String, Value>>(json).map_err(|error| {
            Error::corrupt_log("metadata of a column is not a JSON object").with_source(error)
        })?;
        Ok(Self { json: json.into() })
    }

    /// Returns the JSON text as it was read.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Returns the metadata with `key` set to `value`, or without `key`.
    #[must_use]
    pub fn with(&self, key: &str, value: Option<Value>) -> Self {
        let mut entries = self.entries();
        match value {
            Some(value) => entries.insert(key.to_owned(), value),
            None => entries.remove(key),
        };
        Self { json: Value::Object(entries).to_string().into() }
    }

    /// Returns the metadata with only those keys for which `is_kept` returns true.
    #[must_use]
    pub(crate) fn retained(&self, is_kept: impl Fn(&String) -> bool) -> Self {
        let mut entries = self.entries();
        let all = entries.len();
        entries.retain(|key, _| is_kept(key));
        match entries.len() == all {
            true => self.clone(),
            false => Self { json: Value::Object(entries).to_string().into() },
        }
    }

    /// Returns whether the object is empty.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.entries().remove(key)
    }

    /// Returns all keys with their values.
    pub fn entries(&self) -> Map<String, Value> {
        // Most fields have no metadata. All other JSON was checked when it was parsed, so parsing it again does not
        // fail.
        match &*self.json {
            "{}" => Map::new(),
            json => serde_json::from_str(json).unwrap_or_default(),
        }
    }
}
